"""The registry of sources, and how a path, an address or the `data` of a recipe becomes one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.params import build
from closeknit.io.database import Database
from closeknit.io.databases.address import HIDDEN, holds_password
from closeknit.io.delta import DeltaTable
from closeknit.io.iceberg import IcebergTable
from closeknit.io.object_stores import ObjectFile
from closeknit.io.partitioned import PartitionedParquet
from closeknit.io.r_files import RFile
from closeknit.io.source import Source
from closeknit.io.spreadsheets import Spreadsheet
from closeknit.io.statistical import StatisticalFile

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]{0,40}")
REGISTRY: list[type[Source]] = [  # the first that serves a path or address reads it
    Spreadsheet,
    StatisticalFile,
    RFile,
    DeltaTable,
    IcebergTable,
    PartitionedParquet,
    ObjectFile,
    Database,  # takes every address with a driver in its scheme, so it is asked last
]


def source_class(place: object) -> type[Source] | None:
    """The registered source that reads a path or address, None for a plain file.

    Args:
        place: a path or address; anything else has no source.

    >>> source_class("people.csv") is None
    True
    """
    if not isinstance(place, str | PathLike):
        return None
    text = fspath(place)
    found = next((source for source in REGISTRY if source.serves(text)), None)
    if found is None and holds_password(text):
        raise explain_address(text)
    return found


def explain_address(place: str) -> BadInput:
    """The error for an address that no source reads; it repeats the scheme alone, because the rest may be credentials.

    Args:
        place: the address.

    >>> print(explain_address("postgrsql://ann:secret@host/clinic"))
    the scheme of the address postgrsql://*** is unknown; did you mean 'postgresql'?
    """
    scheme = place.partition("://")[0]
    known = sorted({name for source in REGISTRY for name in source.schemes})
    shown = scheme if SCHEME.fullmatch(scheme) else HIDDEN
    return BadInput(f"the scheme of the address {shown}://{HIDDEN} is unknown", right=suggest_name(scheme, known))


def source_of(data: Any, options: Mapping[str, Any] | None = None) -> Any:
    """A source for a path or address that is registered, with its options; anything else as it is.

    Args:
        data: a path, an address, a `Source`, or a frame.
        options: parameters of the source, such as the sheet or the table; those that are None are left out.

    >>> source_of("people.csv")
    'people.csv'
    >>> source_of("people.csv", {"sheet": "Patients"})
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: people.csv: this kind of file has no option 'sheet'; leave it out
    """
    given = {name: value for name, value in (options or {}).items() if value is not None}
    found = source_class(data)
    if found is not None:
        return build("data", found, {found.where(): fspath(data), **given})
    if given and "://" in str(data):
        raise explain_address(str(data))
    if given:
        raise BadInput(f"this kind of file has no option '{next(iter(given))}'", file=place_of(data), right="leave it out")
    return data


def open_source(place: str | PathLike[str], **options: Any) -> Source:
    """A table that needs more than a path: a sheet of a workbook, a version of a lake's table.

    Args:
        place: the path or address.
        options: the keys of `data` in a recipe for this kind of table, such as `sheet`, `labels` or `version`.

    >>> open_source("people.xlsx", sheet=2).sheet
    2
    """
    found = source_of(place, options)
    if not isinstance(found, Source):
        raise BadInput("this kind of file needs no source", file=place, right="give its path as it is")
    return found


def place_of(data: Any) -> object:
    """The path or address of a table, as messages show it; None for a frame.

    Args:
        data: a path, an address, a `Source`, or a frame.

    >>> place_of("people.csv"), place_of([1])
    ('people.csv', None)
    """
    if (found := source_class(data)) is not None and not found.suffixes:
        return build("data", found, {found.where(): fspath(data)}).place
    return data.place if isinstance(data, Source) else data if isinstance(data, str | PathLike) else None

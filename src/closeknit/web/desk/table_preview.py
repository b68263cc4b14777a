"""The preview of a table: its first rows, and for each column its type, missing cells and most frequent values."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from closeknit.api.suggestion.profile import Profile, profile_of
from closeknit.core.columns import Column, Columns
from closeknit.core.domain import NUMBER_TEXT
from closeknit.core.errors import BadInput, refuse_empty
from closeknit.core.exact import plain_number
from closeknit.datasets import hospital, hospital_recipe
from closeknit.io.canonical import cell_texts
from closeknit.io.csv import CsvFormat
from closeknit.io.files import kind_of, read_with_format, write_csv
from closeknit.io.parquet import parquet_size
from closeknit.io.source import Source
from closeknit.io.sources import source_of
from closeknit.io.spreadsheets import unpack_part

SHOWN_ROWS = 10
FREQUENT = 5
LONGEST = 60  # characters of a cell on a page
BLOCK = 1 << 20
COMPRESSED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
CODE = re.compile(r"0\d+")  # digits with a leading zero are a code, such as a postal code
TYPES = {"b": "true or false", "M": "dates", "i": "whole numbers", "u": "whole numbers", "f": "numbers", "O": "text"}


@dataclass(frozen=True)
class Limits:
    """The largest table that is accepted; None is no limit."""

    rows: int | None = None
    columns: int | None = None
    unpacked: int | None = None  # bytes of a compressed file


def read_table(path: Path | Source, name: str, limits: Limits | None = None, csv: CsvFormat | None = None) -> Columns:
    """Read a table; messages use its `name`, never its path on this machine.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "table.csv").write_text("age,age\\n1,2\\n", encoding="utf-8")
    ...     read_table(Path(folder, "table.csv"), "people.csv")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: people.csv, column 'age': columns 1 and 2 have this name; ...
    """
    return open_table(path, name, limits, csv)[0]


def open_table(
    data: Path | Source, name: str, limits: Limits | None = None, csv: CsvFormat | None = None
) -> tuple[Columns, dict[str, Any]]:
    """Read a table, and return the format of the file as in a recipe too: what `csv` leaves open is detected.

    `data`: the file, or the file with a choice such as a sheet of a workbook.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "table.csv").write_text("age;sex\\n1;f\\n", encoding="utf-8")
    ...     table, form = open_table(Path(folder, "table.csv"), "patients.csv")
    >>> list(table), form
    (['age', 'sex'], {'delimiter': ';'})
    """
    most, path = limits or Limits(), Path(data.place) if isinstance(data, Source) else data

    def few(names: Sequence[str]) -> Sequence[str]:
        if most.columns is not None and len(names) > most.columns:
            raise BadInput(f"the table has {len(names):,} columns", file=name, right=f"at most {most.columns:,} are taken")
        return names

    try:
        _refuse_unpacked(path, name, most.unpacked)
        _refuse_declared(path, name, most)
        columns, found = read_with_format(data, csv, few)
    except BadInput as bad:
        raise rename_file(bad, path, name) from None
    if most.rows is not None and columns.rows > most.rows:
        raise BadInput(f"the table has {columns.rows:,} rows", file=name, right=f"at most {most.rows:,} are taken")
    refuse_empty(columns.rows, name)
    chosen = {key: value for key, value in data.form().items() if key != data.where()} if isinstance(data, Source) else {}
    return columns, found.form(csv) if found else chosen


def rename_file(bad: BadInput, path: Path, name: str) -> BadInput:
    """Return the same error with the owner's name of the file.

    >>> print(rename_file(BadInput("the file is empty", file="a/b.csv"), Path("a/b.csv"), "patients.csv"))
    patients.csv: the file is empty
    """
    texts = {key: text.replace(str(path), name) for key, text in (("what", bad.what), ("right", bad.right)) if text}
    return bad.replace(file=None if bad.file is None else name, **texts)


def _refuse_unpacked(path: Path, name: str, most: int | None) -> None:
    """Refuse a compressed file that would decompress to more than `most` bytes, before it is read.

    The sizes that a file declares are not trusted: its parts are decompressed and counted.
    """
    if most is None or not path.is_file():
        return
    unpacked = 0
    try:
        for block in _unpack(path):
            unpacked += len(block)
            if unpacked > most:
                raise BadInput(f"it decompresses to more than {most:,} bytes", file=name, right="give a smaller table")
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return  # reading it reports what is wrong


def _unpack(path: Path) -> Iterator[bytes]:
    """Yield what a file decompresses to; nothing for a file that is not compressed as a whole."""
    with open(path, "rb") as file:
        magic = file.read(6)
    opens = next((opens for start, opens in COMPRESSED.items() if magic.startswith(start)), None)
    if opens is not None:
        with opens(path, "rb") as file:
            while block := file.read(BLOCK):
                yield block
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as pack, open(path, "rb") as file:
            for entry in pack.infolist():
                yield from unpack_part(pack, entry, file)


def _refuse_declared(path: Path, name: str, most: Limits) -> None:
    """Refuse a file by its metadata: a column of one value needs no space in Parquet, however many rows it has."""
    if not path.is_file():
        return
    source = source_of(path)
    parquet = parquet_size(path) if kind_of(path) == ".parquet" else None
    size = source.measure_size() if isinstance(source, Source) else parquet
    if size is None:
        return
    rows, unpacked = size
    if most.rows is not None and rows > most.rows:
        raise BadInput(f"the table has {rows:,} rows", file=name, right=f"at most {most.rows:,} are taken")
    if most.unpacked is not None and unpacked > most.unpacked:
        raise BadInput(f"it decompresses to more than {most.unpacked:,} bytes", file=name, right="give a smaller table")


@dataclass(frozen=True)
class Frequent:
    """A value and its number of rows."""

    value: str
    rows: int


@dataclass(frozen=True)
class ColumnPreview:
    """The preview of a column: `missing` counts rows without a value, `markers` look like missing-value codes."""

    name: str
    type: str
    missing: int
    distinct: int
    frequent: tuple[Frequent, ...]
    low: str | None = None  # of numbers and dates
    high: str | None = None
    markers: tuple[str, ...] = ()


@dataclass(frozen=True)
class TablePreview:
    """The preview of a table: `first` are the first rows, one text per cell, None for a missing value."""

    rows: int
    columns: tuple[ColumnPreview, ...]
    first: tuple[tuple[str | None, ...], ...]


def preview_table(columns: Columns) -> TablePreview:
    """Preview a table.

    >>> seen = preview_table(Columns.of({"age": ["41", "30", "30"], "job": ["cook", None, "?"]}))
    >>> seen.columns[0]
    ColumnPreview(name='age', type='whole numbers', missing=0, distinct=2, frequent=(Frequent(value='30', rows=2), \
Frequent(value='41', rows=1)), low='30', high='41', markers=())
    >>> seen.columns[1].missing, seen.columns[1].markers, seen.first[1]
    (2, ('?',), ('30', None))
    """
    few = columns.take(np.arange(min(SHOWN_ROWS, columns.rows)))
    cells = [_cells(column) for column in few.values()]
    seen = tuple(_column(name, column) for name, column in columns.items())
    return TablePreview(columns.rows, seen, tuple(zip(*cells, strict=True)))


def short(text: str, longest: int = LONGEST) -> str:
    """Shorten a text for a page.

    >>> short("a" * 99, 5)
    'aaaa…'
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _cells(column: Column) -> list[str | None]:
    used = sorted(set(column.codes[column.codes >= 0].tolist()))
    texts = dict(zip(used, map(short, cell_texts(Column(column.values[used], column.codes))), strict=True))
    return [texts.get(code) for code in column.codes.tolist()]


def _column(name: str, column: Column) -> ColumnPreview:
    seen = profile_of(name, column)
    order = np.argsort(-seen.counts, kind="stable")
    most = tuple(Frequent(short(seen.texts[i]), int(seen.counts[i])) for i in order[:FREQUENT].tolist())
    kind, low, high = _type(seen)
    return ColumnPreview(name, kind, seen.missing, seen.distinct, most, low, high, seen.markers)


def _type(seen: Profile) -> tuple[str, str | None, str | None]:
    """Return the type of the values, their minimum and maximum; cells of a CSV file are text that may be numbers."""
    kind = seen.values.dtype.kind
    if not seen.distinct:
        return "no values", None, None
    if kind == "O" and all(NUMBER_TEXT.fullmatch(text) and not CODE.fullmatch(text) for text in seen.texts):
        numbers = np.array([float(text) for text in seen.texts])
    elif kind in "iuf":
        numbers = seen.values.astype(np.float64)
    else:
        ends = (seen.values.min(), seen.values.max()) if kind == "M" else (None, None)
        return TYPES.get(kind, "text"), *(None if end is None else str(end)[:10] for end in ends)  # type: ignore[return-value]
    whole = bool(np.all(numbers == np.floor(numbers)))
    low, high = (plain_number(float(end)) for end in (numbers.min(), numbers.max()))
    return "whole numbers" if whole else "numbers", low, high


def write_example(path: Path, rows: int = 10_000) -> dict[str, Any]:
    """Write the generated hospital table as this CSV file, and return its draft.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draft = write_example(Path(folder, "table.csv"), rows=50)
    ...     read_table(Path(folder, "table.csv"), "hospital").rows, draft["data"]
    (50, 'table.csv')
    """
    write_csv(hospital(rows), path)
    return hospital_recipe(path.name)


def csv_format(form: Mapping[str, Any] | None) -> CsvFormat | None:
    """Return the CSV format of a form or recipe; None if nothing is given.

    >>> csv_format({"delimiter": ";", "decimal": ","})
    CsvFormat(delimiter=';', quote=None, encoding=None, decimal=',', thousands=None)
    """
    given = {key: value for key, value in (form or {}).items() if value not in (None, "")}
    return CsvFormat(**given) if given else None

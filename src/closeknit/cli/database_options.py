"""Options for tables of databases, and a password on the command line, which others could see in the list of processes."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from closeknit.cli.command_errors import print_stderr

Table = Annotated[str | None, typer.Option(help="Table of a database: table or schema.table.", metavar="NAME")]
Query = Annotated[str | None, typer.Option(help="Query of a database, instead of a table.", metavar="SQL")]


def data_of(place: str, **options: Any) -> Any:
    """Return a source for an address or for a file with options; a plain path as it is.

    Args:
        place: what the user names.
        options: options of the source, such as the table; None where an option is not given.
    >>> data_of("out/", table=None)
    'out/'
    """
    from closeknit.io.database import Database
    from closeknit.io.sources import source_of

    if Database.serves(place) or any(value is not None for value in options.values()):
        return source_of(place, options)
    return place


def target_of(place: str, replace: bool, **options: Any) -> Any:
    """Return the source that a release is written to; one that cannot be written in the end is refused before the work starts.

    Args:
        place: what the user names.
        replace: whether an earlier release there is replaced.
        options: options of the source, such as the table; None where an option is not given.
    """
    from closeknit.core.errors import BadInput
    from closeknit.io.source import Source
    from closeknit.io.sources import explain_address, source_of

    target = source_of(data_of(place, **options))
    if not isinstance(target, Source) and "://" in place:
        raise explain_address(place)
    if not isinstance(target, Source):
        raise BadInput("a release cannot be written here with --to", file=place, right="name a folder with -o")
    target.check_target(replace)
    return target


def hide_passwords(arguments: Sequence[str]) -> None:
    """Overwrite addresses with a password in the list of processes, as database clients do, and warn.

    Args:
        arguments: the arguments of this process.
    """
    from closeknit.io.databases.address import holds_password

    for place in (word for word in arguments if holds_password(word)):
        _overwrite_argument(place)
        what = "a password on the command line can be seen by others and is kept in the history of your shell"
        print_stderr(f"warning: {what}; write ${{VARIABLE}} in its place, or use @file or keyring://service/user")


def _overwrite_argument(text: str) -> None:
    """Replace an argument by stars in the memory from which Linux lists processes; other systems are left alone."""
    if sys.platform != "linux":
        return
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, the fields 48 and 49
        found = ctypes.string_at(start, end - start).find(text.encode())
        if start and found >= 0:
            ctypes.memset(start + found, ord("*"), len(text.encode()))

"""The file of a release in each format; whatever the library of a format writes is read back and compared first."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.canonical import content_hash
from closeknit.io.files import read_written, write_csv, write_parquet
from closeknit.io.folders import write_whole
from closeknit.io.labels import Labels

FORMATS = ("csv", "parquet", "xlsx", "dta", "sav", "xpt")
BLOCK = 1 << 20


def write_release_file(
    columns: Columns,
    path: Path,
    types: Mapping[str, Any] | None = None,
    labels: Labels | None = None,
    certificate: str | None = None,
) -> None:
    """Write the file of a release; its suffix decides the format.

    Args:
        columns: the written cells.
        path: the file.
        types: Arrow types of unchanged columns, for Parquet.
        labels: labels of variables and values, for statistical files.
        certificate: the certificate as JSON, for formats that have a place for it.

    >>> from closeknit.io.files import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_release_file(Columns.of({"age": ["[30, 39]", "*"], "cost": [1.5, None]}), Path(folder, "release.xlsx"))
    ...     read(f"{folder}/release.xlsx")["cost"].cells()
    [1.5, None]
    """
    suffix = path.suffix
    if suffix == ".csv":
        write_csv(columns, path)
    elif suffix == ".parquet":
        write_parquet(columns, path, types)
    elif suffix == ".xlsx":
        from closeknit.io.spreadsheet_writing import write_xlsx

        write_checked(columns, path, lambda place: write_xlsx(columns, place, certificate))
    else:
        from closeknit.io.statistical_writing import write_statistical

        write_checked(columns, path, lambda place: write_statistical(columns, place, labels))


def write_checked(columns: Columns, path: Path, write: Callable[[Path], None]) -> None:
    """Write a file that must read back as the same cells, and so have the same content hash; otherwise nothing is written.

    Args:
        columns: the cells.
        path: the file.
        write: writes the cells to a new file of this suffix.
    """
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder, f"release{path.suffix}")
        try:
            write(draft)
            found = read_written(draft)
        except BadInput as bad:
            raise bad.replace(file=path) from None
        if content_hash(found) != content_hash(columns):
            raise BadInput(
                f"a cell would read back differently from a {path.suffix} file",
                file=path,
                column=_first_difference(columns, found),
                right="save the release as csv or parquet",
            )
        write_whole(path, _blocks(draft))


def refuse_other_kind(path: str, suffix: str, replace: bool) -> None:
    """Refuse a file that cannot be written: of a kind that is only read, or one that exists and is not to be replaced.

    Args:
        path: the file.
        suffix: the suffix that can be written.
        replace: whether an existing file is replaced.
    """
    if Path(path).suffix.lower() != suffix:
        raise BadInput("a release cannot be written in this format", file=path, right=f"give the file the suffix {suffix}")
    if Path(path).exists() and not replace:
        raise BadInput("it exists already", file=path, right="choose another name, or replace it")


def _first_difference(columns: Columns, found: Columns) -> str | None:
    for name, column in columns.items():
        if name not in found or content_hash(Columns({name: column}, len(column))) != content_hash(
            Columns({name: found[name]}, found.rows)
        ):
            return name
    return None


def _blocks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        while block := source.read(BLOCK):
            yield block

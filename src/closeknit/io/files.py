"""Reading and writing files: the suffix decides the format, and files are written atomically."""

from __future__ import annotations

import errno
import hashlib
import io
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from closeknit.core.columns import Columns, concat_columns
from closeknit.core.errors import BadInput
from closeknit.io.canonical import canonical_blocks
from closeknit.io.csv import PLAIN, CsvFormat, read_csv_files
from closeknit.io.faults import explain_os_error, name_os_errors
from closeknit.io.folders import write_whole
from closeknit.io.frames import from_frame
from closeknit.io.ipc import read_ipc
from closeknit.io.names import Wanted, choose_columns, refuse_other_names
from closeknit.io.ndjson import read_ndjson
from closeknit.io.parquet import read_parquet, table_from_columns
from closeknit.io.source import Source
from closeknit.io.sources import REGISTRY, explain_address, source_class, source_of

_CSV = (".csv", ".tsv", ".tab", ".txt")
_TAB = (".tsv", ".tab")
_READERS = {".parquet": read_parquet, ".ndjson": read_ndjson, ".arrow": read_ipc}
_SAME = {".pq": ".parquet", ".jsonl": ".ndjson", ".feather": ".arrow"}


def read(source: Any, format: CsvFormat | None = None, columns: Wanted = None) -> Columns:
    r"""The table in a file (.csv, .tsv, .txt, .ndjson, each also with .gz; .parquet; .arrow) or in a frame.

    A folder with such a suffix contains part files, as Spark writes them; they are read in the order of their names. Other
    places, such as databases and spreadsheets, are read by the registered sources (`io/sources.py`).

    Args:
        source: path of a file, address of a database, a `Source`, a frame, or `Columns`.
        format: how a CSV file is written; what it leaves open is detected.
        columns: the columns to read, in this order; all if left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "people.tsv").write_text("age\tsex\n30\tf\n", encoding="utf-8")
    ...     read(f"{folder}/people.tsv")["age"].cells()
    ['30']
    """
    return read_with_format(source, format, columns)[0]


def read_with_format(source: Any, format: CsvFormat | None = None, columns: Wanted = None) -> tuple[Columns, CsvFormat | None]:
    r"""As `read`, and the format of the CSV file as given and detected; None for other files and for frames.

    Args:
        source: path of a file, a frame, or `Columns`.
        format: how a CSV file is written; what it leaves open is detected.
        columns: the columns to read, in this order; all if left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "people.csv").write_text("age;cost\n30;1,5\n", encoding="utf-8")
    ...     table, format = read_with_format(f"{folder}/people.csv")
    >>> table["cost"].cells(), format.form()
    (['1.5'], {'delimiter': ';', 'decimal': ','})
    """
    if isinstance(source, Columns):
        return source.select(choose_columns(list(source), columns)), None
    source = source_of(source)
    if isinstance(source, Source):
        return source.read(columns), None
    if not isinstance(source, str | PathLike):
        return from_frame(source, columns), None
    if "://" in str(source):
        raise explain_address(str(source))
    suffix, files = _existing_kind(source), part_files(source)
    if suffix in _CSV:
        return read_csv_files(files, _by_suffix(suffix, format), columns)
    parts = [_READERS[suffix](file, columns) for file in files]
    for found, where in zip(parts, files, strict=True):
        refuse_other_names(list(found), list(parts[0]), where)
    return concat_columns(parts), None


def read_written(source: Any, format: CsvFormat | None = None) -> Columns:
    r"""The exact cells of a release: for a CSV file nothing is detected that could change a cell and so the content hash.

    Args:
        source: path of a file, or a frame.
        format: how a CSV file is written; canonical if left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "out.csv").write_text('age,cost\n30,"1.234,5"\n', encoding="utf-8")
    ...     read_written(f"{folder}/out.csv")["cost"].cells()
    ['1.234,5']
    """
    plain = isinstance(source, str | PathLike) and "://" not in str(source) and source_class(source) is None
    if plain and (suffix := _existing_kind(source)) in _CSV:
        usual = PLAIN if suffix != ".txt" else replace(PLAIN, delimiter=None)
        format = _by_suffix(suffix, format).fill_defaults(usual)
    return read(source, format)


def _existing_kind(path: str | PathLike[str]) -> str:
    """As `kind_of`; a path at which nothing is has no kind, whatever its suffix."""
    if not Path(path).exists():
        raise explain_os_error(FileNotFoundError(errno.ENOENT, ""), path)
    return kind_of(path)


def _by_suffix(suffix: str, format: CsvFormat | None) -> CsvFormat:
    """The format, with the delimiter that the suffix names."""
    format = format or CsvFormat()
    return replace(format, delimiter="\t") if suffix in _TAB and format.delimiter is None else format


def part_files(path: str | PathLike[str]) -> list[Path]:
    """The files of a table: itself, or the part files of a folder without Spark's hidden files.

    >>> part_files("people.parquet")
    [PosixPath('people.parquet')]
    """
    file = Path(path)
    if not file.is_dir():
        return [file]
    parts = [part for part in sorted(file.iterdir()) if not part.name.startswith((".", "_"))]
    if not parts:
        raise BadInput("this folder is empty", file=file, right="it needs the part files of a table")
    if inside := [part for part in parts if part.is_dir()]:
        raise BadInput("this folder has a folder among its part files", file=inside[0], right="name a folder of files")
    return parts


def kind_of(path: str | PathLike[str]) -> str:
    """The suffix that decides the format of a file, without `.gz`.

    >>> kind_of("people.csv.gz")
    '.csv'
    """
    file = Path(path)
    suffix = (file.with_suffix("") if file.suffix.lower() == ".gz" else file).suffix.lower()
    suffix = _SAME.get(suffix, suffix)
    others = {other for source in REGISTRY for other in source.suffixes}
    if suffix in others and file.suffix.lower() == ".gz":
        raise BadInput("this format is not read with gzip around it", file=file, right="give it without .gz")
    if suffix not in {*_CSV, *_READERS, *others}:
        if file.is_dir():
            right = "name a file in it; a folder of part files has the suffix of its files, such as people.parquet"
            raise BadInput("this is a folder, not a file", file=file, right=right)
        known = ", ".join([".csv", ".tsv", ".txt", ".ndjson (also with .gz)", ".parquet", ".arrow", *sorted(others)])
        raise BadInput(f"the suffix '{suffix}' is unknown", file=file, right=f"use one of {known}")
    return suffix


def write_csv(columns: Columns, path: str | PathLike[str]) -> None:
    r"""Write a file with the canonical CSV text.

    Args:
        columns: the cells.
        path: the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv(Columns.of({"age": [30, None], "sex": ["f", "m"]}), f"{folder}/out.csv")
    ...     Path(folder, "out.csv").read_bytes()
    b'age,sex\n30,f\n,m\n'
    """
    write_whole(path, canonical_blocks(columns))


def write_parquet(columns: Columns, path: str | PathLike[str], like_types: Mapping[str, Any] | None = None) -> None:
    """Write a Parquet file from the cells alone.

    Args:
        columns: the cells.
        path: the file.
        like_types: type of each column, as `parquet_types` returns them; used if all values fit.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(Columns.of({"age": [30, None]}), f"{folder}/out.parquet")
    ...     read(f"{folder}/out.parquet")["age"].cells()
    [30, None]
    """
    memory = io.BytesIO()
    pq.write_table(table_from_columns(columns, like_types), memory, store_schema=True)
    write_whole(path, memory.getvalue())


def sha256_of(path: str | PathLike[str]) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal digits.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a").write_bytes(b"abc")
    ...     sha256_of(f"{folder}/a")[:8]
    'ba7816bf'
    """
    with name_os_errors(path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

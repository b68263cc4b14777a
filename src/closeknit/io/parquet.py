"""Reading Parquet, and Arrow tables to write as Parquet: only the written cells, without metadata of the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.arrow import array_from_column, array_like, columns_from_arrow
from closeknit.io.faults import name_os_errors
from closeknit.io.names import Wanted, check_names, choose_columns


def read_parquet(path: str | PathLike[str], columns: Wanted = None) -> Columns:
    """The table in a Parquet file.

    Args:
        path: the file.
        columns: the columns to read, in this order; all if left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"age": [30, 41], "sex": ["f", None]}), f"{folder}/people.parquet")
    ...     read_parquet(f"{folder}/people.parquet", columns=["sex"])["sex"].cells()
    ['f', None]
    """
    file = Path(path)
    with _refuse_broken_file(file), file.open("rb") as source:
        parquet = pq.ParquetFile(source)
        names = parquet.schema_arrow.names
        check_names(names, file)
        wanted = choose_columns(names, columns, file)
        table = parquet.read(columns=wanted, use_pandas_metadata=False).select(wanted)
    return columns_from_arrow(table, file)


@contextmanager
def _refuse_broken_file(file: str | PathLike[str]) -> Iterator[None]:
    """Refuse a file that is damaged or cannot be read."""
    try:
        with name_os_errors(file):
            yield
    except pa.ArrowException:
        raise BadInput("this is not a complete Parquet file", file=file, right="give a Parquet or a CSV file") from None


def parquet_size(path: str | PathLike[str]) -> tuple[int, int]:
    """Rows and uncompressed bytes, from the footer of the file, to refuse what is too large before it is read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"age": [30, 41]}), f"{folder}/people.parquet")
    ...     parquet_size(f"{folder}/people.parquet")[0]
    2
    """
    with _refuse_broken_file(path):
        footer = pq.read_metadata(path)
    return footer.num_rows, sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))


def parquet_types(path: str | PathLike[str]) -> dict[str, pa.DataType]:
    """The type of each column, for `table_from_columns`, so that unchanged columns keep theirs.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"age": pa.array([30], pa.int8())}), f"{folder}/people.parquet")
    ...     parquet_types(f"{folder}/people.parquet")
    {'age': DataType(int8)}
    """
    with _refuse_broken_file(path):
        schema = pq.read_schema(path)
    return dict(zip(schema.names, schema.types, strict=True))


def table_from_columns(columns: Columns, like_types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """A new Arrow table; a column has its type of `like_types` if its values fit.

    >>> table_from_columns(Columns.of({"age": ["[30, 39]"]}), {"age": pa.int64()}).schema.types
    [DataType(string)]
    """
    like = like_types or {}
    arrays = [array_like(column, like[name]) if name in like else array_from_column(column) for name, column in columns.items()]
    return pa.Table.from_arrays(arrays, names=list(columns))

"""Arrow IPC in and out (.arrow, .feather), typed; out only with the cells that are written."""

from __future__ import annotations

import io
from os import PathLike
from pathlib import Path

import pyarrow as pa
from pyarrow import feather

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.arrow import columns_from_arrow
from closeknit.io.faults import explain_os_error
from closeknit.io.names import Wanted, check_names, choose_columns
from closeknit.io.parquet import table_from_columns


def read_ipc(path: str | PathLike[str], columns: Wanted = None) -> Columns:
    """The table in an Arrow file or stream; `columns` reads only these, in this order.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "people.arrow").write_bytes(ipc_bytes(Columns.of({"age": [30, 41], "sex": ["f", None]})))
    ...     read_ipc(f"{folder}/people.arrow", columns=["sex"])["sex"].cells()
    ['f', None]
    """
    file = Path(path)
    try:
        table = _table(file)
    except (pa.ArrowException, ValueError):
        raise BadInput("this is not a whole Arrow file", file=file, right="give an Arrow, Parquet or CSV file") from None
    except OSError as error:
        if error.errno is None:  # pyarrow's own word for a file that ends too early
            raise BadInput("this is not a whole Arrow file", file=file, right="write it again") from None
        raise explain_os_error(error, file) from None
    check_names(table.column_names, file)
    return columns_from_arrow(table.select(choose_columns(table.column_names, columns, file)), file)


def _table(file: Path) -> pa.Table:
    with file.open("rb") as source:
        head = source.read(6)
        source.seek(0)
        if head == b"ARROW1" or head[:4] == b"FEA1":
            return feather.read_table(source)
        return pa.ipc.open_stream(source).read_all()


def ipc_bytes(columns: Columns) -> bytes:
    """An Arrow file built from the written cells alone.

    >>> ipc_bytes(Columns.of({"age": [30]}))[:6]
    b'ARROW1'
    """
    table, memory = table_from_columns(columns), io.BytesIO()
    with pa.ipc.new_file(memory, table.schema) as writer:
        writer.write_table(table)
    return memory.getvalue()

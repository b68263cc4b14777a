"""Reading Arrow IPC (.arrow, .feather), typed."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import pyarrow as pa
from pyarrow import feather

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.arrow import columns_from_arrow
from closeknit.io.faults import explain_os_error
from closeknit.io.names import Wanted, check_names, choose_columns


def read_ipc(path: str | PathLike[str], columns: Wanted = None) -> Columns:
    """The table in an Arrow file or stream.

    Args:
        path: the file.
        columns: the columns to read, in this order; all if left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     feather.write_feather(pa.table({"age": [30, 41], "sex": ["f", None]}), f"{folder}/people.arrow")
    ...     read_ipc(f"{folder}/people.arrow", columns=["sex"])["sex"].cells()
    ['f', None]
    """
    file = Path(path)
    try:
        table = _table(file)
    except (pa.ArrowException, ValueError):
        raise BadInput("this is not a complete Arrow file", file=file, right="give an Arrow, Parquet or CSV file") from None
    except OSError as error:
        if error.errno is None:  # pyarrow's error for a truncated file
            raise BadInput("this is not a complete Arrow file", file=file, right="write it again") from None
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

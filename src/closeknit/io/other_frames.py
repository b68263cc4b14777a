"""Frames of other libraries, through narwhals: DuckDB relations, Ibis tables, frames wrapped by narwhals itself.

Imported only if the input is no pandas, polars or Arrow table.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.parquet import table_from_columns

DISTRIBUTED = {"dask": "Dask", "dask_expr": "Dask", "modin": "Modin"}
TABLES = "give a pandas, polars or Arrow table, lists by column, or a path"


def wrap(frame: Any) -> Any:
    """The frame as a narwhals frame, eager or lazy; what narwhals does not know, and what is distributed, is refused.

    Args:
        frame: any object.

    >>> wrap([1, 2])
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: a list is not a table; give a pandas, polars or Arrow table, lists by column, or a path
    """
    name, library = type(frame).__name__, type(frame).__module__.partition(".")[0]
    if library in DISTRIBUTED:
        raise _refuse_distributed(DISTRIBUTED[library])
    try:
        import narwhals as nw
    except ImportError:
        right = f"{TABLES}; frames of other libraries need closeknit[frames]"
        raise BadInput(f"a {name} is not a table", right=right) from None
    try:
        wrapped = nw.from_native(frame)
    except TypeError:
        raise BadInput(f"a {name} is not a table", right=TABLES) from None
    if str(wrapped.implementation) in DISTRIBUTED:
        raise _refuse_distributed(DISTRIBUTED[str(wrapped.implementation)])
    if wrapped.implementation.is_spark_like():
        raise BadInput(f"a {name} around a Spark frame is not a table", right="give the Spark frame itself")
    return wrapped


def _refuse_distributed(library: str) -> BadInput:
    right = "save it as Parquet and use engine='spark', or convert it to a pandas frame if it fits into memory"
    return BadInput(f"a {library} frame is spread over processes; distributed tables are anonymized on Spark only", right=right)


def is_wrapper(frame: Any) -> bool:
    """Whether the frame is one of narwhals around a frame of another library.

    Args:
        frame: a frame that `wrap` accepts.

    >>> import narwhals as nw
    >>> is_wrapper(nw.from_native(pa.table({"age": [30]})))
    True
    """
    import narwhals as nw

    return isinstance(frame, nw.DataFrame | nw.LazyFrame)


def arrow_from_other(wrapped: Any, wanted: list[str] | None = None, rows: int | None = None) -> pa.Table:
    """The rows as an Arrow table; a lazy frame is computed here.

    Args:
        wrapped: the frame, as `wrap` returns it.
        wanted: the columns to read; all if left out.
        rows: how many rows to read; all if left out.

    >>> import duckdb
    >>> arrow_from_other(wrap(duckdb.sql("SELECT 30 AS age, 'f' AS sex")), ["sex"]).to_pydict()
    {'sex': ['f']}
    """
    import narwhals as nw

    chosen = wrapped if wanted is None else wrapped.select(wanted)
    chosen = chosen if rows is None else chosen.head(rows)
    try:
        return chosen.collect(backend="pyarrow").to_native() if isinstance(chosen, nw.LazyFrame) else chosen.to_arrow()
    except Exception as error:  # of any library behind narwhals, which evaluates here
        what = f"the {type(wrapped.to_native()).__name__} cannot be read ({str(error).splitlines()[0]})"
        raise BadInput(what, right="try to collect it on its own") from None


def other_from_columns(columns: Columns, wrapped: Any, text: Collection[str] = ()) -> Any:
    """New cells as a frame of the same library.

    Args:
        columns: the cells.
        wrapped: a frame of the wanted library and types, as `wrap` returns it.
        text: columns that become plain strings.

    >>> import duckdb
    >>> people = duckdb.sql("SELECT 30 AS age UNION ALL SELECT 41")
    >>> other_from_columns(Columns.of({"age": ["[30, 41]", "[30, 41]"]}), wrap(people)).fetchall()
    [('[30, 41]',), ('[30, 41]',)]
    """
    import narwhals as nw

    schema = arrow_from_other(wrapped, rows=0).schema
    table = table_from_columns(columns, {field.name: field.type for field in schema if field.name not in text})
    if isinstance(wrapped, nw.LazyFrame):
        return nw.from_native(table).lazy(backend=wrapped.implementation).to_native()
    return nw.from_arrow(table, backend=wrapped.implementation).to_native()

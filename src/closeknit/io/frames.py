"""Reading and building frames: pandas, polars, Arrow tables, and others through narwhals.

New frames are built from the written cells alone, in the library of the input.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.arrow import columns_from_arrow
from closeknit.io.names import Wanted, check_names, choose_columns
from closeknit.io.parquet import table_from_columns


def library_of(frame: Any) -> str | None:
    """'pandas', 'polars' (also a LazyFrame) or 'pyarrow', None for another library; only imported libraries are considered.

    >>> library_of(pa.table({"age": [30]}))
    'pyarrow'
    """
    for library, kind in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame"), ("pyarrow", "Table")):
        module = sys.modules.get(library)
        if module is not None and isinstance(frame, getattr(module, kind, ())):
            return library
    return None


def from_frame(frame: Any, columns: Wanted = None) -> Columns:
    """The table in a frame.

    Args:
        frame: a pandas, polars or Arrow table, a mapping of lists, or what narwhals accepts (a DuckDB relation); a pandas
            index is ignored, and a lazy frame is collected.
        columns: the columns to read, in this order; all if left out.

    >>> from_frame(pa.table({"age": [30, 30], "sex": ["f", None]}))["sex"].cells()
    ['f', None]
    """
    if isinstance(frame, Mapping):
        frame = _arrow_from_lists(frame)
    library = library_of(frame)
    if library is None:
        return _from_other(frame, columns)
    if library == "polars":
        return _from_polars(frame, columns)
    names = frame.column_names if library == "pyarrow" else list(frame.columns)
    check_names(names)
    wanted = choose_columns(names, columns)
    return columns_from_arrow(frame.select(wanted) if library == "pyarrow" else _arrow_from_pandas(frame, wanted))


def _from_other(frame: Any, columns: Wanted) -> Columns:
    from closeknit.io.other_frames import arrow_from_other, is_wrapper, wrap

    wrapped = wrap(frame)
    if is_wrapper(frame) and library_of(wrapped.to_native()) is not None:
        return from_frame(wrapped.to_native(), columns)
    names = wrapped.collect_schema().names()
    check_names(names)
    return columns_from_arrow(arrow_from_other(wrapped, choose_columns(names, columns)))


def _arrow_from_lists(lists: Mapping[str, Any]) -> pa.Table:
    check_names(list(lists))
    for name, cells in lists.items():
        if isinstance(cells, str | bytes) or not isinstance(cells, Iterable):
            raise BadInput(f"a {type(cells).__name__} is not a list of cells", column=name, right="give one list a column")
    table = {name: _arrow_array(name, cells, [cell is not None for cell in cells]) for name, cells in lists.items()}
    for name, cells in table.items():
        first = next(iter(table))
        if len(cells) != len(table[first]):
            what = f"has {len(cells):,} cells, but '{first}' has {len(table[first]):,}"
            raise BadInput(what, column=name, right="give lists of equal length")
    return pa.table(table)


def _arrow_from_pandas(frame: Any, wanted: list[str]) -> pa.Table:
    return pa.table({name: _arrow_array(name, frame[name].array, frame[name].notna()) for name in wanted})


def _arrow_array(name: str, cells: Any, present: Iterable[bool]) -> pa.Array:
    try:
        return pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        right = "give text, numbers, booleans or dates, one kind in a column"
        row = _first_other_kind(cells, present)
        raise BadInput("the cells mix kinds of values", column=name, row=row, right=right) from None


def _first_other_kind(cells: Iterable[Any], present: Iterable[bool]) -> int | None:
    kinds = [type(cell) if there else None for cell, there in zip(cells, present, strict=True)]
    first = next((kind for kind in kinds if kind is not None), None)
    return next((row for row, kind in enumerate(kinds, start=1) if kind not in (None, first)), None)


def _from_polars(frame: Any, columns: Wanted) -> Columns:
    polars = sys.modules["polars"]
    try:
        kinds = frame.collect_schema()
        check_names(kinds.names())
        chosen = frame.select(choose_columns(kinds.names(), columns))
        frame = chosen.collect() if isinstance(chosen, polars.LazyFrame) else chosen
    except (polars.exceptions.PolarsError, OSError) as error:  # a LazyFrame is evaluated here
        what = f"the LazyFrame cannot be collected ({str(error).splitlines()[0]})"
        raise BadInput(what, right="try frame.collect() on its own") from None
    for name, kind in frame.schema.items():
        if kind == polars.Object:
            raise BadInput("cells of type Object are not supported", column=name, right="give text, numbers, booleans or dates")
    return columns_from_arrow(frame.to_arrow())


def to_frame(columns: Columns, like: Any, text: Collection[str] = ()) -> Any:
    """A new frame in the library of `like`; one of narwhals if `like` is.

    A column keeps its type in `like` if its values still fit; category lists contain only the cells that occur.

    Args:
        columns: the cells.
        like: a frame with the wanted library and types; its rows are not read. A mapping of lists becomes an Arrow table.
        text: columns that become plain strings, as do those whose cells are text now.

    >>> people = pa.table({"age": pa.array([30, 41], pa.int8()), "zip": [1234, 1299]})
    >>> to_frame(Columns.of({"age": [30, 41], "zip": ["12**", "12**"]}), people).schema.types
    [DataType(int8), DataType(string)]
    """
    if isinstance(like, Mapping):
        return table_from_columns(columns)
    library = library_of(like)
    if library == "pandas":
        from closeknit.io.pandas import pandas_from_columns

        return pandas_from_columns(columns, like, text)
    if library == "polars":
        from closeknit.io.polars import polars_from_columns

        return polars_from_columns(columns, like, text)
    if library is None:
        return _to_other(columns, like, text)
    types: Mapping[str, pa.DataType] = {f.name: f.type for f in like.schema if f.name not in text}
    return table_from_columns(columns, types)


def join_bounds(frame: Any) -> Any:
    """A release with numbers as bounds (`age_lo`, `age_hi`), with one column of intervals for each pair.

    Args:
        frame: a frame of pandas or polars.
    """
    names = list(frame.columns) if library_of(frame) == "pandas" else frame.collect_schema().names()
    pairs = [name[:-3] for name in names if str(name).endswith("_lo") and f"{name[:-3]}_hi" in names]
    if not pairs:
        raise BadInput("has no columns of bounds", right='publish it with form=ck.generalized(cells="bounds")')
    if taken := [name for name in pairs if name in names]:
        right = "rename or drop one of them; a drawn value is not an interval"
        raise BadInput(f"there is a column '{taken[0]}' next to its bounds", column=taken[0], right=right)
    if library_of(frame) == "pandas":
        from closeknit.io.pandas import join_pandas_bounds

        return join_pandas_bounds(frame, pairs)
    from closeknit.io.polars import join_polars_bounds

    return join_polars_bounds(frame, pairs)


def _to_other(columns: Columns, like: Any, text: Collection[str]) -> Any:
    from closeknit.io.other_frames import is_wrapper, other_from_columns, wrap

    wrapped = wrap(like)
    native = wrapped.to_native()
    new = other_from_columns(columns, wrapped, text) if library_of(native) is None else to_frame(columns, native, text)
    return wrap(new) if is_wrapper(like) else new

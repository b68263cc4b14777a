"""A new polars frame from `Columns`; imported only if the input is a polars frame."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import polars as pl

from closeknit.core.columns import Column, Columns
from closeknit.io.arrow import array_from_column, fits_narrow


def polars_from_columns(columns: Columns, like: pl.DataFrame | pl.LazyFrame, text: Collection[str] = ()) -> pl.DataFrame:
    """New columns, in their type in `like` if the values still fit.

    Args:
        columns: the cells.
        like: a frame with the wanted types.
        text: columns that become plain strings.

    >>> people = pl.DataFrame({"sex": ["f", "m"]}, schema={"sex": pl.Enum(["f", "m", "x"])})
    >>> polars_from_columns(Columns.of({"sex": ["m", "m"]}), people).schema["sex"].categories.to_list()
    ['m']
    """
    kinds = {name: kind for name, kind in like.collect_schema().items() if name not in text}
    return pl.DataFrame([_series(name, column.drop_unused(), kinds.get(name)) for name, column in columns.items()])


def _series(name: str, column: Column, kind: pl.DataType | None) -> pl.Series:
    plain = pl.Series(name, array_from_column(column))
    if kind is None or plain.dtype == kind:
        return plain
    is_text = plain.dtype == pl.String
    if isinstance(kind, pl.Enum):
        kind = _enum(column, kind) if is_text else None
    elif is_text and not isinstance(kind, pl.Categorical):
        return plain
    if kind is None or (isinstance(kind, pl.Categorical) and not is_text):
        return plain
    if kind == pl.Float32 and plain.dtype == pl.Float64:
        return plain.cast(kind) if fits_narrow(column.values, np.dtype("float32")) else plain
    try:
        cast = plain.cast(kind)
    except (pl.exceptions.InvalidOperationError, pl.exceptions.ComputeError):
        return plain
    return cast if cast.cast(plain.dtype).equals(plain, null_equal=True) else plain


def _enum(column: Column, kind: pl.Enum) -> pl.Enum | None:
    """The values that occur, sorted: the enumeration's own order may be that of the input's rows. None if one is new."""
    values = set(column.values.tolist())
    return pl.Enum(sorted(values)) if values <= set(kind.categories.to_list()) else None


def join_polars_bounds(frame: pl.DataFrame | pl.LazyFrame, names: Collection[str]) -> pl.DataFrame | pl.LazyFrame:
    """The frame with a column of structs (`lo`, `hi`) in place of each pair of ends: polars has no type for intervals.

    Args:
        frame: a release with `age_lo` and `age_hi`.
        names: the columns, such as `age`.

    >>> join_polars_bounds(pl.DataFrame({"age_lo": [20, None], "age_hi": [35, None]}), ["age"])["age"].to_list()
    [{'lo': 20, 'hi': 35}, None]
    """
    new = []
    for name in names:
        lo, hi = pl.col(f"{name}_lo"), pl.col(f"{name}_hi")
        ends = pl.struct(lo.alias("lo"), hi.alias("hi"))
        new.append(pl.when(lo.is_not_null() | hi.is_not_null()).then(ends).alias(f"{name}_lo"))
    kept = frame.with_columns(new).drop([f"{name}_hi" for name in names])
    return kept.rename({f"{name}_lo": name for name in names})

"""A new pandas frame from `Columns`; imported only if the input is a pandas frame."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from closeknit.core.columns import Column, Columns
from closeknit.io.arrow import fits_narrow


def pandas_from_columns(columns: Columns, like: pd.DataFrame, text: Collection[str] = ()) -> pd.DataFrame:
    """New columns, in their type in `like` if the values still fit, with an index from 0.

    Args:
        columns: the cells.
        like: a frame with the wanted types.
        text: columns that become plain strings.

    >>> people = pd.DataFrame({"age": [30, 41]}, index=[7, 3])
    >>> pandas_from_columns(Columns.of({"age": ["[30, 41]", None]}), people)["age"].isna().tolist()
    [False, True]
    """
    kinds = {name: kind for name, kind in like.dtypes.items() if name not in text}
    series = {name: _series(column.drop_unused(), kinds.get(name)) for name, column in columns.items()}
    return pd.DataFrame(series, index=pd.RangeIndex(columns.rows))


def _series(column: Column, kind: Any) -> pd.Series:
    is_text = column.values.dtype == object
    if isinstance(kind, pd.CategoricalDtype):
        categorical = _categorical(column, kind)
        if categorical is not None:
            return pd.Series(categorical)
        kind = None
    holds_text = _holds_text(kind)
    if is_text:
        return _text(column, kind if holds_text else None)
    plain = _plain(column)
    if kind is None or holds_text:
        return plain
    if kind.kind == "f" and kind.itemsize < 8 and column.values.dtype.kind == "f":
        return plain.astype(kind) if fits_narrow(column.values, np.dtype(f"f{kind.itemsize}")) else plain
    try:
        cast = plain.astype(kind)
        back = cast.astype(plain.dtype)
    except (TypeError, ValueError, OverflowError):
        return plain
    return cast if back.equals(plain) else plain


def _holds_text(kind: Any) -> bool:
    if isinstance(kind, pd.ArrowDtype):
        return kind.type is str
    return isinstance(kind, pd.StringDtype) or str(kind) == "object"


def _text(column: Column, kind: Any) -> pd.Series:
    cells = np.append(column.values, [None])[column.codes]
    return pd.Series(cells, dtype=pd.Series(["a"]).dtype if kind is None else kind)


def _plain(column: Column) -> pd.Series:
    """Whole numbers and booleans with missing values need a nullable type."""
    gaps = column.codes < 0
    values = column.values if len(column.values) else np.zeros(1, dtype=column.values.dtype)
    cells = values[np.maximum(column.codes, 0)]
    if cells.dtype.kind == "M":
        cells = cells.astype("datetime64[s]")
    if not gaps.any() or cells.dtype.kind in "fM":
        return pd.Series(cells).mask(gaps)
    roomy: Any = {"b": "boolean", "i": "Int64", "u": "UInt64"}[cells.dtype.kind]
    return pd.Series(cells).astype(roomy).mask(gaps)


def _categorical(column: Column, kind: pd.CategoricalDtype) -> pd.Categorical | None:
    """The categories that occur, sorted; None if one is new.

    The input's order of categories may be that of its rows. An ordered type would now state a wrong order, so it becomes
    unordered.
    """
    values = column.values.tolist()
    if not set(values) <= set(kind.categories.tolist()):
        return None
    order = sorted(range(len(values)), key=values.__getitem__)
    rank = np.append(np.argsort(order), -1)
    return pd.Categorical.from_codes(rank[column.codes], categories=pd.Index([values[code] for code in order]))


def join_pandas_bounds(frame: pd.DataFrame, names: Collection[str]) -> pd.DataFrame:
    """The frame with a column of intervals in place of each pair of ends; a missing end is infinite, two are no interval.

    Args:
        frame: a release with `age_lo` and `age_hi`.
        names: the columns, such as `age`.

    >>> ends = pd.DataFrame({"age_lo": [20, 90, None], "age_hi": [35, None, None]})
    >>> join_pandas_bounds(ends, ["age"])["age"].astype(str).tolist()
    ['[20.0, 35.0]', '[90.0, inf]', nan]
    """
    new = {}
    for name in names:
        lo, hi = frame[f"{name}_lo"], frame[f"{name}_hi"]
        if lo.isna().any() or hi.isna().any():
            nothing = lo.isna() & hi.isna()
            ends = [(lo, -np.inf), (hi, np.inf)]
            lo, hi = (end.astype("Float64").fillna(far).astype("float64").mask(nothing) for end, far in ends)
        new[f"{name}_lo"] = pd.Series(pd.arrays.IntervalArray.from_arrays(lo, hi, closed="both"), index=frame.index)
    kept = frame.assign(**new).drop(columns=[f"{name}_hi" for name in names])
    return kept.rename(columns={f"{name}_lo": name for name in names})

"""Rows whose values have a power-law distribution: few values are common, most are rare. For streams; drawn from a seed."""

from __future__ import annotations

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.exact import Number
from closeknit.core.kinds import flat, numeric
from closeknit.core.params import number, whole
from closeknit.core.schema import Schema

SECRETS = 10


def power_law(rows: int = 10_000, columns: int = 2, values: int = 1000, alpha: Number = 1, seed: int = 7) -> Columns:
    """Independent numeric columns `a1`, `a2`, ... with P(v) = c / v^alpha, and a uniform sensitive attribute `s`.

    Args:
        rows: number of rows.
        columns: number of numeric columns.
        values: number of values of each, from 1.
        alpha: exponent; 0 makes all values equally likely.
        seed: seed of the generator.

    >>> table = power_law(rows=2000, columns=2, values=50, alpha=2)
    >>> list(table), float((np.array(table["a1"].cells()) == 1).mean()) > 0.5
    (['a1', 'a2', 's'], True)
    """
    rows, columns, values = whole("rows", rows, 1), whole("columns", columns, 1), whole("values", values, 2)
    rng = np.random.default_rng(whole("seed", seed, 0))
    bounds = np.cumsum(np.arange(1, values + 1) ** -float(number("alpha", alpha, least=0)))
    drawn = {
        f"a{j + 1}": Column.of(np.searchsorted(bounds, rng.random(rows) * bounds[-1], side="right") + 1) for j in range(columns)
    }
    return Columns({**drawn, "s": Column.of(rng.integers(1, SECRETS + 1, rows))}, rows)


def power_law_schema(columns: int = 2, values: int = 1000) -> Schema:
    """Role and kind of each column, with the bounds that a stream needs.

    Args:
        columns: number of numeric columns.
        values: number of values of each.

    >>> power_law_schema(1, 50).quasi
    {'a1': Numeric(lo=1, hi=50)}
    """
    return Schema(quasi={f"a{j + 1}": numeric(1, values) for j in range(columns)}, sensitive={"s": flat()})

"""Steps of numeric columns: the grid on which ranges end if no end may be a true value.

Decimals are always written on a grid: nearly every value belongs to one person, so the end of a range would identify that
person. Whole numbers are only if requested (`snap`). A step that is not declared is proposed from the data: the nearest 1, 2
or 5 times a power of ten to (q95 - q05) / 50, anchored at 0. It is coarse, and the certificate notes its origin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.exact import plain_number
from closeknit.core.kinds import Numeric
from closeknit.core.limits import MOST_STEPS
from closeknit.core.table import Table
from closeknit.kernels.arrays import Reals

Counts = NDArray[np.int64]
PARTS = 50  # steps from the 5th to the 95th percentile
FLOAT_DIGITS = Fraction(1, 2**50)  # of a number: a finer grid would write the number itself


def has_decimals(numbers: Reals) -> bool:
    """Whether any of the numbers is not whole.

    >>> has_decimals(np.array([1.0, 2.5])), has_decimals(np.array([1.0, 2.0]))
    (True, False)
    """
    return bool((numbers != np.floor(numbers)).any())


def propose_step(numbers: Reals, counts: Counts, bounds: tuple[float, float] | None = None) -> float | None:
    """A round step for numbers; None if all of them are equal.

    If nine tenths of the rows have one value, the whole range is used instead of the percentiles.

    Args:
        numbers: the distinct numbers in ascending order.
        counts: rows of each.
        bounds: declared bounds, if any.

    >>> propose_step(np.arange(101.0), np.ones(101, dtype=np.int64)), propose_step(np.array([0.25, 1.5]), np.array([3, 3]))
    (2, 0.02)
    """
    if len(numbers) == 0:
        return None
    rows = np.cumsum(counts)
    first, low, high, last = (
        Fraction(str(float(numbers[place]))) for place in (0, *np.searchsorted(20 * rows, rows[-1] * np.array([1, 19])), -1)
    )
    width = (high - low if high > low else last - first) / PARTS
    if width == 0:
        return None
    span = last - first if bounds is None else Fraction(str(bounds[1])) - Fraction(str(bounds[0]))
    step = _round(max(width, span * 4 / MOST_STEPS, max(abs(first), abs(last)) * FLOAT_DIGITS))
    step = step if has_decimals(numbers) else max(step, Fraction(1))
    return int(step) if step.denominator == 1 else float(step)


def round_step(width: float) -> float:
    """The least 1, 2 or 5 times a power of ten that is not below a width.

    >>> round_step(0.3), round_step(7)
    (0.5, 10.0)
    """
    power = 10.0 ** math.floor(math.log10(width))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= width)


def _round(width: Fraction) -> Fraction:
    """The nearest 1, 2 or 5 times a power of ten; of two that are equally near, the coarser one."""
    power = Fraction(10) ** (Decimal(width.numerator) / Decimal(width.denominator)).adjusted()
    return min((power * factor for factor in (10, 5, 2, 1)), key=lambda step: abs(step - width))


def with_steps(table: Table, counts: Callable[[int], Counts], snap: bool = False) -> Table:
    """The table with a step for each column of decimals, proposed if none is declared.

    Args:
        table: the table; one that has its steps does not change.
        counts: rows of each leaf of the quasi-identifier at a place.
        snap: whether whole numbers get a step, too.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> table = ck.Schema(quasi={"x": ck.numeric()}).encode(Columns.of({"x": [0.25, 1.5]}))
    >>> with_steps(table, lambda place: np.array([1, 1])).schema.quasi["x"]
    Numeric(step=0.02, snap=True)
    """
    kinds, domains = dict(table.schema.quasi), list(table.quasi_domains)
    for j, (name, kind) in enumerate(table.schema.quasi.items()):
        if isinstance(kind, Numeric) and kind.bins is None:
            kinds[name], domains[j] = _with_step(kind, domains[j], partial(counts, j), snap)
    return replace(table, schema=table.schema.model_copy(update={"quasi": kinds}), quasi_domains=tuple(domains))


def _with_step(kind: Numeric, domain: Domain, counts: Callable[[], Counts], snap: bool) -> tuple[Numeric, Domain]:
    assert domain.numbers is not None
    on_grid = kind.snap or has_decimals(domain.numbers)
    step = kind.step
    if step is None and (on_grid or snap):
        step = propose_step(domain.numbers, counts()[: domain.size], kind.bounds)
    if step is None:
        return kind, domain
    domain = replace(domain, step=float(Fraction(str(step))), snap=on_grid, proposed=domain.proposed or kind.step is None)
    return replace(kind, step=step, snap=on_grid), domain


def step_notes(table: Table) -> list[str]:
    """A sentence per quasi-identifier whose step is proposed from the data: the published schema alone does not show it.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> table = ck.Schema(quasi={"x": ck.numeric()}).encode(Columns.of({"x": [0.25, 1.5]}))
    >>> step_notes(with_steps(table, lambda place: np.array([1, 1])))
    ["column 'x': ranges end at multiples of 0.02, a step proposed from the data"]
    """
    return [
        f"column '{name}': ranges end at multiples of {plain_number(domain.step)}, a step proposed from the data"
        for name, domain in zip(table.schema.quasi, table.quasi_domains, strict=True)
        if domain.step is not None and domain.proposed
    ]

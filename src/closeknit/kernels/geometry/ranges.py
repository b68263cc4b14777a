"""Lookup tables for the cost of a range of codes: the inner step of filling and polishing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.geometry.boxes import Ints, Scales, range_loss

TABLED = 256  # up to so many leaves a column has a table of all its ranges


class Costs(NamedTuple):
    """Cost of the range lo..hi of every column: by weighted loss, or by squared length on the unit axis."""

    scales: Scales
    squares: bool
    table: Reals
    table_start: Ints  # [d] start of column j; -1: too large for a table


@bare
def _compute_cost(scales: Scales, squares: bool, j: int, lo: int, hi: int) -> float:
    if squares:
        length = scales.position[scales.leaf_start[j] + hi] - scales.position[scales.leaf_start[j] + lo]
        return length * length
    return scales.weight[j] * range_loss(scales, j, lo, hi)


def costs(scales: Scales, squares: bool = False) -> Costs:
    """Build tables for small columns; costs in the others are computed on demand.

    >>> from kernel_inputs import flat_scales
    >>> costs(flat_scales([2])).table.tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """
    return Costs(scales, squares, *build_tables(scales, squares))


@kernel
def build_tables(scales: Scales, squares: bool) -> tuple[Reals, Ints]:
    """Compute the costs of all ranges of the small columns, and the start of each column."""
    d = len(scales.size)
    start = np.full(d, -1, np.int64)
    total = 0
    for j in range(d):
        if scales.size[j] <= TABLED:
            start[j] = total
            total += (scales.size[j] + 1) * (scales.size[j] + 1)
    table = np.zeros(total)
    for j in range(d):
        if start[j] >= 0:
            side = scales.size[j] + 1
            for lo in range(side):
                for hi in range(lo, side):
                    table[start[j] + lo * side + hi] = _compute_cost(scales, squares, j, lo, hi)
    return table, start


@bare
def range_cost(costs: Costs, j: int, lo: int, hi: int) -> float:
    """Cost of the codes lo..hi of column j."""
    if costs.table_start[j] >= 0:
        return costs.table[costs.table_start[j] + lo * (costs.scales.size[j] + 1) + hi]
    return _compute_cost(costs.scales, costs.squares, j, whole(lo), whole(hi))

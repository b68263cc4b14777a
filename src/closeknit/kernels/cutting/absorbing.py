"""Absorbing: a tight box around a row of a rare value, with as many other rows as the value's cap asks for.

A value of share p may have at most the share `cap` of a class, so a class with one row of it has at least 1 / cap rows,
however few rows have the value. All classes that have it have n * p / cap rows together: under beta-likeness n / (1 + beta). So
a value of nine rows can force two fifths of a table into large classes, and what matters is that these are narrow.

A box starts at the cells of the row and grows, column by column, where it gains most usable rows for the loss it adds.
Usable: at most `cap` * size of each value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, kernel
from closeknit.kernels.geometry.boxes import Codes, Ints
from closeknit.kernels.geometry.ranges import Costs, range_cost

Flags = NDArray[np.bool_]
LEAST = 1e-9  # loss that a step adds at least, and rows that it gains at least: none is divided by 0 or free


class Rows(NamedTuple):
    """Quasi-identifiers and sensitive values of the rows, and which of them are in no class yet."""

    quasi: Codes  # [n, d]
    value: Codes
    free: Flags


@kernel
def absorb_row(costs: Costs, quasi: Codes, value: Codes, free: Flags, most: Ints, seed: int, size: int) -> Ints:
    """Rows of the class around a row: `size` free ones, at most `most[v]` of value v; fewer where the table has no more.

    Values that fill most of their share in the box come first.

    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from kernel_inputs import flat_scales
    >>> quasi, value = np.array([[0], [4], [3], [2], [1]], np.int32), np.array([0, 1, 1, 1, 2], np.int32)
    >>> absorb_row(costs(flat_scales([5])), quasi, value, np.ones(5, bool), np.array([1, 1, 1]), 0, 3).tolist()
    [0, 3, 4]
    """
    d, values, codes = quasi.shape[1], len(most), 0
    for j in range(d):
        codes = max(codes, costs.scales.size[j] + 1)
    rows = Rows(quasi, value, free)
    lo, hi, here = quasi[seed].copy(), quasi[seed].copy(), np.zeros(values, np.int64)
    more, run = np.zeros((d, codes, values), np.int64), np.zeros(values, np.int64)
    while True:
        here[:], more[:] = 0, 0
        for row in range(len(quasi)):
            if free[row]:
                _place(rows, row, lo, hi, here, more)
        have = _usable(here, most)
        if have >= size:
            break
        best, column, end = 0.0, -1, 0
        for j in range(d):
            now = range_cost(costs, j, lo[j], hi[j])
            for upwards in range(2):
                run[:] = here
                x = hi[j] + 1 if upwards == 1 else lo[j] - 1
                while 0 <= x <= costs.scales.size[j]:
                    for v in range(values):
                        run[v] += more[j, x, v]
                    a, z = (lo[j], x) if upwards == 1 else (x, hi[j])
                    gain = min(_usable(run, most), size) - have
                    worth = (gain + LEAST) / (range_cost(costs, j, a, z) - now + LEAST)
                    if worth > best:
                        best, column, end = worth, j, x
                    x += 1 if upwards == 1 else -1
        if column < 0:
            break
        lo[column], hi[column] = min(lo[column], end), max(hi[column], end)
    return _choose(rows, most, here, lo, hi, size)


@bare
def _place(rows: Rows, row: int, lo: Codes, hi: Codes, here: Ints, more: Ints) -> None:
    """Count a row that is inside the box, or outside it in one column."""
    quasi, value = rows.quasi, rows.value
    outside, column = 0, 0
    for j in range(quasi.shape[1]):
        if quasi[row, j] < lo[j] or quasi[row, j] > hi[j]:
            outside, column = outside + 1, j
            if outside > 1:
                return
    if outside == 0:
        here[value[row]] += 1
    else:
        more[column, quasi[row, column], value[row]] += 1


@bare
def _usable(counts: Ints, most: Ints) -> int:
    total = 0
    for v in range(len(most)):
        total += min(counts[v], most[v])
    return total


@kernel
def _choose(rows: Rows, most: Ints, here: Ints, lo: Codes, hi: Codes, size: int) -> Ints:
    """The rows that are taken out of the box: values in the order of the share of their cap that they fill."""
    quasi, value, free = rows.quasi, rows.value, rows.free
    takes, left = np.zeros(len(most), np.int64), size
    done = np.zeros(len(most), np.bool_)
    for _ in range(len(most)):
        best, found = -1.0, -1
        for v in range(len(most)):
            if not done[v] and most[v] > 0 and here[v] / most[v] > best:
                best, found = here[v] / most[v], v
        if found < 0:
            break
        done[found] = True
        takes[found] = min(here[found], most[found], left)
        left -= takes[found]
    chosen, count = np.empty(size, np.int64), 0
    for row in range(len(quasi)):
        if free[row] and takes[value[row]] > 0:
            inside = True
            for j in range(quasi.shape[1]):
                inside = inside and lo[j] <= quasi[row, j] <= hi[j]
            if inside:
                takes[value[row]] -= 1
                chosen[count] = row
                count += 1
    return chosen[:count]

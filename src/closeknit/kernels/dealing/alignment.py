"""Order the rows of all rounds together, so that rows of equal rank in different rounds are similar.

Each class takes one row of each round. Sorting every round along one fixed curve and matching ranks drifts wherever
the rounds have different shares of, say, men and women. Here the cuts are chosen for all rounds at once: a cut of
one column at code x sends the classes that *every* round can fill from below x to the left, those that every round
can fill from above to the right, and the remaining, unavoidable mixtures to a segment between them. The cut with
the largest fall in loss is taken, then each segment is cut again.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.boxes import Codes, Ints, Scales, range_loss

BINS = 128  # cuts tried per column: enough for an aligned start, whatever the size of the domain


@kernel
def _bin(code: int, lo: int, hi: int, bins: int) -> int:
    return min(max((code - lo) * bins // (hi - lo + 1), 0), bins - 1)


@kernel
def _shares(codes: Codes, e: int, a: int, b: int, j: int, lo: int, hi: int, bins: int,
            least: Ints, most: Ints) -> None:  # fmt: skip
    """Least and largest number of rows below each cut of column j, over the full rounds of the segment."""
    counts = np.zeros(bins, np.int64)
    least[:bins], most[:bins] = b - a, 0
    for r in range(codes.shape[0] // e):
        counts[:] = 0
        for x in range(r * e + a, r * e + b):
            counts[_bin(codes[x, j], lo, hi, bins)] += 1
        below = 0
        for cut in range(bins - 1):
            below += counts[cut]
            least[cut], most[cut] = min(least[cut], below), max(most[cut], below)


@kernel
def _range(codes: Codes, e: int, a: int, b: int, j: int) -> tuple[int, int]:
    lo = hi = codes[a, j]
    for r in range(codes.shape[0] // e):
        for x in range(r * e + a, r * e + b):
            lo, hi = min(lo, codes[x, j]), max(hi, codes[x, j])
    return lo, hi


@kernel
def _best_cut(codes: Codes, e: int, a: int, b: int, scales: Scales, least: Ints,
              most: Ints) -> tuple[int, int, int, int, int, int]:  # fmt: skip
    """Column (-1: no gain), its lowest and highest code, bins, classes of the left segment and of left plus middle."""
    best, found = 0.0, (-1, 0, 0, 0, 0, 0)
    for j in range(codes.shape[1]):
        lo, hi = _range(codes, e, a, b, j)
        whole = scales.weight[j] * range_loss(scales, j, lo, hi)
        if whole * (b - a) <= best:
            continue
        bins = min(hi - lo + 1, BINS)
        _shares(codes, e, a, b, j, lo, hi, bins, least, most)
        for cut in range(bins - 1):
            left, right = least[cut], b - a - most[cut]
            if (left + right) * whole <= best:
                continue
            edge = lo + ((cut + 1) * (hi - lo + 1) - 1) // bins  # the last code of this bin
            gain = left * (whole - scales.weight[j] * range_loss(scales, j, lo, edge))
            gain += right * (whole - scales.weight[j] * range_loss(scales, j, edge + 1, hi))
            if gain > best:
                best, found = gain, (j, lo, hi, bins, left, most[cut])
    return found


@kernel
def _sort_segment(rows: Codes, codes: Codes, a: int, b: int, j: int, lo: int, hi: int, bins: int,
                  rows_copy: Codes, codes_copy: Codes) -> None:  # fmt: skip
    """Stable counting sort of positions a..b by the bin of column j."""
    start = np.zeros(bins + 1, np.int64)
    for x in range(a, b):
        start[_bin(codes[x, j], lo, hi, bins) + 1] += 1
        rows_copy[x - a] = rows[x]
        for i in range(codes.shape[1]):
            codes_copy[x - a, i] = codes[x, i]
    for to in range(bins):
        start[to + 1] += start[to]
    for x in range(b - a):
        to = _bin(codes_copy[x, j], lo, hi, bins)
        at = a + start[to]
        start[to] += 1
        rows[at] = rows_copy[x]
        for i in range(codes.shape[1]):
            codes[at, i] = codes_copy[x, i]


@kernel
def align(dealt: Codes, e: int, quasi: Codes, scales: Scales) -> Codes:
    """Order the rows of each round (e consecutive entries of `dealt`) so that rows of equal rank are similar.

    >>> from kernel_inputs import flat_scales
    >>> align(np.array([0, 1, 2, 3], np.int32), 2, np.array([[0], [4], [4], [1]], np.int32), flat_scales([5])).tolist()
    [0, 1, 3, 2]
    """
    n = len(dealt)
    full = n // e
    rows, codes = dealt.copy(), quasi[dealt]
    rows_copy, codes_copy = np.empty(e, np.int32), np.empty((e, quasi.shape[1]), np.int32)
    least, most = np.empty(BINS, np.int64), np.empty(BINS, np.int64)
    todo = [(0, e)]
    while len(todo) > 0:
        a, b = todo.pop()
        if b - a <= 1:
            continue
        j, lo, hi, bins, left, middle = _best_cut(codes, e, a, b, scales, least, most)
        if j < 0:
            continue
        for r in range(full):
            _sort_segment(rows, codes, r * e + a, r * e + b, j, lo, hi, bins, rows_copy, codes_copy)
        rest, first = n - full * e, full * e  # the last, shorter round is ordered in proportion
        _sort_segment(rows, codes, first + a * rest // e, first + b * rest // e, j, lo, hi, bins, rows_copy, codes_copy)
        todo.append((a, a + left))
        todo.append((a + left, a + middle))
        todo.append((a + middle, b))
    return rows

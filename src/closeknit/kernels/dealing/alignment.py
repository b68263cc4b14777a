"""Order the rows of all rounds together, so that rows of equal rank in different rounds are similar.

Each class takes one row of each round. Sorting every round along one fixed curve and matching ranks drifts wherever
the rounds have different shares of, say, men and women. Here the cuts are chosen for all rounds at once: a cut of
one column at code x sends the classes that *every* round can fill from below x to the left, those that every round
can fill from above to the right, and the remaining, unavoidable mixtures to a segment between them. The cut with
the largest fall in loss is taken, then each segment is cut again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.compiling import kernel, whole
from closeknit.kernels.geometry.boxes import Codes, Ints, Scales, range_loss

BINS = 128  # cuts tried per column: enough for an aligned start, whatever the size of the domain


class Bins(NamedTuple):
    """The codes lo..hi of a column (-1: none), in bins of equal width; there is a cut after each but the last."""

    column: int
    lo: int
    hi: int
    many: int


class Dealt(NamedTuple):
    """Rows, round by round, and their quasi-identifiers."""

    rows: Codes  # [n]
    codes: Codes  # [n, d]


@kernel
def _bin(code: int, bins: Bins) -> int:
    return min(max((code - bins.lo) * bins.many // (bins.hi - bins.lo + 1), 0), bins.many - 1)


@kernel
def _shares(codes: Codes, e: int, a: int, b: int, bins: Bins, least: Ints, most: Ints) -> None:
    """Least and largest number of rows below each cut of a column, over the full rounds of the segment."""
    counts = np.zeros(bins.many, np.int64)
    least[: bins.many], most[: bins.many] = b - a, 0
    for r in range(codes.shape[0] // e):
        counts[:] = 0
        for x in range(r * e + a, r * e + b):
            counts[_bin(codes[x, bins.column], bins)] += 1
        below = 0
        for cut in range(bins.many - 1):
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
def _best_cut(codes: Codes, e: int, a: int, b: int, scales: Scales, least: Ints, most: Ints) -> tuple[Bins, int, int]:
    """The bins of a column (-1: no gain), and of the cut the classes of the left segment and of left plus middle."""
    best, found = 0.0, (Bins(whole(-1), whole(0), whole(0), whole(0)), whole(0), whole(0))
    for j in range(codes.shape[1]):
        lo, hi = _range(codes, e, a, b, j)
        loss = scales.weight[j] * range_loss(scales, j, lo, hi)
        if loss * (b - a) <= best:
            continue
        bins = Bins(j, whole(lo), whole(hi), whole(min(hi - lo + 1, BINS)))
        _shares(codes, e, a, b, bins, least, most)
        for cut in range(bins.many - 1):
            left, right = least[cut], b - a - most[cut]
            if (left + right) * loss <= best:
                continue
            edge = lo + ((cut + 1) * (hi - lo + 1) - 1) // bins.many  # the last code of this bin
            gain = left * (loss - scales.weight[j] * range_loss(scales, j, lo, edge))
            gain += right * (loss - scales.weight[j] * range_loss(scales, j, edge + 1, hi))
            if gain > best:
                best, found = gain, (bins, left, most[cut])
    return found


@kernel
def _sort_segment(dealt: Dealt, a: int, b: int, bins: Bins, copy: Dealt) -> None:
    """Stable counting sort of positions a..b by the bin of a column."""
    rows, codes, rows_copy, codes_copy = dealt.rows, dealt.codes, copy.rows, copy.codes
    start = np.zeros(bins.many + 1, np.int64)
    for x in range(a, b):
        start[_bin(codes[x, bins.column], bins) + 1] += 1
        rows_copy[x - a] = rows[x]
        for i in range(codes.shape[1]):
            codes_copy[x - a, i] = codes[x, i]
    for to in range(bins.many):
        start[to + 1] += start[to]
    for x in range(b - a):
        to = _bin(codes_copy[x, bins.column], bins)
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
    aligned, copy = Dealt(dealt.copy(), quasi[dealt]), Dealt(np.empty(e, np.int32), np.empty((e, quasi.shape[1]), np.int32))
    least, most = np.empty(BINS, np.int64), np.empty(BINS, np.int64)
    todo = [(0, e)]
    while len(todo) > 0:
        a, b = todo.pop()
        if b - a <= 1:
            continue
        bins, left, middle = _best_cut(aligned.codes, e, a, b, scales, least, most)
        if bins.column < 0:
            continue
        for r in range(full):
            _sort_segment(aligned, r * e + a, r * e + b, bins, copy)
        rest, first = n - full * e, full * e  # the last, shorter round is ordered in proportion
        _sort_segment(aligned, first + a * rest // e, first + b * rest // e, bins, copy)
        todo.append((a, a + left))
        todo.append((a + left, a + middle))
        todo.append((a + middle, b))
    return aligned.rows

"""COUNT queries over distinct cells: sets of cells as bits, weights of the cells that remain, and their sums by bucket.

Bit t of word t // 64 is set while cell t is selected. Ranges select whole words at once (`below`); only the remaining cells
are visited one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import kernel

Words = NDArray[np.uint64]
Reals = NDArray[np.float64]
Int32 = NDArray[np.int32]

WORD = 64
SEQUENCE = np.uint64(0x03F79D71B4CB0A89)  # a de Bruijn sequence: each shift has different first six bits
PLACES = np.empty(WORD, np.int64)
PLACES[[((int(SEQUENCE) << place) & 0xFFFFFFFFFFFFFFFF) >> 58 for place in range(WORD)]] = np.arange(WORD)


class CellRanges(NamedTuple):
    """The cells of one column: the code of each, and the ranges of the codes."""

    codes: Int32
    lo: Reals
    hi: Reals


def every(cells: int) -> Words:
    """Return the bit set of all cells.

    >>> [int(word).bit_count() for word in every(70)]
    [64, 6]
    """
    words = np.full((cells + WORD - 1) // WORD, ~np.uint64(0))
    if cells % WORD:
        words[-1] = (1 << cells % WORD) - 1
    return words


@kernel
def below(codes: Int32, size: int) -> Words:
    """Row v: the bit set of cells with a code below v, for v = 0 .. size; codes of `size` and more are in none.

    >>> below(np.array([1, 0, 2], np.int32), 2).tolist()
    [[0], [2], [3]]
    """
    words = np.zeros((size + 1, (len(codes) + 63) // 64), np.uint64)
    for t in range(len(codes)):
        if codes[t] < size:
            words[codes[t] + 1, t >> 6] |= np.uint64(1) << np.uint64(t & 63)
    for v in range(1, size + 1):
        words[v] |= words[v - 1]
    return words


@kernel
def _place(bit: np.uint64) -> int:
    """Return the position of the only bit of a word."""
    return PLACES[(bit * SEQUENCE) >> np.uint64(58)]


@kernel
def share_of(lo: float, hi: float, a: float, b: float) -> float:
    """Return how much of a cell lies between a and b; a cell of no length is in or out, a missing one (NaN) is out.

    >>> share_of(0.0, 4.0, 3.0, 9.0), share_of(3.0, 3.0, 3.0, 9.0), share_of(np.nan, np.nan, 3.0, 9.0)
    (0.25, 1.0, 0.0)
    """
    inside, width = min(hi, b) - max(lo, a), hi - lo
    if width > 0.0:
        return max(inside, 0.0) / width
    return 1.0 if width == 0.0 and inside >= 0.0 else 0.0


@kernel
def weigh(left: Words, weights: Reals, cells: CellRanges, a: float, b: float, weighed: Reals) -> None:
    """Multiply the weight of each selected cell by its share between a and b; a cell without weight is deselected.

    >>> left, weighed = every(3), np.empty(3)
    >>> cells = CellRanges(np.array([0, 1, 1], np.int32), np.array([0.0, 4.0]), np.array([2.0, 6.0]))
    >>> weigh(left, np.ones(3), cells, 5.0, 9.0, weighed)
    >>> left.tolist(), weighed[1:].tolist()
    ([6], [0.5, 0.5])
    """
    codes, lo, hi = cells.codes, cells.lo, cells.hi
    for w in range(len(left)):
        word = left[w]
        while word:
            rest = word & (word - np.uint64(1))
            bit = word ^ rest
            t = (w << 6) + _place(bit)
            share = share_of(lo[codes[t]], hi[codes[t]], a, b)
            weighed[t] = weights[t] * share
            if share == 0.0:
                left[w] ^= bit
            word = rest


@kernel
def sums(left: Words, weights: Reals, bucket_of: Int32, buckets: int) -> Reals:
    """Sum the weights of the selected cells in each bucket.

    >>> sums(every(3), np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1], np.int32), 2).tolist()
    [3.0, 4.0]
    """
    total = np.zeros(buckets)
    for w in range(len(left)):
        word = left[w]
        while word:
            rest = word & (word - np.uint64(1))
            t = (w << 6) + _place(word ^ rest)
            total[bucket_of[t]] += weights[t]
            word = rest
    return total


@kernel
def rows_below(codes: Int32, size: int, counts: Reals, bucket_of: Int32, buckets: int) -> Reals:
    """Row v: the number of rows with a code below v in each bucket, for v = 0 .. size.

    >>> rows_below(np.array([0, 1, 1], np.int32), 2, np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1], np.int32), 2).tolist()
    [[0.0, 0.0], [1.0, 0.0], [3.0, 4.0]]
    """
    rows = np.zeros((size + 1, buckets))
    for t in range(len(codes)):
        if codes[t] < size:
            rows[codes[t] + 1, bucket_of[t]] += counts[t]
    for v in range(1, size + 1):
        rows[v] += rows[v - 1]
    return rows


@kernel
def narrow_counts(total: Reals, more: Reals, sizes: Reals) -> None:
    """Expected number of rows of each bucket in both of two independent parts.

    >>> total = np.array([3.0, 0.0])
    >>> narrow_counts(total, np.array([2.0, 1.0]), np.array([6.0, 2.0]))
    >>> total.tolist()
    [1.0, 0.0]
    """
    for b in range(len(total)):
        total[b] = total[b] * more[b] / sizes[b]

"""Sparse histograms of classes, joined pair by pair: two sorted lists of (value, count) become one."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]


@njit(cache=True, nogil=True)
def join_pairs(starts: Int64, values: Int32, counts: Int64, one: Int64, other: Int64) -> tuple[Int64, Int32, Int64]:
    """Histogram of the rows of class `one[i]` and class `other[i]` together, for every i, in the same sparse form.

    >>> starts, values, counts = np.array([0, 2, 3]), np.array([1, 4, 4], np.int32), np.array([5, 1, 2])
    >>> [array.tolist() for array in join_pairs(starts, values, counts, np.array([0]), np.array([1]))]
    [[0, 2], [1, 4], [5, 3]]
    """
    most = 0
    for i in range(len(one)):
        most += starts[one[i] + 1] - starts[one[i]] + starts[other[i] + 1] - starts[other[i]]
    new_starts = np.zeros(len(one) + 1, np.int64)
    new_values = np.empty(most, np.int32)
    new_counts = np.empty(most, np.int64)
    at = 0
    for i in range(len(one)):
        a, a_end = starts[one[i]], starts[one[i] + 1]
        b, b_end = starts[other[i]], starts[other[i] + 1]
        while a < a_end or b < b_end:
            if b == b_end or (a < a_end and values[a] < values[b]):
                new_values[at], new_counts[at] = values[a], counts[a]
                a += 1
            elif a == a_end or values[b] < values[a]:
                new_values[at], new_counts[at] = values[b], counts[b]
                b += 1
            else:
                new_values[at], new_counts[at] = values[a], counts[a] + counts[b]
                a += 1
                b += 1
            at += 1
        new_starts[i + 1] = at
    return new_starts, new_values[:at].copy(), new_counts[:at].copy()


@njit(cache=True, nogil=True)
def match(order: Int64, one: Int64, other: Int64, count: int) -> tuple[Int64, Int64]:
    """Pairs taken in this order, each class in one pair at most: where each class goes (a pair goes to its lower number), and
    the pair that each class is part of, -1 where it stays as it is.

    >>> [array.tolist() for array in match(np.array([1, 0]), np.array([0, 1]), np.array([1, 2]), 3)]
    [[0, 1, 1], [-1, 1, 1]]
    """
    into = np.arange(count)
    pair_of = np.full(count, -1, np.int64)
    for i in order:
        a, b = one[i], other[i]
        if pair_of[a] < 0 and pair_of[b] < 0:
            pair_of[a] = pair_of[b] = i
            into[max(a, b)] = min(a, b)
    return into, pair_of

"""Sparse histograms of classes, joined pair by pair: two sorted lists of (value, count) become one."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Flags = NDArray[np.bool_]


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
def match(order: Int64, one: Int64, other: Int64, mended: Flags, sizes: Int64, hurry: bool) -> tuple[Int64, Int64]:
    """Pairs taken in this order: where each class goes, and the pair it is part of, -1 where it stays as it is.

    A class is part of one pair. In a `hurry` one that no pair mends takes others in until its size has doubled: one at a
    time, a class that needs thousands of rows would need thousands of rounds.

    >>> one, other, sizes = np.array([0, 0, 0]), np.array([1, 2, 3]), np.array([9, 4, 4, 4])
    >>> [array.tolist() for array in match(np.arange(3), one, other, np.zeros(3, np.bool_), sizes, True)]
    [[0, 0, 0, 3], [1, 0, 1, -1]]
    """
    into = np.arange(len(sizes))
    pair_of = np.full(len(sizes), -1, np.int64)
    taken = np.zeros(len(sizes), np.int64)  # rows taken in by a class that no pair mends
    for i in order:
        a, b = one[i], other[i]
        free = pair_of[a] < 0
        growing = hurry and not mended[i] and taken[a] > 0 and taken[a] + sizes[b] <= sizes[a]
        if pair_of[b] < 0 and (free or growing):
            pair_of[a] = pair_of[b] = i
            into[b] = a
            taken[a] += 0 if mended[i] else sizes[b]
    return into, pair_of

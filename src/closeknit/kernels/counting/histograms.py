"""Sparse histograms of classes: counted from rows, and merged in pairs of sorted lists of (value, count)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.counting.sorting import ascend

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Flags = NDArray[np.bool_]

FEW = 2  # up to so many codes per row of a class they are counted, not sorted


def count_codes(codes: Int32, size: int) -> Int64:
    """Count the rows of each code; negative codes are not counted.

    >>> count_codes(np.array([1, -1, 1], np.int32), 3).tolist()
    [0, 2, 0]
    """
    return np.bincount(codes[codes >= 0], minlength=size)


@kernel
def count_classes(class_of: Int32, count: int, codes: Int32, width: int) -> tuple[Int64, Int32, Int64]:
    """Histogram of every class: its start, its ascending codes and their counts; rows without class or code are not counted.

    >>> [x.tolist() for x in count_classes(np.array([1, 0, 1, -1], np.int32), 2, np.array([3, 2, 3, 3], np.int32), 4)]
    [[0, 1, 2], [2, 3], [1, 2]]
    """
    ends = np.zeros(count + 1, np.int64)
    for r in range(len(class_of)):
        if class_of[r] >= 0 and codes[r] >= 0:
            ends[class_of[r] + 1] += 1
    for c in range(count):
        ends[c + 1] += ends[c]
    here = np.empty(ends[count], np.int32)  # codes class by class
    at = ends[:-1].copy()
    for r in range(len(class_of)):
        if class_of[r] >= 0 and codes[r] >= 0:
            here[at[class_of[r]]] = codes[r]
            at[class_of[r]] += 1
    starts, seen, found = np.zeros(count + 1, np.int64), np.zeros(width, np.int64), whole(0)
    counts = np.empty(len(here), np.int64)
    for c in range(count):
        found = _count_class(here, ends[c], ends[c + 1], seen, found, counts)
        starts[c + 1] = found
    return starts, here[:found].copy(), counts[:found].copy()


@bare
def _count_class(here: Int32, first: int, end: int, seen: Int64, found: int, counts: Int64) -> int:
    """Write the distinct codes of one class and their counts after those of earlier classes, never over unread input."""
    if len(seen) < FEW * (end - first):  # many rows: sorting would take longer than scanning all codes
        for x in range(first, end):
            seen[here[x]] += 1
        for code in range(len(seen)):
            if seen[code] > 0:
                here[found], counts[found] = code, seen[code]
                seen[code] = 0
                found += 1
        return found
    ascend(here[first:end])
    for x in range(first, end):
        if x > first and here[x] == here[found - 1]:
            counts[found - 1] += 1
        else:
            here[found], counts[found] = here[x], 1
            found += 1
    return found


@kernel
def join_pairs(starts: Int64, values: Int32, counts: Int64, one: Int64, other: Int64) -> tuple[Int64, Int32, Int64]:
    """Merge the histograms of class `one[i]` and class `other[i]`, for every i, in the same sparse form.

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


@kernel
def match(order: Int64, one: Int64, other: Int64, repaired: Flags, sizes: Int64, hurry: bool) -> tuple[Int64, Int64]:
    """Match pairs in this order: the class into which each one is merged, and its pair, -1 where it is unchanged.

    A class is part of one pair. With `hurry` a class that no pair repairs absorbs others until its size has doubled:
    otherwise a class that needs thousands of rows would need thousands of rounds.

    >>> one, other, sizes = np.array([0, 0, 0]), np.array([1, 2, 3]), np.array([9, 4, 4, 4])
    >>> [array.tolist() for array in match(np.arange(3), one, other, np.zeros(3, np.bool_), sizes, True)]
    [[0, 0, 0, 3], [1, 0, 1, -1]]
    """
    into = np.arange(len(sizes))
    pair_of = np.full(len(sizes), -1, np.int64)
    taken = np.zeros(len(sizes), np.int64)  # rows absorbed by a class that no pair repairs
    for i in order:
        a, b = one[i], other[i]
        free = pair_of[a] < 0
        growing = hurry and not repaired[i] and taken[a] > 0 and taken[a] + sizes[b] <= sizes[a]
        if pair_of[b] < 0 and (free or growing):
            pair_of[a] = pair_of[b] = i
            into[b] = a
            taken[a] += 0 if repaired[i] else sizes[b]
    return into, pair_of

"""Pack columns of small codes into 64-bit words, sort words stably, and sort short lists in place.

The stable sort is a radix sort; numpy's stable sort of long integers is a merge sort, three times as slow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, kernel

BITS = 11


def append(words: NDArray[np.uint64], codes: NDArray[np.integer], size: int) -> None:
    """Append one more column, of codes below `size`, to the packed words.

    >>> words = np.array([1, 2], np.uint64)
    >>> append(words, np.array([3, 4], np.int32), 10)
    >>> words.tolist()
    [13, 24]
    """
    words *= np.uint64(size)
    words += codes.astype(np.uint64)


def ascending(words: NDArray[np.uint64]) -> bool:
    """Whether the words are in ascending order.

    >>> ascending(np.array([1, 1, 3], np.uint64)), ascending(np.array([2, 1], np.uint64))
    (True, False)
    """
    return bool((words[:-1] <= words[1:]).all())


@bare
def ascend(numbers: NDArray[np.integer]) -> None:
    """Shell sort in place: most lists here are short, and the library's sort takes seconds to compile.

    >>> numbers = np.array([3, 1, 2])
    >>> ascend(numbers)
    >>> numbers.tolist()
    [1, 2, 3]
    """
    gap = len(numbers) // 2
    while gap > 0:
        for x in range(gap, len(numbers)):
            number, at = numbers[x], x
            while at >= gap and numbers[at - gap] > number:
                numbers[at] = numbers[at - gap]
                at -= gap
            numbers[at] = number
        gap = 1 if gap == 2 else int(gap / 2.2)


@bare
def smaller(ascending: NDArray[np.integer], limit: int) -> int:
    """Count the numbers below the limit by a binary search that compiles in a fraction of the library's time.

    >>> smaller(np.array([1, 4, 4, 6], np.int32), 4), smaller(np.array([1, 4, 4, 6], np.int32), 5)
    (1, 3)
    """
    lo, hi = 0, len(ascending)
    while lo < hi:
        at = (lo + hi) >> 1
        if ascending[at] < limit:
            lo = at + 1
        else:
            hi = at
    return lo


@kernel
def stable_order(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the positions of the words in ascending order; equal words keep their order.

    >>> stable_order(np.array([5, 1, 5, 0], np.uint64)).tolist()
    [3, 1, 0, 2]
    """
    n = len(words)
    order, there = np.empty(n, np.int64), np.empty(n, np.int64)
    rest = np.uint64(0)
    for i in range(n):
        order[i] = i
        if words[i] > rest:
            rest = words[i]
    mask = np.uint64((1 << BITS) - 1)
    shift = np.uint64(0)
    while rest > 0:
        starts = np.zeros((1 << BITS) + 1, np.int64)
        for i in range(n):
            starts[np.int64((words[i] >> shift) & mask) + 1] += 1
        for d in range(1 << BITS):
            starts[d + 1] += starts[d]
        for i in range(n):
            digit = np.int64((words[order[i]] >> shift) & mask)
            there[starts[digit]] = order[i]
            starts[digit] += 1
        order, there = there, order
        shift += np.uint64(BITS)
        rest = rest >> np.uint64(BITS)
    return order

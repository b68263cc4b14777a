"""Keys along the Hilbert curve: points near on the curve are near in space.

Skilling's transform (Programming the Hilbert curve, AIP Conf. Proc. 707, 2004): Gray code and axis exchanges, bit
by bit, without tables, in any dimension. A key has d * bits <= 64 bits, a key of two words 128. Of more dimensions than
that only the first enter the key: with one bit per axis there is no bit left for the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, kernel


@bare
def _turn(cell: NDArray[np.uint32], bits: int) -> None:
    """Transform coordinates into the bits of the key, interleaved over the axes."""
    d = len(cell)
    one = np.uint32(1)
    for b in range(bits - 1, 0, -1):  # undo excess work of the Gray code
        q = one << np.uint32(b)
        p = q - one
        first = cell[0] ^ (p if cell[0] & q else np.uint32(0))
        for i in range(1, d):  # where the bit is set the first axis is inverted, else its lower bits are exchanged; no branch
            inverted = (np.uint32(0) - ((cell[i] >> np.uint32(b)) & one)) & p
            exchanged = (first ^ cell[i]) & (p ^ inverted)
            first ^= exchanged | inverted
            cell[i] ^= exchanged
        cell[0] = first
    for i in range(1, d):
        cell[i] ^= cell[i - 1]
    flip = np.uint32(0)
    for b in range(bits - 1, 0, -1):
        if cell[d - 1] & (one << np.uint32(b)):
            flip ^= (one << np.uint32(b)) - one
    for i in range(d):
        cell[i] ^= flip


@bare
def _key(cell: NDArray[np.uint32], bits: int) -> np.uint64:
    _turn(cell, bits)
    key = np.uint64(0)
    for b in range(bits - 1, -1, -1):
        for i in range(len(cell)):
            key = (key << np.uint64(1)) | np.uint64((cell[i] >> np.uint32(b)) & np.uint32(1))
    return key


@bare
def _equal(points: NDArray[np.float64], r: int) -> bool:
    """Whether a point equals the previous one."""
    j = 0
    while j < points.shape[1] and points[r, j] == points[r - 1, j]:
        j += 1
    return j == points.shape[1]


@kernel
def hilbert_keys(points: NDArray[np.float64], bits: int = 0) -> NDArray[np.uint64]:
    """Key of each point of the unit cube; `bits` per axis, 0 = as many as fit, at most 16.

    >>> hilbert_keys(np.array([[0.0, 0.0], [0.0, 0.9], [0.9, 0.9], [0.9, 0.0]]), 1).tolist()
    [0, 1, 2, 3]
    """
    n = points.shape[0]
    d = min(points.shape[1], 64)
    keys = np.zeros(n, np.uint64)
    if d == 0:
        return keys
    bits = min(16, 64 // d) if bits == 0 else bits
    side = 1 << bits
    cell = np.empty(d, np.uint32)
    for r in range(n):
        if r > 0 and _equal(points, r):  # equal rows are often neighbours
            keys[r] = keys[r - 1]
            continue
        for j in range(d):
            cell[j] = np.uint32(min(max(int(points[r, j] * side), 0), side - 1))
        keys[r] = _key(cell, bits)
    return keys


@kernel
def hilbert_words(points: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Keys of two words, `[n, 2]`, the higher one first: twice the bits of `hilbert_keys` per axis, at most 16.

    >>> hilbert_words(np.array([[0.0, 0.0], [0.9, 0.0]])).tolist()
    [[0, 0], [0, 4273913534]]
    """
    n = points.shape[0]
    d = min(points.shape[1], 128)
    words = np.zeros((n, 2), np.uint64)
    if d == 0:
        return words
    bits = min(16, 128 // d)
    side = 1 << bits
    cell = np.empty(d, np.uint32)
    for r in range(n):
        for j in range(d):
            cell[j] = np.uint32(min(max(int(points[r, j] * side), 0), side - 1))
        _turn(cell, bits)
        high = low = np.uint64(0)
        for b in range(bits - 1, -1, -1):
            for i in range(d):
                high = (high << np.uint64(1)) | (low >> np.uint64(63))
                low = (low << np.uint64(1)) | np.uint64((cell[i] >> np.uint32(b)) & np.uint32(1))
        words[r, 0], words[r, 1] = high, low
    return words

"""Values and runs of neighbouring values whose share in a class exceeds a limit derived from their share in the release."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import kernel

Int64 = NDArray[np.int64]


@kernel
def most_over(starts: Int64, values: NDArray[np.int32], counts: Int64, limits: NDArray[np.float64],
              margins: NDArray[np.float64]) -> NDArray[np.float64]:  # fmt: skip
    """Largest excess of a value's share over its limit in each class, in units of that value's margin.

    >>> one = np.array([0, 2]), np.array([0, 1], np.int32), np.array([1, 3])
    >>> most_over(*one, np.array([0.5, 0.5]), np.array([0.125, 0.125])).tolist()
    [2.0]
    """
    over = np.full(len(starts) - 1, -np.inf)
    for c in range(len(over)):
        total = 0
        for e in range(starts[c], starts[c + 1]):
            total += counts[e]
        for e in range(starts[c], starts[c + 1]):
            over[c] = max(over[c], (counts[e] / total - limits[values[e]]) / margins[values[e]])
    return over


@kernel
def _first_with(running: Int64, lo: int, hi: int, needed: float) -> int:
    """Find the first entry from `lo` on at which the running count reaches `needed`; `hi` if none does."""
    while lo < hi:
        middle = (lo + hi) >> 1
        if running[middle + 1] < needed:
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel
def find_violations(starts: Int64, values: Int64, counts: Int64, reach: Int64, reference: Int64,
                margin: float) -> tuple[NDArray[np.bool_], Int64]:  # fmt: skip
    """Classes with a run whose share q exceeds p * (1 - ln p), and runs too close to decide (class, count, weight).

    A run begins at leaf v and ends at leaf `reach[v]` or before. Only runs between two values of the class matter: a
    longer one has the same q and a larger limit. Where q is below the limit, the ends before which q cannot reach that
    limit are skipped, because the limit only grows: few are visited.

    >>> one = np.array([0, 2]), np.array([0, 1]), np.array([4, 4])
    >>> broken, _ = find_violations(*one, np.array([1, 1, 2]), np.array([9, 9, 82]), 1e-9)
    >>> broken.tolist()
    [True]
    """
    below = np.zeros(len(reference) + 1, dtype=np.int64)
    below[1:] = np.cumsum(reference)
    n = below[-1]
    running = np.zeros(len(counts) + 1, dtype=np.int64)
    running[1:] = np.cumsum(counts)
    broken = np.zeros(len(starts) - 1, dtype=np.bool_)
    unclear = [(np.int64(0), np.int64(0), np.int64(0)) for _ in range(0)]
    for c in range(len(starts) - 1):
        s = running[starts[c + 1]] - running[starts[c]]
        for a in range(starts[c], starts[c + 1]):
            b = a
            while b < starts[c + 1] and values[b] <= reach[values[a]] and not broken[c]:
                weight = below[values[b] + 1] - below[values[a]]
                if weight == n:  # the whole release: q = p = 1
                    break
                count = running[b + 1] - running[a]
                p = weight / n
                limit = p * (1.0 - np.log(p)) if weight > 0 else 0.0
                gap = limit - count / s
                if gap < -margin:
                    broken[c] = True
                elif gap <= margin:
                    unclear.append((np.int64(c), count, weight))
                    b += 1
                else:
                    b = _first_with(running, b + 1, starts[c + 1], running[a] + (limit - 2.0 * margin) * s)
    table = np.empty((3, len(unclear)), dtype=np.int64)
    for i, triple in enumerate(unclear):
        table[0, i], table[1, i], table[2, i] = triple
    return broken, table

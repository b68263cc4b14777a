"""Earth mover's distances between each class and the reference, over sparse histograms, in integers.

Class `c` has `counts[starts[c]:starts[c+1]]` of the leaves `values[...]`, ascending; `n` is the sum of the reference,
`s` of the class. All results are numerators: a distance is `numerator / (n * s * scale)`. The caller ensures that
`2 * n * s * scale` stays below 2**62.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, kernel

Int64 = NDArray[np.int64]


@bare
def _run(a: int, b: int, q: int, s: int, n: int, cumulative: Int64, area: Int64) -> int:
    """Sum |s*C[i] - n*q| for a <= i < b. C is ascending, so the sign changes once: a binary search finds where."""
    level = n * q
    lo, hi = a, b
    while lo < hi:
        middle = (lo + hi) >> 1
        if s * cumulative[middle] < level:
            lo = middle + 1
        else:
            hi = middle
    under = level * (lo - a) - s * (area[lo] - area[a])
    over = s * (area[b] - area[lo]) - level * (b - lo)
    return under + over


@kernel
def ordinal_numerators(starts: Int64, values: Int64, counts: Int64, reference: Int64) -> Int64:
    """Numerators of the EMD over ordered leaves; divide by `n * s * (m - 1)`. O(r log m) per class with r values.

    >>> one = np.array([0, 2]), np.array([0, 2]), np.array([3, 7])
    >>> ordinal_numerators(*one, np.array([2, 1, 7])).tolist()  # 10 / (10 * 10 * 2) = 1/20
    [10]
    """
    m = len(reference)
    cumulative = np.cumsum(reference)
    area = np.zeros(m + 1, dtype=np.int64)
    area[1:] = np.cumsum(cumulative)
    n = cumulative[m - 1]
    result = np.zeros(len(starts) - 1, dtype=np.int64)
    for c in range(len(starts) - 1):
        s = 0
        for e in range(starts[c], starts[c + 1]):
            s += counts[e]
        at, q, total = 0, 0, 0
        for e in range(starts[c], starts[c + 1]):
            total += _run(at, values[e], q, s, n, cumulative, area)
            at = values[e]
            q += counts[e]
        result[c] = total + _run(at, m - 1, q, s, n, cumulative, area)
    return result


@kernel
def hierarchical_numerators(starts: Int64, values: Int64, counts: Int64, leaf_node: Int64, parent: Int64, height: Int64,
                            node_reference: Int64) -> Int64:  # fmt: skip
    """Numerators of the EMD over the leaves of a tree with root 0; divide by `2 * n * s * height[0]`.

    With e(x) = surplus of the class under node x, min(pos, neg) at x is half of (sum of |e| of its children - |e(x)|),
    so the total is half the sum over all nodes below the root of |e(x)| * (height of its parent - its own). A node
    without rows of the class has |e| = s * reference; if all nodes were empty, the sum would be s * n * height[0], and
    only the paths of present leaves correct it. O(r * depth) per class with r values.

    >>> tree = [np.array(x) for x in ([1, 2, 3], [0, 0, 0, 0], [1, 0, 0, 0])]
    >>> hierarchical_numerators(np.array([0, 1]), np.array([0]), np.array([5]), *tree, np.array([4, 2, 2, 0])).tolist()
    [20]
    """
    n = node_reference[0]
    under = np.zeros(len(parent), dtype=np.int64)
    result = np.zeros(len(starts) - 1, dtype=np.int64)
    for c in range(len(starts) - 1):
        s = 0
        for e in range(starts[c], starts[c + 1]):
            s += counts[e]
        for e in range(starts[c], starts[c + 1]):
            node = leaf_node[values[e]]
            while node != 0:
                under[node] += counts[e]
                node = parent[node]
        total = s * n * height[0]
        for e in range(starts[c], starts[c + 1]):
            node = leaf_node[values[e]]
            while node != 0 and under[node] != 0:  # the path above a visited node is visited too
                expected = s * node_reference[node]
                total += (abs(n * under[node] - expected) - expected) * (height[parent[node]] - height[node])
                under[node] = 0
                node = parent[node]
        result[c] = total
    return result

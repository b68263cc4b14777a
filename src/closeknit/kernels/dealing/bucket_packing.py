"""The smallest number of buckets for at most some 20 values, by trying all sets of them."""

from __future__ import annotations

import numpy as np

from closeknit.kernels.arrays import Int64
from closeknit.kernels.compiling import kernel


@kernel
def fewest_groups(rows: Int64, most: Int64) -> Int64:
    """Assign each value to a group, as few groups as possible: a group whose first value is `i` has at most `most[i]` rows.

    Values ascend, so the lowest bit of a set is its rarest value. That value must be in some group, so 3^(m-1) pairs are tried.

    >>> rows = np.array([10, 11, 11, 11, 13, 28])
    >>> fewest_groups(rows, np.array([31, 33, 33, 33, 37, 58])).tolist()
    [0, 1, 1, 1, 0, 2]
    """
    m = len(rows)
    weight = np.zeros(1 << m, dtype=np.int64)
    fewest = np.zeros(1 << m, dtype=np.int64)
    choice = np.zeros(1 << m, dtype=np.int64)
    for members in range(1, 1 << m):
        lowest = 0
        while not members >> lowest & 1:
            lowest += 1
        rest = members ^ (1 << lowest)
        weight[members] = weight[rest] + rows[lowest]
        fewest[members], choice[members] = fewest[rest] + 1, 1 << lowest
        others = rest
        while others:
            group = others | (1 << lowest)
            if weight[others] + rows[lowest] <= most[lowest] and fewest[members ^ group] + 1 < fewest[members]:
                fewest[members], choice[members] = fewest[members ^ group] + 1, group
            others = (others - 1) & rest
    group_of = np.zeros(m, dtype=np.int64)
    members, number = (1 << m) - 1, 0
    while members:
        for i in range(m):
            if choice[members] >> i & 1:
                group_of[i] = number
        members ^= choice[members]
        number += 1
    return group_of

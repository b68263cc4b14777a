"""Peeling: the largest part of a class that the guarantees allow, and what has to be given back so that the rest is allowed.

`measure_excess` says how far a class is from being allowed, in rows. A class that is not allowed gives up one row at a time: a
row of the bucket after whose loss the excess is least, and of this bucket the row that stretches the box most. Where one view
has caps alone, the part that is left is the largest allowed one: a row is given up only where its value is too frequent, and
then every allowed part lacks a row of this value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.exchange.class_state import stretch_ends
from closeknit.kernels.exchange.knit_guard import CAPS, CLOSENESS, ENTROPY, Buckets, Guard, count_row, is_allowed
from closeknit.kernels.geometry.boxes import Codes, Ints, Reals
from closeknit.kernels.geometry.ranges import Costs, range_cost

Flags = NDArray[np.bool_]
TOO_FEW = 1e6  # excess for each row that a class has too few: more than any other


@bare
def measure_excess(guard: Guard, under: Codes, c: int, size: int) -> float:
    """How far class c of `size` rows is from being allowed; 0 where it is, but for rounding.

    >>> from kernel_inputs import one_cap
    >>> guard = one_cap(np.array([0, 1], np.int32), 2)
    >>> [measure_excess(guard, np.array([[a + b, a, b]], np.int32), 0, a + b) for a, b in ((2, 2), (3, 1), (1, 0))]
    [0.0, 1.0, 1000000.5]
    """
    total = TOO_FEW * max(guard.k - size, 0)
    for v in range(len(guard.kind)):
        a, b, kind = guard.start[v], guard.start[v + 1], guard.kind[v]
        if kind == CLOSENESS:
            n, moved = guard.rows[a], 0
            for x in range(a, b):
                moved += guard.weight[x] * abs(n * under[c, x] - size * guard.rows[x])
            total += max(moved - guard.most[v, size], 0) / n
        elif kind == CAPS:
            for x in range(a, b):
                total += max(under[c, x] - size * (guard.cap_num[x] / guard.cap_den[x]), 0.0)
                total += max(size * (guard.low_num[x] / guard.low_den[x]) - under[c, x], 0.0)
        else:
            values, entropy = 0, 0.0
            for x in range(a, b):
                u = under[c, x]
                if guard.leaf[x] == 1 and u > 0:
                    values += 1
                    entropy -= u / size * np.log(u / size)
            total += max(guard.values[v] - values, 0)
            if kind == ENTROPY:
                total += size * max(guard.entropy[v] - entropy, 0.0)
    return total


@kernel
def peel_classes(costs: Costs, guard: Guard, buckets: Buckets, quasi: Codes, rows: Codes, starts: Ints) -> Flags:
    """Whether each position of `rows` (by class, from `starts` on) is in the part of its class that is kept.

    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from kernel_inputs import flat_scales, one_cap
    >>> secret, quasi = np.array([0, 0, 0, 1, 1], np.int32), np.array([[4], [0], [1], [0], [2]], np.int32)
    >>> pairs = Buckets(secret, np.array([0, 3], np.int32))
    >>> rows, price = np.arange(5, dtype=np.int32), costs(flat_scales([5]))
    >>> peel_classes(price, one_cap(secret, 2), pairs, quasi, rows, np.array([0, 5])).tolist()
    [False, True, True, True, True]
    """
    kept, d, b = np.ones(len(rows), np.bool_), quasi.shape[1], len(buckets.sample)
    under, nothing = np.zeros((1, len(guard.parent)), np.int32), np.zeros(len(guard.parent), np.int32)
    have, ends = np.zeros(b, np.int64), np.empty((1, d, 6), np.int32)
    for c in range(len(starts) - 1):
        first, end = starts[c], starts[c + 1]
        members, left = rows[first:end], kept[first:end]
        under[:], have[:] = 0, 0
        for row in members:
            have[buckets.of[row]] += 1
            count_row(guard, under, whole(0), whole(row), whole(1))
        size = len(members)
        while size >= guard.k and size > 0 and not is_allowed(guard, under, whole(0), nothing, whole(1), size):
            bucket = _choose_bucket(guard, buckets, under, have, size)
            x = _choose_row(costs, buckets, quasi, members, left, bucket, ends)
            left[x] = False
            have[bucket] -= 1
            count_row(guard, under, whole(0), whole(members[x]), whole(-1))
            size -= 1
        if size < guard.k or size == 0:
            left[:] = False
    return kept


@bare
def _choose_bucket(guard: Guard, buckets: Buckets, under: Codes, have: Ints, size: int) -> int:
    """Find the bucket after the loss of one of whose rows the excess is least."""
    least, found = np.inf, -1
    for b in range(len(have)):
        if have[b] > 0:
            row = whole(buckets.sample[b])
            count_row(guard, under, whole(0), row, whole(-1))
            excess = measure_excess(guard, under, whole(0), size - 1)
            count_row(guard, under, whole(0), row, whole(1))
            if excess < least:
                least, found = excess, b
    return found


@bare
def _choose_row(costs: Costs, buckets: Buckets, quasi: Codes, members: Codes, kept: Flags, bucket: int, ends: Codes) -> int:
    """Find the kept member of a bucket without which the box of those kept loses least."""
    far = np.iinfo(np.int32).max
    for j in range(quasi.shape[1]):
        ends[0, j, 0], ends[0, j, 1], ends[0, j, 2], ends[0, j, 3], ends[0, j, 4], ends[0, j, 5] = far, 0, far, -1, 0, -1
        for x in range(len(members)):
            if kept[x]:
                stretch_ends(ends, whole(0), j, quasi[members[x], j])
    least, found = np.inf, -1
    for x in range(len(members)):
        if kept[x] and buckets.of[members[x]] == bucket:
            lost = 0.0
            for j in range(quasi.shape[1]):
                q, lo, hi = quasi[members[x], j], ends[0, j, 0], ends[0, j, 3]
                if q == lo and ends[0, j, 1] == 1:
                    lo = ends[0, j, 2]
                if q == hi and ends[0, j, 4] == 1:
                    hi = ends[0, j, 5]
                if lo <= hi:
                    lost += range_cost(costs, j, lo, hi)
            if lost < least:
                least, found = lost, x
    return found


@kernel
def measure_gains(guard: Guard, under: Codes, size: Ints, goes: Flags) -> Reals:
    """By how much each class that stays lowers, for each of its rows, the excess of all that go if it goes too.

    Empty where those that go are allowed together.

    >>> from kernel_inputs import one_cap
    >>> guard, classes = one_cap(np.array([0, 1], np.int32), 2), np.array([[2, 1, 1], [3, 1, 2], [2, 2, 0]], np.int32)
    >>> measure_gains(guard, classes, np.array([2, 3, 2]), np.array([False, False, True])).round(2).tolist()
    [0.0, 0.17, 0.0]
    """
    rest, nothing, rows = np.zeros((1, under.shape[1]), np.int32), np.zeros(under.shape[1], np.int32), whole(0)
    for c in range(len(size)):
        if goes[c]:
            rows += size[c]
            for x in range(under.shape[1]):
                rest[0, x] += under[c, x]
    if is_allowed(guard, rest, whole(0), nothing, whole(1), rows):
        return np.empty(0)
    gains, now = np.zeros(len(size)), measure_excess(guard, rest, whole(0), rows)
    for c in range(len(size)):
        if not goes[c]:
            for x in range(under.shape[1]):
                rest[0, x] += under[c, x]
            gains[c] = (now - measure_excess(guard, rest, whole(0), rows + size[c])) / size[c]
            for x in range(under.shape[1]):
                rest[0, x] -= under[c, x]
    return gains

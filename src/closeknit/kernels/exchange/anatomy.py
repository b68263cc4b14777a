"""Exchanges of rows between neighbouring groups while the loss falls and no value becomes too frequent in either.

More general than exchanging rows of one value: two rows of different values may be exchanged if no value exceeds its limit in
either group. Group sizes do not change, so neither do the limits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.compiling import kernel
from closeknit.kernels.dealing.class_members import ClassMembers, class_of, corners
from closeknit.kernels.geometry.boxes import Codes, Ints, Reals, Scales, positions
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys
from closeknit.kernels.geometry.ranges import Costs, costs, range_cost

REACH = 16  # following groups along the curve with which each one tries to exchange: 32 gain little and take twice the time
WORK = 1 << 28  # pairs of rows that are compared in all passes: large groups have many, so they try fewer groups
FAR = 2**31 - 1  # above every code
LEAST = 1e-12  # a gain that is not a rounding error


class Remainders(NamedTuple):
    """Per position the box of the other rows of its group, and what a group of that size costs with this box."""

    box: Codes  # [positions, 2, columns] lowest and highest codes
    cost: Reals  # [positions] a lower bound of the cost with any row there


@kernel
def _renew(rests: Remainders, held: ClassMembers, price: Costs, c: int) -> None:
    """Recompute the boxes of one group; without its only row a group is empty and costs nothing."""
    begin, end = held.start[c], held.start[c + 1]
    rests.cost[begin:end] = 0.0
    for j in range(held.quasi.shape[1]):
        lo, next_lo, hi, next_hi = FAR, FAR, -1, -1
        for x in range(begin, end):
            code = int(held.quasi[held.member[x], j])
            lo, next_lo = (code, lo) if code < lo else (lo, min(next_lo, code))
            hi, next_hi = (code, hi) if code > hi else (hi, max(next_hi, code))
        for x in range(begin, end):
            code = int(held.quasi[held.member[x], j])
            rests.box[x, 0, j] = next_lo if code == lo else lo
            rests.box[x, 1, j] = next_hi if code == hi else hi
            if end - begin > 1:
                rests.cost[x] += (end - begin) * range_cost(price, j, rests.box[x, 0, j], rests.box[x, 1, j])


@kernel
def _cost_with(box: Codes, x: int, row: int, quasi: Codes, price: Costs, size: int, most: float) -> float:
    """Cost of a group of this size with this row at position x; inexact once above `most`."""
    total = 0.0
    for j in range(quasi.shape[1]):
        total += size * range_cost(price, j, min(box[x, 0, j], quasi[row, j]), max(box[x, 1, j], quasi[row, j]))
        if total > most:
            break
    return total


@kernel
def _fits(rows: Codes, leaving: int, coming: int, value: Codes, limit: int) -> bool:
    """Whether the incoming row's value stays within its limit after the outgoing row is removed."""
    count = 1
    for row in rows:
        count += row != leaving and value[row] == value[coming]
    return count <= limit


@kernel
def _exchange(a: int, b: int, held: ClassMembers, rests: Remainders, limit: Ints, price: Costs) -> bool:
    """Make the best exchange between two groups, if one reduces the cost."""
    member, start, value, quasi = held.member, held.start, held.value, held.quasi
    one, other = member[start[a] : start[a + 1]], member[start[b] : start[b + 1]]
    best = _cost_with(rests.box, start[a], one[0], quasi, price, len(one), np.inf)
    best += _cost_with(rests.box, start[b], other[0], quasi, price, len(other), np.inf) - LEAST
    place, there = -1, -1
    for x in range(start[a], start[a + 1]):
        for y in range(start[b], start[b + 1]):
            if rests.cost[x] + rests.cost[y] >= best:
                continue
            cost = _cost_with(rests.box, x, member[y], quasi, price, len(one), best - rests.cost[y])
            if cost + rests.cost[y] < best:
                cost += _cost_with(rests.box, y, member[x], quasi, price, len(other), best - cost)
                if cost < best and _fits(one, member[x], member[y], value, limit[a]) \
                        and _fits(other, member[y], member[x], value, limit[b]):  # fmt: skip
                    best, place, there = cost, x, y
    if place < 0:
        return False
    member[place], member[there] = member[there], member[place]
    _renew(rests, held, price, a)
    _renew(rests, held, price, b)
    return True


@kernel
def _build_remainders(held: ClassMembers, price: Costs) -> Remainders:
    places = len(held.member)
    rests = Remainders(np.empty((places, 2, held.quasi.shape[1]), np.int32), np.empty(places))
    for c in range(len(held.start) - 1):
        _renew(rests, held, price, c)
    return rests


@kernel
def _exchange_along(order: Ints, reach: int, held: ClassMembers, rests: Remainders, limit: Ints, price: Costs) -> int:
    """Exchange rows between groups near one another in this order; return the number of exchanges."""
    made = 0
    for i in range(len(order)):
        for j in range(i + 1, min(i + 1 + reach, len(order))):
            made += _exchange(order[i], order[j], held, rests, limit, price)
    return made


def exchange_rows(
    class_of_row: Codes, value: Codes, limit: Ints, quasi: Codes, scales: Scales, passes: int, seed: int
) -> Codes:
    """Class of each row after at most so many passes; no value exceeds `limit[c]` rows in class c unless it did before.

    >>> from kernel_inputs import flat_scales
    >>> quasi, value = np.array([[0], [9], [8], [1]], np.int32), np.array([0, 1, 2, 3], np.int32)
    >>> groups = exchange_rows(np.array([0, 0, 1, 1], np.int32), value, np.array([1, 1]), quasi, flat_scales([10]), 4, seed=0)
    >>> bool(groups[0] == groups[3]), bool(groups[1] == groups[2])
    (True, True)
    """
    start = np.concatenate(([0], np.cumsum(np.bincount(class_of_row)))).astype(np.int64)
    if len(start) < 3 or quasi.shape[1] == 0:
        return class_of_row
    member = np.argsort(class_of_row, kind="stable").astype(np.int32)
    held = ClassMembers(member, start, np.zeros(len(member), np.int32), quasi, np.ascontiguousarray(value))
    price, rng = costs(scales), np.random.default_rng(seed)
    rests = _build_remainders(held, price)
    passes, reach = _effort(np.diff(start), passes)
    for _ in range(passes):
        order = np.argsort(hilbert_keys(_locate_groups(held, scales, rng)), kind="stable")
        if _exchange_along(order, reach, held, rests, limit, price) == 0:
            break
    return class_of(held)


def _effort(sizes: Ints, passes: int) -> tuple[int, int]:
    """Number of passes and of following groups that each tries: as requested, limited by `WORK`."""
    pairs = int((sizes**2).sum())  # pairs of rows when every group tries one other
    reach = int(np.clip(WORK // (pairs * max(passes, 1)), 1, REACH))
    return min(passes, WORK // (pairs * reach)), reach


def _locate_groups(held: ClassMembers, scales: Scales, rng: np.random.Generator) -> Reals:
    """Groups as points: in each pass another corner or the middle of their boxes, so that other groups become neighbours."""
    d = held.quasi.shape[1]
    which, stretch, axes = rng.choice([0, 1, 2, 2], d), rng.integers(0, 3, d), rng.permutation(d)
    points = positions(scales, corners(held, np.arange(len(held.start) - 1), which)) / 2.0**stretch
    return np.ascontiguousarray(points[:, axes])

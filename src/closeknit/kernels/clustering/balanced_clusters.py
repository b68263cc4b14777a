"""Assign points with integer weights to centres of limited capacity: by regret, then by exchanges while the cost falls.

Distances are compared to nine digits, so that rounding decides nothing. A point may be split between centres, but at most once
for each centre that it fills up, so there are fewer than points + centres shares.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.boxes import Ints

ROUNDED = 1e9


@kernel
def _distance(points: Reals, j: int, centres: Reals, i: int) -> float:
    total = 0.0
    for x in range(points.shape[1]):
        gap = points[j, x] - centres[i, x]
        total += gap * gap
    return np.rint(total * ROUNDED) / ROUNDED


@kernel
def _regrets(points: Reals, centres: Reals) -> Reals:
    """Return the least extra distance of each point if its nearest centre is full."""
    regret = np.zeros(len(points))
    for j in range(len(points)):
        first, second = np.inf, np.inf
        for i in range(len(centres)):
            d = _distance(points, j, centres, i)
            if d < first:
                first, second = d, first
            elif d < second:
                second = d
        regret[j] = second - first if len(centres) > 1 else 0.0
    return regret


@kernel
def assign_points(points: Reals, weights: Ints, centres: Reals, room: Ints) -> tuple[Ints, Ints, Ints]:
    """Return shares (point, centre, weight): points in falling order of regret take the nearest centre with free capacity.

    >>> points, centres = np.array([[0.0], [1.0], [5.0]]), np.array([[0.0], [4.0]])
    >>> [share.tolist() for share in assign_points(points, np.array([3, 3, 2]), centres, np.array([4, 4]))]
    [[0, 1, 1, 2], [0, 0, 1, 1], [3, 1, 2, 2]]
    """
    left = room.copy()
    most = len(points) + len(centres)
    point, centre, amount = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    found = 0
    for j in np.argsort(-_regrets(points, centres), kind="mergesort"):
        rest = weights[j]
        while rest > 0:
            best, least = -1, np.inf
            for i in range(len(centres)):
                if left[i] > 0:
                    d = _distance(points, j, centres, i)
                    if d < least:
                        best, least = i, d
            taken = min(rest, left[best])
            point[found], centre[found], amount[found] = j, best, taken
            found += 1
            left[best] -= taken
            rest -= taken
    order = np.argsort(point[:found] * len(centres) + centre[:found], kind="mergesort")
    return point[:found][order], centre[:found][order], amount[:found][order]


@kernel
def _gains(points: Reals, centres: Reals, held: Ints, here: int, there: int) -> tuple[Ints, Reals]:
    """Sort the points of one centre by falling gain of moving to the other."""
    members = np.flatnonzero(held[:, here])
    gain = np.empty(len(members))
    for x in range(len(members)):
        gain[x] = _distance(points, members[x], centres, here) - _distance(points, members[x], centres, there)
    order = np.argsort(-gain, kind="mergesort")
    return members[order], gain[order]


@kernel
def exchange_points(points: Reals, centres: Reals, held: Ints, sweeps: int) -> Ints:
    """Exchange weight `held[point, centre]` between pairs of centres until no pair gains or the sweeps are used up.

    >>> points, centres = np.array([[0.0], [5.0]]), np.array([[0.0], [4.0]])
    >>> exchange_points(points, centres, np.array([[0, 2], [2, 1]]), 9).tolist()
    [[2, 0], [0, 3]]
    """
    held = held.copy()
    for _ in range(sweeps):
        moved = False
        for here in range(len(centres)):
            for there in range(here + 1, len(centres)):
                give, gives = _gains(points, centres, held, here, there)
                take, takes = _gains(points, centres, held, there, here)
                a, b = 0, 0
                while a < len(give) and b < len(take) and gives[a] + takes[b] > 1.0 / ROUNDED:
                    amount = min(held[give[a], here], held[take[b], there])
                    held[give[a], here] -= amount
                    held[give[a], there] += amount
                    held[take[b], there] -= amount
                    held[take[b], here] += amount
                    moved = True
                    a += held[give[a], here] == 0
                    b += held[take[b], there] == 0
        if not moved:
            break
    return held

"""Minimum-cost assignment of a small square matrix, callable from other compiled loops (a library's solver is not).

Shortest augmenting paths with dual prices after Jonker and Volgenant (Computing 38, 1987): column reduction and
augmenting row reduction settle most rows cheaply, a Dijkstra search per remaining row does the rest. O(n^3), in
practice far less. Forbidden pairs are given a large finite cost: if a solution without them exists, the minimum
uses none.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.boxes import Codes


@kernel
def _reduce_columns(cost: Reals, price: Reals, column_of: Codes,
                    row_of: Codes) -> None:  # fmt: skip
    n = cost.shape[0]
    best = np.zeros(n, np.int32)
    for j in range(n):
        price[j] = cost[0, j]
    for i in range(1, n):
        for j in range(n):
            if cost[i, j] < price[j]:
                price[j] = cost[i, j]
                best[j] = i
    for j in range(n - 1, -1, -1):
        if column_of[best[j]] < 0:
            column_of[best[j]] = j
            row_of[j] = best[j]


@kernel
def _two_cheapest(cost: Reals, price: Reals, i: int) -> tuple[int, float, float]:
    first, least, second = 0, np.inf, np.inf
    for j in range(cost.shape[0]):
        reduced = cost[i, j] - price[j]
        if reduced < second:
            if reduced < least:
                second, least, first = least, reduced, j
            else:
                second = reduced
    return first, least, second


@kernel
def _reduce_rows(cost: Reals, price: Reals, column_of: Codes,
                 row_of: Codes) -> None:  # fmt: skip
    """Run a few auction steps per free row: bounded, because ties can cycle; every end state is a valid start."""
    n = cost.shape[0]
    for _ in range(2):
        for start in range(n):
            i = start
            for _ in range(8):
                if column_of[i] >= 0:
                    break
                j, least, second = _two_cheapest(cost, price, i)
                if second < np.inf:
                    price[j] -= second - least
                loser = row_of[j]
                if loser >= 0 and second <= least:
                    break
                column_of[i] = j
                row_of[j] = i
                if loser < 0:
                    break
                column_of[loser] = -1
                i = loser


@kernel
def _nearest(distance: Reals, row_of: Codes) -> int:
    """Find the open column of least distance; ties go to a free one, which ends the search (categories tie often)."""
    least = np.inf
    for j in range(len(distance)):
        least = min(least, distance[j])
    nearest = -1
    for j in range(len(distance)):
        if distance[j] == least:
            if row_of[j] < 0:
                return j
            if nearest < 0:
                nearest = j
    return nearest


@kernel
def _augment(cost: Reals, price: Reals, column_of: Codes, row_of: Codes,
             free: int, work: tuple[Reals, Reals, Codes]) -> None:  # fmt: skip
    """Find the cheapest alternating path from the free row to a free column, and update prices along it."""
    n = cost.shape[0]
    distance, settled, previous = work  # a settled column is closed: distance inf, settled its final distance
    for j in range(n):
        distance[j] = cost[free, j] - price[j]
        settled[j] = np.inf
        previous[j] = free
    while True:
        end = _nearest(distance, row_of)
        reach = distance[end]
        i = row_of[end]
        if i < 0:
            break
        settled[end] = reach
        distance[end] = np.inf
        base = cost[i, end] - price[end] - reach
        for j in range(n):
            through = cost[i, j] - price[j] - base
            shorter = through < distance[j] and settled[j] == np.inf
            distance[j] = through if shorter else distance[j]
            previous[j] = i if shorter else previous[j]
    for j in range(n):
        if settled[j] < np.inf:
            price[j] += settled[j] - reach
    while True:
        i = previous[end]
        row_of[end] = i
        column_of[i], end = end, column_of[i]
        if i == free:
            return


@kernel
def assign(cost: Reals) -> Codes:
    """Column of each row such that the sum of costs is least.

    >>> assign(np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])).tolist()
    [1, 0, 2]
    """
    n = cost.shape[0]
    column_of = np.full(n, -1, np.int32)
    row_of = np.full(n, -1, np.int32)
    if n == 0:
        return column_of
    price = np.empty(n)
    _reduce_columns(cost, price, column_of, row_of)
    _reduce_rows(cost, price, column_of, row_of)
    work = (np.empty(n), np.empty(n), np.empty(n, np.int32))
    for i in range(n):
        if column_of[i] < 0:
            _augment(cost, price, column_of, row_of, i, work)
    return column_of

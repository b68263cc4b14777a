"""Groups of the same size by clustering sensitive values: equi-sized fuzzy c-means with a crisp step, or balanced assignment
alone.

Fuzzy: memberships and centres are improved in turn from the quantile groups of the first principal component; then every row
gets one group, by regret, and rows are exchanged while the sum of squared distances falls. Balanced, for tables whose
sensitive values have too many combinations: the crisp assignment itself is repeated, centres being the means of what was
assigned.

Source: the paper on multiple sensitive attributes, sec. 4.1, which names equi-sized fuzzy c-means; after Hoeppner and Klawonn,
clustering with size constraints, 2008. The source gets "approximately" equal sizes; here they differ by one at most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Int64, Reals
from closeknit.kernels.clustering.balanced_clusters import assign_points, exchange_points
from closeknit.kernels.clustering.fuzzy_memberships import means, memberships, square_distances
from closeknit.plans.groups import Cells, pca_groups

ROUNDS, STILL = 50, 1e-9  # of fuzzy c-means, and how little all centres must move to stop before
BALANCED_ROUNDS = 20
SWEEPS = 20
MORE = (
    1e-6  # is added to squared distances, every sensitive attribute having variance 1: a point in a centre may still be shared
)
FUZZY_WORK = 1 << 25  # combinations * groups^2 up to which fuzzy is chosen: 20,000 combinations at 40 groups


def choose_variant(cells: Cells, c: int, grouping: str = "auto", affordable: int = FUZZY_WORK) -> str:
    """Which of the two is used: `auto` takes fuzzy c-means up to the `affordable` work.

    >>> few = Cells(np.arange(3), np.arange(3.0)[:, None], np.ones(3, np.int64))
    >>> choose_variant(few, 2), choose_variant(few, 2, "balanced")
    ('fuzzy', 'balanced')
    """
    if grouping != "auto":
        return grouping
    return "fuzzy" if len(cells) * c * c <= affordable else "balanced"


def fcm_groups(cells: Cells, c: int, grouping: str = "auto") -> NDArray[np.int32]:
    """Group of each row; sizes differ by one at most.

    >>> ends = Cells(np.arange(6), np.array([[0.0], [9], [1], [8], [0], [9]]), np.ones(6, np.int64))
    >>> fcm_groups(ends, 2).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    n = len(cells.of_row)
    room = n // c + (np.arange(c) < n % c)
    if choose_variant(cells, c, grouping) == "fuzzy":
        _, group, rows = _crisp(cells, fuzzy(cells, c)[1], room)
    else:
        _, group, rows = _assign_balanced(cells, _start(cells, c), room)
    group_of = np.empty(n, dtype=np.int32)
    group_of[cells.in_order(np.arange(len(cells)))] = np.repeat(group, rows)
    return group_of


def _start(cells: Cells, c: int) -> Reals:
    """Means of the runs along the first principal component."""
    return _means(cells, cells.of_row, pca_groups(cells, c), np.ones(len(cells.of_row), dtype=np.int64), c)


def _means(cells: Cells, cell: NDArray[np.integer], group: NDArray[np.integer], rows: Int64, c: int) -> Reals:
    """Mean point of each group, `rows` of a cell standing in a group."""
    sums = [np.bincount(group, weights=rows * axis[cell], minlength=c) for axis in cells.points.T]
    totals = np.bincount(group, weights=rows, minlength=c)
    return np.stack(sums, axis=1) / totals[:, None] if sums else np.zeros((c, 0))


def fuzzy(cells: Cells, c: int) -> tuple[Reals, Reals, list[float]]:
    """Memberships `[cells, c]`, centres, and the objective after each round."""
    centres = _start(cells, c)
    u, objective = np.empty((len(cells), c)), list[float]()
    for _ in range(ROUNDS):
        d = square_distances(cells.points, centres, MORE)
        shared = memberships(d, cells.rows)
        value = float(cells.rows @ (shared * shared * d).sum(axis=1))
        if objective and value > objective[-1]:  # sums are met to rounding only: a rise means that nothing is left to gain
            break
        u = shared
        objective.append(value)
        before, centres = centres, means(cells.points, u * u * cells.rows[:, None], centres)
        if np.abs(centres - before).max(initial=0.0) < STILL:
            break
    return u, centres, objective


def _crisp(cells: Cells, centres: Reals, room: Int64) -> tuple[Int64, Int64, Int64]:
    """Shares (cell, group, rows) by regret, then exchanged while the sum falls."""
    cell, group, rows = assign_points(cells.points, cells.rows, centres, room)
    held = np.zeros((len(cells), len(room)), dtype=np.int64)
    held[cell, group] = rows
    held = exchange_points(cells.points, centres, held, SWEEPS)
    cell, group = np.nonzero(held)
    return cell, group, held[cell, group]


def _assign_balanced(cells: Cells, centres: Reals, room: Int64) -> tuple[Int64, Int64, Int64]:
    """Shares (cell, group, rows) of the best round: assigned by regret, centres moved to the means."""
    best, least = (room, room, room), np.inf
    for _ in range(BALANCED_ROUNDS):
        cell, group, rows = shares = assign_points(cells.points, cells.rows, centres, room)
        centres = _means(cells, cell, group, rows, len(room))
        total = float(rows @ ((cells.points[cell] - centres[group]) ** 2).sum(axis=1))
        if total >= least * (1 - 1e-9):
            break
        best, least = shares, total
    return best

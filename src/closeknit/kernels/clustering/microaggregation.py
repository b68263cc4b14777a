"""Classes of nearest rows, from the outside inwards (MDAV), with exchanges that bring each class's distribution of the
sensitive attributes closer to the table's.

A distance between rows is a sum over columns, so the squared distances of one point to all leaves of a column are computed
once and then looked up: a scan costs n * columns, however many axes a tree has. There are about 1.5 scans per class, in tight
loops of 64-bit floats: n^2 * columns / k in all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import kernel
from closeknit.kernels.exchange.closeness_exchange import CLOSE, Secrets, excess, exchange_members
from closeknit.kernels.geometry.boxes import Codes, Ints


class Space(NamedTuple):
    """Rows as points: leaf x of column j has the coordinates `points[first[x] : first[x] + axes[j]]`."""

    leaf: Codes  # [n, d] leaves, numbered over all columns
    column: Ints  # [d + 1] where the leaves of a column begin
    first: Ints  # [leaves]
    axes: Ints  # [d]
    points: Reals


class Free(NamedTuple):
    """The free rows, ascending, with their distances to the last query point."""

    rows: Codes
    away: Reals  # one entry more than rows
    held: Ints  # [leaves] free rows with this leaf
    square: Reals  # [leaves] squared distance of the leaf to the query point


@kernel
def _free(space: Space, rows: Codes) -> Free:
    count = np.zeros(len(space.first), np.int64)
    for r in rows:
        for j in range(space.leaf.shape[1]):
            count[space.leaf[r, j]] += 1
    return Free(rows.copy(), np.zeros(len(rows) + 1), count, np.zeros(len(space.first)))


@kernel
def _measure(space: Space, free: Free, left: int, row: int) -> None:
    """Compute the distances of all free rows to a row, or to their mean (row = -1)."""
    d = len(space.axes)
    for j in range(d):
        centre = np.zeros(space.axes[j])
        if row >= 0:
            for a in range(space.axes[j]):
                centre[a] = space.points[space.first[space.leaf[row, j]] + a]
        else:
            for x in range(space.column[j], space.column[j + 1]):
                if free.held[x] > 0:
                    for a in range(space.axes[j]):
                        centre[a] += free.held[x] / left * space.points[space.first[x] + a]
        for x in range(space.column[j], space.column[j + 1]):
            total = 0.0
            for a in range(space.axes[j]):
                apart = space.points[space.first[x] + a] - centre[a]
                total += apart * apart
            free.square[x] = total
    for i in range(left):
        total = 0.0
        for j in range(d):
            total += free.square[space.leaf[free.rows[i], j]]
        free.away[i] = total


@kernel
def _sink(heap: Ints, size: int, away: Reals) -> None:
    """Sift the first entry of a heap down: farther entries are above nearer ones, of equal ones the later is above."""
    at, place = 0, heap[0]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _farther(away, heap[child + 1], heap[child]):
            child += 1
        if not _farther(away, heap[child], place):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = place


@kernel
def _farther(away: Reals, a: int, b: int) -> bool:
    return away[a] > away[b] or (away[a] == away[b] and a > b)


@kernel
def _nearest(free: Free, left: int, wanted: int) -> Codes:
    """Find the `wanted` nearest free rows, near to far; ties go to the first row."""
    heap = np.full(wanted, -1, np.int64)
    away = free.away[: left + 1]  # the last one is index -1: farther than any
    away[left] = np.inf
    for i in range(left):
        if away[i] < away[heap[0]]:
            heap[0] = i
            _sink(heap, wanted, away)
    for last in range(wanted - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        _sink(heap, last, away)
    nearest = np.empty(wanted, np.int32)
    for i in range(wanted):
        nearest[i] = free.rows[heap[i]]
    return nearest


@kernel
def _take(space: Space, free: Free, left: int, taken: NDArray[np.bool_]) -> int:
    """Remove taken rows and return how many are free."""
    kept = 0
    for i in range(left):
        row = free.rows[i]
        if taken[row]:
            for j in range(space.leaf.shape[1]):
                free.held[space.leaf[row, j]] -= 1
        else:
            free.rows[kept], free.away[kept] = row, free.away[i]
            kept += 1
    return kept


@kernel
def _next_centre(space: Space, free: Free, left: int, made: int) -> int:
    """Alternate between the row farthest from the mean of the free rows and the row farthest from the previous one."""
    if made % 2 == 0:
        _measure(space, free, left, -1)
    far = 0
    for i in range(1, left):
        if free.away[i] > free.away[far]:
            far = i
    row = free.rows[far]
    _measure(space, free, left, row)
    return row


@kernel
def nearest_classes(space: Space, secrets: Secrets, rows: Codes, k: int, looked_at: int, class_of: Codes, made: int) -> int:
    """Write classes of the k nearest rows after exchanges into `class_of`, numbered from `made` on; return their number.

    `looked_at`: the number of rows beyond the k nearest that a class may take in exchange.

    >>> at = np.arange(4, dtype=np.int32)
    >>> space = Space(at[:, None], np.array([0, 4]), np.arange(4), np.array([1]), np.array([0.0, 0.1, 0.8, 1.0]))
    >>> class_of = np.full(4, -1, np.int32)
    >>> from closeknit.kernels.exchange.closeness_exchange import no_secrets
    >>> nearest_classes(space, no_secrets(4), at, 2, 0, class_of, 0), class_of.tolist()
    (2, [1, 1, 0, 0])
    """
    free, left, begin = _free(space, rows), len(rows), made
    taken = np.zeros(len(class_of), np.bool_)
    while left > 0:
        if left >= 2 * k:
            _next_centre(space, free, left, made - begin)
            members = _nearest(free, left, k)
            if looked_at > 0 and excess(secrets, members) > CLOSE:
                near = _nearest(free, left, min(left, k + looked_at))
                members = exchange_members(secrets, members, near[k:])
        else:
            members = free.rows[:left].copy()
        for row in members:
            class_of[row] = made
            taken[row] = True
        made += 1
        left = _take(space, free, left, taken)
    return made


@kernel
def mix_classes(space: Space, subset_of: Codes, rows: Codes, subsets: int, class_of: Codes, made: int) -> int:
    """Form classes of the nearest rows with a proportional share of every subset, one per row of the smallest subset.

    >>> at = np.arange(4, dtype=np.int32)
    >>> space = Space(at[:, None], np.array([0, 4]), np.arange(4), np.array([1]), np.array([0.0, 0.1, 0.8, 1.0]))
    >>> class_of = np.full(4, -1, np.int32)
    >>> mix_classes(space, np.array([0, 1, 1, 0], np.int32), at, 2, class_of, 0), class_of.tolist()
    (2, [1, 1, 0, 0])
    """
    free, left = _free(space, rows), len(rows)
    taken = np.zeros(len(class_of), np.bool_)
    held = np.zeros(subsets, np.int64)
    for row in rows:
        held[subset_of[row]] += 1
    classes = len(rows)
    for s in range(subsets):
        classes = min(classes, held[s])
    best, due = np.empty(subsets, np.int64), np.empty(subsets, np.int64)
    for c in range(classes):
        _next_centre(space, free, left, c)
        most = 0
        for s in range(subsets):
            best[s], due[s] = -1, -(-held[s] // (classes - c))
            held[s] -= due[s]
            most = max(most, due[s])
        for _ in range(most):
            for i in range(left):
                s = subset_of[free.rows[i]]
                if due[s] > 0 and not taken[free.rows[i]] and (best[s] < 0 or free.away[i] < free.away[best[s]]):
                    best[s] = i
            for s in range(subsets):
                if best[s] >= 0:
                    class_of[free.rows[best[s]]] = made
                    taken[free.rows[best[s]]] = True
                    best[s], due[s] = -1, due[s] - 1
        made += 1
        left = _take(space, free, left, taken)
    return made

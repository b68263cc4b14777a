"""Repair: classes that break a promise are merged with the neighbour that costs least until every promise holds.

Merging never hurts a monotone model (the merged histogram lies between the two), and one class of everything is the end, so it
always stops. Neighbours are looked for among `NEAR` classes on either side along the Hilbert curve through the
boxes' middles, which bounds the work per round by classes x `NEAR`; merges run in rounds, the cheapest first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from closeknit.core.geometry import points, scales
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.kernels.boxes import Scales, box_losses, boxes
from closeknit.kernels.hilbert import hilbert_keys

NEAR = 32
OFFERS = 8  # neighbours a class may fall back to in one round; with one, a popular neighbour would make rounds endless


def failing(table: Table, partition: Partition, models: Sequence[Model]) -> NDArray[np.bool_]:
    """Classes that break at least one promise."""
    classes = table.counted(partition)
    broken = np.zeros(partition.count, dtype=bool)
    for model in models:
        broken |= ~model.holds(classes)
    return broken


def repaired(table: Table, partition: Partition, models: Sequence[Model]) -> Partition:
    """The partition with as many merges as the promises need."""
    geometry = scales(table)
    while partition.count > 1 and (broken := failing(table, partition, models)).any():
        partition = partition.merged(_one_round(table, partition, broken, geometry))
    return partition


def _one_round(table: Table, partition: Partition, broken: NDArray[np.bool_], geometry: Scales) -> NDArray[np.int64]:
    """Where each class goes: every broken class is offered its cheapest neighbours, cheapest merges first."""
    lo, hi = boxes(table.quasi, partition.class_of, partition.count)
    sizes = np.bincount(partition.class_of[partition.class_of >= 0], minlength=partition.count)
    curve = np.argsort(_curve(table, partition, sizes), kind="stable")
    place = np.empty(partition.count, dtype=np.int64)
    place[curve] = np.arange(partition.count)
    alone = sizes * box_losses(geometry, lo, hi)
    failed = np.flatnonzero(broken)
    steps = np.array([*range(-NEAR, 0), *range(1, NEAR + 1)])
    cost = np.full((len(failed), len(steps)), np.inf)
    for i, step in enumerate(steps):
        there = place[failed] + step
        inside = (there >= 0) & (there < partition.count)
        a, b = failed[inside], curve[there[inside]]
        joint = box_losses(geometry, np.minimum(lo[a], lo[b]), np.maximum(hi[a], hi[b]))
        cost[inside, i] = (sizes[a] + sizes[b]) * joint - alone[a] - alone[b]
    best = np.argsort(cost, axis=1, kind="stable")[:, :OFFERS]
    offers = np.take_along_axis(cost, best, axis=1)
    row, column = np.nonzero(np.isfinite(offers))
    other = curve[place[failed[row]] + steps[best[row, column]]]
    return _matched(failed[row], other, offers[row, column], partition.count)


def _matched(one: NDArray[np.int64], other: NDArray[np.int64], cost: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Cheapest pairs first, each class in one pair at most."""
    into = np.arange(count)
    free = np.ones(count, dtype=bool)
    for i in np.lexsort((other, one, cost)):
        a, b = one[i], other[i]
        if free[a] and free[b]:
            free[a] = free[b] = False
            into[max(a, b)] = min(a, b)
    return into


def _curve(table: Table, partition: Partition, sizes: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Hilbert key of the mean of each class's rows."""
    where = points(table)
    kept = partition.class_of >= 0
    means = [
        np.bincount(partition.class_of[kept], weights=axis[kept], minlength=partition.count) / np.maximum(sizes, 1)
        for axis in where.T
    ]
    return hilbert_keys(np.stack(means, axis=1)) if means else np.zeros(partition.count, dtype=np.uint64)

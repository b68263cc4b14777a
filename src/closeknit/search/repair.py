"""Repair: classes that do not meet a guarantee are merged with the neighbour that costs least until every guarantee holds.

Merging never hurts a monotone model (the merged histogram lies between the two), and one class of everything is the end, so
it always stops. Neighbours are looked for along the Hilbert curve through the classes' middles, as many as a fixed count of
pairs per round allows; merges run in rounds, first those whose union holds, the cheapest first; after some rounds a class
that no neighbour mends doubles. Rows are touched once before and once after: in between a class is its box, its size, its
middle and its histograms. A cost counts both sides of a merge, unlike the printed one of the thesis on SABRE and BUREL, sec.
4.3.4, which ignores the rows of the class that is merged into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.exact import fraction
from closeknit.core.geometry import points, scales
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.kernels.counting.histograms import match
from closeknit.kernels.geometry.boxes import Scales, box_losses, boxes
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys

LOOKED_AT = 1 << 20  # pairs whose joint loss is computed in one round: the fewer classes are broken, the farther each looks
JUDGED, OFFERED = 1 << 18, 256  # pairs that the models judge in one round, in all and of one class
COUNTED = 1 << 24  # values counted in all of these pairs: classes of many values are offered fewer
PATIENCE = 1 << 20  # classes of all rounds in which merges are pairs; doubling at once is quick and loses up to a fifth more

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]


def find_broken_classes(table: Table, partition: Partition, models: Sequence[Model]) -> Flags:
    """Classes that do not meet at least one guarantee."""
    return _find_broken(table.count_classes(partition), models)


def _find_broken(classes: Classes, models: Sequence[Model]) -> Flags:
    broken = np.zeros(len(classes), dtype=bool)
    for model in models:
        broken |= ~model.holds(classes)
    return broken


def repair_partition(table: Table, partition: Partition, models: Sequence[Model]) -> Partition:
    """The partition with as many merges as the guarantees need."""
    budgets = [model for model in models if model.budget]
    models = [model for model in models if not model.budget]
    while partition.count > 1:
        classes = table.count_classes(partition)
        if not _find_broken(classes, models).any():
            break
        partition = partition.merge_classes(_merges(table, partition, classes, models))
        if table.persons is None:
            break
        # persons of two classes were added up where they may be the same: count them again
    while partition.count > 1:
        classes = table.count_classes(partition)
        over = [model for model in budgets if not model.holds_together(classes)]
        if not over:
            return partition
        partition = merge_cheapest(table, partition, _find_broken(classes, over), _count_merges(classes, over))
        if _find_broken(table.count_classes(partition), models).any():  # a guarantee that merging may break
            return repair_partition(table, partition, [*models, *budgets])
    return partition


def _count_merges(classes: Classes, over: Sequence[Model]) -> int:
    """Merges that the budgets need at least: one saves no more than the two classes spend."""
    return max(int(np.ceil(_find_excess(model, classes) / max(2 * int(model.spend(classes).max()), 1))) for model in over)


def _find_excess(model: Model, classes: Classes) -> float:
    """What is spent above the limit."""
    limit = fraction(model.limit_field, getattr(model, model.limit_field))
    return float(int(model.spend(classes).sum()) - limit * int(classes.persons.sum()))


def merge_cheapest(table: Table, partition: Partition, flagged: Flags, most: int | None = None) -> Partition:
    """Flagged classes merged with the neighbour that costs least, cheapest pairs first, each class once.

    Args:
        table: the rows.
        partition: their classes.
        flagged: the classes to merge.
        most: the largest number of merges; None: all flagged classes.
    """
    shapes = _Shapes.of(table, partition)
    one, other, cost = _cheapest(shapes, np.flatnonzero(flagged), scales(table), JUDGED)
    into, free = np.arange(partition.count), np.ones(partition.count, dtype=bool)
    left = partition.count if most is None else most
    order = np.lexsort((other, one, cost))
    for a, b in zip(one[order].tolist(), other[order].tolist(), strict=True):
        if free[a] and free[b] and left > 0:
            into[a], left = b, left - 1
            free[a] = free[b] = False
    return partition.merge_classes(into)


def _merges(table: Table, partition: Partition, classes: Classes, models: Sequence[Model]) -> Counts:
    """Where each class goes in the end."""
    geometry = scales(table)
    shapes = _Shapes.of(table, partition)
    into = np.arange(partition.count)
    broken = _find_broken(classes, models)
    patience = int(np.clip(PATIENCE // partition.count, 4, 64))
    while len(classes) > 1 and broken.any():
        goes, broken = _one_round(shapes, classes, broken, models, geometry, patience <= 0)
        patience -= 1
        stays, step = np.unique(goes, return_inverse=True)
        classes, shapes, into, broken = classes.merge(step), shapes.merge(step), step[into], broken[stays]
        if (np.bincount(step) > 2).any():  # more than a pair came together: no one has judged that yet
            broken = _find_broken(classes, models)
    return into


@dataclass(frozen=True, eq=False)
class _Shapes:
    """Boxes, sizes and sums of points: what a merge needs to know of its classes next to their histograms."""

    lo: NDArray[np.int32]
    hi: NDArray[np.int32]
    sizes: Counts
    sums: NDArray[np.float64]

    @classmethod
    def of(cls, table: Table, partition: Partition) -> _Shapes:
        kept = partition.class_of >= 0
        owner = partition.class_of[kept]
        axes = [np.bincount(owner, weights=axis, minlength=partition.count) for axis in points(table)[kept].T]
        sums: NDArray[np.float64] = np.stack(axes, axis=1) if axes else np.zeros((partition.count, 0))
        lo, hi = boxes(table.quasi, partition.class_of, partition.count)
        return cls(lo, hi, np.bincount(owner, minlength=partition.count), sums)

    def merge(self, into: Counts) -> _Shapes:
        order = np.argsort(into, kind="stable")
        starts = np.flatnonzero(np.diff(into[order], prepend=-1))
        return _Shapes(
            np.minimum.reduceat(self.lo[order], starts),
            np.maximum.reduceat(self.hi[order], starts),
            np.add.reduceat(self.sizes[order], starts),
            np.add.reduceat(self.sums[order], starts),
        )

    def curve(self) -> Counts:
        """Classes along the Hilbert curve through their middles."""
        middles = self.sums / self.sizes[:, None]
        keys = hilbert_keys(middles) if middles.shape[1] else np.zeros(len(middles), dtype=np.uint64)
        return np.argsort(keys, kind="stable")


def _one_round(
    shapes: _Shapes, classes: Classes, broken: Flags, models: Sequence[Model], geometry: Scales, hurry: bool
) -> tuple[Counts, Flags]:
    """Where each class goes and whether it is broken there: it is offered its cheapest neighbours, first those that repair
    it.
    """
    failed = np.flatnonzero(broken)
    values = max((len(histogram.values) for histogram in classes.histograms.values()), default=0) // len(classes) + 1
    one, other, cost = _cheapest(shapes, failed, geometry, min(JUDGED, COUNTED // values))
    repaired = ~_find_broken(classes.pairs(one, other), models)
    goes, pair_of = match(np.lexsort((other, one, cost, ~repaired)), one, other, repaired, shapes.sizes, hurry)
    return goes, np.where(pair_of < 0, broken, ~repaired[pair_of])  # what was not merged is what it was


def _cheapest(shapes: _Shapes, failed: Counts, geometry: Scales, judged: int) -> tuple[Counts, Counts, NDArray[np.float64]]:
    """For each broken class its neighbours along the curve whose joint loss grows least: pairs and what they cost."""
    count = len(shapes.sizes)
    curve = shapes.curve()
    place = np.empty(count, dtype=np.int64)
    place[curve] = np.arange(count)
    near = int(np.clip(LOOKED_AT // (2 * len(failed)), 8, count - 1))
    steps = np.concatenate([np.arange(-near, 0), np.arange(1, near + 1)])
    there = place[failed][:, None] + steps
    inside = (there >= 0) & (there < count)
    a = np.broadcast_to(failed[:, None], there.shape)[inside]
    b = curve[there[inside]]
    alone = shapes.sizes * box_losses(geometry, shapes.lo, shapes.hi)
    joint = box_losses(geometry, np.minimum(shapes.lo[a], shapes.lo[b]), np.maximum(shapes.hi[a], shapes.hi[b]))
    cost = np.full(there.shape, np.inf)
    cost[inside] = (shapes.sizes[a] + shapes.sizes[b]) * joint - alone[a] - alone[b]
    offers = int(np.clip(judged // len(failed), 8, min(len(steps), OFFERED)))
    best = np.argpartition(cost, offers - 1, axis=1)[:, :offers] if offers < len(steps) else np.argsort(cost, axis=1)
    row, column = np.nonzero(np.isfinite(np.take_along_axis(cost, best, axis=1)))
    chosen = best[row, column]
    return failed[row], curve[there[row, chosen]], cost[row, chosen]

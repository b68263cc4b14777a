"""Refine: classes are cut in two as long as the rows of both halves keep every promise.

Where a plan had to allow for the worst rows, or a repair merged more than it needed, the actual rows often leave room. Each
round proposes one cut for every class that is large enough: through the middle of its rows along the column that loses most,
in the next round along the next column; ties are divided, so halves are even. All proposals are judged at once by the models,
and a cut is taken where both halves hold and lose less together. A class is done when no column of it can be cut. Cost: O(n
log n) per round, about as many rounds as columns times the logarithm of the largest class.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.kernels.boxes import Scales, box_losses, boxes, column_losses

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]


def refined(table: Table, partition: Partition, models: Sequence[Model], scales: Scales) -> Partition:
    """The partition with every cut that the promises allow; withheld rows stay withheld."""
    least = 2 * max([model.least_size for model in models] + [1])
    tries = np.zeros(partition.count, dtype=np.int64)  # columns tried since the class was last cut
    while True:
        sizes = np.bincount(partition.class_of[partition.class_of >= 0], minlength=partition.count)
        open_ = (sizes >= least) & (tries < table.quasi.shape[1])
        if not open_.any():
            return partition
        halves = _halves(table, partition, open_, tries, scales)
        taken = open_ & _both_hold(table, halves, models) & _lose_less(table, partition, halves, scales)
        tries = np.where(taken, 0, tries + open_)
        partition, tries = _cut(partition, halves, taken, tries)


def _halves(
    table: Table, partition: Partition, open_: NDArray[np.bool_], tries: NDArray[np.int64], scales: Scales
) -> Partition:
    """Every open class `c` as `2c` and `2c + 1`, cut along the column whose turn it is; the others stay `2c`."""
    lo, hi = boxes(table.quasi, partition.class_of, partition.count)
    turn = np.argsort(-column_losses(scales, lo, hi), axis=1, kind="stable")
    column = turn[np.arange(partition.count), np.minimum(tries, turn.shape[1] - 1)]
    class_of = np.where(partition.class_of >= 0, 2 * partition.class_of, -1)
    rows = np.flatnonzero((partition.class_of >= 0) & open_[partition.class_of])
    owner = partition.class_of[rows]
    code = table.quasi[rows, column[owner]]
    order = np.lexsort((code, owner))
    sizes = np.bincount(owner, minlength=partition.count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.arange(len(rows)) - starts[owner[order]]
    class_of[rows[order]] += place >= (sizes[owner[order]] + 1) // 2
    return Partition(class_of.astype(np.int32), 2 * partition.count)


def _both_hold(table: Table, halves: Partition, models: Sequence[Model]) -> Flags:
    classes = table.counted(halves)
    holds = np.ones(halves.count, dtype=bool)
    for model in models:
        holds &= model.holds(classes)
    return holds[0::2] & holds[1::2]


def _lose_less(table: Table, whole: Partition, halves: Partition, scales: Scales) -> Flags:
    losses = []
    for partition in (whole, halves):
        sizes = np.bincount(partition.class_of[partition.class_of >= 0], minlength=partition.count)
        losses.append(sizes * box_losses(scales, *boxes(table.quasi, partition.class_of, partition.count)))
    return losses[1][0::2] + losses[1][1::2] < losses[0] - 1e-12


def _cut(
    partition: Partition, halves: Partition, taken: NDArray[np.bool_], tries: NDArray[np.int64]
) -> tuple[Partition, NDArray[np.int64]]:
    """Cuts that were taken; the second half of a class becomes a new class behind all others."""
    fresh = partition.count + np.cumsum(taken) - 1
    second = (partition.class_of >= 0) & (halves.class_of % 2 == 1) & taken[partition.class_of]
    class_of = np.where(second, fresh[partition.class_of], partition.class_of).astype(np.int32)
    count = partition.count + int(taken.sum())
    return Partition(class_of, count), np.concatenate([tries, np.zeros(count - partition.count, dtype=np.int64)])

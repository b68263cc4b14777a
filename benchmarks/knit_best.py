"""The best partition of a tiny table, by looking at all of them: what Knit and others are measured against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from closeknit.core.geometry import scales
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.kernels.compiling import kernel
from closeknit.kernels.exchange.knit_guard import Guard, count_row, is_allowed
from closeknit.kernels.geometry.boxes import partition_loss
from closeknit.kernels.geometry.ranges import Costs, costs, range_cost
from closeknit.search.guards import LONGEST, guard_of

TINY = 16  # rows of which all sets are looked at


def guarded(table: Table, models: Sequence[Model]) -> Guard:
    """The guard of these guarantees, where it says neither less nor more than they do."""
    made = guard_of(table, models)
    long = any(model.bounds == "distance" and len(np.unique(table.secret(model.column)[0])) > LONGEST for model in models)
    if made.unguarded or long:
        raise ValueError("only for guarantees that a guard says exactly")
    return made.guard


def loss_of(table: Table, partition: Partition) -> float:
    """Mean loss of a row."""
    return float(partition_loss(scales(table), table.quasi, partition.class_of, partition.count))


def optimum(table: Table, models: Sequence[Model]) -> Partition:
    """The partition of a tiny table that loses least, by looking at all sets of rows.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(8))
    >>> optimum(table, [ck.KAnonymity(4)]).count
    2
    """
    if len(table) > TINY:
        raise ValueError(f"only for {TINY} rows at most")
    return Partition.of(_best(costs(scales(table)), guarded(table, models), table.quasi))


@kernel
def _best(price_of: Costs, guard: Guard, quasi: NDArray[np.int32]) -> NDArray[np.int32]:
    """Sets of rows as bits; the class of the lowest row of a set is chosen, what is left is a smaller set."""
    n, d = quasi.shape
    price, no_persons = np.full(1 << n, np.inf), np.zeros(len(guard.parent), np.int32)
    for rows in range(1, 1 << n):
        under, size = np.zeros((1, len(guard.parent)), np.int32), 0
        lo, hi = np.full(d, 1 << 30, np.int32), np.full(d, -1, np.int32)
        for r in range(n):
            if rows >> r & 1:
                size += 1
                count_row(guard, under, 0, r, 1)
                lo, hi = np.minimum(lo, quasi[r]), np.maximum(hi, quasi[r])
        if is_allowed(guard, under, 0, no_persons, 1, size):
            price[rows] = 0.0
            for j in range(d):
                price[rows] += size * range_cost(price_of, j, lo[j], hi[j])
    least, chosen = np.full(1 << n, np.inf), np.zeros(1 << n, np.int64)
    least[0] = 0.0
    for rows in range(1, 1 << n):
        lowest = rows & -rows
        rest = rows ^ lowest
        some = rest
        while True:  # every subset of the rest, down to none
            total = price[some | lowest] + least[rest ^ some]
            if total < least[rows]:
                least[rows], chosen[rows] = total, some | lowest
            if some == 0:
                break
            some = (some - 1) & rest
    class_of, left, c = np.zeros(n, np.int32), (1 << n) - 1, 0
    while left:
        for r in range(n):
            if chosen[left] >> r & 1:
                class_of[r] = c
        left, c = left ^ chosen[left], c + 1
    return class_of

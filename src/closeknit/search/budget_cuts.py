"""Budgets: where a guarantee limits what all classes spend together, cuts are made while the budget lasts.

An average risk r allows r n classes, whatever their sizes. Classes of 1/r rows each use it up, yet the same number of classes
can lose less: rows in dense places share a class at little cost, and an outlier in a class of its own saves much. So every
class has its best cut, with what it saves and what it spends, and the cuts that save most are made first. Then the cheapest
pairs of classes are merged, the budget that this frees is spent again where it saves most, and rows are exchanged, as long as
this pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import numpy as np
from numpy.typing import NDArray

from closeknit.core.exact import fraction
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.kernels.geometry.boxes import Scales, box_losses, boxes
from closeknit.search.knit_state import KnitState
from closeknit.search.refine import offer_first_cuts
from closeknit.search.repair import merge_cheapest
from closeknit.search.row_exchange import exchange_rows

LEAST = 1e-9  # loss that a cut has to save
MERGED = 16  # one of so many classes is merged in a cycle
SWEEPS = 2  # of each cycle

Counts = NDArray[np.int64]
Reals = NDArray[np.float64]


def spend_budgets(
    table: Table, partition: Partition, models: Sequence[Model], budgets: Sequence[Model], geometry: Scales
) -> Partition:
    """The partition with the cuts that save most, while the budgets last.

    Args:
        table: the rows.
        partition: their classes, within the budgets.
        models: the guarantees that each class has to meet.
        budgets: the guarantees on what all classes spend.
        geometry: scales of the columns.

    >>> import closeknit as ck
    >>> from closeknit.core.geometry import scales
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(60))
    >>> whole = Partition(np.zeros(60, dtype=np.int32), 1)
    >>> spend_budgets(table, whole, [], [ck.AverageRisk(0.2)], scales(table)).count
    12
    """
    while True:
        chosen, side_of = offer_first_cuts(table, partition, models, geometry)
        if len(chosen) == 0:
            return partition
        saved = _sum_losses(table, partition.class_of, partition.count, geometry)[chosen]
        saved -= _sum_losses(table, side_of, 2 * len(chosen), geometry).reshape(-1, 2).sum(axis=1)
        costs, room = _measure_spending(table, partition, chosen, side_of, budgets)
        taken = _choose_cuts(saved, costs, room)
        cut = Partition.of(np.where(np.isin(side_of // 2, taken), partition.count + side_of, partition.class_of))
        if len(taken) == 0 or not within_budgets(table, cut, budgets):  # a person on both sides may spend more
            return partition
        partition = cut


def improve_within(
    knit_state: KnitState,
    partition: Partition,
    models: Sequence[Model],
    budgets: Sequence[Model],
    cycles: int,
    seed: Sequence[int],
) -> Partition:
    """The partition after so many cycles of merging, cutting and exchanging, each of which is kept only if it loses less.

    Args:
        knit_state: the table, with a guard of the guarantees that each class has to meet.
        partition: its classes, within the budgets.
        models: the guarantees that each class has to meet.
        budgets: the guarantees on what all classes spend.
        cycles: how many.
        seed: of the random choices.
    """
    table, best, rng = knit_state.table, partition, np.random.default_rng([*seed, 16])
    for cycle in range(cycles + 1):
        tried = best
        if cycle:
            some = rng.random(best.count) < 0.5  # other pairs each time
            merged = merge_cheapest(table, best, some if some.any() else ~some, max(best.count // MERGED, 1))
            tried = spend_budgets(table, merged, models, budgets, knit_state.scales)
        tried = exchange_rows(knit_state, tried, SWEEPS, 0.0, rng)
        if knit_state.loss(tried) < knit_state.loss(best) and within_budgets(table, tried, budgets):
            best = best if knit_state.find_broken(tried).any() else tried
    return best


def within_budgets(table: Table, partition: Partition, budgets: Sequence[Model]) -> bool:
    """Whether all classes together spend no more than every budget allows.

    Args:
        table: the rows.
        partition: their classes.
        budgets: the guarantees.
    """
    classes = table.count_classes(partition)
    return all(model.holds_together(classes) for model in budgets)


def _sum_losses(table: Table, class_of: NDArray[np.int32], count: int, geometry: Scales) -> Reals:
    """What the rows of each class lose together."""
    lo, hi = boxes(table.quasi, class_of, count)
    sums: Reals = box_losses(geometry, lo, hi) * np.bincount(class_of[class_of >= 0], minlength=count)
    return sums


def _measure_spending(
    table: Table, partition: Partition, chosen: Counts, side_of: NDArray[np.int32], budgets: Sequence[Model]
) -> tuple[Counts, Counts]:
    """What each cut spends of every budget, [budgets, cuts], and what is left of each."""
    before, after = table.count_classes(partition), table.count_classes(Partition(side_of, 2 * len(chosen)))
    costs, room = [], []
    for model in budgets:
        spent = model.spend(before)
        limit = fraction(model.limit_field, getattr(model, model.limit_field))
        costs.append(model.spend(after).reshape(-1, 2).sum(axis=1) - spent[chosen])
        room.append(floor(limit * int(before.persons.sum())) - int(spent.sum()))
    return np.stack(costs), np.array(room)


def _choose_cuts(saved: Reals, costs: Counts, room: Counts) -> Counts:
    """Cuts that cost nothing, and the better half of those that the budgets allow: the others may be better next time."""
    price = np.maximum(costs, 0).sum(axis=0)
    useful = np.flatnonzero(saved > LEAST)
    free, dear = useful[price[useful] == 0], useful[price[useful] > 0]
    dear = dear[np.argsort(-saved[dear] / price[dear], kind="stable")]
    allowed = (np.cumsum(costs[:, dear], axis=1) <= room[:, None]).all(axis=0)
    first = len(dear) if allowed.all() else int(np.argmin(allowed))
    if first == 0 and len(dear):  # the best one is too dear: the best of those that are not
        dear = dear[(costs[:, dear] <= room[:, None]).all(axis=0)][:1]
        first = len(dear)
    return np.concatenate([free, dear[: (first + 1) // 2]])

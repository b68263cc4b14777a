"""Exchange over whole partitions: sweeps over all rows, and a judge for guarantees that the guard does not cover.

Without such guarantees the guard's word is enough, and changes build on one another. With them every class is changed at most
once in a sweep; then the models judge, and a change after which one of its two classes does not meet a guarantee is undone.
"""

from __future__ import annotations

import numpy as np

from closeknit.core.table import Partition
from closeknit.kernels.exchange.class_state import State, state_of
from closeknit.kernels.exchange.knit_exchange import WIDTH, sweep
from closeknit.kernels.geometry.boxes import Codes
from closeknit.kernels.threads import in_threads
from closeknit.search.knit_state import KnitState

GROUPS, FEWEST = 2, 256  # parts that are swept at the same time, and classes of each
OF_NEW, FEW_NEW = 8, 4  # there may be an eighth more classes than before, and four


def exchange_rows(knit_state: KnitState, partition: Partition, sweeps: int, heat: float, rng: np.random.Generator) -> Partition:
    """The partition after so many sweeps; without heat it loses at most as much as before.

    >>> import closeknit as ck
    >>> from closeknit.search.guards import guard_of
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(60))
    >>> knit_state = KnitState.of(table, guard_of(table, [ck.KAnonymity(4)]).guard, [])
    >>> dealt = Partition((np.arange(60) % 15).astype(np.int32), 15)
    >>> knit_state.loss(exchange_rows(knit_state, dealt, 4, 0.0, np.random.default_rng(1))) < 0.7 * knit_state.loss(dealt)
    True
    """
    class_of, once = partition.class_of.astype(np.int32), bool(knit_state.unguarded)
    classes = partition.count if once else partition.count + partition.count // OF_NEW + FEW_NEW
    state = state_of(knit_state.costs, knit_state.guard, knit_state.table.quasi, class_of, classes)
    for i in range(sweeps):
        before = state.class_of.copy() if once else state.class_of
        _sweep_rows(knit_state, state, heat, once, rng, i % 2 == 0)
        if once:
            now = state.class_of
            broken = knit_state.find_broken(Partition(now, partition.count))
            kept = np.where(broken[before] | broken[now], before, now)
            state = state_of(knit_state.costs, knit_state.guard, knit_state.table.quasi, kept, partition.count)
    return Partition.of(state.class_of)


def _sweep_rows(knit_state: KnitState, state: State, heat: float, once: bool, rng: np.random.Generator, rebuild: bool) -> None:
    """One sweep, in groups of classes; how many groups there are depends on the classes alone."""
    groups = int(np.clip(len(state.size) // FEWEST, 1, GROUPS))
    lost = knit_state.column_losses(state) if knit_state.quick else None
    order, visit = knit_state.row_order(rng, lost), rng.permutation(len(state.class_of)).astype(np.int32)
    group = _group_classes(state, order, groups)
    seeds = rng.integers(1 << 62, size=groups).tolist()

    def one(mine: int) -> int:
        shared, seed = (knit_state.costs, knit_state.guard, knit_state.buckets), seeds[mine]
        return int(sweep(*shared, state, order, visit, group, mine, WIDTH, heat, once, seed, rebuild))

    in_threads(one, range(groups))


def _group_classes(state: State, order: Codes, groups: int) -> Codes:
    """Divide the classes into groups with as many rows to visit: classes that share neighbours in `order` share a group."""
    rows = order[state.class_of[order] >= 0]
    places = np.bincount(state.class_of[rows], weights=np.arange(len(rows)), minlength=len(state.size))
    line = np.argsort(places / np.maximum(state.size, 1), kind="stable")
    visited = np.cumsum(np.where(state.loss[line] > 0, state.size[line], 0))
    group = np.empty(len(line), dtype=np.int32)
    group[line] = visited * groups // (visited[-1] + 1)
    empty = np.flatnonzero(state.size == 0)
    group[empty] = np.arange(len(empty)) % groups
    return group

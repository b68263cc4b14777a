"""Peeling: a start for the guarantees that a cut cannot serve well: narrow classes for most rows, and a rest that is cut.

A cut needs both of its sides allowed at every level, so one frequent value in a corner of the table keeps all rows around it in
wide classes, and so does one rare value anywhere. Peeling works from the bottom up.
1. Where values have caps, rows of rare values are absorbed, the rarest value first: a box grows around each such row until it
   has enough other rows (`kernels.cutting.absorbing`).
2. The other rows are cut into classes of little more than k rows by the quasi-identifiers alone. Each keeps the largest part
   that the guarantees allow (`kernels.cutting.peeling`) and gives the other rows back. What is left is peeled again in larger
   and larger classes.
3. The rest is a class like any other. Classes are dissolved until it is allowed; then it is cut with care.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from closeknit.core.table import Partition
from closeknit.kernels.cutting.absorbing import absorb_row
from closeknit.kernels.cutting.peeling import measure_gains, peel_classes
from closeknit.kernels.exchange.class_state import state_of
from closeknit.kernels.exchange.knit_guard import CAPS, Buckets, Guard
from closeknit.kernels.geometry.boxes import Codes
from closeknit.models.k_anonymity import KAnonymity
from closeknit.search.careful_cuts import cut
from closeknit.search.guards import tighten_guard
from closeknit.search.knit_state import KnitState
from closeknit.search.refine import refine_partition
from closeknit.search.row_exchange import exchange_rows

SIZES = (1.2, 2, 4, 8, 16, 32)  # rows of a class in each turn, times k
FEWEST = 5  # instead of a smaller k
RARE = 1.5  # a value is absorbed where one row of it asks for a class of more than so many times k rows
WORK = 1 << 26  # rows looked at around all rows that are absorbed
COUNTED = 1 << 29  # nodes looked at in one turn of peeling: classes of many values have fewer turns
SLACK = 0.85  # share of the room that the first cuts of the rest may use


def peel(knit_state: KnitState, rng: np.random.Generator) -> Partition:
    """Classes that the guard allows; one of all rows where nothing else is.

    >>> import closeknit as ck
    >>> from closeknit.search.guards import guard_of
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(200))
    >>> guard = guard_of(table, [ck.KAnonymity(4), ck.BetaLikeness("disease", 2)]).guard
    >>> parts = peel(KnitState.of(table, guard, []), np.random.default_rng(1))
    >>> parts.count > 5, int(np.bincount(parts.class_of).min()) >= 4
    (True, True)
    """
    class_of = _absorb(knit_state)
    for times in SIZES:
        size = int(times * max(knit_state.guard.k, FEWEST))
        free = np.count_nonzero(class_of < 0)
        if free >= size and free * min(size, len(knit_state.buckets.sample)) * len(knit_state.guard.parent) <= COUNTED:
            class_of = _peel_once(knit_state, class_of, size, rng)
    rest, class_of = _release(knit_state, Partition.of(class_of))
    cuts = cut(knit_state, cut(knit_state, rest, tighten_guard(knit_state.guard, SLACK)), knit_state.guard)
    return Partition.of(np.where(class_of < 0, cuts.class_of, class_of + cuts.count))


def _peel_once(knit_state: KnitState, class_of: Codes, size: int, rng: np.random.Generator) -> Codes:
    """Free rows in classes of about so many rows, each without what the guarantees do not allow."""
    n, guard, table = len(class_of), knit_state.guard, knit_state.table
    single = Buckets(np.zeros(n, np.int32), np.zeros(1, np.int32))
    blind = replace(knit_state, guard=_without_views(guard, size), buckets=single)
    free = Partition(np.where(class_of < 0, 0, -1).astype(np.int32), 1)
    small = exchange_rows(blind, refine_partition(table, free, [KAnonymity(size)], knit_state.scales), 1, 0.0, rng)
    rows = np.argsort(small.class_of, kind="stable").astype(np.int32)[np.count_nonzero(small.class_of < 0) :]
    starts = np.searchsorted(small.class_of[rows], np.arange(small.count + 1)).astype(np.int64)
    kept = rows[peel_classes(knit_state.costs, guard, knit_state.buckets, table.quasi, rows, starts)]
    class_of = class_of.copy()
    class_of[kept] = small.class_of[kept] + class_of.max() + 1
    return class_of


def _release(knit_state: KnitState, peeled: Partition) -> tuple[Partition, Codes]:
    """The rest as one class that is allowed, after classes were dissolved into it; and the class of each other row."""
    goes = np.append(np.zeros(peeled.count, dtype=bool), True)
    class_of = np.where(peeled.class_of < 0, peeled.count, peeled.class_of).astype(np.int32)
    state = state_of(knit_state.costs, knit_state.guard, knit_state.table.quasi, class_of, peeled.count + 1)
    while state.size[goes].sum() > 0:
        gains = measure_gains(knit_state.guard, state.under, state.size, goes)
        if len(gains) == 0:
            break
        left = np.flatnonzero(~goes)
        goes[left[np.argsort(-gains[left], kind="stable")[: 1 + np.count_nonzero(goes) // 8]]] = True
    gone = goes[class_of]
    return Partition(np.where(gone, 0, -1).astype(np.int32), int(gone.any())), np.where(gone, -1, class_of)


def _absorb(knit_state: KnitState) -> Codes:
    """Classes around the rows of rare values; -1: in none yet."""
    guard, table, buckets = knit_state.guard, knit_state.table, knit_state.buckets
    class_of = np.full(len(table), -1, dtype=np.int32)
    if guard.kind.tolist() != [CAPS] or guard.low_num.any():
        return class_of
    node = guard.node[buckets.sample, 0]
    num, den = guard.cap_num[node], np.maximum(guard.cap_den[node], 1)
    least = np.maximum(-(-den // np.maximum(num, 1)), guard.k)
    order = np.lexsort(table.quasi.T[::-1])  # a class takes rows whose cells are alike
    quasi, value, free = np.ascontiguousarray(table.quasi[order]), buckets.of[order], np.ones(len(table), dtype=bool)
    each = len(table) + table.quasi.shape[1] * (int(knit_state.scales.size.max()) + 1) * len(num)
    work, count = WORK, 0
    for v in np.argsort(-least, kind="stable").tolist():
        seeds = np.flatnonzero(value == v)
        work -= each * len(seeds)
        if least[v] <= RARE * max(guard.k, FEWEST) or work < 0:
            break
        size, most = int(least[v]), num * least[v] // den
        most[v] = 1
        for seed in seeds.tolist():
            rows = absorb_row(knit_state.costs, quasi, value, free, most, seed, size) if free[seed] else order[:0]
            if len(rows) == size:
                class_of[order[rows]], free[rows] = count, False
                count += 1
    return class_of


def _without_views(guard: Guard, k: int) -> Guard:
    """A guard of class sizes alone."""
    none = np.empty(0, np.int64)
    return guard._replace(
        k=k, node=guard.node[:, :0], start=np.zeros(1, np.int64), kind=none, parent=none, leaf=none, weight=none, rows=none,
        most=guard.most[:0], cap_num=none, cap_den=none, low_num=none, low_den=none, values=none, entropy=np.empty(0),
    )  # fmt: skip

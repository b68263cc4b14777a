"""Careful cuts of whole partitions: every class cut as far as it pays, and neighbouring classes pooled and cut again.

The cuts themselves are in `kernels.knit_cuts`. Classes are cut independently of one another, so they may be cut in threads.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from closeknit.core.table import Partition
from closeknit.kernels.cutting.knit_cuts import cut_classes
from closeknit.kernels.exchange.knit_guard import Guard
from closeknit.kernels.geometry.boxes import Codes, Ints
from closeknit.kernels.threads import in_threads
from closeknit.search.knit_state import KnitState

GAIN = 1e-9
PARTS, FEW = 8, 4096  # parts of the rows that are cut in threads, and rows that are not worth it


def cut(knit_state: KnitState, partition: Partition, guard: Guard, enough: int = 1) -> Partition:
    """The partition with every cut that pays and that the guard allows, of classes with more than `enough` rows.

    Rows of class -1 are in no class.

    >>> import closeknit as ck
    >>> from closeknit.search.guards import guard_of
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(60))
    >>> guard = guard_of(table, [ck.KAnonymity(4)]).guard
    >>> whole = Partition(np.zeros(60, dtype=np.int32), 1)
    >>> parts = cut(KnitState.of(table, guard, []), whole, guard)
    >>> parts.count > 5, int(np.bincount(parts.class_of).min()) >= 4
    (True, True)
    """
    rows = np.argsort(partition.class_of, kind="stable").astype(np.int32)
    starts = np.searchsorted(partition.class_of[rows], np.arange(partition.count + 1)).astype(np.int64)
    return _cut(knit_state, guard, rows, starts, enough)


def recut(knit_state: KnitState, partition: Partition, pooled: int, rng: np.random.Generator) -> Partition:
    """Runs of `pooled` classes along a curve are joined and cut again; what loses less stays."""
    pool = np.empty(partition.count, dtype=np.int64)
    pool[knit_state.class_order(partition, rng)] = (np.arange(partition.count) + int(rng.integers(pooled))) // pooled
    pool -= pool.min()
    joined = Partition(pool[partition.class_of].astype(np.int32), int(pool.max()) + 1)
    recut_classes = cut(knit_state, joined, knit_state.guard)
    owner = np.empty(recut_classes.count, dtype=np.int64)
    owner[recut_classes.class_of] = joined.class_of
    before = np.bincount(pool, weights=knit_state.losses(partition), minlength=joined.count)
    after = np.bincount(owner, weights=knit_state.losses(recut_classes), minlength=joined.count)
    better = after < before - GAIN
    better[owner[knit_state.find_broken(recut_classes)]] = False
    return Partition.of(np.where(better[joined.class_of], recut_classes.class_of + partition.count, partition.class_of))


def _cut(knit_state: KnitState, guard: Guard, rows: Codes, starts: Ints, enough: int) -> Partition:
    """In threads; numbered as if there were one."""
    parts = PARTS if len(rows) > FEW else 1
    ends = np.searchsorted(starts, np.linspace(0, len(rows), parts + 1)[1:-1]).tolist()
    pieces = list(pairwise(sorted({0, len(starts) - 1, *ends})))

    def cut_part(piece: tuple[int, int]) -> tuple[Codes, int]:
        first, end = starts[piece[0]], starts[piece[1]]
        places = starts[piece[0] : piece[1] + 1] - first
        return cut_classes(knit_state.costs, guard, knit_state.buckets, knit_state.table.quasi, rows[first:end], places, enough)

    class_of, count = np.full(len(rows), -1, dtype=np.int32), 0
    for (a, b), (found, classes) in zip(pieces, in_threads(cut_part, pieces), strict=True):
        class_of[rows[starts[a] : starts[b]]] = found + count
        count += classes
    return Partition(class_of, count)

"""Careful cuts of whole partitions: every class cut as far as it pays, and neighbouring classes pooled and cut anew.

The cuts themselves are in `kernels.knit_cuts`. Classes are cut independently of one another, so they may be cut in threads.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from closeknit.core.table import Partition
from closeknit.fills.loom import THREADS, Loom
from closeknit.kernels.boxes import Codes, Ints
from closeknit.kernels.knit_cuts import careful
from closeknit.kernels.knit_guard import Guard

GAIN = 1e-9


def cut(loom: Loom, partition: Partition, guard: Guard) -> Partition:
    """The partition with every cut that pays and that the guard allows; no row may be withheld.

    >>> import closeknit as ck
    >>> from closeknit.plans.guards import guard_of
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(60))
    >>> guard = guard_of(table, [ck.KAnonymity(4)]).guard
    >>> whole = Partition(np.zeros(60, dtype=np.int32), 1)
    >>> parts = cut(Loom.of(table, guard, []), whole, guard)
    >>> parts.count > 5, int(np.bincount(parts.class_of).min()) >= 4
    (True, True)
    """
    rows = np.argsort(partition.class_of, kind="stable").astype(np.int32)
    starts = np.searchsorted(partition.class_of[rows], np.arange(partition.count + 1)).astype(np.int64)
    return _cut(loom, guard, rows, starts)


def recut(loom: Loom, partition: Partition, guards: list[Guard], pooled: int, rng: np.random.Generator) -> Partition:
    """Runs of `pooled` classes along a curve are joined and cut anew by each guard in turn; what loses less stays."""
    pool = np.empty(partition.count, dtype=np.int64)
    pool[loom.class_order(partition, rng)] = (np.arange(partition.count) + int(rng.integers(pooled))) // pooled
    pool = np.unique(pool, return_inverse=True)[1]
    joined = Partition(pool[partition.class_of].astype(np.int32), int(pool.max()) + 1)
    anew = joined
    for guard in guards:
        anew = cut(loom, anew, guard)
    owner = np.empty(anew.count, dtype=np.int64)
    owner[anew.class_of] = joined.class_of
    before = np.bincount(pool, weights=loom.losses(partition), minlength=joined.count)
    after = np.bincount(owner, weights=loom.losses(anew), minlength=joined.count)
    better = after < before - GAIN
    better[owner[loom.broken(anew)]] = False
    return Partition.of(np.where(better[joined.class_of], anew.class_of + partition.count, partition.class_of))


def _cut(loom: Loom, guard: Guard, rows: Codes, starts: Ints) -> Partition:
    """In threads, a few parts for each; numbered as if there were one."""
    threads = min(THREADS, os.cpu_count() or 1, len(starts) - 1)
    ends = np.searchsorted(starts, np.linspace(0, len(rows), 2 * threads + 1 if threads > 1 else 2)).tolist()
    ends = sorted({0, len(starts) - 1, *ends[1:-1]})

    def part(a: int, b: int) -> tuple[Codes, int]:
        mine = rows[starts[a] : starts[b]]
        return careful(loom.costs, guard, loom.buckets, loom.table.quasi, mine, starts[a : b + 1] - starts[a])

    class_of, count = np.empty(len(rows), dtype=np.int32), 0
    with ThreadPoolExecutor(threads) as threads_:
        for (a, b), (found, classes) in zip(pairwise(ends), list(threads_.map(part, ends, ends[1:])), strict=True):
            class_of[rows[starts[a] : starts[b]]] = found + count
            count += classes
    return Partition(class_of, count)

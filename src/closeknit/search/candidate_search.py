"""A search over partitions: candidates are judged, repaired where they do not meet a guarantee, and the one that has the
least loss wins.

Safe whatever the candidates are, because only what was measured counts, never what a plan meant to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from closeknit.core.geometry import points, scales
from closeknit.core.method import Progress
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.kernels.geometry.boxes import partition_loss
from closeknit.search.refine import refine_partition
from closeknit.search.repair import find_broken_classes, repair_partition

HOPE = 2.5  # times: polishing and cutting have not lowered a loss by more


class Candidates:
    """Tries candidates and keeps the best one so far."""

    def __init__(self, table: Table, models: Sequence[Model], progress: Progress, what: str) -> None:
        self.table, self.models = table, models
        self.scales, self.points = scales(table), points(table)
        self.best: Partition | None = None
        self.loss = np.inf
        self.losses: list[float] = []  # of every candidate, after repair
        self.ended: Partition | None = None  # the best of those that were cut further
        self.end_loss = np.inf
        self._progress, self._what = progress, what

    def add(self, class_of: NDArray[np.int32], count: int) -> bool:
        """Judge one; whether it meets every guarantee before any repair."""
        self._progress(self._what, 0.8 - 0.6 * 0.8 ** (len(self.losses) + 1))
        holds, kept = self._repair_candidate(class_of, count)
        self.losses.append(self._loss(kept))
        if self.losses[-1] < self.loss:
            self.best, self.loss = kept, self.losses[-1]
        return holds

    def refine_best(self) -> Partition:
        """The best one, cut further wherever the guarantees allow it."""
        assert self.best is not None, "a method tries at least one candidate"
        return refine_partition(self.table, self.best, self.models, self.scales)

    def refine_whole(self) -> bool:
        """Cut one class of all rows as far as the guarantees allow, if it meets them itself; whether it does."""
        whole = Partition(np.zeros(len(self.table), dtype=np.int32), 1)
        holds = not find_broken_classes(self.table, whole, self.models).any()
        if holds:
            self._refine_candidate(whole)
        return holds

    def is_hopeless(self, class_of: NDArray[np.int32], count: int) -> bool:
        """Whether one loses so much that it will hardly end below what has ended."""
        return self.ended is not None and self._loss(Partition(class_of, count)) > HOPE * self.end_loss

    def choose_best(self, starts: Iterable[tuple[NDArray[np.int32], int]]) -> Partition:
        """The best one or one of these, repaired and cut further, whichever ends best: it need not be what begins best."""
        for start in chain([] if self.best is None else [self.best], (self._repair_candidate(*start)[1] for start in starts)):
            self._refine_candidate(start)
        assert self.ended is not None, "a method tries at least one candidate"
        return self.ended

    def _refine_candidate(self, partition: Partition) -> None:
        ended = refine_partition(self.table, partition, self.models, self.scales)
        loss = self._loss(ended)
        if loss < self.end_loss:
            self.ended, self.end_loss = ended, loss

    def _repair_candidate(self, class_of: NDArray[np.int32], count: int) -> tuple[bool, Partition]:
        """Whether it meets every guarantee, and it or what a repair makes of it."""
        partition = Partition(class_of, count)
        holds = not find_broken_classes(self.table, partition, self.models).any()
        return holds, partition if holds else repair_partition(self.table, partition, self.models)

    def _loss(self, partition: Partition) -> float:
        return float(partition_loss(self.scales, self.table.quasi, partition.class_of, partition.count))

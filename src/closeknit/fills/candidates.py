"""A search over partitions: candidates are judged, repaired where they break a promise, and the one that loses least wins.

Safe whatever the candidates are, because only what was measured counts, never what a plan meant to do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from closeknit.core.geometry import points, scales
from closeknit.core.method import Progress
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.fills.refine import refined
from closeknit.fills.repair import failing, repaired
from closeknit.kernels.boxes import partition_loss


class Candidates:
    """Tries candidates and keeps the best one so far."""

    def __init__(self, table: Table, models: Sequence[Model], progress: Progress, what: str) -> None:
        self.table, self.models = table, models
        self.scales, self.points = scales(table), points(table)
        self.best: Partition | None = None
        self.kept: list[Partition] = []
        self.loss = np.inf
        self.tried = 0
        self._progress, self._what = progress, what

    def add(self, class_of: NDArray[np.int32], count: int, keep: bool = False) -> bool:
        """Judge one; whether it kept every promise as it was, before any repair. `keep`: it runs to the end beside the best."""
        self.tried += 1
        self._progress(self._what, 0.8 - 0.6 * 0.8**self.tried)
        partition = Partition(class_of, count)
        holds = not failing(self.table, partition, self.models).any()
        kept = partition if holds else repaired(self.table, partition, self.models)
        loss = self._loss(kept)
        self.kept += [kept] if keep else []
        if loss < self.loss:
            self.best, self.loss = kept, loss
        return holds

    def finished(self) -> Partition:
        """The best one, cut further wherever the promises allow it; or a kept one, should that end up losing less."""
        assert self.best is not None, "a method tries at least one candidate"
        starts = [self.best, *(kept for kept in self.kept if kept is not self.best)]
        return min((refined(self.table, start, self.models, self.scales) for start in starts), key=self._loss)

    def _loss(self, partition: Partition) -> float:
        return float(partition_loss(self.scales, self.table.quasi, partition.class_of, partition.count))

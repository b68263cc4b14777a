"""Suppression: rows far from all others in their class are left out, where the table's loss falls by it.

A suppressed row counts as loss 1, so leaving one out pays only where it blows up the box of its class. Rows are chosen by
their quasi-identifiers alone, never for their sensitive attribute: in rounds, of each class the row that saves most, the
costliest first, until none saves anything or no more may be suppressed. The rest has another reference than the whole, so
whoever calls this judges every class of it again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.core.geometry import scales
from closeknit.core.table import Partition, Table
from closeknit.kernels.geometry.outliers import savings

GAIN = 1e-9  # rounding of sums is no saving
ROUNDS = 64  # rows that one class can lose


def without_outliers(table: Table, partition: Partition) -> Partition:
    """The partition with at most `table.suppressible` rows of it at -1; itself where none would save anything."""
    geometry, class_of = scales(table), partition.class_of.copy()
    alone = _alone(table)
    left = table.suppressible - int((class_of < 0).sum())
    for _ in range(ROUNDS):
        sizes = np.bincount(class_of[class_of >= 0], minlength=partition.count)
        saved = np.where(alone, savings(table.quasi, geometry, class_of, sizes), -np.inf)
        order = np.lexsort((-saved, class_of))  # of each class its best row first
        first = order[np.flatnonzero(np.diff(class_of[order], prepend=-2))]
        best = first[(class_of[first] >= 0) & (saved[first] > GAIN)]
        if left <= 0 or len(best) == 0:
            break
        best = best[np.argsort(-saved[best], kind="stable")][:left]
        class_of[best] = -1
        left -= len(best)
    return Partition.of(class_of)


def _alone(table: Table) -> NDArray[np.bool_]:
    """Rows of persons who have no other row: of several rows none is left out, they stay together."""
    if table.persons is None:
        return np.ones(len(table), dtype=bool)
    _, person_of, rows = np.unique(table.persons, return_inverse=True, return_counts=True)
    return rows[person_of] == 1

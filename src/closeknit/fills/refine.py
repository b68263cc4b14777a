"""Refine: classes are cut in two as long as both sides keep every promise.

Where a plan had to allow for the worst rows, or a repair merged more than it needed, the actual rows often leave room; and a
class of everything leaves all of it, which is Mondrian. Each round offers every open class its cuts in order, and it takes the
first that no model vetoes; a class that none is left for is closed and not looked at again. All classes are judged at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.errors import Unsatisfiable
from closeknit.core.joint import Secret
from closeknit.core.method import Progress, silent
from closeknit.core.model import Model, least_rows
from closeknit.core.table import Partition, Table
from closeknit.core.tree import Int32
from closeknit.kernels.boxes import Scales
from closeknit.kernels.cuts import offers
from closeknit.kernels.cutting import count_sides, divided, mark

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Cuts:
    """Which are offered: through ties or not, the middle or several, of the widest column first or of all by their loss."""

    relaxed: bool = True
    best: bool = True
    try_all: bool = True


def root_holds(table: Table, models: Sequence[Model]) -> bool:
    """One class of everything has to keep every promise, or cuts have nothing to start from."""
    root = table.one_class()
    for model in models:
        if not model.holds(root).all():
            if table.persons is not None:  # one row stands for each person here: all rows are judged at the end
                return False
            domain = root.histograms[model.column].domain if model.column else None
            reached = f"the whole table as one class reaches {model.levels(root)[0]:.6g}"
            hint = f"asked was {model.asked}, and cuts start from one class; ask for less"
            raise Unsatisfiable(model.describe(domain), reached, hint)
    return True


def refined(table: Table, partition: Partition, models: Sequence[Model], geometry: Scales, cuts: Cuts | None = None,
            progress: Progress = silent) -> Partition:  # fmt: skip
    """The partition with every cut that the promises allow; its classes keep them. Withheld rows stay withheld."""
    k, way = max(least_rows(models), 1), cuts or Cuts()
    if np.bincount(partition.class_of[partition.class_of >= 0]).max(initial=0) < 2 * k:
        return partition  # nothing is large enough: a plan for k often leaves it so
    class_of, count = np.full(len(table), -1, dtype=np.int32), 0
    open_ = _Open.of(table, partition, models)
    while len(open_.rows):
        progress("cutting", 0.8 - 0.6 * len(open_.rows) / len(table))
        at, offered = offers(geometry, open_.quasi, open_.starts, k, way.relaxed, way.best, way.try_all)
        cut, left = _first_allowed(open_, at, offered, models)
        count = _close(open_, np.flatnonzero(~cut), class_of, count)
        open_ = open_.cut(np.flatnonzero(cut), left)
    return Partition(class_of, count)


def _first_allowed(open_: _Open, at: Counts, cuts: Int32, models: Sequence[Model]) -> tuple[Flags, Flags]:
    """Which classes are cut, and who of their rows goes left: each class takes the first of its cuts that no model vetoes."""
    left = np.zeros(len(open_.rows), dtype=bool)
    cut = np.zeros(len(at) - 1, dtype=bool)
    turn = at[:-1].copy()
    waiting = np.flatnonzero(turn < at[1:])
    while len(waiting):
        sizes = mark(open_.quasi, open_.starts, waiting, cuts[turn[waiting]], left)
        sides = open_.sides(waiting, left, sizes)
        holds = np.ones(len(sides), dtype=bool)
        for model in models:
            holds &= model.holds(sides)
        both = holds[0::2] & holds[1::2]
        cut[waiting] = both
        turn[waiting] += 1
        waiting = waiting[~both & (turn[waiting] < at[waiting + 1])]
    return cut, left


def _close(open_: _Open, done: Counts, class_of: Int32, count: int) -> int:
    """Numbers the classes that are not cut further; how many there are then."""
    sizes = open_.sizes[done]
    class_of[open_.rows_of(done)] = count + np.repeat(np.arange(len(done)), sizes)
    return count + len(done)


@dataclass(frozen=True, eq=False)
class _Open:
    """Classes that may still be cut, and copies of their rows' cells, class by class: what is closed is not looked at again."""

    rows: Counts  # of the table
    starts: Counts
    quasi: Int32
    secrets: dict[Secret, Int32]  # those that a promise speaks of
    persons: Counts | None  # None where every row is a person of its own
    by_person: frozenset[Secret]  # secrets of which persons are counted, not rows
    counted: Classes

    @classmethod
    def of(cls, table: Table, partition: Partition, models: Sequence[Model]) -> _Open:
        """Every class of a partition."""
        names = dict.fromkeys(model.column for model in models if model.column is not None)
        several = table.persons is not None and len(np.unique(table.persons)) < len(table)
        kept = np.flatnonzero(partition.class_of >= 0)
        rows = kept[np.argsort(partition.class_of[kept], kind="stable")]
        return cls(
            rows, np.searchsorted(partition.class_of[rows], np.arange(partition.count + 1)), table.quasi[rows],
            {name: table.secret(name)[0][rows] for name in names},
            table.persons[rows] if several and table.persons is not None else None,
            frozenset(model.column for model in models if model.column is not None and "persons" in model.needs),
            table.counted(partition),
        )  # fmt: skip

    @property
    def sizes(self) -> Counts:
        return np.diff(self.starts)

    def rows_of(self, classes: Counts) -> Counts:
        """The table's rows of these classes, class by class."""
        mine = np.zeros(len(self.starts) - 1, dtype=bool)
        mine[classes] = True
        return self.rows[np.repeat(mine, self.sizes)]

    def sides(self, classes: Counts, left: Flags, sizes: Counts) -> Classes:
        """Left and right side of each class, in turns, as the models see them; `sizes` of the left ones."""
        both = np.stack([sizes, self.sizes[classes] - sizes], axis=1).ravel()
        histograms = {name: self._histogram(name, classes, left) for name in self.secrets}
        if self.persons is None:
            return Classes(both, both, histograms)
        places, starts = divided(self.starts, classes, left)
        side_of = np.repeat(np.arange(len(both), dtype=np.int32), np.diff(starts))
        secrets = {name: (self.secrets[name][places], histograms[name].domain) for name in self.by_person}
        # a person may stand on both sides: no subtraction
        heads = Classes.of(side_of, len(both), secrets, self.persons[places])
        by_person = {name: replace(h, reference=histograms[name].reference) for name, h in heads.by_person.items()}
        return replace(heads, histograms=histograms, by_person=by_person)

    def _histogram(self, name: Secret, classes: Counts, left: Flags) -> Histogram:
        whole = self.counted.histograms[name]
        width = len(whole.reference)
        sides = count_sides(self.starts, classes, left, self.secrets[name], whole.starts, whole.values, whole.counts, width)
        return Histogram(*sides, whole.reference, whole.domain)

    def cut(self, classes: Counts, left: Flags) -> _Open:
        """Both sides of these classes, and no others."""
        places, starts = divided(self.starts, classes, left)
        return _Open(
            self.rows[places], starts, self.quasi[places], {name: codes[places] for name, codes in self.secrets.items()},
            None if self.persons is None else self.persons[places], self.by_person,
            self.sides(classes, left, np.diff(starts)[0::2]),
        )  # fmt: skip

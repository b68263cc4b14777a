"""Refine: classes are cut in two as long as both sides meet every guarantee.

Where a plan had to allow for the worst rows, or a repair merged more than it needed, the actual rows often leave room; and a
class of everything leaves all of it, which is Mondrian. Each round offers every open class its cuts in order, and it takes the
first that no model vetoes; a class that none is left for is closed and not looked at again. All classes are judged at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram, parse_view
from closeknit.core.combined_secrets import Secret
from closeknit.core.errors import Unsatisfiable
from closeknit.core.method import Progress, ignore_progress
from closeknit.core.model import Model, least_rows
from closeknit.core.table import Partition, Table
from closeknit.core.tree import Int32
from closeknit.kernels.cutting.cut_offers import offers
from closeknit.kernels.cutting.cut_sides import count_sides, divide_rows, mark
from closeknit.kernels.geometry.boxes import Scales
from closeknit.kernels.threads import in_threads, spans

Counts = NDArray[np.int64]

WORTH_A_THREAD = 1 << 15  # rows
JUDGED = 1 << 21  # values counted in all sides that are judged at once


@dataclass(frozen=True)
class Cuts:
    """Which are offered: through ties or not, the middle or several, of the widest column first or of all by their loss."""

    relaxed: bool = True
    best: bool = True
    try_all: bool = True


def root_holds(table: Table, models: Sequence[Model]) -> bool:
    """One class of everything has to meet every guarantee, or cuts have nothing to start from."""
    root = table.one_class()
    for model in models:
        if not model.holds(root).all():
            if table.persons is not None:  # one row represents each person here: all rows are judged at the end
                return False
            domain = root.histograms[model.column].domain if model.column else None
            measured = f"the whole table as one class reaches {model.levels(root)[0]:.6g}"
            hint = f"{model.requested} is requested, and cuts start from one class; request less"
            raise Unsatisfiable(model.describe(domain), measured, hint)
    return True


def refine_partition(
    table: Table,
    partition: Partition,
    models: Sequence[Model],
    geometry: Scales,
    cuts: Cuts | None = None,
    progress: Progress = ignore_progress,
) -> Partition:
    """The partition with every cut that the guarantees allow; its classes meet them. Suppressed rows stay suppressed."""
    k, way = max(least_rows(models), 1), cuts or Cuts()
    if np.bincount(partition.class_of[partition.class_of >= 0]).max(initial=0) < 2 * k:
        return partition  # nothing is large enough: a plan for k often leaves it so
    class_of, count = np.full(len(table), -1, dtype=np.int32), 0
    open_ = OpenClasses.of(table, partition, models)
    while len(open_.rows):
        progress("cutting", 0.8 - 0.6 * len(open_.rows) / len(table))
        at, offered = offer_cuts(open_, geometry, k, way)
        chosen = _first_allowed(open_, at, offered, models)
        cut = chosen >= 0
        count = _close(open_, np.flatnonzero(~cut), class_of, count)
        open_ = open_.cut(np.flatnonzero(cut), offered[chosen[cut]])
    return Partition(class_of, count)


def offer_first_cuts(table: Table, partition: Partition, models: Sequence[Model], geometry: Scales) -> tuple[Counts, Int32]:
    """The classes that have a cut which no model vetoes, and the side of each row: 2i or 2i + 1 in the i-th of them, else -1.

    Args:
        table: the rows.
        partition: their classes.
        models: the guarantees that both sides have to meet.
        geometry: scales of the columns, for the loss: the cut with the least loss is the first.
    """
    open_, side_of = OpenClasses.of(table, partition, models), np.full(len(table), -1, dtype=np.int32)
    at, offered = offer_cuts(open_, geometry, max(least_rows(models), 1), Cuts())
    chosen = _first_allowed(open_, at, offered, models)
    classes = np.flatnonzero(chosen >= 0)
    if len(classes):
        sides = open_.cut(classes, offered[chosen[classes]])
        side_of[sides.rows] = np.repeat(np.arange(2 * len(classes)), sides.sizes)
    return classes, side_of


def offer_cuts(open_: OpenClasses, geometry: Scales, k: int, way: Cuts) -> tuple[Counts, Int32]:
    """Cuts of every class, as `offers` gives them."""

    def some(span: tuple[int, int]) -> tuple[Counts, Int32]:
        return offers(geometry, open_.quasi, open_.starts[span[0] : span[1] + 1], k, way.relaxed, way.best, way.try_all)

    found = in_threads(some, spans(open_.sizes, WORTH_A_THREAD))
    many = np.concatenate([np.diff(at) for at, _ in found])
    return np.concatenate([[0], np.cumsum(many)]), np.concatenate([cuts for _, cuts in found])


def _first_allowed(open_: OpenClasses, at: Counts, cuts: Int32, models: Sequence[Model]) -> Counts:
    """Which of the cuts each class takes, the first that no model vetoes; -1 where all are vetoed.

    More and more cuts of a class are judged at once: who is refused the first is often refused all.
    """
    chosen, turn, ahead = np.full(len(at) - 1, -1), at[:-1].copy(), 1
    waiting = np.flatnonzero(turn < at[1:])
    while len(waiting):
        many = np.minimum(at[waiting + 1] - turn[waiting], ahead)
        last = np.cumsum(many)
        lines = np.arange(last[-1]) + np.repeat(turn[waiting] - last + many, many)
        sides = open_.sides(np.repeat(waiting, many), cuts[lines])
        holds = np.ones(len(sides), dtype=bool)
        for model in models:
            holds &= model.holds(sides)
        allowed = np.flatnonzero(holds[0::2] & holds[1::2])[::-1]  # of one class the first is written last
        chosen[np.repeat(waiting, many)[allowed]] = lines[allowed]
        turn[waiting] += many
        waiting = waiting[(chosen[waiting] < 0) & (turn[waiting] < at[waiting + 1])]
        ahead = open_.ahead(waiting, 2 * ahead)
    return chosen


def _close(open_: OpenClasses, done: Counts, class_of: Int32, count: int) -> int:
    """Numbers the classes that are not cut further; how many there are then."""
    sizes = open_.sizes[done]
    class_of[open_.rows_of(done)] = count + np.repeat(np.arange(len(done)), sizes)
    return count + len(done)


@dataclass(frozen=True, eq=False)
class OpenClasses:
    """Classes that may still be cut, and copies of their rows' cells, class by class: what is closed is not looked at again."""

    rows: Counts  # of the table
    starts: Counts
    quasi: Int32
    secrets: dict[Secret, Int32]  # those that a guarantee is about
    persons: Counts | None  # None where every row is a person of its own
    by_person: frozenset[Secret]  # sensitive values of which persons are counted, not rows
    counted: Classes

    @classmethod
    def of(cls, table: Table, partition: Partition, models: Sequence[Model]) -> OpenClasses:
        """Every class of a partition."""
        names = dict.fromkeys(model.column for model in models if model.column is not None)
        several = table.persons is not None and len(np.unique(table.persons)) < len(table)
        inside = partition.list_rows()
        rows = inside.rows
        return cls(
            rows,
            inside.starts,
            table.quasi.take(rows, axis=0),
            {name: table.secret(name)[0][rows] for name in names},
            table.persons[rows] if several and table.persons is not None else None,
            frozenset(model.column for model in models if model.column is not None and "persons" in model.needs),
            table.count_classes(partition),
        )

    @property
    def sizes(self) -> Counts:
        return np.diff(self.starts)

    def rows_of(self, classes: Counts) -> Counts:
        """The table's rows of these classes, class by class."""
        mine = np.zeros(len(self.starts) - 1, dtype=bool)
        mine[classes] = True
        return self.rows[np.repeat(mine, self.sizes)]

    def ahead(self, classes: Counts, wanted: int) -> int:
        """How many cuts of each of these classes may be judged at once."""
        if self.persons is not None:
            return 1
        entries = sum(int(np.diff(h.starts)[classes].sum()) for h in self.counted.histograms.values())
        return max(1, min(wanted, JUDGED // max(entries, 1)))

    def sides(self, classes: Counts, cuts: Int32) -> Classes:
        """Left and right side of class `classes[i]` cut by `cuts[i]`, in turns, as the models see them."""
        if self.secrets:
            counted = {name: self._count_secret(name, classes, cuts) for name in self.secrets}
            histograms, sizes = {name: found[0] for name, found in counted.items()}, next(iter(counted.values()))[1]
        else:
            histograms, sizes = {}, mark(self.quasi, self.starts, classes, cuts, np.zeros(len(self.rows), dtype=bool))
        both = np.stack([sizes, self.sizes[classes] - sizes], axis=1).ravel()
        if self.persons is None:
            return Classes(both, both, histograms)
        places, starts = self.split_rows(classes, cuts)
        side_of = np.repeat(np.arange(len(both), dtype=np.int32), np.diff(starts))
        secrets = {name: (self.secrets[name][places], histograms[name].domain) for name in self.by_person}
        # a person may be on both sides: no subtraction
        heads = Classes.of(side_of, len(both), secrets, self.persons[places])
        by_person = {view: replace(h, reference=histograms[parse_view(view)].reference) for view, h in heads.by_person.items()}
        return replace(heads, histograms=histograms, by_person=by_person)

    def _count_secret(self, name: Secret, classes: Counts, cuts: Int32) -> tuple[Histogram, Counts]:
        """Histogram of a sensitive attribute on both sides, and how many rows go left."""
        whole, codes = self.counted.histograms[name], self.secrets[name]

        def some(span: tuple[int, int]) -> tuple[Counts, Int32, Counts, Counts]:
            mine = slice(*span)
            there, width = (whole.starts, whole.values, whole.counts), len(whole.reference)
            return count_sides(self.quasi, self.starts, classes[mine], cuts[mine], codes, *there, width)

        found = in_threads(some, spans(self.sizes[classes], WORTH_A_THREAD))
        many = np.concatenate([np.diff(starts) for starts, _, _, _ in found])
        values, counts, lefts = (np.concatenate([part[i] for part in found]) for i in (1, 2, 3))
        return Histogram(np.concatenate([[0], np.cumsum(many)]), values, counts, whole.reference, whole.domain), lefts

    def count_left(self, classes: Counts, cuts: Int32) -> Counts:
        """Rows on the left side of class `classes[i]` cut by `cuts[i]`."""
        return mark(self.quasi, self.starts, classes, cuts, np.zeros(len(self.rows), dtype=bool))

    def split_rows(self, classes: Counts, cuts: Int32) -> tuple[Counts, Counts]:
        """Places of these classes' rows, side by side, and where the sides start."""
        left = np.zeros(len(self.rows), dtype=bool)
        mark(self.quasi, self.starts, classes, cuts, left)
        return divide_rows(self.starts, classes, left)

    def cut(self, classes: Counts, cuts: Int32) -> OpenClasses:
        """Both sides of these classes, and no others."""
        places, starts = self.split_rows(classes, cuts)
        return OpenClasses(  # `take` copies a row at once, indexing cell by cell
            self.rows[places],
            starts,
            self.quasi.take(places, axis=0),
            {name: codes[places] for name, codes in self.secrets.items()},
            None if self.persons is None else self.persons[places],
            self.by_person,
            self.sides(classes, cuts),
        )

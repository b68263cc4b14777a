"""Mondrian: the table is cut in two along one quasi column, and each side again, as long as both sides keep every promise.

Promises. Nothing of its own: it starts with one class of everything, which has to keep every promise, and takes no cut that a
model vetoes, so every class keeps what was asked, be it monotone or not. With t-closeness this is tMondrian, with
beta-likeness LMondrian, with delta-disclosure DMondrian.

Sources: the Mondrian paper, sec. 3 and 4; the thesis on SABRE and BUREL, sec. 3.5 and 4.4.2, where other promises veto cuts.
`Mondrian(split="relaxed", cut="median", dims="widest")` is theirs.

Different from the source:
- `dims="try-all"` (default) tries the cuts of all columns in the order of what both sides lose together; `"widest"` goes
  column by column, the one that loses most first. The first cut that no model vetoes is taken;
- `cut="best"` (default) offers up to eleven cuts of a column: between values next to each eighth of the rows, the largest
  child of the node over the class against the others, and (relaxed) through ties at each quarter; `"median"` the middle;
- `split="strict"` keeps rows of equal value together: the middle is offered on both sides of its tie, and in trees first one
  child against the others, which loses less than a cut in depth-first order;
- `split="relaxed"` (default) may divide rows of equal value, and deals them out evenly in the order of all their cells: were
  the first ones to go left, rows equal in every quasi column would be parted by their secrets;
- missing values are a child of their own, in columns of numbers too;
- columns that lose nothing in a class, or have no importance, are not cut.

Cost: O(d n log n) for d columns and n rows, with `best` or `try-all` O(d^2 n log n), and one look at half the rows of a class
for each cut that is vetoed. Histograms of a side are counted from its rows, those of the other side by subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.errors import Unsatisfiable
from closeknit.core.geometry import scales
from closeknit.core.joint import Secret
from closeknit.core.method import Progress
from closeknit.core.model import Model
from closeknit.core.params import choice
from closeknit.core.table import Outcome, Partition, Table
from closeknit.core.tree import Int32
from closeknit.kernels.cuts import offers
from closeknit.kernels.cutting import count_sides, divided, mark

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Mondrian:
    """Cuts for any promises.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(4), ck.TCloseness("disease", 0.25)], Mondrian())
    >>> release.certificate.ok, release.certificate.classes.smallest >= 4
    (True, True)
    """

    name: ClassVar[str] = "mondrian"
    serves_both: ClassVar[bool] = False
    keeps_persons: ClassVar[bool] = False
    plans_for: ClassVar[str] = "any"
    scale: ClassVar[str] = "shard"

    split: str = "relaxed"
    cut: str = "best"
    dims: str = "try-all"

    def __post_init__(self) -> None:
        choice("split", self.split, ("relaxed", "strict"))
        choice("cut", self.cut, ("median", "best"))
        choice("dims", self.dims, ("widest", "try-all"))

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Cut level by level; what cannot be cut any more is a class."""
        geometry, k = scales(table), max([model.least_size for model in models] + [1])
        class_of, count = np.zeros(len(table), dtype=np.int32), 0
        open_ = _Open.whole(table, models)
        if not _root_holds(open_.counted, models, table):
            return Outcome(Partition(class_of, 1))
        while len(open_.rows):
            progress("cutting", 0.8 - 0.6 * len(open_.rows) / len(table))
            at, cuts = offers(
                geometry, open_.quasi, open_.starts, k, self.split == "relaxed", self.cut == "best", self.dims == "try-all"
            )
            cut, left = _first_allowed(open_, at, cuts, models)
            count = _close(open_, np.flatnonzero(~cut), class_of, count)
            open_ = open_.cut(np.flatnonzero(cut), left)
        return Outcome(Partition(class_of, count))


def _root_holds(root: Classes, models: Sequence[Model], table: Table) -> bool:
    """One class of everything has to keep every promise, or cuts have nothing to start from."""
    for model in models:
        if not model.holds(root).all():
            if table.persons is not None:  # one row stands for each person here: all rows are judged at the end
                return False
            domain = root.histograms[model.column].domain if model.column else None
            reached = f"the whole table as one class reaches {model.levels(root)[0]:.6g}"
            hint = f"asked was {model.asked}, and cuts start from one class; ask for less"
            raise Unsatisfiable(model.describe(domain), reached, hint)
    return True


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
    def whole(cls, table: Table, models: Sequence[Model]) -> _Open:
        names = dict.fromkeys(model.column for model in models if model.column is not None)
        several = table.persons is not None and len(np.unique(table.persons)) < len(table)
        return cls(
            np.arange(len(table)), np.array([0, len(table)]), np.ascontiguousarray(table.quasi),
            {name: np.ascontiguousarray(table.secret(name)[0]) for name in names}, table.persons if several else None,
            frozenset(model.column for model in models if model.column is not None and "persons" in model.needs),
            table.one_class(),
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
        heads = Classes.of(
            side_of, len(both), secrets, self.persons[places]
        )  # a person may stand on both sides: no subtraction
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

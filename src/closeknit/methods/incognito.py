"""Incognito: every quasi-identifier is written at one level of its hierarchy, the same for all rows (full-domain recoding).

Guarantees. A vector has one level a column; the groups of rows that are then written alike have to meet every guarantee. Of
all vectors that do, it takes the one that has the least loss (ties: the first in lexicographic order). With t-closeness it is
tIncognito.

Sources: LeFevre, DeWitt and Ramakrishnan on Incognito; the thesis on SABRE and BUREL, sec. 3.5, for t-closeness.

As there, subsets of the columns are looked at first, from single columns upwards, each with its own lattice of vectors: the
groups of a more general vector, or of fewer columns, are merges of groups, so what fails there fails here, and what holds
here holds there. All merges are made of counted groups (`rollup`), never of rows.

Different from the source:
- what is pruned follows from what the models declare. Nothing suppressed: every monotone model prunes, the others are asked
  at the end only. Rows may be suppressed: sizes alone prune (rows in groups below k only get fewer upwards), because every
  other verdict may turn when suppressed rows leave the reference, or when a good group meets a bad one;
- subsets of a size are looked at only while they have fewer vectors than are left over all columns: the larger ones would
  cost more than they prune;
- over all columns vectors are judged in the order of their loss, so the first that holds is the best one; the source looks for
  all minimal ones. With suppressed rows the search continues until no vector can lose less than the best found;
- levels that separate the rows of this table just as the one below are left out: they lose more for nothing;
- groups that do not meet a guarantee may be suppressed as wholes, as many rows as the table allows; the remaining ones are
  judged again against the remaining reference until nothing changes. A suppressed row counts as loss 1;
- guarantees that count people of a population are part of the search: people are counted in the nodes of a level
  (`people_rollup`). Nodes do not overlap, so delta-presence prunes, too;
- where rows of a person stay together, a vector that separates them does not hold.

Cost: one look at the groups per vector judged; their number is exponential in the columns, so a lattice of more than `most`
vectors is refused. Rows are counted once: a million cost little more than the combinations of cells among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.levels import top_level
from closeknit.core.limits import MOST_VECTORS
from closeknit.core.method import Method, Progress, Veto, Vetoes, ignore_progress
from closeknit.core.model import Model, merging_holds
from closeknit.core.params import whole
from closeknit.core.subsets import list_subsets
from closeknit.core.table import Outcome, Partition, Table
from closeknit.core.tree import STAR
from closeknit.forms import generalized
from closeknit.kernels.arrays import Flags
from closeknit.methods.people_rollup import PeopleGroups, PeopleInGroups
from closeknit.methods.rollup import Groups, Vector, select_classes

REMEMBERED = 1 << 25  # numbers kept of groups to roll up from: they cost memory, and change no result
NEAREST = 100  # vectors before the published one that an adversary looks at, those that lose most
DIGITS = 12  # losses that agree so far are ties


@dataclass(frozen=True)
class Incognito(Method):
    """The best vector of levels under any guarantees; refuses a lattice of more than `most` vectors.

    Args:
        most: The largest number of vectors; a larger lattice is refused.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(4), ck.TCloseness("disease", 0.25)], Incognito())
    >>> release.certificate.ok, release.certificate.classes.smallest >= 4
    (True, True)
    """

    name = "incognito"
    keeps_persons = True  # rows of one person may have other cells, and each is written by its own
    scale = "count"
    blind = True
    sees_all = True  # more general levels make larger groups over any columns, and fewer classes

    most: int = 100_000

    def __post_init__(self) -> None:
        whole("most", self.most, least=1, most=MOST_VECTORS)

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """Search the lattice; write whole levels."""
        bottom = Groups.of_table(table, {model.column for model in models if model.column is not None})
        _check_size(bottom, self.most)
        search = _Search(bottom, sorted(models, key=lambda model: model.column is not None), progress)
        found = search.best(search.candidates())
        if found is None:
            raise Unsatisfiable(
                " and ".join(model.describe(None) for model in models),
                f"none of the {search.size:,} vectors of levels keeps it",
                "ask for less, let rows be suppressed, or choose a method without whole levels, such as mondrian",
            )
        groups, kept = found
        number = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        ladders = zip(table.schema.quasi, bottom.of.ladders, groups.vector, strict=True)
        levels = {name: ladder.levels[step] for name, ladder, step in ladders}
        tops = {name for name, domain in zip(levels, table.quasi_domains, strict=True) if levels[name] == top_level(domain)}
        written = {name: STAR if name in tops else level for name, level in levels.items()}  # a number would reveal the height
        notes = [
            f"levels {levels}: {search.size:,} vectors, {search.judged:,} judged on all columns, {search.looked:,} on some"
        ]
        notes += [
            f"column '{name}': its numbers have no level between the value and `*`; Hierarchy.intervals gives it some"
            for name, domain in zip(levels, table.quasi_domains, strict=True)
            if domain.tree is None and domain.step is None and levels[name] == 1
        ]
        return Outcome(Partition(number[groups.group_of_row()], int(kept.sum())), generalized(levels=written), tuple(notes))

    def find_vetoes(self, table: Table, partition: Partition, models: Sequence[Model]) -> Vetoes:
        """Some group of every vector that comes before the published one does not meet a guarantee; the last ones are listed.

        A group that shares no row with a class and does not meet one says nothing about that class.
        """
        bottom = Groups.of_table(table, {model.column for model in models if model.column is not None})
        search = _Search(bottom, models, ignore_progress)
        failing: list[tuple[NDArray[np.int32], NDArray[np.intp]]] = []  # group of each row, and groups that do not hold
        for vector in search.list_before(partition)[-NEAREST:]:
            groups = bottom.roll_up(tuple(range(len(vector))), vector)
            broken = np.zeros(len(groups), dtype=bool)
            for model in models:
                broken |= ~model.holds(groups.classes)
            failing.append((groups.group_of_row(), np.flatnonzero(broken)))

        def list_vectors(number: int) -> list[Veto]:
            mine = partition.class_of == number
            found: list[Veto] = []
            for group_of, broken in failing:
                touched = np.unique(group_of[mine])
                if np.isin(broken, touched).all():
                    found.append([np.flatnonzero(group_of == group).astype(np.int64) for group in touched])
            return found

        return Vetoes(list_vectors, others_known=partition.count > 1)


def _check_size(bottom: Groups, most: int) -> None:
    levels = {name: len(ladder.levels) for name, ladder in zip(bottom.of.table.schema.quasi, bottom.of.ladders, strict=True)}
    if (size := prod(levels.values())) > most:
        high = ", ".join(f"{name} {count}" for name, count in sorted(levels.items(), key=lambda item: -item[1])[:3])
        right = f"leave columns out or give them fewer levels (most have: {high}), or raise most"
        raise BadInput(f"incognito would search {size:,} vectors of levels, and most={most:,}", right=right)


@dataclass(eq=False)
class _Search:
    """The lattice of one table."""

    bottom: Groups
    models: Sequence[Model]
    progress: Progress
    judged: int = 0
    looked: int = 0

    def __post_init__(self) -> None:
        self.table, self.ladders = self.bottom.of.table, self.bottom.of.ladders
        self.room = self.table.suppressible
        self.shape = tuple(len(ladder.levels) for ladder in self.ladders)
        self.size = prod(self.shape)
        weights = np.array(self.table.schema.weights(), dtype=np.float64)
        self.weights = weights / weights.sum()
        # with rows suppressed only sizes prune: see "Different from the source"
        self.whole = [m for m in self.models if m.budget or not m.by_class]
        self.counting = [m for m in self.whole if "population" in m.needs]
        self.people = [PeopleGroups(self.bottom.of, m.population) for m in self.counting]
        self.counted: tuple[Groups | None, list[PeopleInGroups]] = None, []
        self.models = [m for m in self.models if m not in self.whole]
        sure = [m for m in self.models if merging_holds(m, self.table.splits_persons)]
        self.pruning = [m for m in sure if not self.room or m.bounds == "size"]
        # cells of whole levels do not overlap, so every ratio of a merged group lies between those of its parts
        self.pruning_people = any(not self.room or m.bounds == "size" for m in self.counting)
        persons = self.table.persons
        self.together = persons is not None and self.table.schema.person_rows == "together"
        if persons is not None:
            self.by_person = np.argsort(persons, kind="stable")
            self.same_person = persons[self.by_person][1:] == persons[self.by_person][:-1]

    # Subsets of columns, from one upwards ---------------------------------------------------------------------------------

    def candidates(self) -> Flags:
        """The vectors over all columns whose parts over fewer columns hold."""
        every = tuple(range(len(self.shape)))
        left = np.ones(self.shape, dtype=bool)
        known: dict[tuple[int, ...], Flags] = {(): np.ones((), dtype=bool)}
        for size in range(1, len(every)) if self.pruning or self.pruning_people or self.together else ():
            self.progress("looking at levels", 0.2 + 0.3 * size / len(every))
            allowed = {columns: self._prune_vectors(columns, known) for columns in combinations(every, size)}
            if sum(int(vectors.sum()) for vectors in allowed.values()) >= left.sum():
                break
            known = {columns: self._holding(columns, vectors) for columns, vectors in allowed.items()}
            for columns, holding in known.items():
                left &= np.expand_dims(holding, [column for column in every if column not in columns])
        return left

    def _prune_vectors(self, columns: tuple[int, ...], known: dict[tuple[int, ...], Flags]) -> Flags:
        allowed = np.ones([self.shape[column] for column in columns], dtype=bool)
        for i in range(len(columns)):
            allowed &= np.expand_dims(known[columns[:i] + columns[i + 1 :]], i)
        return allowed

    def _holding(self, columns: tuple[int, ...], candidates: Flags) -> Flags:
        """Which vectors over these columns hold, breadth-first: above one that holds all do."""
        holding = np.zeros_like(candidates)
        if not candidates.any():
            return holding
        seen = _GroupCache(self.bottom.roll_up(columns, (0,) * len(columns)))
        vectors = np.argwhere(candidates)
        for vector in vectors[np.argsort(vectors.sum(axis=1), kind="stable")].tolist():
            if holding[tuple(vector)]:
                continue
            groups = seen.groups(tuple(vector))
            self.looked += 1
            if self._may_hold(groups):
                holding[tuple(slice(step, None) for step in vector)] = True
            else:
                seen.keep(groups)
        return holding

    def _may_hold(self, groups: Groups) -> bool:
        """What has to hold over any columns for it to hold over all of them."""
        if self.together and self._splits_person(groups):
            return False
        broken = np.zeros(len(groups), dtype=bool)
        for model in self.pruning:
            broken |= ~model.holds(_view_for(model, groups))
            if groups.sizes[broken].sum() > self.room:
                return False
        for model, (people, _) in zip(self.counting, self._count_people(groups), strict=True):
            if not self.room or model.bounds == "size":
                broken |= ~model.holds_among(_view_for(model, groups), people)
        return bool(groups.sizes[broken].sum() <= self.room)

    def _count_people(self, groups: Groups) -> list[PeopleInGroups]:
        """Per population, the people whom the cells of each group fit."""
        if self.counted[0] is not groups:
            self.counted = groups, [people.count(groups) for people in self.people]
        return self.counted[1]

    def _splits_person(self, groups: Groups) -> bool:
        """Whether a person is in two groups."""
        mine = groups.group_of_row()[self.by_person]
        return bool((self.same_person & (mine[1:] != mine[:-1])).any())

    # All columns, in the order of their loss ------------------------------------------------------------------------------

    def best(self, candidates: Flags) -> tuple[Groups, Flags] | None:
        """The groups of the best vector and which of them are published."""
        losses = self._losses()
        vectors = np.argwhere(candidates)
        order = np.argsort(losses[candidates], kind="stable")
        bounded = not self.room or all(ladder.fixed for ladder in self.ladders)
        seen, best, found = _GroupCache(self.bottom), np.inf, None
        for vector in map(tuple, vectors[order].tolist()):
            if bounded and (losses[vector] > best or (found is not None and not self.room)):
                break
            groups = seen.groups(vector)
            self.judged += 1
            kept = self._choose_published(groups)
            seen.keep(groups)
            if kept is None:
                continue
            lost = losses[vector] if kept.all() else self._loss(groups, kept)
            if found is None or (lost, vector) < (best, found[0].vector):
                best, found = lost, (groups, kept)
        return found

    def list_before(self, partition: Partition) -> list[Vector]:
        """The vectors that were judged before the one that gives this partition, in their order."""
        nodes, steps = self.bottom.nodes, []
        class_of = np.empty(len(nodes), dtype=np.int64)
        class_of[self.bottom.of.of_row] = partition.class_of
        for j, ladder in enumerate(self.ladders):  # the lowest vector with these classes loses least of all such vectors
            alike = (groups_alike(class_of, ladder.up(0, step)[nodes[:, j]]) for step in range(len(ladder.levels)))
            steps.append(next(step for step, same in enumerate(alike) if same))
        losses = self._losses()
        order = np.lexsort((np.arange(self.size), losses.ravel()))
        place = int(np.argmax(order == np.ravel_multi_index(steps, self.shape)))
        return [tuple(map(int, np.unravel_index(flat, self.shape))) for flat in order[:place]]

    def _choose_published(self, groups: Groups) -> Flags | None:
        """The groups that are left when those that do not meet a guarantee are suppressed; None where too many rows are."""
        if not self._may_hold(groups):
            return None
        kept = np.ones(len(groups), dtype=bool)
        left = groups.classes
        while True:
            broken = np.zeros(len(left), dtype=bool)
            for model in self.models:
                broken |= ~model.holds(left)
                if broken.any() and not self.room:
                    return None
            for model, (people, _) in zip(self.counting, self._count_people(groups), strict=True):
                broken |= ~model.holds_among(left, people[kept])
            if not broken.any():
                return kept if self._holds_whole(groups, left, kept) else None
            kept[np.flatnonzero(kept)[broken]] = False
            if groups.sizes[~kept].sum() > self.room or not kept.any():
                return None
            left = select_classes(groups.classes, kept, self.table)

    def _holds_whole(self, groups: Groups, left: Classes, kept: Flags) -> bool:
        """Whether the published groups meet the guarantees about all of them, and those over some columns."""
        names = list(self.table.schema.quasi)
        for model, (people, absent) in zip(self.counting, self._count_people(groups), strict=True):
            if not model.holds_together_among(left, people[kept], absent or bool(people[~kept].any())):
                return False
        for model in self.whole:
            if model in self.counting:
                continue
            if model.over is None:
                if not model.holds_together(left):
                    return False
                continue
            for subset in list_subsets(model.over, names):
                columns = tuple(sorted(map(names.index, subset)))
                some = groups.roll_up(columns, tuple(groups.vector[column] for column in columns))
                classes = some.classes if kept.all() else self._count_published(groups, some, kept)
                if not model.holds(classes).all():
                    return False
        return True

    def _count_published(self, groups: Groups, some: Groups, kept: Flags) -> Classes:
        """Groups over some columns, of the published rows alone."""
        published = kept[groups.group_of_row()]
        return self.table.count_classes(Partition.of(np.where(published, some.group_of_row(), -1)))

    def _losses(self) -> NDArray[np.float64]:
        """Of every vector, if nothing is suppressed."""
        losses = np.zeros(self.shape)
        for axis, (weight, ladder) in enumerate(zip(self.weights, self.ladders, strict=True)):
            rows = np.bincount(self.bottom.nodes[:, axis], weights=self.bottom.sizes)
            lost = np.array([ladder.measure_loss(step, rows) for step in range(len(ladder.levels))])
            losses += np.expand_dims(weight * lost, [i for i in range(len(self.shape)) if i != axis])
        return np.round(losses / self.table.weight, DIGITS)

    def _loss(self, groups: Groups, kept: Flags) -> float:
        """With the other groups suppressed: cells are measured on the published rows alone."""
        bottom, group_of = groups.group_of()
        published = bottom.sizes * kept[group_of]
        lost = float(self.table.weight - published.sum())
        for axis, (weight, ladder, step) in enumerate(zip(self.weights, self.ladders, groups.vector, strict=True)):
            lost += weight * ladder.measure_loss(step, np.bincount(bottom.nodes[:, axis], weights=published))
        return round(lost / self.table.weight, DIGITS)


@dataclass(eq=False)
class _GroupCache:
    """Groups that were looked at: those one step above are rolled up from them."""

    bottom: Groups
    known: dict[Vector, Groups] = field(default_factory=dict)
    held: int = 0

    def groups(self, vector: Vector) -> Groups:
        """The groups of a vector, from the fewest that are known one step below it."""
        steps = range(len(vector))
        below = (tuple(vector[i] - (i == down) for i in steps) for down in steps)
        nearest = min((self.known[v] for v in below if v in self.known), key=len, default=self.bottom)
        return nearest.roll_up(self.bottom.columns, vector)

    def keep(self, groups: Groups) -> None:
        """Remember them while there is room."""
        if self.held + groups.weight <= REMEMBERED:
            self.held += groups.weight
            self.known[groups.vector] = groups


def _view_for(model: Model, groups: Groups) -> Classes:
    """Guarantees about sizes alone need no histograms."""
    bare = model.column is None and groups.of.table.persons is None
    return Classes(groups.sizes, groups.sizes, {}) if bare else groups.classes


def groups_alike(class_of: NDArray[np.int64], nodes: NDArray[np.int32]) -> bool:
    """Whether every class has one node only.

    >>> groups_alike(np.array([0, 0, 1]), np.array([2, 2, 2])), groups_alike(np.array([0, 0, 1]), np.array([2, 1, 1]))
    (True, False)
    """
    return len(np.unique(np.stack([class_of, nodes]), axis=1).T) == len(np.unique(class_of))

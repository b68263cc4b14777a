"""Mondrian cuts as a slow one does that is made of lists and rationals: the same cuts in the same order, the same classes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.checks.oracle import oracle_holds
from closeknit.checks.tables import JOB, ODD
from closeknit.core.columns import Columns
from closeknit.core.geometry import scales
from closeknit.core.method import ignore_progress
from closeknit.core.model import Model
from closeknit.core.table import Table
from closeknit.kernels.cutting.cut_offers import offers
from closeknit.kernels.cutting.cut_sides import count_sides, divide_rows, mark
from conftest import examples

OPTIONS = list(itertools.product(("relaxed", "strict"), ("median", "best"), ("widest", "try-all")))
FLAT = {f"town {i}": None for i in range(9)}
TREES: dict[str, dict[str, Any]] = {"job": JOB, "odd": ODD, "town": FLAT}


# A slow Mondrian: lists, sets and rationals ------------------------------------------------------------------------------


@dataclass
class Axis:
    """One quasi column: a value for every row (None = missing), with numbers or the way down to each leaf of its tree."""

    values: list[Any]
    importance: Fraction
    paths: dict[Any, tuple[str, ...]] | None
    domain: list[Any] = field(default_factory=list)  # all leaves in their order

    def place(self, row: int) -> int:
        return len(self.domain) if self.values[row] is None else self.domain.index(self.values[row])

    def way(self, row: int) -> tuple[Any, ...]:
        """From the top down to the value; numbers have two branches, values and the missing one."""
        value = self.values[row]
        if value is None:
            return ("*", None)
        return ("*", "number", value) if self.paths is None else self.paths[value]

    def shared(self, rows: Sequence[int]) -> tuple[Any, ...]:
        """The way to the lowest node over these rows."""
        ways = [self.way(row) for row in rows]
        steps = zip(*ways, strict=False)
        return tuple(same[0] for same in itertools.takewhile(lambda step: len(set(step)) == 1, steps))

    def loss(self, rows: Sequence[int]) -> Fraction:
        values = {self.values[row] for row in rows}
        if len(values) == 1:
            return Fraction(0)
        if None in values:
            return self.importance
        if self.paths is None:
            return self.importance * Fraction(max(values) - min(values), self.domain[-1] - self.domain[0])
        way = self.shared(rows)
        under = sum(path[: len(way)] == way for path in self.paths.values())
        return self.importance * Fraction(under, len(self.paths))


def paths_of(nested: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    def walk(below: dict[str, Any], way: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        found = {}
        for label, child in below.items():
            found |= walk(child, (*way, label)) if child else {label: (*way, label, f"leaf {label}")}
        return found

    return walk(nested, ("*",))


@dataclass
class Naive:
    """The rule as the page on Mondrian describes it."""

    axes: list[Axis]
    holds: Callable[[list[int]], bool]
    k: int
    split: str
    cut: str
    dims: str

    def classes(self, rows: list[int]) -> list[list[int]]:
        for left in self.offered(rows):
            right = [row for row in rows if row not in left]
            if self.holds(left) and self.holds(right):
                return self.classes(left) + self.classes(right)
        return [rows]

    def offered(self, rows: list[int]) -> list[list[int]]:
        """Left sides in the order in which they are tried."""
        wide = sorted((axis for axis in self.axes if axis.loss(rows) > 0), key=lambda axis: -axis.loss(rows))
        found = []
        for place, axis in enumerate(wide):
            for turn, left in enumerate(self.of_column(axis, rows)):
                by_loss = self.cut == "best" or self.dims == "try-all"
                key = self.lost(left, rows) if by_loss else turn
                found.append(((0 if self.dims == "try-all" else place), key, left))
        return [left for _, _, left in sorted(found, key=lambda entry: entry[:2])]

    def lost(self, left: list[int], rows: list[int]) -> int:
        right = [row for row in rows if row not in left]
        both = sum((len(side) * axis.loss(side) for side in (left, right) for axis in self.axes), Fraction(0))
        return round(float(both / len(rows)) * 1e9)

    def of_column(self, axis: Axis, rows: list[int]) -> list[list[int]]:
        s, ranked = len(rows), sorted(rows, key=axis.place)
        found: list[list[int]] = []
        if self.cut == "best" or self.split == "strict":
            found += self.one_child(axis, rows)
        if self.cut == "best":
            for i in range(1, 8):
                found += self.at_edge(axis, ranked, s * i // 8, 2 * (s * i // 8))[:1]
            for i in range(1, 4 if self.split == "relaxed" else 0):
                found += self.through(axis, ranked, s * i // 4, whole=False)
        elif self.split == "relaxed":
            found += self.through(axis, ranked, (s + 1) // 2, whole=True)
        else:
            found += self.at_edge(axis, ranked, (s - 1) // 2, s)
        return found

    def one_child(self, axis: Axis, rows: list[int]) -> list[list[int]]:
        depth = len(axis.shared(rows))
        children: dict[Any, list[int]] = {}
        for row in sorted(rows, key=axis.place):
            children.setdefault(axis.way(row)[depth], []).append(row)
        if self.cut == "median" and axis.paths is None and depth == 2:
            return []  # numbers without gaps are cut in the middle
        enough = max(self.k, len(rows) / 8)
        able = [sorted(child) for child in children.values() if enough <= len(child) <= len(rows) - self.k]
        return [max(able, key=len)] if able else []

    def at_edge(self, axis: Axis, ranked: list[int], place: int, twice: int) -> list[list[int]]:
        """Before and after a value, the edge that is nearer first (after it, if both are as near)."""
        value = axis.place(ranked[place])
        edges = [sum(axis.place(row) <= value for row in ranked), sum(axis.place(row) < value for row in ranked)]
        edges.sort(key=lambda edge: abs(2 * edge - twice))
        return [sorted(ranked[:edge]) for edge in edges if self.k <= edge <= len(ranked) - self.k]

    def through(self, axis: Axis, ranked: list[int], place: int, whole: bool) -> list[list[int]]:
        if not self.k <= place <= len(ranked) - self.k:
            return []
        value = axis.place(ranked[place - 1])
        below = [row for row in ranked if axis.place(row) < value]
        ties = sorted(row for row in ranked if axis.place(row) == value)
        wanted = place - len(below)
        if wanted == len(ties) and not whole:
            return []
        dealt = [row for i, row in enumerate(ties) if (i + 1) * wanted // len(ties) > i * wanted // len(ties)]
        return [sorted(below + dealt)]


# Small tables for both ---------------------------------------------------------------------------------------------------


def small(seed: int) -> tuple[Table, list[Axis], list[Model], int]:
    """A table of numbers and uneven trees, with gaps and many ties, and guarantees for it."""
    rng = np.random.default_rng(seed)
    rows, k = int(rng.integers(4, 60)), int(rng.integers(1, 5))
    gaps = float(rng.choice([0, 0, 0.2]))
    kinds: dict[str, Any] = {"age": ck.numeric(), "size": ck.numeric()}
    kinds |= {name: ck.Hierarchy.from_nested(nested) for name, nested in TREES.items()}
    names = [str(name) for name in rng.permutation(list(kinds))[: rng.integers(1, 5)]]
    cells: dict[str, list[Any]] = {}
    for name in names:
        pool = list(paths_of(TREES[name])) if name in TREES else list(range(int(rng.choice([1, 2, 4, 40]))))
        shares = rng.dirichlet(np.full(len(pool), 0.7))
        cells[name] = [None if rng.random() < gaps else pool[i] for i in rng.choice(len(pool), rows, p=shares)]
    cells["secret"] = rng.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]).tolist()
    cells["wage"] = rng.integers(0, 5, rows).tolist()
    importance = {name: int(rng.integers(1, 4)) for name in names}
    schema = ck.Schema(
        quasi={name: kinds[name] for name in names},
        sensitive={"secret": ck.flat(), "wage": ck.numeric()},
        importance=importance,
    )
    table = schema.encode(Columns.of(cells))
    some: list[Model] = [
        ck.TCloseness("secret", Fraction(int(rng.integers(0, 9)), 12)),
        ck.TCloseness("wage", round(rng.uniform(0.05, 0.5), 2)),
        ck.BetaLikeness("secret", round(rng.uniform(0.2, 2), 1)),
        ck.DeltaDisclosure("secret", round(rng.uniform(0.5, 3), 1)),
    ]
    models = [ck.KAnonymity(min(k, rows)), *(some[i] for i in rng.choice(4, rng.integers(0, 3), replace=False))]
    ordered = {name: [column[row] for row in table.rows] for name, column in cells.items()}
    axes = [axis_of(name, ordered[name], Fraction(importance[name], sum(importance.values()))) for name in names]
    return table, axes, models, min(k, rows)


def axis_of(name: str, values: list[Any], importance: Fraction) -> Axis:
    if name in TREES:
        paths = paths_of(TREES[name])
        return Axis(values, importance, paths, list(paths))
    return Axis(values, importance, None, sorted({value for value in values if value is not None}))


def holds(table: Table, models: list[Model]) -> Callable[[list[int]], bool]:
    """The oracle's word on a class of table rows."""

    def all_hold(rows: list[int]) -> bool:
        for model in models:
            if isinstance(model, ck.KAnonymity):
                if len(rows) < model.k:
                    return False
                continue
            secrets = table.secret(model.column)[0].tolist()
            params = {name: getattr(model, name) for name in ("t", "beta", "delta") if hasattr(model, name)}
            if model.name == "t_closeness":
                params["ground"] = sorted(set(secrets)) if model.column == "wage" else None
            if not oracle_holds(model.name, [secrets[row] for row in rows], secrets, **params):
                return False
        return True

    return all_hold


def sets(class_of: Sequence[int]) -> set[tuple[int, ...]]:
    groups: dict[int, list[int]] = {}
    for row, number in enumerate(class_of):
        groups.setdefault(number, []).append(row)
    return {tuple(rows) for rows in groups.values()}


def same_classes(options: tuple[str, str, str], seed: int) -> None:
    table, axes, models, k = small(seed)
    keeps = holds(table, models)
    if not keeps(list(range(len(table)))):
        return  # delta-disclosure of a value that all rows have
    slow = Naive(axes, keeps, k, *options).classes(list(range(len(table))))
    fast = ck.Mondrian(*options).run(table, models, 0, ignore_progress).partition
    assert sets(fast.class_of.tolist()) == {tuple(sorted(rows)) for rows in slow}
    assert fast.count == len(slow) and all(keeps(rows) for rows in slow)


@pytest.mark.parametrize("options", OPTIONS, ids="-".join)
@settings(max_examples=examples(25))
@given(seed=st.integers(0, 2**40))
def test_classes_are_those_of_a_naive_mondrian(options: tuple[str, str, str], seed: int) -> None:
    same_classes(options, seed)


@pytest.mark.parametrize("options", OPTIONS, ids="-".join)
@settings(max_examples=examples(25))
@given(seed=st.integers(0, 2**40))
def test_cuts_are_offered_in_the_order_of_a_naive_mondrian(options: tuple[str, str, str], seed: int) -> None:
    table, axes, _, k = small(seed)
    rows, (split, cut, dims) = len(table), options
    starts = np.array([0, rows])
    at, cuts = offers(scales(table), table.quasi, starts, k, split == "relaxed", cut == "best", dims == "try-all")
    found = []
    for line in cuts:
        left = np.zeros(rows, bool)
        sizes = mark(table.quasi, starts, np.array([0]), line.reshape(1, 5), left)
        assert sizes.tolist() == [left.sum()] and k <= left.sum() <= rows - k
        found.append(tuple(np.flatnonzero(left).tolist()))
    naive = Naive(axes, lambda rows: True, k, *options).offered(list(range(rows))) if rows >= 2 * k else []
    assert list(dict.fromkeys(found)) == list(dict.fromkeys(tuple(left) for left in naive))
    assert at.tolist() == [0, len(cuts)]


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**40))
def test_sides_are_counted_as_if_from_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, rng.integers(1, 6))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    codes, quasi = rng.integers(-1, 5, starts[-1]).astype(np.int32), rng.integers(0, 4, (starts[-1], 2)).astype(np.int32)
    whole = [Counter(x for x in codes[a:b].tolist() if x >= 0) for a, b in itertools.pairwise(starts)]
    h_starts = np.concatenate([[0], np.cumsum([len(counts) for counts in whole])])
    values = np.array([value for counts in whole for value in sorted(counts)], np.int32)
    counts = np.array([counts[value] for counts in whole for value in sorted(counts)], np.int64)
    some = np.flatnonzero(rng.random(len(sizes)) < 0.7)
    cuts, left = rng.integers([0, 0, 1, 0, 2], [2, 2, 4, 3, 5], (len(some), 5)).astype(np.int32), np.zeros(starts[-1], bool)
    lefts = mark(quasi, starts, some, cuts, left)
    side_starts, side_values, side_counts, rows = count_sides(quasi, starts, some, cuts, codes, h_starts, values, counts, 5)
    assert rows.tolist() == lefts.tolist() == [left[starts[c] : starts[c + 1]].sum() for c in some]
    places, sides = divide_rows(starts, some, left)
    for i in range(2 * len(some)):
        mine = places[sides[i] : sides[i + 1]]
        span = slice(side_starts[i], side_starts[i + 1])
        found = dict(zip(side_values[span].tolist(), side_counts[span].tolist(), strict=True))
        assert found == Counter(x for x in codes[mine].tolist() if x >= 0) and list(found) == sorted(found)
        assert (left[mine] == (i % 2 == 0)).all() and (np.diff(mine) > 0).all()

"""The guarantees against their naive definitions, at exact boundaries and under merging, on generated tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeknit.checks.oracle import oracle_holds, oracle_level
from closeknit.core.classes import Classes
from closeknit.core.domain import Domain
from closeknit.core.kinds import numeric
from closeknit.core.model import Model
from closeknit.core.tree import Tree
from closeknit.models import BetaLikeness, DeltaDisclosure, KAnonymity, LDiversity, TCloseness
from conftest import examples

SECRET = "secret"


@dataclass
class Drawn:
    """A generated table: its classes, and the same as lists for the oracle."""

    classes: Classes
    rows: list[list[Any]]
    persons: list[list[int]] | None
    reference: list[Any]
    tree: dict[str, Any] | None

    def oracle(self, model: Model, index: int, judge: Callable[..., Any]) -> Any:
        params = asdict(model) | {"ground": self.ground(model)}
        params.pop("reference", None)  # none is declared: the table is the reference
        params.pop("column", None)
        if self.persons is not None and "persons" in model.needs:
            params["persons"] = self.persons[index]
        return judge(model.name, self.rows[index], self.reference, **params)

    def ground(self, model: Model) -> Any:
        if getattr(model, "distance", None) == "ordered":
            return sorted(set(self.reference))
        hierarchical = getattr(model, "distance", None) == "hierarchical" or getattr(model, "kind", None) == "semantic"
        return self.tree if hierarchical else None


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> dict[str, Any]:
    """Nested mappings of any shape: unbalanced, single children, a named root or none."""
    names = iter(range(1000))

    def grow(deep: int) -> dict[str, Any]:
        width = draw(st.integers(1, 3))
        below = [deep > 0 and draw(st.booleans()) for _ in range(width)]
        return {f"v{next(names)}": grow(deep - 1) if inner else None for inner in below}

    return grow(depth)


@st.composite
def tables(draw: st.DrawFn, kind: str = "tree", missing: bool = True, persons: bool = False) -> Drawn:
    """A few classes of a few rows; some values absent, some secrets missing, some suppressed."""
    tree = None
    if kind == "tree":
        tree = draw(trees())
        domain = Domain(tuple(Tree.of(tree).leaf_labels), Tree.of(tree))
        leaves: list[Any] = list(domain.texts)
    else:
        leaves = sorted(draw(st.sets(st.integers(1, 30), min_size=1, max_size=8)))
        domain, _ = numeric().bind(np.array(leaves))
    size = len(leaves)
    count = draw(st.integers(1, 4))
    cells = st.tuples(st.integers(0, count - 1), st.integers(-1, size if missing else size - 1), st.integers(0, 3))
    rows = draw(st.lists(cells, min_size=count, max_size=24))
    class_of, codes, heads = (np.array(column, dtype=np.int32) for column in zip(*rows, strict=True))
    if persons:  # secrets are suppressed by whole classes: who is left of a half suppressed one, `Classes` does not say
        codes[np.isin(class_of, class_of[codes < 0])] = -1
    people = class_of.astype(np.int64) * 100 + heads if persons else None
    classes = Classes.of(class_of, count, {SECRET: (codes, domain)}, people)
    names = [*leaves, None]
    inside = [[i for i in range(len(rows)) if class_of[i] == c and codes[i] >= 0] for c in range(count)]
    lists = [[names[codes[i]] for i in members] for members in inside]
    who = [[int(people[i]) for i in members] for members in inside] if people is not None else None
    return Drawn(classes, lists, who, [name for members in lists for name in members], tree)


def assert_as_oracle(model: Model, drawn: Drawn) -> None:
    levels, holds = model.levels(drawn.classes), model.holds(drawn.classes)
    for i in range(len(drawn.classes)):
        level = drawn.oracle(model, i, oracle_level)
        assert float(levels[i]) == pytest.approx(float(level), rel=1e-12, abs=1e-12)
        assert bool(holds[i]) == drawn.oracle(model, i, oracle_holds)
        exact = model.exact_level(drawn.classes, i)
        assert exact is None or exact == level
        if exact is None and isinstance(level, Fraction):
            assert model.name == "delta_disclosure"


def assert_monotone(model: Model, drawn: Drawn, into: list[int]) -> None:
    holds = model.holds(drawn.classes)
    merged = model.holds(drawn.classes.merge(np.array(into)))
    for target in set(into):
        if all(holds[c] for c in range(len(into)) if into[c] == target):
            assert merged[target]


def assert_boundary(model: Callable[[str], Model], drawn: Drawn) -> None:
    """A limit set to a class's own rational level is met; one a hair below it is not."""
    hair = Fraction(1, 10**15)
    probe = model("1")
    for i in range(len(drawn.classes)):
        level = probe.exact_level(drawn.classes, i)
        if level is not None and 0 < level <= 1:
            assert model(str(level)).holds(drawn.classes)[i]
            assert not model(str(level - hair)).holds(drawn.classes)[i]


def merges(drawn: Drawn, data: st.DataObject) -> list[int]:
    n = len(drawn.classes)
    drawn_into = data.draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    return [sorted(set(drawn_into)).index(target) for target in drawn_into]


quarters = st.integers(1, 16).map(lambda i: str(Fraction(i, 4)))


@given(st.data(), st.booleans(), st.integers(1, 6))
def test_k_anonymity(data: st.DataObject, persons: bool, k: int) -> None:
    drawn = data.draw(tables(persons=persons))
    sizes = drawn.classes.persons
    assert KAnonymity(k).holds(drawn.classes).tolist() == [size >= k for size in sizes.tolist()]
    assert KAnonymity(k).levels(drawn.classes).tolist() == sizes.tolist()
    assert_monotone(KAnonymity(k), drawn, merges(drawn, data))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=20))
def test_k_anonymity_counts_persons(rows: list[tuple[int, int]]) -> None:
    class_of = np.array([row[0] for row in rows], dtype=np.int32)
    persons = np.array([row[1] for row in rows], dtype=np.int64)
    classes = Classes.of(class_of, 3, {}, persons)
    for c in range(3):
        mine = [person for cls, person in rows if cls == c]
        level = oracle_level("k_anonymity", mine, [], k=2, persons=mine)
        assert KAnonymity(2).exact_level(classes, c) == level
        assert KAnonymity(2).holds(classes)[c] == oracle_holds("k_anonymity", mine, [], k=2, persons=mine)


@settings(max_examples=examples(100))
@given(st.data(), st.booleans(), st.sampled_from(["distinct", "entropy", "recursive", "frequency"]))
def test_l_diversity(data: st.DataObject, persons: bool, kind: str) -> None:
    drawn = data.draw(tables(persons=persons))
    if kind in ("distinct", "recursive"):
        least: Any = data.draw(st.integers(1, 4))
    else:
        least = data.draw(st.integers(4, 16).map(lambda i: str(Fraction(i, 4))))
    model = LDiversity(SECRET, least, kind, data.draw(quarters) if kind == "recursive" else None)
    assert_as_oracle(model, drawn)
    assert_monotone(model, drawn, merges(drawn, data))


@settings(max_examples=examples(100))
@given(st.data(), st.sampled_from(["hierarchical", "equal"]), st.integers(0, 24))
def test_t_closeness_of_trees(data: st.DataObject, distance: str, t: int) -> None:
    drawn = data.draw(tables())
    assert_as_oracle(TCloseness(SECRET, str(Fraction(t, 24)), distance), drawn)
    assert_boundary(lambda limit: TCloseness(SECRET, limit, distance), drawn)
    assert_monotone(TCloseness(SECRET, str(Fraction(t, 24)), distance), drawn, merges(drawn, data))


@settings(max_examples=examples(100))
@given(st.data(), st.integers(0, 24))
def test_t_closeness_of_numbers(data: st.DataObject, t: int) -> None:
    drawn = data.draw(tables("numbers", missing=False))
    assert_as_oracle(TCloseness(SECRET, str(Fraction(t, 24)), "ordered"), drawn)
    assert_boundary(lambda limit: TCloseness(SECRET, limit, "ordered"), drawn)
    assert_monotone(TCloseness(SECRET, str(Fraction(t, 24)), "ordered"), drawn, merges(drawn, data))


@settings(max_examples=examples(150))
@given(st.data(), st.sampled_from(["basic", "enhanced", "semantic", "range"]), quarters)
def test_beta_likeness(data: st.DataObject, kind: str, beta: str) -> None:
    extra: dict[str, Any] = {}
    if kind == "semantic":
        extra = {"below": data.draw(st.integers(0, 2))}
    if kind == "range":
        extra = {"eps": data.draw(quarters), "relative": data.draw(st.booleans())}
        extra["eps"] = extra["eps"] if extra["relative"] else str(8 * Fraction(extra["eps"]))
    drawn = data.draw(tables("numbers" if kind == "range" else "tree"))
    assert_as_oracle(BetaLikeness(SECRET, beta, kind, **extra), drawn)
    assert_boundary(lambda limit: BetaLikeness(SECRET, limit, kind, **extra), drawn)
    assert_monotone(BetaLikeness(SECRET, beta, kind, **extra), drawn, merges(drawn, data))


@settings(max_examples=examples(100))
@given(st.data(), quarters)
def test_delta_disclosure(data: st.DataObject, delta: str) -> None:
    drawn = data.draw(tables())
    model = DeltaDisclosure(SECRET, delta)
    assert_as_oracle(model, drawn)
    assert_monotone(model, drawn, merges(drawn, data))

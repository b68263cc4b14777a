"""SABRE's plans on generated secrets: buckets word by word, closed forms against a solver, worst cases against every fill."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from test_models import trees

from closeknit.core.classes import Classes, Histogram
from closeknit.core.domain import Domain
from closeknit.core.kinds import numeric
from closeknit.core.tree import Tree
from closeknit.models import TCloseness
from closeknit.plans import Plan, halve, sabre_plan
from closeknit.plans.ground import ground_of
from closeknit.plans.sabre_buckets import bucketize, measure_spread
from closeknit.plans.sabre_sizes import ClosenessTest
from conftest import examples

LIMITS = st.sampled_from(["0", "1/100", "1/20", "1/10", "3/20", "1/5", "1/4", "1/3", "2/5", "1/2", "3/4", "1"]).map(Fraction)


@dataclass
class Secret:
    """A generated secret: how many rows have each leaf, and the ground distance."""

    counts: np.ndarray
    domain: Domain
    distance: str

    @property
    def present(self) -> list[int]:
        return np.flatnonzero(self.counts).tolist()

    @property
    def n(self) -> int:
        return int(self.counts.sum())

    def between(self, i: int, j: int) -> Fraction:
        """Ground distance of two leaf codes by its definition."""
        if i == j or self.distance == "equal":
            return Fraction(int(i != j))
        if self.distance == "ordered":
            leaves = range(self.domain.size) if self.domain.declared else self.present
            return Fraction(abs(leaves.index(i) - leaves.index(j)), len(leaves) - 1)
        return Fraction(self.tree_height([i, j]), int(self.domain.tree.height[0]))  # type: ignore[union-attr]

    def paths(self, codes: list[int]) -> list[list[int]]:
        """Nodes from the top to each leaf."""
        tree = self.domain.tree
        assert tree is not None
        paths = []
        for code in codes:
            path = [int(tree.leaf_node[code])]
            while path[-1] != 0:
                path.append(int(tree.parent[path[-1]]))
            paths.append(path[::-1])
        return paths

    def lowest(self, codes: list[int]) -> int:
        shared = [step for step in zip(*self.paths(codes), strict=False) if len(set(step)) == 1]
        return shared[-1][0]

    def tree_height(self, codes: list[int]) -> int:
        assert self.domain.tree is not None
        return int(self.domain.tree.height[self.lowest(codes)])

    def cost(self, codes: list[int], bound: str) -> Fraction:
        """CET of a bucket by its definition."""
        rows = [int(self.counts[code]) for code in codes]
        if bound == "printed" and self.distance == "hierarchical":
            assert self.domain.tree is not None
            return Fraction(self.tree_height(codes) * (sum(rows) - min(rows)), self.n * int(self.domain.tree.height[0]))
        if bound == "printed" and self.distance == "equal":
            return Fraction(sum(rows) - min(rows), self.n)
        return max(sum(self.between(one, i) * int(self.counts[i]) for i in codes) for one in codes) / self.n

    def parts(self, codes: list[int], bound: str) -> list[list[int]]:
        """What splitting a bucket gives: the best cut of a run, or the branches of a subtree."""
        if self.distance == "equal":
            return [[code] for code in codes]
        if self.distance == "ordered":
            cuts = [[codes[:s], codes[s:]] for s in range(1, len(codes))]
            return min(cuts, key=lambda cut: self.cost(cut[0], bound) + self.cost(cut[1], bound))
        depth = max(i for i, step in enumerate(zip(*self.paths(codes), strict=False)) if len(set(step)) == 1)
        branch = {code: path[depth + 1] for code, path in zip(codes, self.paths(codes), strict=True)}
        return [list(group) for _, group in itertools.groupby(codes, key=lambda code: branch[code])]

    def naive_buckets(self, t: Fraction, bound: str) -> list[list[int]]:
        """The specification, word by word."""
        buckets = [self.present]
        while sum(self.cost(codes, bound) for codes in buckets) > t:
            gains = []
            for place, codes in enumerate(buckets):
                if len(codes) > 1:
                    parts = self.parts(codes, bound)
                    gains.append((sum(self.cost(part, bound) for part in parts) - self.cost(codes, bound), place, parts))
            _, place, parts = min(gains)
            buckets[place : place + 1] = parts
        return buckets

    def test(self, buckets: list[np.ndarray], t: Fraction = Fraction(1), bound: str = "exact") -> ClosenessTest:
        return ClosenessTest(self.counts, self.domain, self.distance, buckets, t, bound)


@st.composite
def secrets(draw: st.DrawFn, most: int = 9, rows: int = 12) -> Secret:
    """Absent leaves, ties, single values; trees of any shape with or without missing values."""
    distance = draw(st.sampled_from(["ordered", "hierarchical", "equal"]))
    if distance == "hierarchical":
        tree = Tree.of(draw(trees()))
        assume(tree.size <= most)
        domain = Domain(tuple(tree.leaf_labels), tree)
    elif draw(st.booleans()):
        m = draw(st.integers(1, most))
        domain = numeric(0, m, bins=m).bind(np.zeros(0))[0]
    else:
        domain = numeric().bind(np.arange(draw(st.integers(1, most))))[0]
    leaves = st.lists(st.integers(0, rows), min_size=domain.size, max_size=domain.size)
    counts = np.array([*draw(leaves), 0 if distance == "ordered" else draw(st.integers(0, 3))], dtype=np.int64)
    assume(counts.sum() > 0)
    return Secret(counts, domain, distance)


def allotments_of(draw: st.DrawFn, buckets: list[np.ndarray], most: int) -> np.ndarray:
    a = np.array(draw(st.lists(st.integers(0, most), min_size=len(buckets), max_size=len(buckets))), dtype=np.int64)
    assume(a.sum() > 0)
    return a


@settings(max_examples=examples(300))
@given(secrets(), LIMITS, st.sampled_from(["exact", "printed"]))
def test_buckets_are_those_of_the_specification(secret: Secret, t: Fraction, bound: str) -> None:
    buckets = bucketize(secret.counts, secret.domain, secret.distance, t, bound)
    assert [codes.tolist() for codes in buckets] == secret.naive_buckets(t, bound)
    u = measure_spread(secret.counts, secret.domain, secret.distance, buckets, bound)
    assert u == sum(secret.cost(codes.tolist(), bound) for codes in buckets) <= t
    assert sorted(np.concatenate(buckets).tolist()) == secret.present
    for codes in buckets:
        inside = range(codes[0], codes[-1] + 1)
        if secret.distance == "hierarchical":
            assert secret.domain.tree is not None
            top = secret.lowest(codes.tolist())
            inside = range(secret.domain.tree.lo[top], secret.domain.tree.hi[top] + 1)
        assert codes.tolist() == [code for code in secret.present if code in inside]


@settings(max_examples=examples(100))
@given(secrets())
def test_the_exact_bound_is_never_above_the_printed_one(secret: Secret) -> None:
    whole = [np.array(secret.present)]
    exact, printed = (measure_spread(secret.counts, secret.domain, secret.distance, whole, b) for b in ("exact", "printed"))
    assert exact <= printed <= 1


def transport(secret: Secret, buckets: list[np.ndarray], a: np.ndarray) -> float:
    """D by a linear program: buckets as far apart as their farthest values."""
    b = len(buckets)
    far = np.zeros((b, b))
    for i, j in itertools.permutations(range(b), 2):
        far[i, j] = max(secret.between(x, y) for x in buckets[i].tolist() for y in buckets[j].tolist())
    sizes = np.array([secret.counts[codes].sum() for codes in buckets])
    rows = np.kron(np.eye(b), np.ones(b))
    columns = np.kron(np.ones(b), np.eye(b))
    shares = np.concatenate([a / a.sum(), sizes / sizes.sum()])
    return float(linprog(far.ravel(), A_eq=np.vstack([rows, columns]), b_eq=shares, method="highs").fun)


@settings(max_examples=examples(60))
@given(secrets(), LIMITS, st.data())
def test_closed_forms_equal_the_transportation_problem(secret: Secret, t: Fraction, data: st.DataObject) -> None:
    buckets = bucketize(secret.counts, secret.domain, secret.distance, t)
    a = allotments_of(data.draw, buckets, 6)
    assert float(secret.test(buckets).d(a)) == pytest.approx(transport(secret, buckets, a), abs=1e-7)


def fills(buckets: list[np.ndarray], a: np.ndarray, available: np.ndarray) -> Iterator[np.ndarray]:
    """Every choice of values for an allotment, each value at most as often as it is available."""
    choices = []
    for codes, rows in zip(buckets, a.tolist(), strict=True):
        several = itertools.product(*(range(min(rows, int(available[code])) + 1) for code in codes.tolist()))
        choices.append([pick for pick in several if sum(pick) == rows])
    for picks in itertools.product(*choices):
        counts = np.zeros(len(available), dtype=np.int64)
        for codes, pick in zip(buckets, picks, strict=True):
            counts[codes] = pick
        yield counts


def classes_of(fillings: list[np.ndarray], secret: Secret) -> Classes:
    """Each filling as a class next to the whole table."""
    dense = np.array(fillings)
    owner, codes = np.nonzero(dense)
    starts = np.searchsorted(owner, np.arange(len(dense) + 1))
    histogram = Histogram(starts, codes.astype(np.int32), dense[owner, codes], secret.counts, secret.domain)
    return Classes(dense.sum(axis=1), dense.sum(axis=1), {"secret": histogram})


@settings(max_examples=examples(120))
@given(secrets(most=7), LIMITS, st.data())
def test_the_worst_case_is_reached_and_never_passed(secret: Secret, t: Fraction, data: st.DataObject) -> None:
    buckets = bucketize(secret.counts, secret.domain, secret.distance, t)
    a = allotments_of(data.draw, buckets, 3)
    test = secret.test(buckets, t)
    classes = classes_of(list(fills(buckets, a, np.full(len(secret.counts), 9))), secret)
    model = TCloseness("secret", 1, secret.distance)
    worst = max(model.exact_level(classes, i) for i in range(len(classes)))
    assert test.worst_case(a) == worst <= test.d(a) + test.u
    assert test.allows(a) == (worst <= t)


@settings(max_examples=examples(100))
@given(secrets(), LIMITS, st.data())
def test_the_exact_test_allows_whatever_the_printed_one_does(secret: Secret, t: Fraction, data: st.DataObject) -> None:
    buckets = bucketize(secret.counts, secret.domain, secret.distance, t, "printed")
    printed, exact = (secret.test(buckets, t, bound) for bound in ("printed", "exact"))
    a = allotments_of(data.draw, buckets, 8)
    assert printed.allows(a) == (printed.d(a) + printed.u <= t)
    assert exact.worst_case(a) <= printed.d(a) + exact.u <= printed.d(a) + printed.u
    assert exact.allows(a) or not printed.allows(a)
    assert printed.allows(printed.sizes) and exact.allows(exact.sizes)


@settings(max_examples=examples(60))
@given(secrets(rows=12), LIMITS, st.data())
def test_numbers_beyond_64_bits_change_nothing(secret: Secret, t: Fraction, data: st.DataObject) -> None:
    buckets = bucketize(secret.counts, secret.domain, secret.distance, t)
    a = allotments_of(data.draw, buckets, 6)
    large = Secret(secret.counts * 10**9, secret.domain, secret.distance)
    one, other = secret.test(buckets, t), large.test(buckets, t)
    assert one.u == other.u
    for many in (1, 10**9):
        assert (one.d(a), one.worst_case(a)) == (other.d(a * many), other.worst_case(a * many))


def naive_halves(a: tuple[int, ...], k: int, allows: Any, first: str) -> list[tuple[int, ...]]:
    up, down = tuple((x + 1) // 2 for x in a), tuple(x // 2 for x in a)
    pair = (up, down) if first == "ceil" else (down, up)
    if max(a) < 2 or not all(sum(half) >= k and allows(np.array(half)) for half in pair):
        return [a]
    return [leaf for half in pair for leaf in naive_halves(half, k, allows, first)]


@settings(max_examples=examples(100))
@given(secrets(rows=40), LIMITS, st.integers(1, 9), st.sampled_from(["ceil", "floor"]))
def test_the_size_tree_is_the_recursion(secret: Secret, t: Fraction, k: int, first: str) -> None:
    buckets = bucketize(secret.counts, secret.domain, secret.distance, t)
    test = secret.test(buckets, t)
    got = halve(test.sizes, k, test.allows, first)
    assert [tuple(line) for line in got.tolist()] == naive_halves(tuple(test.sizes.tolist()), k, test.allows, first)


def assert_worst_fills_hold(secret: Secret, plan: Plan, model: Any) -> None:
    """Every class on its own may be filled in any way that the table allows: the rest of the rows can always be dealt."""
    buckets = [np.flatnonzero(plan.bucket_of == j) for j in range(len(plan.sizes))]
    for a in np.unique(plan.allotments, axis=0):
        some = list(itertools.islice(fills(buckets, a, secret.counts), 3000))
        assert model.holds(classes_of(some, secret)).all()


def assert_greedy_fills_hold(secret: Secret, plan: Plan, model: Any, seed: int) -> None:
    """Whole tables filled by adversaries: lowest codes first, highest first, rarest first, most frequent first, at random."""
    codes = np.repeat(np.arange(len(secret.counts)), secret.counts).astype(np.int32)
    rng = np.random.default_rng(seed)
    for key in (codes, -codes, secret.counts[codes], -secret.counts[codes], rng.permutation(len(codes))):
        for order in (np.arange(len(plan.allotments)), rng.permutation(len(plan.allotments))):
            class_of = np.empty(len(codes), dtype=np.int32)
            for j in range(len(plan.sizes)):
                rows = np.flatnonzero(plan.bucket_of[codes] == j)
                rows = rows[np.argsort(key[rows], kind="stable")]
                class_of[rows] = np.repeat(order, plan.allotments[order, j])
            classes = Classes.of(class_of, len(plan.allotments), {"secret": (codes, secret.domain)})
            assert classes.sizes.tolist() == plan.class_sizes.tolist()
            assert model.holds(classes).all()


@settings(max_examples=examples(150))
@given(secrets(most=6, rows=9), LIMITS, st.integers(1, 5), st.sampled_from(["exact", "printed"]), st.booleans(), st.data())
def test_any_fill_of_a_sabre_plan_keeps_t(
    secret: Secret, t: Fraction, k: int, bound: str, balanced: bool, data: st.DataObject
) -> None:
    assume(secret.n >= k)
    gamma = data.draw(st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1)]))
    plan = sabre_plan(secret.counts, secret.domain, secret.distance, t, k, bound, gamma=gamma, balanced=balanced)
    plan.check(secret.counts)
    assert plan.class_sizes.min() >= k
    model = TCloseness("secret", t, secret.distance)
    assert_worst_fills_hold(secret, plan, model)
    assert_greedy_fills_hold(secret, plan, model, data.draw(st.integers(0, 99)))


@settings(max_examples=examples(80))
@given(secrets(most=30, rows=60), LIMITS, st.integers(1, 5), st.booleans(), st.integers(0, 99))
def test_any_fill_of_a_larger_sabre_plan_keeps_t(secret: Secret, t: Fraction, k: int, balanced: bool, seed: int) -> None:
    assume(secret.n >= k)
    plan = sabre_plan(secret.counts, secret.domain, secret.distance, t, k, balanced=balanced)
    assert_greedy_fills_hold(secret, plan, TCloseness("secret", t, secret.distance), seed)


def test_ground_names_are_the_models() -> None:
    domain = numeric().bind(np.arange(3))[0]
    assert ground_of(np.array([1, 0, 1, 0]), domain, "ordered").ranks.tolist() == [0, 1]
    declared = numeric(0, 3, bins=3).bind(np.zeros(0))[0]
    assert ground_of(np.array([1, 0, 1, 0]), declared, "ordered").ranks.tolist() == [0, 2]


def test_buckets_of_another_shape_are_refused() -> None:
    domain = numeric().bind(np.arange(4))[0]
    counts = np.array([1, 1, 1, 1, 0])
    for buckets in ([[0, 2], [1, 3]], [[0, 1]], [[2, 3], [0, 1]]):
        with pytest.raises(ValueError, match="buckets must"):
            ClosenessTest(counts, domain, "ordered", [np.array(codes) for codes in buckets], Fraction(1))
    tree = Tree.of({"A": {"a": None, "b": None}, "B": {"c": None, "d": None}})
    for buckets in ([[0, 2], [1, 3]], [[0, 1]], [[2, 3], [0, 1]]):
        with pytest.raises(ValueError, match="buckets must"):
            ClosenessTest(counts, Domain(tuple("abcd"), tree), "hierarchical", [np.array(c) for c in buckets], Fraction(1))

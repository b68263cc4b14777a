"""Sizes of classes over fragments: dealing, divisors, what rounding can cost, and plans that no fill can break."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from test_plans_fragments import LIMITS, ONE, Secrets, corners, secrets, split_at_random

from closeknit.core.errors import BadInput
from closeknit.models import TCloseness
from closeknit.plans.fragment_sizes import SIZINGS, FragmentTest, deal_sizes, fragment_plan, gcd_classes, most_classes
from closeknit.plans.fragments import Fragments, find_fragmentation
from closeknit.plans.plan import Plan
from conftest import examples


@settings(max_examples=examples(100))
@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(1, 30))
def test_dealing_gives_floor_or_ceil_of_everything(sizes: list[int], e: int) -> None:
    a = deal_sizes(np.array(sizes), e)
    assert a.sum(axis=0).tolist() == sizes
    assert ((a == np.array(sizes) // e) | (a == -(-np.array(sizes) // e))).all()
    assert np.ptp(a.sum(axis=1)) <= 1
    ends = np.cumsum(sizes)
    some = deal_sizes(np.array(sizes), e, np.unique(np.append(ends % e, 0)))
    assert {tuple(line) for line in some.tolist()} == {tuple(line) for line in a.tolist()}  # no other line to be judged


@settings(max_examples=examples(100))
@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.integers(1, 50))
def test_the_largest_divisor_with_k_rows(sizes: list[int], k: int) -> None:
    n, g = sum(sizes), math.gcd(*sizes)
    right = max([q for q in range(1, g + 1) if g % q == 0 and n // q >= k], default=1)
    assert gcd_classes(np.array(sizes), k) == right


def transport(made: Secrets, fragments: Fragments, a: np.ndarray, i: int) -> float:
    """D by a linear program: fragments as far apart as the farthest values of their intervals; equal intervals are one."""
    lo, hi = (ends[:, i] for ends in fragments.boxes)
    rank = made.space.axes[i].place / made.space.axes[i].unit
    f = len(a)
    far = np.array(
        [
            [
                0 if (lo[x], hi[x]) == (lo[y], hi[y]) else max(rank[hi[y]] - rank[lo[x]], rank[hi[x]] - rank[lo[y]])
                for y in range(f)
            ]
            for x in range(f)
        ]
    )
    shares = np.concatenate([a / a.sum(), fragments.sizes / fragments.sizes.sum()])
    lines = np.vstack([np.kron(np.eye(f), np.ones(f)), np.kron(np.ones(f), np.eye(f))])
    return float(linprog(far.ravel(), A_eq=lines, b_eq=shares, method="highs").fun)


@settings(max_examples=examples(80))
@given(secrets(rows=14, lines=True), st.data())
def test_the_closed_form_equals_the_transportation_problem(made: Secrets, data: st.DataObject) -> None:
    """Also where intervals overlap, as those of fragments do."""
    fragments = split_at_random(data.draw, made)
    a = np.array([data.draw(st.integers(0, 5)) for _ in fragments.sizes])
    assume(a.sum() > 0)
    test = FragmentTest(fragments, [ONE] * len(made.distances))
    for i in range(len(made.distances)):
        assert float(test.d(a, i)) == pytest.approx(transport(made, fragments, a, i), abs=1e-7)


@settings(max_examples=examples(120))
@given(secrets(rows=10), st.lists(LIMITS, min_size=3, max_size=3), st.sampled_from(["best", "printed"]), st.data())
def test_no_class_passes_what_its_allotment_allows(
    made: Secrets, limits: list[Fraction], bound: str, data: st.DataObject
) -> None:
    fragments = split_at_random(data.draw, made)
    a = np.array([data.draw(st.integers(0, 3)) for _ in fragments.sizes])
    assume(a.sum() > 0)
    test = FragmentTest(fragments, limits[: len(made.distances)], bound)
    kept = []
    for i in range(len(made.distances)):
        worst = max(made.worst(i, cells) for cells in itertools.islice(corners(fragments, a), 1500))
        measured = test.d(a, i) + fragments.distance_bound(i, bound)
        assert worst <= measured and worst <= test.per_cut(a, i)
        kept.append(min(measured, test.per_cut(a, i)) <= limits[i] if bound == "best" else measured <= limits[i])
    assert test.allows(a) == all(kept)


def test_numbers_beyond_64_bits_change_nothing() -> None:
    made = Secrets([[0, 0, 1, 2, 2, 3], [1, 2, 3, 4, 4, 0]], ["ordered", "hierarchical"])
    fragments = find_fragmentation(made.space, [Fraction(1, 4), Fraction(1, 2)])
    test = FragmentTest(fragments, [Fraction(1, 3), Fraction(2, 3)])
    a = fragments.sizes + 1
    for many in (1, 10**16):
        assert [(test.d(a * many, i), test.per_cut(a * many, i)) for i in (0, 1)] == [
            (test.d(a, i), test.per_cut(a, i)) for i in (0, 1)
        ]
        assert test.allows(a * many) == test.allows(a)


def test_equality_is_allowed() -> None:
    made = Secrets.of_matrix([[2, 1], [1, 2]])
    fragments = made.fragments([0, 0, 1, 1])
    bounds = [fragments.distance_bound(i) for i in (0, 1)]
    assert FragmentTest(fragments, bounds).allows(fragments.sizes)
    assert not FragmentTest(fragments, [bounds[0], bounds[1] - Fraction(1, 10**15)]).allows(fragments.sizes)


def assert_any_fill_holds(made: Secrets, plan: Plan, limits: list[Fraction], seed: int) -> None:
    """Whole tables filled by adversaries, along either secret or at random, from both ends."""
    rng = np.random.default_rng(seed)
    cell_of = made.space.cell_of
    keys = [*made.codes, *(-codes for codes in made.codes), sum(made.codes), rng.permutation(made.n)]
    for key in keys:
        for order in (np.arange(len(plan.allotments)), rng.permutation(len(plan.allotments))):
            class_of = np.empty(made.n, dtype=np.int32)
            for f in range(len(plan.sizes)):
                rows = np.flatnonzero(plan.bucket_of[cell_of] == f)
                class_of[rows[np.argsort(key[rows], kind="stable")]] = np.repeat(order, plan.allotments[order, f])
            classes = made.classes(class_of)
            assert classes.sizes.tolist() == plan.class_sizes.tolist()
            for i, (t, distance) in enumerate(zip(limits, made.distances, strict=True)):
                assert TCloseness(str(i), str(min(t, ONE)), distance).holds(classes).all()


@settings(max_examples=examples(100))
@given(
    secrets(most=4, rows=60),
    st.lists(LIMITS, min_size=3, max_size=3),
    st.integers(1, 5),
    st.sampled_from(SIZINGS),
    st.sampled_from(["best", "printed"]),
    st.sampled_from([Fraction(1, 4), ONE]),
    st.integers(0, 99),
)
def test_any_fill_of_a_plan_keeps_every_limit(
    made: Secrets, limits: list[Fraction], k: int, sizing: str, bound: str, gamma: Fraction, seed: int
) -> None:
    assume(made.n >= k)
    limits = limits[: len(made.distances)]
    fragments = find_fragmentation(made.space, [gamma * t for t in limits], bound)
    plan = fragment_plan(fragments, limits, k, sizing, bound)
    plan.check(made.space.counts)
    assert plan.class_sizes.min() >= k
    assert_any_fill_holds(made, plan, limits, seed)


def test_adversaries_break_a_plan_that_was_made_for_more() -> None:
    """Otherwise the test above could not fail."""
    made = Secrets([np.arange(60) % 10, np.arange(60) // 6], ["ordered", "ordered"])
    loose, strict = [Fraction(1, 2)] * 2, [Fraction(1, 10)] * 2
    plan = fragment_plan(find_fragmentation(made.space, loose), loose, 2)
    with pytest.raises(AssertionError):
        assert_any_fill_holds(made, plan, strict, 0)


def test_more_classes_are_looked_for_above_the_first_bisection() -> None:
    sizes = np.array([30, 30])
    assert most_classes(sizes, 3, lambda a: True) == 20
    assert most_classes(sizes, 3, lambda a: False) == 1
    assert most_classes(sizes, 100, lambda a: True) == 1
    islands = {1, 2, 3, 4, 5, 8}
    assert most_classes(sizes, 3, lambda a: round(60 / a.sum(axis=1).mean()) in islands) == 8


def test_wrong_words_are_refused() -> None:
    made = Secrets([[1, 2]], ["ordered"])
    with pytest.raises(BadInput, match="bound='exact'"):
        find_fragmentation(made.space, [ONE], "exact")
    with pytest.raises(BadInput, match="sizing='none'"):
        fragment_plan(find_fragmentation(made.space, [ONE]), [ONE], 1, "none")

"""Recursive halving for two ordered secrets: every prefix of both orders is shared, whatever the rows."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.checks.methods import guarantee_met, run_case
from closeknit.checks.oracle import oracle_level
from closeknit.checks.tables import Case
from closeknit.core.columns import Columns
from closeknit.kernels.dealing.recursive_halving import halve_groups
from closeknit.kernels.dealing.rounds import literal
from conftest import examples

Rows = list[tuple[int, int]]


def halves(rows: Rows, k: int, seed: int = 0) -> list[list[int]]:
    """Row numbers of each class."""
    one, other = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    place = np.random.default_rng(seed).permutation(len(rows))
    class_of = halve_groups(one, other, place, k).tolist()
    return [[row for row, c in enumerate(class_of) if c == name] for name in sorted(set(class_of))]


def prefixes(rows: Rows, secret: int) -> list[set[int]]:
    """Of the order by value: all rows up to each value."""
    return [{r for r, row in enumerate(rows) if row[secret] <= value} for value in sorted({row[secret] for row in rows})]


def distances(rows: Rows, classes: list[list[int]], secret: int) -> list[Fraction]:
    column = [row[secret] for row in rows]
    domain = sorted(set(column))
    found = [oracle_level("t_closeness", [column[r] for r in part], column, t=1, ground=domain) for part in classes]
    return [Fraction(level) for level in found]  # type: ignore[arg-type]


few_values = st.tuples(st.integers(0, 3), st.integers(0, 3))
many_values = st.tuples(st.integers(0, 60), st.integers(0, 60))
tables = st.one_of(st.lists(few_values, min_size=2, max_size=70), st.lists(many_values, min_size=2, max_size=70))


@given(tables, st.integers(0, 3))
@settings(max_examples=examples(60))
def test_one_cut_shares_every_prefix_within_one(rows: Rows, seed: int) -> None:
    one, other = halves(rows, len(rows) // 2, seed)[:2] if len(rows) > 3 else ([0], [1])
    if len(rows) > 3:
        assert sorted(one + other) == list(range(len(rows))) and abs(len(one) - len(other)) <= 1
        for secret in (0, 1):
            for prefix in prefixes(rows, secret):
                assert abs(len(prefix & set(one)) - len(prefix & set(other))) <= 1


@given(tables.filter(lambda rows: len(rows) >= 8), st.integers(1, 3), st.integers(0, 3))
@settings(max_examples=examples(60))
def test_after_many_cuts_every_prefix_is_off_by_less_than_one(rows: Rows, cuts: int, seed: int) -> None:
    k = len(rows) >> cuts
    if k < 2:
        return
    classes = halves(rows, k, seed)
    assert sorted(row for part in classes for row in part) == list(range(len(rows)))
    assert len(classes) == 2**cuts and {len(part) for part in classes} <= {k, k + 1}
    for secret in (0, 1):
        for prefix in prefixes(rows, secret):
            fair = Fraction(len(prefix), 2**cuts)
            assert all(abs(len(prefix & set(part)) - fair) < 1 for part in classes)
        even = len(rows) % 2**cuts == 0
        for part, level in zip(classes, distances(rows, classes, secret), strict=True):
            assert level < Fraction(1 if even else 2, len(part))


@given(tables, st.integers(1, 9))
@settings(max_examples=examples(40))
def test_classes_have_k_rows_and_none_could_be_cut(rows: Rows, k: int) -> None:
    sizes = [len(part) for part in halves(rows, k)]
    assert sum(sizes) == len(rows) and all(k <= size < 2 * k or size == len(rows) < k for size in sizes)


@pytest.mark.parametrize("seed", range(3))
def test_a_random_table_of_1025_rows(seed: int) -> None:
    """Halving against cells stacked by frequency and dealt as printed, both with 128 classes."""
    rng = np.random.default_rng(seed)
    rows = [tuple(row) for row in rng.integers(0, 10, (1025, 2)).tolist()]
    classes = halves(rows, 8, seed)
    assert len(classes) == 128 and min(map(len, classes)) == 8
    times = Counter(rows)
    stack = sorted(range(len(rows)), key=lambda r: (-times[rows[r]], rows[r]))
    dealt = [[stack[z] for z in np.flatnonzero(literal(1025, 128) == d)] for d in range(128)]
    ours, printed = ([max(distances(rows, parts, secret)) for secret in (0, 1)] for parts in (classes, dealt))
    assert max(ours) < Fraction(9, 100) and min(printed) > max(ours) and max(printed) > 2 * max(ours)


def test_free_choices_go_by_the_curve() -> None:
    """Rows of one cell: the halves are the halves of the curve, and so are their halves."""
    place = np.random.default_rng(5).permutation(64)
    nothing = np.zeros(64, dtype=np.int64)
    assert (halve_groups(nothing, nothing, place, 16) == place // 16).all()


def two_orders(seed: int, rows: int) -> Columns:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, rows)
    return Columns.of(
        {
            "age": age.tolist(),
            "sex": rng.choice(["f", "m"], rows).tolist(),
            "wage": (age // 4 + rng.integers(0, 9, rows)).tolist(),
            "pressure": rng.integers(90, 99, rows).tolist(),
        }
    )


SCHEMA = ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat()}, sensitive={"wage": ck.numeric(), "pressure": ck.numeric()})


@pytest.mark.parametrize("t", [0, "1/50", 0.1, 1])
@pytest.mark.parametrize("column", [None, ["pressure", "wage"], "wage"])
def test_guarantees_are_kept(t: Any, column: Any) -> None:
    models = (ck.KAnonymity(4), ck.TCloseness("wage", t), ck.TCloseness("pressure", t), ck.LDiversity("wage", 2))
    guarantee_met(ck.StackAndDeal(dealing="halving", column=column), Case("two", two_orders(1, 203), SCHEMA, models))


@pytest.mark.parametrize("seed", range(2))
def test_dealing_tries_halving_where_two_orders_are_guaranteed(seed: int) -> None:
    models = (ck.KAnonymity(4), ck.TCloseness("wage", 0.06), ck.TCloseness("pressure", 0.06))
    case = Case("two", two_orders(seed, 512), SCHEMA, models)
    both, halved_only = run_case(ck.StackAndDeal(), case).loss, run_case(ck.StackAndDeal(dealing="halving"), case).loss
    one = run_case(ck.StackAndDeal(column=("wage", "pressure")), case).loss
    assert both <= min(halved_only, one) + 1e-12
    assert halved_only < one  # otherwise this test could not fail


@pytest.mark.soak
@given(st.lists(many_values, min_size=300, max_size=900), st.integers(2, 40))
@settings(max_examples=examples(5))
def test_large_tables_share_every_prefix(rows: Rows, k: int) -> None:
    classes = halves(rows, k)
    assert sorted(row for part in classes for row in part) == list(range(len(rows)))
    for secret in (0, 1):
        levels = distances(rows, classes, secret)
        assert all(level < Fraction(2, len(part)) for part, level in zip(classes, levels, strict=True))

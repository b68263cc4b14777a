"""BUREL's plans on generated secrets: the printed recursion, and every fill that the table allows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_plans_sabre import Secret, assert_greedy_fills_hold, assert_worst_fills_hold, classes_of

from closeknit.checks.oracle import oracle_holds
from closeknit.core.exact import decimal, log
from closeknit.core.kinds import numeric
from closeknit.models import BetaLikeness
from closeknit.plans import burel_plan
from closeknit.plans.burel_buckets import LikenessTest, dp_partition, most_rows
from conftest import examples

BETAS = st.sampled_from(["1/10", "1/2", "1", "3/2", "2", "3", "5", "50"]).map(Fraction)
KINDS = st.sampled_from(["enhanced", "basic"])


@st.composite
def counted(draw: st.DrawFn, most: int = 8, rows: int = 30) -> np.ndarray:
    """Rows of each leaf, some of none, the missing leaf last; often ties."""
    counts = np.array(draw(st.lists(st.integers(0, draw(st.sampled_from([3, rows]))), min_size=2, max_size=most + 1)))
    assume(counts.sum() > 0)
    return counts


def secret_of(counts: np.ndarray) -> Secret:
    return Secret(counts, numeric().bind(np.arange(len(counts) - 1))[0], "equal")


def combinable(rows: list[int], n: int, beta: Fraction, kind: str) -> bool:
    """Whether the values with these rows may share a bucket: sum p <= f(min p)."""
    if len(rows) == 1:
        return True
    share, rarest = Fraction(sum(rows), n), Fraction(min(rows), n)
    if share > rarest * (1 + beta):
        return False
    return kind == "basic" or decimal(share / rarest - 1) <= -log(rarest)


def printed_recursion(rows: list[int], beta: Fraction, kind: str) -> list[list[int]]:
    """`DPpartition` as printed, with `<=`: runs of places in the ascending rows."""
    n, m = sum(rows), len(rows)
    fewest, start = [0] * (m + 1), [0] * (m + 1)
    for e in range(1, m + 1):
        fewest[e], start[e] = fewest[e - 1] + 1, e
        for b in range(e - 1, 0, -1):
            if combinable(rows[b - 1 : e], n, beta, kind) and fewest[b - 1] + 1 < fewest[e]:
                fewest[e], start[e] = fewest[b - 1] + 1, b
    runs, e = [], m
    while e:
        runs.append(list(range(start[e] - 1, e)))
        e = start[e] - 1
    return runs[::-1]


@settings(max_examples=examples(300))
@given(counted(most=12), BETAS, KINDS)
def test_buckets_are_those_of_the_printed_recursion(counts: np.ndarray, beta: Fraction, kind: str) -> None:
    order = sorted(np.flatnonzero(counts).tolist(), key=lambda code: (counts[code], code))
    runs = printed_recursion([int(counts[code]) for code in order], beta, kind)
    buckets = dp_partition(counts, beta, kind)
    assert [codes.tolist() for codes in buckets] == [sorted(order[i] for i in run) for run in runs]


@settings(max_examples=examples(200))
@given(st.integers(1, 10**7), st.integers(0, 10**7), BETAS, KINDS)
def test_most_rows_is_the_last_whole_number_below_f(count: int, others: int, beta: Fraction, kind: str) -> None:
    n = count + others
    most = most_rows(count, n, beta, kind)

    def fits(rows: int) -> bool:
        return rows <= count * (1 + beta) and (
            kind == "basic" or decimal(Fraction(rows, count) - 1) <= -log(Fraction(count, n))
        )

    assert fits(most) and not fits(most + 1)


@settings(max_examples=examples(200))
@given(counted(), BETAS, KINDS, st.data())
def test_an_allotment_is_allowed_iff_its_worst_fill_holds(
    counts: np.ndarray, beta: Fraction, kind: str, data: st.DataObject
) -> None:
    """The worst fill gives all rows of a bucket to its rarest value; judged by the naive definition too."""
    buckets = dp_partition(counts, beta, kind)
    a = np.array(data.draw(st.lists(st.integers(0, 6), min_size=len(buckets), max_size=len(buckets))))
    assume(a.sum() > 0)
    worst = np.zeros(len(counts), dtype=np.int64)
    for codes, rows in zip(buckets, a.tolist(), strict=True):
        worst[codes[np.argmin(counts[codes])]] = rows
    model = BetaLikeness("secret", str(beta), kind)
    allowed = LikenessTest(counts, buckets, beta, kind).allows(a)
    assert allowed == bool(model.holds(classes_of([worst], secret_of(counts)))[0])
    members, everyone = (np.repeat(np.arange(len(counts)), each).tolist() for each in (worst, counts))
    assert allowed == oracle_holds("beta_likeness", members, everyone, beta=str(beta), kind=kind, ground=None)


@settings(max_examples=examples(150))
@given(counted(most=6, rows=9), BETAS, KINDS, st.integers(1, 5), st.data())
def test_any_fill_of_a_burel_plan_keeps_beta(
    counts: np.ndarray, beta: Fraction, kind: str, k: int, data: st.DataObject
) -> None:
    assume(counts.sum() >= k)
    secret = secret_of(counts)
    gamma = data.draw(st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1)]))
    plan = burel_plan(counts, secret.domain, beta, k, kind, gamma=gamma)
    assert plan.class_sizes.min() >= k
    model = BetaLikeness("secret", str(beta), kind)
    assert_worst_fills_hold(secret, plan, model)
    assert_greedy_fills_hold(secret, plan, model, data.draw(st.integers(0, 99)))


@settings(max_examples=examples(60))
@given(counted(most=40, rows=200), BETAS, KINDS, st.integers(1, 5), st.integers(0, 99))
def test_any_fill_of_a_larger_burel_plan_keeps_beta(counts: np.ndarray, beta: Fraction, kind: str, k: int, seed: int) -> None:
    assume(counts.sum() >= k)
    secret = secret_of(counts)
    plan = burel_plan(counts, secret.domain, beta, k, kind)
    assert_greedy_fills_hold(secret, plan, BetaLikeness("secret", str(beta), kind), seed)


def test_equality_at_beta_is_allowed_exactly() -> None:
    """Two equally frequent values, beta = 1: each may fill a class; a hair less and none may."""
    counts = np.array([3, 3, 3, 3, 0])
    pair = [np.array([0, 1]), np.array([2, 3])]
    half = np.array([1, 1])
    assert LikenessTest(counts, pair, Fraction(1), "basic").allows(half)
    assert not LikenessTest(counts, pair, Fraction(1) - Fraction(1, 10**30), "basic").allows(half)


def test_rounding_of_a_float_refuses_no_equality() -> None:
    buckets = [np.array([0]), np.array([1])]
    for rows in range(1, 40):
        for tenths in range(1, 10):
            test = LikenessTest(np.array([rows, 100 - rows, 0]), buckets, Fraction(tenths, 10), "basic")
            full = rows * (10 + tenths)  # of a thousand: p * (1 + beta) to the row
            assert test.allows(np.array([full, 1000 - full])) == (1000 - full <= (100 - rows) * (10 + tenths))
            assert not test.allows(np.array([full + 1, 999 - full]))


def test_a_float_near_the_logarithm_does_not_decide() -> None:
    """q within 1e-12 of p * (1 - ln p) on either side."""
    counts, buckets = np.array([1, 9, 0]), [np.array([0]), np.array([1])]
    s = 10**12
    cap = int(decimal(Fraction(1, 10)) * (1 - log(Fraction(1, 10))) * s)
    test = LikenessTest(counts, buckets, Fraction(100))
    assert test.allows(np.array([cap, s - cap])) and not test.allows(np.array([cap + 1, s - cap - 1]))

"""Dealing keeps what it guarantees on random stacks, whatever the quasi-identifiers, and lowers the loss."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from closeknit.kernels.dealing import sweeps as sweeping
from closeknit.kernels.dealing.boundary import HEAD, TAIL, Rules
from closeknit.kernels.dealing.rounds import build_members, literal, rounds, super_rounds
from closeknit.kernels.geometry.boxes import Scales, partition_loss, positions
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys
from closeknit.kernels.geometry.ranges import costs
from dealing_bounds import rounds_bound, rounds_certificate, super_round_certificate
from kernel_inputs import flat_scales

SIZES = [30, 2, 5, 12]


def table(n: int, values: int, seed: int, numeric: bool = True) -> tuple[np.ndarray, np.ndarray, Scales]:
    """Secret in 0..values-1 that goes along with the quasi-identifiers; some cells missing."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)
    secret = np.clip(np.round(hidden + rng.normal(size=n) + values / 2), 0, values - 1).astype(np.int64)
    points = 1 / (1 + np.exp(-(hidden[:, None] * rng.normal(size=len(SIZES)) + rng.normal(size=(n, len(SIZES))))))
    quasi = np.minimum(points * SIZES, np.array(SIZES) - 1).astype(np.int32)
    quasi[rng.random(quasi.shape) < 0.02] = 0
    quasi[:, 0][rng.random(n) < 0.02] = SIZES[0]
    return secret, quasi, flat_scales(SIZES, numeric)


def counts_of(class_of: np.ndarray, secret: np.ndarray, e: int) -> np.ndarray:
    counts = np.zeros((e, int(secret.max(initial=0)) + 1), np.int64)
    np.add.at(counts, (class_of, secret), 1)
    return counts


def check_sizes(class_of: np.ndarray, n: int, e: int) -> None:
    sizes = np.bincount(class_of, minlength=e)
    assert len(class_of) == n
    assert len(sizes) == e
    assert set(sizes.tolist()) <= {n // e, -(-n // e)}


def check_counts(counts: np.ndarray, e: int) -> None:
    freqs = counts.sum(axis=0)
    assert (counts >= freqs // e).all()
    assert (counts <= -(-freqs // e)).all()


def largest_deviation(counts: np.ndarray) -> Fraction:
    """Over all classes and cuts between values: |c/s - F/n|."""
    n, sizes = int(counts.sum()), counts.sum(axis=1)
    part, whole = counts.cumsum(axis=1), counts.sum(axis=0).cumsum()
    gaps = np.abs(part * n - whole * sizes[:, None]).max(axis=1)
    return max(Fraction(int(gap), int(size) * n) for gap, size in zip(gaps, sizes, strict=True))


def measured_t(counts: np.ndarray) -> Fraction:
    n, sizes = int(counts.sum()), counts.sum(axis=1)
    gaps = np.abs(counts.cumsum(axis=1) * n - counts.sum(axis=0).cumsum() * sizes[:, None])[:, :-1].sum(axis=1)
    cuts = max(counts.shape[1] - 1, 1)
    return max(Fraction(int(gap), int(size) * n * cuts) for gap, size in zip(gaps, sizes, strict=True))


@st.composite
def stacks(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Frequencies in value order and a number of classes; often values that cross from one round into the next."""
    freqs = draw(st.lists(st.integers(1, 40), min_size=1, max_size=8))
    n = sum(freqs)
    return np.repeat(np.arange(len(freqs)), freqs), draw(st.integers(1, n))


@settings(max_examples=200, deadline=None)
@given(stacks(), st.integers(0, 2**31), st.booleans(), st.sampled_from([0, 1, 3]))
def test_rounds_keep_sizes_counts_and_prefixes(stack_of: tuple[np.ndarray, int], seed: int, numeric: bool, sweeps: int) -> None:
    secret, e = stack_of
    n = len(secret)
    rng = np.random.default_rng(seed)
    secret = rng.permutation(secret)
    quasi = np.stack([rng.integers(0, size + 1, n) for size in SIZES], axis=1).astype(np.int32)
    scales = flat_scales(SIZES, numeric)
    stack = np.argsort(secret, kind="stable")
    class_of = rounds(stack, secret[stack], e, quasi, scales, sweeps=sweeps)
    check_sizes(class_of, n, e)
    counts = counts_of(class_of, secret, e)
    check_counts(counts, e)
    assert largest_deviation(counts) <= rounds_bound(n, e)
    assert measured_t(counts) <= rounds_certificate(counts.sum(axis=0), e)
    dealt = np.empty(n, np.int32)
    dealt[stack] = literal(n, e)
    assert partition_loss(scales, quasi, class_of, e) <= partition_loss(scales, quasi, dealt, e) + 1e-12


@pytest.mark.parametrize(("n", "e"), [(700, 130), (655, 131), (1000, 97), (300, 250), (900, 65), (640, 64)])
@pytest.mark.parametrize("values", [1, 3, 11])
def test_many_windows_keep_sizes_counts_and_prefixes(n: int, e: int, values: int) -> None:
    secret, quasi, scales = table(n, values, seed=n + values, numeric=False)
    stack = np.argsort(secret, kind="stable")
    class_of = rounds(stack, secret[stack], e, quasi, scales)
    check_sizes(class_of, n, e)
    counts = counts_of(class_of, secret, e)
    check_counts(counts, e)
    assert largest_deviation(counts) <= rounds_bound(n, e)


@pytest.mark.parametrize("far", [True, False])
def test_boundary_rule_where_near_rows_would_break_the_counts(far: bool) -> None:
    """Stack [0, 1, 1, 2], two classes: both 1s are alike and would like to share a class."""
    quasi = np.array([[0], [9], [9], [0]] if far else [[0], [0], [9], [9]], np.int32)
    secret = np.array([0, 1, 1, 2])
    class_of = rounds(np.arange(4), secret, 2, quasi, flat_scales([10]))
    assert counts_of(class_of, secret, 2)[:, 1].tolist() == [1, 1]


def pass_over(member: np.ndarray, secret: np.ndarray, quasi: np.ndarray, scales: Scales, e: int, width: int) -> np.ndarray:
    """One pass of windows without pull, in a scrambled order of classes."""
    held = build_members(member.copy(), quasi, secret.astype(np.int32))
    order = np.random.default_rng(e).permutation(e)
    sweeping.one_sweep(order, width, held, Rules.of(np.sort(secret), e), costs(scales), 0.0)
    return held.member.reshape(member.shape)


def loss_of(member: np.ndarray, quasi: np.ndarray, scales: Scales) -> float:
    class_of = np.empty(len(quasi), np.int32)
    classes, at = np.nonzero(member >= 0)
    class_of[member[classes, at]] = classes
    return partition_loss(scales, quasi, class_of, len(member))


@settings(max_examples=60, deadline=None)
@given(stacks(), st.integers(0, 2**31), st.booleans())
def test_a_pass_of_windows_never_raises_the_loss(stack_of: tuple[np.ndarray, int], seed: int, numeric: bool) -> None:
    secret, e = stack_of
    n, scales = len(secret), flat_scales(SIZES, numeric)
    rng = np.random.default_rng(seed)
    quasi = np.stack([rng.integers(0, size, n) for size in SIZES], axis=1).astype(np.int32)
    member = np.full((-(-n // e), e), -1, np.int32)
    member.flat[:n] = np.arange(n)
    member = np.ascontiguousarray(member.T)
    after = pass_over(member, secret, quasi, scales, e, width=8)
    assert sorted(after.ravel().tolist()) == sorted(member.ravel().tolist())
    assert loss_of(after, quasi, scales) <= loss_of(member, quasi, scales) + 1e-12


def test_a_value_is_not_dealt_again_against_its_own_end() -> None:
    """Value 2 begins in round 1, ends in round 2. Moving its first row alone looks cheaper, but forces the other."""
    high, other = 10, 1
    quasi = np.array([[0, 0, 0], [high, high, other], [high, high, 0], [0, 0, other], [0, 0, 0], [high, high, other]], np.int32)
    member, secret = np.array([[0, 2, 4], [1, 3, 5]], np.int32), np.array([0, 0, 1, 2, 2, 3])
    scales = flat_scales([11, 11, 2])
    after = pass_over(member, secret, quasi, scales, 2, width=64)
    assert loss_of(after, quasi, scales) <= loss_of(member, quasi, scales) + 1e-12


@pytest.mark.parametrize("first", [8, 9])
@pytest.mark.parametrize("start", [[[0, 2, -1], [1, 3, 4]], [[0, 2, 4], [1, 3, -1]]])
def test_a_row_too_many_goes_where_the_loss_rises_least(first: int, start: list[list[int]]) -> None:
    """Row 6 to {0, 5} or to {first, first + 1}, counted over the rows of both: for 8 not where a box grows least."""
    quasi = np.array([[0], [first], [5], [first + 1], [6]], np.int32)
    after = pass_over(np.array(start, np.int32), np.arange(5), quasi, flat_scales([11]), 2, width=64)
    best = min(
        loss_of(np.array(m, np.int32), quasi, flat_scales([11])) for m in ([[0, 2, -1], [1, 3, 4]], [[0, 2, 4], [1, 3, -1]])
    )
    assert loss_of(after, quasi, flat_scales([11])) == pytest.approx(best)


def test_rules_say_which_value_is_bound_to_which_round() -> None:
    rules = Rules.of(np.array([0, 1, 1, 1, 1, 2, 3, 3, 3, 3, 4]), 3)  # rounds 0 1 1 | 1 1 2 | 3 3 3 | 3 4
    assert rules.value[HEAD].tolist() == [1, -1, -1, -1]  # 3 begins with a whole round: no class is without it
    assert rules.partner[TAIL].tolist() == [-1, 0, -1, -1]
    assert rules.cover[TAIL].tolist() == [False, True, False, False]


@settings(max_examples=100, deadline=None)
@given(stacks(), st.integers(1, 6), st.integers(0, 2**31))
def test_super_rounds_take_g_rows_of_each(stack_of: tuple[np.ndarray, int], g: int, seed: int) -> None:
    secret, e = stack_of
    n = len(secret)
    rng = np.random.default_rng(seed)
    quasi = np.stack([rng.integers(0, size, n) for size in SIZES], axis=1).astype(np.int32)
    class_of = super_rounds(np.arange(n), e, g, quasi, flat_scales(SIZES), sweeps=2)
    check_sizes(class_of, n, e)
    for start in range(0, n, g * e):
        given_out = class_of[start : start + g * e]
        each = np.bincount(given_out, minlength=e)
        assert set(each.tolist()) <= {len(given_out) // e, -(-len(given_out) // e)}
    assert measured_t(counts_of(class_of, secret, e)) <= super_round_certificate(np.bincount(secret), e, g)


def test_larger_super_rounds_lose_less() -> None:
    losses = np.zeros(3)
    for seed in range(4):
        secret, quasi, scales = table(600, 9, seed)
        stack = np.argsort(secret, kind="stable")
        losses += [partition_loss(scales, quasi, super_rounds(stack, 100, g, quasi, scales), 100) for g in (1, 2, 6)]
    assert losses[0] > losses[1] > losses[2]


def test_the_same_again_and_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    secret, quasi, scales = table(3000, 7, seed=5)
    stack = np.argsort(secret, kind="stable")
    results = []
    for threads in (1, 2, 3, 3):
        monkeypatch.setattr(sweeping.config, "NUMBA_NUM_THREADS", threads)
        results.append(rounds(stack, secret[stack], 500, quasi, scales, sweeps=3))
    assert all((result == results[0]).all() for result in results)


def plain_rounds(stack: np.ndarray, value: np.ndarray, e: int, points: np.ndarray, sweeps: int = 4) -> list[np.ndarray]:
    """Rounds as printed in the specification: squared distance to class centres, exact assignment, boundary rule."""
    n = len(stack)
    blocks = np.array_split(np.argsort(hilbert_keys(points), kind="stable"), e)
    centre = np.array([points[block].mean(axis=0) for block in blocks])
    results = []
    for _ in range(sweeps):
        class_of, head, began = np.empty(n, np.int32), {}, {}
        for start in range(0, n, e):
            rows, values = stack[start : start + e], value[start : start + e]
            cost = ((points[rows][:, None] - centre[None]) ** 2).sum(axis=2)
            v = values[0]
            mine = values == v
            ends = start + e >= n or value[start + e] != v
            if v in head and ends and 0 < len(head[v]) < e:
                taken = np.isin(np.arange(e), list(head[v]))
                if len(head[v]) + mine.sum() <= e:
                    cost[np.ix_(mine, taken)] = 1e6
                else:
                    cost[np.ix_(~mine, ~taken)] = 1e6
                    spare = np.where(taken, 0.0, 1e6)  # a class that must take a row of v may not go without one
                    cost = np.vstack([cost, np.tile(spare, (e - len(rows), 1))])
            if len(cost) < e:
                cost = np.vstack([cost, np.zeros((e - len(cost), e))])
            given_to = linear_sum_assignment(cost)[1][: len(rows)]
            class_of[rows] = given_to
            for u in set(values.tolist()):
                if began.setdefault(u, start) == start:
                    head[u] = set(given_to[values == u].tolist())
        results.append(class_of)
        centre = np.array([points[class_of == c].mean(axis=0) for c in range(e)])
    return results


def test_rounds_lose_no_more_than_the_printed_exact_rounds() -> None:
    ours = printed = dealt = 0.0
    for seed in range(6):
        secret, quasi, scales = table(400, 9, seed)
        stack = np.argsort(secret, kind="stable")
        e = (20, 40, 64)[seed % 3]
        references = plain_rounds(stack, secret[stack], e, positions(scales, quasi))
        for reference in references:  # the reference itself must keep what it is a reference for
            check_sizes(reference, 400, e)
            check_counts(counts_of(reference, secret, e), e)
        printed += min(partition_loss(scales, quasi, reference, e) for reference in references)
        ours += partition_loss(scales, quasi, rounds(stack, secret[stack], e, quasi, scales), e)
        plain = np.empty(400, np.int32)
        plain[stack] = literal(400, e)
        dealt += partition_loss(scales, quasi, plain, e)
    assert ours < printed < dealt


SALARIES = [70, 75, 85, 55, 50, 65, 80, 60, 90, 95]
FREQUENCIES = [42, 39, 37, 31, 24, 20, 17, 16, 15, 9]
PRINTED = [
    [9, 8, 7, 6, 5, 4, 3, 4, 3, 1],
    [9, 7, 8, 6, 5, 4, 3, 3, 3, 2],
    [8, 8, 8, 6, 5, 4, 3, 3, 3, 2],
    [8, 8, 7, 7, 4, 4, 4, 3, 3, 2],
    [8, 8, 7, 6, 5, 4, 4, 3, 3, 2],
]


def distances(counts: np.ndarray) -> list[Fraction]:
    whole = counts.sum(axis=0)
    return [
        sum(
            (
                abs(Fraction(int(part[:i].sum()), int(part.sum())) - Fraction(int(whole[:i].sum()), int(whole.sum())))
                for i in range(1, len(whole))
            ),
            Fraction(0),
        )
        / (len(whole) - 1)
        for part in counts
    ]


def test_table_3_3_of_the_dissertation() -> None:
    by_frequency = np.repeat(np.arange(10), FREQUENCIES)
    counts = counts_of(literal(250, 5), by_frequency, 5)
    assert counts.tolist() == PRINTED
    value_order = np.argsort(SALARIES)
    assert max(distances(counts[:, value_order])) == Fraction(19, 1125)
    by_value = np.repeat(np.arange(10), np.array(FREQUENCIES)[value_order])
    found = distances(counts_of(literal(250, 5), by_value, 5))
    assert found == [Fraction(x) for x in ("23/2250", "11/2250", "1/225", "11/2250", "17/2250")]


def test_degenerate_inputs() -> None:
    scales, nothing = flat_scales(SIZES), np.zeros((0, len(SIZES)), np.int32)
    assert rounds(np.arange(0), np.arange(0), 1, nothing, scales).tolist() == []
    same = np.zeros((7, len(SIZES)), np.int32)
    assert rounds(np.arange(7), np.arange(7), 1, same, scales).tolist() == [0] * 7
    assert rounds(np.arange(7), np.arange(7), 7, same, scales).tolist() == list(range(7))
    check_sizes(rounds(np.arange(7), np.zeros(7, int), 3, same, scales), 7, 3)
    assert rounds(np.arange(5), np.arange(5), 2, np.zeros((5, 0), np.int32), scales).tolist() == [0, 1, 0, 1, 0]


def test_columns_too_large_for_a_table_of_ranges() -> None:
    rng = np.random.default_rng(8)
    quasi = np.stack([rng.integers(0, 5000, 400), rng.integers(0, 300, 400)], axis=1).astype(np.int32)
    secret = np.sort(rng.integers(0, 4, 400))
    for numeric in (True, False):
        scales = flat_scales([5000, 300], numeric)
        class_of = rounds(np.arange(400), secret, 80, quasi, scales)
        check_sizes(class_of, 400, 80)
        check_counts(counts_of(class_of, secret, 80), 80)

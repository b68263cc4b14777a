"""Steps of Knit on partitions: boxes and counts stay those of a recount, and each step keeps the guarantees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.table import Partition, Table
from closeknit.kernels.exchange.class_state import HIGHEST, NO_ENDS, state_of, take
from closeknit.kernels.exchange.knit_exchange import sweep
from closeknit.kernels.exchange.knit_guard import Buckets
from closeknit.kernels.geometry.ranges import costs
from closeknit.search.careful_cuts import cut, recut
from closeknit.search.guards import guard_of, tighten_guard
from closeknit.search.knit_state import KnitState
from closeknit.search.repair import find_broken_classes
from closeknit.search.row_exchange import exchange_rows
from conftest import examples
from kernel_inputs import flat_scales, one_cap


def hospital(rows: int, seed: int = 0) -> Table:
    return ck.datasets.hospital_schema().encode(ck.datasets.hospital(rows, seed=seed))


def test_boxes_and_counts_stay_what_a_recount_says() -> None:
    table = hospital(80)
    guard = guard_of(table, [ck.KAnonymity(1), ck.TCloseness("disease", 0.9)]).guard
    knit_state = KnitState.of(table, guard, [])
    rng = np.random.default_rng(2)
    state = state_of(knit_state.costs, guard, table.quasi, rng.integers(0, 7, 80).astype(np.int32), 7)
    for _ in range(600):
        row, to = int(rng.integers(80)), int(rng.integers(7))
        c = int(state.class_of[row])
        if c == to or state.size[c] == 1:
            continue
        take(knit_state.costs, guard, state, row, to)
        fresh = state_of(knit_state.costs, guard, table.quasi, state.class_of, 7)
        assert (fresh.ends == state.ends).all() and (fresh.under == state.under).all() and (fresh.size == state.size).all()
        assert (fresh.loss == state.loss).all()
        expected = pytest.approx(80 * knit_state.loss(Partition(state.class_of, 7)))
        assert (state.size * state.loss).sum() == expected
        assert knit_state.column_losses(state).sum() == expected
        for j in range(table.quasi.shape[1]):
            codes, counts = np.unique(table.quasi[state.class_of == c, j], return_counts=True)
            low, high = [codes[0], counts[0], [*codes, HIGHEST][1]], [codes[-1], counts[-1], [-1, *codes][-2]]
            assert state.ends[c, j].tolist() == [*low, *high]
    last = state_of(knit_state.costs, guard, table.quasi, (np.arange(80) > 0).astype(np.int32), 2)
    take(knit_state.costs, guard, last, 0, 1)
    assert (last.ends[0] == NO_ENDS).all() and last.size[0] == 0 and last.loss[0] == 0
    take(knit_state.costs, guard, last, 0, 0)
    fresh = state_of(knit_state.costs, guard, table.quasi, last.class_of, 2)
    assert (fresh.ends == last.ends).all() and (fresh.loss == last.loss).all()


@pytest.mark.parametrize(("numeric", "codes"), [(True, [0, 1, 9, 9, 7, 8, 1, 1]), (False, [1, 1, 3, 5, 3, 5, 1, 1])])
def test_rows_outside_a_narrower_range_leave_together(numeric: bool, codes: list[int]) -> None:
    """No row alone stretches the class, and k forbids moves; where one of the rows has no place, all of them stay.

    In a tree the rows are at different leaves, and the class is as wide until the last of them is gone.
    """
    rows, quasi = np.arange(8, dtype=np.int32), np.array(codes, np.int32)[:, None]
    for secret, expected in (
        ([0, 1, 0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 1, 1, 0, 0]),
        ([0, 1, 0, 1, 1, 1, 0, 0], [0] * 4 + [1] * 4),
    ):
        guard, price = one_cap(np.array(secret, np.int32), 4), costs(flat_scales([10], numeric))
        state = state_of(price, guard, quasi, np.array([0] * 4 + [1] * 4, np.int32), 2)
        pairs = Buckets(np.array(secret, np.int32), np.array([0, 1], np.int32))
        changes = sweep(price, guard, pairs, state, rows, rows[2:3], np.zeros(2, np.int32), 0, 8, 0.0, False, 1, True)
        fresh = state_of(price, guard, quasi, state.class_of, 2)
        assert changes == (expected[2] == 1) and state.class_of.tolist() == expected
        assert (fresh.ends == state.ends).all() and (fresh.under == state.under).all() and (fresh.loss == state.loss).all()


@settings(max_examples=examples(15))
@given(
    st.integers(0, 2**32), st.integers(20, 120), st.sampled_from(["disease", "both", "beta"]), st.sampled_from([0.15, 0.3, 0.6])
)
def test_every_step_keeps_the_guarantees_and_lowers_the_loss(seed: int, rows: int, name: str, t: float) -> None:
    others = {"disease": [], "both": [ck.TCloseness("stay", t / 2)], "beta": [ck.BetaLikeness("disease", 3)]}
    table, models = hospital(rows, seed % 1000), [ck.KAnonymity(3), ck.TCloseness("disease", t), *others[name]]
    guard = guard_of(table, models).guard
    knit_state, rng = KnitState.of(table, guard, []), np.random.default_rng(seed)
    now = cut(knit_state, Partition(np.zeros(rows, dtype=np.int32), 1), tighten_guard(guard, 0.7))
    for step in (
        lambda p: cut(knit_state, p, guard),
        lambda p: exchange_rows(knit_state, p, 2, 0.0, rng),
        lambda p: recut(knit_state, p, 3, rng),
    ):
        then = step(now)
        assert knit_state.loss(then) <= knit_state.loss(now) + 1e-12
        assert not find_broken_classes(table, then, models).any()
        now = then
    hot = exchange_rows(knit_state, now, 3, 0.2, rng)
    assert not find_broken_classes(table, hot, models).any()


@pytest.mark.parametrize("t", [0.1, 0.2, 0.3])
def test_swaps_are_judged_for_the_class_that_they_change(t: float) -> None:
    """Many rows share a bucket, and a cached answer holds for one pair of classes only."""
    table, models = hospital(1500), [ck.KAnonymity(3), ck.TCloseness("disease", t)]
    knit_state, rng = KnitState.of(table, guard_of(table, models).guard, []), np.random.default_rng(3)
    start = cut(knit_state, Partition(np.zeros(1500, dtype=np.int32), 1), knit_state.guard)
    for heat in (0.3, 0.1, 0.0):
        start = exchange_rows(knit_state, start, 4, heat, rng)
        assert start.count > 5 and not find_broken_classes(table, start, models).any()

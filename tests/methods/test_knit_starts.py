"""Knit's starts and its budgets: peeled classes are allowed and as large as can be, no release is above Mondrian's, a budget
in seconds is used and can be repeated, and where size and diversity alone decide there are more sweeps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_knit import GUARANTEES, hospital

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.checks.tables import random_tables
from closeknit.core.columns import Columns
from closeknit.core.method import ignore_progress
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.kernels.cutting.peeling import measure_excess, peel_classes
from closeknit.kernels.exchange.class_state import state_of
from closeknit.kernels.exchange.knit_guard import Guard, count_row, is_allowed
from closeknit.methods import Knit, knit
from closeknit.search import peeling, round_clock
from closeknit.search.careful_cuts import cut
from closeknit.search.guards import guard_of
from closeknit.search.knit_state import KnitState
from closeknit.search.peeling import peel
from closeknit.search.repair import find_broken_classes
from closeknit.search.round_clock import RoundClock
from closeknit.search.row_exchange import _group_classes, exchange_rows
from closeknit.search.share_start import start_from_shares
from conftest import SOAK_SEED, examples


def _state(table: Table, models: Sequence[Model]) -> KnitState:
    made = guard_of(table, models)
    return KnitState.of(table, made.guard, made.unguarded)


# Peeling -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", GUARANTEES, ids=repr)
@pytest.mark.parametrize("rows", [30, 400])
def test_peeled_classes_meet_the_guarantee_and_have_every_row(model: Model, rows: int) -> None:
    table, models = hospital(rows), [ck.KAnonymity(3), model]
    if find_broken_classes(table, Partition(np.zeros(rows, dtype=np.int32), 1), models).any():
        return
    parts = peel(_state(table, models), np.random.default_rng(1))
    assert not find_broken_classes(table, parts, models).any()
    assert sorted(set(parts.class_of.tolist())) == list(range(parts.count))


def test_what_is_kept_of_a_class_is_the_largest_allowed_part() -> None:
    """Compared with the greatest S for which the values have S rows below their caps."""
    table = hospital(300)
    found = set()
    for beta, k in ((1, 3), (2, 6), (4, 2)):
        state = _state(table, [ck.KAnonymity(k), ck.BetaLikeness("disease", beta)])
        rng = np.random.default_rng(k)
        for size in range(2, 60):
            rows = np.sort(rng.permutation(len(table))[:size]).astype(np.int32)
            kept = peel_classes(state.costs, state.guard, state.buckets, table.quasi, rows, np.array([0, size]))
            assert kept.sum() == _largest_part(state.guard, rows)
            found.add(0 if kept.sum() == 0 else 1 if kept.sum() == size else 2)
    assert found == {0, 1, 2}, "nothing, everything and a part were kept"


def _largest_part(guard: Guard, rows: np.ndarray) -> int:
    counts = np.bincount(guard.node[rows, 0], minlength=len(guard.parent))
    for size in range(len(rows), max(guard.k, 1) - 1, -1):
        if np.minimum(counts, size * guard.cap_num // guard.cap_den)[1:].sum() >= size:
            return size
    return 0


@pytest.mark.parametrize("model", GUARANTEES, ids=repr)
def test_the_excess_is_nothing_where_a_class_is_allowed(model: Model) -> None:
    table = hospital(120)
    guard = guard_of(table, [ck.KAnonymity(4), model]).guard
    rng, nothing, said = np.random.default_rng(1), np.zeros(len(guard.parent), np.int32), set()
    for size in [*range(1, 40), 60, 120] * 2:
        rows = rng.permutation(len(table))[:size] if size % 2 else np.arange(size)
        under = np.zeros((1, len(guard.parent)), np.int32)
        for row in rows:
            count_row(guard, under, 0, int(row), 1)
        allowed = bool(is_allowed(guard, under, 0, nothing, 1, size))
        assert (measure_excess(guard, under, 0, size) < 1e-6) == allowed
        said.add(allowed)
    assert said == {True, False}


def test_rows_of_a_rare_value_get_narrow_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four of 2,000 rows have a value that asks for classes of 167 rows: without absorbing them the loss is far higher."""
    rng = np.random.default_rng(3)
    cells = {"age": rng.integers(0, 80, 2000), "zip": rng.integers(0, 80, 2000), "job": rng.integers(0, 40, 2000)}
    secret = np.where(np.arange(2000) % 500 == 7, "rare", rng.choice(list("abcde"), 2000))
    frame = {**{name: codes.tolist() for name, codes in cells.items()}, "secret": secret.tolist()}
    schema = ck.Schema(quasi={name: ck.numeric() for name in cells}, sensitive={"secret": ck.flat()})
    table, models = schema.encode(Columns.of(frame)), [ck.KAnonymity(5), ck.BetaLikeness("secret", 2, "basic")]
    state = _state(table, models)
    narrow = state.loss(peel(state, np.random.default_rng(1)))
    monkeypatch.setattr(peeling, "WORK", 0)
    wide = state.loss(peel(state, np.random.default_rng(1)))
    assert narrow < 0.85 * wide


# Never above Mondrian ----------------------------------------------------------------------------------------------------


def _never_above(count: int, seed: int) -> int:
    """Compare on so many random tables; how often Mondrian's was the best start."""
    equal = 0
    for case in random_tables(count, seed):
        table = case.schema.encode(case.columns)
        table = table.join_secrets([model.column for model in case.models if isinstance(model.column, tuple)])
        try:
            ours, other = (
                method.run(table, case.models, 5, ignore_progress).partition for method in (Knit(proposals=0), ck.Mondrian())
            )
        except ck.CloseknitError:
            continue
        state = _state(table, [])
        assert state.loss(ours) <= state.loss(other) + 1e-12
        equal += state.loss(ours) == state.loss(other)
    return equal


@pytest.mark.parametrize("shard", [10_000, 25])
def test_no_release_is_above_mondrians(shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on tables that count as large, whole and in shards: there the cuts alone end above it at times."""
    monkeypatch.setattr(knit, "SMALL", 8)
    monkeypatch.setattr(knit, "FEW", 8)
    monkeypatch.setattr(knit, "SHARD", shard)
    _never_above(examples(60), SOAK_SEED)


# The clock ---------------------------------------------------------------------------------------------------------------


def _ticking(monkeypatch: pytest.MonkeyPatch, slow_from: int = 1 << 40) -> None:
    """A clock that is a second on whenever it is looked at, from some look on a thousand seconds."""
    seen = itertools.count()

    def look() -> float:
        at = next(seen)
        return float(at + 1000 * max(at - slow_from, 0))

    monkeypatch.setattr(round_clock, "time", SimpleNamespace(monotonic=look))


@pytest.mark.parametrize(("shard", "seconds"), [(10_000, 40), (10_000, 400), (150, 200)])
def test_what_was_done_in_time_is_repeated_by_its_count(
    shard: int, seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As much is done on every machine; the last cycle is shorter than four times the one before it, and not left out."""
    _ticking(monkeypatch)
    monkeypatch.setattr(knit, "SHARD", shard)
    table, schema, models = ck.datasets.hospital(400), ck.datasets.hospital_schema(), [ck.KAnonymity(4)]
    release = ck.anonymize(table, schema, models, Knit(seconds=seconds), seed=2**80)
    release.save(tmp_path / "out", report=False)
    again = Recipe.read(tmp_path / "out.private" / "recipe.yaml")
    assert again.method.seconds is None and again.method.proposals not in [32 * 400 * n for n in (0, 2, 10, 42, 170)]
    assert f" of {seconds} s" in (tmp_path / "out.private" / "recipe.yaml").read_text()
    assert ck.anonymize(table, schema, models, again.method, seed=2**80).certificate == release.certificate


def test_a_cycle_that_is_late_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the machine becomes slow in the fourth cycle, what the first three found is published and counted."""
    table, models = hospital(300), [ck.KAnonymity(4)]
    _ticking(monkeypatch, slow_from=70)
    late = Knit(seconds=500).run(table, models, 7, ignore_progress)
    assert late.repeat.proposals == 32 * 300 * 42
    same = late.repeat.run(table, models, 7, ignore_progress).partition
    assert same.class_of.tolist() == late.partition.class_of.tolist()


def test_rounds_are_planned_by_the_speed_of_those_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(round_clock, "time", SimpleNamespace(monotonic=lambda: now[0]))
    clock = RoundClock(100)
    assert clock.count_rounds() == 1 and clock.share() == 0 and not clock.is_late()
    now[0] = 10.0
    clock.end_cycle(5)
    assert clock.count_rounds() == 42, "95 % of 90 s, 2 s each"
    now[0] = 126.0
    assert clock.count_rounds() == 0 and clock.share() == 1 and clock.is_late() and clock.used == 126.0
    assert RoundClock(None).share() == 0 and not RoundClock(None).is_late()


def test_a_budget_between_whole_cycles_is_used() -> None:
    table, models = hospital(200), [ck.KAnonymity(4), ck.TCloseness("disease", 0.2)]
    state = _state(table, models)

    def loss(sweeps: int) -> float:
        return state.loss(Knit(proposals=32 * 200 * sweeps).run(table, models, 7, ignore_progress).partition)

    whole = loss(42)
    assert loss(42 + 1) == whole, "one sweep is no round"
    assert min(loss(42 + 2 * rounds) for rounds in (15, 20, 30)) < whole
    assert max(loss(42 + 2 * rounds) for rounds in (1, 15, 30)) <= whole


# Shares of the linear program --------------------------------------------------------------------------------------------


def test_the_shares_of_the_program_are_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Knit is never above what this start gives; a table with few rows for each combination of cells has none."""
    table, models = hospital(300), [ck.KAnonymity(4), ck.TCloseness("disease", 0.3)]
    state, start = _state(table, models), Knit(proposals=0)
    good = Knit(proposals=32 * 300 * 170).run(table, models, 3, ignore_progress).partition
    assert start_from_shares(state, models) is None
    assert state.loss(start.run(table, models, 4, ignore_progress).partition) > state.loss(good)
    monkeypatch.setattr(knit, "start_from_shares", lambda *_: good)
    assert state.loss(start.run(table, models, 4, ignore_progress).partition) <= state.loss(good)


# Size and diversity alone ------------------------------------------------------------------------------------------------


THREE = ck.LDiversity("disease", 3)
CAPS, NEAR = ck.BetaLikeness("disease", 3), ck.TCloseness("disease", 0.4)


@pytest.mark.parametrize("models, sweeps", [([], 170), ([THREE], 170), ([CAPS], 42), ([NEAR, THREE], 42)])
def test_size_and_diversity_alone_have_more_sweeps(models: list[Model], sweeps: int) -> None:
    table = hospital(200)
    by_default, few, many = (
        [method.run(table, [ck.KAnonymity(4), *models], seed, ignore_progress).partition.class_of.tolist() for seed in range(3)]
        for method in (Knit(), *(Knit(proposals=32 * 200 * count) for count in (42, 170)))
    )
    assert few != many and by_default == (few if sweeps == 42 else many)


def test_rows_that_are_neighbours_are_swept_together() -> None:
    """Halves of as many rows to visit; were classes divided at random, half of all neighbours would be in the other half."""
    state = _state(hospital(900), [ck.KAnonymity(4)])
    partition = cut(state, Partition(np.zeros(900, dtype=np.int32), 1), state.guard)
    classes = state_of(state.costs, state.guard, state.table.quasi, partition.class_of, partition.count + 5)
    for seed in range(5):
        order = state.row_order(np.random.default_rng(seed))
        group = _group_classes(classes, order, 2)
        sizes = np.bincount(group, weights=np.where(classes.loss > 0, classes.size, 0))
        assert abs(sizes[0] - sizes[1]) <= 2 * classes.size.max()
        assert (np.diff(group[classes.class_of[order]]) == 0).mean() > 0.7
        assert set(group[partition.count :].tolist()) == {0, 1}, "both may begin classes"


def test_where_size_alone_decides_neighbours_share_narrow_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    table, drawn, row_order = hospital(80), [], KnitState.row_order
    monkeypatch.setattr(KnitState, "row_order", lambda state, rng, lost: drawn.append(lost) or row_order(state, rng, lost))
    for models in ([ck.KAnonymity(3)], [ck.KAnonymity(3), ck.TCloseness("disease", 0.5)]):
        knit_state = KnitState.of(table, guard_of(table, models).guard, [])
        exchange_rows(knit_state, Partition((np.arange(80) % 8).astype(np.int32), 8), 1, 0.0, np.random.default_rng(1))
    assert drawn[0].min() > 0 and drawn[1] is None
    for j, rough in enumerate(knit_state.rough):
        lost = np.where(np.arange(len(knit_state.rough)) == j, 0.0, 1.0)
        for seed in range(5):
            along = table.quasi[row_order(knit_state, np.random.default_rng(seed), lost), j]
            assert any((np.diff(codes[along]) >= 0).all() for codes in rough), "the column that loses nothing leads"

"""Knit: guarantees kept by the oracle, a guard that never allows what a model forbids, and loss that no other method is
below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import closeknit as ck
from closeknit.checks.methods import every_row_once, guarantee_met, run_case
from closeknit.checks.tables import Case, random_tables
from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.method import ignore_progress
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.kernels import threads
from closeknit.kernels.exchange.knit_guard import Guard, count_row, is_allowed, is_allowed_after
from closeknit.methods import Knit, knit
from closeknit.search import careful_cuts, row_exchange
from closeknit.search.guards import guard_of, tighten_guard
from closeknit.search.knit_state import KnitState
from closeknit.search.repair import find_broken_classes
from conftest import SOAK_SEED

QUICK = Knit(proposals=32 * 80 * 6)


def hospital(rows: int, seed: int = 0) -> Table:
    table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(rows, seed=seed))
    return table.join_secrets([("disease", "stay")])


GUARANTEES: list[Model] = [
    ck.TCloseness("disease", 0.3),
    ck.TCloseness("disease", "1/4", "equal"),
    ck.TCloseness("stay", 0.1),
    ck.TCloseness(("disease", "stay"), 0.8),
    ck.BetaLikeness("disease", 2),
    ck.BetaLikeness("disease", 1, "basic"),
    ck.LDiversity("disease", 3),
    ck.LDiversity("disease", 2.5, "entropy"),
    ck.LDiversity("disease", 2, "frequency"),
    ck.DeltaDisclosure("disease", 2.5),
    ck.KAnonymity(5),
]


# The guard ---------------------------------------------------------------------------------------------------------------


def _allowed(guard: Guard, rows: np.ndarray) -> bool:
    """What the guard says of these rows; what it says after changes of them is true of the rows after these changes."""
    under, no_one = np.zeros((2, len(guard.parent)), dtype=np.int32), np.zeros(len(guard.parent), dtype=np.int32)
    for row in rows:
        count_row(guard, under, 0, row, 1)
    allowed = bool(is_allowed(guard, under, 0, no_one, 1, len(rows)))
    for out in rows[: 40 if allowed else 10].tolist():
        for in_ in (-1, out, *range(8)):
            under[1] = under[0]
            count_row(guard, under, 1, out, -1)
            if in_ >= 0:
                count_row(guard, under, 1, in_, 1)
            size = len(rows) - (in_ < 0)
            after = is_allowed(guard, under, 1, no_one, 1, size)
            assert is_allowed_after(guard, under, 0, len(rows), out, in_, allowed) == after
            if in_ >= 0:  # it comes and no row leaves
                count_row(guard, under, 1, out, 1)
                after = is_allowed(guard, under, 1, no_one, 1, size + 1)
                assert is_allowed_after(guard, under, 0, len(rows), -1, in_, allowed) == after
    return allowed


@pytest.mark.parametrize("model", GUARANTEES, ids=repr)
def test_the_guard_says_what_the_model_says(model: Model) -> None:
    """On classes of all sizes; exactly, for no class here stands within a billionth of a limit that is no rational."""
    table = hospital(120)
    made = guard_of(table, [model])
    assert made.unguarded == []
    rng, said = np.random.default_rng(1), set()
    for size in [*range(1, 40), 60, 90, 120] * 3:
        class_of = np.full(len(table), -1, dtype=np.int32)
        rows = rng.permutation(len(table))[:size] if size % 2 else np.arange(size)
        class_of[rows] = 0
        secrets = {name: table.secret(name) for name in [*table.schema.sensitive, *table.joints]}
        whole = {name: histogram.reference for name, histogram in table.one_class().histograms.items()}
        holds = bool(model.holds(Classes.of(class_of, 1, secrets, references=whole))[0])
        assert _allowed(made.guard, rows) == holds
        assert holds or not _allowed(tighten_guard(made.guard, 0.5), rows)
        said.add(holds)
    assert said == {True, False}


def test_equality_at_the_limit_is_allowed() -> None:
    columns = Columns.of({"age": [1, 1, 1, 1, 2, 2, 2, 2], "secret": list("aaababbb")})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"secret": ck.flat()})
    for t, classes in ((Fraction(1, 4), 2), (Fraction(1, 4) - Fraction(1, 10**12), 1)):
        case = Case("halves", columns, schema, (ck.KAnonymity(4), ck.TCloseness("secret", t)))
        for method in (QUICK, Knit()):
            assert run_case(method, case).certificate.classes.count == classes


def test_long_orders_are_seen_through_runs_on_the_safe_side() -> None:
    rng = np.random.default_rng(5)
    columns = Columns.of({"age": rng.integers(20, 60, 1500).tolist(), "wage": rng.permutation(1500).tolist()})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"wage": ck.numeric()})
    table, model = schema.encode(columns), ck.TCloseness("wage", 0.12)
    made = guard_of(table, [model])
    assert made.unguarded == [] and len(made.guard.parent) < 1500
    said = []
    for size in range(5, 60):
        class_of = np.full(1500, -1, dtype=np.int32)
        rows = rng.permutation(1500)[:size]
        class_of[rows] = 0
        whole = {"wage": table.one_class().histograms["wage"].reference}
        holds = bool(model.holds(Classes.of(class_of, 1, {"wage": table.secret("wage")}, references=whole))[0])
        said.append((_allowed(made.guard, rows), holds))
    assert (True, False) not in said and (True, True) in said and (False, False) in said
    assert guard_of(table, [ck.TCloseness("wage", 0.001)]).unguarded, "too strict for runs: left to the model"


@pytest.mark.parametrize(
    "model",
    [
        ck.LDiversity("disease", 2, "recursive", c=3),
        ck.BetaLikeness("stay", 3, "range", eps=2),
        ck.BetaLikeness("disease", 3, "semantic", below=0),
    ],
    ids=repr,
)
def test_other_guarantees_are_left_to_their_models(model: Model) -> None:
    assert guard_of(hospital(60), [model]).unguarded == [model]
    case = Case("hospital", _columns(150), ck.datasets.hospital_schema(), (ck.KAnonymity(3), model))
    release = run_case(QUICK, case)
    guarantee_met(QUICK, case)
    assert release.certificate.classes.count > 5


# Releases ----------------------------------------------------------------------------------------------------------------


def _columns(rows: int, seed: int = 0) -> Columns:
    frame = ck.datasets.hospital(rows, seed=seed)
    return frame if isinstance(frame, Columns) else Columns.of({name: frame[name].to_list() for name in frame.columns})


def test_a_hundred_tables_and_guarantees() -> None:
    for case in random_tables(100):
        kept_or_refused(case)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(20))
def test_ten_thousand_tables_and_guarantees(part: int) -> None:
    for case in random_tables(500, SOAK_SEED + part):
        kept_or_refused(case)


def kept_or_refused(case: Case) -> None:
    """The oracle finds no broken guarantee; where Knit refuses, no class of everything keeps them either."""
    try:
        guarantee_met(QUICK, case)
    except ck.Unsatisfiable:
        with pytest.raises(ck.Unsatisfiable):
            run_case(ck.Mondrian(), case)
        return
    every_row_once(QUICK, case)


REQUESTED: dict[str, list[Model]] = {
    "k": [ck.KAnonymity(4)],
    "t": [ck.KAnonymity(4), ck.TCloseness("disease", 0.2)],
    "ordered": [ck.KAnonymity(3), ck.TCloseness("stay", 0.08)],
    "beta": [ck.KAnonymity(3), ck.BetaLikeness("disease", 1.5)],
    "both": [ck.KAnonymity(3), ck.TCloseness("disease", 0.3), ck.TCloseness("stay", 0.2)],
}


def _loss(method: Any, table: Table, models: Sequence[Model]) -> float:
    knit_state = KnitState.of(table, guard_of(table, models).guard, [])
    partition = method.run(table, models, 7, ignore_progress).partition
    assert not find_broken_classes(table, partition, models).any()
    return knit_state.loss(partition)


def _best_of_others(table: Table, models: Sequence[Model]) -> float:
    others = [_loss(ck.Mondrian(), table, models), _loss(ck.StackAndDeal(), table, models)]
    others += [_loss(ck.Sabre(), table, models)] if any(model.bounds == "distance" for model in models) else []
    others += [_loss(ck.Burel(), table, models)] if any(model.bounds == "growth" for model in models) else []
    return min(others)


@pytest.mark.parametrize("requested", REQUESTED)
@pytest.mark.parametrize("rows", [20, 40, 80, 300])
def test_no_other_method_loses_less(requested: str, rows: int) -> None:
    table, models = hospital(rows, seed=rows), REQUESTED[requested]
    ours, others = _loss(Knit(), table, models), _best_of_others(table, models)
    assert ours <= others + 1e-12
    assert rows < 300 or ours < 0.95 * others


@pytest.mark.parametrize("seed", [907, 910])
def test_few_rows_start_from_what_other_methods_make(seed: int) -> None:
    """On these two tables the search alone ends above the best of them."""
    table, models = hospital(20, seed=seed), REQUESTED["t"]
    assert _loss(Knit(), table, models) <= _best_of_others(table, models) + 1e-12


@pytest.mark.soak
@pytest.mark.parametrize("requested", REQUESTED)
def test_no_other_method_loses_less_on_many_tables(requested: str) -> None:
    for seed in range(100):
        table, models = hospital(20 + 7 * (seed % 30), seed=SOAK_SEED + seed), REQUESTED[requested]
        assert _loss(Knit(), table, models) <= _best_of_others(table, models) + 1e-12


def test_more_budget_never_loses_more() -> None:
    table, models = hospital(200), REQUESTED["t"]
    losses = [_loss(Knit(proposals=32 * 200 * sweeps), table, models) for sweeps in (0, 1, 2, 10, 42, 170)]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] == losses[1] > losses[-1], "one sweep is no whole round; many are worth it"


def test_the_seed_and_nothing_else_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    table, models = hospital(1200), REQUESTED["k"]

    def made(seed: int) -> list[int]:
        return QUICK.run(table, models, seed, ignore_progress).partition.class_of.tolist()

    assert made(1) != made(2)
    for room, name in ((row_exchange, "FEWEST"), (careful_cuts, "FEW"), (knit, "SMALL")):
        monkeypatch.setattr(room, name, 8)
    for shard in (knit.SHARD, 100):
        monkeypatch.setattr(knit, "SHARD", shard)
        monkeypatch.setattr(threads, "THREADS", 4)
        first = made(1)
        monkeypatch.setattr(threads, "THREADS", 1)
        assert made(1) == first


def test_shards_are_knit_against_the_shares_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    table, models = hospital(1200), REQUESTED["both"]
    monkeypatch.setattr(knit, "SHARD", 300)
    seen: list[tuple[int, str | None]] = []
    start = knit._start
    monkeypatch.setattr(
        knit, "_start", lambda state, *rest: (seen.append((len(state.table), rest[-1])), start(state, *rest))[1]
    )
    joined: list[Partition] = []
    repaired = knit.repair_partition
    monkeypatch.setattr(
        knit, "repair_partition", lambda table, part, requested: (joined.append(part), repaired(table, part, requested))[1]
    )
    sharded = _loss(Knit(proposals=32 * 1200 * 10), table, models)
    assert not find_broken_classes(table, joined[-1], models).any(), "nothing is left to be repaired"
    sizes = [size for size, _ in seen]
    assert len(seen) > 3 and max(sizes) <= 75 and sum(sizes) == 1200
    assert sum(only is None for _, only in seen) == 3 and len({only for _, only in seen}) == 2, (
        "starts are tried in three shards"
    )
    monkeypatch.setattr(knit, "SHARD", 1200)
    assert sharded < 1.15 * _loss(Knit(proposals=32 * 1200 * 10), table, models)


def test_shards_report_their_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knit, "SHARD", 300)
    reported: list[float] = []
    QUICK.run(hospital(1200), REQUESTED["both"], 1, lambda what, share: reported.append(share))
    assert len(set(reported)) > 8 and reported[0] >= 0.2 and reported == sorted(reported) and reported[-1] <= 0.8


def test_rows_of_a_person_stay_together_or_count_once() -> None:
    rng = np.random.default_rng(3)
    cells = {"age": rng.integers(20, 60, 160).tolist(), "ill": rng.choice(list("abcd"), 160).tolist()}
    columns = Columns.of({**cells, "who": [f"person {i}" for i in rng.integers(0, 70, 160)]})
    for person_rows in ("together", "count-once"):
        schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()}, person="who", person_rows=person_rows)
        case = Case("visits", columns, schema, (ck.KAnonymity(4), ck.LDiversity("ill", 2), ck.TCloseness("ill", 0.4)))
        guarantee_met(QUICK, case)
        assert run_case(QUICK, case).certificate.classes.count > 3


@dataclass(frozen=True)
class EvenSizes(Model):
    """An unknown guarantee that every single move breaks: only exchanges are left."""

    name = "even_sizes"
    needs = frozenset({"sizes"})
    monotone = True
    forms = frozenset({"generalized"})
    higher_is_safer = True
    least_size = 2
    column = None

    def holds(self, classes: Classes) -> np.ndarray:
        return classes.sizes % 2 == 0

    def levels(self, classes: Classes) -> np.ndarray:
        return 1.0 - classes.sizes % 2


def test_a_guarantee_that_no_guard_speaks_of_is_kept_through_all_steps() -> None:
    table = hospital(200)
    models: list[Any] = [EvenSizes(), ck.TCloseness("disease", 0.4)]
    partition = Knit(proposals=32 * 200 * 14).run(table, models, 1, ignore_progress).partition
    assert not find_broken_classes(table, partition, models).any() and partition.count > 10
    knit_state = KnitState.of(table, guard_of(table, models).guard, models[:1])
    assert knit_state.loss(partition) < 0.95 * knit_state.loss(ck.Mondrian().run(table, models, 1, ignore_progress).partition)


def test_what_the_whole_breaks_is_refused() -> None:
    case = Case("hospital", _columns(60), ck.datasets.hospital_schema(), (ck.LDiversity("disease", 1000),))
    with pytest.raises(ck.Unsatisfiable):
        run_case(QUICK, case)
    with pytest.raises(ck.BadInput, match="proposals"):
        Knit(proposals=-1)


# Adult -------------------------------------------------------------------------------------------------------------------

# loss with suppressed rows as 1 of the best local recoding known, as in benchmarks/arx.py; it suppresses up to 4,619 rows
RIVAL = {"0.15": 0.433, "0.2": 0.334, "0.25": 0.256, "0.35": 0.127, "0.5": 0.055}


def adult(data: Path) -> Table:
    quasi = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass")
    frame = pl.read_csv(data / "adult" / "adult.csv.gz", infer_schema=False).head(32_561)
    frame = frame.filter(~pl.any_horizontal(pl.all() == "?")).select([*quasi, "occupation"])

    def kind(name: str) -> Any:
        path = data / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv"
        return ck.numeric() if name == "age" else ck.Hierarchy.read_csv(path)

    schema = ck.Schema(quasi={name: kind(name) for name in quasi}, sensitive={"occupation": kind("occupation")})
    return schema.encode(Columns.of({name: frame[name].to_list() for name in frame.columns}))


@pytest.mark.parametrize("t", [pytest.param(t, marks=pytest.mark.soak if t not in ("0.2",) else []) for t in RIVAL])
def test_adult_is_below_the_best_rival_without_withholding_a_row(data_folder: Path, t: str) -> None:
    models = [ck.KAnonymity(6), ck.TCloseness("occupation", t)]
    assert _loss(Knit(proposals=32 * 30_162 * 10), adult(data_folder), models) < 0.65 * RIVAL[t]

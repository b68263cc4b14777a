"""No partition is below the bound, none of a tiny table is below the best one, and Knit is near to both."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.optimize import linprog
from typer.testing import CliRunner

import closeknit as ck
from bound_cases import REQUESTED, hospital, least
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.core.geometry import scales
from closeknit.core.method import ignore_progress
from closeknit.core.model import Model
from closeknit.core.table import Table
from closeknit.io.files import write_csv
from closeknit.kernels.counting.row_prices import room_for_classes
from closeknit.kernels.geometry.boxes import box_losses
from closeknit.metrics import loss_bound
from closeknit.metrics.loss_bound import BOXES, GROUPS, NEAREST, PRICES, _Cells, _Request, bound_table
from closeknit.search.box_program import Kinds, list_boxes, solve_boxes
from closeknit.search.guards import guard_of
from closeknit.search.repair import find_broken_classes
from conftest import examples


@pytest.mark.parametrize("number", range(len(REQUESTED)))
def test_the_best_partition_is_the_best_of_all(best: Any, number: int) -> None:
    table, models = hospital(7, seed=number), REQUESTED[number]
    found = best.optimum(table, models)
    assert not find_broken_classes(table, found, models).any()
    assert best.loss_of(table, found) == pytest.approx(least(best, table, models))


def test_no_partition_is_below_the_bounds(best: Any) -> None:
    shares = []
    for seed in range(examples(14)):
        table, models = hospital(9 + seed % 4, seed), REQUESTED[seed % len(REQUESTED)]
        measured = best.loss_of(table, best.optimum(table, models))
        below = solve_boxes(table, best.guarded(table, models)).loss
        assert below <= measured
        assert bound_table(table, models).loss <= measured
        shares.append(below / measured)
    assert np.mean(shares) > 0.85, "it says something"


def test_knit_is_near_the_best_partition(best: Any) -> None:
    over = []
    for seed in range(examples(6)):
        table, models = hospital(12, seed, ("age", "sex", "zip", "job")), REQUESTED[seed % len(REQUESTED)]
        made = ck.Knit().run(table, models, seed, ignore_progress).partition
        over.append(best.loss_of(table, made) / best.loss_of(table, best.optimum(table, models)) - 1)
    assert min(over) > -1e-9 and np.mean(over) < 0.02


def test_no_release_of_any_method_is_below_the_bound() -> None:
    schema, methods = (
        ck.datasets.hospital_schema(),
        [ck.Mondrian(), ck.Sabre(), ck.StackAndDeal(), ck.Burel(), ck.Knit(), ck.Incognito()],
    )
    seen = set()
    for seed in range(examples(3)):
        data = ck.datasets.hospital(60 + 20 * seed, seed=seed)
        for models in (REQUESTED[seed % len(REQUESTED)], [ck.KAnonymity(5)]):
            bound = ck.bound_loss(data, schema, models)
            seen.add(bound.by)
            assert bound.loss > 0
            for method in methods:
                try:
                    release = ck.anonymize(data, schema, models, method, seed=2**100 + seed)
                except ck.CloseknitError:  # it plans for other guarantees
                    continue
                assert bound.loss <= release.loss + 1e-12, (bound, method)
    assert PRICES in seen


def test_each_bound_is_the_best_one_somewhere() -> None:
    every = tuple(ck.datasets.hospital_schema().quasi)
    close = [ck.KAnonymity(5), ck.TCloseness("disease", 0.15)]
    assert bound_table(hospital(40, 1, ("sex", "job")), REQUESTED[1]).by == BOXES
    assert bound_table(hospital(150, 1), REQUESTED[0]).by == PRICES
    assert bound_table(hospital(150, 1), REQUESTED[0], seconds=0).by == NEAREST
    found = bound_table(hospital(60, 0, every), close)
    assert found.by == GROUPS and {name for group in found.groups for name in group} == {*every} - {"admission"}


@pytest.mark.parametrize(
    "undeclared", [ck.date(), ck.prefix(), ck.numeric(step=50), ck.numeric(top=10_500)], ids=["date", "prefix", "steps", "top"]
)
def test_a_column_that_a_release_measures_by_its_own_cells_counts_0(undeclared: Any) -> None:
    rng = np.random.default_rng(3)
    numbers = rng.integers(10_000, 10_999, 60)
    cells = [f"{1000 + n % 1000}-03-17" for n in numbers] if undeclared == ck.date() else numbers.tolist()
    data = {"a": cells, "b": rng.integers(0, 5, 60).tolist(), "d": ["x", "y"] * 30}
    schema = ck.Schema(quasi={"a": undeclared, "b": ck.numeric(0, 4)}, sensitive={"d": ck.flat()})
    found = ck.bound_loss(data, schema, [ck.KAnonymity(5)])
    alone = ck.bound_loss(data, ck.Schema(quasi={"b": ck.numeric(0, 4)}, drop=["a", "d"]), [ck.KAnonymity(5)])
    assert found.unmeasured == ("a",) and "not declared: a." in found.remarks()[0]
    assert found.loss == pytest.approx(alone.loss / 2)
    for method in (ck.Mondrian(), ck.Knit()):
        assert found.loss <= ck.anonymize(data, schema, [ck.KAnonymity(5)], method).loss


def test_the_nearest_class_bound_is_what_its_definition_says(monkeypatch: pytest.MonkeyPatch) -> None:
    table, k = hospital(40, 4, ("age", "job")), 5
    geometry = scales(table)
    radii, narrowest = [], []
    for row in table.quasi:
        pairs = [(np.minimum(row, other), np.maximum(row, other)) for other in table.quasi]
        losses = sorted(box_losses(geometry, np.array([lo for lo, _ in pairs]), np.array([hi for _, hi in pairs])).tolist())
        radii.append(losses[k - 1])
        columns = zip(table.quasi.T, row, strict=True)
        ends = [set(itertools.product(codes[codes <= q], codes[codes >= q])) for codes, q in columns]
        lo, hi = np.array(list(itertools.product(*ends)), dtype=np.int32).transpose(2, 0, 1)
        inside = ((lo[:, None] <= table.quasi) & (table.quasi <= hi[:, None])).all(axis=2).sum(axis=1) >= k
        narrowest.append(box_losses(geometry, lo[inside].copy(), hi[inside].copy()).min())
    assert bound_table(table, [ck.KAnonymity(k)], seconds=0).loss == pytest.approx(np.mean(narrowest), abs=1e-8)
    assert np.mean(narrowest) > np.mean(radii)
    monkeypatch.setattr(loss_bound, "WORK", 0)
    assert bound_table(table, [ck.KAnonymity(k)], seconds=0).loss == pytest.approx(np.mean(radii), abs=1 / 1024)


def test_an_entropy_limits_the_share_of_each_value() -> None:
    """The share is the largest with which all values, the others as frequent as one another, have that entropy."""
    table = hospital(200, 6)
    values = len(np.unique(table.secret("disease")[0]))
    for diverse in (1.5, 2.5, values - 0.5):
        guard = _Request(table, [ck.LDiversity("disease", diverse, "entropy")], False, float("inf")).guard()
        (share,) = set((guard.cap_num / guard.cap_den)[guard.leaf == 1].tolist())
        below, above = (
            -p * np.log(p) - (1 - p) * np.log((1 - p) / (values - 1)) - np.log(diverse) for p in (share - 1e-5, share + 1e-5)
        )
        assert above < 0 <= below


def cells_of(table: Table, models: list[Model]) -> _Cells:
    return _Cells.of(_Request(table, models, False, float("inf")))


FREQUENT, ALIKE = ck.LDiversity("ill", 3, "frequency"), ck.BetaLikeness("ill", 1.2)
LIMITED: list[tuple[str, tuple[Model, ...]]] = [
    ("age", ()),
    ("age,sex", ()),
    ("age,stays,job", ()),
    ("job,zip,sex", ()),
    ("age", (ALIKE,)),
    ("age,sex", (FREQUENT,)),
    ("age,sex", (ALIKE, ck.LDiversity("other", 2, "frequency"))),
    ("job,zip,sex", (ALIKE,)),
]


@pytest.mark.parametrize(("columns", "limited"), LIMITED)
def test_no_class_has_rows_that_cost_more_than_it_loses(columns: str, limited: tuple[Model, ...]) -> None:
    """Every box is listed here, and for many sizes the costliest rows that the caps allow are added up one by one."""
    rng, k, quasi = np.random.default_rng(5), 4, columns.split(",")
    frame = {
        "age": rng.integers(20, 40, 90).tolist(),
        "stays": rng.integers(0, 9, 90).tolist(),
        "sex": rng.choice(["f", "m"], 90).tolist(),
        "job": rng.choice([*"abcdefg"], 90).tolist(),
        "zip": rng.integers(100, 140, 90).astype(str).tolist(),
        "ill": ["v"] * 2 + ["w"] * 5 + rng.choice([*"xyz"], 83).tolist(),
        "other": rng.choice([*"rst"], 90).tolist(),
    }
    tree = {"*": {"ab": {"a": None, "b": None}, "cde": {"cd": {"c": None, "d": None}, "e": None}, "fg": {"f": None, "g": None}}}
    kinds = {
        "age": ck.numeric(20, 40), "stays": ck.numeric(0, 8), "sex": ck.flat(), "job": ck.Hierarchy(tree), "zip": ck.prefix()
    }  # fmt: skip
    schema = ck.Schema(quasi={name: kinds[name] for name in quasi}, sensitive={"ill": ck.flat(), "other": ck.flat()})
    table = schema.encode(Columns.of({name: frame[name] for name in (*quasi, "ill", "other")}))
    cells = cells_of(table, [ck.KAnonymity(k), *limited])
    prices, levels = cells.list_levels(rng.random(len(cells.count)) * 1.4 - 0.5)
    prices = prices._replace(price=prices.price * prices.ease * 3)
    assert cells.lower(prices, levels, cells.list_ranges(), room_for_classes(len(prices.size), 9))
    caps = np.ones(len(levels[0].most))
    if limited:
        growth = {"LDiversity": lambda p: 1 / 3, "BetaLikeness": lambda p: p * (1 + min(float(limited[0].beta), -np.log(p)))}
        counts = np.bincount(prices.value, weights=prices.size)
        caps = np.minimum([growth[type(limited[0]).__name__](count / 90) for count in counts], 1)
    geometry, tightest = scales(cells.request.table), 0.0
    codes, size = prices.rows.cells, prices.size
    listed = Kinds(codes, np.zeros((len(codes), 0), np.int32), size)
    for inside in list_boxes(listed, geometry, k):
        members = np.flatnonzero(inside)
        loss = box_losses(geometry, codes[members].min(axis=0, keepdims=True), codes[members].max(axis=0, keepdims=True))[0]
        rows = np.repeat(members, size[members])
        rows = rows[np.argsort(-prices.price[rows], kind="stable")]
        values = prices.value[rows]
        number = np.array([(values[:i] == v).sum() for i, v in enumerate(values)])  # of a row among those of its value
        for s in range(k, min(len(rows), 30) + 1):
            allowed = rows[number < np.floor(caps[values] * s + 1e-9)]
            if len(allowed) >= s:
                highest = prices.price[allowed[:s]].sum()
                assert highest <= s * loss + 1e-9
                tightest = max(tightest, highest / (s * loss + 1e-9))
    assert tightest > (0.8 if limited else 0.999), "prices are not lower than they need be"
    assert prices.price.max() > 1 or len(levels) == 1, "a row of a rare value may cost more than 1"


def test_rows_are_compared_however_low_their_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    table, listed = ck.datasets.hospital_schema().encode(ck.datasets.hospital(80)), []
    cells = cells_of(table, [ck.KAnonymity(3), ck.BetaLikeness("disease", 1)])
    prices, levels = cells.list_levels(np.linspace(-9.0, 0.5, len(cells.count)))
    monkeypatch.setattr("closeknit.metrics.loss_bound.lower_prices", lambda *given: listed.append(given[5]) or 1)
    assert len(levels) > 1 and cells.lower(prices, levels, cells.list_ranges(), room_for_classes(len(prices.size), 9))
    for level in listed:
        assert sorted(level.listed) == np.flatnonzero(level.most[prices.value] > 0).tolist()


def test_suppressed_rows_lose_1_where_values_have_caps(best: Any) -> None:
    higher = 0
    for seed in range(examples(3)):
        table, models = hospital(8, seed), [ck.KAnonymity(2), ck.LDiversity("disease", 2 + seed % 2, "frequency")]
        cells = _Cells.of(_Request(table, models, True, float("inf")))
        nearest, _ = cells.find_nearest(lambda share: None)
        raised = cells.raise_prices(nearest, lambda share: None)
        assert raised <= least(best, table, models, suppress=True)
        higher += raised > cells.mean(nearest)
    assert higher > 0


@pytest.mark.parametrize("number", range(len(REQUESTED)))
def test_prices_are_above_the_nearest_classes_and_below_the_best_partition(best: Any, number: int) -> None:
    higher = 0
    for seed in range(examples(3)):
        table, models = hospital(11, 10 * number + seed), REQUESTED[number]
        cells = cells_of(table, models)
        nearest, _ = cells.find_nearest(lambda share: None)
        raised = cells.raise_prices(nearest, lambda share: None)
        assert raised <= best.loss_of(table, best.optimum(table, models))
        higher += raised > cells.mean(nearest)
    assert higher > 0


@pytest.mark.parametrize(("k", "among"), [(3, 3), (5, 7), (4, 20)])
def test_prices_reach_the_linear_program_over_all_boxes(k: int, among: int) -> None:
    """Here rows far from the others share classes with equal rows, which lose nothing where they have classes of their own."""
    places = [(5, 5)] * among + [(0, 5), (10, 5), (5, 0), (5, 10), (5, 2), (7, 5)]
    schema = ck.Schema(quasi={"x": ck.numeric(0, 10), "y": ck.numeric(0, 10)}, sensitive={"ill": ck.flat()})
    frame = {"x": [x for x, _ in places], "y": [y for _, y in places], "ill": ["v"] * len(places)}
    table, models = schema.encode(Columns.of(frame)), [ck.KAnonymity(k)]
    cells = cells_of(table, models)
    nearest, _ = cells.find_nearest(lambda share: None)
    raised = cells.raise_prices(nearest, lambda share: None)
    assert raised == pytest.approx(solve_boxes(table, guard_of(table, models).guard).loss, rel=1e-3)
    assert raised > 1.5 * cells.mean(nearest)


@pytest.mark.soak
@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize(("name", "share"), [("d t=0.2", 0.5), ("a beta=1.5", 0.6), ("a, age tree beta=1.5", 0.6)])
def test_no_release_loses_so_small_a_share_of_what_arx_does(name: str, share: float, benchmark: Callable[[str], Any]) -> None:
    lines = benchmark("knit_lines")
    line, (quoted, _) = lines.problem(name), lines.QUOTED[name.replace(", age tree", "")]
    assert ck.bound_loss(line.frame, line.schema, line.models, seconds=200).loss > share * quoted


def test_a_pass_that_does_not_end_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    table = hospital(150, 1)
    assert bound_table(table, REQUESTED[0]).by == PRICES
    monkeypatch.setattr(loss_bound, "SLAB_WORK", 100)
    assert bound_table(table, REQUESTED[0]).by == NEAREST
    monkeypatch.undo()
    monkeypatch.setattr(loss_bound, "MOST_RANGES", 1)
    assert bound_table(table, REQUESTED[0]).by == NEAREST


def test_no_program_is_too_large_for_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver may run for many minutes beyond its limit of time, so it must not begin."""
    table, entries = hospital(150, 1), list[int]()

    def solve(cost: Any, most: Any, limits: Any, equal: Any, *rest: Any, **options: Any) -> Any:
        entries.append(max(most.nnz, equal.nnz))
        return linprog(cost, most, limits, equal, *rest, **options)

    monkeypatch.setattr("scipy.optimize.linprog", solve)
    bound_table(table, REQUESTED[2], seconds=60)
    largest = max(entries)
    monkeypatch.setattr(loss_bound, "ENTRIES_A_SECOND", (largest - 1) / 30)  # half of the time is for programs
    entries.clear()
    assert bound_table(table, REQUESTED[2], seconds=60).loss > 0
    assert max(entries, default=0) < largest


def test_suppression_leaves_out_what_compares_with_all_rows_and_stays_below() -> None:
    data, schema = ck.datasets.hospital(100, seed=3), ck.datasets.hospital_schema()
    models = [ck.KAnonymity(5), ck.TCloseness("disease", 0.3)]
    bound = ck.bound_loss(data, schema, models, suppress=0.3)
    assert [text.split()[0] for text in bound.left_out] == ["t-closeness"]
    assert bound.loss <= ck.anonymize(data, schema, models, suppress=0.3, seed=2**100).loss


def test_guarantees_on_the_whole_release_and_over_some_columns_are_left_out() -> None:
    data, schema = ck.datasets.hospital(100, seed=3), ck.datasets.hospital_schema()
    models = [ck.KAnonymity(20, over=["sex"]), ck.AverageRisk(0.2)]
    bound = ck.bound_loss(data, schema, models)
    assert len(bound.left_out) == 2 and bound.loss == 0.0
    assert "not known" in bound.describe(0.1)


def test_the_bound_reaches_people(tmp_path: Path) -> None:
    data, schema = ck.datasets.hospital(80), ck.datasets.hospital_schema()
    write_csv(data, tmp_path / "patients.csv")
    recipe = {"data": "patients.csv", "schema": schema.forms(), "models": [{"k_anonymity": {"k": 5}}], "method": "mondrian"}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    ck.run(tmp_path / "recipe.yaml").save(tmp_path / "out", report=False)
    runner = CliRunner()
    shown = runner.invoke(app, ["bound", str(tmp_path / "recipe.yaml"), "--release", str(tmp_path / "out")])
    assert shown.exit_code == 0, shown.output
    assert "above the best possible" in shown.output and "private" in shown.output
    found = json.loads(runner.invoke(app, ["bound", str(tmp_path / "recipe.yaml"), "--json"]).output)
    assert found["loss"] == pytest.approx(ck.bound_loss(data, schema, [ck.KAnonymity(5)]).loss)
    private = tmp_path / "out.private" / "recipe.yaml"
    assert runner.invoke(app, ["report", str(tmp_path / "out"), "--private", str(private), "--bound"]).exit_code == 0
    assert "above the best possible" in (tmp_path / "out.private" / "report.html").read_text()
    refused = runner.invoke(app, ["bound", str(tmp_path / "nothing.yaml")])
    assert refused.exit_code == 2

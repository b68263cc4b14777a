"""Ranges of decimals end at steps, declared or proposed, so that no true decimal is printed; whole numbers where requested."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.attacks.range_ends import singling_out
from closeknit.core.columns import Columns
from closeknit.core.domain import read_ranges
from closeknit.core.errors import BadInput
from closeknit.core.limits import MOST_STEPS
from closeknit.core.steps import propose_step

SEED = 1 << 100
PROPOSED = "a step proposed from the data"


def floats(rows: int = 600, **kind: Any) -> tuple[Columns, ck.Schema]:
    rng = np.random.default_rng(3)
    table = Columns.of({"x": rng.random(rows).tolist(), "y": rng.random(rows).tolist(), "ill": ["flu", "gout"] * (rows // 2)})
    return table, ck.Schema(quasi={"x": ck.numeric(**kind), "y": ck.numeric(**kind)}, sensitive={"ill": ck.flat()})


def released(values: list[Any], kind: Any, **more: Any) -> Any:
    table = Columns.of({"x": values, "ill": ["flu", "gout"] * (len(values) // 2)})
    schema = ck.Schema(quasi={"x": kind}, sensitive={"ill": ck.flat()}, missing=["?"])
    return ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED, **more)


def cells(release: Any, name: str = "x") -> set[Any]:
    return set(release.columns[name].cells())


def step_of(values: list[float]) -> Any:
    numbers, counts = np.unique(np.array(values, dtype=float), return_counts=True)
    return propose_step(numbers, counts)


@pytest.mark.parametrize("method", [None, ck.Mondrian(), ck.Incognito(), ck.Microaggregation()])
def test_no_true_decimal_is_printed_and_no_one_is_singled_out(method: Any) -> None:
    table, schema = floats(300)
    release = ck.anonymize(table, schema, [ck.KAnonymity(6)], method, seed=SEED)
    for name in ("x", "y"):
        assert f"column '{name}': ranges end at multiples of 0.02, {PROPOSED}" in release.certificate.notes
        assert release.certificate.columns["quasi"][name] == {"numeric": {"step": 0.02, "snap": True}}
        low, high = read_ranges([str(cell) for cell in cells(release, name)])
        ends = {float(end) for end in (*low, *high) if not np.isnan(end)}
        assert not ends & set(table[name].cells())
        assert all((Fraction(str(end)) / Fraction("0.02")).denominator == 1 for end in ends)
    assert not any("true values" in note for note in release.certificate.notes)
    assert ck.audit(release.columns, certificate=release.certificate).ok
    if not isinstance(method, ck.Incognito):  # all `*` here
        assert singling_out(release, table, schema).details["rows"] == 0


def test_the_step_of_decimals_is_the_declared_one_without_a_note() -> None:
    release = released([0.11, 0.13, 0.42, 0.49], ck.numeric(0, 1, step=0.25))
    assert cells(release) == {"[0, 0.25]", "[0.25, 0.5]"}
    assert release.certificate.columns["quasi"]["x"] == {"numeric": {"lo": 0, "hi": 1, "step": 0.25, "snap": True}}
    assert not any("step" in note or "true values" in note for note in release.certificate.notes)


def test_one_decimal_among_whole_numbers_makes_the_column_one_of_decimals() -> None:
    assert cells(released([1, 2, 3, 4], ck.numeric(step=2))) == {"[1, 2]", "[3, 4]"}
    assert cells(released([1, 2, 3, 4.5], ck.numeric(step=2))) == {"[0, 4]", "[2, 6]"}


def test_a_class_of_one_decimal_is_a_cell_of_the_grid_and_missing_stays_missing() -> None:
    assert cells(released(["0.3", "0.3", "?", "?", "-0.71", "-0.72"], ck.numeric(step=0.1))) == {
        "[0.3, 0.4]",
        None,
        "[-0.8, -0.7]",
    }


def test_stars_do_not_disclose_whether_decimals_inside_a_cell_are_equal() -> None:
    for first in (0.21, 0.22):
        release = released([first, 0.22, 0.35, 0.51], ck.numeric(0, 1, step=0.1), form=ck.generalized(cells="stars"))
        assert cells(release) == {"[0.2, 0.3]", "*"}
        assert ck.audit(release.columns, certificate=release.certificate).ok
    bound = released([0.91, 1, 0.35, 0.51], ck.numeric(0, 1, step=0.1), form=ck.generalized(cells="stars"))
    assert cells(bound) == {"[0.9, 1]", "*"}


def test_whole_numbers_are_snapped_by_column_or_by_form_with_a_proposed_step() -> None:
    ages = [20, 21, 48, 49]
    assert cells(released(ages, ck.numeric())) == {"[20, 21]", "[48, 49]"}
    assert cells(released(ages, ck.numeric(step=10, snap=True))) == {"[20, 30]", "[40, 50]"}
    proposed = released(ages, ck.numeric(), form=ck.generalized(snap=True))
    assert cells(proposed) == {"[20, 22]", "[48, 50]"}
    assert f"column 'x': ranges end at multiples of 1, {PROPOSED}" in proposed.certificate.notes
    assert ck.audit(proposed.columns, certificate=proposed.certificate).ok


def test_snapping_a_column_of_one_value_needs_a_declared_step() -> None:
    for kind, form in ((ck.numeric(), ck.generalized(snap=True)), (ck.numeric(snap=True), None)):
        with pytest.raises(BadInput, match="column 'x': has no step to snap to"):
            released([7, 7, 7, 7], kind, form=form)


def test_decimals_that_are_all_equal_have_no_step_and_keep_the_note_on_true_values() -> None:
    release = released([0.37] * 4, ck.numeric())
    assert cells(release) in ({"0.37"}, {0.37})
    assert any("column 'x': both ends of a range are true values" in note for note in release.certificate.notes)


def test_bins_exact_forms_and_sensitive_decimals_have_no_step() -> None:
    binned = released([0.1, 0.2, 0.8, 0.9], ck.numeric(0, 1, bins=2), form=ck.generalized(snap=True))
    assert cells(binned) == {"[0, 0.5]", "[0.5, 1]"}
    table, schema = floats(20)
    exact = ck.anonymize(table, schema, [ck.LDiversity("ill", 2)], form="bucketized", seed=SEED)
    assert exact.certificate.columns["quasi"]["x"] == "numeric"
    secret = ck.Schema(quasi={"ill": ck.flat()}, sensitive={"x": ck.numeric()}, drop=["y"])
    assert ck.anonymize(table, secret, [ck.KAnonymity(2)], seed=SEED).certificate.columns["sensitive"]["x"] == "numeric"


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([i / 1000 for i in range(1001)], 0.02),
        ([i / 1000 - 5 for i in range(1001)], 0.02),
        ([i * 1.5e12 + 0.5 for i in range(101)], 2 * 10**12),  # 2.7e12 is nearer to 2 than to 5
        ([i * 1e-9 for i in range(101)], 2e-9),
        ([0.25, 1.5], 0.02),  # 0.025
        ([0.5] * 99 + [10.5], 0.2),  # the 5th and the 95th percentile are equal: the whole range
        ([0.5] * 9, None),
        ([], None),
        (list(range(20, 30)), 1),  # whole numbers have no finer step
    ],
)
def test_the_proposed_step_is_the_nearest_round_number(values: list[float], step: float | None) -> None:
    assert step_of(values) == step


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=30))
def test_a_proposed_step_is_round_and_within_the_limit_whatever_the_numbers(values: list[float]) -> None:
    step = step_of(values)
    if step is None:
        return
    digits = f"{Fraction(str(step)).numerator}".rstrip("0"), f"{1 / Fraction(str(step))}".rstrip("0")
    assert digits[0] in "125" or digits[1] in ("1", "2", "5")
    ck.numeric(step=step).bind(np.array(values))  # does not refuse: at most MOST_STEPS


def test_far_outliers_and_wide_bounds_do_not_make_a_step_that_is_refused() -> None:
    values = [i / 100 for i in range(100)] + [1e14]
    release = released([*values, 0.5], ck.numeric())
    assert (1e14 / release.certificate.columns["quasi"]["x"]["numeric"]["step"]) <= MOST_STEPS
    assert released([0.1, 0.2, 0.3, 0.4], ck.numeric(0, 1e14)).certificate.ok


def test_rows_in_any_order_and_suppression_have_the_same_proposed_step() -> None:
    table, schema = floats(100)
    shuffled = table.take(np.random.default_rng(1).permutation(100))
    one, other = (ck.anonymize(rows, schema, [ck.KAnonymity(5)], seed=SEED).certificate for rows in (table, shuffled))
    assert one.to_json() == other.to_json()
    release = ck.anonymize(table, schema, [ck.KAnonymity(5)], suppress=0.1, seed=SEED)
    assert sum(PROPOSED in note for note in release.certificate.notes) == 2
    assert ck.audit(release.columns, certificate=release.certificate).ok


def test_inspect_writes_the_step_of_decimals_and_offers_snap_with_its_cost(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    height, age = (rng.integers(15000, 20000, 300) / 100).tolist(), rng.integers(20, 90, 300).tolist()
    table = Columns.of({"height": height, "age": age, "disease": ["flu", "gout"] * 150})
    text = ck.suggest(table).to_recipe("people.csv")
    assert "height: {numeric: {step: 1}}" in text and "its ranges end at multiples of the step" in text
    assert "age: numeric" in text and "age about 0.014" in text and "height about" not in text
    (offered,) = [line for line in text.splitlines() if "snap: true" in line]
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(text.replace(offered, offered.removeprefix("# ")), encoding="utf-8")
    assert Recipe.read(recipe).form == ck.generalized(snap=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda schema: ck.Castle(schema, k=3, delta=12),
        lambda schema: ck.SabreWindow(schema, [ck.TCloseness("ill", 0.5)], omega=20, advance=10, k=2),
    ],
)
def test_a_stream_snaps_where_a_step_is_declared_and_notes_true_values_elsewhere(make: Any) -> None:
    rng = np.random.default_rng(2)
    table = Columns.of({"x": rng.random(60).tolist(), "y": rng.random(60).tolist(), "ill": ["flu", "gout"] * 30})
    kinds = {"x": ck.numeric(0, 1, step=0.1), "y": ck.numeric(0, 1)}
    schema = ck.Schema(quasi=kinds, sensitive={"ill": ck.flat()})
    release = ck.replay(make(schema), table)
    low, high = read_ranges([str(cell) for cell in cells(release) if cell is not None])
    ends = [Fraction(str(float(end))) for end in (*low, *high) if not np.isnan(end)]
    assert ends and all((end * 10).denominator == 1 for end in ends)
    tight = [note for note in release.certificate.notes if "true values" in note]
    assert len(tight) == 1 and "column 'y'" in tight[0]
    assert release.certificate.columns["quasi"]["x"]["numeric"]["snap"] is True
    stream, written = make(schema), []
    for row in zip(*(table[name].cells() for name in table), strict=True):
        written += stream.push(dict(zip(table, row, strict=True)))
    written += stream.flush()
    low, high = read_ranges([str(row["x"]) for row in written])
    assert stream.certificate.loss.columns["x"][0] == pytest.approx(np.where(np.isnan(low), 1, high - low).mean())


def test_a_stream_cannot_propose_a_step() -> None:
    schema = ck.Schema(quasi={"x": ck.numeric(0, 1, snap=True)}, sensitive={"ill": ck.flat()})
    with pytest.raises(BadInput, match="column 'x': has no step to snap to"):
        ck.Castle(schema, k=3, delta=12)


def test_a_snapped_cell_at_the_upper_bound_is_as_wide_as_the_others() -> None:
    assert cells(released([10] * 6, ck.numeric(0, 10, step=5), form=ck.generalized(snap=True))) == {"[5, 10]"}


def test_snapped_cells_stand_on_the_grid_and_hold_their_values() -> None:
    tenths = released([0.3] * 6, ck.numeric(step=0.1), form=ck.generalized(snap=True))
    tiny = released([3e-14] * 6, ck.numeric(step=1e-14), form=ck.generalized(snap=True))
    assert cells(tenths) == {"[0.3, 0.4]"} and cells(tiny) == {"[3e-14, 4e-14]"}


@pytest.mark.parametrize("snap", ["no", 3, None])
def test_snap_is_true_or_false(snap):
    with pytest.raises(ck.BadInput):
        ck.generalized(snap=snap)

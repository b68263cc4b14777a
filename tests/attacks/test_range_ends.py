"""Singling out by range ends: equals a naive loop over rows, needs tight ranges, and falls where ranges are snapped."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.attacks.downcoding import downcoding
from closeknit.attacks.private_attacks import with_original
from closeknit.attacks.range_ends import range_ends, singling_out
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.forms.release_reading import reading_of
from conftest import examples

SEED = 2**64
NUMBERS, OTHERS = ("age", "pay"), ("sex", "town")
STEPPED = {"age": ck.numeric(0, 40, step=5), "pay": ck.numeric(step=10)}
BINNED = {"age": ck.numeric(0, 40, bins=4), "pay": ck.numeric()}
ROW = st.tuples(
    st.one_of(st.none(), st.integers(20, 30)),
    st.integers(-3, 40),
    st.sampled_from("fm"),
    st.sampled_from(["471", "472", "481"]),
)
Raw = tuple[Any, ...]


def released(rows: list[Raw], numbers: dict[str, Any], form: Any, method: Any, k: int = 2) -> tuple[Columns, ck.Schema, Any]:
    names = (*NUMBERS, *OTHERS)
    table = Columns.of({name: [row[i] for row in rows] for i, name in enumerate(names)} | {"ill": ["flu"] * len(rows)})
    schema = ck.Schema(quasi={**numbers, "sex": ck.flat(), "town": ck.prefix()}, sensitive={"ill": ck.flat()})
    return table, schema, ck.anonymize(table, schema, [ck.KAnonymity(k)], method, form=form, seed=SEED)


def ends_of(cell: object) -> tuple[float, float] | None:
    """The ends of a written range; none of any other cell."""
    text = str(cell)
    return (float(text[1:-1].split(", ")[0]), float(text[1:-1].split(", ")[1])) if text.startswith("[") else None


def inside(name: str, cell: object, value: object) -> bool:
    if cell == "*" or cell is None or value is None:
        return cell == "*" or cell is value
    if name in NUMBERS:
        low, high = ends_of(cell) or (float(str(cell)), float(str(cell)))
        return low <= float(str(value)) <= high
    head = str(cell).rstrip("*")
    return str(value) == str(cell) or (head != cell and str(value).startswith(head))


def naive(table: Columns, release: Any) -> tuple[list[list[int]], list[float]]:
    """The rows that each description fits, and the chance that one of its weight isolates a row."""
    names = (*NUMBERS, *OTHERS)
    raw = [dict(zip(names, row, strict=True)) for row in zip(*(table[name].cells() for name in names), strict=True)]
    classes = set(zip(*(map(str, release.columns[name].cells()) for name in names), strict=True))
    fits, chances, n = [], [], len(raw)
    for texts in sorted(classes):
        cells = {name: None if text == "None" else text for name, text in zip(names, texts, strict=True)}
        for column in NUMBERS:
            for end in ends_of(cells[column]) or ():
                tests = [
                    [row[name] == end if name == column else inside(name, cells[name], row[name]) for row in raw]
                    for name in names
                ]
                fits.append([i for i in range(n) if all(test[i] for test in tests)])
                weight = prod(sum(test) / n for test in tests)
                chances.append(n * weight * (1 - weight) ** (n - 1))
    return fits, chances


@settings(max_examples=examples(30))
@given(
    st.lists(ROW, min_size=4, max_size=16),
    st.sampled_from([(STEPPED, ck.generalized()), (STEPPED, ck.generalized(snap=True)), (BINNED, ck.generalized())]),
    st.sampled_from([ck.Mondrian(), ck.StackAndDeal()]),
)
def test_singling_out_equals_a_naive_loop(rows: list[Raw], written: Any, method: Any) -> None:
    table, schema, release = released(rows, *written, method)
    fits, chances = naive(table, release)
    if not fits:
        with pytest.raises(BadInput, match="no column is written as ranges"):
            singling_out(release, table, schema)
        return
    found = singling_out(release, table, schema)
    alone = [rows[0] for rows in fits if len(rows) == 1]
    assert found.details["descriptions"] == len(fits) and found.details["isolating"] == len(alone)
    assert found.number == pytest.approx(len(alone) / len(fits))
    assert (found.details["rows"], found.details["table_rows"]) == (len(set(alone)), len(rows))
    baseline = sum(chances) / len(chances)
    assert found.details["baseline"] == pytest.approx(baseline)
    assert found.risk == pytest.approx(max(found.number - baseline, 0) / (1 - baseline))


@settings(max_examples=examples(30))
@given(st.lists(ROW, min_size=4, max_size=16), st.sampled_from([ck.Mondrian(), ck.StackAndDeal()]))
def test_each_end_of_a_tight_range_is_the_value_of_one_row_up_to_all_but_one(rows: list[Raw], method: Any) -> None:
    table, _, release = released(rows, STEPPED, ck.generalized(), method)
    names = (*NUMBERS, *OTHERS)
    written = list(zip(*(release.columns[name].cells() for name in names), strict=True))
    ranges = {(cells, name) for cells in written for name, cell in zip(names, cells, strict=True) if ends_of(cell)}
    if not ranges:
        with pytest.raises(BadInput, match="no range ends at true values"):
            range_ends(reading_of(release))
        return
    found = range_ends(reading_of(release))
    shown = {cells for cells, _ in ranges}
    assert found.details["ranges"] == len(ranges) and found.details["classes"] == len(shown)
    assert found.number == sum(cells in shown for cells in written) / len(rows)
    assert found.risk == 1 / (min(written.count(cells) for cells in shown) - 1)
    fits, _ = naive(table, release)
    assert all(fits)  # every end is the value of a row


def coordinates(rows: int = 600) -> tuple[Columns, ck.Schema]:
    """Whole numbers of which nearly each belongs to one person."""
    rng = np.random.default_rng(3)
    x, y = (rng.integers(10**9, size=rows).tolist() for _ in range(2))
    kinds = {"x": ck.numeric(step=10**8), "y": ck.numeric(step=10**8)}
    return Columns.of({"x": x, "y": y, "ill": ["flu", "gout"] * (rows // 2)}), ck.Schema(
        quasi=kinds, sensitive={"ill": ck.flat()}
    )


def test_tight_ranges_of_fine_numbers_single_half_of_the_people_out_and_snapped_ones_no_one() -> None:
    table, schema = coordinates()
    tight, snapped = (
        singling_out(ck.anonymize(table, schema, [ck.KAnonymity(6)], form=ck.generalized(snap=snap), seed=SEED), table, schema)
        for snap in (False, True)
    )
    assert tight.number == 1 and 0.45 < tight.details["rows_share"] < 0.6  # type: ignore[operator]
    assert tight.details["baseline"] < 0.1 and tight.risk == pytest.approx(1)  # type: ignore[operator]
    assert (snapped.number, snapped.risk, snapped.details["rows"]) == (0, 0, 0)


def test_snapping_whole_numbers_lowers_the_share_of_isolating_descriptions() -> None:
    table, schema = ck.datasets.hospital(600), ck.datasets.hospital_schema()
    stepped = schema.model_copy(update={"quasi": {**schema.quasi, "age": ck.numeric(step=5)}})
    tight, snapped = (
        singling_out(
            ck.anonymize(table, stepped, [ck.KAnonymity(4)], form=ck.generalized(snap=snap), seed=SEED), table, stepped
        )
        for snap in (False, True)
    )
    assert snapped.number < tight.number / 2 and snapped.risk < tight.risk  # type: ignore[operator]


def test_what_has_no_ranges_is_left_out_with_its_reason() -> None:
    table, schema = coordinates(60)
    for form in (ck.generalized(snap=True), ck.generalized(cells="stars")):
        release = ck.anonymize(table, schema, [ck.KAnonymity(3)], form=form, seed=SEED)
        assert "range_ends" not in {found.attack for found in ck.attacks.on_release(release)}
        assert "range ends: no range ends at true values of its class" in ck.attacks.list_skipped(release)
    assert "singling_out" not in {found.attack for found in with_original(release, table, schema)}
    exact = ck.anonymize(table, schema, [ck.LDiversity("ill", 2)], form="bucketized", seed=SEED)
    with pytest.raises(BadInput, match="written exactly"):
        singling_out(exact, table, schema)


def test_attack_and_both_reports_measure_range_ends() -> None:
    table, schema = coordinates(60)
    release = ck.anonymize(table, schema, [ck.KAnonymity(3)], seed=SEED)
    public, private = release.public_record(), release.private_record()
    assert "range_ends" in {found.attack for found in public.findings}
    assert "singling_out" in {found.attack for found in private.findings}
    assert "singling_out" not in {found.attack for found in public.findings}  # it compares with the original
    for attack in ("singling out", "candidate rows", "refinement", "downcoding", "minimality", "exchange", "row join"):
        assert any(reason.startswith(f"{attack} needs ") for reason in public.untried), attack
        assert attack.replace(" ", "_") not in {found.attack for found in public.findings}
    assert all(f"<li>{reason}</li>" in release.report() for reason in public.untried if "`" not in reason)
    alone, reported = ck.attack(release), ck.attack(release, original=table, schema=schema)
    (anyone,) = (found for found in public.findings if found.attack == "range_ends")
    owner = downcoding(release, table, schema, release.partition)  # all cells are ranges: anyone recovers as many
    assert [anyone.details[name] for name in ("recovered", "generalized_cells")] == [
        owner.details[name] for name in ("recovered", "generalized_cells")
    ]
    assert any(reason.startswith("singling out needs the original rows") for reason in alone.untried)
    assert {"range_ends", "singling_out"} <= {found.attack for found in reported.findings}


def test_a_third_of_the_range_ends_of_adult_single_one_row_out(data_folder: Path) -> None:
    """About a third on all 45,222 rows too; a part of them is enough to see it."""
    kinds = {name: ck.numeric() for name in ("age", "hours-per-week")} | {name: ck.flat() for name in ("sex", "workclass")}
    frame = pl.read_csv(data_folder / "adult" / "adult.csv.gz", infer_schema=False).select([*kinds, "occupation"]).head(6000)
    schema = ck.Schema(quasi=kinds, sensitive={"occupation": ck.flat()})
    six = singling_out(ck.anonymize(frame, schema, [ck.KAnonymity(6)], seed=SEED), frame, schema)
    assert 0.3 < six.number < 0.45 and six.details["baseline"] < 0.25  # type: ignore[operator]
    two = singling_out(ck.anonymize(frame[:3000], schema, [ck.KAnonymity(2)], seed=SEED), frame[:3000], schema)
    assert two.number > 0.6  # type: ignore[operator]

"""Individual, global and household risk from sample weights: values of sdcMicro's tests, by hand, and by integration."""

from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import nbinom

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.risks.sample_weights import expect_reciprocal


@pytest.mark.parametrize(
    ("frequency", "population", "exact", "approx"),
    [
        (1, 45.5, 0.08579129, 0.08579129),
        (1, 17, 0.17707583, 0.17707583),
        (1, 123.5, 0.03931625, 0.03931625),
        (2, 100, 0.01877883, 0.01877883),
        (3, 108, 0.01355297, 0.01369863),
        (5, 208, 0.005962551, 0.005973716),
        (10, 10 / 0.9, 0.09083214217, 0.0909091),
        (4, 4, 0.25, 0.25),
    ],
)
def test_published_values(frequency: int, population: float, exact: float, approx: float) -> None:
    assert ck.individual_risk(frequency, population) == pytest.approx(exact, abs=2e-8)
    assert ck.individual_risk(frequency, population, kind="approx") == pytest.approx(approx, abs=5e-8)


def test_half_a_population_by_hand() -> None:
    found = ck.individual_risk([1, 2, 3], [2, 4, 6])
    assert found == pytest.approx([log(2), 1 - log(2), log(2) - 0.5], abs=1e-15)
    assert ck.individual_risk(3, 6, "approx") == pytest.approx(0.2)


@pytest.mark.parametrize("f", [1, 2, 5, 29, 30, 200])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.500001, 0.9])
def test_it_is_the_mean_of_the_reciprocal(f: int, p: float) -> None:
    more = np.arange(int(60 * f / p) + 2000)
    naive = float((nbinom.pmf(more, f, p) / (f + more)).sum())
    assert expect_reciprocal(np.array([float(f)]), np.array([p]))[0] == pytest.approx(naive, rel=1e-9)


def test_a_population_below_the_sample() -> None:
    with pytest.warns(UserWarning, match="smaller than its frequency"):
        assert ck.individual_risk(4, 2) == 0.25


@pytest.mark.parametrize(("frequency", "population"), [(0, 5), (1.5, 5), (1, 0), (1, -3), (1, float("nan"))])
def test_numbers_that_cannot_be(frequency: float, population: float) -> None:
    with pytest.raises(ck.BadInput):
        ck.individual_risk(frequency, population)


def test_adult(data_folder: Path) -> None:
    frame = pl.read_csv(data_folder / "adult" / "adult.csv.gz", infer_schema=False).head(32_561)
    frame = frame.filter(~pl.any_horizontal(pl.all() == "?"))
    schema = ck.Schema(quasi={"sex": ck.flat(), "age": ck.numeric(), "race": ck.flat()})
    found = ck.risk(frame, schema, weights="fnlwgt")
    assert found.expected_reidentifications == pytest.approx(0.01093463408, abs=1e-11)
    assert found.individual.max() == pytest.approx(0.000492961435, abs=1e-12)
    assert found.global_risk == found.expected_reidentifications / 30_162
    classes = frame.group_by("sex", "age", "race").agg(f=pl.len(), total=pl.col("fnlwgt").cast(pl.Float64).sum())
    f, total = classes["f"].to_numpy(), classes["total"].to_numpy()
    assert f @ ck.individual_risk(f, total, "approx") == pytest.approx(0.01093463660, abs=1e-11)


ROWS = [(2, 3, 1), (3, 3, 3), (2, 3, None), (2, 3, 2), (3, 3, 1), (3, 3, 1), (1, 4, None), (None, 3, 1)]
WEIGHTS = [18, 45.5, 39, 17, 92, 8, 123.5, 51]


def test_a_missing_cell_that_matches_all_others() -> None:
    table = Columns.of({name: [row[j] for row in ROWS] for j, name in enumerate("xyz")})
    schema = ck.Schema(quasi=dict.fromkeys("xyz", ck.flat()))
    found = ck.risk(table, schema, weights=WEIGHTS, missing="wildcard")
    match = [[all(a == b or None in (a, b) for a, b in zip(x, y, strict=True)) for y in ROWS] for x in ROWS]
    among = [sum(row) for row in match]
    assert found.counts.among[found.counts.class_of].tolist() == among and among[-1] == 5
    assert found.individual[-1] == pytest.approx(0.005962551, abs=1e-9)
    sums = [sum(weight for weight, same in zip(WEIGHTS, row, strict=True) if same) for row in match]
    assert found.individual == pytest.approx(ck.individual_risk(among, sums))
    assert found.prosecutor.average == pytest.approx(sum(1 / f for f in among) / 8)
    assert any("comparison" in note for note in found.notes)
    assert ck.risk(table, schema, weights=WEIGHTS).prosecutor.average == 7 / 8  # missing is a value of its own


def test_households() -> None:
    table = Columns.of({"x": ["a", "b", "c", "d"], "weight": [1, 1, 1, 1], "home": ["one", "one", "one", "two"]})
    schema = ck.Schema(quasi={"x": ck.flat()})
    found = ck.risk(table, schema, weights="weight", household="home")
    assert found.household.tolist() == [1, 1, 1, 1] and found.household_expected_reidentifications == 4
    levels = [0.01369863, 0.08579129, 0.01369863]
    shared = 1 - np.prod([1 - level for level in levels])
    assert shared == pytest.approx(0.11066655, abs=1e-8) and 3 * shared == pytest.approx(0.33199965, abs=3e-8)
    weights = [45.5, 17, 123.5, 100]
    several = ck.risk(table, schema, weights=weights, household="home")
    risks = [ck.individual_risk(1, weight) for weight in weights]
    home = 1 - (1 - risks[0]) * (1 - risks[1]) * (1 - risks[2])
    assert several.household == pytest.approx([home, home, home, risks[3]])
    assert several.household_expected_reidentifications == pytest.approx(3 * home + risks[3])


def test_a_person_of_several_rows_counts_once() -> None:
    table = Columns.of({"x": ["a", "a", "a"], "who": [1, 1, 2], "weight": [10, 30, 20], "home": [7, 7, 7]})
    schema = ck.Schema(quasi={"x": ck.flat()}, person="who")
    found = ck.risk(table, schema, weights="weight", household="home")
    level = ck.individual_risk(2, 30)
    assert found.prosecutor.highest == 0.5 and found.record.counted == "persons"
    assert found.individual == pytest.approx([level] * 3) and found.expected_reidentifications == pytest.approx(2 * level)
    assert found.household_expected_reidentifications == pytest.approx(2 * (1 - (1 - level) ** 2))
    assert any("persons" in note for note in found.notes)

"""Prosecutor, journalist and marketer: values computed by hand, by ARX and by an independent computation; a naive count."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.risks.attackers import Attackers, least_class_size, measure_attackers
from closeknit.risks.class_counts import ClassCounts
from conftest import examples

SIZES, PEOPLE = np.array([1, 1, 2, 3, 5]), np.array([1, 4, 4, 6, 20])
THREE = ["sex", "age", "race"]
NINE = [*THREE, "marital-status", "education", "native-country", "workclass", "occupation", "salary-class"]


def schema_of(columns: list[str]) -> ck.Schema:
    return ck.Schema(quasi={name: ck.numeric() if name == "age" else ck.flat() for name in columns})


def by_sizes(sizes: np.ndarray, people: np.ndarray | None = None, fraction: Fraction | None = None) -> Attackers:
    return measure_attackers(ClassCounts.of_sizes(sizes), people, fraction)


@pytest.fixture(scope="module")
def adult(data_folder: Path) -> pl.DataFrame:
    """All complete rows; those of the training part come first."""
    frame = pl.read_csv(data_folder / "adult" / "adult.csv.gz", infer_schema=False).with_row_index("at")
    frame = frame.filter(~pl.any_horizontal(pl.exclude("at") == "?"))
    assert frame.height == 45_222
    return frame


@pytest.fixture(scope="module")
def training(adult: pl.DataFrame) -> pl.DataFrame:
    frame = adult.filter(pl.col("at") < 32_561)
    assert frame.height == 30_162
    return frame


def test_the_prosecutor_by_hand() -> None:
    found = by_sizes(SIZES).prosecutor
    assert (found.highest, found.average) == (1, 5 / 12)
    shares = [found.exact_share_above(t) for t in (0.2, 0.33, "1/3", 1, 0)]
    assert shares == [Fraction(7, 12), Fraction(7, 12), Fraction(4, 12), 0, 1]


def test_a_population_by_hand() -> None:
    found = by_sizes(SIZES, PEOPLE)
    assert found.journalist.highest == 1 and found.marketer.average == 5 / 24
    assert found.journalist.average == max(1 / 7, 5 / 24)
    assert found.journalist.exact_share_above(0.2) == Fraction(1, 3)
    assert found.journalist.status == found.marketer.status == "exact"
    wide = by_sizes(np.array([1, 9]), np.array([1, 900]))
    assert wide.journalist.average == wide.marketer.average == pytest.approx((1 + 9 / 900) / 10)


def test_a_sampling_fraction_by_hand() -> None:
    found = by_sizes(SIZES, fraction=Fraction(1, 2))
    assert found.journalist.average == found.marketer.average == pytest.approx(0.260709, abs=1e-6)
    assert found.journalist.status == found.marketer.status == "estimate"
    whole = by_sizes(SIZES, fraction=Fraction(1))
    assert whole.journalist.average == 5 / 12 and whole.journalist.exact_share_above("1/3") == Fraction(4, 12)
    assert whole.journalist.status == "exact"


def test_without_a_population_the_others_are_bounded_by_the_prosecutor() -> None:
    found = by_sizes(SIZES)
    assert found.journalist.status == found.marketer.status == "upper bound"
    assert found.journalist.average == found.marketer.average == found.prosecutor.average


@pytest.mark.parametrize(
    ("sizes", "highest", "average", "above"), [([], 0, 0, 0), ([1, 1, 1], 1, 1, 0), ([4], 0.25, 0.25, 0), ([1, 3], 1, 0.5, 0)]
)
def test_edges(sizes: list[int], highest: float, average: float, above: float) -> None:
    found = by_sizes(np.array(sizes, dtype=np.int64)).prosecutor
    assert (found.highest, found.average, found.share_above(1)) == (highest, average, above)


def test_adult(training: pl.DataFrame) -> None:
    nine, three = ck.risk(training, schema_of(NINE)).prosecutor, ck.risk(training, schema_of(THREE)).prosecutor
    assert nine.average == pytest.approx(0.6465751608, abs=1e-10)
    assert nine.share_above(0.05) == pytest.approx(0.9709236788, abs=1e-10)
    assert nine.share_above(0.09) == pytest.approx(0.9166500895, abs=1e-10)
    assert three.average == pytest.approx(0.01750547046, abs=1e-11)
    assert three.share_above(0.09) == pytest.approx(0.03888999403, abs=1e-11)
    assert three.share_above(0.091) == pytest.approx(0.03597241562, abs=1e-11)


def test_adult_in_its_population(adult: pl.DataFrame, training: pl.DataFrame) -> None:
    found = ck.risk(training, schema_of(THREE), population=adult)
    assert found.marketer.average == pytest.approx(0.01212051999, abs=1e-11)
    assert found.journalist.share_above(0.05) == pytest.approx(0.04399575625, abs=1e-11)
    assert found.journalist.share_above(0.09) == pytest.approx(0.02705390889, abs=1e-11)
    estimated = ck.risk(training, schema_of(THREE), sampling_fraction=0.1).journalist
    assert estimated.average == pytest.approx(0.002346924336, abs=1e-12)
    assert estimated.highest == pytest.approx(0.2558427881, abs=1e-10)


@pytest.mark.parametrize(
    ("threshold", "size"),
    [(0.05, 20), (0.075, 14), (0.09, 12), (0.0909, 12), (0.1, 10), (0.2, 5), (0.33, 4), ("1/3", 3), (2, 1)],
)
def test_the_class_size_that_a_threshold_needs(threshold: float, size: int) -> None:
    assert least_class_size(threshold) == size
    if size > 1:
        assert by_sizes(np.array([size])).prosecutor.share_above(threshold) == 0
        assert by_sizes(np.array([size - 1])).prosecutor.share_above(threshold) == 1


CELLS = st.sampled_from(["a", "b", None])


@settings(max_examples=examples(20))
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12), st.lists(st.tuples(CELLS, CELLS), max_size=12))
def test_any_table_against_a_naive_count(rows: list[tuple[str | None, ...]], others: list[tuple[str | None, ...]]) -> None:
    table, people = (Columns.of({"x": [x for x, _ in some], "y": [y for _, y in some]}) for some in (rows, [*rows, *others]))
    found = ck.risk(table, ck.Schema(quasi={"x": ck.flat(), "y": ck.flat()}), people)
    in_sample, in_population = Counter(rows), Counter([*rows, *others])
    assert found.prosecutor.highest == 1 / min(in_sample.values())
    assert found.journalist.highest == 1 / min(in_population[row] for row in rows)
    assert found.marketer.average == pytest.approx(sum(1 / in_population[row] for row in rows) / len(rows))
    for t in (Fraction(1, 2), Fraction(1, 3)):
        above = sum(1 for row in rows if Fraction(1, in_population[row]) > t)
        assert found.journalist.exact_share_above(t) == Fraction(above, len(rows))
    assert found.individual.tolist() == [1 / in_population[row] for row in rows]

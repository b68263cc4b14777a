"""Population uniques estimated from class sizes: values computed by hand, by ARX, and by an independent computation."""

from __future__ import annotations

from fractions import Fraction
from math import isclose, log
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from closeknit.core.errors import BadInput
from closeknit.core.population_uniques import SizeCounts, _sum_of_reciprocals, estimate_population_uniques, fit_pitman

T149 = [1] * 60 + [2] * 12 + [3] * 4 + [4] * 3 + [6] * 2 + [9, 20]
FIVE = ["sex", "age", "race", "marital-status", "education"]
NINE = [*FIVE, "native-country", "workclass", "occupation", "salary-class"]


def share(sizes: SizeCounts, fraction: str, name: str) -> float:
    population = Fraction(sizes.rows) / Fraction(fraction)
    value = estimate_population_uniques(sizes, population).expected[name]
    assert value is not None
    return value / float(population)


@pytest.fixture(scope="module")
def adult(data_folder: Path) -> pl.DataFrame:
    frame = pl.read_csv(data_folder / "adult" / "adult.csv.gz", infer_schema=False).head(32_561)
    return frame.filter(~pl.any_horizontal(pl.all() == "?"))


def sizes_of(frame: pl.DataFrame, columns: list[str]) -> SizeCounts:
    return SizeCounts.of(frame.group_by(columns).len()["len"].to_numpy())


def test_a_small_table_by_hand() -> None:
    found = estimate_population_uniques(SizeCounts.of([1, 1, 2]), 8)
    assert found.expected["zayatz"] == pytest.approx(28 / 11, rel=1e-15)
    assert found.expected["pitman"] is None and found.reasons["pitman"] == "the likelihood is largest at an alpha below 0"
    assert found.expected["snb"] is None and found.reasons["snb"].startswith("no parameters")
    assert found.rule == "zayatz" and found.chosen == found.expected["zayatz"] and isclose(found.share, 28 / 88)


def test_149_rows() -> None:
    found = estimate_population_uniques(SizeCounts.of(T149), 1490)
    assert found.expected["zayatz"] == pytest.approx(316.334614, abs=1e-6)
    assert found.expected["pitman"] == pytest.approx(257.647982, abs=1e-6)
    assert found.expected["snb"] == pytest.approx(237.751, abs=1e-3)
    assert found.rule == "pitman" and not found.reasons
    assert estimate_population_uniques(SizeCounts.of(T149), 1489).rule == "snb"  # just above a tenth: the smaller of the two


def test_adult(adult: pl.DataFrame) -> None:
    nine, five = sizes_of(adult, NINE), sizes_of(adult, FIVE)
    assert share(nine, "0.1", "zayatz") == pytest.approx(0.3207402393, abs=1e-10)
    assert share(nine, "0.1", "pitman") == pytest.approx(0.2760333, abs=1e-7)
    assert share(nine, "0.1", "snb") == pytest.approx(0.249977, abs=1e-6)
    assert share(five, "0.01", "zayatz") == pytest.approx(0.0148162565, abs=1e-10)
    assert share(five, "0.01", "pitman") == pytest.approx(0.0091338, abs=1e-7)
    assert share(five, "0.01", "snb") == pytest.approx(0.003483, abs=1e-6)
    assert share(nine, "1", "zayatz") == pytest.approx(0.5142895033, abs=1e-10)
    fit = fit_pitman(nine)
    assert fit.theta == pytest.approx(3176.2335, abs=1e-4) and fit.alpha == pytest.approx(0.7179489, abs=1e-7)
    assert estimate_population_uniques(nine, nine.rows * 10).rule == "pitman"


def test_nothing_to_estimate() -> None:
    for sizes, population, uniques in [([], 10, 0), ([2, 3], 50, 0), ([1, 1, 3], 5, 2), ([], 0, 0)]:
        found = estimate_population_uniques(SizeCounts.of(sizes), population)
        assert set(found.expected.values()) == {float(uniques)} and not found.reasons


def test_a_sample_of_uniques_has_no_fit_and_zayatz_says_everyone() -> None:
    found = estimate_population_uniques(SizeCounts.of([1, 1, 1]), 300)
    assert found.expected == {"zayatz": pytest.approx(300), "pitman": None, "snb": None}
    assert set(found.reasons) == {"pitman", "snb"} and found.rule == "zayatz"


@pytest.mark.parametrize("population", [7, float("nan"), float("inf"), -1, "many"])
def test_a_population_that_cannot_be(population: float) -> None:
    with pytest.raises(BadInput):
        estimate_population_uniques(SizeCounts.of([1, 7]), population)


def test_merging_two_pairs_can_raise_the_estimate() -> None:
    before, after = (estimate_population_uniques(SizeCounts.of(sizes), 10) for sizes in ([1, 2, 2], [1, 4]))
    assert before.expected["zayatz"] == pytest.approx(18 / 29) and after.expected["zayatz"] == pytest.approx(42 / 31)


def test_a_population_beyond_32_bits() -> None:
    found = estimate_population_uniques(SizeCounts.of(T149), 10**10)
    pi = 149 / 1e10  # with a vanishing fraction h_i tends to i n / N
    assert found.expected["zayatz"] == pytest.approx(60**2 / (149 * pi), rel=1e-5)


@pytest.mark.parametrize("alpha", [0.004, 0.3, 0.97])
@pytest.mark.parametrize("theta", [0.01, 60.0, 3000.0, 1e7])
def test_the_fit_is_a_maximum_of_the_likelihood(alpha: float, theta: float) -> None:
    assert _sum_of_reciprocals(theta, alpha, 500) == pytest.approx(
        float((1 / (theta + alpha * np.arange(1, 500))).sum()), rel=1e-12
    )

    def likelihood(theta: float, alpha: float) -> float:
        inside = sum(log(j - alpha) for size in T149 for j in range(1, size))
        return sum(log(theta + i * alpha) for i in range(1, 83)) - sum(log(theta + i) for i in range(1, 149)) + inside

    fit = fit_pitman(SizeCounts.of(T149))
    assert likelihood(fit.theta, fit.alpha) > likelihood(theta, alpha)

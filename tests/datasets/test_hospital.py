"""The generated hospital table: the same for the same seed, and correlated like a real one."""

from __future__ import annotations

import numpy as np
import pytest

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.datasets import hospital, hospital_recipe, hospital_schema


@pytest.fixture(scope="module")
def table() -> Columns:
    return hospital()


def cells(table: Columns, name: str) -> np.ndarray:
    return np.array(table[name].cells())


def test_seed_decides_everything() -> None:
    first, again, other = hospital(300, seed=1), hospital(300, seed=1), hospital(300, seed=2)
    assert all(first[name].cells() == again[name].cells() for name in first)
    assert any(first[name].cells() != other[name].cells() for name in first)


@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
def test_has_the_rows_asked_for_and_fits_its_schema(rows: int) -> None:
    table = hospital(rows)
    assert {len(column) for column in table.values()} == {table.rows} == {rows}
    assert all((column.counts > 0).all() and (column.codes >= 0).all() for column in table.values())
    hospital_schema().list_needed(list(table))
    assert len(hospital_schema().encode(table)) == rows


def test_ranges(table: Columns) -> None:
    age, stay, charge = (cells(table, name) for name in ("age", "stay", "charge"))
    assert age.min() >= 0 and age.max() <= 99
    assert stay.min() == 1 and stay.max() <= 60
    assert (charge > 0).all() and (charge % 10 == 0).all()
    assert {len(code) for code in table["zip"].cells()} == {5}  # type: ignore[arg-type]
    assert all(len(table[name].values) > 1 for name in table)


def test_every_disease_and_job_is_a_leaf_and_common_enough(table: Columns) -> None:
    schema = hospital_schema()
    for name, kind in (("disease", schema.sensitive["disease"]), ("job", schema.quasi["job"])):
        assert sorted(kind.tree.leaf_labels) == sorted(table[name].values.tolist())
        assert table[name].counts.min() >= 0.005 * table.rows
        assert 4 <= len(kind.nested) <= 5


def correlation_ratio(group: np.ndarray, number: np.ndarray) -> float:
    """Share of the variance of a number that the group explains."""
    _, codes = np.unique(group, return_inverse=True)
    sums, sizes = np.bincount(codes, number), np.bincount(codes)
    between = (sizes * (sums / sizes - number.mean()) ** 2).sum()
    return float(between / ((number - number.mean()) ** 2).sum())


def dependence(one: np.ndarray, other: np.ndarray) -> float:
    """Chi-square over its degrees of freedom: about 1 where two columns have nothing to do with each other."""
    _, a = np.unique(one, return_inverse=True)
    _, b = np.unique(other, return_inverse=True)
    seen = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(seen, (a, b), 1)
    expected = seen.sum(1, keepdims=True) * seen.sum(0) / seen.sum()
    return float((((seen - expected) ** 2 / expected).sum()) / ((seen.shape[0] - 1) * (seen.shape[1] - 1)))


def test_correlated_like_a_real_one(table: Columns) -> None:
    disease, age, sex, job = (cells(table, name) for name in ("disease", "age", "sex", "job"))
    stay, charge, admission = (cells(table, name) for name in ("stay", "charge", "admission"))
    area = np.array([code[:3] for code in cells(table, "zip")])
    month = np.array([day.month for day in admission])
    working = np.isin(job, ["retired", "student", "child"], invert=True)
    assert correlation_ratio(disease, age) > 0.2
    assert correlation_ratio(area, age) > 0.05
    assert correlation_ratio(disease, stay) > 0.2
    assert np.corrcoef(stay, charge)[0, 1] > 0.5
    assert dependence(disease, sex) > 5
    assert dependence(disease, month) > 2
    assert dependence(area[working], job[working]) > 5
    assert dependence(disease[working], job[working]) > 1.5
    assert not ((disease == "prostate cancer") & (sex == "female")).any()
    days = np.isin(disease, ["fracture"])
    assert stay[days & (age > 70)].mean() > 1.2 * stay[days & (age < 30)].mean()


def test_names_agree_with_sex_and_each_stands_once(table: Columns) -> None:
    first = np.array([name.split()[0] for name in cells(table, "name")])
    sex = cells(table, "sex")
    assert not set(first[sex == "female"]) & set(first[sex == "male"])
    assert len({*cells(table, "name")}) == table.rows, "an identifier that repeats is refused"


def test_recipe_is_readable() -> None:
    from closeknit.api.recipe import Recipe

    recipe = Recipe.of(hospital_recipe("patients.csv"))
    assert recipe.schema == hospital_schema()
    assert [model.name for model in recipe.models] == ["k_anonymity", "t_closeness"]


@pytest.mark.parametrize("rows", [0, -1, "many", 1.5])
def test_impossible_sizes_are_named(rows: object) -> None:
    with pytest.raises(BadInput, match="rows"):
        hospital(rows)  # type: ignore[arg-type]

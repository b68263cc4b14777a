"""Iterated recoding as ARX publishes it: rows that an earlier iteration left over."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.attacks.beliefs import NotApplicable
from closeknit.attacks.local_recoding import local_recoding
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.row_sorting import groups

SCHEMA = ck.Schema(quasi={"zip": ck.prefix()}, sensitive={"ill": ck.flat()})
MODELS = [ck.KAnonymity(2), ck.LDiversity("ill", 2)]


def test_a_group_that_was_left_over_has_one_value() -> None:
    """Zip 470 has two rows and was not published, so both have one value: flu, which alone occurs twice."""
    table = Columns.of({"zip": ["470"] * 2 + ["471"] * 1 + ["480"] * 2, "ill": ["flu", "flu", "gout", "cold", "ulcer"]})
    found = local_recoding(table, Columns.of({"zip": ["47*"] * 3 + ["480"] * 2}), SCHEMA, MODELS)
    assert (found.number, found.details["one_value_left"], found.details["iterations"]) == (1.0, 3, 2)
    assert found.attack == "local_recoding" and "suppressed rows included" in found.knows


def recode(zips: list[str], ills: list[str], levels: tuple[int, ...]) -> tuple[Columns, list[bool]]:
    """Publish groups of two rows or more with two diseases or more, at one level after the other."""
    written, left = ["*"] * len(zips), set(range(len(zips)))
    for level in levels:
        cells = {i: zips[i][: 3 - level] + "*" * level if level < 3 else "*" for i in left}
        for cell in set(cells.values()):
            group = [i for i in left if cells[i] == cell]
            if len({ills[i] for i in group}) >= 2:
                left -= set(group)
                for i in group:
                    written[i] = cell
    return Columns.of({"zip": written}), [i in left for i in range(len(zips))]


def test_the_truth_is_never_excluded() -> None:
    tried = proved = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        zips = rng.choice(["470", "471", "472", "480", "481", "590"], 14).tolist()
        ills = rng.choice(["flu", "gout", "cold", "ulcer"], 14, p=[0.6, 0.2, 0.1, 0.1]).tolist()
        written, suppressed = recode(zips, ills, (0, 1, 2))
        if all(suppressed):
            continue
        table = Columns.of({"zip": zips, "ill": ills})
        found = local_recoding(table, written, SCHEMA, MODELS, suppressed=suppressed)
        assert "contradicted" not in found.details
        tried += found.number is not None
        proved += found.risk > 0
    assert tried > 5 and proved > 0


def test_releases_of_other_algorithms_and_bad_input_are_refused() -> None:
    cells: dict[str, Any] = {"zip": ["470"] * 2 + ["480"] * 2, "ill": ["flu", "gout"] * 2}
    table = Columns.of(cells)
    with pytest.raises(NotApplicable, match="no order of the vectors"):  # 470 would have been published as it is
        local_recoding(table, Columns.of({"zip": ["47*"] * 2 + ["480"] * 2}), SCHEMA, MODELS)
    with pytest.raises(BadInput, match="'59\\*' is no level of the row's value"):
        local_recoding(table, Columns.of({"zip": ["470"] * 2 + ["59*"] * 2}), SCHEMA, MODELS)
    with pytest.raises(BadInput, match="3 written rows do not match 4"):
        local_recoding(table, Columns.of({"zip": ["470"] * 3}), SCHEMA, MODELS)
    with pytest.raises(NotApplicable, match="no guarantee mentions"):
        local_recoding(table, Columns.of({"zip": ["470"] * 2 + ["480"] * 2}), SCHEMA, MODELS[:1])
    with pytest.raises(BadInput, match="solves=0"):
        local_recoding(table, table, SCHEMA, MODELS, solves=0)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "model", "iterations"),
    [("adult_k10_t0.2", ck.TCloseness("occupation", 0.2), 45), ("adult_k10_beta1.5", ck.BetaLikeness("occupation", 1.5), 41)],
)
def test_the_iterations_of_arx_are_found_and_the_truth_is_possible(
    data_folder: Path, name: str, model: Any, iterations: int
) -> None:
    """ARX's own releases of Adult: the published rows of every iteration are exactly those whose groups hold."""
    with gzip.open(data_folder / "arx" / f"{name}.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    names = ["sex", "age", "race", "marital-status", "education", "workclass"]
    kinds = {
        each: ck.Hierarchy.read_csv(data_folder / "adult" / "hierarchies" / f"adult_hierarchy_{each}.csv")
        for each in [*names, "occupation"]
    }
    with gzip.open(data_folder / "adult" / "adult.csv.gz", "rt") as file:
        people = [row for row in csv.DictReader(file) if "?" not in row.values()][: len(rows)]
    table = Columns.of({each: [row[each] for row in people] for each in kinds})
    written = Columns.of({each: [row[each] for row in rows] for each in names})
    schema = ck.Schema(quasi={each: kinds[each] for each in names}, sensitive={"occupation": kinds["occupation"]})
    suppressed = [row["__withheld"] == "1" for row in rows]
    found = local_recoding(table, written, schema, [ck.KAnonymity(10), model], suppressed=suppressed, solves=20)
    assert found.details["iterations"] == iterations and "contradicted" not in found.details
    assert found.details["classes"] == groups([column.coded for column in written.values()], len(rows))[1] - 1

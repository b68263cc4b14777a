"""`ck.risk` on tables, releases and files, before and after; what it refuses; the command."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import closeknit as ck
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.io.files import write_csv
from closeknit.risks.risk import ATTESTED

SCHEMA = ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat()}, sensitive={"ill": ck.flat()})
TABLE = {"age": [30, 31, 32, 40, 41, 42], "sex": list("ffmmff"), "ill": list("abcabc"), "weight": [5, 6, 7, 8, 9, 10]}
PEOPLE = {"age": [*range(30, 43), *range(30, 43)], "sex": ["f"] * 13 + ["m"] * 13}


@pytest.fixture(scope="module")
def release() -> ck.Release:
    return ck.anonymize(Columns.of({name: TABLE[name] for name in ("age", "sex", "ill")}), SCHEMA, [ck.KAnonymity(3)])


@pytest.fixture(scope="module")
def folder(release: ck.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, its population, a recipe, and a release in out/."""
    place = tmp_path_factory.mktemp("risk")
    release.save(place / "out", report=False)
    write_csv(Columns.of(TABLE), place / "table.csv")
    write_csv(Columns.of(PEOPLE), place / "people.csv")
    recipe = (
        "schema: {quasi: {age: numeric, sex: flat}, sensitive: {ill: flat}, drop: [weight]}\nmodels: [{k_anonymity: {k: 3}}]\n"
    )
    (place / "recipe.yaml").write_text(recipe, encoding="utf-8")
    return place


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["risk", *map(str, arguments)])


def test_a_frame_and_a_file_are_the_same_table(folder: Path) -> None:
    found = [ck.risk(source, SCHEMA) for source in (pd.DataFrame(TABLE, index=[9] * 6), folder / "table.csv")]
    assert [each.record for each in found] == [found[0].record] * 2
    assert found[0].prosecutor.highest == 1 and found[0].sample_uniques == 6
    assert found[0].population_uniques == {"zayatz": None, "pitman": None, "snb": None}
    assert "sampling fraction" in found[0].reasons["zayatz"] and found[0].population_uniques_rule is None


def test_a_release_its_file_and_its_folder_have_the_classes_of_the_written_cells(release: ck.Release, folder: Path) -> None:
    sizes = pd.DataFrame(release.frame.to_pydict()).groupby(["age", "sex"]).size()
    for source in (release, folder / "out", folder / "out" / "release.csv"):
        for schema in (None, SCHEMA):
            found = ck.risk(source, schema)
            assert found.prosecutor.highest == 1 / sizes.min() and found.prosecutor.average == len(sizes) / 6


def test_a_release_covers_people_by_its_ranges(release: ck.Release) -> None:
    found = ck.risk(release, None, pd.DataFrame(PEOPLE))
    cells = pd.DataFrame(release.frame.to_pydict())
    covered = []
    for age, sex in zip(cells["age"], cells["sex"], strict=True):
        lo, hi = (int(end) for end in age.strip("[]").split(",")) if "[" in age else (int(age), int(age))
        covered.append(sum(lo <= a <= hi and sex in ("*", s) for a, s in zip(PEOPLE["age"], PEOPLE["sex"], strict=True)))
    assert found.journalist.highest == 1 / min(covered)
    assert found.marketer.average == pytest.approx(np.mean([1 / people for people in covered]))


def test_suppressed_rows_are_in_no_number_and_both_denominators_are_shown() -> None:
    table = Columns.of({"job": ["cook"] * 4 + ["nurse"] * 4 + ["judge"]})
    method = ck.Incognito()
    release = ck.anonymize(table, ck.Schema(quasi={"job": ck.flat()}), [ck.KAnonymity(4)], method, suppress=0.2)
    found = ck.risk(release)
    assert found.record.suppressed == 1 and found.record.people == 8
    assert any("all 9 multiply by 0.8889" in line for line in found.record.legend())


def test_before_and_after(release: ck.Release) -> None:
    before, after = ck.risk(pd.DataFrame(TABLE), SCHEMA), ck.risk(release)
    text = str(before.compare_with(after))
    assert "prosecutor  highest           1        0.3333" in text and "unique rows" in text


def test_persons_count_once_and_are_attested() -> None:
    table = Columns.of({"age": [30, 30, 30, 40], "who": ["a", "a", "b", "c"]})
    found = ck.risk(table, ck.Schema(quasi={"age": ck.numeric()}, person="who"))
    assert found.prosecutor.highest == 1 and found.prosecutor.average == 2 / 3 and found.record.people == 3
    assert ATTESTED in found.notes
    released = ck.anonymize(
        Columns.of({"age": [30, 30, 30, 40], "who": ["a", "a", "b", "c"]}),
        ck.Schema(quasi={"age": ck.numeric()}, person="who"),
        [ck.KAnonymity(2)],
    )
    inside = ck.risk(released)
    assert inside.record.counted == "persons" and inside.prosecutor.highest == 1 / 3 and ATTESTED in inside.notes
    outside = ck.risk(released.frame, certificate=released.certificate)
    assert (
        outside.record.counted == "rows"
        and outside.prosecutor.highest == 0.25
        and any("lower bound" in note for note in outside.notes)
    )


def test_a_schema_without_quasi_identifiers() -> None:
    with pytest.raises(ck.BadInput, match="no column is quasi"):
        ck.risk(pd.DataFrame(TABLE), ck.Schema(plain=["ill"]))


def test_the_size_of_a_population_is_enough_for_estimates() -> None:
    by_size, by_share = ck.risk(pd.DataFrame(TABLE), SCHEMA, 60), ck.risk(pd.DataFrame(TABLE), SCHEMA, sampling_fraction="0.1")
    assert by_size.record == by_share.record and by_size.population_uniques["zayatz"] == pytest.approx(60)
    assert by_size.population_uniques_rule == "zayatz" and "pitman" in by_size.reasons


def test_an_empty_table_has_no_risk() -> None:
    found = ck.risk(Columns.of({"age": [], "sex": []}), SCHEMA, sampling_fraction=0.5, weights=[])
    assert (found.prosecutor.highest, found.prosecutor.average, found.prosecutor.share_above(0.2)) == (0, 0, 0)
    assert found.population_uniques["snb"] == 0 and found.expected_reidentifications == 0 and found.global_risk == 0


def test_equal_numbers_are_one_value_and_long_ones_are_not_rounded() -> None:
    schema = ck.Schema(quasi={"n": ck.numeric()})
    assert ck.risk(Columns.of({"n": ["1", "1.0", "01"]}), schema).prosecutor.highest == 1 / 3
    long = ["9007199254740993", "9007199254740992"]
    assert ck.risk(Columns.of({"n": long}), schema).sample_uniques == 2
    assert ck.risk(Columns.of({"n": ["1", "?", None]}), ck.Schema(quasi={"n": ck.numeric()}, missing=["?"])).sample_uniques == 1


def test_a_summary_fits_a_screen_and_shows_no_row(release: ck.Release) -> None:
    found = ck.risk(release, sampling_fraction=0.5)
    assert len(repr(found).splitlines()) <= 8 and max(map(len, repr(found).splitlines())) <= 90
    assert "<table>" in found._repr_html_() and "prosecutor" in repr(found.prosecutor)
    assert json.loads(found.record.model_dump_json())["attackers"][1]["status"] == "estimate"


BAD = {
    "population too small": ({"population": pd.DataFrame({"age": [30], "sex": ["f"]})}, "1 people and the table 6"),
    "population of others": ({"population": pd.DataFrame({"age": [30] * 9, "sex": ["f"] * 9})}, "age 31, sex f: it has 1"),
    "population without columns": ({"population": pd.DataFrame({"x": [1]})}, "none of the quasi-identifiers"),
    "number below the rows": ({"population": 5}, "smaller than the 6 rows"),
    "infinite number": ({"population": math.inf}, "not a finite number"),
    "fraction 0": ({"sampling_fraction": 0}, "above 0 and of at most 1"),
    "fraction above 1": ({"sampling_fraction": 1.01}, "above 0 and of at most 1"),
    "zero weight": ({"weights": [1, 2, 0, 4, 5, 6]}, "row 3: the weight '0' is not positive"),
    "negative weight": ({"weights": [1, 2, 3, 4, 5, -6]}, "row 6: the weight '-6' is not positive"),
    "missing weight": ({"weights": [1, 2, 3, None, 5, 6]}, "row 4: the weight is missing"),
    "no number": ({"weights": ["1", "2", "3", "x", "5", "6"]}, "row 4: the weight 'x' is not a finite number"),
    "too few weights": ({"weights": [1]}, "1 values for 6 rows"),
    "no such column": ({"weights": "wieght"}, "did you mean 'weight'"),
    "missing household": ({"household": [1, 2, 3, 4, 5, None]}, "row 6: the household is missing"),
    "unknown rule": ({"missing": "any"}, "missing='any' is unknown"),
}


@pytest.mark.parametrize(("options", "sentence"), BAD.values(), ids=BAD)
def test_bad_input(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ck.BadInput) as refused:
        ck.risk(pd.DataFrame(TABLE), SCHEMA, **options)
    assert sentence in str(refused.value)


def test_a_population_that_lists_a_person_twice() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, person="who")
    with pytest.raises(ck.BadInput, match="listed twice"):
        ck.risk(Columns.of({"age": [30], "who": ["a"]}), schema, Columns.of({"age": [30, 30], "who": ["a", "a"]}))


def test_a_form_with_exact_cells(release: ck.Release) -> None:
    columns = Columns.of({name: TABLE[name] for name in ("age", "sex", "ill")})
    apart = ck.anonymize(columns, SCHEMA, [ck.LDiversity("ill", 3)], form="bucketized")
    assert ck.risk(apart).prosecutor.highest == 1 / 3 and "bucket" in ck.risk(apart).notes[0]
    with pytest.raises(ck.BadInput, match="published exactly"):
        ck.risk(apart, None, pd.DataFrame(PEOPLE))


def test_the_command_prints_thresholds_spread_and_the_pitfall(folder: Path) -> None:
    found = run(folder / "table.csv", "--recipe", folder / "recipe.yaml", "--sampling-fraction", "0.1", "--suda")
    assert found.exit_code == 0
    for words in (
        "prosecutor  1",
        "above 0.09",
        "classes of 12, not of 11",
        "orders of magnitude",
        "Zayatz: 60",
        "SUDA: 6 of 6",
    ):
        assert words in found.output
    assert "private, do not share" in found.output


def test_the_command_compares_and_writes_json(folder: Path) -> None:
    found = run(
        folder / "table.csv",
        "--recipe",
        folder / "recipe.yaml",
        "--release",
        folder / "out",
        "--population",
        folder / "people.csv",
    )
    assert found.exit_code == 0 and "Before and after" in found.output
    options = ("--weights", "weight", "--household", "sex", "--suda", "--json")
    record = json.loads(run(folder / "table.csv", "--recipe", folder / "recipe.yaml", *options).output)
    assert record["attackers"][0]["highest"] == 1 and record["basis"] == "from sample weights"
    assert record["household_expected_reidentifications"] > 0 and record["suda"]["rows_with_score"] == 6
    public = run(folder / "out")
    assert public.exit_code == 0 and "private" not in public.output and "marketer wants" in public.output
    assert public.output.count("(an upper bound: no population") == 2


@pytest.mark.parametrize(
    "options", [("--sampling-fraction", "0"), ("--weights", "ill"), ("--population", "5"), ("--household", "x")]
)
def test_the_command_refuses_with_status_2(folder: Path, options: tuple[str, ...]) -> None:
    before = sorted(folder.rglob("*"))
    found = run(folder / "table.csv", "--recipe", folder / "recipe.yaml", *options)
    assert found.exit_code == 2 and len(found.output.strip().splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


def test_thresholds_are_the_numbers_that_were_written() -> None:
    found = ck.risk(Columns.of({"age": [30] * 11, "sex": ["f"] * 11}), SCHEMA).prosecutor
    assert found.share_above(0.09) == 1 and found.share_above("1/11") == 0 and found.share_above(Fraction(1, 11)) == 0
    with pytest.raises(ck.BadInput):
        found.share_above(-0.1)

"""HIPAA Safe Harbor: each category by name and by value, what is permitted, goldens, and the command."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.suggestion import suggest
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.core.zip_areas import SMALL_2000, read_small_areas
from closeknit.metrics.safe_harbor import CATEGORIES, NAMES, find_identifiers, split_name


def found(name: str, cells: list[Any], **options: Any) -> dict[str, str]:
    return {one.category: one.by for one in find_identifiers(Columns.of({name: cells}), **options)}


@pytest.mark.parametrize(
    ("cells", "category"),
    [
        (["02139", "94110"], "B"),
        (["02139-4307"], "B"),
        (["42.3601, -71.0942"], "B"),
        (["2024-03-17", "x"], "C"),
        (["17.03.2024"], "C"),
        (["2024-03"], "C"),
        (["2024-Q1"], "C"),
        (["20240317"], "C"),
        (["2024-03-17T10:20"], "C"),
        (["+44 20 7946 0958"], "D"),
        (["(617) 555-0123", "x"], "D"),
        (["617-555-0123"], "D"),
        (["ann@example.org", "x"], "F"),
        (["219-09-9999", "x"], "G"),
        (["GB82WEST12345698765432", "x"], "J"),
        (["4111111111111111"], "J"),
        (["1M8GDM9AXKP042788", "x"], "L"),
        (["490154203237518"], "M"),
        (["00:1A:2B:3C:4D:5E"], "M"),
        (["https://example.org/ann", "x"], "N"),
        (["www.example.org"], "N"),
        (["host.example.org"], "N"),
        (["192.168.0.17", "x"], "O"),
        (["2001:db8::8a2e:370:7334"], "O"),
        (["scans/17.dcm"], "Q"),
        (["123e4567-e89b-12d3-a456-426614174000"], "R"),
        (["d41d8cd98f00b204e9800998ecf8427e"], "R"),
        ([f"K{i:05}" for i in range(30)], "H-K"),
        ([i * 0.5 for i in range(30)], "R"),
        (["came in the night with a high fever and left the next day"], "text"),
    ],
)
def test_values_alone_are_found(cells: list[Any], category: str) -> None:
    assert found("x", cells) == {category: "value"}


@pytest.mark.parametrize(
    "cells",
    [
        ["000-12-3456", "666-12-3456", "912-12-3456", "123-00-4567"],  # no social security numbers
        ["GB82WEST12345698765433"],  # wrong check digits
        ["1M8GDM9A1KP042788"],
        ["4111111111111112", "1234567890123456"],
        [10_000, 20_000, 99_999],  # numbers, not ZIP codes
        [0, 17, 89, 120],  # no number is an age because it is small
        ["2024", "1999"],
        ["f", "m"],
        ["1.2.3", "4.5.6"],
        ["J45.0", "E11.9"],
        ["10:20:30", "1:2"],
        [f"{i}" for i in range(5)],  # few rows
    ],
)
def test_other_values_are_not(cells: list[Any]) -> None:
    assert found("x", cells) == {}


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("name", "A"),
        ("LastName", "A"),
        ("family", "A"),
        ("employer", "A"),
        ("home-city", "B"),
        ("county", "B"),
        ("dob", "C"),
        ("admission", "C"),
        ("Age", "C"),
        ("mobile", "D"),
        ("fax_no", "E"),
        ("e-mail", "F"),
        ("social security", "G"),
        ("MRN", "H"),
        ("beneficiary", "I"),
        ("account", "J"),
        ("driver_license", "K"),
        ("plate", "L"),
        ("deviceSerial", "M"),
        ("url", "N"),
        ("ip", "O"),
        ("voice", "P"),
        ("photo", "Q"),
        ("patient_id", "R"),
    ],
)
def test_names_are_found_as_whole_words(name: str, category: str) -> None:
    assert found(name, ["qq", "rr"])[category] == "name"
    assert category not in found("_".join(f"{word}xyz" for word in split_name(name)), ["qq", "rr"])
    assert found(name, ["*", "*"]) == {}, "a column that shows nothing is no finding"


def test_words_inside_words_and_near_words_are_not_names() -> None:
    for name in ("package", "usage", "area", "number", "states", "first_visit", "zipper", "idle", "keyboard", "marriage"):
        assert found(name, ["qq", "rr"]) == {}, name
    assert set(NAMES) <= set(CATEGORIES)


def test_what_the_rule_permits_is_no_finding() -> None:
    assert found("age", [*range(90), "90+"] * 2) == {}
    assert found("age", ["[20, 34]", "[60, 89]", "*"]) == {}
    assert found("age", [89, 90]) == {"C": "value"} and found("age", ["[85, 95]"]) == {"C": "value"}
    assert found("admission", ["2024", "2023"]) == {} and found("admission", ["2020s", "[2020, 2024]"]) == {}
    assert found("zip", ["021**", "000**", "0****", "021", "*"]) == {}
    assert found("zip", ["0213*"]) == {"B": "name"}


def test_years_of_birth_depend_on_the_reference_date() -> None:
    day = date(2024, 6, 30)
    assert found("birth_year", ["1930"], reference=day) == {"C": "value"}
    assert found("birth_year", ["1934"], reference=day) == {"C": "value"}, "who turns 90 this year may be 90"
    assert found("birth_year", [1935, 1990], reference=day) == {}
    assert found("birth_year", [1990]) == {"C": "value"}, "without a reference date nothing is cleared"
    assert found("admission", ["1930"], reference=day) == {}, "a year of admission implies no age"


def test_small_areas(tmp_path: Path) -> None:
    pops = tmp_path / "pops.csv"
    pops.write_text("zip3,population\n021,1000000\n036,20000\n037,20001\n", encoding="utf-8")
    small = read_small_areas(pops)
    assert found("zip", ["021**", "037**", "000**"], small=small) == {}
    assert found("zip", ["036**"], small=small) == {"B": "name"}, "20,000 people are too few"
    assert found("zip", ["999**"], small=small) == {"B": "name"}, "an area that is not listed"
    assert read_small_areas("census2000") == SMALL_2000 and len(SMALL_2000) == 17
    for text, says in (
        ("021,many\n", "is not an area"),
        ("zip3,people\n21,5\n", "row 2: '21,5'"),
        ("021,5\n021,6\n", "occurs twice"),
        ("", "has no area"),
    ):
        pops.write_text(text, encoding="utf-8")
        with pytest.raises(ck.BadInput, match=says):
            read_small_areas(pops)
    with pytest.raises(ck.BadInput, match=r"nowhere\.csv: cannot be read"):
        read_small_areas(tmp_path / "nowhere.csv")


def test_suggest_uses_the_detectors() -> None:
    cells = {
        "contact": [f"p{i}@example.org" for i in range(30)],
        "line": [f"617-555-{i:04}" for i in range(30)],
        "x": ["GB82WEST12345698765432", "DE89370400440532013000"] * 15,
        "note": ["a@b.org", *("fever", "cough") * 14, "cough"],
    }
    guesses = suggest(Columns.of(cells)).reasons
    assert [guesses[name].role for name in cells] == ["identifier", "identifier", "identifier", "quasi"]
    assert guesses["contact"].reason == "values look like e-mail addresses"
    assert not guesses["x"].sure, "an identifier that repeats needs a decision"


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("name,age,zip\nAnn,91,02139\nBob,40,02142\n", encoding="utf-8")
    shown = run("audit", "t.csv", "--safe-harbor")
    assert shown.exit_code == 1 and "3 findings" in shown.stdout and "Ann" not in shown.stdout
    assert "unique   2 of 2 rows (100.0%) on age, zip" in shown.stdout and "20,000 people was not checked" in shown.stdout
    assert "Ann" in run("audit", "t.csv", "--safe-harbor", "--examples").stdout
    record = json.loads(run("audit", "t.csv", "--safe-harbor", "--json").stdout)
    assert [one["category"] for one in record["findings"]] == ["A", "C", "B"] and "Ann" not in json.dumps(record)
    Path("clean.csv").write_text("age,zip,dx\n90+,021**,flu\n40,021**,flu\n", encoding="utf-8")
    clean = run("audit", "clean.csv", "--safe-harbor", "--zip3", "census2000")
    assert clean.exit_code == 0 and "a person must still judge" in clean.stdout and "asks for current data" in clean.stdout
    for result in (shown, clean):
        assert "is safe harbor" not in result.stdout.lower()
    for words, says in (
        (("--safe-harbor", "--reference", "2024"), "reference='2024' is not a day"),
        (("--safe-harbor", "--zip3", "nowhere.csv"), "cannot be read"),
        (("--reference", "2024-12-31"), "belong to --safe-harbor"),
    ):
        bad = run("audit", "t.csv", *words)
        assert bad.exit_code == 2 and says in bad.stderr

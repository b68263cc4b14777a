"""`closeknit inspect` on files as people have them: what is detected stands in the recipe, which works where it is written."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.io.files import read

ILL = ("Gicht", "Grippe", "Grippe")
ROWS = "name;zip;born;pay;illness\n" + "".join(
    f"Jörg {i};0{4100 + i % 7};{1 + i % 28:02}.{1 + i % 12:02}.19{50 + i % 9};{i}.{i % 10}00,50;{ILL[i % 3]}\n"
    for i in range(1, 61)
)


def closeknit(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(result: Any, *says: str) -> None:
    assert result.exit_code == 2 and result.stdout == "", result.output
    assert result.stderr.startswith("closeknit: ") and result.stderr.count("\n") == 1
    for part in says:
        assert part in result.stderr, result.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("data", "recipes"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "patients.csv").write_bytes(ROWS.encode("cp1252"))
    return tmp_path


def test_the_recipe_says_how_the_file_is_written_and_works_from_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guessed = closeknit("inspect", "data/patients.csv", "-o", "recipes/r.yaml")
    assert guessed.exit_code == 0 and guessed.stdout == "", guessed.output
    assert "delimiter ';', encoding cp1252 (not UTF-8" in guessed.stderr and "anonymize recipes/r.yaml" in guessed.stderr
    text = (folder / "recipes" / "r.yaml").read_text(encoding="utf-8")
    assert "\n#     closeknit anonymize recipes/r.yaml -o out/\n" in text
    forms = yaml.safe_load(text)
    written = {"delimiter": ";", "encoding": "cp1252", "decimal": ",", "thousands": "."}
    assert forms["data"] == {"path": "../data/patients.csv", **written}
    assert forms["schema"]["quasi"]["born"] == {"date": {"format": "%d.%m.%Y"}}
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    made = closeknit("anonymize", folder / "recipes" / "r.yaml", "-o", folder / "out")
    assert made.exit_code == 0, made.output
    assert closeknit("audit", folder / "out" / "release.csv").exit_code == 0
    assert max(float(str(cell)) for cell in read(folder / "out" / "release.csv")["pay"].values) == 60_000.5


def test_a_place_that_cannot_have_a_recipe_is_refused_before_the_table_is_read(folder: Path) -> None:
    refused(closeknit("inspect", "nowhere.csv", "-o", "no/r.yaml"), "no/r.yaml: the folder no does not exist; create it first")
    refused(
        closeknit("inspect", "nowhere.csv", "-o", "data", "--force"), "data: this is a folder, not a file; name a file in it"
    )
    (folder / "t.csv").write_text("age,ill\n30,flu\n")
    refused(closeknit("anonymize", "t.csv", "-o", "out"), "not a recipe", "'closeknit inspect' writes one")


def test_an_existing_recipe_is_not_overwritten(folder: Path) -> None:
    (folder / "r.yaml").write_text("mine")
    refused(closeknit("inspect", "data/patients.csv", "-o", "r.yaml"), "r.yaml", "exists already", "--force")
    assert (folder / "r.yaml").read_text() == "mine"
    assert closeknit("inspect", "data/patients.csv", "-o", "r.yaml", "--force").exit_code == 0


@pytest.mark.skipif(not os.path.exists("/proc/self/fd/1"), reason="the system does not name the file of standard output")
def test_standard_output_that_is_a_file_gets_a_path_from_there(folder: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m closeknit inspect data/patients.csv"
    done = subprocess.run(f"{command} > recipes/r.yaml", shell=True, check=True, capture_output=True, text=True)
    assert "anonymize recipes/r.yaml -o" in done.stderr and "anonymize recipes/r.yaml -o" in Path("recipes/r.yaml").read_text()
    assert Recipe.read(folder / "recipes" / "r.yaml").data == Path("recipes/../data/patients.csv").absolute()


def test_a_name_that_a_shell_would_split_is_quoted(folder: Path) -> None:
    assert closeknit("inspect", "data/patients.csv", "-o", "my\nown r.yaml").exit_code == 0
    text = (folder / "my\nown r.yaml").read_text(encoding="utf-8")
    assert "#     closeknit anonymize 'my?own r.yaml' -o out/" in text and yaml.safe_load(text)["method"] == "knit"


def test_a_recipe_for_a_pipe_names_its_data_for_everywhere(folder: Path) -> None:
    guessed = closeknit("inspect", "data/patients.csv")
    assert yaml.safe_load(guessed.stdout)["data"]["path"] == str((folder / "data" / "patients.csv").resolve())


def test_options_win_over_what_is_detected(folder: Path) -> None:
    text = "Größe;Diagnose\n1,80;Gicht\n1,75;Grippe\n1,62;Gicht\n"
    (folder / "t.csv").write_bytes(text.encode("latin-1"))
    refused(closeknit("inspect", "t.csv", "--encoding", "utf-8"), "t.csv", "0xf6")
    refused(closeknit("inspect", "t.csv", "--encoding", "klingon"), "'klingon'")
    guessed = closeknit("inspect", "t.csv", "--delimiter", ";", "--decimal", ",", "--encoding", "latin-1", "-o", "r.yaml")
    assert guessed.exit_code == 0, guessed.output
    recipe = Recipe.read(folder / "r.yaml")
    assert recipe.csv is not None and recipe.csv.encoding == "latin-1"
    assert read(recipe.data, recipe.csv)["Größe"].cells() == ["1.80", "1.75", "1.62"]
    assert yaml.safe_load(closeknit("inspect", "t.csv", "--delimiter", "|").stdout)["data"]["delimiter"] == "|"


def test_a_point_with_two_readings_is_refused_until_it_is_settled(folder: Path) -> None:
    (folder / "t.csv").write_text("age;pay\n30;53.281\n31;61.004\n")
    refused(closeknit("inspect", "t.csv"), "'pay'", "row 1", "53.281 with a decimal point", "53281", "decimal sign")
    for sign, pay in ((".", ["53.281", "61.004"]), (",", ["53281", "61004"])):
        assert closeknit("inspect", "t.csv", "--decimal", sign, "-o", "r.yaml", "--force").exit_code == 0
        recipe = Recipe.read(folder / "r.yaml")
        assert read(recipe.data, recipe.csv)["pay"].cells() == pay

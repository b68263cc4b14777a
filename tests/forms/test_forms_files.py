"""Releases in which rows do not line up, as files and frames, and by the command line."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.checks.naive_cells import rows_of
from closeknit.checks.views import view
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.io.files import read, sha256_of

SEED = 2**99 + 1


def hospital(rows: int = 120) -> tuple[pd.DataFrame, ck.Schema]:
    """People with gaps, letters of other alphabets, and one column that is a secret."""
    rng = np.random.default_rng(rows)
    people = pd.DataFrame(
        {
            "age": pd.array(np.where(rng.random(rows) < 0.1, np.nan, rng.integers(20, 60, rows)), dtype="Int64"),
            "town": rng.choice(["Ærø", "大阪", 'Łódź, "old"', None], rows),
            "sex": rng.choice(["f", "m"], rows),
            "disease": rng.choice(["flu", "gout", "ulcer", "Ménière", None], rows),
        }
    )
    return people, ck.Schema(quasi={"age": ck.numeric(), "town": ck.flat(), "sex": ck.flat()}, sensitive={"disease": ck.flat()})


SLICED = {"sliced": {"columns": [["age", "sex"], ["town", "disease"]]}}
PARTS = {
    "bucketized": ["quasi", "sensitive"],
    "sliced": ["slice_1", "slice_2"],
    "multiset": [f"slice_{i}" for i in (1, 2, 3, 4)],
}


def saved(folder: Path, form: Any, format: str = "csv") -> ck.Release:
    people, schema = hospital()
    release = ck.anonymize(people, schema, [ck.LDiversity("disease", 2)], ck.Mondrian(), form=form, seed=SEED)
    release.save(folder, format, report=False)
    return release


@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("form", ["bucketized", SLICED, "multiset"], ids=["bucketized", "sliced", "multiset"])
def test_files_of_a_saved_release(tmp_path: Path, form: Any, format: str) -> None:
    out = tmp_path / "out"
    release = saved(out, form, format)
    parts = PARTS[next(iter(release.certificate.form))]
    names = [f"{part}.{format}" for part in ("release", *parts)]
    assert {file.name for file in out.iterdir()} == {*names, "certificate.json", "README.txt"}
    listed = json.loads((out / "certificate.json").read_text(encoding="utf-8"))["files"]
    assert listed == [{"name": name, "rows": 120, "sha256": sha256_of(out / name)} for name in names]
    assert "do not line up" in (out / "README.txt").read_text(encoding="utf-8")
    whole = read(out / f"release.{format}")
    shown = view(whole, hospital()[1], release.certificate.form)
    for part, group in zip(parts, shown.groups, strict=True):
        columns = read(out / f"{part}.{format}")
        assert list(columns) == ["bucket", *group] and rows_of(columns, list(columns)) == rows_of(whole, ["bucket", *group])
    found = ck.audit(out / f"release.{format}", certificate=out / "certificate.json")
    assert found.ok, str(found)


def test_an_audit_finds_a_part_that_says_something_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    saved(out, "bucketized")
    part = out / "sensitive.csv"
    honest = part.read_text(encoding="utf-8")
    part.write_text(honest.replace("gout", "flu", 1), encoding="utf-8")
    found = ck.audit(out / "release.csv", certificate=out / "certificate.json")
    assert not found.ok and any("sensitive.csv differs from" in finding for finding in found.findings)
    part.unlink()
    assert ck.audit(out / "release.csv", certificate=out / "certificate.json").ok, "whoever has only the table can check it"
    certificate = json.loads((out / "certificate.json").read_text(encoding="utf-8"))
    certificate["files"] = certificate["files"][:1]
    (out / "certificate.json").write_text(json.dumps(certificate), encoding="utf-8")
    part.write_text(honest, encoding="utf-8")
    found = ck.audit(out / "release.csv", certificate=out / "certificate.json")
    assert any("does not name it" in finding for finding in found.findings)


@pytest.mark.parametrize("column", ["age", "disease", "bucket"])
def test_an_audit_finds_cells_that_were_moved(tmp_path: Path, column: str) -> None:
    people, schema = hospital()
    release = ck.anonymize(people, schema, [ck.LDiversity("disease", 2)], ck.Mondrian(), form="bucketized", seed=SEED)
    rolled = Columns({**release.columns.columns, column: release.columns[column].take(np.roll(np.arange(120), 1))}, 120)
    assert not ck.audit(rolled, certificate=release.certificate).ok


def test_force_replaces_the_files_of_another_form(tmp_path: Path) -> None:
    out = tmp_path / "out"
    saved(out, "multiset")
    people, schema = hospital()
    again = ck.anonymize(people, schema, [ck.LDiversity("disease", 2)], ck.Mondrian(), form="bucketized")
    with pytest.raises(ck.BadInput, match="exists already"):
        again.save(out, report=False)
    again.save(out, force=True)
    assert {file.name for file in out.iterdir()} == {
        "release.csv",
        "quasi.csv",
        "sensitive.csv",
        "certificate.json",
        "README.txt",
        "report.html",
        "report.json",
    }
    (out / "slices.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(ck.BadInput, match=r"slices\.csv"):
        again.save(out, force=True)


def test_a_file_gives_the_release_of_its_frame(tmp_path: Path) -> None:
    people, schema = hospital()
    people.to_csv(tmp_path / "people.csv", index=False)
    people.to_parquet(tmp_path / "people.parquet", index=False)
    hashes = set()
    for data in (people, pl.from_pandas(people), tmp_path / "people.csv", tmp_path / "people.parquet"):
        release = ck.anonymize(data, schema, [ck.LDiversity("disease", 2)], ck.Mondrian(), form=SLICED, seed=SEED)
        hashes.add(release.certificate.content_sha256)
        if not isinstance(data, Path):
            assert isinstance(release.frame, type(data)) and next(iter(release.frame.columns)) == "bucket"
            assert [int(number) for number in release.frame["bucket"]] == release.columns["bucket"].cells()
            assert ck.audit(release.frame, certificate=release.certificate).ok
    assert len(hashes) == 1


def test_a_parquet_table_gives_parquet_parts(tmp_path: Path) -> None:
    people, schema = hospital()
    people.to_parquet(tmp_path / "people.parquet", index=False)
    release = ck.anonymize(
        tmp_path / "people.parquet", schema, [ck.LDiversity("disease", 2)], ck.Mondrian(), form=SLICED, seed=SEED
    )
    release.save(tmp_path / "out", report=False)
    assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".parquet", ".json", ".txt"}
    assert ck.audit(tmp_path / "out" / "release.parquet", certificate=tmp_path / "out" / "certificate.json").ok
    (tmp_path / "out" / "slice_2.parquet").write_bytes((tmp_path / "out" / "slice_1.parquet").read_bytes())
    found = ck.audit(tmp_path / "out" / "release.parquet", certificate=tmp_path / "out" / "certificate.json")
    assert any("slice_2.parquet differs from" in finding for finding in found.findings)


def test_a_copy_of_a_release_saves_the_same_files(tmp_path: Path) -> None:
    release = saved(tmp_path / "out", SLICED)
    pickle.loads(pickle.dumps(release)).save(tmp_path / "copy", report=False)
    for file in (tmp_path / "out").iterdir():
        assert (tmp_path / "copy" / file.name).read_bytes() == file.read_bytes(), file.name
    assert not (tmp_path / "copy.private" / "classes.csv").exists()


# The command line ----------------------------------------------------------------------------------------------------


def closeknit(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def recipe_in(folder: Path, **changes: Any) -> Path:
    people, schema = hospital()
    people.to_csv(folder / "people.csv", index=False)
    said = {"data": "people.csv", "schema": schema.forms(), "models": [{"l_diversity": {"column": "disease", "l": 2}}]}
    file = folder / "recipe.yaml"
    file.write_text(yaml.safe_dump({**said, "method": "mondrian", **changes}, sort_keys=False), encoding="utf-8")
    return file


@pytest.mark.parametrize("form", ["bucketized", "multiset", SLICED, {"sliced": {"levels": {"age": "*"}, "number": "Nº"}}])
def test_by_the_command_line(tmp_path: Path, form: Any) -> None:
    out = tmp_path / "out"
    made = closeknit("anonymize", recipe_in(tmp_path, form=form), "-o", out)
    assert made.exit_code == 0, made.output
    checked = closeknit("audit", out / "release.csv")
    assert checked.exit_code == 0 and "recomputed" in checked.stdout, checked.output
    recipe = Recipe.read(tmp_path / "out.private" / "recipe.yaml")
    assert recipe.form == Recipe.read(tmp_path / "recipe.yaml").form
    again = closeknit("anonymize", tmp_path / "out.private" / "recipe.yaml", "-o", tmp_path / "again", "--json")
    assert json.loads(again.stdout) == json.loads((out / "certificate.json").read_text(encoding="utf-8"))
    assert closeknit("anonymize", tmp_path / "recipe.yaml", "-o", out, "--force").exit_code == 0
    by_recipe = closeknit("audit", out / "release.csv", "--recipe", tmp_path / "recipe.yaml")
    assert by_recipe.exit_code == 0, by_recipe.output


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"sliced": {"columns": [["age", "town", "sex", "disease"]]}}, "one group"),
        ({"sliced": {"columns": [["age", "disease"], ["town", "sex", "disease"]]}}, "two groups"),
        ({"sliced": {"columns": "age"}}, "not a list of groups"),
        ({"sliced": {"groups": []}}, "no parameter 'groups'"),
        ("permuted", "is sensitive and flat"),
        ("anatomized", "'anatomized' is unknown"),
    ],
)
def test_the_command_line_refuses_in_a_sentence(tmp_path: Path, form: Any, says: str) -> None:
    result = closeknit("anonymize", recipe_in(tmp_path, form=form), "-o", tmp_path / "out")
    assert result.exit_code == 2 and says in result.stderr and "Traceback" not in result.stderr, result.output
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.private").exists()


def test_a_tampered_part_is_found_by_the_command_line(tmp_path: Path) -> None:
    saved(tmp_path / "out", "bucketized")
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    part = tmp_path / "copy" / "quasi.csv"
    part.write_text(part.read_text(encoding="utf-8").replace(",f", ",m", 1), encoding="utf-8")
    result = closeknit("audit", tmp_path / "copy" / "release.csv")
    assert result.exit_code == 1 and "quasi.csv differs from" in result.output

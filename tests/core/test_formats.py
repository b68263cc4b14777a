"""Certificates, reports and recipes of every format are read, and JSON Schemas describe those of the current one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.json_schemas import FOLDER, build_json_schemas
from closeknit.api.recipe import Recipe
from closeknit.api.reporting import load_release
from closeknit.cli.commands import app
from closeknit.core.formats import FORMAT, upgrade_format
from closeknit.core.frontier import Frontier
from closeknit.core.strict_json import json_text
from closeknit.release.release_paths import read_certificate
from closeknit.report.report_records import PublicReport
from format_goldens import GOLDEN, anonymize

FORMATS = range(1, FORMAT + 1)


def content(format: int, name: str) -> Any:
    return json.loads((GOLDEN / f"format_{format}" / "out" / name).read_text("utf-8"))


@pytest.fixture(scope="module")
def release() -> ck.Release:
    return anonymize()


@pytest.mark.parametrize("format", FORMATS)
def test_a_certificate_of_every_format_is_read_and_shown(format: int, release: ck.Release) -> None:
    certificate = read_certificate(GOLDEN / f"format_{format}" / "out" / "certificate.json")
    now = release.certificate
    assert certificate.format == content(format, "certificate.json")["format"] == format
    assert certificate.guarantees == now.guarantees and certificate.joint == now.joint
    assert (certificate.classes, certificate.loss, certificate.content_sha256) == (now.classes, now.loss, now.content_sha256)
    assert str(certificate).startswith("met     k-anonymity, k = 4: measured 4\nmet     t-closeness of disease")
    assert "rows    16 published, 0 suppressed, 3 classes of 4 to 7 rows" in str(certificate)
    written = json.loads(certificate.to_json())
    assert written["format"] == FORMAT and ck.Certificate.from_json(certificate.to_json()).guarantees == now.guarantees


@pytest.mark.parametrize("format", FORMATS)
def test_a_release_of_every_format_is_audited_and_reported(format: int) -> None:
    folder = GOLDEN / f"format_{format}" / "out"
    assert ck.audit(folder).ok and ck.audit(folder).notes == ck.audit(GOLDEN / f"format_{FORMAT}" / "out").notes
    shown = CliRunner().invoke(app, ["audit", str(folder)])
    assert (
        shown.exit_code == 0
        and "recomputed     t-closeness of disease, t = 0.4, equal distance: measured 0.375" in shown.output
    )
    assert load_release(folder).report().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("format", FORMATS)
def test_a_changed_release_of_every_format_is_found(format: int, tmp_path: Path) -> None:
    folder = GOLDEN / f"format_{format}" / "out"
    for name in ("certificate.json", "release.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes().replace(b"[27, 39]", b"[28, 39]"))
    assert not ck.audit(tmp_path).ok
    text = (folder / "certificate.json").read_text("utf-8")
    key = "reached" if format == 1 else "measured"
    (tmp_path / "certificate.json").write_text(text.replace(f'"{key}": 0.375', f'"{key}": 0.25'), encoding="utf-8")
    (tmp_path / "release.csv").write_bytes((folder / "release.csv").read_bytes())
    assert "its certificate states met at 0.25" in " ".join(ck.audit(tmp_path).findings)


@pytest.mark.parametrize("format", FORMATS)
def test_a_report_of_every_format_is_read(format: int, release: ck.Release) -> None:
    text = (GOLDEN / f"format_{format}" / "out" / "report.json").read_text("utf-8")
    report, now = PublicReport.from_json(text), release.public_record()
    assert [part.guarantee for part in report.guarantees] == [part.guarantee for part in now.guarantees]
    assert (report.suppressed, report.measures.levels) == (now.suppressed, now.measures.levels)


@pytest.mark.parametrize("format", FORMATS)
def test_a_recipe_of_every_format_is_read(format: int) -> None:
    recipe = Recipe.read(GOLDEN / f"format_{format}" / "recipe.yaml")
    assert recipe.models == [ck.KAnonymity(4), ck.TCloseness("disease", 0.4), ck.LDiversity("pay", 3)] and recipe.seed == 7


@pytest.mark.parametrize("document", [ck.Certificate, PublicReport, Frontier])
def test_a_newer_format_is_named_before_its_keys_are_read(document: Any) -> None:
    newer = json.dumps({"format": FORMAT + 1, "closeknit": "9.1", "unheard_of": True})
    with pytest.raises(
        ck.BadInput, match=rf"has format {FORMAT + 1}, written by closeknit 9\.1; this version reads formats 1 to"
    ):
        document.from_json(newer)


def test_names_that_a_user_chose_are_no_keys_of_an_earlier_format() -> None:
    cells = {"columns": {"quasi": {"asked": "flat"}}, "worst": {"cells": {"held": "*"}}, "estimates": {"reached": {}}}
    measures = {"distances": {"withheld": {"reached": 0.5}}, "reached": {"secrets": {"promise": {"t": {}}}}}
    upgraded = upgrade_format({"format": 1, **cells, "measures": measures})
    assert {key: upgraded[key] for key in cells} == cells
    assert upgraded["measures"] == {"distances": {"withheld": {"measured": 0.5}}, "levels": {"secrets": {"promise": {"t": {}}}}}


def test_the_published_schemas_are_those_of_the_records() -> None:
    """`make schemas` writes them."""
    files = {file.name.removesuffix(".schema.json"): file.read_text("utf-8") for file in FOLDER.glob("*.json")}
    assert files == {name: json_text(schema) for name, schema in build_json_schemas().items()}


@pytest.mark.parametrize("name", build_json_schemas())
def test_what_is_saved_follows_its_schema(name: str, release: ck.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    files = {"certificate": "out/certificate.json", "report": "out/report.json", "private_report": "out.private/report.json"}
    file = tmp_path / files.get(name, "out.private/recipe.yaml")
    saved, schema = yaml.safe_load(file.read_text("utf-8")), build_json_schemas()[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(saved, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**saved, "unheard_of": 1}, schema)
    first = "closeknit" if "closeknit" in saved else "schema"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({key: value for key, value in saved.items() if key != first}, schema)


@pytest.mark.parametrize(
    "recipe", [{"method": "no_method"}, {"models": [{"no_model": {}}]}, {"suppress": 2}, {"schema": {"quasy": {}}}]
)
def test_the_schema_of_a_recipe_refuses_what_a_recipe_refuses(recipe: Any, release: ck.Release) -> None:
    base = {"schema": {"quasi": {"age": "numeric"}}, "models": [{"k_anonymity": {"k": 2}}]}
    schema = build_json_schemas()["recipe"]
    jsonschema.validate(base, schema)
    Recipe.of(base)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(base | recipe, schema)
    with pytest.raises(ck.BadInput):
        Recipe.of(base | recipe)

"""`closeknit audit`: how it ends where guarantees are attested, how it finds a release, and that forged certificates fail."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli import ROWS, SMALL, closeknit, folder, refused, write_recipe
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.publishing import list_notes
from closeknit.api.recipe import models_from
from closeknit.cli.commands import app
from closeknit.core.measurement import Measurement
from closeknit.core.schema import Schema
from closeknit.core.strict_json import json_text
from closeknit.io.canonical import content_hash
from closeknit.io.files import read, write_csv

__all__ = ["folder"]  # a fixture


def test_persons_are_not_checkable_and_say_so(folder: Path) -> None:
    table = "who," + "".join(f"{i},{line}\n" for i, line in enumerate(ROWS.splitlines())).removeprefix("0,")
    schema = {**SMALL["schema"], "person": "who"}
    assert closeknit("anonymize", write_recipe(folder, table, schema=schema), "-o", "out").exit_code == 0
    for place in ("out/release.csv", "out/"):
        found = closeknit("audit", place)
        assert found.exit_code == 3 and "not checkable" in found.stdout and "not met" not in found.stdout
        end = "(attested, as measured by the data owner: k-anonymity, k = 2)"
        assert found.stdout.splitlines()[-1] == f"met as far as it can be checked {end}"
    record = json.loads(closeknit("audit", "out", "--json").stdout)
    assert (record["ok"], record["status"]) == (False, "met as far as it can be checked")
    release = folder / "out" / "release.csv"
    release.write_text(release.read_text(encoding="utf-8").replace("gout", "flu", 1), encoding="utf-8")
    found = closeknit("audit", "out", "--json")
    assert found.exit_code == 1 and json.loads(found.stdout)["status"] == "not met", "what is wrong counts more"


def test_help_lists_every_exit_status(folder: Path) -> None:
    for words in (["--help"], ["audit", "--help"]):
        said = " ".join(closeknit(*words).stdout.split())
        assert re.search(r"Exit status: 0 .*; 1 .*; 2 .*; 3 .*met as far as it can be checked", said), said


def test_the_folder_of_a_release_stands_for_its_file(folder: Path) -> None:
    assert closeknit("anonymize", write_recipe(folder), "-o", "out", "--format", "parquet").exit_code == 0
    assert closeknit("audit", "out").stdout == closeknit("audit", "out/release.parquet").stdout
    assert closeknit("attack", "out", "--json").stdout == closeknit("attack", "out/release.parquet", "--json").stdout
    (folder / "out" / "release.parquet").unlink()
    refused(closeknit("audit", "out"), 2, "out", "no release", "release.csv or release.parquet")
    refused(closeknit("audit", "nowhere/"), 2, "nowhere", "no such file or folder")
    for private in ("out.private", "out.private/recipe.yaml"):
        refused(
            closeknit("audit", private), 2, f"{private}: these are the private files of a release; name its public folder, out"
        )


# Certificates in which every number is the recomputed one --------------------------------------------------------------


Edit = Callable[[dict[str, Any]], object]


def audit_forged(
    folder: Path, rows: list[list[str]], columns: dict[str, Any], models: list[Any], edit: Edit | None = None
) -> Any:
    """The audit of a release with a certificate in which every number is the recomputed one."""
    file, schema, requested = folder / "release.csv", Schema.from_forms(columns), models_from(models)
    with open(file, "w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows([schema.published, *rows])
    cells = read(file)
    reading = ck.generalized().read(cells, schema)
    measured = Measurement.of(reading, requested).certify(schema, {"generalized": {}}).model_dump(mode="json")
    stated = {key: measured[key] for key in ("guarantees", "classes", "loss")}
    certificate: dict[str, Any] = {
        "format": 2,
        "closeknit": "0",
        "form": {"generalized": {}},
        "columns": columns,
        "rows": len(rows),
        "suppressed": 0,
        **stated,
        "notes": list_notes(schema, requested, ck.generalized(), 0),
        "content_sha256": content_hash(cells),
    }
    if edit:
        edit(certificate)
    (folder / "certificate.json").write_text(json_text(certificate), encoding="utf-8")
    return CliRunner().invoke(app, ["audit", str(file)])


HONEST = [["[1, 2]", value] for value in "abcd"]


FLAT: dict[str, Any] = {"quasi": {"age": "numeric"}, "sensitive": {"pay": "flat"}}


K4: list[Any] = [{"k_anonymity": {"k": 4}}]


def test_the_forger_makes_certificates_that_pass_where_nothing_is_wrong(tmp_path: Path) -> None:
    assert audit_forged(tmp_path, HONEST, FLAT, K4).exit_code == 0


KINDS = [
    ({"numeric": {"lo": 0, "hi": 100, "bins": 1}}, ["10", "11", "90", "95"]),
    ({"intervals": {"edges": [0, 100]}}, ["10", "11", "90", "95"]),
    ({"date": {"levels": ["decade"]}}, ["2001-01-01", "2001-01-02", "2009-01-01", "2009-01-02"]),
]


@pytest.mark.parametrize(("kind", "secrets"), KINDS)
def test_secrets_finer_than_what_they_are_judged_on_are_found(tmp_path: Path, kind: object, secrets: list[str]) -> None:
    rows = [[age, secret] for age, secret in zip(["[1, 2]", "[1, 2]", "[3, 4]", "[3, 4]"], secrets, strict=True)]
    columns = {"quasi": {"age": "numeric"}, "sensitive": {"pay": kind}}
    found = audit_forged(tmp_path, rows, columns, [{"k_anonymity": {"k": 2}}, {"t_closeness": {"column": "pay", "t": 0}}])
    assert found.exit_code == 1 and "is more precise than" in found.output


def test_markers_in_a_certificate_do_not_join_classes(tmp_path: Path) -> None:
    def nameless(certificate: dict[str, Any]) -> None:
        certificate["guarantees"][0]["worst"] = None

    rows = [[age, "flu"] for age in ("30", "31", "32", "33")]
    found = audit_forged(tmp_path, rows, {**FLAT, "missing": ["30", "31", "32", "33"]}, K4, nameless)
    assert found.exit_code == 1 and "'missing'" in found.output and "no worst class" in found.output


def test_without_a_quasi_identifier_nothing_is_called_ok(tmp_path: Path) -> None:
    found = audit_forged(tmp_path, [["a"], ["b"], ["c"], ["d"]], {"sensitive": {"pay": "flat"}}, K4)
    assert found.exit_code == 2 and "no column is quasi" in found.output


def test_an_audit_names_the_columns_that_nothing_protects(tmp_path: Path) -> None:
    rows = [[*row, f"{i} Main St"] for i, row in enumerate(HONEST)]
    found = audit_forged(tmp_path, rows, {**FLAT, "plain": ["address"]}, K4)
    assert "column 'address' is published as it is, without any protection" in found.output


@pytest.mark.parametrize("suppressed", [-3, 10**400])
def test_impossible_counts_are_refused(tmp_path: Path, suppressed: int) -> None:
    assert audit_forged(tmp_path, HONEST, FLAT, K4, lambda record: record.update(suppressed=suppressed)).exit_code == 2


def test_a_guarantee_about_a_column_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    def elsewhere(certificate: dict[str, Any]) -> None:
        certificate["guarantees"].append({**certificate["guarantees"][0], "model": {"t_closeness": {"column": "x", "t": 1}}})

    found = audit_forged(tmp_path, HONEST, FLAT, K4, elsewhere)
    assert found.exit_code == 2 and "not sensitive" in found.output


def test_a_guarantee_listed_under_another_column_is_found(tmp_path: Path) -> None:
    found = audit_forged(tmp_path, HONEST, FLAT, K4, lambda record: record["guarantees"][0].update(column="pay"))
    assert found.exit_code == 1


def test_a_column_name_cannot_write_lines_of_its_own(tmp_path: Path) -> None:
    name = "pay\nok\x1b[2K"
    rows = [["[1, 2]", value] for value in "aabb"]
    columns = {"quasi": {"age": "numeric"}, "sensitive": {name: "flat"}}
    found = audit_forged(tmp_path, rows, columns, [*K4, {"l_diversity": {"column": name, "l": 2}}])
    assert "\x1b" not in found.output and found.output.splitlines().count("ok") == 1


def test_a_population_recomputes_the_guarantees_that_count_it(tmp_path: Path) -> None:
    """Status 3 without the list, 0 with it, 2 with another one or where no guarantee counts people."""
    people = ck.datasets.hospital(300)
    write_csv(people, tmp_path / "people.csv")
    write_csv(people.take(np.arange(299)), tmp_path / "fewer.csv")
    table, schema = people.take(np.arange(0, 300, 3)), ck.datasets.hospital_schema()
    for name, model in {"mapped": ck.KMap(3, population=tmp_path / "people.csv"), "plain": ck.KAnonymity(2)}.items():
        ck.anonymize(table, schema, [model], ck.Mondrian(), seed=2**80).save(tmp_path / name, report=False)

    def audit(name: str, *more: str) -> Any:
        return closeknit("audit", str(tmp_path / name), *more)

    assert audit("mapped").exit_code == 3
    found = audit("mapped", "--population", str(tmp_path / "people.csv"))
    assert found.exit_code == 0 and re.search(
        r"recomputed +k-map, k = 3, in a population of 300 people: measured", found.output
    )
    other = audit("mapped", "--population", str(tmp_path / "fewer.csv"))
    assert other.exit_code == 2 and "the population has 299 people" in other.output
    assert audit("plain", "--population", str(tmp_path / "people.csv")).exit_code == 2

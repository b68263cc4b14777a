"""`ck.attack` and `closeknit attack`: on what `Release.save` writes, with each thing that an attacker may have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api import AttackReport
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.datasets import hospital, hospital_recipe
from closeknit.io.files import write_csv

SEED = 2**64
BY_METHOD = {"minimality", "exchange", "refinement", "downcoding"}
RECIPIENT = {"record_linkage", "range_ends", "homogeneity", "skewness", "similarity", "background", "insider", "joint_secrets"}


def closeknit(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def said(*words: object) -> dict[str, Any]:
    result = closeknit("attack", *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of patients, its recipe, and two releases: of the table, and of the half of it."""
    place = tmp_path_factory.mktemp("attack")
    patients = hospital(120)
    write_csv(patients, place / "patients.csv")
    write_csv(hospital(600, seed=3), place / "people.csv")
    recipe = {**hospital_recipe("patients.csv"), "method": "mondrian", "models": [{"k_anonymity": {"k": 4}}], "seed": SEED}
    (place / "recipe.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")
    requested = Recipe.read(place / "recipe.yaml")
    for name, count in (("out", 120), ("half", 60)):
        table = place / f"{name}.csv"
        write_csv(patients.take(np.arange(count)), table)
        release = ck.anonymize(table, requested.schema, requested.models, requested.method, seed=SEED)
        release.save(place / name)
    return place


def attacks(record: dict[str, Any]) -> set[str]:
    return {found["attack"] for found in record["findings"]}


def test_a_recipient_needs_the_release_alone(folder: Path) -> None:
    record = said(folder / "out" / "release.csv")
    assert attacks(record) == RECIPIENT
    risks = [found["risk"] for found in record["findings"]]
    assert risks == sorted(risks, reverse=True)
    needs = [reason for reason in record["untried"] if " needs " in reason]
    assert [reason.split(" needs ")[0] for reason in needs] == [
        "candidate rows",
        "population linkage",
        "delta presence",
        "intersection",
        "row join",
        "singling out",
        "minimality",
        "exchange",
        "refinement",
        "downcoding",
    ]


def test_each_thing_known_adds_its_attacks(folder: Path) -> None:
    release, recipe = folder / "out" / "release.csv", folder / "out.private" / "recipe.yaml"
    people, other = folder / "people.csv", folder / "half" / "release.csv"
    assert attacks(said(release, "--population", people)) - RECIPIENT == {"delta_presence", "population_linkage"}
    assert attacks(said(release, "--other", other)) - RECIPIENT == {"row_join"}
    record = said(release, "--recipe", recipe, "--runs", 20, "--solves", 5)
    known = {"candidate_rows", "singling_out", "downcoding", "minimality", "exchange", "refinement"}
    assert attacks(record) - RECIPIENT == known
    assert [reason.split(" needs ")[0] for reason in record["untried"] if " needs " in reason] == [
        "population linkage",
        "delta presence",
        "intersection",
        "row join",
    ]
    every = said(release, "--recipe", recipe, "--population", people, "--other", other, "--runs", 20)
    assert attacks(every) - RECIPIENT == {*known, "delta_presence", "population_linkage", "intersection", "row_join"}
    assert not [reason for reason in every["untried"] if " needs " in reason]
    assert all(found["details"]["tried"] <= 20 for found in every["findings"] if found["attack"] == "minimality")


def test_the_page_says_the_same_as_the_record(folder: Path) -> None:
    release, recipe = folder / "out" / "release.csv", folder / "out.private" / "recipe.yaml"
    record = said(release, "--recipe", recipe, "--runs", 20)
    shown = closeknit("attack", release, "--recipe", recipe, "--runs", 20)
    assert shown.exit_code == 0 and "Traceback" not in shown.output
    heads = [line for line in shown.stdout.splitlines() if line[:1].isdigit() and line[1:2] == "."]
    assert [float(line.split()[0]) for line in heads] == [round(found["risk"], 3) for found in record["findings"]]
    flat = " ".join(shown.stdout.split())
    for found in record["findings"]:
        assert found["sentence"] in flat, found["sentence"]
    for reason in record["untried"]:
        assert f"not tried: {reason}" in shown.stdout
    assert "private, do not share" in shown.stdout
    assert "private" not in closeknit("attack", release).stdout


def test_it_repeats_itself(folder: Path) -> None:
    words = [folder / "out" / "release.csv", "--recipe", folder / "out.private" / "recipe.yaml", "--runs", 20]
    assert said(*words) == said(*words)


def test_python_and_the_record_in_a_file(folder: Path) -> None:
    release, recipe = folder / "out" / "release.csv", Recipe.read(folder / "out.private" / "recipe.yaml")
    found = ck.attack(release, recipe=recipe, population=folder / "people.csv", runs=20)
    again = AttackReport.from_json(found.to_json())
    assert again == found and found.risk == found.findings[0].risk
    made = ck.anonymize(recipe.data, recipe.schema, recipe.models, recipe.method, seed=recipe.seed)
    there = ck.attack(made, original=recipe.data, schema=recipe.schema, population=folder / "people.csv")
    assert {each.attack for each in there.findings} == {each.attack for each in found.findings} - BY_METHOD
    same = [each for each in found.findings if each.attack in ("candidate_rows", "delta_presence", "population_linkage")]
    assert [each for each in there.findings if each in same] == same
    assert str(there).count("\n") == len(there.findings) + len(there.untried) - 1


@pytest.mark.parametrize(("form", "format"), [("bucketized", "csv"), ("multiset", "parquet"), ("perturbed", "csv")])
def test_other_forms_and_files(form: str, format: str, tmp_path: Path) -> None:
    table, schema = hospital(100), ck.datasets.hospital_schema()
    write_csv(table, tmp_path / "patients.csv")
    shape: Any = ck.perturbed(0.5, ["disease"]) if form == "perturbed" else form
    models: list[Any] = [ck.KAnonymity(3) if form == "perturbed" else ck.LDiversity("disease", 2)]
    release = ck.anonymize(tmp_path / "patients.csv", schema, models, form=shape, seed=SEED)
    release.save(tmp_path / "out", format=format)
    words = [tmp_path / "out" / f"release.{format}", "--recipe", tmp_path / "out.private" / "recipe.yaml", "--runs", 10]
    record = said(*words, "--population", tmp_path / "patients.csv")
    assert ("matching_buckets" in attacks(record)) == ("candidate_rows" not in attacks(record)) == (form != "perturbed")
    assert ("minimality" in attacks(record)) == (form != "perturbed")
    assert any("perturbed" in reason for reason in record["untried"]) == (form == "perturbed")


def test_a_stream_is_attacked_as_a_table(tmp_path: Path) -> None:
    schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()}, person="name")
    rows = {"age": [30, 31, 60, 61], "ill": ["hiv", "flu", "hiv", "gout"], "name": ["Ann", "Bob", "Ann", "Cid"]}
    write_csv(Columns.of(rows), tmp_path / "rows.csv")
    ck.replay(ck.Castle(schema, k=2, delta=1, l=2, seed=SEED), tmp_path / "rows.csv").save(tmp_path / "out")
    record = said(tmp_path / "out" / "release.csv", "--recipe", tmp_path / "out.private" / "recipe.yaml")
    (found,) = [each for each in record["findings"] if each["attack"] == "intersection"]
    assert (found["number"], found["risk"]) == (1.0, 1.0)
    assert any(reason.startswith("minimality of a stream") for reason in record["untried"])


def test_a_recipe_of_another_release_is_named(folder: Path, tmp_path: Path) -> None:
    release = folder / "out" / "release.csv"
    forms = yaml.safe_load((folder / "out.private" / "recipe.yaml").read_text(encoding="utf-8"))
    for change, reason in (
        ({"models": [{"k_anonymity": {"k": 6}}]}, "another release"),
        ({"seed": None}, "the seed"),
        ({"models": [{"k_anonymity": {"k": 500}}]}, "gives no release"),
    ):
        file = tmp_path / "recipe.yaml"
        file.write_text(yaml.safe_dump({**forms, **change}), encoding="utf-8")
        record = said(release, "--recipe", file)
        assert [each for each in record["untried"] if each.startswith("minimality") and reason in each], record["untried"]
        assert "candidate_rows" in attacks(record)


# Bad input ---------------------------------------------------------------------------------------------------------------


def refused(words: tuple[object, ...], *says: str) -> None:
    result = closeknit("attack", *words)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith("closeknit: ") and all(part in sentence for part in says), sentence


def test_bad_input_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    release = folder / "out" / "release.csv"
    refused((tmp_path / "none.csv",), "none.csv", "no such file")
    refused((folder / "people.csv",), "no certificate.json")
    refused((release, "--certificate", release), "release.csv")
    refused((release, "--recipe", tmp_path / "none.yaml"), "none.yaml", "cannot be read")
    refused((release, "--recipe", release), "release.csv")
    refused((release, "--population", tmp_path / "none.csv"), "none.csv")
    refused((release, "--other", folder / "people.csv"), "certificate.json")
    refused((folder,), "folder")
    (tmp_path / "weights.csv").write_text("weight\n70\n", encoding="utf-8")
    refused((release, "--population", tmp_path / "weights.csv"), "none of the quasi-identifiers", "age")
    (tmp_path / "odd.csv").write_text("age\nthirty\n", encoding="utf-8")
    refused((release, "--population", tmp_path / "odd.csv"), "odd.csv", "column 'age'", "thirty")
    (tmp_path / "empty.csv").write_text("age\n", encoding="utf-8")
    refused((release, "--population", tmp_path / "empty.csv"), "no rows")


def test_a_changed_release_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "release.csv").write_bytes((folder / "out" / "release.csv").read_bytes().replace(b"female", b"male", 1))
    (tmp_path / "certificate.json").write_bytes((folder / "out" / "certificate.json").read_bytes())
    refused((tmp_path / "release.csv",), "release.csv", "does not match its certificate")


def test_what_is_no_release_is_refused() -> None:
    for given in (Columns.of({"age": [30]}), 7, None):
        with pytest.raises(BadInput, match="is not a release"):
            ck.attack(given)
    table, schema = hospital(40), ck.datasets.hospital_schema()
    release = ck.anonymize(table, schema, [ck.KAnonymity(4)], seed=SEED)
    with pytest.raises(BadInput, match="without a schema"):
        ck.attack(release, original=table)
    with pytest.raises(BadInput, match="runs"):
        ck.attack(
            release,
            recipe=Recipe.of({"schema": schema.forms(), "models": [{"k_anonymity": {"k": 4}}], "seed": SEED}),
            original=table,
            runs=0,
        )


def test_help_teaches_by_example() -> None:
    shown = closeknit("attack", "--help")
    assert shown.exit_code == 0 and shown.stdout.count("closeknit attack") >= 3


def test_another_release_without_its_certificate_is_refused_by_its_own_remedy(folder: Path) -> None:
    refused = closeknit("attack", folder / "out", "--other", folder / "people.csv")
    assert refused.exit_code == 2 and "--certificate" not in refused.stderr
    assert "people.csv: there is no certificate.json next to it; name the public folder of the other release" in refused.stderr


def test_a_raw_table_is_not_attacked_and_the_remedy_is_one_that_exists(folder: Path) -> None:
    refused = closeknit("attack", folder / "people.csv")
    assert refused.exit_code == 2 and "--recipe" not in refused.stderr
    assert "name it with --certificate (in Python: certificate=); 'closeknit risk' measures" in refused.stderr


def test_a_recipe_without_data_is_not_asked_for_again(folder: Path, tmp_path: Path) -> None:
    recipe = yaml.safe_load((folder / "recipe.yaml").read_text(encoding="utf-8"))
    del recipe["data"]
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    untried = said(folder / "out", "--recipe", tmp_path / "recipe.yaml")["untried"]
    by_recipe = [
        reason for reason in untried if reason.partition(" needs ")[0] in BY_METHOD | {"candidate rows", "singling out"}
    ]
    assert len(by_recipe) == 6 and all("the recipe names no data; add the key data" in reason for reason in by_recipe)

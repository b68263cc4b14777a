"""Mistakes of the first hour in Python: one sentence that says what to write; and what recipes accept, Python accepts too."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.core.errors import MOST_COMPARED, BadInput, suggest_name
from closeknit.datasets import hospital_recipe
from closeknit.forms.release_reading import reading_of
from closeknit.io.files import write_csv

CELLS = {"age": [30, 31, 40, 41, 50, 52], "sex": list("ffmmff"), "disease": ["flu", "gout"] * 3}
TABLE = Columns.of(CELLS)
SCHEMA = ck.Schema(quasi={"age": ck.numeric(0, 100), "sex": ck.flat()}, sensitive={"disease": ck.flat()})
MODELS = [ck.KAnonymity(2)]
SEED = 2**90


def with_columns(**roles: Any) -> ck.Schema:
    return ck.Schema(**{"quasi": {"age": "numeric", "sex": "flat"}, "sensitive": {"disease": "flat"}, **roles})


def recipe(**changes: Any) -> Recipe:
    return Recipe.of({"schema": {"quasi": {"age": "numeric"}}, "models": [{"k_anonymity": {"k": 2}}], **changes})


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a misspelled role": (lambda: ck.Schema(sensitve={}), "schema has the unknown key 'sensitve'; did you mean 'sensitive'?"),
    "quasi as a list": (
        lambda: ck.Schema(quasi=["age", "zip"]),
        "schema, key 'quasi': it maps the name of each column to its kind; "
        "write quasi={'age': 'flat', 'zip': 'flat'}, each with one of the kinds numeric, duration, date",
    ),
    "sensitive as a name": (lambda: ck.Schema(sensitive="disease"), "write sensitive={'disease': 'flat'}, each with"),
    "a kind uncalled": (
        lambda: with_columns(quasi={"age": ck.numeric}),
        "column 'age': the kind of column numeric is not called",
    ),
    "a kind misspelled": (
        lambda: with_columns(quasi={"age": "numric"}),
        "column 'age': there is no kind of column 'numric'; did",
    ),
    "another case": (
        lambda: ck.anonymize(TABLE, with_columns(quasi={"Age": "numeric", "sex": "flat"}), MODELS),
        "column 'Age': is named in the schema but not in the table; did you mean 'age'?",
    ),
    "importance of another case": (lambda: with_columns(importance={"Sex": 2}), "column 'Sex'.* did you mean 'sex'"),
    "allow_unique misspelled": (
        lambda: with_columns(plain=["ward"], allow_unique=["wards"]),
        "column 'wards': is in allow_unique but not plain; list it under plain too, or did you mean 'ward'?",
    ),
    "a class as a method": (
        lambda: ck.anonymize(TABLE, SCHEMA, MODELS, ck.Mondrian),
        "the method Mondrian is not called; write",
    ),
    "a class as a model": (lambda: ck.anonymize(TABLE, SCHEMA, [ck.KAnonymity]), "the model KAnonymity is not called; write"),
    "a function as a form": (
        lambda: ck.anonymize(TABLE, SCHEMA, MODELS, form=ck.sliced),
        "the form sliced is not called; write",
    ),
    "a class as a schema": (lambda: ck.anonymize(TABLE, ck.Schema, MODELS), "the schema Schema is not called"),
    "a list as a method": (
        lambda: ck.anonymize(TABLE, SCHEMA, MODELS, [1]),
        "a list is not a method; give an instance, or a name",
    ),
    "a method misspelled": (
        lambda: ck.anonymize(TABLE, SCHEMA, MODELS, "mondrain"),
        "'mondrain' is unknown; did you mean 'mondrian'",
    ),
    "a form misspelled": (lambda: ck.anonymize(TABLE, SCHEMA, MODELS, form="bucketised"), "did you mean 'bucketized'"),
    "a model misspelled": (lambda: ck.anonymize(TABLE, SCHEMA, [{"KAnonymty": {}}]), "did you mean 'k_anonymity'"),
    "a parameter misspelled": (lambda: ck.anonymize(TABLE, SCHEMA, MODELS, {"sabre": {"fil": 1}}), "did you mean 'fill'"),
    "a choice misspelled": (lambda: ck.Sabre(fill="hilber"), "fill='hilber' is unknown; did you mean 'hilbert'"),
    "a model of another column": (
        lambda: ck.anonymize(TABLE, SCHEMA, [ck.TCloseness("Disease", 0.5)]),
        "column 'Disease': t_closeness is requested for a column that is not sensitive; did you mean 'disease'?",
    ),
    "a group of another column": (
        lambda: ck.anonymize(TABLE, SCHEMA, [ck.LDiversity("disease", 2)], form=ck.sliced([["agee"], ["sex", "disease"]])),
        "column 'agee': is in a group but not published; did you mean 'age'?",
    ),
    "a stacked column misspelled": (
        lambda: ck.anonymize(TABLE, SCHEMA, MODELS, ck.StackAndDeal(column="diseases")),
        "did you mean 'disease'",
    ),
    "a stream's model of another column": (
        lambda: ck.Castle(SCHEMA, k=2, delta=3, models=[ck.LDiversity("desease", 2)]),
        "did you mean 'disease'",
    ),
    "a date's level": (lambda: ck.date(levels=["days"]), "date has no level 'days'; did you mean 'day'"),
    "a recipe's key": (lambda: recipe(modles=[]), "recipe has the unknown key 'modles'; did you mean 'models'"),
    "a recipe's output": (lambda: recipe(output={"fromat": "csv"}), "the unknown key 'fromat'; did you mean 'format'"),
    "a recipe's format": (
        lambda: recipe(output={"format": "parket"}),
        "output format 'parket' is unknown; did you mean 'parquet'",
    ),
    "an engine": (
        lambda: ck.anonymize(TABLE, SCHEMA, MODELS, engine="sparc"),
        "engine='sparc' is unknown; did you mean 'spark'",
    ),
    "an attacked column": (
        lambda: ck.attacks.homogeneity(reading_of(ck.anonymize(TABLE, SCHEMA, MODELS, seed=SEED)), "diseas"),
        "did you mean 'disease'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence_with_what_would_be_right(mistake: str) -> None:
    make, says = MISTAKES[mistake]
    with pytest.raises(ck.BadInput) as bad:
        make()
    assert re.search(says.replace("?", r"\?"), str(bad.value)), str(bad.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda schema: ck.anonymize(TABLE, schema, MODELS),
        lambda schema: ck.audit(TABLE, schema, MODELS),
        lambda schema: ck.compare(TABLE, schema, MODELS, ["mondrian"]),
        lambda schema: ck.frontier(TABLE, schema, MODELS, ["mondrian"]),
        lambda schema: ck.choose_k(TABLE, schema, column="disease"),
        lambda schema: ck.attack(ck.anonymize(TABLE, SCHEMA, MODELS, seed=SEED), original=TABLE, schema=schema),
        lambda schema: ck.Castle(schema, k=2, delta=3),
        lambda schema: ck.Castle(schema, k=2, delta=3, l=2),
        lambda schema: ck.SabreWindow(schema, models=[ck.TCloseness("disease", 0.5)]),
        lambda schema: ck.metrics.queries(TABLE, schema),
    ],
)
def test_a_path_is_no_schema(call: Callable[[Any], Any]) -> None:
    with pytest.raises(
        ck.BadInput, match=r"schema='r.yaml' is not a Schema; write Schema\(.*, or run a recipe with run\('r.yaml'\)"
    ):
        call("r.yaml")
    with pytest.raises(ck.BadInput, match="a dict is not a Schema"):
        call({"quasi": {}})


def test_python_takes_names_and_mappings_as_recipes_do() -> None:
    named = ck.anonymize(TABLE, SCHEMA, [{"k_anonymity": {"k": 2}}], "mondrian", form={"generalized": {}}, seed=SEED)
    given = ck.anonymize(TABLE, SCHEMA, MODELS, ck.Mondrian(), form=ck.generalized(), seed=SEED)
    assert named.certificate == given.certificate
    assert ck.audit(named.frame, SCHEMA, [{"k_anonymity": {"k": 2}}], form="generalized").ok
    assert ck.compare(TABLE, SCHEMA, [{"k_anonymity": {"k": 2}}], [{"mondrian": {}}]).ok
    assert ck.Windowed("mondrian", SCHEMA, MODELS, omega=4, advance=2).init_params["method"] == ck.Mondrian()


def test_a_lazy_frame_is_collected() -> None:
    lazy = pl.DataFrame(CELLS).lazy()
    release = ck.anonymize(lazy, SCHEMA, MODELS, seed=SEED)
    assert isinstance(release.frame, pl.DataFrame)
    assert release.certificate == ck.anonymize(pl.DataFrame(CELLS), SCHEMA, MODELS, seed=SEED).certificate
    assert ck.audit(release.frame.lazy(), certificate=release.certificate).ok
    assert ck.suggest(lazy).reasons["age"].kind == "numeric"
    left = ck.Castle(SCHEMA, k=2, delta=3, seed=SEED).push_many(lazy)
    assert isinstance(left, pl.DataFrame) and left.height > 0
    with pytest.raises(ck.BadInput, match=r'the LazyFrame cannot be collected .*"shoe"'):
        ck.anonymize(lazy.filter(pl.col("shoe") > 40), SCHEMA, MODELS)


def test_names_are_compared_without_case_and_separators_and_long_ones_cost_nothing() -> None:
    assert suggest_name("K Anonymity", ["l_diversity", "k_anonymity"]) == "did you mean 'k_anonymity'?"
    assert suggest_name("Zip-Code", ["zipcode", "zip"]) == "did you mean 'zipcode'?"
    assert suggest_name("x", []) == "none is known here"
    assert suggest_name("x", [f"column {i}" for i in range(30)]).endswith("column 19, ... (30 in all)")
    assert suggest_name("a" * 10**6, ["a" * 10**6, "b"]).startswith("choose one of"), MOST_COMPARED


@pytest.mark.parametrize("changed", [{"method": "sabber"}, {"method": ck.Sabre}, {"form": "tight"}, {"form": ck.generalized}])
def test_anonymize_names_what_is_no_method_or_form(changed):
    table, schema = ck.datasets.hospital(50), ck.datasets.hospital_schema()
    with pytest.raises(ck.BadInput):
        ck.anonymize(table, schema, [ck.KAnonymity(2), ck.TCloseness("stay", 0.5)], seed=SEED, **changed)


@pytest.mark.parametrize(
    "model",
    [
        ck.LDiversity(["disease", "stay"], 2),
        ck.BetaLikeness(["disease", "stay"], 2),
        ck.DeltaDisclosure(["disease", "stay"], 2),
    ],
)
def test_a_list_of_secrets_is_refused_where_only_one_is_meant(model):
    with pytest.raises(ck.BadInput):
        ck.anonymize(ck.datasets.hospital(50), ck.datasets.hospital_schema(), [model], ck.Mondrian(), seed=SEED)


@pytest.mark.parametrize("requested", [ck.KAnonymity(2), None, "k_anonymity", {"k_anonymity": 2}, [ck.KAnonymity]])
def test_guarantees_that_are_no_list_are_refused_in_a_sentence(requested: Any) -> None:
    calls = [
        lambda: ck.SabreWindow(SCHEMA, requested, omega=4, advance=2),
        lambda: ck.anonymize(TABLE, SCHEMA, requested),
        lambda: ck.compare(TABLE, SCHEMA, requested),
        *([] if requested is None else [lambda: ck.Castle(SCHEMA, k=2, delta=3, models=requested)]),
    ]
    for call in calls:
        with pytest.raises(BadInput, match=r"is no list of guarantees|the model KAnonymity is not called"):
            call()


def test_an_empty_table_is_neither_released_nor_audited() -> None:
    none = pd.DataFrame(CELLS).iloc[:0]
    for call in (lambda: ck.anonymize(none, SCHEMA, [ck.KAnonymity(2)]), lambda: ck.audit(none, SCHEMA, [ck.KAnonymity(2)])):
        with pytest.raises(BadInput, match="has no rows"):
            call()


@pytest.mark.parametrize("name", ["nowhere", "nowhere.csv", "nowhere.yml"])
def test_a_file_that_is_not_there_is_missing_whatever_its_suffix(name: str) -> None:
    for call in (ck.suggest, lambda file: ck.risk(file, certificate=file), lambda file: ck.attack(file)):
        with pytest.raises(BadInput, match=r"(there is no such file or folder|cannot be read \(No such file)"):
            call(name)


def test_risk_of_a_release_that_is_not_there(tmp_path: Path) -> None:
    write_csv(ck.datasets.hospital(30), tmp_path / "patients.csv")
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(hospital_recipe("patients.csv")), encoding="utf-8")
    words = ["risk", tmp_path / "patients.csv", "--recipe", tmp_path / "recipe.yaml", "--release", tmp_path / "nowhere"]
    refused = CliRunner().invoke(app, [str(word) for word in words])
    assert refused.exit_code == 2 and "nowhere: there is no such file or folder; check the path" in refused.stderr

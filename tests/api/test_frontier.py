"""The frontier: points are what `anonymize` makes, marks say which no other beats, refusals are rows, pictures are pictures."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api import frontier_recipe, save_frontier
from closeknit.api.parameter_sweep import choose_sweep
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.core.frontier import Frontier, Point, front_of
from closeknit.datasets import hospital, hospital_recipe, hospital_schema
from closeknit.io.files import read, write_csv
from closeknit.report.frontier_chart import frontier_svg
from conftest import examples

SEED = 2**100
ROWS = 160
MODELS = [ck.KAnonymity(4), ck.TCloseness("disease", 0.3)]
VALUES = [0.05, 0.2, 0.35, 0.5]
METHODS: list[Any] = ["stack_and_deal", ck.Sabre(fill="knn"), "mondrian", "burel"]


@pytest.fixture(scope="module")
def curves() -> Frontier:
    return ck.frontier(hospital(ROWS), hospital_schema(), MODELS, METHODS, vary={"t": VALUES}, seed=SEED)


def timeless(found: Frontier) -> list[Point]:
    return [point.model_copy(update={"seconds": 0.0}) for point in found.points]


# Points --------------------------------------------------------------------------------------------------------------------


def test_a_row_for_each_method_and_value(curves: Frontier) -> None:
    names = ["stack_and_deal", "sabre(fill=knn)", "mondrian", "burel"]
    assert [(point.name, point.requested) for point in curves.points] == [(name, value) for name in names for value in VALUES]
    assert curves.rows == ROWS and curves.seed == SEED and curves.ok
    assert [measure.name for measure in curves.measures] == ["t of disease", "k"]


@pytest.mark.parametrize(
    "method", [ck.StackAndDeal(), ck.Sabre(fill="knn"), ck.Mondrian()], ids=lambda method: str(method.name)
)
def test_points_are_what_anonymize_makes(curves: Frontier, method: Any) -> None:
    points = {point.requested: point for point in curves.points if method.name in point.method and point.ok}
    assert points
    for value, point in points.items():
        models = [ck.KAnonymity(4), ck.TCloseness("disease", value)]
        certificate = ck.anonymize(hospital(ROWS), hospital_schema(), models, method, seed=SEED).certificate
        assert (point.loss, point.classes, point.suppressed) == (certificate.loss, certificate.classes, certificate.suppressed)
        assert point.measured == tuple(guarantee.measured for guarantee in reversed(certificate.guarantees))
        assert point.level == certificate.guarantees[1].measured <= value


def test_refusals_are_rows_with_their_sentence(curves: Frontier) -> None:
    refused = [point for point in curves.points if point.name == "burel"]
    assert not any(point.ok or point.front for point in refused)
    assert all(point.reason and "likeness" in point.reason and point.level is None and not point.measured for point in refused)
    assert str(curves).count("burel at 0.2 has no release: burel plans for") == 1
    with pytest.raises(ck.BadInput) as refusal:
        ck.anonymize(hospital(ROWS), hospital_schema(), MODELS, ck.Burel())
    assert refused[0].reason and refused[0].reason.split(";")[0] == str(refusal.value).split(";")[0]


def test_an_impossible_value_is_a_row() -> None:
    found = ck.frontier(hospital(30), hospital_schema(), [ck.KAnonymity(4)], "mondrian", vary={"k": [2, 31]}, seed=SEED)
    assert [point.ok for point in found.points] == [True, False]
    assert "cannot be met" in str(found.points[1].reason)


def test_what_is_not_guaranteed_is_measured_all_the_same() -> None:
    rivals: Any = ["burel", ("mondrian", [ck.TCloseness("disease", 0.4)])]
    models = [ck.BetaLikeness("disease", 3)]
    found = ck.frontier(hospital(ROWS), hospital_schema(), models, rivals, vary={"beta": [2, 3]}, seed=SEED)
    assert [measure.name for measure in found.measures] == ["beta of disease", "t of disease"]
    requested = {
        name: [point.requested for point in found.points if point.parameter == name]
        for name in ("beta of disease", "t of disease")
    }
    assert requested == {"beta of disease": [2, 3], "t of disease": [*ck.TCloseness.parameter.grid]}
    release = ck.anonymize(hospital(ROWS), hospital_schema(), [*models, ck.TCloseness("disease", 0.5)], ck.Burel(), seed=SEED)
    assert found.points[1].measured == tuple(guarantee.measured for guarantee in release.certificate.guarantees)


def test_guarantees_counted_in_persons_have_what_was_asked_for_a_level() -> None:
    table = read(hospital(120))
    schema = hospital_schema()
    schema = schema.model_copy(update={"identifier": (), "person": schema.identifier[0]})
    found = ck.frontier(table, schema, [ck.KAnonymity(3)], ["mondrian"], vary={"k": [3, 6]}, seed=SEED)
    assert [point.measured for point in found.points] == [(None,), (None,)]
    assert [point.level for point in found.points] == [3, 6] and all(point.front for point in found.points)


# What is varied ------------------------------------------------------------------------------------------------------------


def test_a_newcomer_names_nothing() -> None:
    found = ck.frontier(hospital(60), hospital_schema(), MODELS, ["mondrian"], seed=SEED)
    assert [point.requested for point in found.points] == [*ck.TCloseness.parameter.grid]  # 0.3 is in it
    found = ck.frontier(hospital(60), hospital_schema(), [ck.KAnonymity(7)], ["mondrian"], seed=SEED)
    assert [point.requested for point in found.points] == [2, 3, 5, 7, 10, 20, 50]  # 7 was asked
    assert all(isinstance(point.requested, int) for point in found.points)
    found = ck.frontier(hospital(30), hospital_schema(), [ck.KAnonymity(7)], ["mondrian"], seed=SEED)
    assert max(point.amount for point in found.points) == 20  # 30 rows cannot give 50


def test_the_strictest_looking_guarantee_is_varied() -> None:
    k, diverse, like, close = (
        ck.KAnonymity(3),
        ck.LDiversity("disease", 2),
        ck.BetaLikeness("disease", 2),
        ck.TCloseness("disease", 0.2),
    )
    for models, name in (
        ([k, diverse, like, close], "t of disease"),
        ([like, k], "beta of disease"),
        ([k, diverse], "l of disease"),
        ([k], "k"),
    ):
        assert choose_sweep(models, None)[0].name == name


@pytest.mark.parametrize(
    ("vary", "models", "sentence"),
    [
        ("q", MODELS, "'q' is a parameter of no guarantee; choose one of: k_anonymity.k, disease.t"),
        ("t", [ck.TCloseness("disease", 1), ck.TCloseness("stay", 1)], "'t' is a parameter of several guarantees"),
        ({"t": []}, MODELS, "has no values"),
        ({"t": 0.2}, MODELS, "has no values"),
        ({"t": [0.2], "k": [3]}, MODELS, "cannot be read"),
        ({"t": [0.2, 7]}, MODELS, "t=7 is out of range"),
        ("c", [ck.LDiversity("disease", 2, kind="recursive", c=2)], "no usual grid for 'c'"),
        (None, [], "no guarantee is requested"),
    ],
)
def test_what_cannot_be_varied_is_said(vary: Any, models: Any, sentence: str) -> None:
    with pytest.raises(ck.BadInput, match=re.escape(sentence)):
        ck.frontier(hospital(40), hospital_schema(), models, ["mondrian"], vary=vary)


def test_columns_and_models_distinguish_guarantees() -> None:
    models = [ck.TCloseness("disease", 0.5), ck.TCloseness("stay", 0.5), ck.LDiversity("disease", 2)]
    assert choose_sweep(models, {"stay.t": [0.1]})[0].place == 1
    assert choose_sweep(models, {"l_diversity.l": [3]})[0].place == 2
    assert choose_sweep(models, {"disease.t": ["1/6"]})[0].at("1/6")[0] == ck.TCloseness("disease", "1/6")


# Marks ---------------------------------------------------------------------------------------------------------------------


def beaten(points: list[tuple[float | None, float | None]], i: int, higher: bool) -> bool:
    def safe(level: float | None) -> float:
        assert level is not None
        return level if higher else -level

    level, loss = points[i]
    if level is None or loss is None:
        return True
    rivals = [(safe(x), y) for x, y in points if x is not None and y is not None]
    return any(x >= safe(level) and y <= loss and (x, y) != (safe(level), loss) for x, y in rivals)


SOME = st.one_of(st.none(), st.integers(0, 5).map(lambda x: x / 4))


@given(st.lists(st.tuples(SOME, SOME), max_size=12), st.booleans())
@settings(max_examples=examples(200))
def test_marks_are_the_points_that_no_other_beats(points: list[tuple[float | None, float | None]], higher: bool) -> None:
    marks = front_of([level for level, _ in points], [loss for _, loss in points], higher)
    assert marks == [not beaten(points, i, higher) for i in range(len(points))]


def test_marks_of_the_curves(curves: Frontier) -> None:
    points = [(point.level, point.loss.a if point.loss else None) for point in curves.points]
    assert [point.front for point in curves.points] == [not beaten(points, i, False) for i in range(len(points))]
    assert [point.level for point in curves.front] == sorted(point.level for point in curves.points if point.front)


# Records and pictures ------------------------------------------------------------------------------------------------------


def test_json_is_read_back(curves: Frontier) -> None:
    assert Frontier.from_json(curves.to_json()) == curves
    with pytest.raises(ck.BadInput, match=r"x\.json: the frontier has no key 'closeknit'"):
        Frontier.from_json("{}", "x.json")


def test_printed_table_is_aligned(curves: Frontier) -> None:
    legend, table, remarks = str(curves).split("\n\n")
    heading, *lines = table.splitlines()
    assert legend == "varied: t of disease; * marks what no other row beats" and len(lines) == len(curves.points)
    place = heading.index("loss")
    assert all(line[place - 1] == " " and line[place] != " " for line in lines)
    assert sum(" *" in line for line in lines) == len(curves.front) > 0 and len(remarks.splitlines()) == len(VALUES)


def test_folder_is_private_and_the_picture_is_a_picture(curves: Frontier, tmp_path: Path) -> None:
    save_frontier(curves, tmp_path / "f")
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "f").iterdir()}
    assert modes == {"frontier.json": 0o600, "frontier.csv": 0o600, "frontier.svg": 0o600}
    lines = list(csv.DictReader((tmp_path / "f" / "frontier.csv").read_text(encoding="utf-8").splitlines()))
    assert [line["front"] == "true" for line in lines] == [point.front for point in curves.points]
    text = (tmp_path / "f" / "frontier.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(text.encode()).tag == "{http://www.w3.org/2000/svg}svg"
    assert "<script" not in text and re.findall(r"(?:href|src)=|url\(\s*['\"]?http", text) == []
    for part in (
        "stack_and_deal",
        "sabre(fill=knn)",
        "loss (General Loss Metric A)",
        "t of disease measured (smaller is safer)",
    ):
        assert part in text, part
    with pytest.raises(ck.BadInput, match="exists already"):
        save_frontier(curves, tmp_path / "f")
    save_frontier(curves, tmp_path / "f", force=True)


def test_names_from_the_data_cannot_change_the_picture() -> None:
    point = {"method": "<script>alert(1)</script>\x07", "level": 1.0, "loss": 0.5, "front": True, "requested": 3}
    text = frontier_svg([point], level='k"><b>', higher_is_safer=True, title='"><b>')
    assert "<script" not in text and "<b>" not in text and "larger is safer" in text
    assert frontier_svg([], level="t", higher_is_safer=False, title="nothing").startswith("<svg")


# Command line --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_csv(hospital(80), tmp_path / "t.csv")
    keys = {**hospital_recipe("t.csv"), "method": "mondrian", "seed": SEED}
    keys["models"] = [{"k_anonymity": {"k": 3}}, {"t_closeness": {"column": "disease", "t": 0.4}}]
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(keys), encoding="utf-8")
    return tmp_path / "recipe.yaml"


def closeknit(*words: object) -> Any:
    return CliRunner().invoke(app, ["frontier", *map(str, words)])


def test_command_prints_and_saves(recipe: Path) -> None:
    shown = closeknit(recipe, "--vary", "t=0.3,0.4", "--methods", "incognito", "-o", "f.private/")
    assert shown.exit_code == 0, shown.output
    for part in (
        "varied: t of disease",
        "mondrian",
        "incognito",
        "private, do not share",
        "f.private/  frontier.json, frontier.csv",
    ):
        assert part in shown.stdout, part
    read_back = Frontier.from_json((recipe.parent / "f.private" / "frontier.json").read_text(encoding="utf-8"))
    again = frontier_recipe(Recipe.read(recipe), ["incognito"], vary={"t": [0.3, 0.4]})
    assert timeless(read_back) == timeless(again) and read_back.seed == SEED
    refused = closeknit(recipe, "-o", "f.private/")
    assert refused.exit_code == 2 and "exists already" in refused.output


def test_command_gives_json_and_its_status(recipe: Path) -> None:
    shown = closeknit(recipe, "--vary", "k=2,100", "--methods", "", "--match", "loss", "--jobs", "1", "--json")
    found = json.loads(shown.stdout)
    assert shown.exit_code == 0 and [point["ok"] for point in found["points"]] == [True, False]
    assert closeknit(recipe, "--vary", "k=100", "--methods", "").exit_code == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--vary", "t="], "--vary 't=' cannot be read; separate values by commas: t=0.1,0.2"),
        (["--vary", "t=high"], "t='high' is not a finite number"),
        (["--vary", "k=2.5"], "k=2.5 is not a whole number"),
        (["--match", "price"], "match='price' is not measured here"),
        (["--methods", "sabble"], "method 'sabble' is unknown"),
    ],
)
def test_a_mistake_is_one_sentence(recipe: Path, words: list[str], sentence: str) -> None:
    shown = closeknit(recipe, *words)
    assert shown.exit_code == 2 and sentence in shown.output and "Traceback" not in shown.output


def test_suppressed_rows_and_forms_are_those_of_anonymize() -> None:
    models, check = [ck.KAnonymity(3)], hospital(90)
    found = ck.frontier(check, hospital_schema(), models, ["incognito"], vary={"k": [3]}, suppress=0.3, seed=SEED)
    release = ck.anonymize(check, hospital_schema(), models, ck.Incognito(), suppress=0.3, seed=SEED)
    assert found.points[0].suppressed == release.certificate.suppressed > 0
    diverse = [ck.LDiversity("disease", 3, kind="frequency")]
    found = ck.frontier(check, hospital_schema(), diverse, ["mondrian"], vary={"l": [2, 3]}, form="bucketized", seed=SEED)
    release = ck.anonymize(check, hospital_schema(), diverse, ck.Mondrian(), form="bucketized", seed=SEED)
    assert found.points[1].loss == release.certificate.loss


def test_a_method_for_another_form_is_a_row() -> None:
    found = ck.frontier(hospital(60), hospital_schema(), MODELS, ["mondrian", "anatomy"], vary={"t": [0.5]}, seed=SEED)
    assert [point.ok for point in found.points] == [True, False]
    assert "k_anonymity has no meaning in the form 'bucketized'" in str(found.points[1].reason)
    with pytest.raises(ck.BadInput, match="column that is not sensitive"):
        rivals: Any = ["mondrian", ("sabre", [ck.TCloseness("age", 0.2)])]
        ck.frontier(hospital(60), hospital_schema(), MODELS, rivals, vary={"t": [0.5]}, seed=SEED)


def test_a_guarantee_about_a_whole_release_can_be_varied() -> None:
    models = [ck.DiverseSlicing("disease", 2)]
    found = ck.frontier(hospital(80), hospital_schema(), models, ["slicing"], vary={"l": [2, 3]}, seed=SEED)
    assert [point.ok for point in found.points] == [True, True] and [p.parameter for p in found.points] == ["l of disease"] * 2
    assert [point.level for point in found.points] == [2, 3]  # attested: what was asked


def test_a_level_that_is_attested_cannot_be_matched() -> None:
    cells = {"age": [30] * 4 + [60] * 2, "ill": ["flu"] * 4 + ["gout"] * 2, "who": ["a", "a", "b", "b", "c", "d"]}
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()}, person="who")
    with pytest.raises(ck.BadInput, match="it is attested, or has no bound"):
        ck.frontier(Columns.of(cells), schema, [ck.KAnonymity(2)], ["mondrian", "stack_and_deal"], match="k")

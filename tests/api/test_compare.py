"""Methods compared: sorted, measured, refusals as rows with their sentence, and a private folder or nothing."""

from __future__ import annotations

import csv
import dataclasses
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api import compare_recipe, save_comparison
from closeknit.api.comparing import list_methods
from closeknit.api.recipe import Recipe
from closeknit.api.resource_meter import Meter
from closeknit.cli.commands import app
from closeknit.core.certificate import Guarantee, WorstClass
from closeknit.core.comparison import Comparison, MeasuredLevel
from closeknit.core.method import Method
from closeknit.core.table import Outcome
from closeknit.datasets import hospital, hospital_recipe, hospital_schema
from closeknit.io.files import write_csv
from closeknit.methods import REGISTRY

SEED = 2**100
ROWS = 240
MODELS = [ck.KAnonymity(4), ck.TCloseness("disease", 0.3)]
METHODS: list[Any] = ["burel", "stack_and_deal", ck.Sabre(fill="knn"), "sabre"]


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return ck.compare(hospital(ROWS), hospital_schema(), MODELS, METHODS, seed=SEED)


def test_least_loss_first_and_refusals_last(comparison: Comparison) -> None:
    kept = [row for row in comparison.methods if row.ok]
    assert {row.name for row in kept} == {"stack_and_deal", "sabre(fill=knn)", "sabre"}
    losses = [row.loss.a for row in kept if row.loss]
    assert losses == sorted(losses) and len(losses) == 3
    assert comparison.methods[:3] == tuple(kept) and comparison.best == kept[0] and comparison.ok
    assert comparison.rows == ROWS and comparison.seed == SEED


def test_a_refusal_is_a_row_with_its_sentence(comparison: Comparison) -> None:
    row = comparison.methods[-1]
    assert row.name == "burel" and not row.ok
    assert (row.loss, row.classes, row.suppressed, row.measured, row.joint) == (None, None, None, (), None)
    with pytest.raises(ck.BadInput) as refusal:
        ck.anonymize(hospital(ROWS), hospital_schema(), MODELS, ck.Burel())
    assert row.reason == str(refusal.value) and row.reason in str(comparison)


@pytest.mark.parametrize("method", [ck.StackAndDeal(), ck.Sabre(fill="knn")], ids=lambda method: str(method.name))
def test_the_same_as_anonymize_with_the_same_seed(comparison: Comparison, method: Any) -> None:
    certificate = ck.anonymize(hospital(ROWS), hospital_schema(), MODELS, method, seed=SEED).certificate
    given = {f.name: getattr(method, f.name) for f in dataclasses.fields(method) if getattr(method, f.name) != f.default}
    (row,) = [row for row in comparison.methods if row.method == {method.name: given}]
    assert (row.loss, row.classes, row.suppressed) == (certificate.loss, certificate.classes, certificate.suppressed)
    assert certificate.joint and row.joint == certificate.joint.measured
    assert [(measured.guarantee, measured.level) for measured in row.measured] == [
        (p.text, p.measured) for p in certificate.guarantees
    ]
    assert comparison.guarantees == tuple(guarantee.text for guarantee in certificate.guarantees)


def test_json_is_read_back(comparison: Comparison) -> None:
    assert Comparison.from_json(comparison.to_json()) == comparison
    with pytest.raises(ck.BadInput, match=r"x\.json: the comparison has no key 'closeknit'"):
        Comparison.from_json("{}", "x.json")
    with pytest.raises(ck.BadInput, match=r"^x\.json: is not valid JSON at line 1"):  # no key is to blame
        Comparison.from_json("{bad", "x.json")
    with pytest.raises(ck.BadInput, match="format 3"):
        Comparison.from_json(comparison.to_json().replace('"format": 2', '"format": 3'))


def test_printed_table_is_aligned_and_says_what_is_meant(comparison: Comparison) -> None:
    legend, table, refusals = str(comparison).split("\n\n")
    assert legend.splitlines() == [f"({i}) {guarantee}" for i, guarantee in enumerate(comparison.guarantees, 1)]
    heading, *lines = table.splitlines()
    assert [line.split()[0] for line in lines] == [row.name for row in comparison.methods]
    for name in ("loss", "(1)", "(2)", "classes", "suppressed", "joint", "seconds", "MB"):
        place = heading.index(name)
        assert all(line[place - 1] == " " and line[place] != " " for line in lines), name
    assert refusals.startswith("burel has no release: ")


def test_how_a_level_is_said() -> None:
    requested: dict[str, Any] = {"model": {}, "text": "p", "column": None, "requested": "<= 1", "met": True}
    worst = WorstClass(cells={}, rows=1)
    said = [
        MeasuredLevel.of(Guarantee(**requested, **more)).text
        for more in (
            {"status": "attested"},
            {"status": "recomputable"},
            {"status": "recomputable", "measured": 0.25, "worst": worst},
        )
    ]
    assert said == ["attested", "no limit", "0.25"]


def test_time_and_memory_are_measured(comparison: Comparison) -> None:
    assert all(row.seconds > 0 for row in comparison.methods)
    assert all(row.megabytes is None or row.megabytes >= 0 for row in comparison.methods)


def test_a_peak_that_is_gone_again_is_seen() -> None:
    with Meter() as large:
        np.ones(5_000_000).sum()
    with Meter() as small:
        sum(range(10))
    if large.megabytes is None or small.megabytes is None:
        pytest.skip("this system does not report the peak of its memory")
    assert 35 < large.megabytes < 80 and small.megabytes < 20


def test_where_the_peak_is_unknown_nothing_is_claimed(tmp_path: Path) -> None:
    with Meter(tmp_path / "no" / "such") as meter:
        pass
    assert meter.megabytes is None


def test_left_out_methods_are_those_that_serve() -> None:
    assert {"stack_and_deal", "sabre"} <= set(list_methods(MODELS)) and "burel" not in list_methods(MODELS)
    likeness = [ck.BetaLikeness("disease", 2)]
    assert "burel" in list_methods(likeness) and not {"sabre", "stack_and_deal"} & set(list_methods(likeness))
    found = ck.compare(hospital(60), hospital_schema(), [*MODELS, *likeness], seed=SEED)
    alike = {name for name, method in REGISTRY.items() if method.usual_form == "generalized" and method.competes}
    assert {row.name for row in found.methods} == alike, "k means nothing where cells are exact"
    assert [row.ok for row in found.methods] == sorted((row.ok for row in found.methods), reverse=True)
    assert all(row.ok or row.reason for row in found.methods)


def test_guarantees_that_no_method_keeps_are_rows() -> None:
    found = ck.compare(hospital(30), hospital_schema(), [ck.KAnonymity(31)], ["stack_and_deal", "mondrian"])
    assert not found.ok and found.best is None
    assert [row.reason.split(":")[0] for row in found.methods if row.reason] == ["k-anonymity, k = 31 cannot be met"] * 2


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no models": ({"models": []}, "no guarantee is requested"),
    "a column that is not sensitive": ({"models": [ck.LDiversity("age", 2)]}, "column 'age': l_diversity is requested"),
    "an unknown method": ({"methods": ["sabre", "sabble"]}, "method 'sabble' is unknown; did you mean 'sabre'"),
    "a method unlike any": ({"methods": ["arx"]}, "method 'arx' is unknown; choose one of: .*burel, .*stack_and_deal"),
    "an unknown parameter": ({"methods": [{"sabre": {"fil": "knn"}}]}, "has no parameter 'fil'; did you mean 'fill'"),
    "no method": ({"methods": []}, "there is no method to compare; known are: .*burel"),
    "a class instead of an instance": ({"methods": [ck.Sabre]}, "the method Sabre is not called; write Sabre"),
    "a share over 1": ({"suppress": 2}, "suppress=2 is out of range"),
    "a seed below 0": ({"seed": -1}, "seed=-1 is too small"),
    "a column without a role": ({"data": {name: [1] for name in [*hospital(1), "shoe"]}}, "column 'shoe': has no role"),
    "no rows": ({"data": {name: [] for name in hospital(1)}}, "the table has no rows"),
}


@pytest.mark.parametrize("fault", BAD)
def test_what_is_wrong_with_the_request_is_no_row(fault: str) -> None:
    changes, says = BAD[fault]
    requested = {"data": hospital(40), "models": MODELS, "methods": ["stack_and_deal"], **changes}
    if isinstance(requested["data"], dict):
        requested["data"] = type(hospital(1)).of(requested["data"])
    with pytest.raises(ck.BadInput, match=says):
        ck.compare(requested.pop("data"), hospital_schema(), requested.pop("models"), requested.pop("methods"), **requested)


class Faulty(Method):
    """A method with a bug."""

    name = "faulty"
    scale = "plan"

    def run(self, *_: object) -> Outcome:
        raise ZeroDivisionError


def test_a_bug_is_not_a_refusal() -> None:
    faulty = dataclasses.dataclass(frozen=True)(Faulty)()
    with pytest.raises(ZeroDivisionError):
        ck.compare(hospital(40), hospital_schema(), MODELS, [faulty])


def test_a_name_alone_an_instance_and_a_form_are_one_method() -> None:
    found = ck.compare(
        hospital(60), hospital_schema(), [ck.KAnonymity(3)], [ck.StackAndDeal(), "stack_and_deal", {"stack_and_deal": {}}]
    )
    assert [row.name for row in found.methods] == ["stack_and_deal"]
    assert [row.name for row in ck.compare(hospital(60), hospital_schema(), [ck.KAnonymity(3)], "stack_and_deal").methods]


def test_warnings_are_printed_once() -> None:
    table = type(hospital(1)).of({"age": [30, 31, 40, 44] * 5, "disease": ["flu"] * 20})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()})
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        ck.compare(table, schema, [ck.KAnonymity(2)], ["stack_and_deal", "mondrian"], seed=5)
    assert sorted(str(warning.message)[:11] for warning in reported) == ["column 'dis", "the seed is"]
    assert {Path(warning.filename).name for warning in reported} == {Path(__file__).name}


def test_progress_goes_from_0_to_1() -> None:
    seen: list[tuple[str, float]] = []
    ck.compare(
        hospital(60),
        hospital_schema(),
        [ck.KAnonymity(3)],
        ["stack_and_deal", "mondrian"],
        progress=lambda *at: seen.append(at),
    )
    shares = [share for _, share in seen]
    assert shares == sorted(shares) and (shares[0], shares[-1]) == (0.0, 1.0)
    assert {"reading", "stack_and_deal: writing", "mondrian: writing", "done"} <= {what for what, _ in seen}


def test_persons_and_suppressed_rows_are_reported() -> None:
    table = type(hospital(1)).of(
        {"age": [*range(30, 60), 9999], "who": [*range(31)], "disease": ["flu", "gout"] * 15 + ["flu"]}
    )
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()}, person="who")
    (counted,) = ck.compare(table, schema, [ck.KAnonymity(3)], ["stack_and_deal"]).methods
    assert counted.measured[0].text == "attested" and counted.measured[0].level is None
    (row,) = ck.compare(table, schema, [ck.KAnonymity(3)], ["mondrian"], suppress=0.1, seed=SEED).methods
    expected = ck.anonymize(table, schema, [ck.KAnonymity(3)], ck.Mondrian(), suppress=0.1, seed=SEED).certificate
    assert row.suppressed == expected.suppressed > 0


# -- the folder and the command ------------------------------------------------------------------------------------------


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    write_csv(hospital(120), tmp_path / "t.csv")
    forms = hospital_recipe("t.csv")
    forms["models"] = [{"k_anonymity": {"k": 3}}, {"t_closeness": {"column": "disease", "t": 0.4}}]
    file = tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump({**forms, "method": {"sabre": {"fill": "sweep"}}, "seed": SEED}), encoding="utf-8")
    yield file


def closeknit(*words: object) -> Any:
    return CliRunner().invoke(app, ["compare", *map(str, words)])


def standing(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()} - {"t.csv", "recipe.yaml"}


def test_folder_is_private_and_holds_record_lines_and_picture(recipe: Path) -> None:
    shown = closeknit(recipe, "--methods", "stack_and_deal,burel", "-o", "compare.private/")
    assert shown.exit_code == 0, shown.output
    for part in (
        "stack_and_deal",
        "sabre(fill=sweep)",
        "(2) t-closeness of disease",
        "burel has no release",
        "private, do not share",
    ):
        assert part in shown.stdout, part
    folder = recipe.parent / "compare.private"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()} == {
        "comparison.json": 0o600,
        "comparison.csv": 0o600,
        "comparison.svg": 0o600,
    }
    assert "t of disease measured (smaller is safer)" in (folder / "comparison.svg").read_text(encoding="utf-8")
    read = Comparison.from_json((folder / "comparison.json").read_text(encoding="utf-8"))
    lines = list(csv.DictReader((folder / "comparison.csv").read_text(encoding="utf-8").splitlines()))
    assert [line["method"] for line in lines] == [row.name for row in read.methods]
    assert read.best and read.best.loss and float(lines[0]["loss"]) == read.best.loss.a
    assert lines[-1]["reason"] == read.methods[-1].reason and lines[-1]["loss"] == ""
    assert f"measured: {read.guarantees[1]}" in lines[0]
    assert standing(recipe.parent) == {"compare.private"}


def test_gain_of_an_adversary_who_knows_the_method(recipe: Path) -> None:
    words = [recipe, "--methods", "stack_and_deal,incognito,burel", "--against", "known-algorithm", "--runs", 40]
    shown = closeknit(*words, "--neighbours", 60, "-o", "c")
    assert shown.exit_code == 0, shown.output
    assert "gain" in shown.stdout and "known_algorithm.svg" in shown.stdout
    read = Comparison.from_json((recipe.parent / "c" / "comparison.json").read_text(encoding="utf-8"))
    assert read.against == "known-algorithm"
    rows = {row.name: row for row in read.methods}
    assert rows["burel"].known_algorithm is None and rows["burel"].front is None
    done = [row for row in read.methods if row.known_algorithm]
    for row in done:
        found = row.known_algorithm
        assert found and found.runs <= 40 and found.neighbours == 60 and 0 <= found.low <= found.high <= 0.5
        beaten = any(
            other.loss.a <= row.loss.a
            and other.known_algorithm.level <= found.level
            and (other.loss.a, other.known_algorithm.level) != (row.loss.a, found.level)
            for other in done
            if other.loss and other.known_algorithm and row.loss
        )
        assert row.front is not beaten
    assert rows["incognito"].known_algorithm.seed_known < rows["stack_and_deal"].known_algorithm.seed_known  # type: ignore[union-attr]
    lines = list(csv.DictReader((recipe.parent / "c" / "comparison.csv").read_text(encoding="utf-8").splitlines()))
    assert {line["front"] for line in lines} <= {"True", "False", "true", "false", ""} and "known algorithm: high" in lines[0]
    assert closeknit(*words, "-o", "c", "--force").exit_code == 0
    assert closeknit(recipe, "--against", "everyone").exit_code == 2


def test_recipe_method_first_and_json(recipe: Path) -> None:
    shown = closeknit(recipe, "--methods", "sabre: {fill: knn}, burel", "--json")
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)
    assert found["seed"] == SEED
    methods = [row["method"] for row in found["methods"]]
    assert {"sabre": {"fill": "sweep"}} in methods and {"sabre": {"fill": "knn"}} in methods and len(methods) == 3
    assert standing(recipe.parent) == set()
    alone = compare_recipe(Recipe.read(recipe), [])
    assert [row.name for row in alone.methods] == ["sabre(fill=sweep)"]


def test_status_1_where_no_method_keeps_the_guarantees(recipe: Path) -> None:
    recipe.write_text(recipe.read_text(encoding="utf-8").replace("k: 3", "k: 500"), encoding="utf-8")
    shown = closeknit(recipe, "--methods", "stack_and_deal", "-o", "c")
    assert shown.exit_code == 1 and "sabre(fill=sweep) has no release: k-anonymity, k = 500 cannot be met" in shown.stdout
    assert standing(recipe.parent) == {"c"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--methods", "sabre,sabble"), "method 'sabble' is unknown; did you mean 'sabre'?"),
        (("--methods", "sabre: {fill: swoop}"), "fill='swoop' is unknown"),
        (("--methods", "sabre,{"), "--methods 'sabre,{' cannot be read"),
        (("-o", "no/such/folder"), "does not exist"),
        (("-o", "t.csv"), "it exists already"),
        (("-o", "t.csv", "--force"), "this is not a folder"),
    ],
)
def test_nothing_is_written_on_a_mistake(recipe: Path, words: tuple[str, ...], says: str) -> None:
    before = (recipe.parent / "t.csv").read_bytes()
    shown = closeknit(
        recipe, *(words if "--methods" in words else ("--methods", "", *words)), *(() if "-o" in words else ("-o", "c"))
    )
    assert shown.exit_code == 2 and shown.stdout == ""
    (sentence,) = shown.stderr.splitlines()
    assert sentence.startswith("closeknit: ") and says in sentence
    assert standing(recipe.parent) == set() and (recipe.parent / "t.csv").read_bytes() == before


def test_only_a_comparison_is_ever_replaced(comparison: Comparison, tmp_path: Path) -> None:
    save_comparison(comparison, tmp_path / "c")
    with pytest.raises(ck.BadInput, match="exists already"):
        save_comparison(comparison, tmp_path / "c")
    save_comparison(comparison, tmp_path / "c", force=True)
    assert standing(tmp_path / "c") == {"comparison.json", "comparison.csv", "comparison.svg"}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with pytest.raises(ck.BadInput, match=r"contains 'thesis.txt', which would be deleted"):
        save_comparison(comparison, tmp_path / "other", force=True)
    assert standing(tmp_path) == {"c", "other"}


def test_additional_guarantees_of_a_method_have_no_column() -> None:
    table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    models = [ck.LDiversity("disease", 2, "frequency")]
    comparison = ck.compare(table, schema, models, [ck.Anatomy(3), ck.Slicing(l=2), ck.Mondrian()])
    assert [len(row.measured) for row in comparison.methods] == [1, 1, 1]
    assert all(len(record) == len(comparison.records()[0]) for record in comparison.records())


@pytest.mark.parametrize("methods", [ck.Sabre, 5])
def test_compare_of_something_that_is_no_list(methods):
    table, schema = ck.datasets.hospital(50), ck.datasets.hospital_schema()
    with pytest.raises(ck.BadInput):
        ck.compare(table, schema, [ck.KAnonymity(2), ck.TCloseness("stay", 0.5)], methods, seed=SEED)


def test_compare_of_one_mapping_keeps_its_parameters():
    table, schema = ck.datasets.hospital(50), ck.datasets.hospital_schema()
    models = [ck.KAnonymity(2), ck.TCloseness("stay", 0.5)]
    try:
        rows = ck.compare(table, schema, models, {"sabre": {"fill": "knn"}}, seed=SEED).methods
    except ck.BadInput:
        return
    assert [row.name for row in rows] == ["sabre(fill=knn)"]


@pytest.mark.parametrize("junk", ["2024-13-45", "!!int x"])
def test_methods_that_yaml_cannot_read_are_refused_in_a_sentence(recipe: Path, junk: str) -> None:
    found = closeknit(recipe, "--methods", junk)
    assert found.exit_code == 2, found.exception


def test_force_never_deletes_a_table_next_to_a_comparison(comparison: Comparison, recipe: Path) -> None:
    save_comparison(comparison, recipe.parent / "c")
    moved = [file.rename(recipe.parent / "c" / file.name) for file in (recipe, recipe.with_name("t.csv"))]
    found = closeknit(moved[0], "--methods", "mondrian", "-o", recipe.parent / "c", "--force")
    assert found.exit_code == 2 and all(file.exists() for file in moved)

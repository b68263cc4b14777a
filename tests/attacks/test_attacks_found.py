"""Attacks that once succeeded: recipes that ended in a traceback, forged certificates, cells that disclosed too much."""

from __future__ import annotations

import copy
import csv
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.publishing import list_notes
from closeknit.api.recipe import models_from
from closeknit.cli.commands import app
from closeknit.core.measurement import Measurement
from closeknit.core.schema import Schema
from closeknit.core.strict_json import json_text
from closeknit.io.canonical import content_hash
from closeknit.io.files import read
from closeknit.io.folders import save_folders, write_inside

SEED = 2**80
RECIPE: dict[str, Any] = {
    "data": "people.csv",
    "schema": {"quasi": {"age": "numeric", "zip": "prefix"}, "sensitive": {"pay": "numeric", "ill": {"csv": "ill.csv"}}},
    "models": [{"k_anonymity": {"k": 3}}],
    "method": {"stack_and_deal": {"dealing": "literal"}},
    "seed": SEED,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{20 + i % 7},{1000 + i % 5},{i % 4 * 100},{'abc'[i % 3]}" for i in range(24)]
    Path("people.csv").write_text("\n".join(["age,zip,pay,ill", *rows]) + "\n", encoding="utf-8")
    Path("ill.csv").write_text("a;x;*\nb;x;*\nc;y;*\n", encoding="utf-8")
    return tmp_path


def run(recipe: str | dict[str, Any]) -> Any:
    Path("recipe.yaml").write_text(recipe if isinstance(recipe, str) else yaml.safe_dump(recipe), encoding="utf-8")
    return CliRunner().invoke(app, ["anonymize", "recipe.yaml", "-o", "out"])


def with_value(path: list[Any], value: object) -> dict[str, Any]:
    recipe: Any = copy.deepcopy(RECIPE)
    place = recipe
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return recipe  # type: ignore[no-any-return]


def refused(result: Any) -> str:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2 and len(result.output.strip().splitlines()) == 1
    assert not Path("out").exists() and not Path("out.private").exists()
    return str(result.output)


@pytest.mark.parametrize("role", ["identifier", "plain", "allow_unique", "missing"])
def test_a_role_left_empty_lists_nothing_and_a_number_is_refused(folder: Path, role: str) -> None:
    refused(run(with_value(["schema", role], 5)))
    assert run(with_value(["schema", role], None)).exit_code == 0


MODELS = [
    {"t_closeness": {"column": ["pay"], "t": 0.5}},
    {"t_closeness": {"column": None, "t": 0.5}},
    {"l_diversity": {"column": {"pay": 2}, "l": 2}},
    {"beta_likeness": {"column": "pay", "beta": "1e400"}},
    {"delta_disclosure": {"column": "pay", "delta": "1e999999999"}},
    {"l_diversity": {"column": "pay", "l": "1e400", "kind": "entropy"}},
]


@pytest.mark.parametrize("model", MODELS)
def test_a_model_with_a_wrong_column_or_an_endless_number_is_refused(folder: Path, model: dict[str, Any]) -> None:
    refused(run(with_value(["models"], [{"k_anonymity": {"k": 3}}, model])))


DEEP: Any = ["a", "b", "c"]
for depth in range(300):
    DEEP = {f"n{depth}": DEEP}

PLACES: list[tuple[list[Any], object]] = [
    (["schema", "person"], ""),
    (["data"], {"path": "people.csv", "delimiter": 5}),
    (["data"], {"path": "people.csv", "quote": ["'"]}),
    (["data"], "\0.csv"),
    (["schema", "quasi", "age"], {"numeric": {"lo": 0, "hi": "x"}}),
    (["schema", "quasi", "age"], {"numeric": {"lo": 0, "hi": 1e-13, "bins": 4}}),
    (["schema", "sensitive", "ill"], {"csv": "ill.csv", "encoding": 5}),
    (["schema", "sensitive", "ill"], {"csv": "ill.csv", "delimiter": "\n"}),
    (["schema", "sensitive", "ill"], {"csv": "\0"}),
    (["schema", "sensitive", "ill"], {"tree": DEEP}),
    (["schema", "importance"], {"age": 1.7e308, "zip": 1.7e308}),
    (["method"], {"stack_and_deal": {"column": {"pay": 1}}}),
]


@pytest.mark.parametrize(("path", "value"), PLACES)
def test_a_wrong_value_anywhere_is_one_sentence(folder: Path, path: list[Any], value: object) -> None:
    refused(run(with_value(path, value)))


YAMLS = [
    "output: 2024-13-45\n",
    "output: !!int x\n",
    "output: !!timestamp x\n",
    "output: 0x_\n",
    "output: " + "[" * 3000 + "\n",
]


@pytest.mark.parametrize("line", YAMLS)
def test_yaml_that_its_reader_chokes_on_is_one_sentence(folder: Path, line: str) -> None:
    assert "not valid YAML" in refused(run(yaml.safe_dump(RECIPE) + line))


def test_a_tree_that_contains_itself_is_refused(folder: Path) -> None:
    assert "deeper" in refused(run(yaml.safe_dump(RECIPE).replace("csv: ill.csv", "tree: &again {x: *again}")))


def test_a_second_list_of_models_does_not_replace_the_first(folder: Path) -> None:
    assert "'models' occurs twice" in refused(run(yaml.safe_dump(RECIPE) + "models:\n- k_anonymity: {k: 1}\n"))


def test_bounds_that_yaml_reads_as_text_are_numbers(folder: Path) -> None:
    recipe = yaml.safe_dump(with_value(["schema", "quasi", "age"], {"numeric": {"lo": 5, "hi": 9999}})).replace("9999", "1e3")
    assert run(recipe).exit_code == 0
    assert ck.numeric("1/3", "1/2", step="1/12").bounds == (1 / 3, 1 / 2)


@pytest.mark.parametrize("encoding", ["punycode", "unicode_escape"])
def test_an_encoding_that_gives_no_text_is_one_sentence(folder: Path, encoding: str) -> None:
    Path("odd.csv").write_bytes(b"a,b\n\\ud800,2\n")
    refused(CliRunner().invoke(app, ["inspect", "odd.csv", "--encoding", encoding]))


def small(values: list[object], kind: Any, **more: Any) -> ck.Release:
    table = pa.table({"x": values, "s": [*"abcabc"]})
    return ck.anonymize(table, Schema(quasi={"x": kind}, sensitive={"s": ck.flat()}), [ck.KAnonymity(2)], seed=SEED, **more)


def test_numbers_whose_distance_is_no_number_are_refused() -> None:
    with pytest.raises(ck.BadInput, match="must lie between"):
        small([-1.7e308, 1.7e308, 1.0, 2.0, 3.0, 4.0], ck.numeric())


def test_a_number_with_thousands_of_leading_zeros_is_read() -> None:
    assert small(["0" * 5000 + "1", "2", "3", "4", "5", "6"], ck.numeric()).certificate.ok


def test_a_code_too_long_to_be_masked_is_refused() -> None:
    with pytest.raises(ck.BadInput, match="5,000 characters"):
        small(["1" * 5000, "2", "3", "4", "5", "6"], ck.prefix())


def cells(release: ck.Release) -> set[object]:
    return set(release.columns["x"].cells())


def test_a_snapped_cell_at_the_upper_bound_is_as_wide_as_the_others() -> None:
    assert cells(small([10] * 6, ck.numeric(0, 10, step=5), form=ck.generalized(snap=True))) == {"[5, 10]"}


def test_snapped_cells_stand_on_the_grid_and_hold_their_values() -> None:
    tenths = small([0.3] * 6, ck.numeric(step=0.1), form=ck.generalized(snap=True))
    tiny = small([3e-14] * 6, ck.numeric(step=1e-14), form=ck.generalized(snap=True))
    assert cells(tenths) == {"[0.3, 0.4]"} and cells(tiny) == {"[3e-14, 4e-14]"}


def test_a_pickled_release_can_still_be_saved(tmp_path: Path) -> None:
    release = small([1, 2, 3, 4, 5, 6], ck.numeric())
    again = pickle.loads(pickle.dumps(release))
    again.save(tmp_path / "out")
    again.to_parquet(tmp_path / "again.parquet")
    assert ck.audit(tmp_path / "out" / "release.csv", certificate=tmp_path / "out" / "certificate.json").ok


def test_force_replaces_nothing_but_a_release(tmp_path: Path) -> None:
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(ck.BadInput, match=r"contains 'chapter.txt', which would be deleted"):
        small([1, 2, 3, 4, 5, 6], ck.numeric()).save(precious, force=True)
    assert (precious / "chapter.txt").exists()


Edit = Callable[[dict[str, Any]], object]


def forged(folder: Path, rows: list[list[str]], columns: dict[str, Any], models: list[Any], edit: Edit | None = None) -> Any:
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
    assert forged(tmp_path, HONEST, FLAT, K4).exit_code == 0


KINDS = [
    ({"numeric": {"lo": 0, "hi": 100, "bins": 1}}, ["10", "11", "90", "95"]),
    ({"intervals": {"edges": [0, 100]}}, ["10", "11", "90", "95"]),
    ({"date": {"levels": ["decade"]}}, ["2001-01-01", "2001-01-02", "2009-01-01", "2009-01-02"]),
]


@pytest.mark.parametrize(("kind", "secrets"), KINDS)
def test_secrets_finer_than_what_they_are_judged_on_are_found(tmp_path: Path, kind: object, secrets: list[str]) -> None:
    rows = [[age, secret] for age, secret in zip(["[1, 2]", "[1, 2]", "[3, 4]", "[3, 4]"], secrets, strict=True)]
    columns = {"quasi": {"age": "numeric"}, "sensitive": {"pay": kind}}
    found = forged(tmp_path, rows, columns, [{"k_anonymity": {"k": 2}}, {"t_closeness": {"column": "pay", "t": 0}}])
    assert found.exit_code == 1 and "is more precise than" in found.output


def test_markers_in_a_certificate_do_not_join_classes(tmp_path: Path) -> None:
    def nameless(certificate: dict[str, Any]) -> None:
        certificate["guarantees"][0]["worst"] = None

    rows = [[age, "flu"] for age in ("30", "31", "32", "33")]
    found = forged(tmp_path, rows, {**FLAT, "missing": ["30", "31", "32", "33"]}, K4, nameless)
    assert found.exit_code == 1 and "'missing'" in found.output and "no worst class" in found.output


def test_without_a_quasi_column_nothing_is_called_ok(tmp_path: Path) -> None:
    found = forged(tmp_path, [["a"], ["b"], ["c"], ["d"]], {"sensitive": {"pay": "flat"}}, K4)
    assert found.exit_code == 2 and "no column is quasi" in found.output


def test_an_audit_names_the_columns_that_nothing_protects(tmp_path: Path) -> None:
    rows = [[*row, f"{i} Main St"] for i, row in enumerate(HONEST)]
    found = forged(tmp_path, rows, {**FLAT, "plain": ["address"]}, K4)
    assert "column 'address' is published as it is, without any protection" in found.output


@pytest.mark.parametrize("suppressed", [-3, 10**400])
def test_impossible_counts_are_refused(tmp_path: Path, suppressed: int) -> None:
    assert forged(tmp_path, HONEST, FLAT, K4, lambda record: record.update(suppressed=suppressed)).exit_code == 2


def test_a_guarantee_about_a_column_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    def elsewhere(certificate: dict[str, Any]) -> None:
        certificate["guarantees"].append({**certificate["guarantees"][0], "model": {"t_closeness": {"column": "x", "t": 1}}})

    found = forged(tmp_path, HONEST, FLAT, K4, elsewhere)
    assert found.exit_code == 2 and "not sensitive" in found.output


def test_a_guarantee_listed_under_another_column_is_found(tmp_path: Path) -> None:
    found = forged(tmp_path, HONEST, FLAT, K4, lambda record: record["guarantees"][0].update(column="pay"))
    assert found.exit_code == 1


def test_a_column_name_cannot_write_lines_of_its_own(tmp_path: Path) -> None:
    name = "pay\nok\x1b[2K"
    rows = [["[1, 2]", value] for value in "aabb"]
    columns = {"quasi": {"age": "numeric"}, "sensitive": {name: "flat"}}
    found = forged(tmp_path, rows, columns, [*K4, {"l_diversity": {"column": name, "l": 2}}])
    assert "\x1b" not in found.output and found.output.splitlines().count("ok") == 1


def test_a_run_that_finds_a_release_when_it_is_done_does_not_replace_it(tmp_path: Path) -> None:
    out, private = tmp_path / "out", tmp_path / "out.private"

    def slow(folder: Path) -> None:
        save_folders(out, private, lambda f: write_inside(f / "first", b"1"), lambda f: write_inside(f / "first", b"1"))
        write_inside(folder / "second", b"2")

    with pytest.raises(ck.BadInput, match="exists already"):
        save_folders(out, private, slow, lambda f: write_inside(f / "second", b"2"))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["first", "first", "out", "out.private"]

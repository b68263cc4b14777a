"""Recipes: what is wrong in any place of one is refused in one sentence, and nothing is written."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app

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
def test_yaml_that_cannot_be_parsed_is_one_sentence(folder: Path, line: str) -> None:
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


@pytest.mark.parametrize("key", ["suppress"])
def test_yes_is_no_share_of_rows(key):
    forms = {"data": "a.csv", "schema": {"quasi": {"age": "numeric"}}, "models": [{"k_anonymity": {"k": 5}}], key: True}
    with pytest.raises(ck.BadInput):
        Recipe.of(forms)


@pytest.mark.parametrize(
    ("model", "sentence"), [("k_anonimity: {k: 2}", "did you mean 'k_anonymity'"), ("k_anonymity: {k: 0}", "at least 1")]
)
def test_a_mistake_in_a_guarantee_names_the_recipe_file(tmp_path: Path, model: str, sentence: str) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(f"{{data: t.csv, schema: {{quasi: {{age: numeric}}}}, models: [{{{model}}}]}}", encoding="utf-8")
    with pytest.raises(ck.BadInput, match=sentence) as caught:
        Recipe.read(file)
    assert caught.value.file == file


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{modles: [{k_anonymity: {k: 2}}], schema: {}}", "recipe has the unknown key 'modles'; did you mean 'models'?"),
        ("{data: t.csv, schema: {}}", "recipe has no key 'models'; add it"),
        ("schema:\n\tquasi: {}", "is not valid YAML at line 2: found character '\\t' that cannot start any token"),
        ("{schema: {}, models: [{k_anonymity: {k: 0}}]}", "model 'k_anonymity': k=0 is too small"),
        ("{schema: {}, models: [{t_closeness: {column: pay, t: -1}}]}", "column 'pay': model 't_closeness': t=-1 is out of"),
    ],
)
def test_a_mistake_in_a_recipe_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "recipe.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ck.BadInput, match=re.escape(sentence)):
        Recipe.read(tmp_path / "recipe.yaml")


@pytest.mark.parametrize("command", ["anonymize", "compare", "frontier", "bound"])
def test_a_cell_that_does_not_fit_names_the_file_of_the_table(folder: Path, command: str) -> None:
    for quasi, sentence in ((["ill"], "people.csv, column 'ill', row 1: "), (["agee"], "people.csv, column 'agee': is named")):
        recipe = with_value(["schema"], {"quasi": dict.fromkeys(quasi, "numeric"), "drop": ["age", "zip", "pay"]})
        Path("wrong.yaml").write_text(yaml.safe_dump({**recipe, "models": [{"k_anonymity": {"k": 2}}]}), encoding="utf-8")
        done = CliRunner().invoke(app, [command, "wrong.yaml", *(["-o", "out"] if command == "anonymize" else [])])
        assert done.exit_code == 2 and sentence in done.stderr, done.output


def test_a_guarantee_on_an_unknown_column_names_the_recipe(folder: Path) -> None:
    refused = run({**RECIPE, "models": [{"t_closeness": {"column": "pai", "t": 0.3}}]})
    assert refused.exit_code == 2 and not Path("out").exists()
    assert "recipe.yaml, column 'pai': t_closeness is requested for a column that is not sensitive" in refused.stderr

"""`closeknit stream --engine spark`: the rows and the certificate of a program, resumed as often as needed, and refusals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.io.files import write_csv, write_parquet

Row = dict[str, Any]
RECIPE: Row = {
    "schema": {
        "identifier": ["name"],
        "quasi": {"age": {"numeric": {"lo": 0, "hi": 100}}, "sex": "flat"},
        "sensitive": {"ill": "flat"},
    },
    "stream": {"castle": {"k": 4, "delta": 40}, "position": "nr"},
    "seed": 2**100 + 7,
}
ROWS: list[Row] = [
    {"nr": i, "name": f"n{i}", "age": i * 37 % 101, "sex": "fm"[i % 2], "ill": ["flu", "gout", None][i * 7 % 3]}
    for i in range(200)
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_recipe()
    Path("inbox").mkdir()
    return tmp_path


def write_recipe(**changes: Any) -> None:
    Path("recipe.yaml").write_text(yaml.safe_dump({**RECIPE, **changes}), encoding="utf-8")


def arrive(name: str, rows: Sequence[Row]) -> None:
    """A file for the folder, finished before it has its name; its rows are in no order."""
    mixed, part = [*rows[1::2], *rows[::2]], Path("inbox", f".{name}")
    columns = Columns.of({column: [row[column] for row in mixed] for column in mixed[0]})
    if name.endswith(".ndjson"):
        part.write_text("\n\n".join(map(json.dumps, mixed)), encoding="utf-8")
    else:
        (write_csv if name.endswith(".csv") else write_parquet)(columns, part)
    part.rename(part.with_name(name))


def stream(*words: str) -> Any:
    usual = ["stream", "recipe.yaml", "--engine", "spark", "-i", "inbox", "-o", "out", "--checkpoint", "home"]
    return CliRunner().invoke(app, [*usual, *words])


def run(*words: str) -> str:
    result = stream(*words)
    assert result.exit_code == 0, result.output
    (line,) = result.stderr.splitlines()
    return str(line)


def refuse(says: str, *words: str) -> None:
    result = stream(*words)
    assert result.exit_code == 2, result.output
    (sentence,) = result.stderr.splitlines()
    assert says in sentence and "Traceback" not in sentence, sentence


def build_local() -> Any:
    return ck.Castle(Recipe.of(RECIPE).schema, k=4, delta=40, seed=RECIPE["seed"])


def publish_here(stream: Any, rows: Sequence[Row]) -> list[Row]:
    return [left for row in rows for left in stream.push({name: row[name] for name in ("name", "age", "sex", "ill")})]


def parquet(folder: str) -> list[Row]:
    return [row for file in Path(folder).glob("*.parquet") for row in pq.read_table(file).to_pylist()]


def same(one: Sequence[Row], other: Sequence[Row]) -> bool:
    return sorted(map(repr, one)) == sorted(map(repr, other))


def test_command_publishes_what_a_program_does(spark: Any, folder: Path) -> None:
    local = build_local()
    arrive("1.parquet", ROWS[:120])
    said = run("--certificate", "certificate.json", "--counters", "counters.json")
    assert "to resume, run the same command with --checkpoint home" in said and "rows in 120" in said
    left = publish_here(local, ROWS[:120])
    assert left and same(parquet("out"), left)
    assert ck.Certificate.from_json(Path("certificate.json").read_text(encoding="utf-8")) == local.certificate
    assert json.loads(Path("counters.json").read_text(encoding="utf-8"))["pending"] == local.counters.pending
    refuse("has another output", "-o", "other")
    Path("inbox", "1.parquet").unlink()  # columns are kept in the checkpoint
    arrive("2.parquet", ROWS[120:])
    said = run("--flush", "--trigger", "once", "--certificate", "certificate.json")
    left += publish_here(local, ROWS[120:])
    assert same(parquet("out"), left) and same(parquet("out-rest"), local.flush())
    assert "rows in 200, out 200, pending 0" in said and said.endswith("the last rows are in out-rest/")
    assert ck.Certificate.from_json(Path("certificate.json").read_text(encoding="utf-8")) == local.certificate
    assert ck.certificate_on_spark(build_local(), folder / "home") == local.certificate
    assert "had ended before" in run()


@pytest.mark.parametrize("format", ["ndjson", pytest.param("csv", marks=pytest.mark.soak)])
def test_texts_are_published_as_those_of_one_machine(spark: Any, folder: Path, format: str) -> None:
    arrive(f"1.{format}", ROWS)
    run("--input-format", format, "--output-format", "ndjson", "--flush")
    local = build_local()
    left = [*publish_here(local, ROWS), *local.flush()]
    files = [*Path("out").glob("*.json"), *Path("out-rest").glob("*.json")]
    assert same([json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()], left)


def test_what_cannot_be_is_refused(spark: Any, folder: Path) -> None:
    refuse("the folder has no parquet file")
    refuse("Path does not exist", "-i", "nowhere")
    refuse("--checkpoint is in the folder of the output", "--checkpoint", "out/home")
    refuse("--strict has no effect with --engine spark", "--strict")
    refuse("--trigger 'often' is unknown", "--trigger", "often")
    refuse("does not end", "--trigger", "1 second", "--flush")
    refuse("--shards many cannot be read", "--shards", "many")
    refuse("master='local' is the address of a Spark cluster", "--engine", "local", "--master", "local")
    refuse("--by works with --engine spark only", "--engine", "local", "--by", "age")
    refuse("choose one of: local, spark", "--engine", "flink")
    Path("out").mkdir()
    Path("out", "older").touch()
    arrive("1.parquet", ROWS[:5])
    refuse("it is not empty")
    arrive("1.ndjson", [{**ROWS[0], "shoe": 4}])
    refuse("an arriving row is refused: 'shoe' has no role", "--input-format", "ndjson", "-i", "inbox/*.ndjson", "-o", "new")
    write_recipe(stream={"castle": {"k": 4, "delta": "5s"}})
    refuse("available-now does not end")
    usual = ["stream", "recipe.yaml", "--engine", "spark"]
    for words, says in (
        ([], "name it with -i"),
        (["-i", "a"], "name it with -o"),
        (["-i", "a", "-o", "b"], "needs a checkpoint"),
    ):
        result = CliRunner().invoke(app, [*usual, *words])
        assert result.exit_code == 2 and says in result.stderr

"""`closeknit stream`: files that it is given and that are not what they should be, and files that it must not write over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from stream_runs import write_recipe

ROW = {"age": 30, "sex": "f", "ill": "flu", "name": "Ann"}


def test_a_saved_stream_is_no_run_to_resume(tmp_path: Path) -> None:
    recipe, home = write_recipe(tmp_path), tmp_path / "ck"
    requested = Recipe.read(recipe)
    assert requested.stream is not None
    home.mkdir()
    requested.stream.build(requested.schema, requested.models, requested.seed).save(home / "checkpoint")
    run = CliRunner().invoke(app, ["stream", str(recipe), "--checkpoint", str(home)], input="")
    assert (run.exit_code, "has no place in an input" in run.stderr) == (2, True)


@pytest.mark.parametrize("wrong", [{"-i": "nowhere"}, {"-o": "nowhere/rows"}, {"--certificate": "nowhere/certificate"}])
def test_a_first_run_that_fails_leaves_no_checkpoint_in_the_way(
    wrong: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    write_recipe(tmp_path)
    (tmp_path / "in.ndjson").write_text(json.dumps(ROW) + "\n", encoding="utf-8")

    def run(options: dict[str, str]) -> Any:
        places = {"-i": "in.ndjson", "-o": "out/rows", "--checkpoint": "ck", **options}
        return CliRunner().invoke(app, ["stream", "recipe.yaml", *(word for place in places.items() for word in place)])

    assert run(wrong).exit_code == 2 and not Path("ck").exists()
    write_recipe(tmp_path, seed=5)
    assert run({}).exit_code == 0 and Path("ck", "checkpoint").exists()
    Path("mine").mkdir()
    assert run({**wrong, "--checkpoint": "mine", "--rejects": "rejects"}).exit_code == 2 and Path("mine").exists()
    far = run({"--checkpoint": "no/ck"})
    assert (far.exit_code, far.stderr) == (2, "closeknit: no/ck: the folder no does not exist; create it first\n")


@pytest.mark.parametrize("log", ["noon", '{"now": 1}', "[1]"])
def test_a_log_that_is_none_is_refused(log: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    recipe = write_recipe(tmp_path, stream={"castle": {"k": 4, "delta": "40s"}})
    words = ["stream", str(recipe), "--checkpoint", str(tmp_path / "ck"), "-o", str(tmp_path / "out" / "rows.ndjson")]
    (tmp_path / "in.ndjson").write_text(json.dumps({**ROW}) + "\n", encoding="utf-8")
    assert CliRunner().invoke(app, [*words, "-i", str(tmp_path / "in.ndjson")]).exit_code == 0
    (ticks,) = (tmp_path / "ck").glob("ticks-*")
    ticks.write_text(log + "\n", encoding="utf-8")
    run = CliRunner().invoke(app, [*words, "-i", str(tmp_path / "in.ndjson")])
    assert (run.exit_code, "this is not a log of ticks" in run.stderr) == (2, True)


@pytest.mark.parametrize("option", ["-o", "--rejects", "--counters", "--certificate"])
@pytest.mark.parametrize("over", ["in.ndjson", "recipe.yaml"])
def test_nothing_is_written_over_what_is_read(option: str, over: str, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path)
    (tmp_path / "in.ndjson").write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    before = (tmp_path / over).read_bytes()
    words = ["stream", str(recipe), "-i", str(tmp_path / "in.ndjson"), option, str(tmp_path / "." / over), "--force"]
    run = CliRunner().invoke(app, words)
    assert (run.exit_code, "are the same file" in run.stderr, (tmp_path / over).read_bytes()) == (2, True, before)


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_input_or_output_is_one_sentence(closed: str, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path)
    run = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "from closeknit.cli.commands import main; main()" stream "{recipe}" {closed}'],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 2
    assert run.stderr.startswith("closeknit: standard ") and run.stderr.count("\n") == 1

"""The command line: the whole way, every bad input as one sentence with its status, and nothing written on failure."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from closeknit import __version__
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.datasets import hospital, hospital_recipe
from closeknit.io.files import read, write_csv

COMMANDS = ("demo", "inspect", "anonymize", "audit")
QUASI = {"quasi": {"age": "numeric", "sex": "flat"}}
SMALL: dict[str, Any] = {"schema": {**QUASI, "sensitive": {"disease": "flat"}}, "models": [{"k_anonymity": {"k": 2}}]}
ROWS = "age,sex,disease\n30,f,flu\n31,f,gout\n40,m,flu\n44,m,gout\n"


def closeknit(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def in_a_process(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "closeknit", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", **options)


def refused(result: Any, status: int, *says: str) -> None:
    """One sentence on stderr that says all of this, and nothing on stdout."""
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    (sentence,) = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    assert sentence.startswith("closeknit: ") and "Traceback" not in sentence
    for part in says:
        assert part in sentence, sentence


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_recipe(folder: Path, table: str | bytes | None = ROWS, **changes: Any) -> Path:
    if table is not None:
        (folder / "t.csv").write_bytes(table if isinstance(table, bytes) else table.encode())
    file = folder / "recipe.yaml"
    file.write_text(yaml.safe_dump({"data": "t.csv", **SMALL, **changes}, sort_keys=False), encoding="utf-8")
    return file


def nothing_written(folder: Path) -> bool:
    return {file.name for file in folder.iterdir()} <= {"t.csv", "recipe.yaml"}


def test_the_whole_way(folder: Path) -> None:
    shown = closeknit("demo", "--rows", 200, "--table", "patients.csv", "-o", "hospital/")
    assert shown.exit_code == 0, shown.output
    assert "k-anonymity, k = 6" in shown.stdout and "closeknit audit hospital/release.csv" in shown.stdout
    assert closeknit("audit", "hospital/release.csv").exit_code == 0
    assert closeknit("anonymize", "hospital.private/recipe.yaml", "-o", "replayed").exit_code == 0
    assert (folder / "replayed/release.csv").read_bytes() == (folder / "hospital/release.csv").read_bytes()

    guessed = closeknit("inspect", "patients.csv")
    assert guessed.exit_code == 0 and "not sure about: stay" in guessed.stderr
    (folder / "recipe.yaml").write_bytes(guessed.stdout_bytes)
    made = closeknit("anonymize", "recipe.yaml", "-o", "out/")
    assert made.exit_code == 0, made.output
    assert "t-closeness of charge" in made.stdout and "next: closeknit audit out/release.csv" in made.stdout
    assert sorted(file.name for file in (folder / "out").iterdir()) == [
        "certificate.json",
        "release.csv",
        "report.html",
        "report.json",
    ]

    checked = closeknit("audit", "out/release.csv")
    assert checked.exit_code == 0 and checked.stdout.count("recomputed") == 4
    by_recipe = closeknit("audit", "out/release.csv", "--recipe", "recipe.yaml", "--json")
    assert by_recipe.exit_code == 0 and json.loads(by_recipe.stdout)["ok"] is True
    again = closeknit("anonymize", "out.private/recipe.yaml", "-o", "again", "--json")
    certificate = json.loads((folder / "out" / "certificate.json").read_text(encoding="utf-8"))
    assert json.loads(again.stdout) == certificate


def test_demo_shows_the_same_people_before_and_after(folder: Path) -> None:
    shown = closeknit("demo", "--rows", 300)
    assert shown.exit_code == 0, shown.output
    before, after = (part.split("Certificate")[0] for part in shown.stdout.split("After:"))
    charges = [[line.split("│")[-2].strip() for line in part.splitlines() if line.startswith("│")] for part in (before, after)]
    assert 1 < len(charges[0]) <= 6 and sorted(charges[0]) == sorted(charges[1])
    assert list(folder.iterdir()) == []


def test_parquet_json_seed_and_force(folder: Path) -> None:
    recipe = write_recipe(folder)
    made = closeknit("anonymize", recipe, "-o", "out", "--format", "parquet", "--seed", 2**90, "--json")
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["files"][0]["name"] == "release.parquet"
    assert Recipe.read(folder / "out.private" / "recipe.yaml").seed == 2**90
    assert closeknit("audit", "out/release.parquet").exit_code == 0
    refused(closeknit("anonymize", recipe, "-o", "out/"), 2, "out", "exists already", "--force")
    assert closeknit("anonymize", recipe, "-o", "out/", "--force").exit_code == 0
    assert (folder / "out" / "release.csv").exists() and not (folder / "out" / "release.parquet").exists()


def test_short_seed_warns_in_one_line(folder: Path) -> None:
    made = closeknit("anonymize", write_recipe(folder), "-o", "out", "--seed", 5)
    assert made.exit_code == 0
    assert [line.split(":")[0] for line in made.stderr.splitlines()] == ["warning"]


def test_constant_secret_is_a_loud_warning(folder: Path) -> None:
    made = closeknit("anonymize", write_recipe(folder, ROWS.replace("gout", "flu")), "-o", "out")
    assert made.exit_code == 0
    (line,) = made.stderr.splitlines()
    assert line.startswith("warning: ") and "'disease'" in line


BAD_TABLES: dict[str, tuple[str | bytes, list[str]]] = {
    "empty file": ("", ["t.csv", "empty"]),
    "header only": ("age,sex,disease\n", ["t.csv", "no rows"]),
    "ragged rows": (ROWS + "50,m\n", ["t.csv", "row 5", "2 cells"]),
    "duplicate column": (ROWS.replace("sex", "age"), ["t.csv", "'age'"]),
    "missing column": (ROWS.replace("sex", "gender"), ["'sex'", "not in the table", "gender"]),
    "undecodable bytes": (ROWS.encode() + "50,m,café né\n".encode() + b"50,m,caf\xe9\n", ["t.csv", "row 6", "0xe9", "latin-1"]),
    "a NUL character": (ROWS.encode() + b"50,m,fl\0u\n", ["t.csv", "'disease'", "row 5", "NUL"]),
    "text in a number column": (
        "age,sex,disease\n" + "30,f,flu\n" * 70_000 + "thirty,f,flu\n",
        ["'age'", "row 70,001", "'thirty'"],
    ),
    "a number that looks written": (ROWS + '"[30, 40]",m,flu\n', ["'age'", "row 5", "[30, 40]", "written range"]),
    "a category that looks written": (ROWS + "30,*,flu\n", ["'sex'", "row 5", "'*'"]),
}


@pytest.mark.parametrize("fault", BAD_TABLES)
def test_bad_table(folder: Path, fault: str) -> None:
    table, says = BAD_TABLES[fault]
    refused(closeknit("anonymize", write_recipe(folder, table), "-o", "out"), 2, *says)
    assert nothing_written(folder)


BAD_RECIPES: dict[str, tuple[dict[str, Any], int, list[str]]] = {
    "unknown key": ({"modles": []}, 2, ["recipe.yaml", "'modles'"]),
    "unknown model": ({"models": [{"k_anonymty": {"k": 2}}]}, 2, ["'k_anonymty'", "k_anonymity"]),
    "unknown parameter": ({"models": [{"k_anonymity": {"kk": 2}}]}, 2, ["'kk'"]),
    "unknown method": ({"method": "magic"}, 2, ["'magic'", "stack_and_deal"]),
    "k of 0": ({"models": [{"k_anonymity": {"k": 0}}]}, 2, ["k=0", "at least"]),
    "k of -1": ({"models": [{"k_anonymity": {"k": -1}}]}, 2, ["k=-1", "at least"]),
    "k of five": ({"models": [{"k_anonymity": {"k": "five"}}]}, 2, ["'five'", "whole number"]),
    "t above 1": ({"models": [{"t_closeness": {"column": "disease", "t": 1.5}}]}, 2, ["t=1.5", "at most 1"]),
    "t not a number": ({"models": [{"t_closeness": {"column": "disease", "t": float("nan")}}]}, 2, ["nan", "t must be"]),
    "model of another column": ({"models": [{"t_closeness": {"column": "age", "t": 0.5}}]}, 2, ["'age'", "not sensitive"]),
    "no models": ({"models": []}, 2, ["model"]),
    "category not in the hierarchy": (
        {"schema": {**QUASI, "sensitive": {"disease": {"tree": {"a": ["flu"], "b": ["acne"]}}}}},
        2,
        ["'disease'", "row 2", "'gout'", "hierarchy"],
    ),
    "both roles": (
        {"schema": {"quasi": {"age": "numeric", "sex": "flat", "disease": "flat"}, "sensitive": {"disease": "flat"}}},
        2,
        ["'disease'", "quasi", "sensitive"],
    ),
    "unknown kind": ({"schema": {**QUASI, "sensitive": {"disease": "numerical"}}}, 2, ["'disease'", "'numeric'"]),
    "unknown role": ({"schema": {"quasy": {"age": "numeric"}}}, 2, ["'quasy'"]),
    "no table": ({"data": "elsewhere.csv"}, 2, ["elsewhere.csv", "no such file"]),
    "a folder as table": ({"data": "."}, 2, ["folder"]),
    "k larger than the table": ({"models": [{"k_anonymity": {"k": 5}}]}, 1, ["k = 5", "4"]),
    "l larger than the number of values": (
        {"models": [{"k_anonymity": {"k": 2}}, {"l_diversity": {"column": "disease", "l": 3}}]},
        1,
        ["3", "2"],
    ),
}


@pytest.mark.parametrize("fault", BAD_RECIPES)
def test_bad_recipe(folder: Path, fault: str) -> None:
    changes, status, says = BAD_RECIPES[fault]
    refused(closeknit("anonymize", write_recipe(folder, **changes), "-o", "out"), status, *says)
    assert nothing_written(folder)


@pytest.mark.parametrize("text", ["", "- 1\n", "data: [", "just words", "\x00", "data: t.csv\n"])
def test_no_recipe_at_all(folder: Path, text: str) -> None:
    (folder / "recipe.yaml").write_text(text, encoding="utf-8")
    refused(closeknit("anonymize", "recipe.yaml", "-o", "out"), 2, "recipe.yaml")
    assert nothing_written(folder)


@pytest.mark.parametrize("words", [("inspect", "."), ("anonymize", ".", "-o", "out"), ("audit", ".")])
def test_folder_instead_of_file(folder: Path, words: tuple[str, ...]) -> None:
    refused(closeknit(*words), 2)
    assert nothing_written(folder)


@pytest.mark.parametrize("words", [("inspect", "no.csv"), ("anonymize", "no.yaml", "-o", "out"), ("audit", "no.csv")])
def test_missing_file_is_named(folder: Path, words: tuple[str, ...]) -> None:
    refused(closeknit(*words), 2, words[1])


@pytest.mark.usefixtures("modes_bind")
def test_no_permission(folder: Path) -> None:
    recipe = write_recipe(folder)
    (folder / "t.csv").chmod(0)
    refused(closeknit("anonymize", recipe, "-o", "out"), 2, "t.csv", "permission")
    (folder / "t.csv").chmod(0o600)
    folder.chmod(0o500)
    try:
        refused(closeknit("anonymize", recipe, "-o", "out"), 2, "out", "permission")
    finally:
        folder.chmod(0o700)
    assert nothing_written(folder)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.EROFS])
def test_what_the_system_refuses_is_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def full(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    recipe = write_recipe(folder)
    monkeypatch.setattr(os, "fsync", full)
    words = {errno.EACCES: "permission", errno.ENOSPC: "the disk is full", errno.EROFS: "read-only"}
    refused(closeknit("anonymize", recipe, "-o", "out"), 2, words[number], "out")
    assert nothing_written(folder)


@pytest.mark.parametrize("place", ["/", "nowhere/out", "t.csv"])
def test_bad_place_for_the_release(folder: Path, place: str) -> None:
    refused(closeknit("anonymize", write_recipe(folder), "-o", place, *(["--force"] if place == "t.csv" else [])), 2, place)
    assert nothing_written(folder) and (folder / "t.csv").read_text() == ROWS


def test_mark_of_a_broken_run_is_named(folder: Path) -> None:
    recipe = write_recipe(folder)
    (folder / "out.private").mkdir()
    refused(closeknit("anonymize", recipe, "-o", "out"), 2, "out.private", "a run was interrupted", "--force")
    assert closeknit("anonymize", recipe, "-o", "out", "--force").exit_code == 0


def test_demo_that_fails_writes_nothing(folder: Path) -> None:
    refused(closeknit("demo", "--rows", 3, "--table", "t.csv", "-o", "out"), 1, "k = 6")
    assert list(folder.iterdir()) == []


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def exhaust(*_: object, **__: object) -> None:
    raise MemoryError


@pytest.mark.parametrize(("stop", "status", "says"), [(interrupt, 130, "stopped"), (exhaust, 2, "memory")])
def test_other_ends(folder: Path, monkeypatch: pytest.MonkeyPatch, stop: Callable[..., None], status: int, says: str) -> None:
    monkeypatch.setattr("closeknit.api.run", stop)
    refused(closeknit("anonymize", write_recipe(folder), "-o", "out"), status, says)


def test_audit_says_what_is_wrong(folder: Path) -> None:
    assert closeknit("anonymize", write_recipe(folder), "-o", "out").exit_code == 0
    release = folder / "out" / "release.csv"
    lines = release.read_text(encoding="utf-8").splitlines(keepends=True)
    release.write_text("".join(lines[:-1]), encoding="utf-8")
    found = closeknit("audit", release)
    assert found.exit_code == 1 and "NOT OK" in found.stdout and "3 rows" in found.stdout
    record = json.loads(closeknit("audit", release, "--json").stdout)
    assert record["ok"] is False and record["findings"]


def test_audit_by_recipe_of_a_table_that_breaks_it(folder: Path) -> None:
    recipe = write_recipe(folder)
    found = closeknit("audit", "t.csv", "--recipe", recipe)
    assert found.exit_code == 1 and "not met" in found.stdout
    refused(closeknit("audit", "t.csv"), 2, "t.csv", "--certificate", "--recipe")
    refused(closeknit("audit", "t.csv", "--certificate", recipe), 2, "recipe.yaml")


def test_inspect_json(folder: Path) -> None:
    (folder / "t.csv").write_text(ROWS + "?,m,flu\n")
    record = json.loads(closeknit("inspect", "t.csv", "--json").stdout)
    assert record["missing"] == ["?"]
    assert {name: (one["role"], one["kind"], one["sure"]) for name, one in record["columns"].items()} == {
        "age": ("quasi", "numeric", True),
        "sex": ("quasi", "flat", True),
        "disease": ("sensitive", "flat", True),
    }


def test_recipe_of_the_generated_table_runs(folder: Path) -> None:
    write_csv(hospital(200), "patients.csv")
    (folder / "recipe.yaml").write_text(yaml.safe_dump(hospital_recipe("patients.csv"), sort_keys=False))
    made = closeknit("anonymize", "recipe.yaml", "-o", "out")
    assert made.exit_code == 0, made.output
    assert "name" not in read("out/release.csv")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(command: str) -> None:
    shown = closeknit(command, "--help")
    assert shown.exit_code == 0
    assert shown.stdout.count(f"closeknit {command}") >= 3


def test_version_and_usage() -> None:
    assert closeknit("--version").stdout == f"closeknit {__version__}\n"
    for words in (
        [],
        ["anonymise"],
        ["anonymize", "r.yaml"],
        ["demo", "--rows", "many"],
        ["demo", "--rows", "0"],
        ["audit", "a.csv", "--recipe", "r.yaml", "--certificate", "c.json"],
    ):
        result = closeknit(*words)
        assert result.exit_code == 2 and "Traceback" not in result.output, words


def test_help_is_light() -> None:
    heavy = "numpy numba pyarrow polars pandas pydantic scipy yaml"
    program = (
        "import sys; from typer.testing import CliRunner; from closeknit.cli.commands import app;"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0;"
        f"print(*[name for name in '{heavy}'.split() if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []


def test_release_and_both_reports_do_without_scipy(folder: Path) -> None:
    """Importing its parts takes as long as the release of a small table."""
    write_recipe(folder)
    program = (
        "import sys; from typer.testing import CliRunner; from closeknit.cli.commands import app;"
        "assert CliRunner().invoke(app, ['anonymize', 'recipe.yaml', '-o', 'out']).exit_code == 0;"
        "heavy = 'scipy.sparse', 'scipy.special', 'scipy.linalg', 'unittest';"  # numba loads scipy itself, which is small
        "print(*[name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=folder)
    assert done.stdout.split() == [] and (folder / "out.private" / "report.html").exists()


def test_in_a_process_of_its_own(folder: Path) -> None:
    recipe = write_recipe(folder, ROWS + "thirty,f,flu\n")
    result = in_a_process("anonymize", recipe, "-o", "out", cwd=folder)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("closeknit: ") and len(result.stderr.splitlines()) == 1
    poor = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    assert in_a_process("demo", "--rows", "60", cwd=folder, env=poor).returncode == 0
    assert in_a_process("anonymize", write_recipe(folder), "-o", "out", cwd=folder, env=poor).returncode == 0


@pytest.mark.parametrize("words", [("inspect", "t.csv"), ("demo", "--rows", "60")])
def test_closed_pipe_is_quiet(folder: Path, words: tuple[str, ...]) -> None:
    (folder / "t.csv").write_text(ROWS)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "closeknit", *words]
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=folder)
    os.close(writer)
    assert result.returncode == 141 and result.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("patience", "shown"), [(60, False), (0.1, True)])
def test_progress_bar_is_for_long_work_at_a_terminal(patience: float, shown: bool) -> None:
    program = f"""
import time; from closeknit.cli import progress; progress.PATIENCE = {patience}
with progress.ProgressBar() as bar:
    bar("dealing", 0.5)
    while {shown} and bar._shown and bar._bar is None:  # at work
        time.sleep(0.01)
"""
    terminal, inside = os.openpty()
    command = [sys.executable, "-c", program]
    quiet = subprocess.run(command, capture_output=True, check=True)
    assert quiet.stderr == b""
    subprocess.run(command, stderr=inside, check=True, env={**os.environ, "TERM": "xterm"})
    os.write(inside, b"end")
    written = os.read(terminal, 100_000)
    os.close(inside)
    os.close(terminal)
    assert (b"dealing" in written) == shown

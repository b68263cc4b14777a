"""`closeknit audit`: how it ends where guarantees are attested, and how it finds a release."""

from __future__ import annotations

import json
import re
from pathlib import Path

from test_cli import ROWS, SMALL, closeknit, folder, refused, write_recipe

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

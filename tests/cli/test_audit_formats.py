"""`closeknit audit --format`: SARIF and JUnit as their readers take them, several releases, and the hooks built on them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import yaml
from test_cli import ROWS, SMALL, closeknit, folder, refused, write_recipe

import closeknit as ck
from closeknit.core.audit_formats import junit_of_audits, sarif_of_audits

__all__ = ["folder"]  # a fixture
ROOT = Path(__file__).resolve().parents[2]
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
RULE = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "string"},
        "shortDescription": TEXT,
        "defaultConfiguration": {"type": "object", "properties": {"level": LEVEL}, "additionalProperties": False},
    },
    "additionalProperties": False,
}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "properties": {"uri": {"type": "string", "pattern": r"^[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]+$"}},
                },
                "region": {"type": "object", "properties": {"startLine": {"type": "integer", "minimum": 1}}},
            },
        }
    },
}
RESULT = {
    "type": "object",
    "required": ["message", "ruleId", "locations"],
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": -1},
        "level": LEVEL,
        "message": TEXT,
        "locations": {"type": "array", "minItems": 1, "items": LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "additionalProperties": False,
}
SARIF = {  # the parts of the schema of SARIF 2.1.0 that closeknit writes: nothing else may be there
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "rules": {"type": "array", "uniqueItems": True, "items": RULE},
                                },
                                "additionalProperties": False,
                            }
                        },
                        "additionalProperties": False,
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {"type": "array", "items": RESULT},
                    "properties": {"type": "object"},
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}


@pytest.fixture
def releases(folder: Path) -> Path:
    """`met`, `not met` (a changed cell) and `attested` (persons)."""
    recipe = write_recipe(folder)
    for name in ("met", "not met"):
        assert closeknit("anonymize", recipe, "-o", name, "--no-report").exit_code == 0
    changed = folder / "not met" / "release.csv"
    changed.write_text(changed.read_text(encoding="utf-8").replace("[30, 31]", "30", 1), encoding="utf-8")
    table = "who," + "".join(f"{i},{line}\n" for i, line in enumerate(ROWS.splitlines())).removeprefix("0,")
    recipe = write_recipe(folder, table, schema={**SMALL["schema"], "person": "who"})
    assert closeknit("anonymize", recipe, "-o", "attested", "--no-report").exit_code == 0
    return folder


def read_sarif(text: str) -> dict[str, Any]:
    log = json.loads(text)
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert rules[result["ruleIndex"]]["defaultConfiguration"]["level"] == result["level"]
    return run


def test_sarif_has_what_is_wrong_and_where(releases: Path) -> None:
    assert read_sarif(closeknit("audit", "met", "--format", "sarif").stdout)["results"] == []
    found = closeknit("audit", "met", "not met", "attested", "--format", "sarif")
    assert found.exit_code == 1
    run = read_sarif(found.stdout)
    place = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]}
    assert place == {"not%20met/release.csv", "attested/release.csv"}
    rules = {result["ruleId"]: result["message"]["text"] for result in run["results"]}
    assert rules["guarantee-not-met"] == "k-anonymity, k = 2: measured 1"
    assert "persons" in rules["guarantee-not-checkable"] and "release-differs" in rules
    assert run["properties"]["audits"]["met/release.csv"]["status"] == "met"
    outside = sarif_of_audits({"/data/ü.csv": ck.audit("not met"), "sqlite:///a.db": ck.audit("not met")}, "1")
    place = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in read_sarif(outside)["results"]}
    assert place == {"file:" + "///data/%C3%BC.csv", "sqlite:///a.db"}


def test_junit_has_a_test_for_each_guarantee(releases: Path) -> None:
    found = closeknit("audit", "met", "not met", "attested", "--format", "junit")
    assert found.exit_code == 1
    root = ElementTree.fromstring(found.stdout.encode())
    suites = {suite.get("name"): suite for suite in root.iter("testsuite")}
    assert root.tag == "testsuites" and list(suites) == [f"{name}/release.csv" for name in ("met", "not met", "attested")]
    counts = {name: [int(suite.get(key, "")) for key in ("tests", "failures", "skipped")] for name, suite in suites.items()}
    assert counts["met/release.csv"] == [2, 0, 0] and counts["attested/release.csv"] == [2, 0, 1]
    tests, failures, skipped = counts["not met/release.csv"]
    assert failures == tests > 2 and skipped == 0
    for suite in suites.values():
        assert int(suite.get("tests", "")) == len(suite) and all(len(test) <= 1 for test in suite)
    (failure,) = [test.find("failure") for test in suites["not met/release.csv"] if test.get("name") == "k-anonymity, k = 2"]
    assert failure is not None and failure.get("type") == "guarantee-not-met" and "measured 1" in failure.get("message", "")


def test_a_vacuous_guarantee_is_a_warning_and_a_failure(folder: Path) -> None:
    (folder / "t.csv").write_text("age,ill\n" + "30,flu\n31,flu\n" * 2, encoding="utf-8")
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    audit = ck.audit("t.csv", schema, [ck.TCloseness("ill", 0.5)])
    assert audit.status == "vacuous"
    (result,) = read_sarif(sarif_of_audits({"t.csv": audit}, "1"))["results"]
    assert (result["ruleId"], result["level"]) == ("guarantee-vacuous", "warning")
    assert 'type="guarantee-vacuous"' in junit_of_audits({"t.csv": audit})


def test_control_characters_do_not_break_the_formats(folder: Path) -> None:
    (folder / "t.csv").write_text('a\x07<&"ge,ill\n30,flu\n31,flu\n', encoding="utf-8")
    schema = ck.Schema(quasi={'a\x07<&"ge': ck.numeric()}, sensitive={"ill": ck.flat()}, identifier=[])
    audit = ck.audit("t.csv", schema, [ck.KAnonymity(2)]).model_copy(update={"findings": ("column 'a\x07<&\"ge' is odd",)})
    (suite,) = ElementTree.fromstring(junit_of_audits({"t\x00.csv": audit}).encode())
    assert suite.get("name") == "t\ufffd.csv"
    read_sarif(sarif_of_audits({"t.csv": audit}, "1"))


def test_several_releases_and_the_worst_status(releases: Path) -> None:
    met, both = closeknit("audit", "met"), closeknit("audit", "met", "met/certificate.json", "met/release.csv")
    assert met.exit_code == both.exit_code == 0 and both.stdout == met.stdout, "a release is audited once"
    found = closeknit("audit", "met", "attested")
    assert (
        found.exit_code == 3 and found.stdout.startswith("met/release.csv:\n") and "\nattested/release.csv:\n" in found.stdout
    )
    assert closeknit("audit", "attested", "not met").exit_code == 1
    record = json.loads(closeknit("audit", "met", "attested", "--json").stdout)["audits"]
    assert [(one["file"], one["ok"]) for one in record] == [("met/release.csv", True), ("attested/release.csv", False)]
    assert closeknit("audit", "met", "--json").stdout == closeknit("audit", "met", "--format", "json").stdout
    refused(closeknit("audit", "met", "nowhere/", "--format", "sarif"), 2, "nowhere", "no such file or folder")


def test_releases_with_equal_names_are_all_audited(releases: Path) -> None:
    """Two folders whose names are not UTF-8 look alike; the bad one comes first."""
    for name, raw in (("not met", b"r\xff"), ("met", b"r\xfe")):
        (releases / name).rename(releases / os.fsdecode(raw))
    found = closeknit("audit", os.fsdecode(b"r\xff"), os.fsdecode(b"r\xfe"), os.fsdecode(b"./r\xff"), "--json")
    record = json.loads(found.stdout)["audits"]
    assert found.exit_code == 1
    assert [(one["file"], one["ok"]) for one in record] == [("r?/release.csv", False), ("r?/release.csv (2)", True)]


# The hooks ---------------------------------------------------------------------------------------------------------------


def with_closeknit(**variables: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", **variables}


def test_the_hooks_of_pre_commit(releases: Path) -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    committed = [path.relative_to(releases).as_posix() for path in sorted(releases.rglob("*")) if path.is_file()]
    seen = {name: [path for path in committed if re.search(hook["files"], path)] for name, hook in hooks.items()}
    names = ("certificate.json", "release.csv")
    assert seen["closeknit-audit"] == [f"{folder}/{name}" for folder in ("attested", "met", "not met") for name in names]
    assert seen["closeknit-private"] == [path for path in committed if ".private/" in path] != []
    assert hooks["closeknit-private"]["language"] == "fail"
    words = hooks["closeknit-audit"]["entry"].split()
    done = subprocess.run([*words, *seen["closeknit-audit"]], env=with_closeknit(), capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout.count("release.csv:\n") == 3


def run_action(folder: Path, program: Path | None = None, **inputs: str) -> tuple[int, str]:
    """Run the step of the action that audits; `program` is another closeknit."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    values = {name: given.get("default", "") for name, given in action["inputs"].items()}
    assert values.keys() >= {name.replace("_", "-") for name in inputs}
    values |= {name.replace("_", "-"): value for name, value in inputs.items()}
    install, audit = action["runs"]["steps"]
    assert "pip install" in install["run"] and install["env"] == {"ACTION_PATH": "${{ github.action_path }}"}
    assert "${{" not in audit["run"], "an input is never part of the script"
    given = {name: values[re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", text)[1]] for name, text in audit["env"].items()}  # type: ignore[index]
    output = folder / "github_output"
    output.unlink(missing_ok=True)
    env = with_closeknit(**given, GITHUB_OUTPUT=str(output))
    env["PATH"] = env["PATH"] if program is None else f"{program.parent}{os.pathsep}{env['PATH']}"
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", audit["run"]]  # as GitHub runs `shell: bash`
    done = subprocess.run(shell, cwd=folder, env=env, capture_output=True, text=True)
    (status,) = output.read_text(encoding="utf-8").split()
    assert status.startswith("status=")
    return done.returncode, status.removeprefix("status=")


def test_the_action(releases: Path) -> None:
    assert run_action(releases, releases="m*t/ attested", report="audit.sarif") == (3, "3")
    (result,) = read_sarif((releases / "audit.sarif").read_text(encoding="utf-8"))["results"]
    assert result["ruleId"] == "guarantee-not-checkable"


@pytest.mark.parametrize(
    ("status", "allow", "ends"), [(0, "false", 0), (1, "true", 1), (2, "true", 2), (3, "false", 3), (3, "true", 0)]
)
def test_the_step_ends_as_the_audit_does(tmp_path: Path, status: int, allow: str, ends: int) -> None:
    program = tmp_path / "bin" / "closeknit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > words\nexit {status}\n', encoding="utf-8")
    program.chmod(0o755)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    given = {"releases": "[ab]/ c;touch\tbroken", "recipe": "my recipe.yaml", "allow_attested": allow}
    assert run_action(tmp_path, program, **given) == (ends, str(status))
    words = ["audit", "--format", "sarif", "--recipe", "my recipe.yaml", "--", "a/", "b/", "c;touch", "broken"]
    assert (tmp_path / "words").read_text(encoding="utf-8").splitlines() == words and not (tmp_path / "broken").exists()
    assert run_action(tmp_path, program, releases="nothing/*/") == (2, "2")

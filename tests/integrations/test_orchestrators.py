"""The examples for Airflow and Dagster, run by them: a release that meets its guarantees is shared, a damaged one is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak  # their environment takes two minutes to install
ROOT = Path(__file__).resolve().parents[2]
RECIPE = """
data: t.csv
schema: {quasi: {age: numeric}, sensitive: {ill: flat}}
models: [{k_anonymity: {k: 2}}]
"""
MATERIALIZE = """
import sys
sys.path.insert(0, sys.argv[1])
from closeknit_release import audit, release, shared
from dagster import materialize
done = materialize([release, audit, shared], raise_on_error=False)
print([(check.check_name, check.passed) for check in done.get_asset_check_evaluations()])
sys.exit(not done.success)
"""


@pytest.fixture(scope="module")
def environment() -> Path:
    folder = Path(os.environ.get("CLOSEKNIT_ORCHESTRATORS", ROOT / ".venv-orchestrators" / "bin"))
    if not (folder / "airflow").is_file():
        pytest.skip("the environment of Airflow and Dagster is absent: `make orchestrators` prepares it")
    return folder


@pytest.fixture(params=["sound", "damaged"])
def variables(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Variables of a run; in a damaged one, a cell changes after `closeknit anonymize`."""
    (tmp_path / "t.csv").write_text("age,ill\n30,flu\n31,gout\n40,flu\n42,gout\n", encoding="utf-8")
    (tmp_path / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    lines = ["#!/bin/sh", f'"{sys.executable}" -m closeknit "$@"', "status=$?"]
    if request.param == "damaged":
        lines.append(f"""[ "$1" != anonymize ] || sed -i 's/flu/gout/' '{tmp_path}/out/release.csv'""")
    program = tmp_path / "bin" / "closeknit"
    program.write_text("\n".join([*lines, "exit $status", ""]), encoding="utf-8")
    program.chmod(0o755)
    places = {"RECIPE": "recipe.yaml", "OUT": "out", "SHARE": "share"}
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        **{f"CLOSEKNIT_{name}": str(tmp_path / place) for name, place in places.items()},
    }


def check(done: subprocess.CompletedProcess[str], variables: dict[str, str], folder: Path) -> None:
    """A sound release is shared without its private folder; a damaged one is not, and the run fails."""
    sound = "sed" not in (folder / "bin" / "closeknit").read_text(encoding="utf-8")
    assert (done.returncode == 0) is sound, done.stdout + done.stderr
    shared = Path(variables["CLOSEKNIT_SHARE"])
    assert (folder / "out" / "release.csv").exists() and shared.exists() is sound
    public = {path.name for path in (folder / "out").iterdir()}
    assert not sound or {path.name for path in shared.rglob("*")} == public >= {"release.csv", "certificate.json"}


def test_airflow(environment: Path, variables: dict[str, str], tmp_path: Path) -> None:
    settings = {"HOME": str(tmp_path / "home"), "_CORE__LOAD_EXAMPLES": "False"}
    settings["_CORE__DAGS_FOLDER"] = str(ROOT / "integrations" / "airflow")
    env = variables | {f"AIRFLOW_{name}": value for name, value in settings.items()}
    for words in (["db", "migrate"], ["dags", "test", "closeknit_release"]):
        done = subprocess.run([environment / "airflow", *words], env=env, cwd=tmp_path, capture_output=True, text=True)
        assert words[0] == "dags" or done.returncode == 0, done.stderr
    check(done, variables, tmp_path)


def test_dagster(environment: Path, variables: dict[str, str], tmp_path: Path) -> None:
    words = [environment / "python", "-c", MATERIALIZE, ROOT / "integrations" / "dagster"]
    env = variables | {"DAGSTER_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True)
    check(done, variables, tmp_path)
    assert f"('audit', {done.returncode == 0})" in done.stdout

"""The dbt package finds the same releases at fault as `audit`, for every test and many limits; run by dbt itself."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.io.files import write_csv

pytestmark = pytest.mark.soak  # its environment takes a minute to install
ROOT = Path(__file__).resolve().parents[2]
QUASI = ["age", "job"]
SCHEMA = ck.Schema(
    quasi={"age": ck.flat(), "job": ck.flat()}, sensitive={"pay": ck.numeric(), "ill": ck.flat()}, rows_are_persons=True
)
# a test of the package, its parameters, and the guarantee that it stands for
CASES: list[tuple[str, dict[str, Any], Any]] = [
    *(("k_anonymity", {"k": k}, ck.KAnonymity(k)) for k in (1, 2, 3, 4, 6, 20)),
    *(("l_diversity", {"l": l, "sensitive": "ill"}, ck.LDiversity("ill", l)) for l in (1, 2, 3, 4)),
    *(
        ("l_diversity", {"l": l, "sensitive": "ill", "kind": kind}, ck.LDiversity("ill", l, kind))
        for kind in ("frequency", "entropy")
        for l in (1.2, 1.5, 2)
    ),
    *(("t_closeness", {"t": t, "sensitive": "ill"}, ck.TCloseness("ill", t)) for t in (0.1, 0.25, 0.3, 0.5, 0.6, 1)),
    *(
        ("t_closeness", {"t": t, "sensitive": "pay", "distance": "ordered"}, ck.TCloseness("pay", t))
        for t in (0.05, 0.125, 0.2, 0.25, 0.5, 1)
    ),
    ("t_closeness", {"t": 0.4, "sensitive": "pay", "distance": "equal"}, ck.TCloseness("pay", 0.4, "equal")),
]


@pytest.fixture(scope="module")
def dbt() -> Path:
    command = Path(os.environ.get("CLOSEKNIT_DBT", ROOT / ".venv-dbt" / "bin" / "dbt"))
    if not command.is_file():
        pytest.skip("the environment of dbt is absent: `make dbt` prepares it")
    return command


def tables() -> dict[str, Columns]:
    """Random tables, one with missing cells, and one in which distances are equal to their limits."""
    found = {}
    for i, gaps in enumerate((0.0, 0.0, 0.2)):
        rng = np.random.default_rng([7, i])
        rows = int(rng.integers(20, 60))
        cells: dict[str, list[Any]] = {
            "age": rng.choice(["[20, 30]", "[31, 40]", "*"], rows).tolist(),
            "job": rng.choice(["clerk", "office, 'old'"], rows).tolist(),
            "pay": rng.choice([10, 20, 35, 50, 90], rows).tolist(),
            "ill": rng.choice(["flu", "gout", "acne", "SARS"], rows, p=[0.5, 0.2, 0.2, 0.1]).tolist(),
        }
        for name in ("age", "ill"):
            cells[name] = [None if rng.random() < gaps else cell for cell in cells[name]]
        found[f"random_{i}"] = Columns.of(cells)
    halves = {"age": ["a"] * 4 + ["b"] * 4, "job": ["x"] * 8, "pay": [1, 1, 2, 2, 2, 2, 3, 3]}
    return {**found, "halves": Columns.of({**halves, "ill": ["flu", "gout", "flu", "gout", "gout", "acne", "acne", "gout"]})}


def write_project(folder: Path) -> None:
    """A project with a seed for each table and every case as a test of it."""
    (folder / "seeds").mkdir(parents=True)
    seeds = []
    for name, table in tables().items():
        write_csv(table, folder / "seeds" / f"{name}.csv")
        tests = [
            {f"closeknit.{test}": {"name": f"{name}_{i}", **params, "quasi_identifiers": QUASI}}
            for i, (test, params, _) in enumerate(CASES)
        ]
        columns = {"age": "varchar", "job": "varchar", "ill": "varchar", "pay": "integer"}
        seeds.append({"name": name, "config": {"column_types": columns}, "data_tests": tests})
    project = {"name": "gate", "version": "1.0", "profile": "gate", "seed-paths": ["seeds"], "model-paths": ["seeds"]}
    target = {"type": "duckdb", "path": str(folder / "gate.duckdb"), "threads": 1}
    files = {
        "dbt_project.yml": project,
        "profiles.yml": {"gate": {"target": "dev", "outputs": {"dev": target}}},
        "packages.yml": {"packages": [{"local": str(ROOT / "integrations" / "dbt")}]},
        "seeds/schema.yml": {"version": 2, "seeds": seeds},
    }
    for name, content in files.items():
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def run_dbt(dbt: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    quiet = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1", "DBT_PROFILES_DIR": str(folder)}
    command = [str(dbt), "--no-use-colors", "--no-version-check", *words]
    return subprocess.run(command, cwd=folder, env={**os.environ, **quiet}, capture_output=True, text=True)


def test_dbt_and_audit_agree(dbt: Path, tmp_path: Path) -> None:
    write_project(tmp_path / "gate")
    assert (done := run_dbt(dbt, tmp_path / "gate", "deps")).returncode == 0, done.stdout
    done = run_dbt(dbt, tmp_path / "gate", "build")
    results = json.loads((tmp_path / "gate" / "target" / "run_results.json").read_text(encoding="utf-8"))["results"]
    found = {result["unique_id"].split(".")[2]: result["status"] for result in results}
    both = set()
    for name, table in tables().items():
        for i, (test, params, model) in enumerate(CASES):
            (guarantee,) = ck.audit(table, SCHEMA, [model]).guarantees
            expected = "fail" if guarantee.status == "not met" else "pass"
            assert found[f"{name}_{i}"] == expected, (name, test, params, guarantee.measured)
            both.add((test, expected))
    assert done.returncode == 1 and len(both) == 6, "each test passes somewhere and fails somewhere"


def test_wrong_parameters_are_named(dbt: Path, tmp_path: Path) -> None:
    for test, params, words in (
        ("l_diversity", {"l": 2, "sensitive": "ill", "quasi_identifiers": QUASI, "kind": "recursive"}, "choose distinct"),
        ("t_closeness", {"t": 0.2, "sensitive": "ill", "quasi_identifiers": QUASI, "distance": "far"}, "choose equal"),
        ("k_anonymity", {"k": 2, "quasi_identifiers": "age"}, "is a list of columns"),
    ):
        folder = tmp_path / test
        write_project(folder)
        schema = {"version": 2, "seeds": [{"name": "halves", "data_tests": [{f"closeknit.{test}": params}]}]}
        (folder / "seeds" / "schema.yml").write_text(yaml.safe_dump(schema), encoding="utf-8")
        assert run_dbt(dbt, folder, "deps").returncode == 0
        done = run_dbt(dbt, folder, "build", "--select", "halves")
        assert done.returncode != 0 and words in done.stdout, done.stdout

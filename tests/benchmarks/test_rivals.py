"""pycanon, written by others in another way, measures the same k, t and beta; where it does not, its fault is pinned here.

It pins old libraries and lives in an environment of its own, so it is asked as a subprocess.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.io.files import write_csv

pytestmark = pytest.mark.soak  # its environment takes a minute to install
ROOT = Path(__file__).resolve().parents[2]
QUASI = ["age", "job"]


@pytest.fixture(scope="module")
def rivals() -> Path:
    python = Path(os.environ.get("CLOSEKNIT_RIVALS", ROOT / ".venv-rivals" / "bin" / "python"))
    if not python.is_file():
        pytest.skip("the rivals' environment is absent: `make rivals` prepares it")
    return python


def ask(python: Path, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    command = [str(python), str(ROOT / "benchmarks" / "ask_pycanon.py")]
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [one["answer"] for one in json.loads(done.stdout.splitlines()[-1])]


def question(path: Path, measures: list[str], **more: Any) -> dict[str, Any]:
    return {"path": str(path), "quasi": QUASI, "secret": "secret", "measures": measures, **more}


def table(rows: int, seed: int, number: bool, gaps: float = 0.0) -> Columns:
    """Ages and jobs, a skewed secret that leans on the age, and gaps among the jobs."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 26, rows)
    job = np.array(["nurse", "smith", "cook", "clerk"], dtype=object)[rng.integers(0, 4, rows)]
    job[rng.random(rows) < gaps] = None
    code = np.minimum(rng.geometric(0.3, rows) + (age > 22), 6)
    secret = (10 * code * code).tolist() if number else np.array([*"abcdefg"], dtype=object)[code].tolist()
    return Columns.of({"age": age.tolist(), "job": job.tolist(), "secret": secret})


def schema(number: bool) -> ck.Schema:
    quasi = {"age": ck.numeric(), "job": ck.flat()}
    return ck.Schema(quasi=quasi, sensitive={"secret": ck.numeric() if number else ck.flat()})


def measure_audit(columns: Columns, number: bool) -> dict[str, float | None]:
    distance = "ordered" if number else "equal"
    models = {
        "k": ck.KAnonymity(1),
        "t": ck.TCloseness("secret", 1, distance=distance),
        "beta": ck.BetaLikeness("secret", 10**6, kind="basic"),
    }
    guarantees = ck.audit(columns, schema(number), list(models.values())).guarantees
    return {name: guarantee.measured for name, guarantee in zip(models, guarantees, strict=True)}


def test_agree_on_tables_and_releases(rivals: Path, tmp_path: Path) -> None:
    questions, ours = [], []
    for i, (number, seed) in enumerate((number, seed) for number in (False, True) for seed in range(4)):
        raw = table(rows=60 + 40 * seed, seed=seed, number=number, gaps=0.1 * (seed % 2))
        release = ck.anonymize(raw, schema(number), [ck.KAnonymity(3 + seed)])
        for j, columns in enumerate((raw, release.columns)):
            path = tmp_path / f"{i}{j}.csv"
            write_csv(columns, path)
            questions.append(question(path, ["k", "t", "beta"], number=number))
            ours.append(measure_audit(columns, number))
    for theirs, mine in zip(ask(rivals, questions), ours, strict=True):
        assert theirs == pytest.approx(mine, abs=1e-9)
    assert len({mine["k"] for mine in ours}) > 2
    assert len({round(mine["t"] or 0, 9) for mine in ours}) == len(ours), "every table tests another value"


def test_the_certificate_says_what_pycanon_measures(rivals: Path, tmp_path: Path) -> None:
    models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.4, distance="equal"), ck.BetaLikeness("disease", 4, kind="basic")]
    release = ck.anonymize(ck.datasets.hospital(400), ck.datasets.hospital_schema(), models)
    release.save(tmp_path / "out")
    quasi = list(release.certificate.columns["quasi"])
    requested = question(tmp_path / "out" / "release.csv", ["k", "t", "beta"], quasi=quasi, secret="disease")
    (theirs,) = ask(rivals, [requested])
    measured = [guarantee.measured for guarantee in release.certificate.guarantees]
    assert [theirs["k"], theirs["t"], theirs["beta"]] == pytest.approx(measured, abs=1e-9)


def test_faults_that_closeknit_does_not_share(rivals: Path, tmp_path: Path) -> None:
    """Each is a fact about the pinned version; a failure here means that it was repaired and can be compared again."""
    raw = table(rows=80, seed=9, number=False, gaps=0.2)
    gaps = Columns.of({"job": ["cook", "cook", None, "smith", "smith"], "secret": [*"abcab"]})
    only_job = ck.Schema(quasi={"job": ck.flat()}, sensitive={"secret": ck.flat()})
    constant = Columns.of({"age": [20, 20, 21], "job": ["cook"] * 3, "secret": [7, 7, 7]})
    for name, columns in (("raw", raw), ("gaps", gaps), ("constant", constant)):
        write_csv(columns, tmp_path / f"{name}.csv")
    order = np.random.default_rng(1).permutation(80).tolist()
    straight, shuffled, dropped, flat, delta = ask(
        rivals,
        [
            question(tmp_path / "raw.csv", ["k", "t"]),
            question(tmp_path / "raw.csv", ["k", "t"], order=order),
            question(tmp_path / "gaps.csv", ["k"], quasi=["job"], keep_missing=True),
            question(tmp_path / "constant.csv", ["t"], number=True),
            question(tmp_path / "raw.csv", ["delta"]),
        ],
    )
    mine = measure_audit(raw, number=False)
    assert straight["t"] == pytest.approx(mine["t"])
    assert shuffled["k"] == straight["k"]
    assert shuffled["t"] != pytest.approx(mine["t"]), "labels of a shuffled index are read as positions"
    assert measure_audit(raw.take(np.array(order)), number=False) == mine
    assert dropped["k"] == 2, "a row whose only quasi cell is missing is left out"
    assert ck.audit(gaps, only_job, [ck.KAnonymity(1)]).guarantees[0].measured == 1
    assert flat["t"] == "ZeroDivisionError"
    assert measure_audit(constant, number=True)["t"] == 0
    assert math.isfinite(delta["delta"]), "a value that is absent from a class is skipped"
    (guarantee,) = ck.audit(raw, schema(False), [ck.DeltaDisclosure("secret", 100)]).guarantees
    assert guarantee.status == "not met"
    assert guarantee.measured is None

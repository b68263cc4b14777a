"""Matched points come to their target or say that they do not; bisection is bounded; processes change nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.api.level_search import match_level
from closeknit.api.worker_pool import SMALL, WorkerPool, processes
from closeknit.datasets import hospital, hospital_schema
from conftest import examples

SEED = 2**100
ROWS = 160
MODELS = [ck.KAnonymity(4), ck.TCloseness("disease", 0.3)]


# Matching ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("match", ["t", "loss"])
def test_matched_points_come_to_the_first_ones_or_say_that_they_do_not(match: str) -> None:
    rivals = ["stack_and_deal", "mondrian"]
    found = ck.frontier(hospital(ROWS), hospital_schema(), MODELS, rivals, vary={"t": [0.2, 0.4]}, match=match, seed=SEED)
    first, others = found.points[:2], found.points[2:]
    came_to = [point.level if match == "t" else point.loss and point.loss.a for point in first]
    assert [point.target for point in others] == came_to and found.matched == ("t of disease" if match == "t" else "loss")
    for point in others:
        assert point.loss and point.level is not None and point.target is not None
        measured = point.level if match == "t" else point.loss.a
        assert measured <= point.target and point.runs <= 14
        assert point.met == (point.target - measured <= 0.01 * point.target)
        assert point.met or f"mondrian at {point.requested:.6g} is the nearest to the target" in str(found)
        models = [ck.KAnonymity(4), ck.TCloseness("disease", point.requested)]
        assert ck.anonymize(hospital(ROWS), hospital_schema(), models, ck.Mondrian(), seed=SEED).loss == point.loss.a


def test_a_target_out_of_reach_is_a_row() -> None:
    rivals: Any = ["mondrian", (ck.Mondrian(), [ck.KAnonymity(60), ck.TCloseness("disease", 1)])]
    models = [ck.KAnonymity(2), ck.TCloseness("disease", 1)]
    found = ck.frontier(hospital(ROWS), hospital_schema(), models, rivals, vary={"t": [0.9]}, match="loss", seed=SEED)
    first, other = found.points
    assert first.ok and first.loss and other.target == first.loss.a
    assert (
        not other.ok
        and other.met is False
        and other.reason == (f"no setting tried from 0.001 to 1 reaches the target {other.target:.4g}")
    )


def test_what_is_matched_must_be_measured() -> None:
    with pytest.raises(ck.BadInput, match=r"match='beta' is not measured here; choose one of: loss, t of disease, k"):
        ck.frontier(hospital(40), hospital_schema(), MODELS, ["mondrian"], match="beta")


@given(
    target=st.floats(0.05, 0.95),
    power=st.floats(0.3, 3),
    rises=st.booleans(),
    side=st.sampled_from(["below", "above"]),
    refused=st.floats(0, 0.2),
)
@settings(max_examples=examples(100))
def test_bisection_on_a_monotone_curve(target: float, power: float, rises: bool, side: str, refused: float) -> None:
    def level(value: float) -> float | None:
        return None if value < refused else value**power if rises else 1 - value**power

    tried: list[float] = []

    def run(value: float) -> float:
        tried.append(value)
        return value

    found = match_level(run, level, target, 0.001, 1.0, side=side, rises=rises, runs=40, tolerance=1e-3)
    possible = [x for x in (level(value / 1000) for value in range(1, 1001)) if x is not None]
    right = [x for x in possible if (x <= target if side == "below" else x >= target)]
    assert len(tried) == len(set(tried)) <= 40 and all(0.001 <= value <= 1 for value in tried)
    if found is None:
        assert not right
        return
    assert found.runs == len(tried) and found.level == level(found.value)
    assert found.level <= target if side == "below" else found.level >= target
    assert found.met == (abs(found.level - target) <= 1e-3 * target)
    nearest = min(abs(x - target) for x in right) if right else 0.0
    assert abs(found.level - target) <= max(nearest, 1e-3 * target) + 1e-3


def test_of_a_curve_that_jumps_the_best_setting_tried_is_kept() -> None:
    levels: dict[float, float] = {}

    def level(value: float) -> float:
        levels[value] = round(value * 7) % 3 / 3 + value / 10
        return levels[value]

    found = match_level(lambda value: value, level, 0.5, 0.01, 1.0, runs=9)
    assert found is not None and len(levels) <= 9
    assert found.level == max(x for x in levels.values() if x <= 0.5)


def test_bisection_in_whole_numbers_tries_each_once() -> None:
    tried: list[float] = []

    def run(value: float) -> float:
        tried.append(value)
        return value

    found = match_level(run, lambda k: k / 10, 0.35, 9, 2, rises=False, whole_numbers=True)
    assert found is not None and (found.value, found.met) == (3, False)
    assert len(tried) == len(set(tried)) and all(isinstance(value, int) for value in tried)


# Processes -----------------------------------------------------------------------------------------------------------------

SCRIPT = """
import json, sys
import closeknit as ck

print("the script runs", file=sys.stderr)
table, schema = ck.datasets.hospital(80), ck.datasets.hospital_schema()
models = [ck.KAnonymity(4), ck.TCloseness("disease", 0.3)]
options = {"vary": {"t": [0.2, 0.4]}, "match": "t", "seed": 2**100}
found = [ck.frontier(table, schema, models, ["stack_and_deal", "mondrian"], jobs=jobs, **options) for jobs in (1, 2)]
points = [[point.model_copy(update={"seconds": 0.0}).model_dump() for point in curve.points] for curve in found]
print(json.dumps(points[0] == points[1]), len(points[0]))
"""


def test_two_processes_give_what_one_gives_and_the_script_runs_once(tmp_path: Path) -> None:
    """The script has no `if __name__ == "__main__"`, as those of newcomers."""
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(ck.__file__).parents[1])}
    ran = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "true 4\n" and ran.stderr.count("the script runs") == 1


def test_small_tables_start_no_process() -> None:
    assert processes(None, SMALL - 1) == 1 <= processes(None, SMALL) and processes(2, 5) == 2
    with pytest.raises(ck.BadInput, match="jobs=0 is too small"):
        ck.frontier(hospital(40), hospital_schema(), MODELS, ["mondrian"], jobs=0)


@dataclass(frozen=True)
class OfTheScript:
    """Stands for a model that a user's script defines."""

    add: int


OfTheScript.__module__ = "__main__"


def test_what_the_script_defines_is_worked_out_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "OfTheScript", OfTheScript, raising=False)
    with WorkerPool(OfTheScript(1), jobs=2) as workers:
        assert workers.each(lambda shared, piece: (shared.add + piece, os.getpid()), [1, 2]) == [
            (2, os.getpid()),
            (3, os.getpid()),
        ]


def test_what_has_no_name_in_a_module_is_worked_out_here() -> None:
    with WorkerPool(lambda: 3, jobs=2) as workers:
        assert workers.each(lambda shared, piece: shared() + piece, [1, 2]) == [4, 5]

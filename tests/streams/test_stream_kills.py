"""Killed with SIGKILL at random places: no row is lost, doubled or published in a class below k, at any instant."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import SOAK_SEED
from stream_kills import Case, run_kills

CASES = {  # with how many of a thousand kills
    "knit_stream to a file": (Case("knit_stream", 96, True), 400),
    "knit_stream by the clock to a pipe": (Case("knit_stream", "5s", False), 300),
    "castle to a file": (Case("castle", 40, True), 300),
}


@pytest.mark.parametrize("name", CASES)
def test_killed_a_few_times(name: str, tmp_path: Path) -> None:
    assert run_kills(CASES[name][0], tmp_path, 8, 1) == 8


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
def test_killed_a_thousand_times_in_all(name: str, tmp_path: Path) -> None:
    case, kills = CASES[name]
    assert sum(kills for _, kills in CASES.values()) == 1000
    assert run_kills(case, tmp_path, kills, SOAK_SEED) == kills

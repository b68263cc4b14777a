"""The common checks of methods on Spark: each beside one machine, on small generated tables."""

from __future__ import annotations

from typing import Any

import pytest

from closeknit.checks import Check, engine_checks
from conftest import SOAK, SOAK_SEED

SOME = list(engine_checks("spark"))
MORE = list(engine_checks("spark", random=8, seed=SOAK_SEED, turns=4)) if SOAK else []


@pytest.mark.parametrize("check", SOME, ids=[check.name for check in SOME])
def test_check(spark: Any, check: Check) -> None:
    check.run()


@pytest.mark.soak
@pytest.mark.parametrize("check", MORE, ids=[check.name for check in MORE])
def test_check_on_more_tables(spark: Any, check: Check) -> None:
    check.run()

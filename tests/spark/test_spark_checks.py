"""The common checks of methods on Spark: each compared with one machine, on small generated tables."""

from __future__ import annotations

from typing import Any

import pytest

import closeknit as ck
from closeknit.checks import Check, engine_checks
from closeknit.checks.engines import same_as_on_one_machine
from closeknit.checks.tables import edge_tables
from conftest import SOAK, SOAK_SEED

KEPT = (  # one of each way in which a method scales, those that see all rows in one place, and a refusal; the rest under soak
    "stack_and_deal(dealing=literal)",
    "knit",
    "mondrian(cut=median, dims=widest)",
    "incognito",
    "pca_draw",
    "anatomy(l=2)",
)
SOME = [
    pytest.param(check, marks=() if check.thing.removeprefix("spark method ") in KEPT else pytest.mark.soak, id=check.name)
    for check in engine_checks("spark")
]
MORE = list(engine_checks("spark", random=8, seed=SOAK_SEED, turns=4)) if SOAK else []


@pytest.mark.parametrize("check", SOME)
def test_check(spark: Any, check: Check) -> None:
    check.run()


def test_every_kept_check_is_there() -> None:
    assert {check.thing.removeprefix("spark method ") for check in engine_checks("spark")} >= set(KEPT)


def test_a_method_that_must_see_all_rows_is_refused() -> None:
    """SoftStop's proof is about one run over all rows; the refusal needs no session."""
    (table,) = [each for each in edge_tables() if each.name == "one row"]
    same_as_on_one_machine("spark", ck.SoftStop(), table)


@pytest.mark.soak
@pytest.mark.parametrize("check", MORE, ids=[check.name for check in MORE])
def test_check_on_more_tables(spark: Any, check: Check) -> None:
    check.run()

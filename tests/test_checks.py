"""The common checks: (everything registered) x (its examples) x (checks) x (small generated tables)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import closeknit as ck
from closeknit.checks import Check, check_method, every_check
from closeknit.checks.broken import Broken
from closeknit.checks.examples import KINDS, MODELS
from closeknit.checks.known import KNOWN
from closeknit.checks.tables import edge_tables
from closeknit.core.table import Outcome, Partition
from conftest import SOAK

EVERY = list(every_check(random=60, rounds=120) if SOAK else every_check())


@pytest.mark.parametrize("check", EVERY, ids=[check.name for check in EVERY])
def test_check(check: Check) -> None:
    reason = check.known_failure
    if reason is None:
        check.run()
        return
    with pytest.raises(Exception):  # noqa: B017 - a known failure may be any; that it is gone must be noticed
        check.run()
    pytest.xfail(reason)


def test_names_are_unique() -> None:
    names = [check.name for check in EVERY]
    assert len(names) == len(set(names))


def test_known_failures_name_checks_that_exist() -> None:
    there = {(check.thing, check.check) for check in EVERY}
    assert {(thing, name) for thing, checks in KNOWN.items() for name in checks} <= there


def test_examples_name_things_that_exist() -> None:
    from closeknit.core.kind_forms import KINDS as REGISTERED
    from closeknit.models import REGISTRY

    assert set(MODELS) == set(REGISTRY) and set(KINDS) == set(REGISTERED)


@dataclass(frozen=True)
class BadMethod:
    """It goes by the order of the input, or puts equal secrets together, and promises nothing."""

    name: ClassVar[str] = "bad"
    serves_both: ClassVar[bool] = False
    scale: ClassVar[str] = "plan"
    by: str = "input"

    def run(self, table, models, seed, progress) -> Outcome:  # type: ignore[no-untyped-def]
        order = np.argsort(table.rows if self.by == "input" else table.sensitive[:, 0], kind="stable")
        class_of = np.empty(len(table), dtype=np.int32)
        class_of[order] = np.arange(len(table)) // 5
        return Outcome(Partition.of(class_of))


def test_a_bad_method_is_found_out() -> None:
    tables = [table for table in edge_tables() if table.name == "every kind"]
    with pytest.raises(Broken, match="row_order_is_irrelevant") as found:
        check_method(BadMethod("input"), tables)
    assert "promise_kept" not in str(found.value), "repair and certificate stand between a bad method and the promise"


def test_a_broken_promise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without repair and with a model that always says yes, the oracle alone is left to notice."""
    monkeypatch.setattr("closeknit.api.repaired", lambda table, partition, models: partition)
    monkeypatch.setattr(ck.TCloseness, "holds", lambda self, classes: np.ones(len(classes), dtype=bool))
    tables = [table for table in edge_tables() if table.name == "every kind"]
    with pytest.raises(Broken, match="promise_kept"):
        check_method(BadMethod("secret"), tables)

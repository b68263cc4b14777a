"""The common checks: (everything registered) x (its parameter_sets) x (checks) x (small generated tables)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import closeknit as ck
from closeknit.checks import Case, Check, check_method, check_model, every_check, form_checks, parameter_sets
from closeknit.checks.failures import CheckFailed
from closeknit.checks.forms import some_classes
from closeknit.checks.known_failures import KNOWN
from closeknit.checks.methods import guarantee_met, run_case
from closeknit.checks.tables import edge_tables
from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.kind_forms import KINDS
from closeknit.core.method import Method
from closeknit.core.table import Outcome, Partition, Table, WrittenTable
from closeknit.forms import REGISTRY as FORMS
from closeknit.forms import Generalized
from closeknit.forms.grouped import Grouped
from closeknit.methods import REGISTRY as METHODS
from closeknit.models import REGISTRY as MODELS
from conftest import SOAK, SOAK_SEED

EVERY = list(every_check(random=1, turns=3))  # 8 in `make soak`
MORE = list(every_check(random=8, rounds=40, seed=SOAK_SEED)) if SOAK else []


def together(checks: list[Check]) -> list[Any]:
    """The checks of one thing on one table, which share what was made of it."""
    found = [list(of_one) for _, of_one in groupby(checks, lambda check: (check.thing, check.on))]
    return [pytest.param(of_one, id=f"{of_one[0].thing} | {of_one[0].on}") for of_one in found]


@pytest.mark.soak
@pytest.mark.parametrize("checks", together(MORE))
def test_checks_on_more_tables(checks: list[Check]) -> None:
    test_checks(checks)


@pytest.mark.parametrize("checks", together(EVERY))
def test_checks(checks: list[Check]) -> None:
    """All of them are run; a known failure may be any, and that it is gone must be noticed."""
    failed = list[Exception]()
    for check in checks:
        try:
            check.run()
        except Exception as error:
            error.add_note(check.name)
            failed += [] if check.known_failure else [error]
        else:
            failed += [CheckFailed(f"{check.name} passes again: {check.known_failure}")] if check.known_failure else []
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(checks)} checks failed", failed)


def test_names_are_unique() -> None:
    names = [check.name for check in EVERY]
    assert len(names) == len(set(names))


def test_known_failures_name_checks_that_exist() -> None:
    there = {(check.thing, check.check) for check in EVERY}
    assert {(thing, name) for thing, checks in KNOWN.items() for name in checks} <= there


def test_examples_name_things_that_exist() -> None:
    assert set(parameter_sets.METHODS) == set(METHODS) and set(parameter_sets.FORMS) == set(FORMS)
    assert set(parameter_sets.MODELS) == set(MODELS) and set(parameter_sets.KINDS) == set(KINDS)
    assert set(parameter_sets.REFUSED) == {*METHODS, *FORMS, *MODELS}


@dataclass(frozen=True)
class BadMethod(Method):
    """It goes by the order of the input, or puts equal secrets together, and guarantees nothing."""

    name = "bad"
    scale = "plan"
    by: str = "input"

    def run(self, table, models, seed, progress) -> Outcome:  # type: ignore[no-untyped-def]
        order = np.argsort(table.rows if self.by == "input" else table.sensitive[:, 0], kind="stable")
        class_of = np.empty(len(table), dtype=np.int32)
        class_of[order] = np.arange(len(table)) // 5
        return Outcome(Partition.of(class_of))


@dataclass(frozen=True)
class OwnSize(ck.KAnonymity):
    """A guarantee of a user: it is not registered, and the oracle does not define it."""

    name: ClassVar[str] = "own_size"


@dataclass(frozen=True)
class OwnDiversity(ck.LDiversity):
    name: ClassVar[str] = "own_diversity"


class OnlySmall(OwnDiversity):
    """It claims to be monotone, but a merged class is no longer small."""

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        return classes.sizes < 12


def test_guarantees_of_a_user_are_checked() -> None:
    assert check_model(OwnSize(3), rounds=1) == check_model(OwnDiversity("secret", 2), ck.flat(), rounds=1) == 5
    with pytest.raises(CheckFailed, match="merging_keeps_it"):
        check_model(OnlySmall("secret", 2), ck.flat(), rounds=4)
    tables = [table for table in edge_tables() if table.name in ("unicode", "persons")]
    own = [replace(table, models=(OwnSize(3), OwnDiversity(next(iter(table.schema.sensitive)), 2))) for table in tables]
    assert check_method(ck.Mondrian(), own) == 30


def test_a_guarantee_of_a_user_that_is_not_met_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    table = next(table for table in edge_tables() if table.name == "unicode")
    own = replace(table, models=(OwnDiversity("blood", 2),))
    release = run_case(ck.Mondrian(), own)
    monkeypatch.setattr("closeknit.checks.methods.run_once", lambda method, case: release)
    with pytest.raises(CheckFailed, match="a class does not meet"):
        guarantee_met(ck.Mondrian(), replace(own, models=(OwnDiversity("blood", 4),)))


def test_a_bad_method_is_found_out() -> None:
    tables = [table for table in edge_tables() if table.name == "every kind"]
    with pytest.raises(CheckFailed, match="row_order_is_irrelevant") as found:
        check_method(BadMethod("input"), tables)
    assert "guarantee_met" not in str(found.value), "repair and certificate stand between a bad method and the guarantee"


def test_a_broken_guarantee_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without repair and with a model that always says yes, the oracle alone is left to notice."""
    monkeypatch.setattr("closeknit.api.table_release.repair_partition", lambda table, partition, models: partition)
    monkeypatch.setattr(ck.TCloseness, "holds", lambda self, classes: np.ones(len(classes), dtype=bool))
    tables = [table for table in edge_tables() if table.name == "every kind"]
    with pytest.raises(CheckFailed, match="guarantee_met"):
        check_method(BadMethod("secret"), tables)


class SortedByRawValues(Generalized):
    """A bad form: inside a class its rows stand in the order of their raw values."""

    def write(self, table: Table, partition: Partition, seed: int = 0) -> WrittenTable:
        good = super().write(table, partition, seed)
        classes = partition.class_of[good.rows]
        starts = {number: place for place, number in reversed(list(enumerate(classes.tolist())))}
        order = np.lexsort((table.quasi[good.rows, -1], [starts[number] for number in classes.tolist()]))
        return WrittenTable(good.columns.take(order), good.rows[order])


class TellsUnusedValues(Generalized):
    """A bad form: lists of distinct values still hold those of suppressed rows."""

    def write(self, table: Table, partition: Partition, seed: int = 0) -> WrittenTable:
        good = super().write(table, partition, seed)
        columns = dict(good.columns.columns)
        for name, shown in zip(table.schema.sensitive, table.shown, strict=True):
            codes = table.secret(name)[0][good.rows]
            columns[name] = Column(shown, np.where(codes == len(shown), -1, codes))
        return WrittenTable(Columns(columns, good.columns.rows), good.rows)


class SaysTheLowest(Generalized):
    """A bad form: a range of numbers is written as its lower end."""

    def write(self, table: Table, partition: Partition, seed: int = 0) -> WrittenTable:
        good = super().write(table, partition, seed)
        columns = dict(good.columns.columns)
        for name, domain in zip(table.schema.quasi, table.quasi_domains, strict=True):
            if domain.tree is None:
                cells = [None if cell is None else str(cell).strip("[]").split(", ")[0] for cell in columns[name].cells()]
                columns[name] = Columns.of({name: cells})[name]
        return WrittenTable(Columns(columns, good.columns.rows), good.rows)


@pytest.mark.parametrize(
    ("form", "table", "failing"),
    [
        (SortedByRawValues(), "two secrets", {"order_comes_from_cells", "moved_leaf_is_not_disclosed"}),
        (TellsUnusedValues(), "equal rows but one", {"suppressed_rows_leave_no_trace"}),
        (SaysTheLowest(), "one column", {"cells_hold_raw_values"}),
        (Generalized(), "every kind", set()),
    ],
)
def test_a_bad_form_is_found_out(form: Generalized, table: str, failing: set[str]) -> None:
    found = set()
    for check in form_checks(form, [table_named(table)]):
        try:
            check.run()
        except CheckFailed:
            found.add(check.check)
    assert failing <= found and (failing or not found)


def table_named(name: str) -> Case:
    tables = {table.name: table for table in edge_tables()}
    if name in tables:
        return tables[name]
    cells = {column: codes.cells() for column, codes in tables["unicode"].columns.items()}
    last = int(np.flatnonzero(some_classes(tables["unicode"]) < 0)[0])
    cells["blood"][last] = "AB, of a suppressed row"
    return replace(tables["unicode"], name=name, columns=Columns.of(cells))


@dataclass(frozen=True)
class Joined(Grouped):
    """A bad form: rows line up after all."""

    name: ClassVar[str] = "bucketized"
    number: str = "bucket"

    def column_groups(self, schema: ck.Schema) -> Any:
        return ck.bucketized().column_groups(schema)

    def write(self, table: Table, partition: Partition, seed: int = 0) -> WrittenTable:
        good = super().write(table, partition, seed)
        rows, secrets = good.rows, dict(good.columns.columns)
        for name, shown in zip(table.schema.sensitive, table.shown, strict=True):
            cells = [None if code == len(shown) else shown.tolist()[code] for code in table.secret(name)[0][rows].tolist()]
            secrets[name] = Columns.of({name: cells})[name]
        return WrittenTable(Columns(secrets, len(rows)), rows)


@dataclass(frozen=True)
class ByClass(Joined):
    """A bad form: buckets stand in the order of the method's class numbers."""

    def write(self, table: Table, partition: Partition, seed: int = 0) -> WrittenTable:
        good = ck.bucketized().write(table, partition, seed)
        order = np.argsort(partition.class_of[good.rows], kind="stable")
        numbers = Columns.of({"bucket": (partition.class_of[good.rows][order] + 1).tolist()})["bucket"]
        columns = Columns({**good.columns.take(order).columns, "bucket": numbers}, len(order))
        return WrittenTable(columns, good.rows[order], {name: rows[order] for name, rows in good.behind.items()})


@dataclass(frozen=True)
class Mixed(Joined):
    """A bad form: the secrets of all buckets are mixed."""

    def write(self, table: Table, partition: Partition, seed: int = 0) -> WrittenTable:
        good = ck.bucketized().write(table, partition, seed)
        last = list(table.schema.sensitive)[-1]
        order = np.argsort(good.columns[last].codes, kind="stable")
        columns = Columns({**good.columns.columns, last: good.columns[last].take(order)}, len(order))
        return WrittenTable(columns, good.rows, {**good.behind, last: good.behind[last][order]})


@pytest.mark.parametrize(
    ("form", "failing"),
    [
        (Joined(), {"links_are_broken"}),
        (ByClass(), {"order_comes_from_cells"}),
        (Mixed(), {"reading_undoes_writing"}),
        (ck.bucketized(), set()),
    ],
)
@pytest.mark.parametrize("table", ["missing cells", "unicode"])
def test_a_form_that_keeps_links_is_found_out(form: Any, table: str, failing: set[str]) -> None:
    found = set()
    for check in form_checks(form, [table_named(table)], "form"):
        try:
            check.run()
        except CheckFailed:
            found.add(check.check)
    assert failing <= found and (failing or not found), found

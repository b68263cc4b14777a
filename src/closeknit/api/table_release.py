"""The release of a coded table: the method runs, its outcome is repaired, written and certified, and the best one stays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.api.publishing import choose_form, publish_table
from closeknit.api.recipe import build_from_form
from closeknit.api.request_checks import check_models, check_request
from closeknit.api.run_ledger import record_run
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.geometry import scales
from closeknit.core.look_alikes import with_folded
from closeknit.core.method import Method, Progress, can_plan, deals_by_rank, ignore_progress, list_guarantees
from closeknit.core.model import Model, joints
from closeknit.core.params import number
from closeknit.core.schema import Schema
from closeknit.core.table import Form, Outcome, Partition, Table
from closeknit.forms import REGISTRY as FORMS
from closeknit.models import KAnonymity
from closeknit.search.budget_cuts import spend_budgets
from closeknit.search.persons import must_keep_together, run_by_person
from closeknit.search.repair import repair_partition
from closeknit.search.settling import settle_partition
from closeknit.search.suppression import without_outliers


@dataclass(frozen=True)
class ReleaseResult:
    """The release of a coded table: its partition, the written columns and their certificate."""

    table: Table
    partition: Partition
    columns: Columns
    certificate: Certificate
    form: Form
    method: Method  # repeats the release
    notes: tuple[str, ...]


def release_table(
    table: Table,
    models: Sequence[Model],
    method: Method,
    *,
    suppress: float = 0.0,
    form: Form | None = None,
    seed: int = 0,
    progress: Progress = ignore_progress,
) -> ReleaseResult:
    """Run `anonymize` without reading and encoding, so that many settings can be tried on one coded table.

    `models` are all guarantees, as `check_guarantees` returns them.
    """
    usual = build_from_form("form", method.usual_form, FORMS)
    table = (form or usual).before(table, seed)
    if not deals_by_rank(method, table.schema):
        table = table.take(table.tie_order(seed))
    table = table.join_secrets(joints(models))
    table = replace(table, suppressible=math.floor(number("suppress", suppress, least=0, most=1) * len(table)))
    check_request(table, with_folded(models, table), method)
    record_run(table.identity, models)  # from here on coins are drawn
    found, refusals = [], []
    for visible in _list_visible(models, method):
        try:
            required = with_folded(visible, table)
            outcome = _outcome(table, required, method, seed, progress)
            shape = choose_form(outcome.form, form, usual, method)
            progress("writing", 0.8)
            best = _best(table, models, required, outcome, shape, method, seed)
            found.append(ReleaseResult(table, *best, shape, outcome.repeat or method, tuple(outcome.notes)))
        except Unsatisfiable as refusal:  # a stricter guarantee may be out of reach where the requested one is not
            refusals.append(refusal)
    if not found:
        raise refusals[0]
    progress("done", 1.0)
    return min(found, key=lambda result: result.certificate.loss.a)


def _list_visible(models: Sequence[Model], method: Method) -> list[list[Model]]:
    """The guarantees that the method sees: those about classes; and, as a second attempt, with stricter ones about single
    classes instead of those that are settled on written cells, or that the method treats as a budget. The attempt with less
    loss is published.
    """
    itself = [model for model in models if model.over is not None or "population" in model.needs] if method.sees_all else []
    seen = [model for model in models if model.by_class or model in itself]
    spent = [model for model in seen if model.budget] if method.spends else []
    replaced = [model for model in models if model not in seen or model in spent]
    stricter = [model.stricter for model in replaced if model.stricter is not None]
    attempts = [seen or [KAnonymity(1)]]
    if stricter:
        attempts.append([*(model for model in seen if model not in spent), *stricter])
    return [visible for visible in attempts if can_plan(method, visible)] or attempts[:1]


def _outcome(table: Table, models: Sequence[Model], method: Method, seed: int, progress: Progress) -> Outcome:
    """Run the method with the rows of one person together, and repair its outcome if a guarantee is not met yet."""

    def work(part: Table) -> Outcome:
        return method.run(part, models, seed, progress)

    outcome = run_by_person(table, work) if must_keep_together(table, method) else work(table)
    if outcome.settled:
        return outcome
    classwise = [model for model in models if model.by_class]
    partition = repair_partition(table, outcome.partition, classwise)
    budgets = [model for model in classwise if model.budget]
    if budgets and outcome.form is None and table.persons is None and not method.spends:
        others = [model for model in classwise if not model.budget]
        partition = spend_budgets(table, partition, others, budgets, scales(table))
    return replace(outcome, partition=partition)


def _best(
    table: Table, models: Sequence[Model], required: Sequence[Model], outcome: Outcome, form: Form, method: Method, seed: int
) -> tuple[Partition, Columns, Certificate]:
    """Return the outcome with the least loss: the method's own, or one with suppressed rows; each is certified as written.

    A method with its own form suppresses rows itself. For any other one the outliers of its classes are suppressed, and the
    remaining classes are repaired, or the method runs again on the remaining rows.
    """
    classwise = [model for model in required if model.by_class]

    def publish(partition: Partition) -> tuple[Partition, Columns, Certificate]:
        settled = settle_partition(table, partition, models, classwise, form, seed)
        return settled, *publish_table(table, settled, models, form, seed)

    best = publish(outcome.partition)
    if table.suppressible == 0 or outcome.form is not None:
        return best
    trimmed = without_outliers(table, outcome.partition)
    kept = np.flatnonzero(trimmed.class_of >= 0)
    if len(kept) == len(table):
        return best
    for partition in (lambda: trimmed, lambda: _rerun_method(table, kept, required, method, seed)):
        try:
            found = publish(repair_partition(table, partition(), classwise))
        except (Unsatisfiable, BadInput):  # the remaining rows cannot meet a guarantee, or have a unique plain value
            continue
        best = found if found[2].loss.a < best[2].loss.a else best
    return best


def _rerun_method(table: Table, kept: NDArray[np.int64], models: Sequence[Model], method: Method, seed: int) -> Partition:
    """Run the method on these rows only."""
    class_of = np.full(len(table), -1, dtype=np.int32)
    rest = replace(table.take(kept), suppressible=0)
    class_of[kept] = _outcome(rest, models, method, seed, ignore_progress).partition.class_of
    return Partition.of(class_of)


def check_guarantees(schema: Schema, models: Sequence[Model], method: Method, form: Form | None) -> list[Model]:
    """Return all guarantees, including the method's own; those without a meaning here are refused."""
    own = method.guarantees(schema)
    for model in models:
        if model.of_method and model not in own:
            what = f"'{model.describe(None)}' is a property of a method, and {method.name} does not have it"
            raise BadInput(what, right="choose soft_stop, or leave it out")
    if any(model.of_method for model in own) and form is not None and form.merges_classes:
        what = f"{form} writes many classes alike, and {method.name} covers exchanges inside its own classes only"
        raise BadInput(
            what, right="leave snap, levels and cells out of the form; coarsen=True applies a step before the method"
        )
    models = list_guarantees(method, schema, models)
    check_models(schema, models, form or build_from_form("form", method.usual_form, FORMS))
    return models


def by_input_row(table: Table, partition: Partition) -> Any:
    """Return the class of each row in the order of the input.

    Args:
        table: the rows.
        partition: their classes.
    """
    class_of = np.empty(len(table), dtype=np.int32)
    class_of[table.rows] = partition.class_of
    return class_of

"""`anonymize` a table, `run` a recipe, `suggest` roles and kinds of the columns."""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.api.distributed import ON_SPARK, anonymize_on_spark, wants_spark
from closeknit.api.publishing import choose_form, publish_table
from closeknit.api.recipe import (
    FormSpec,
    MethodSpec,
    ModelSpecs,
    Recipe,
    build_from_form,
    form_of,
    method_of,
    models_from,
    recipe_forms,
    usual_method,
)
from closeknit.api.reporting import build_person_counter
from closeknit.api.request_checks import check_models, check_request, read_table
from closeknit.api.run_ledger import digest_columns, keep_attestable, record_run
from closeknit.api.suggestion import Suggestion
from closeknit.api.suggestion import suggest as guess
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.core.date_shift import refuse_shifts, shift_dates
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.geometry import scales
from closeknit.core.look_alikes import with_folded
from closeknit.core.method import Method, Progress, can_plan, deals_by_rank, ignore_progress, list_guarantees
from closeknit.core.model import Model, joints, refuse_whole
from closeknit.core.params import choice, number, whole
from closeknit.core.rank_swap import refuse_swaps, swap_ranks
from closeknit.core.schema import Schema, require_schema
from closeknit.core.table import Form, Outcome, Partition, Table
from closeknit.forms import REGISTRY as FORMS
from closeknit.io.csv import CsvFormat
from closeknit.io.files import kind_of, part_files, read_with_format
from closeknit.io.parquet import parquet_types
from closeknit.io.source import Source
from closeknit.io.sources import place_of, source_of
from closeknit.models import KAnonymity
from closeknit.release import LocalRelease, Origin, Release
from closeknit.search.budget_cuts import spend_budgets
from closeknit.search.persons import must_keep_together, run_by_person
from closeknit.search.repair import repair_partition
from closeknit.search.settling import settle_partition
from closeknit.search.suppression import without_outliers

SHORT_SEED = 2**64


def anonymize(
    data: Any,
    schema: Schema,
    models: ModelSpecs,
    method: MethodSpec | None = None,
    *,
    suppress: float = 0.0,
    form: FormSpec | None = None,
    seed: int | None = None,
    csv: CsvFormat | None = None,
    escape_formulas: bool = False,
    allow_vacuous: bool = False,
    progress: Progress | None = None,
    engine: str | None = None,
    master: str | None = None,
) -> Release:
    """Return a certified release of a table; nothing is written to disk.

    Models, method and form are instances, or written as in a recipe: `{"k_anonymity": {"k": 4}}`, `"mondrian"`.

    Args:
        data: A frame (pandas, polars, Arrow, Spark), a mapping of columns, the path of a file, or a `Source`.
        schema: Role, kind and hierarchy of each column.
        models: The guarantees to meet.
        method: The algorithm that assigns rows to equivalence classes; default: the usual one of the form.
        suppress: Largest share of rows that may be suppressed, from 0 to 1.
        form: How the release is written; default: the usual one of the method.
        seed: Makes the release reproducible; default: 128 random bits.
        csv: Format of a CSV file; what it leaves open is detected.
        escape_formulas: Write an apostrophe in front of text that a spreadsheet would execute.
        allow_vacuous: Note a guarantee that excludes nothing on this table instead of refusing it.
        progress: Called with the current step and the share of the work done.
        engine: "local", or "spark", which keeps the rows on Spark; a Spark frame implies it.
        master: Address of the Spark cluster; default: this machine.

    Raises:
        Unsatisfiable: A guarantee cannot be met.
        BadInput: The table or the request is wrong.
    >>> import closeknit as ck
    >>> table = ck.datasets.hospital(200)
    >>> schema = ck.datasets.hospital_schema()
    >>> ck.anonymize(table, schema, [ck.KAnonymity(4), ck.TCloseness("disease", 0.3)]).certificate.ok
    True
    """
    requested, progress = form_of(form), progress or ignore_progress
    method = usual_method(requested) if method is None else method_of(method)
    number("suppress", suppress, least=0, most=1)
    choice("escape_formulas", escape_formulas, (True, False))
    choice("allow_vacuous", allow_vacuous, (True, False))
    named, given_seed = models_from(models), seed is not None
    models = check_guarantees(require_schema(schema), named, method, requested)
    seed = _seed(seed)
    if wants_spark(data, engine, master):
        options = {"suppress": suppress, "allow_vacuous": allow_vacuous, "master": master, "csv": csv, "progress": progress}
        return _on_spark(data, schema, models, method, requested, seed, escape_formulas, options)
    progress("reading", 0.0)
    data = source_of(data)
    columns, found = read_table(data, csv, schema)
    described = _data_form(data, False, found.form(csv) if found else {})
    progress("encoding", 0.1)
    identity = digest_columns(columns) if method.runs_once else b""  # before dates are shifted by the seed
    if method.runs_once:
        refuse_swaps(schema, f"with the method {method.name}, whose guarantee is about the true numbers")
    columns, coded = shift_dates(swap_ranks(columns, schema, seed), schema, seed)
    table = replace(coded.encode(columns), allow_vacuous=allow_vacuous)
    if method.runs_once:
        models = keep_attestable(models, named, identity, given_seed)
        table = replace(table, identity=identity)
    done = release_table(table, models, method, suppress=suppress, form=requested, seed=seed, progress=progress)
    parquet = described is not None and not isinstance(data, Source) and kind_of(data) == ".parquet"
    partition = by_input_row(done.table, done.partition)
    flags = {"escape_formulas": escape_formulas, "allow_vacuous": allow_vacuous}
    named = [model for model in models if not model.of_method]  # a method adds its own again
    return LocalRelease(
        done.columns,
        done.certificate.with_escapes() if escape_formulas else done.certificate,
        partition=partition,
        parts=done.form.parts(done.columns, Schema.from_forms(done.certificate.columns)),
        advice=done.form.advice,
        recipe=recipe_forms(schema, named, done.method, done.form, suppress, seed, described, done.notes, **flags),
        like=None if described or isinstance(data, Columns) else data,
        format="parquet" if parquet else "csv",
        types=parquet_types(part_files(data)[0]) if parquet else None,
        labels=data.read_labels() if isinstance(data, Source) else None,
        origin=Origin(columns, coded, tuple(models), done.method, seed, build_person_counter(done.table, partition)),
    )


def _on_spark(
    data: Any,
    schema: Schema,
    models: Sequence[Model],
    method: Method,
    form: Form | None,
    seed: int,
    escape_formulas: bool,
    options: dict[str, Any],
) -> Release:
    refuse_shifts(schema, "on Spark")
    refuse_swaps(schema, "on Spark")
    refuse_whole([model for model in models if not model.of_method], ON_SPARK)
    if escape_formulas:
        raise BadInput("formulas cannot be escaped on Spark", right="leave escape_formulas out, or anonymize without an engine")
    data = place_of(data) if isinstance(data, Source) else data
    described = _data_form(data, True, options["csv"].form(options["csv"]) if options["csv"] else {})
    shape = form or build_from_form("form", method.usual_form, FORMS)
    return anonymize_on_spark(data, schema, models, method, shape, seed, described=described, **options)


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
            found.append(_release_once(table, models, visible, method, form, usual, seed, progress))
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


def _release_once(
    table: Table,
    models: Sequence[Model],
    visible: Sequence[Model],
    method: Method,
    form: Form | None,
    usual: Form,
    seed: int,
    progress: Progress,
) -> ReleaseResult:
    required = with_folded(visible, table)
    outcome = _outcome(table, required, method, seed, progress)
    shape = choose_form(outcome.form, form, usual, method)
    progress("writing", 0.8)
    partition, columns, certificate = _best(table, models, required, outcome, shape, method, seed)
    return ReleaseResult(table, partition, columns, certificate, shape, outcome.repeat or method, tuple(outcome.notes))


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


def run(
    recipe: Recipe | str | PathLike[str], progress: Progress | None = None, engine: str | None = None, master: str | None = None
) -> Release:
    """Return the release that a recipe describes.

    Args:
        recipe: The path of a recipe file, or a `Recipe`.
        progress: Called with the current step and the share of the work done.
        engine: "local" or "spark", as in `anonymize`.
        master: Address of the Spark cluster, as in `anonymize`.
    >>> import tempfile, closeknit as ck
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "people.csv").write_text("age\\n30\\n31\\n40\\n42\\n", encoding="utf-8")
    ...     recipe = "{data: people.csv, schema: {quasi: {age: numeric}}, models: [{k_anonymity: {k: 2}}]}"
    ...     _ = Path(folder, "recipe.yaml").write_text(recipe, encoding="utf-8")
    ...     ck.run(f"{folder}/recipe.yaml").certificate.ok
    True
    """
    recipe = recipe if isinstance(recipe, Recipe) else Recipe.read(recipe)
    return anonymize(
        recipe.source,
        recipe.schema,
        recipe.models,
        recipe.method,
        **recipe.options,
        csv=recipe.csv,
        escape_formulas=recipe.escape_formulas,
        allow_vacuous=recipe.allow_vacuous,
        progress=progress,
        engine=engine,
        master=master,
    )


def suggest(data: Any, csv: CsvFormat | None = None) -> Suggestion:
    """Suggest role, kind and hierarchy of each column, with the reason.

    Args:
        data: A frame, a mapping of columns, the path of a file, or a `Source`.
        csv: Format of a CSV file; what it leaves open is detected.
    >>> import closeknit as ck
    >>> ck.suggest(ck.datasets.hospital(500)).reasons["age"].kind
    'numeric'
    """
    columns, found = read_with_format(data, csv)
    return replace(guess(columns), csv=found.form(csv) if found else {})


def _seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(128)
    if whole("seed", seed, least=0) < SHORT_SEED:
        warnings.warn("the seed is short and can be guessed; leave it out for a random one", stacklevel=3)
    return seed


def _data_form(data: Any, on_spark: bool, csv: dict[str, Any]) -> dict[str, Any] | None:
    """Return the source of the table as in a recipe; None for a frame."""
    if isinstance(data, Source):
        return data.form()
    if not isinstance(data, str | PathLike):
        return None
    from closeknit.spark.session import is_table

    text = fspath(data)
    named = {"path": text if "://" in text else str(Path(data).resolve())}
    return {**({"table": text} if on_spark and is_table(text) else named), **csv}


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


def by_input_row(table: Table, partition: Partition) -> Any:
    """Return the class of each row in the order of the input.

    Args:
        table: the rows.
        partition: their classes.
    """
    class_of = np.empty(len(table), dtype=np.int32)
    class_of[table.rows] = partition.class_of
    return class_of

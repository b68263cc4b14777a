"""`anonymize` and `audit` where the rows are on Spark: the same checks before, the same certificate after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import floor
from os import PathLike
from typing import Any, cast

import numpy as np

from closeknit.api.publishing import all_secrets, build_public_schema, choose_form, list_notes, rebuild_domains
from closeknit.api.recipe import Request, build_from_form
from closeknit.api.request_checks import check_roles, check_whole, refuse_repeated, refuse_unique
from closeknit.core.audit import Recomputation
from closeknit.core.certificate import model_form
from closeknit.core.certifying import note_formulas, refuse_unmet
from closeknit.core.columns import NO_CELLS, Columns
from closeknit.core.errors import BadInput
from closeknit.core.formulas import formula_notes
from closeknit.core.look_alikes import look_alike_notes, references_in, with_folded
from closeknit.core.method import Method, Progress
from closeknit.core.model import Model
from closeknit.core.params import choice, number, spec
from closeknit.core.requested_models import refuse_whole
from closeknit.core.schema import Schema
from closeknit.core.steps import step_notes, with_steps
from closeknit.core.table import Form
from closeknit.core.vacuity import vacuity_notes
from closeknit.forms import REGISTRY as FORMS
from closeknit.io.csv import CsvFormat
from closeknit.io.source import Source
from closeknit.io.sources import place_of, source_of
from closeknit.release import Release, SparkRelease

ENGINES = ("local", "spark")
ON_SPARK = "Spark judges them in parts"


def wants_spark(data: Any, engine: str | None, master: str | None) -> bool:
    """Whether the rows stay on Spark: they are there, or Spark is requested.

    Args:
        data: the table.
        engine: "local", "spark", or None.
        master: the address of a cluster.

    >>> wants_spark("people.csv", None, None), wants_spark("people.csv", "spark", None)
    (False, True)
    """
    from closeknit.spark.session import is_spark_frame

    if engine is not None:
        choice("engine", engine, ENGINES)
    if engine == "spark" and isinstance(source_of(data), Source):
        raise BadInput("Spark does not read this source", file=place_of(data), right="leave the engine out, or give files")
    if master is not None and engine != "spark":
        raise BadInput(f"master={master!r} is the address of a Spark cluster", right="add engine='spark'")
    return engine == "spark" or (engine is None and is_spark_frame(data))


def anonymize_on_spark(
    data: Any, request: Request, described: dict[str, Any] | None, csv: CsvFormat | None, master: str | None, progress: Progress
) -> Release:
    """A certified release whose rows stay on Spark, or `Unsatisfiable`; `described`: the table as a recipe names it."""
    from closeknit.spark.judging import describe_attested
    from closeknit.spark.person_marks import whole_class
    from closeknit.spark.pipeline import encode_on_spark, refuse_unscaled, write_on_spark
    from closeknit.spark.session import count_repeats, read_frame, session, translate_errors

    schema, models, method = request.schema, request.models, request.method
    form = request.form or build_from_form("form", method.usual_form, FORMS)
    share, seed, allow_vacuous = number("suppress", request.suppress, least=0, most=1), request.seed, request.allow_vacuous
    refuse_unscaled(method, schema, form, share > 0)
    check_roles(schema, models, method)
    progress("reading", 0.0)
    frame = read_frame(session(master), data, csv)
    schema.list_needed(frame.columns)
    with translate_errors(data if isinstance(data, str | PathLike) else None):
        for name in schema.unique:
            refuse_repeated(name, *count_repeats(frame, name, schema.missing))
        progress("encoding", 0.1)
        coding, coded = encode_on_spark(frame, schema, models, keep=share > 0)
        counts = [coding.counts[name] for name in schema.quasi]
        coding = replace(coding, head=with_steps(coding.head, lambda j: counts[j], form.snap))
        rows, room = coding.rows, floor(share * coding.rows)
        required = with_folded(models, coding.head)
        # of persons with several spellings the whole class has no safe count: the written classes decide
        judges, whole = required if schema.person is None else models, whole_class(coding)
        check_whole(whole, schema, judges, schema.person_rows == "count-once", room > 0)
        vacuous = vacuity_notes(models, lambda _: whole, allow_vacuous)
        _check_plain(coding, coded)
        progress("working", 0.2)
        if room:
            written = _suppress_rows(frame, coding, coded, method, required, room, seed)
        else:
            written = write_on_spark(coding, coded, method, required, form, seed)
        progress("writing", 0.8)
        if written.coding is not coding:  # rows were suppressed, so the reference is another one
            coding, whole = written.coding, whole_class(written.coding)
            vacuous = vacuity_notes(models, lambda _: whole, allow_vacuous)
        shape = _choose_form_on_spark(written, form, method)
        public = build_public_schema(coding.head.schema, written.columns)  # with the steps that were proposed
        measured = written.measure(public, models, all_secrets(public), rows - coding.rows)
        refuse_unmet(measured.guarantees)
        notes = [*list_notes(coding.head.schema, models, shape, 0), *step_notes(coding.head), *vacuous]
        notes += [*look_alike_notes(references_in(coding.head, models)), *_note_formulas(written, schema)]
        certificate = measured.certify(public, model_form(shape), notes, written.content_hash())
    progress("done", 1.0)
    recipe = replace(request, form=shape).recipe(described, (*written.notes, *describe_attested(measured)))
    return SparkRelease(written.frame, written.split_files, certificate, recipe)


def _note_formulas(written: Any, schema: Schema) -> tuple[str, ...]:
    from closeknit.spark.session import find_formulas

    shown = Columns({**written.columns, **dict.fromkeys(schema.plain, NO_CELLS)}, 0)
    return note_formulas(formula_notes(shown, find_formulas(written.frame, schema.plain)))


def _choose_form_on_spark(written: Any, form: Form, method: Method) -> Form:
    """The form of the release; cells that were not written so are refused."""
    shape = choose_form(None if written.form is form else written.form, form, form, method)
    if spec(shape).get("cells") != spec(written.form).get("cells"):
        what = f"on Spark {method.name} has its own form, and {form} was requested"
        raise BadInput(what, right="leave cells out, or anonymize without an engine")
    return shape


def _check_plain(coding: Any, coded: Any) -> None:
    from closeknit.spark.coding import count_singletons

    schema = coding.head.schema
    for name, rows in zip(schema.plain, count_singletons(coded, coding.plain_names).values(), strict=True):
        refuse_unique(schema, name, rows)


def _suppress_rows(frame: Any, coding: Any, coded: Any, method: Method, models: Sequence[Model], room: int, seed: int) -> Any:
    """The release of a method that counts combinations, written as if the suppressed rows did not exist."""
    from closeknit.spark.combination_suppression import drop_combinations, run_with_suppression
    from closeknit.spark.pipeline import encode_on_spark, write_levels_on_spark

    table, outcome = run_with_suppression(coding, coded, method, models, room, seed)
    suppressed, form = outcome.partition.class_of < 0, cast(Form, outcome.form)
    if suppressed.any():
        _, form = rebuild_domains(table, suppressed, form)
        part = drop_combinations(coding, np.unique(table.quasi[suppressed], axis=0))
        coded.unpersist()
        proposed = [domain.proposed for domain in coding.head.quasi_domains]
        coding, coded = encode_on_spark(frame, coding.head.schema, models, part)
        pairs = zip(coding.head.quasi_domains, proposed, strict=True)
        domains = tuple(replace(domain, proposed=was) for domain, was in pairs)  # the schema now declares proposed steps
        coding = replace(coding, head=replace(coding.head, quasi_domains=domains))
        _check_plain(coding, coded)  # a value may be unique when its twin is suppressed
    return write_levels_on_spark(coding, coded, form, outcome.notes, seed)


def inspect_on_spark(
    data: Any, schema: Schema, models: Sequence[Model], form: Form, suppressed: int, csv: CsvFormat | None, master: str | None
) -> tuple[Columns, Recomputation, str, list[str]]:
    """The columns of a release on Spark with each value once, its recomputation, its content hash, and notes on formulas.

    Args:
        data: the release.
        schema: the published columns.
        models: the guarantees to check.
        form: how the cells are written.
        suppressed: rows that were not published.
        csv: how CSV files are written.
        master: the address of a cluster.
    """
    from closeknit.spark import release_audit
    from closeknit.spark.session import find_formulas, session, translate_errors

    refuse_whole([model for model in models if not model.of_method], ON_SPARK)
    if form.name != "generalized" or form.attested or form.list_columns(schema) != schema.published:
        raise BadInput(f"the form '{form.name}' cannot be audited on Spark yet", right="audit it without an engine")
    frame = release_audit.release_frame(session(master), data, csv)
    with translate_errors(data if isinstance(data, str | PathLike) else None):
        found = release_audit.count_cells(frame, schema)
        seen = release_audit.measure_release(frame, schema, models, all_secrets(schema), suppressed, found)
        columns = release_audit.list_values(frame, found)
        notes = formula_notes(columns, find_formulas(frame, [name for name in schema.plain if name in columns]))
        return columns, seen, release_audit.content_hash(frame), notes

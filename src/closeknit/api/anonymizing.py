"""`anonymize` a table, `run` a recipe, `suggest` roles and kinds of the columns."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from closeknit.api.distributed import ON_SPARK, anonymize_on_spark, wants_spark
from closeknit.api.recipe import (
    FormSpec,
    MethodSpec,
    ModelSpecs,
    Recipe,
    Request,
    form_of,
    method_of,
    models_from,
    usual_method,
)
from closeknit.api.reporting import build_person_counter
from closeknit.api.request_checks import draw_seed, encode_table, read_table
from closeknit.api.run_ledger import digest_columns, keep_attestable
from closeknit.api.suggestion import Suggestion
from closeknit.api.suggestion import suggest as guess
from closeknit.api.table_release import by_input_row, check_guarantees, release_table
from closeknit.core.columns import Columns
from closeknit.core.date_shift import refuse_shifts, shift_dates
from closeknit.core.errors import BadInput
from closeknit.core.method import Progress, ignore_progress
from closeknit.core.params import choice, number
from closeknit.core.rank_swap import refuse_swaps, swap_ranks
from closeknit.core.requested_models import refuse_whole
from closeknit.core.schema import Schema, require_schema
from closeknit.io.csv import CsvFormat
from closeknit.io.files import kind_of, part_files, read_with_format
from closeknit.io.parquet import parquet_types
from closeknit.io.source import Source
from closeknit.io.sources import place_of, source_of
from closeknit.release import LocalRelease, Origin, Release

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
    named, given_seed, seed = models_from(models), seed is not None, _seed(seed)
    models = check_guarantees(require_schema(schema), named, method, requested)
    request = Request(schema, models, method, requested, suppress, seed, escape_formulas, allow_vacuous)
    if wants_spark(data, engine, master):
        return _on_spark(data, request, csv, master, progress)
    progress("reading", 0.0)
    data = source_of(data)
    columns, found = read_table(data, csv, schema)
    described = _data_form(data, False, found.form(csv) if found else {})
    progress("encoding", 0.1)
    identity = digest_columns(columns) if method.runs_once else b""  # before dates are shifted by the seed
    if method.runs_once:
        refuse_swaps(schema, f"with the method {method.name}, whose guarantee is about the true numbers")
    columns, coded = shift_dates(swap_ranks(columns, schema, seed), schema, seed)
    if method.runs_once:
        models = keep_attestable(models, named, identity, given_seed)
    marks: dict[str, Any] = {"allow_vacuous": allow_vacuous, "identity": identity}
    # the coded table has no name here, and no `**` in its call, which would hold it: its first order is freed when reordered
    encode = partial(encode_table, columns, coded, data)
    done = release_table(
        replace(encode(), **marks), models, method, suppress=suppress, form=requested, seed=seed, progress=progress
    )
    parquet = described is not None and not isinstance(data, Source) and kind_of(data) == ".parquet"
    partition = by_input_row(done.table, done.partition)
    named = [model for model in models if not model.of_method]  # a method adds its own again
    repeat = replace(request, models=named, method=done.method, form=done.form)
    return LocalRelease(
        done.columns,
        done.certificate.with_escapes() if escape_formulas else done.certificate,
        partition=partition,
        parts=done.form.parts(done.columns, Schema.from_forms(done.certificate.columns)),
        advice=done.form.advice,
        recipe=repeat.recipe(described, done.notes),
        like=None if described or isinstance(data, Columns) else data,
        format="parquet" if parquet else "csv",
        types=parquet_types(part_files(data)[0]) if parquet else None,
        labels=data.read_labels() if isinstance(data, Source) else None,
        origin=Origin(columns, coded, tuple(models), done.method, seed, build_person_counter(done.table, partition)),
    )


def _on_spark(data: Any, request: Request, csv: CsvFormat | None, master: str | None, progress: Progress) -> Release:
    refuse_shifts(request.schema, "on Spark")
    refuse_swaps(request.schema, "on Spark")
    refuse_whole([model for model in request.models if not model.of_method], ON_SPARK)
    if request.escape_formulas:
        raise BadInput("formulas cannot be escaped on Spark", right="leave escape_formulas out, or anonymize without an engine")
    data = place_of(data) if isinstance(data, Source) else data
    described = _data_form(data, True, csv.form(csv) if csv else {})
    return anonymize_on_spark(data, request, described, csv, master, progress)


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
    drawn = draw_seed(seed)
    if drawn < SHORT_SEED:
        warnings.warn("the seed is short and can be guessed; leave it out for a random one", stacklevel=3)
    return drawn


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

"""`anonymize` and `audit` where the rows are on Spark: the same questions before, the same certificate after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import floor
from os import PathLike, fspath
from pathlib import Path
from typing import Any, cast

import numpy as np
import yaml

from closeknit import __version__
from closeknit.api.publishing import all_secrets, build_public_schema, choose_form, list_notes, rebuild_domains
from closeknit.api.recipe import recipe_forms
from closeknit.api.request_checks import check_roles, check_whole, refuse_repeated, refuse_unique
from closeknit.core.audit import Recomputation
from closeknit.core.certificate import Certificate, ReleaseFile, model_form
from closeknit.core.certifying import note_formulas, refuse_broken
from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.formulas import formula_notes
from closeknit.core.look_alikes import look_alike_notes, references_in, with_folded
from closeknit.core.method import Method, Progress
from closeknit.core.model import Model
from closeknit.core.params import choice, number
from closeknit.core.schema import Schema
from closeknit.core.steps import step_notes, with_steps
from closeknit.core.table import Form
from closeknit.core.vacuity import vacuity_notes
from closeknit.io.csv import CsvFormat
from closeknit.io.folders import save_folders, write_inside
from closeknit.release import FORMATS, Release

ENGINES = ("local", "spark")
NO_CELLS = Column(np.empty(0, dtype=object), np.empty(0, dtype=np.int32))


def wants_spark(data: Any, engine: str | None, master: str | None) -> bool:
    """Whether the rows are to stay on Spark: they are there, or it was asked for.

    >>> wants_spark("people.csv", None, None), wants_spark("people.csv", "spark", None)
    (False, True)
    """
    from closeknit.spark.session import is_spark_frame

    if engine is not None:
        choice("engine", engine, ENGINES)
    if master is not None and engine != "spark":
        raise BadInput(f"master={master!r} is the address of a Spark cluster", right="add engine='spark'")
    return engine == "spark" or (engine is None and is_spark_frame(data))


class SparkRelease(Release):
    """A release whose rows are on Spark: `frame` is a Spark frame in the order of the release; the rest is as everywhere."""

    def __init__(self, frame: Any, in_files: Callable[[bool], Any], certificate: Certificate, recipe: dict[str, Any]) -> None:
        self.certificate = certificate
        self._frame, self._in_files, self._recipe, self._origin = frame, in_files, recipe, None

    @property
    def frame(self) -> Any:  # type: ignore[override]
        """The release as a Spark frame."""
        return self._frame

    @property
    def columns(self) -> Columns:  # type: ignore[override]
        """Rows on Spark have no columns here."""
        raise BadInput("the rows of this release are on Spark", right="use its frame, or read what save wrote")

    @property
    def partition(self) -> Any:
        """Who stands with whom is not kept: rows on Spark have no number."""
        right = "the private recipe.yaml that save writes repeats the release"
        raise BadInput("a release made on Spark came without its partition", right=right)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """A folder of CSV files, each with a header line."""
        self._write(fspath(path), "csv")

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """A folder of Parquet files."""
        self._write(fspath(path), "parquet")

    def _write(self, path: str, format: str) -> None:
        from closeknit.spark.session import translate_errors

        with translate_errors(path):
            frame = self._in_files(format == "csv")  # Spark would write other texts of numbers than the certificate speaks of
            writer = frame.write.mode("errorifexists")
            if format == "parquet":
                writer.parquet(path)
                return
            nothing = "" if len(frame.columns) > 1 else '""'  # an empty line is no row
            as_it_is = {"ignoreLeadingWhiteSpace": False, "ignoreTrailingWhiteSpace": False}
            writer.csv(path, header=True, quote='"', escape='"', emptyValue=nothing, nullValue=nothing, **as_it_is)

    def save(
        self,
        folder: str | PathLike[str],
        format: str | None = None,
        force: bool = False,
        report: bool = True,
        frontier: Any = None,
    ) -> None:
        """`folder/` with part files and certificate, `folder.private/` with the recipe; each whole or not at all.

        Executors write the part files, so the folder must be one that all of them see. No page is made, since no row
        comes to the driver: `closeknit report folder/` makes it where the release fits.
        """
        format = format or "parquet"
        choice("format", format, FORMATS)
        public = Path(folder).absolute()
        private = public.with_name(public.name + ".private")
        save_folders(
            public, private, lambda f: self._write_public(f, format), lambda f: self._write_private(f, format), force, _is_ours
        )

    def _write_public(self, folder: Path, format: str) -> None:
        name = f"release.{format}"
        self._write(str(folder / name), format)
        for mark in [*(folder / name).glob(".*.crc"), *(folder / name).glob("_SUCCESS")]:
            mark.unlink()
        listed = ReleaseFile(name=name, rows=self.certificate.rows, sha256="")
        certificate = self.certificate.model_copy(update={"files": (listed,)})
        write_inside(folder / "certificate.json", certificate.to_json().encode())

    def _write_private(self, folder: Path, format: str) -> None:
        recipe = {**(self._recipe or {}), "output": {"format": format}}
        write_inside(folder / "recipe.yaml", yaml.safe_dump(recipe, sort_keys=False, allow_unicode=True).encode())

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a release on Spark stays with its session: save it")


def _is_ours(name: str) -> bool:
    return name in ("release.parquet", "release.csv", "certificate.json", "recipe.yaml", "report.html", "report.json")


def anonymize_on_spark(
    data: Any,
    schema: Schema,
    models: Sequence[Model],
    method: Method,
    form: Form,
    seed: int,
    *,
    tell: Progress,
    suppress: float,
    allow_vacuous: bool,
    master: str | None,
    csv: CsvFormat | None,
    described: dict[str, Any] | None,
) -> Release:
    """A certified release whose rows stay on Spark, or `Unsatisfiable`."""
    from closeknit.spark.person_marks import whole_class
    from closeknit.spark.pipeline import encode_on_spark, refuse_unscaled, write_on_spark
    from closeknit.spark.session import count_repeats, find_formulas, read_frame, session, translate_errors

    share = number("suppress", suppress, least=0, most=1)
    refuse_unscaled(method, schema, form, share > 0)
    check_roles(schema, models, method)
    tell("reading", 0.0)
    frame = read_frame(session(master), data, csv)
    schema.list_needed(frame.columns)
    with translate_errors(data if isinstance(data, str | PathLike) else None):
        for name in schema.unique:
            refuse_repeated(name, *count_repeats(frame, name, schema.missing))
        tell("encoding", 0.1)
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
        tell("working", 0.2)
        if room:
            written = _suppress_rows(frame, coding, coded, method, required, room, seed)
        else:
            written = write_on_spark(coding, coded, method, required, form, seed)
        tell("writing", 0.8)
        if written.coding is not coding:  # rows were suppressed, so the reference is another one
            coding, whole = written.coding, whole_class(written.coding)
            vacuous = vacuity_notes(models, lambda _: whole, allow_vacuous)
        shape = choose_form(None if written.form is form else written.form, form, form, method)
        public = build_public_schema(coding.head.schema, written.columns)  # with the steps that were proposed
        found = written.measure(public, models, all_secrets(public), rows - coding.rows)
        refuse_broken(found.guarantees)
        shown = Columns({**written.columns, **dict.fromkeys(schema.plain, NO_CELLS)}, 0)
        formulas = note_formulas(formula_notes(shown, find_formulas(written.frame, schema.plain)))
        certificate = Certificate(
            closeknit=__version__,
            form=model_form(shape),
            columns=public.forms(),
            rows=coding.rows,
            suppressed=rows - coding.rows,
            guarantees=found.guarantees,
            classes=found.classes,
            loss=found.loss,
            joint=found.joint,
            notes=tuple(
                dict.fromkeys(
                    (
                        *list_notes(coding.head.schema, models, shape, 0),
                        *step_notes(coding.head),
                        *vacuous,
                        *look_alike_notes(references_in(coding.head, models)),
                        *formulas,
                    )
                )
            ),
            content_sha256=written.content_hash(),
        )
    tell("done", 1.0)
    notes = (*written.notes, *found.private_notes)
    recipe = recipe_forms(schema, list(models), method, shape, suppress, seed, described, notes, allow_vacuous=allow_vacuous)
    return SparkRelease(written.frame, written.split_files, certificate, recipe)


def _check_plain(coding: Any, coded: Any) -> None:
    from closeknit.spark.coding import count_singletons

    schema = coding.head.schema
    for name, rows in zip(schema.plain, count_singletons(coded, coding.plain_names).values(), strict=True):
        refuse_unique(schema, name, rows)


def _suppress_rows(frame: Any, coding: Any, coded: Any, method: Method, models: Sequence[Model], room: int, seed: int) -> Any:
    """What a method of counted combinations makes of the rows that it does not suppress, as if there were no others."""
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
        _check_plain(coding, coded)  # a value may stand alone when its twin is gone
    return write_levels_on_spark(coding, coded, form, outcome.notes, seed)


def inspect_on_spark(
    data: Any,
    schema: Schema,
    models: Sequence[Model],
    form: Form,
    suppressed: int,
    csv: CsvFormat | None,
    master: str | None,
    escapes: bool,
) -> tuple[Columns, Recomputation, str, list[str]]:
    """The columns of a release on Spark with each value once, what is found in it, its content hash, and notes on formulas."""
    from closeknit.spark import release_audit
    from closeknit.spark.session import find_formulas, session, translate_errors

    if form.name != "generalized":
        raise BadInput(f"the form '{form.name}' cannot be audited on Spark yet", right="audit it without an engine")
    if escapes:
        raise BadInput("a release with escaped formulas cannot be audited on Spark", right="audit it without an engine")
    frame = release_audit.release_frame(session(master), data, csv)
    with translate_errors(data if isinstance(data, str | PathLike) else None):
        found = release_audit.count_cells(frame, schema)
        seen = release_audit.measure_release(frame, schema, models, all_secrets(schema), suppressed, found)
        columns = release_audit.list_values(frame, found)
        notes = formula_notes(columns, find_formulas(frame, [name for name in schema.plain if name in columns]))
        return columns, seen, release_audit.content_hash(frame), notes

"""From a partition to a certified release: written, read back as a recipient does, and judged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from closeknit.api.request_checks import check_plain
from closeknit.core.certificate import Certificate, model_form
from closeknit.core.certifying import alone_note, list_cell_notes, list_codings, list_unprotected, persons_note, refuse_unmet
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.kinds import Kind
from closeknit.core.levels import level_like
from closeknit.core.loss import list_texts, sum_losses
from closeknit.core.measurement import Measurement, PrivateContext
from closeknit.core.method import Method
from closeknit.core.model import Model, joints
from closeknit.core.params import spec
from closeknit.core.reading import Reading, find_stars
from closeknit.core.schema import Schema
from closeknit.core.steps import step_notes
from closeknit.core.table import Form, Partition, Table, WrittenTable
from closeknit.core.tree import STAR
from closeknit.forms.generalized import HIDDEN, generalized
from closeknit.models import TCloseness


def choose_form(brought: Form | None, requested: Form | None, usual: Form, method: Method) -> Form:
    """The form of a release: that of the method where it has one; the user may only choose how it writes suppressed rows.

    Args:
        brought: the form that the method returned.
        requested: the form that the user requested.
        usual: the form otherwise.
        method: the method, for the message.
    """
    if brought is None or requested is None:
        return brought or requested or usual
    asked = spec(requested)
    chosen: dict[str, Any] = {key: asked[key] for key in ("cells", "bounds") if key in asked}
    chosen |= {"suppressed": requested.suppressed} if requested.suppressed else {}
    form: Form = replace(cast(Any, brought), **chosen) if requested.name == brought.name else brought
    if requested.name != brought.name or (asked != spec(form) and not asked.keys() <= chosen.keys()):
        right = "leave the form out" + (", or set only suppressed= and cells= in it" if brought.suppressed else "")
        raise BadInput(f"{method.name} has its own form, and {requested} was requested", right=right)
    return form


def publish_table(
    table: Table, partition: Partition, models: Sequence[Model], form: Form, seed: int = 0
) -> tuple[Columns, Certificate]:
    """Write, read back, and certify what was read; where that fails, with less of the suppressed rows.

    Args:
        table: the rows.
        partition: their classes.
        models: the guarantees.
        form: how to write.
        seed: of the form's random choices.
    """
    less = form.fallbacks if (partition.class_of < 0).any() else ()
    *more, least = (form, *less)
    for shape in more:
        with suppress(Unsatisfiable):
            return _certify_written(table, partition, models, shape, seed)
    return _certify_written(table, partition, models, least, seed)


def _certify_written(
    table: Table, partition: Partition, models: Sequence[Model], form: Form, seed: int
) -> tuple[Columns, Certificate]:
    if (suppressed := partition.class_of < 0).any():
        shown = form.suppressed != "removed"
        _refuse_small(table, partition, [model for model in models if model.by_class or shown])
        table, form = rebuild_domains(table, suppressed, form)
    written = form.write(table, partition, seed)
    if suppressed.any():
        check_plain(table.take(written.rows))  # a value may be unique when its twin is suppressed
    classed = ~suppressed[written.rows]
    judged, shape = _choose_judged(written, form)
    schema = build_public_schema(table.schema, shape.read_labels(judged.columns, table.schema))
    persons = None if table.persons is None else {name: table.persons[judged.rows_of(name)] for name in schema.published}
    joint = all_secrets(schema)
    reading = shape.read(judged.columns, schema, persons, joints([*models, joint]))
    reading = replace(reading, raw=table.schema)
    profiles = partial(_profiles, reading, written) if reading.column_groups else None
    measured = Measurement.of(
        reading,
        models,
        suppressed=len(table) - written.columns.rows,
        private=PrivateContext(persons is not None, profiles),
        joint=joint if joint and reading.joins(joint.column) and "classes" not in form.attested else None,
        losses=sum_losses(written.hidden.columns, schema) if written.hidden and form.attested else None,
    )
    refuse_unmet(measured.guarantees)
    notes = [*list_notes(table.schema, models, form, int((~classed).sum())), *step_notes(table)]
    if table.persons is not None and any(model.of_method for model in models):
        notes.append(alone_note(partition.class_of, table.persons))
    notes += list_cell_notes(replace(reading, columns=written.columns), models, table.allow_vacuous)
    certificate = measured.certify(reading.schema, model_form(form), notes)
    return written.columns, certificate.attest_all(HIDDEN) if "classes" in form.attested else certificate


def _choose_judged(written: WrittenTable, form: Form) -> tuple[WrittenTable, Form]:
    """What is judged and how it is read: the written cells, or the labels behind them where no class is written."""
    if "classes" in form.attested and written.hidden is not None:
        return written.hidden, generalized()
    return written, form


def _profiles(reading: Reading, written: WrittenTable, secret: str) -> NDArray[np.int32]:
    """What an adversary may know of each published row, in the codes of `reading.slices`."""
    return written.align_codes(reading.slices(secret).known, reading.column_groups)


def rebuild_domains(table: Table, suppressed: NDArray[np.bool_], form: Form) -> tuple[Table, Form]:
    """The table with domains of the published rows, and the form with their levels.

    A suppressed code that is longer than all others would lengthen their masks.

    Args:
        table: all rows.
        suppressed: which are not published.
        form: whose levels are renumbered.
    """
    quasi, domains, levels = table.quasi.copy(), list(table.quasi_domains), dict(form.levels or {})
    for j, ((name, kind), domain) in enumerate(zip(table.schema.quasi.items(), table.quasi_domains, strict=True)):
        if domain.tree is None or domain.declared:
            continue
        leaves = np.unique(table.quasi[~suppressed, j])
        leaves = leaves[leaves < domain.size]
        domains[j], codes = kind.bind(np.array([domain.texts[leaf] for leaf in leaves], dtype=object))
        code_of = np.full(domain.size + 1, domains[j].size, dtype=np.int32)  # the missing leaf, and suppressed rows
        code_of[leaves] = codes
        quasi[:, j] = code_of[table.quasi[:, j]]
        if levels.get(name, STAR) != STAR:
            levels[name] = level_like(domain, int(levels[name]), leaves, domains[j], codes)
    form = replace(cast(Any, form), levels=levels) if levels else form
    return replace(table, quasi=quasi, quasi_domains=tuple(domains)), form


def _refuse_small(table: Table, partition: Partition, models: Sequence[Model]) -> None:
    """Rows written as stars may look like another class of stars: they must not count for it."""
    for model in models:
        if model.column is None and not model.holds_together(classes := table.count_classes(partition)):
            raise Unsatisfiable(model.describe(None), f"a class reaches {model.levels(classes).min():.6g}", "request less")


def all_secrets(schema: Schema) -> Model | None:
    """The model that measures all sensitive attributes as one, requested or not; None where there are not several.

    Args:
        schema: the published columns.
    """
    return TCloseness(tuple(schema.sensitive), 1) if len(schema.sensitive) > 1 else None


def build_public_schema(schema: Schema, columns: Columns) -> Schema:
    """What a certificate may show of the columns: what was declared, and of trees built from data only what is written.

    Args:
        schema: all columns of the table.
        columns: the written cells.
    """
    quasi = {name: kind.publish_kind(list_texts(columns[name])) for name, kind in schema.quasi.items()}
    return Schema(quasi=quasi, sensitive=publish_sensitive(schema, columns), plain=schema.plain, importance=schema.importance)


def publish_sensitive(schema: Schema, columns: Columns) -> dict[str, Kind]:
    """The kinds of sensitive attributes that a certificate may show.

    Args:
        schema: all columns of the table.
        columns: the written cells.
    """
    found = {}
    for name, kind in schema.sensitive.items():
        shown = columns[name].take(np.flatnonzero(~find_stars(columns[name])))
        _, written, _ = schema.encode_column(shown, name, kind)  # of the written values only: suppressed ones must not show
        found[name] = kind.publish_kind(written.texts, sensitive=True)
    return found


def list_notes(schema: Schema, models: Sequence[Model], form: Form, starred: int) -> list[str]:
    """What a reader of the certificate has to know in addition to the numbers.

    Args:
        schema: the columns of the table.
        models: the guarantees.
        form: how cells were written.
        starred: suppressed rows that are written as `*`.
    """
    first, *others = derive_notes(schema, models, form, starred)
    return [f"{first}, and refer to the distribution of sensitive values in them", persons_note(schema), *others]


def derive_notes(schema: Schema, models: Sequence[Model], form: Form, starred: int) -> list[str]:
    """The notes that an auditor derives, too, from the published schema, the models, the form and the written cells.

    Args:
        schema: the published columns.
        models: the guarantees.
        form: how cells were written.
        starred: suppressed rows that are written as `*`.
    """
    notes = ["guarantees cover the published rows only", *form.notes(schema)]
    notes += list_codings(schema)
    if starred:
        sensitive = " and every sensitive column" if form.suppressed == "hidden" else ""
        notes.append(f"{starred:,} rows were suppressed: they are written as `*` in every quasi-identifier{sensitive}")
    return notes + list_unprotected(schema, models)

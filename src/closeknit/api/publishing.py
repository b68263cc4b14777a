"""From a partition to a certified release: written, read back as a stranger would, and judged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from closeknit import __version__
from closeknit.api.asking import check_plain
from closeknit.core.certificate import Certificate, certify
from closeknit.core.columns import Columns
from closeknit.core.errors import Unsatisfiable
from closeknit.core.joint import named, parts
from closeknit.core.levels import level_like, of_these
from closeknit.core.loss import written_texts
from closeknit.core.model import Model, joints
from closeknit.core.params import spec
from closeknit.core.published import starred
from closeknit.core.schema import Schema
from closeknit.core.table import Form, Partition, Table
from closeknit.core.tree import STAR
from closeknit.models import TCloseness


def published(table: Table, partition: Partition, models: Sequence[Model], form: Form) -> tuple[Columns, Certificate]:
    """Write, read back as a stranger would, and certify what was read; where that fails, with less of the withheld rows."""
    less: tuple[Form, ...] = getattr(form, "fallbacks", ()) if (partition.class_of < 0).any() else ()
    *more, least = (form, *less)
    for shape in more:
        with suppress(Unsatisfiable):
            return _certified(table, partition, models, shape)
    return _certified(table, partition, models, least)


def _certified(table: Table, partition: Partition, models: Sequence[Model], form: Form) -> tuple[Columns, Certificate]:
    if (withheld := partition.class_of < 0).any():
        _refuse_small(table, partition, models)
        table, form = _as_if_never_there(table, withheld, form)
    written = form.write(table, partition)
    if withheld.any():
        check_plain(table.take(written.rows))  # a value may stand alone when its twin is gone
    classed = ~withheld[written.rows]
    schema = published_schema(table.take(written.rows[classed]), written.columns)
    persons = None if table.persons is None else table.persons[written.rows]
    joint = all_secrets(schema)
    reading = form.read(written.columns, schema, persons, joints([*models, *filter(None, [joint])]))
    certificate = certify(
        reading, models, version=__version__, form={form.name: spec(form)}, withheld=len(table) - written.columns.rows,
        private_persons=persons is not None, notes=_notes(table, models, form, int((~classed).sum())), joint=joint,
    )  # fmt: skip
    return written.columns, certificate


def _as_if_never_there(table: Table, withheld: NDArray[np.bool_], form: Form) -> tuple[Table, Form]:
    """The table with domains that are read off the remaining rows, and levels that these have.

    A code that is longer than all others would lengthen their masks.
    """
    quasi, domains, levels = table.quasi.copy(), list(table.quasi_domains), dict(getattr(form, "levels", None) or {})
    for j, ((name, kind), domain) in enumerate(zip(table.schema.quasi.items(), table.quasi_domains, strict=True)):
        if domain.tree is None or domain.declared:
            continue
        leaves = np.unique(table.quasi[~withheld, j])
        leaves = leaves[leaves < domain.size]
        domains[j], codes = kind.bind(np.array([domain.texts[leaf] for leaf in leaves], dtype=object))
        code_of = np.full(domain.size + 1, domains[j].size, dtype=np.int32)  # the missing leaf, and whoever is withheld
        code_of[leaves] = codes
        quasi[:, j] = code_of[table.quasi[:, j]]
        if levels.get(name, STAR) != STAR:
            levels[name] = level_like(domain, levels[name], leaves, domains[j], codes)
    form = replace(cast(Any, form), levels=levels) if levels else form
    return replace(table, quasi=quasi, quasi_domains=tuple(domains)), form


def _refuse_small(table: Table, partition: Partition, models: Sequence[Model]) -> None:
    """Rows written as stars may look like a class of others that is all stars: they must not count for it."""
    for model in models:
        if model.column is None and not model.holds(classes := table.counted(partition)).all():
            raise Unsatisfiable(model.describe(None), f"a class reaches {model.levels(classes).min():.6g}", "ask for less")


def all_secrets(schema: Schema) -> Model | None:
    """What measures all secrets as one, asked for or not; None where there are not several."""
    return TCloseness(tuple(schema.sensitive), 1) if len(schema.sensitive) > 1 else None


def published_schema(table: Table, columns: Columns) -> Schema:
    """What a certificate may say of the columns: declared kinds, and of domains read off the data only what is written.

    `table` holds the published rows alone that have a class: of others the quasi-identifiers are not written.
    """
    schema = table.schema
    quasi = {
        name: kind.published(of_these(domain, table.quasi[:, j]), written_texts(columns[name]))
        for j, ((name, kind), domain) in enumerate(zip(schema.quasi.items(), table.quasi_domains, strict=True))
    }
    secret = {}
    for name, kind in schema.sensitive.items():
        shown = columns[name].take(np.flatnonzero(~starred(columns[name])))
        _, written, _ = schema.coded(shown, name, kind)  # of the written values: withheld ones leave no trace
        secret[name] = kind.published(written, None)
    return Schema(quasi=quasi, sensitive=secret, plain=schema.plain, importance=schema.importance)


def _notes(table: Table, models: Sequence[Model], form: Form, starred: int) -> list[str]:
    """What a reader of the certificate has to know beside the numbers."""
    schema = table.schema
    notes = ["promises cover the published rows only, and refer to how secrets are spread over them"]
    notes.append(
        "every row was counted as a person of its own"
        if schema.person is None
        else "k and diversity count persons; who they are is not published"
    )
    if not getattr(form, "snap", False):
        notes += [
            f"column '{name}': both ends of a range are true values of somebody in the class"
            for name, domain in zip(schema.quasi, table.quasi_domains, strict=True)
            if domain.tree is None and domain.ends is None and name not in (getattr(form, "levels", None) or {})
            # ends of bins are declared, and a level has no ends
        ]
    if starred:
        secrets = " and every secret" if getattr(form, "withheld", "") == "hidden" else ""
        notes.append(f"{starred:,} rows were withheld: they are written as `*` in every quasi column{secrets}")
    return notes + unprotected(schema, models)


def unprotected(schema: Schema, models: Sequence[Model]) -> list[str]:
    """Columns that are published and that no promise covers, alone or together."""
    promised = {name for model in models for name in parts(model.column)}
    notes, secrets = [], tuple(schema.sensitive)
    if len(secrets) > 1 and not any({*parts(model.column)} == {*secrets} for model in models):
        notes.append(f"knowing one secret may tell another: no promise speaks of {named(secrets)}")
    notes += [f"column '{name}' is sensitive, but no promise speaks of it" for name in schema.sensitive if name not in promised]
    return notes + [f"column '{name}' is published as it is, without any protection" for name in schema.plain]

"""What is asked is looked at before any work is done: a request that cannot be meant or kept is refused here."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import parts, render_secret
from closeknit.core.errors import BadInput, Unsatisfiable, suggest_name
from closeknit.core.kinds import texts_of
from closeknit.core.method import Method
from closeknit.core.model import Model, list_models, merging_holds
from closeknit.core.schema import Schema
from closeknit.core.table import Form, Table
from closeknit.core.vacuity import vacuity_notes
from closeknit.io.csv import CsvFormat
from closeknit.io.files import read_with_format


def check_request(table: Table, models: Sequence[Model], method: Method) -> None:
    """Refuse what cannot be meant or kept before any work is done."""
    schema = table.schema
    check_roles(schema, models, method)
    check_plain(table)
    whole = table.one_class()
    check_whole(whole, schema, models, table.splits_persons, bool(table.suppressible))
    vacuity_notes(models, lambda _: whole, table.allow_vacuous)


def check_roles(schema: Schema, models: Sequence[Model], method: Method) -> None:
    """Refuse what no table can serve."""
    if not models:
        raise BadInput("no guarantee was asked for", right="give at least one model, such as KAnonymity(6)")
    if not schema.quasi:
        raise BadInput("the schema has no quasi column", right="name the columns by which a person could be recognised")
    for name in schema.quasi:
        if name in schema.sensitive and not method.serves_both:
            right = f"give it one role; {method.name} cannot serve a column that is both"
            raise BadInput("is listed as quasi and as sensitive", column=name, right=right)


def check_models(schema: Schema, models: Sequence[Model], form: Form) -> None:
    """Refuse guarantees about other columns, and those that mean nothing in such cells."""
    for model in list_models(models):
        for name in parts(model.column):
            if name not in schema.sensitive:
                right = suggest_name(name, schema.sensitive)
                raise BadInput(f"{model.name} is asked for a column that is not sensitive", column=name, right=right)
        if not isinstance(model.column, str | None) and not model.joins:
            right = "request it for each column alone, or t_closeness of them together"
            raise BadInput(f"{model.name} cannot be about {render_secret(model.column)}", right=right)
        if not form.serves(model):
            right = "choose " + " or ".join(sorted(model.forms))
            raise BadInput(f"{model.name} has no meaning in the form '{form.name}'", right=right)


def check_plain(table: Table) -> None:
    for name, column in table.plain.items():
        alone = int((column.counts == 1).sum()) + int((column.codes < 0).sum() == 1)  # a missing cell is a value too
        refuse_unique(table.schema, name, alone)


def refuse_unique(schema: Schema, name: str, alone: int) -> None:
    """A plain column may identify a row if so many of its values occur in one row only."""
    if alone and name not in schema.allow_unique:
        what = f"is plain, and {alone:,} of its values occur in one row only: it may identify that row"
        raise BadInput(what, column=name, right="make it quasi, sensitive or identifier, or name it in allow_unique")


def read_table(data: Any, csv: CsvFormat | None, schema: Schema) -> tuple[Columns, CsvFormat | None]:
    """The columns of a table that are used, and how its CSV file is written; refused where an identifier repeats.

    Identifiers are read as far as that takes, and dropped here.
    """
    file = data if isinstance(data, str | PathLike) else None
    try:
        columns, format = read_with_format(data, csv, lambda names: [*schema.list_needed(names), *schema.unique])
    except BadInput as bad:
        if bad.column not in schema.unique or bad.column is None:
            raise
        right = f"{bad.right}, or list it under drop, which is not read"
        raise BadInput(bad.what, file=bad.file, column=bad.column, row=bad.row, right=right) from None
    for name in schema.unique:
        check_identifier(columns[name], name, schema.missing, file)
    return Columns({name: columns[name] for name in schema.used}, columns.rows), format


def check_identifier(column: Column, name: str, missing: Sequence[str] = (), file: object = None) -> None:
    """Refuse an identifier that repeats. A missing one names nobody, so it repeats nothing."""
    counts = column.counts
    several = np.flatnonzero(counts > 1)
    texts = texts_of(column.values[several])
    several = several[np.array([text.strip() != "" and text not in missing for text in texts], dtype=bool)]
    if not len(several):
        return
    first, second = np.flatnonzero(column.codes == several[0])[:2].tolist()
    example = f" (row {second + 1:,} that of row {first + 1:,})"
    refuse_repeated(name, int(counts[several].sum()) - len(several), len(column), example, file)


def refuse_repeated(name: str, repeats: int, rows: int, example: str = "", file: object = None) -> None:
    """An identifier with so many rows that repeat a value: of one person, or of different people with one name."""
    if repeats:
        what = f"{repeats:,} of {rows:,} rows repeat an identifier{example}, and k would count rows of one person as several"
        right = (
            f"declare person: {name} if equal values are one person, rows_are_persons: true if they are different people (in "
            f"Python: person={name!r}, rows_are_persons=True), or drop: {name} if it says nothing about persons"
        )
        raise BadInput(what, file=file, column=name, right=right)


def check_whole(
    classes: Classes, schema: Schema, models: Sequence[Model], splits_persons: bool = False, suppresses: bool = False
) -> None:
    """A monotone guarantee that the table as one class does not keep cannot be kept by any partition of all its rows."""
    for name in schema.sensitive:
        if (classes.histograms[name].reference > 0).sum() == 1:
            warnings.warn(f"column '{name}': every row has the same secret, so every release tells it", stacklevel=4)
    for model in models:
        model.refuse(classes)
        surely = merging_holds(model, splits_persons) and not suppresses
        if surely and not model.holds(classes).all():
            domain = classes.histograms[model.column].domain if model.column else None
            measured = f"the whole table as one class reaches {model.levels(classes)[0]:.6g}"
            hint = f"asked was {model.requested}, and smaller classes reach less; ask for less"
            raise Unsatisfiable(model.describe(domain), measured, hint)

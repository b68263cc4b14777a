"""Checks of a request before the work starts: mistakes, and guarantees that cannot be met."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from closeknit.core.certifying import check_columns
from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.kinds import texts_of
from closeknit.core.method import Method
from closeknit.core.model import Model, merging_holds
from closeknit.core.params import whole
from closeknit.core.requested_models import list_models
from closeknit.core.schema import Schema
from closeknit.core.subsets import list_subsets
from closeknit.core.table import Form, Table
from closeknit.core.vacuity import vacuity_notes
from closeknit.io.csv import CsvFormat
from closeknit.io.files import read_with_format
from closeknit.io.sources import place_of


def check_request(table: Table, models: Sequence[Model], method: Method) -> None:
    """Refuse a request that is wrong or cannot be met."""
    schema = table.schema
    check_roles(schema, models, method)
    method.refuse(schema, models, table.suppressible)
    check_plain(table)
    whole = table.one_class()
    check_whole(whole, schema, models, table.splits_persons, bool(table.suppressible))
    vacuity_notes(models, lambda _: whole, table.allow_vacuous)


def check_roles(schema: Schema, models: Sequence[Model], method: Method) -> None:
    """Refuse a request that no table can serve."""
    if not models:
        raise BadInput("no guarantee is requested", right="give at least one model, such as KAnonymity(6)")
    if not schema.quasi:
        raise BadInput("the schema has no quasi-identifier", right="name the columns that could identify a person")
    for name in schema.quasi:
        if name in schema.sensitive and not method.serves_both:
            right = f"give it one role; {method.name} cannot handle a column that is both"
            raise BadInput("is listed as quasi and as sensitive", column=name, right=right)


def check_models(schema: Schema, models: Sequence[Model], form: Form) -> None:
    """Refuse guarantees about columns that are not sensitive, and those without a meaning in this form."""
    for model in list_models(models):
        check_columns(schema, [model])
        if model.over is not None:
            list_subsets(model.over, list(schema.quasi))
            if form.name != "generalized":
                what = f"{model.name} over some quasi-identifiers has no meaning in the form '{form.name}'"
                raise BadInput(what, right="choose generalized, where cells of a row belong together, or leave over out")
        if not form.serves(model):
            right = "choose " + " or ".join(sorted(model.forms))
            raise BadInput(f"{model.name} has no meaning in the form '{form.name}'", right=right)


def check_plain(table: Table) -> None:
    for name, column in table.plain.items():
        alone = int((column.counts == 1).sum()) + int((column.codes < 0).sum() == 1)  # a missing cell is a value too
        refuse_unique(table.schema, name, alone)


def refuse_unique(schema: Schema, name: str, alone: int) -> None:
    """Refuse a plain column if some of its values (`alone`) occur in one row only: it may identify that row."""
    if alone and name not in schema.allow_unique:
        what = f"is plain, and {alone:,} of its values occur in one row only: it may identify that row"
        raise BadInput(what, column=name, right="make it quasi, sensitive or identifier, or name it in allow_unique")


def draw_seed(seed: int | None = None) -> int:
    """Return the given seed, or a random one of 128 bits.

    Args:
        seed: at least 0; None draws one.

    >>> draw_seed(7), draw_seed() != draw_seed()
    (7, True)
    """
    return secrets.randbits(128) if seed is None else whole("seed", seed, least=0)


def read_table(data: Any, csv: CsvFormat | None, schema: Schema) -> tuple[Columns, CsvFormat | None]:
    """Return the used columns of a table and the format of its CSV file; an identifier that repeats is refused.

    Identifiers are read only for this check, and dropped here.
    """
    file = place_of(data)
    try:
        columns, format = read_with_format(data, csv, lambda names: [*schema.list_needed(names), *schema.unique])
    except BadInput as bad:
        if bad.column in schema.unique and bad.column is not None:
            bad = bad.replace(right=f"{bad.right}, or list it under drop, which is not read")
        raise _name_file(bad, data) from None
    for name in schema.unique:
        check_identifier(columns[name], name, schema.missing, file)
    return columns.select(schema.used), format


def encode_table(columns: Columns, schema: Schema, data: Any) -> Table:
    """Return the coded table; a cell that does not fit the schema is refused with the file of the table.

    Args:
        columns: the used columns.
        schema: the schema.
        data: what they were read from.
    """
    try:
        return schema.encode(columns)
    except BadInput as bad:
        raise _name_file(bad, data) from None


def _name_file(bad: BadInput, data: Any) -> BadInput:
    return bad if bad.file is not None else bad.replace(file=place_of(data))


def check_identifier(column: Column, name: str, missing: Sequence[str] = (), file: object = None) -> None:
    """Refuse an identifier that repeats; missing ones do not count."""
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
    """Refuse an identifier with rows that repeat a value: they may belong to one person, or to people of the same name."""
    if repeats:
        what = f"{repeats:,} of {rows:,} rows repeat an identifier{example}, and k would count rows of one person as several"
        right = (
            f"declare person: {name} in place of identifier if equal values are one person, rows_are_persons: true if they are "
            f"different people (in Python: person={name!r}, rows_are_persons=True), or drop: {name} if it names no person"
        )
        raise BadInput(what, file=file, column=name, right=right)


def check_whole(
    classes: Classes, schema: Schema, models: Sequence[Model], splits_persons: bool = False, suppresses: bool = False
) -> None:
    """Refuse a monotone guarantee that the table as one class does not meet: then no partition of all rows meets it."""
    for name in schema.sensitive:
        if (classes.histograms[name].reference > 0).sum() == 1:
            warnings.warn(f"column '{name}': every row has the same value, so every release discloses it", stacklevel=4)
    for model in models:
        model.refuse(classes)
        surely = merging_holds(model, splits_persons) and not suppresses and "population" not in model.needs
        if surely and not model.holds(classes).all():
            domain = classes.histograms[model.column].domain if model.column else None
            measured = f"the whole table as one class reaches {model.levels(classes)[0]:.6g}"
            hint = f"requested is {model.requested}, and smaller classes reach less; request less"
            raise Unsatisfiable(model.describe(domain), measured, hint)

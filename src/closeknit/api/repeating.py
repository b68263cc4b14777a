"""`build_repeat`: the method as an adversary who knows it runs it again, on other tables and with other seeds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from closeknit.api.table_release import by_input_row, check_guarantees, release_table
from closeknit.attacks.exchange import Repeat, Repeated
from closeknit.core.coins import derive_seed
from closeknit.core.columns import Columns
from closeknit.core.date_shift import shift_dates
from closeknit.core.errors import CloseknitError
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.core.schema import Schema
from closeknit.core.table import Form


def build_repeat(
    schema: Schema,
    models: Sequence[Model],
    method: Method,
    *,
    seed: int,
    suppress: float = 0.0,
    form: Form | None = None,
    allow_vacuous: bool = False,
) -> Repeat:
    """Return a function that runs the method on a table as `anonymize` does; runs on hypothetical tables are not counted.

    Args:
        schema: Role, kind and hierarchy of each column.
        models: The guarantees.
        method: The method.
        seed: Seed of the release; other seeds are derived from it.
        suppress: Largest share of suppressed rows.
        form: How releases are written; default: the usual one of the method.
        allow_vacuous: Accept a guarantee that excludes nothing.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> repeat = build_repeat(schema, [ck.KAnonymity(5)], ck.Mondrian(), seed=2**64)
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.Mondrian(), seed=2**64)
    >>> (repeat(table, 0).class_of == release.partition).all()
    np.True_
    """
    schema = schema.without_identifiers()
    all_models = [model for model in check_guarantees(schema, models, method, form) if not model.of_method]
    options: dict[str, Any] = {"suppress": suppress, "form": form}

    def repeat(columns: Columns, number: int) -> Repeated | None:
        own = seed if number == 0 else derive_seed(seed, number)
        used = columns.select(schema.used)
        try:
            with warnings.catch_warnings(action="ignore"):  # these tables are hypothetical
                shifted, coded = shift_dates(used, schema, own)
                table = replace(coded.encode(shifted), allow_vacuous=allow_vacuous)
                done = release_table(table, all_models, method, seed=own, **options)
        except CloseknitError:
            return None
        return Repeated(done.columns, by_input_row(done.table, done.partition))

    return repeat

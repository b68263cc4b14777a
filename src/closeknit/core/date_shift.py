"""Dates that are shifted by a random number of days, the same for all rows of one person and all date columns of equal `shift`.

The days between two dates of a person are kept, so lengths of stay and orders of events are; between columns of different
`shift` they are not, because each `shift` has a draw of its own. No guarantee follows: whoever
knows one true date of a person finds the shift and with it all others. Guarantees are judged on the shifted dates.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import date as Day
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.date_texts import ISO, Moment, read_dates
from closeknit.core.dates import Date
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.kinds import texts_of
from closeknit.core.schema import KINDED, Schema


def list_shifted(schema: Schema) -> dict[str, Date]:
    """The columns whose dates are shifted."""
    kinds = {**schema.quasi, **schema.sensitive}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, Date) and kind.shift is not None}


def refuse_shifts(schema: Schema, where: str) -> None:
    """Refuse columns whose dates are to be shifted where they are not.

    Args:
        schema: the columns.
        where: where not, for the message.
    """
    for name in list_shifted(schema):
        raise BadInput(f"its dates cannot be shifted {where}", column=name, right="leave shift out, or shift them before")


def shift_dates(columns: Columns, schema: Schema, seed: int) -> tuple[Columns, Schema]:
    """The table with shifted dates in ISO form, and its schema.

    Args:
        columns: the raw table.
        schema: its columns.
        seed: the private seed; the shift of a person is derived from it.
    """
    kinds = list_shifted(schema)
    if not kinds:
        return columns, schema
    if schema.person is None:
        right = "name the person column: person='patient_id'"
        raise BadInput(
            "its dates are to be shifted per person, and there is no person column", column=next(iter(kinds)), right=right
        )
    people = columns[schema.person]
    shifted = dict(columns)
    for name, kind in kinds.items():
        assert kind.shift is not None
        days = np.array([*(person_shift(text, kind.shift, seed) for text in texts_of(people.values)), 0])
        shifted[name] = _shift_column(columns[name], name, kind, days[people.codes], schema)
    changed = {role: _with_iso(getattr(schema, role), kinds) for role in KINDED}
    return Columns(shifted, columns.rows), schema.model_copy(update=changed)


def _with_iso(kinds: dict[str, object], shifted: dict[str, Date]) -> dict[str, object]:
    return {name: replace(shifted[name], format=ISO) if name in shifted else kind for name, kind in kinds.items()}


def person_shift(person: str, days: int, seed: int) -> int:
    """Days by which the dates of a person are shifted, from -days to days, each equally likely.

    Args:
        person: the person.
        days: the largest shift.
        seed: the private seed.

    >>> person_shift("17", 30, 7) == person_shift("17", 30, 7), -30 <= person_shift("18", 30, 7) <= 30
    (True, True)
    """
    text = json.dumps(["closeknit shift", days, seed, person])
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big") % (2 * days + 1) - days


def _shift_column(column: Column, name: str, kind: Date, days: NDArray[np.int64], schema: Schema) -> Column:
    used = np.flatnonzero((column.counts > 0) & ~schema.flag_missing(column.values))
    values = column.values[used]
    typed = values.dtype.kind == "M"
    texts = np.datetime_as_string(values).tolist() if typed else texts_of(values)  # type: ignore[arg-type]
    try:
        moments: list[Moment] = read_dates(texts, ISO if typed else kind.format)
    except BadValue as bad:
        raise bad.locate(name, column.first_row(int(used[bad.index]))) from None
    moment_of = dict(zip(used.tolist(), moments, strict=True))
    cells: list[object] = [None] * len(column.codes)
    pairs, row_pair = np.unique(np.stack([column.codes, days]), axis=1, return_inverse=True)
    shown = [_move(moment_of.get(code), shift, name) for code, shift in pairs.T.tolist()]
    for row, pair in enumerate(row_pair.ravel().tolist()):
        cells[row] = shown[pair]
    return Columns.of({name: cells})[name]


def _move(found: Moment | None, days: int, name: str) -> str | None:
    if found is None:
        return None
    level, moment = found
    if level not in ("day", "hour", "minute"):
        right = "give days, or leave shift out"
        raise BadInput(f"a date is only known by its {level}, so it cannot be shifted by days", column=name, right=right)
    try:
        moved = moment + timedelta(days=days)
    except OverflowError:
        right = "list it under missing, or leave shift out"
        raise BadInput(
            f"{Day(moment.year, moment.month, moment.day)} is at the end of the calendar", column=name, right=right
        ) from None
    return moved.isoformat()[: {"minute": 16, "hour": 13, "day": 10}[level]]

"""Values outside the declared domains: refused or counted, by column, with an alarm where they become many.

A class with such a value writes `*` in that column for all of its rows, so the value is never disclosed and k does not change;
only the loss grows. An alarm therefore never stops a stream: a stop would itself disclose that a new value arrived.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from closeknit.core.errors import BadInput
from closeknit.kernels.arrays import Flags
from closeknit.streams.arrivals import Arrivals, Meanings
from closeknit.streams.counters import Counters
from closeknit.streams.input_rules import REFUSE

if TYPE_CHECKING:
    from closeknit.streams.stream import Stream

SPAN = 1000  # rows of which a share is measured
log = logging.getLogger("closeknit.streams")


class UnknownValue(BadInput):
    """A row with a value outside the declared domain of its column, where such rows are refused."""


class UndeclaredValue(BadInput):
    """A sensitive value that a declared reference does not have: the stream stops, because no row is left out for its value."""


def admit_values(stream: Stream, rows: Arrivals) -> None:
    """Count the cells of arriving rows that are outside their domains; refuse the rows if the rules say so.

    Args:
        stream: the stream; refused rows do not change it, and are counted if they arrive one by one.
        rows: the rows.
    """
    if rows.outside is None:
        return
    names = [*stream.schema.quasi, *stream.schema.sensitive]
    refuses = stream.rules.unknown == REFUSE
    if not refuses or len(rows) == 1:
        count_outside(stream.counters, names, rows.outside, stream.position, stream.rules.alarm)
    if refuses:
        stream.counters.refused += len(rows) == 1
        raise _refuse(names, rows.outside, len(rows) > 1)
    stream.counters.unknown += rows.unknown


def refuse_outside(stream: Stream, meanings: Meanings) -> None:
    """Refuse a table that has a value outside its domain, before any of its rows is accepted.

    Args:
        stream: the stream.
        meanings: what the distinct values of the table mean.
    """
    if stream.rules.unknown == REFUSE and (rows := meanings.rows(0, meanings.columns.rows, 0)).outside is not None:
        raise _refuse([*stream.schema.quasi, *stream.schema.sensitive], rows.outside)


def count_outside(counters: Counters, names: list[str], outside: Flags, first: int, alarm: float) -> None:
    """Count cells outside their domains by column, and raise an alarm once in a span of rows in which they are too many.

    Args:
        counters: the counters.
        names: the columns.
        outside: for each row and column, whether its cell is outside.
        first: the position of the first row.
        alarm: the largest share of rows of a span.

    >>> import numpy as np
    >>> counters, outside = Counters(), np.zeros((2500, 1), dtype=bool)
    >>> outside[[3, 4, 5, 1999, 2000, 2001]] = True
    >>> count_outside(counters, ["city"], outside, 0, alarm=0.002)
    >>> counters.unknown_of, counters.alarms
    ({'city': 6}, {'city': 1})
    """
    start = 0
    while start < len(outside):
        span = (first + start) // SPAN
        stop = min(len(outside), (span + 1) * SPAN - first)
        found = outside[start:stop].sum(axis=0).tolist()
        if any(found) and span != counters.span:
            counters.span, counters.span_unknown = span, {}
        for name, count in zip(names, found, strict=True):
            if count:
                _count_column(counters, name, count, alarm)
        start = stop


def _count_column(counters: Counters, name: str, count: int, alarm: float) -> None:
    before = counters.span_unknown.get(name, 0)
    counters.span_unknown[name] = before + count
    counters.unknown_of[name] = counters.unknown_of.get(name, 0) + count
    if before <= alarm * SPAN < before + count:
        counters.alarms[name] = counters.alarms.get(name, 0) + 1
        log.warning("%s; declare the new values in the schema of a new stream", describe_drift(name, alarm))


def describe_drift(name: str, alarm: float) -> str:
    """A sentence on a column whose values are no longer those of its domain.

    Args:
        name: the column.
        alarm: the largest share of rows.

    >>> describe_drift("city", 0.01)
    "column 'city': more than 1% of 1,000 rows have a value outside the declared domain"
    """
    return f"column '{name}': more than {100 * alarm:.4g}% of {SPAN:,} rows have a value outside the declared domain"


def _refuse(names: list[str], outside: Flags, name_row: bool = True) -> UnknownValue:
    row, column = (int(where[0]) for where in outside.nonzero())
    right = "declare it in the schema of a new stream, or choose the rule unknown: generalize"
    place = row + 1 if name_row else None
    return UnknownValue("a value is outside the declared domain", column=names[column], row=place, right=right)

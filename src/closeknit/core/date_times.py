"""`DateTime`: dates with a time of day, from seconds up to decades. Everything but the usual levels is that of `Date`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from closeknit.core.date_texts import LEVELS
from closeknit.core.dates import Date


@dataclass(frozen=True, repr=False)
class DateTime(Date):
    """A column of date-times.

    Args:
        levels: levels from the finest to the coarsest; finer parts of a value are cut off.
        lo: first day that may occur, in ISO form.
        hi: last day that may occur.
        format: format of the raw date-times ("%d.%m.%Y %H:%M:%S", or "iso"); detected from all values of the column if None.

    >>> import numpy as np
    >>> seen = np.array(["2024-03-17T13:45:10", "2024-03-17T13:45:59", "2024-03-17T08:00:00"], dtype=object)
    >>> domain, codes = DateTime().bind(seen)
    >>> codes.tolist(), domain.labels(np.array([0, 1, 0]), np.array([0, 2, 2]))
    ([1, 2, 0], ['2024-03-17T08:00:00', '2024-03-17T13:45', '2024-03-17'])
    """

    name: ClassVar[str] = "datetime"
    levels: tuple[str, ...] = LEVELS


def datetime(
    levels: Sequence[str] | None = None, lo: str | None = None, hi: str | None = None, format: str | None = None
) -> DateTime:
    """A column of date-times.

    Args:
        levels: from the finest to the coarsest, out of second, minute, hour, day, month, quarter, year and decade; all of
            them if left out. Finer parts of a value are cut off.
        lo: first day that may occur, in ISO form; the loss is measured between `lo` and `hi`.
        hi: last day that may occur.
        format: format of the raw date-times, such as "%d.%m.%Y %H:%M" or "iso"; detected from all values if left out.

    >>> datetime(["minute", "hour", "day"])
    DateTime(levels=('minute', 'hour', 'day'))
    """
    return DateTime(levels=LEVELS if levels is None else tuple(levels), lo=lo, hi=hi, format=format)

"""`Duration`: lengths of time, as numbers of one unit. Everything but reading them is that of `Numeric`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from closeknit.core.domain import LOOKS_WRITTEN, NUMBER_TEXT, Domain, Values
from closeknit.core.duration_texts import CALENDAR, UNITS, read_duration
from closeknit.core.errors import BadValue
from closeknit.core.exact import plain_number
from closeknit.core.kinds import Numeric
from closeknit.core.params import choice
from closeknit.kernels.arrays import Int32


@dataclass(frozen=True, repr=False)
class Duration(Numeric):
    """A column of durations, written as ranges of numbers.

    Args:
        lo: the shortest duration that may occur, in the unit.
        hi: the longest duration that may occur, in the unit.
        step: ranges of decimals end at its multiples, those of whole numbers only with `snap`.
        bins: number of equally wide intervals from `lo` to `hi`, including empty ones, as leaves.
        snap: whether ranges of whole numbers end at multiples of `step`, too.
        unit: "second", "minute", "hour" or "day": what the written numbers count, and raw numbers as well.

    >>> domain, codes = Duration(unit="minute").bind(np.array(["PT1H30M", "0:45:00", "12"], dtype=object))
    >>> codes.tolist(), domain.labels(np.array([0, 1]), np.array([0, 2]))
    ([2, 1, 0], ['12', '[45, 90]'])
    """

    name: ClassVar[str] = "duration"
    unit: str = "second"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("unit", self.unit, tuple(UNITS))

    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """Leaves are the distinct numbers of the unit, ascending."""
        texts = values.tolist() if values.dtype.kind == "O" else []
        for i, text in enumerate(map(str, texts)):
            if not (NUMBER_TEXT.fullmatch(text) or LOOKS_WRITTEN.fullmatch(text)) and read_duration(text) is None:
                raise self._refuse(i, text)
        return super().bind(self.read_numbers(values))

    def _refuse(self, index: int, text: str) -> BadValue:
        if CALENDAR.match(text):
            return BadValue(index, f"'{text}' has years or months, which have no fixed length", "write it in days")
        right = f"write it as PT1H30M, 1:30:00 or a number of {self.unit}s, or list it under missing"
        return BadValue(index, f"'{text}' is not a duration", right)

    def read_numbers(self, values: Values) -> Values:
        """Durations as numbers of the unit; what is not one is left as it is."""
        if values.dtype.kind != "O":
            return values
        read = [(text, read_duration(str(text))) for text in values.tolist()]
        size = UNITS[self.unit]
        numbers = [text if seconds is None else plain_number(float(seconds / size)) for text, seconds in read]
        return np.array(numbers, dtype=object)


def duration(
    unit: str = "second",
    lo: float | None = None,
    hi: float | None = None,
    step: float | None = None,
    bins: int | None = None,
    snap: bool = False,
) -> Duration:
    """A column of durations.

    Args:
        unit: "second", "minute", "hour" or "day": what the written numbers count, and raw numbers as well.
        lo: the shortest duration that may occur, in the unit; the loss is measured between `lo` and `hi`.
        hi: the longest duration that may occur, in the unit.
        step: ranges of decimals end at its multiples; proposed from the data if left out.
        bins: number of equally wide intervals from `lo` to `hi` as leaves.
        snap: whether ranges of whole numbers end at multiples of `step`, too.

    >>> duration("minute", 0, 600, step=15)
    Duration(lo=0, hi=600, step=15, unit='minute')
    """
    return Duration(lo=lo, hi=hi, step=step, bins=bins, snap=snap, unit=unit)

"""Durations as text: ISO 8601 (`PT1H30M`), clocks (`1:30:00`), and what Python and pandas print (`1 day, 2:00:00`)."""

from __future__ import annotations

import re
from fractions import Fraction

UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}  # seconds in each
_NUMBER = r"\d+(?:[.,]\d+)?"
_ISO = re.compile(
    rf"(?P<sign>[+-]?)P(?!$)(?:(?P<w>{_NUMBER})W)?(?:(?P<d>{_NUMBER})D)?"
    rf"(?:T(?!$)(?:(?P<h>{_NUMBER})H)?(?:(?P<m>{_NUMBER})M)?(?:(?P<s>{_NUMBER})S)?)?",
    re.ASCII,
)
_CLOCK = re.compile(r"(?P<sign>[+-]?)(?:(?P<d>\d+) days?,? \+?)?(?P<h>\d+):(?P<m>[0-5]\d):(?P<s>[0-5]\d(?:[.,]\d+)?)", re.ASCII)
DURATION = re.compile(r"[+-]?(P\d.*|PT\d.*|(\d+ days?,? \+?)?\d+:\d\d:\d\d.*)", re.ASCII)  # what looks like one
_SECONDS = {"w": 7 * UNITS["day"], **{name[0]: seconds for name, seconds in UNITS.items()}}
CALENDAR = re.compile(r"[+-]?P(?=.*\d[YM])[^T]*(?:[YM])", re.ASCII)  # years and months, which have no fixed length


def read_duration(text: str) -> Fraction | None:
    """The seconds of a duration; None if the text is none, or has years or months.

    Args:
        text: the raw text.

    >>> read_duration("PT1H30M"), read_duration("1:30:00"), read_duration("1 day, 2:00:00.5"), read_duration("1:30")
    (Fraction(5400, 1), Fraction(5400, 1), Fraction(187201, 2), None)
    """
    match = _ISO.fullmatch(text) or _CLOCK.fullmatch(text)
    if not match:
        return None
    parts = match.groupdict()
    sign = -1 if parts.pop("sign") == "-" else 1
    seconds = (Fraction(amount.replace(",", ".")) * _SECONDS[unit] for unit, amount in parts.items() if amount)
    return sign * sum(seconds, Fraction(0))


def coarsest_unit(durations: list[Fraction]) -> str:
    """The coarsest unit in which all these durations are whole numbers; seconds if there is none.

    Args:
        durations: in seconds.

    >>> coarsest_unit([Fraction(5400), Fraction(60)]), coarsest_unit([Fraction(1, 2)])
    ('minute', 'second')
    """
    fitting = [unit for unit, size in UNITS.items() if all((one / size).denominator == 1 for one in durations)]
    return fitting[-1] if fitting else "second"

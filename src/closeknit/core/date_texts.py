"""Dates as text: the labels that closeknit writes, ISO date-times, other common notations, and formats such as %d.%m.%Y.

The format of a column is decided once, from all its values: 03/04/2024 alone has two readings, next to 17/04/2024 only one.
A time of day after the date is read with it; a time zone is not applied, so the day is the one that is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache

from closeknit.core.errors import BadInput, BadValue

LEVELS = ("second", "minute", "hour", "day", "month", "quarter", "year", "decade")
ISO = "iso"  # the name of the format that labels and ISO date-times have
EXAMPLE = datetime(2024, 3, 17, 13, 45, 10)
Moment = tuple[str, datetime]  # level, and the first moment of its unit

_LABEL = re.compile(r"(\d{4})(?:(s)|-Q([1-4])|-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d))?)?)?)?)?", re.ASCII)
_TIME = r"(?:[T ] ?(?P<H>\d\d?)(?::(?P<M>\d\d)(?::(?P<S>\d\d)(?:[.,]\d+)?)?)?(?: ?(?:Z|[+-]\d\d(?::?\d\d)?))?)"
_DAY_FIRST_OR_LAST = re.compile(rf"(?:(\d{{4}})([./])\d\d?\2\d\d?|(\d\d?)([./-])(\d\d?)\4\d{{4}}){_TIME}?", re.ASCII)
_MONTHS = "january february march april may june july august september october november december"
_MONTH_OF = {name[:length]: i for i, name in enumerate(_MONTHS.split(), 1) for length in (3, len(name))}
_DIRECTIVES = {
    "Y": r"(?P<Y>\d{4})",
    "m": r"(?P<m>\d\d?)",
    "d": r"(?P<d>\d\d?)",
    "b": "(?P<b>[A-Za-z]{3})",
    "B": "(?P<b>[A-Za-z]+)",
    "H": r"(?P<H>\d\d?)",
    "M": r"(?P<M>\d\d)",
    "S": r"(?P<S>\d\d)",
    "f": r"\d+",
    "z": r"(?:Z|[+-]\d\d:?\d\d)",
    "%": "%",
}


def read_label(text: str) -> Moment | None:
    """Level and first moment of a label of a release; None if the text is no such label.

    >>> read_label("2024-Q1"), read_label("17.03.2024")
    (('quarter', datetime.datetime(2024, 1, 1, 0, 0)), None)
    """
    match = _LABEL.fullmatch(text)
    if not match:
        return None
    year, decade, quarter, month, day, hour, minute, second = match.groups()
    try:
        if day:
            level = "second" if second else "minute" if minute else "hour" if hour else "day"
            return level, datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
        if month:
            return "month", datetime(int(year), int(month), 1)
        if quarter:
            return "quarter", datetime(int(year), 3 * int(quarter) - 2, 1)
        if decade:
            return ("decade", datetime(max(int(year), 1), 1, 1)) if int(year) % 10 == 0 else None
        return "year", datetime(int(year), 1, 1)
    except ValueError:
        return None


def read_dates(texts: Sequence[str], format: str | None) -> list[Moment]:
    """Every text as a date; without a format, the format is detected. A text that does not fit is refused.

    >>> read_dates(["17.03.2024 13:45", "01.02.2024"], None)
    [('minute', datetime.datetime(2024, 3, 17, 13, 45)), ('day', datetime.datetime(2024, 2, 1, 0, 0))]
    """
    found = detect_format(texts) if format is None else format
    read = reader(found)
    moments = [read(text) for text in texts]
    if None in moments and format not in (None, ISO) and not found.startswith("%Y-%d"):
        labels = [read_label(text) for text in texts]  # a written column, checked with the schema of the raw one
        moments = labels if None not in labels else moments
    for i, moment in enumerate(moments):
        if moment is None:
            raise _misfit(i, texts, found)
    return [moment for moment in moments if moment is not None]


def detect_format(texts: Sequence[str]) -> str:
    """The format of a column's dates, proposed by the first and confirmed by all; `iso` for everything in ISO form.

    >>> detect_format(["01/02/2024", "20/02/2024"]), detect_format(["2024-03-17T13:45:10Z"])
    ('%d/%m/%Y', 'iso')
    """
    shapes = [_DAY_FIRST_OR_LAST.fullmatch(text) for text in texts]
    first = next((shape for shape, text in zip(shapes, texts, strict=True) if shape or read_iso(text)), None)
    if first is None:
        return ISO
    if first[1]:
        return f"%Y{first[2]}%m{first[2]}%d"
    sign = first[4]
    alike = [(i, int(shape[3]), int(shape[5])) for i, shape in enumerate(shapes) if shape and shape[4] == sign]
    day_first = next((i for i, one, _ in alike if one > 12), None)
    month_first = next((i for i, _, two in alike if two > 12), None)
    day, month = f"%d{sign}%m{sign}%Y", f"%m{sign}%d{sign}%Y"
    if day_first is not None and month_first is not None:
        early, late = sorted((day_first, month_first))
        what = f"'{texts[late]}' has day and month in another order than '{texts[early]}'"
        raise BadValue(late, what, "write all dates of the column in one format")
    unclear = next((i for i, one, two in alike if one != two), None)
    if day_first is None and month_first is None and unclear is not None:
        raise BadValue(unclear, both_readings(texts[unclear]), f'choose one: format: "{day}" or format: "{month}"')
    return month if month_first is not None else day


def possible_formats(texts: Sequence[str]) -> list[str]:
    """All formats that are detected and in which all these texts are dates.

    >>> possible_formats(["03/04/2024", "05/06/2024"]), possible_formats(["1.2.3"])
    (['%d/%m/%Y', '%m/%d/%Y'], [])
    """
    days = [order.replace("-", sign) for sign in "./-" for order in ("%d-%m-%Y", "%m-%d-%Y")]
    formats = [ISO, *days, "%Y/%m/%d", "%Y.%m.%d"]
    return [format for format in formats if texts and all(map(reader(format), texts))]


def both_readings(text: str) -> str:
    """The two readings of a date whose day may be its month.

    >>> both_readings("03/04/2024")
    "'03/04/2024' is 2024-04-03 with the day first and 2024-03-04 with the month first"
    """
    one, two, year = map(int, re.findall(r"\d+", text)[:3])
    return f"'{text}' is {year}-{two:02}-{one:02} with the day first and {year}-{one:02}-{two:02} with the month first"


@cache
def reader(format: str) -> Callable[[str], Moment | None]:
    """A function that reads a text of this format and returns None for any other text; a time of day may follow the date.

    >>> reader("%d %b %Y")("17 Mar 2024")
    ('day', datetime.datetime(2024, 3, 17, 0, 0))
    """
    return read_iso if format == ISO else _reader(format)


def _reader(format: str) -> Callable[[str], Moment | None]:
    pieces, used = [], []
    for piece in re.findall(r"%.?|[^%]+", format, re.DOTALL):
        if not piece.startswith("%"):
            pieces.append(re.escape(piece))
        elif piece[1:] not in _DIRECTIVES:
            known = ", ".join(f"%{name}" for name in _DIRECTIVES)
            years = "write years with four digits, %Y" if piece == "%y" else f"use {known}, or iso"
            raise BadInput(f"date has format={format!r}, where '{piece}' has no meaning", right=years)
        else:
            pieces.append(_DIRECTIVES[piece[1:]])
            used.append(piece[1:].replace("B", "b"))
    levels = [level for level, needs in _NEEDS if needs <= {*used, *("m" for name in used if name == "b")}]
    if len(set(used)) < len(used) or {"m", "b"} <= set(used) or not levels:
        raise BadInput(f"date has format={format!r}", right='name year, month and day once each, such as "%d.%m.%Y"')
    with_time = "".join(pieces) + ("" if "H" in used else f"{_TIME}?")
    pattern, level = re.compile(with_time, re.ASCII), levels[0]

    def read(text: str) -> Moment | None:
        match = pattern.fullmatch(text)
        if not match:
            return None
        part = match.groupdict()
        month = _MONTH_OF.get(part["b"].lower(), 0) if part.get("b") else int(part.get("m") or 1)
        try:
            finer, time = _read_time(part)
            return finer or level, datetime(int(part["Y"]), month, int(part.get("d") or 1), *time)
        except ValueError:
            return None

    return read


def _read_time(part: dict[str, str | None]) -> tuple[str | None, tuple[int, int, int]]:
    """The level of a time of day, and its hour, minute and second; a leap second is read as the one before it."""
    hour, minute, second = (part.get(name) for name in "HMS")
    level = "second" if second else "minute" if minute else "hour" if hour else None
    return level, (int(hour or 0), int(minute or 0), 59 if second == "60" else int(second or 0))


_NEEDS = (("day", {"Y", "m", "d"}), ("month", {"Y", "m"}), ("year", {"Y"}))
_ISO_TIME = re.compile(rf"(\d{{4}})-(\d\d)-(\d\d){_TIME}", re.ASCII)


def read_iso(text: str) -> Moment | None:
    """A label, or an ISO date-time.

    >>> read_iso("2024-03-17 13:45:10.5+01:00")
    ('second', datetime.datetime(2024, 3, 17, 13, 45, 10))
    """
    match = _ISO_TIME.fullmatch(text)
    if not match:
        return read_label(text)
    try:
        level, time = _read_time(match.groupdict())
        return level or "hour", datetime(int(match[1]), int(match[2]), int(match[3]), *time)
    except ValueError:
        return None


def is_day(text: str) -> bool:
    """Whether a text is a day in ISO form.

    >>> is_day("2024-03-17"), is_day("2024-03")
    (True, False)
    """
    return (found := read_label(text)) is not None and found[0] == "day"


def _misfit(index: int, texts: Sequence[str], format: str) -> BadValue:
    text, shape = texts[index], _DAY_FIRST_OR_LAST.fullmatch(texts[index])
    form = str(EXAMPLE.date()) if format == ISO else EXAMPLE.strftime(format)
    right = f"write it as {form}, or list it under missing"
    other = next((other for other in texts if reader(format)(other)), None)
    if other is not None and (read_iso(text) or (shape and (shape[2] or shape[4]) not in format)):
        return BadValue(index, f"'{text}' has another format than '{other}'", right)
    return BadValue(index, f"'{text}' is not a date", right)

"""Dates and times of statistical files: a number, and a format that says what it counts."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from closeknit.core.columns import Column
from closeknit.io.arrow import column_from_arrow
from closeknit.io.buffers import numbers_to_arrow

STATA_ZERO = SAS_ZERO = np.datetime64("1960-01-01", "us")
SPSS_ZERO = np.datetime64("1582-10-14", "us")
DAY, SECOND, MILLISECOND = 86_400_000_000, 1_000_000, 1_000  # in microseconds
SPSS_DAYS = {"DATE", "ADATE", "EDATE", "JDATE", "SDATE", "MOYR", "QYR", "WKYR", "DATETIME", "YMDHMS"}
SPSS_TIMES = {"TIME", "DTIME", "MTIME"}
SAS_DAYS = re.compile(r"(DATE|WEEKDATE|WEEKDATX|WORDDATE|WORDDATX|MONYY|JULIAN|(MMDDYY|DDMMYY|YYMMDD)[BCDNPS]?|(IS|E|B)8601DA)")
SAS_MOMENTS = re.compile(r"(DATETIME|DTDATE|DATEAMPM|MDYAMPM|(IS|E|B)8601D[TN])")
SAS_TIMES = re.compile(r"(TIME|TOD|HHMM|TIMEAMPM|(IS|E|B)8601TM)")
FARTHEST = 2.0**62  # microseconds that still fit


def convert_dates(column: Column, format: str | None, suffix: str, name: str) -> Column | None:
    """The column as ISO dates, date-times or times of day; None if its numbers are no dates.

    Args:
        column: numbers.
        format: the format of the column in its file.
        suffix: of the file.
        name: of the column.

    >>> convert_dates(Column(np.array([21915.0]), np.array([0, -1])), "%td", ".dta", "admission").cells()
    [datetime.date(2020, 1, 1), None]
    >>> convert_dates(Column(np.array([30600.0]), np.array([0])), "TIME8", ".sav", "admission").cells()
    ['08:30:00']
    """
    what = _choose_unit(format or "", suffix)
    if what is None:
        return None
    zero, unit = what
    with np.errstate(invalid="ignore"):
        ticks = column.values.astype(np.float64) * unit
    if (np.abs(ticks) > FARTHEST).any():
        return None
    whole = np.rint(ticks).astype(np.int64)
    if zero is None:
        return column.with_texts([_clock_text(tick) for tick in whole.tolist()])
    moments = numbers_to_arrow((zero.astype(np.int64) + whole), pa.timestamp("us"))
    seen = column_from_arrow(pa.chunked_array([moments]), name)
    return Column(seen.values, np.append(seen.codes, -1)[column.codes])


def _choose_unit(format: str, suffix: str) -> tuple[np.datetime64 | None, int] | None:
    """When the count begins, None for a time of day; and the microseconds of one."""
    if suffix == ".dta":
        return _choose_stata(format.replace("%-", "%"))
    word = re.sub(r"[\d.]*$", "", format.upper())
    if suffix in (".sav", ".zsav", ".por"):
        return (SPSS_ZERO, SECOND) if word in SPSS_DAYS else (None, SECOND) if word in SPSS_TIMES else None
    if SAS_DAYS.fullmatch(word):
        return SAS_ZERO, DAY
    if SAS_MOMENTS.fullmatch(word):
        return SAS_ZERO, SECOND
    return (None, SECOND) if SAS_TIMES.fullmatch(word) else None


def _choose_stata(format: str) -> tuple[np.datetime64 | None, int] | None:
    if format.startswith(("%td", "%d")):
        return STATA_ZERO, DAY
    if not format.lower().startswith("%tc"):
        return None
    shown = format[3:]
    only_time = shown and not re.search("[CYJjNnMmLlDdWwUu]", shown.replace("MM", "").replace("SS", ""))
    return (None if only_time else STATA_ZERO), MILLISECOND


def _clock_text(tick: int) -> str:
    seconds, rest = divmod(abs(tick), SECOND)
    text = f"{'-' if tick < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{rest:06}".rstrip("0") if rest else text

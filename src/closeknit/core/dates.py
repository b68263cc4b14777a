"""`Date`: days under months, quarters, years and decades. Leaves are the dates that occur; nodes weigh by the calendar.

A node costs the share of the calendar that it covers, counted in units of the finest level: of days, "2024-03" is 31 of
all between the bounds (variant B: 30 of one less). So a stranger computes the same from the written cells, whichever
dates occurred.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date as Day
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from closeknit.core.domain import Domain, Values
from closeknit.core.errors import BadInput
from closeknit.core.kinds import BadValue, Kind, Losses, bind_tree, leaf_losses, texts_of
from closeknit.core.params import spec
from closeknit.core.tree import STAR, Int32, Tree

LEVELS = ("day", "month", "quarter", "year", "decade")
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}  # months in one unit of the level
_LABEL = re.compile(r"(\d{4})(?:(s)|-Q([1-4])|-(\d\d)(?:-(\d\d))?)?", re.ASCII)


def _start(text: str) -> tuple[str, Day] | None:
    """Level and first day of a written label; None if it is no label."""
    match = _LABEL.fullmatch(text)
    if not match:
        return None
    year, decade, quarter, month, day = match.groups()
    try:
        if day:
            return "day", Day(int(year), int(month), int(day))
        if month:
            return "month", Day(int(year), int(month), 1)
        if quarter:
            return "quarter", Day(int(year), 3 * int(quarter) - 2, 1)
        if decade:
            return ("decade", Day(max(int(year), 1), 1, 1)) if int(year) % 10 == 0 else None
        return "year", Day(int(year), 1, 1)
    except ValueError:
        return None


def _unit(day: Day, level: str) -> int:
    """Number of the unit of this level that holds the day, counted from the beginning of the calendar."""
    return day.toordinal() if level == "day" else (12 * day.year + day.month - 1) // _MONTHS[level]


def _label(unit: int, level: str) -> str:
    if level == "day":
        return Day.fromordinal(unit).isoformat()
    year, month = divmod(unit * _MONTHS[level], 12)
    names = {"month": f"-{month + 1:02}", "quarter": f"-Q{month // 3 + 1}", "year": "", "decade": "s"}
    return f"{year:04}{names[level]}"


def _first_day(unit: int, level: str) -> Day:
    """First day of the unit; beyond the calendar's ends, its ends."""
    if level == "day":
        return Day.fromordinal(unit)
    year, month = divmod(unit * _MONTHS[level], 12)
    return Day.min if year < 1 else Day.max if year > 9999 else Day(year, month + 1, 1)


def _finest_units(day: Day, level: str, finest: str) -> tuple[int, int]:
    """First and last unit of the finest level inside the unit of `level` that holds the day."""
    unit = _unit(day, level)
    first = _unit(_first_day(unit, level), finest)
    if level == "day" or LEVELS.index(level) <= LEVELS.index(finest):
        return first, first
    after = _first_day(unit + 1, level)
    return first, _unit(after, finest) - (after != Day.max)


@dataclass(frozen=True)
class Date:
    """A column of dates; `levels` from the finest wanted to the coarsest, `lo` and `hi` as ISO days.

    >>> domain, codes = Date().bind(np.array(["2024-03-17", "2024-01-02", "2031-05-01"], dtype=object))
    >>> codes.tolist(), domain.labels(np.array([0, 0, 1]), np.array([0, 1, 2]))
    ([1, 0, 2], ['2024-01-02', '2024-Q1', '*'])
    >>> year = Date(lo="2024-01-01", hi="2024-12-31")
    >>> year.losses(["2024-01-02", "2024-Q1", "2024", "*", ""])[:, 0].round(3).tolist()
    [0.0, 0.249, 1.0, 1.0, 0.0]
    """

    name: ClassVar[str] = "date"
    default_distance: ClassVar[str] = "ordered"
    levels: tuple[str, ...] = LEVELS
    lo: str | None = None
    hi: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", _checked_levels(self.levels))
        for name in ("lo", "hi"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _checked_bound(name, getattr(self, name)))
        if (self.lo is None) != (self.hi is None):
            raise BadInput("date needs both bounds or none", right="give lo and hi")
        if self.lo is not None and self.hi is not None and not self.lo <= self.hi:
            raise BadInput(f"date has lo={self.lo} and hi={self.hi}", right="lo must not be after hi")

    @property
    def finest(self) -> str:
        """The level of the leaves."""
        return self.levels[0]

    @property
    def bounds(self) -> tuple[int, int] | None:
        """First and last unit of the finest level inside the declared bounds, if any."""
        if self.lo is None or self.hi is None:
            return None
        return _unit(Day.fromisoformat(self.lo), self.finest), _unit(Day.fromisoformat(self.hi), self.finest)

    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """Leaves are the dates that occur, cut to the finest level; their numbers count its units (days, months...).

        A node weighs its units between the declared bounds, or else between the first and the last date.
        """
        days = self._days(values)
        units = [_unit(day, self.finest) for day in days]
        if not units:
            return bind_tree(Tree.of({"none": None}), [], np.zeros(1))
        leaves, codes = np.unique(np.array(units, dtype=np.int64), return_inverse=True)
        tree = Tree.of({STAR: self._nested([_first_day(leaf, self.finest) for leaf in leaves.tolist()])})
        domain = Domain(
            tuple(tree.leaf_labels),
            tree,
            leaves.astype(np.float64),
            None if self.bounds is None else (float(self.bounds[0]), float(self.bounds[1])),
            node_loss=self._shares(tree.labels, self.bounds or (int(leaves[0]), int(leaves[-1])))[:, 0],
            default_distance=self.default_distance,
        )
        return domain, codes.astype(np.int32)

    def _nested(self, starts: Sequence[Day]) -> dict[str, Any]:
        nested: dict[str, Any] = {}
        for start in starts:
            place = nested
            for level in self.levels[:0:-1]:
                place = place.setdefault(_label(_unit(start, level), level), {})
            place[_label(_unit(start, self.finest), self.finest)] = None
        return nested

    def _days(self, values: Values) -> list[Day]:
        days = []
        for i, text in enumerate(_iso_texts(values)):
            found = _start(text)
            if found is None or found[0] not in ("day", self.finest):
                ways = " or ".join(sorted({_label(_unit(_EXAMPLE, level), level) for level in ("day", self.finest)}))
                raise BadValue(i, f"'{text}' is not a {self.finest}", f"write it as {ways}, or declare it as missing")
            unit = _unit(found[1], self.finest)
            if (bounds := self.bounds) and not bounds[0] <= unit <= bounds[1]:
                right = f"it must lie between {self.lo} and {self.hi}"
                raise BadValue(i, f"'{text}' is outside the column's bounds", right)
            days.append(found[1])
        return days

    def losses(self, cells: Sequence[str]) -> Losses:
        """Units under the node over all units between the declared bounds, or else those of the written cells."""
        spans = []
        for i, cell in enumerate(cells):
            if cell in (STAR, ""):
                continue
            found = _start(cell)
            if found is None:
                right = "write a day, month, quarter, year, decade or '*'"
                raise BadValue(i, f"'{cell}' is neither a date nor a span of dates", right)
            spans.append(_finest_units(found[1], found[0], self.finest))
            if (bounds := self.bounds) and (spans[-1][1] < bounds[0] or spans[-1][0] > bounds[1]):
                right = f"it must lie between {self.lo} and {self.hi}"
                raise BadValue(i, f"'{cell}' is outside the column's bounds", right)
        span = (min(a for a, _ in spans), max(b for _, b in spans)) if spans else (0, 0)
        return self._shares(cells, self.bounds or span)

    def _shares(self, cells: Sequence[str], span: tuple[int, int]) -> Losses:
        counts = np.zeros(len(cells), dtype=np.int64)
        for i, cell in enumerate(cells):
            if found := _start(cell):
                first, last = _finest_units(found[1], found[0], self.finest)
                counts[i] = max(min(last, span[1]) - max(first, span[0]) + 1, 0)
        return leaf_losses(counts, span[1] - span[0] + 1, [cell == STAR for cell in cells])

    def published(self, cells: Sequence[str], sensitive: bool = False) -> Kind:
        """As declared: without bounds the written cells are the calendar over which the loss is measured."""
        return self

    def spec(self) -> dict[str, Any]:
        """Parameters as a recipe writes them."""
        return {name: list(value) if name == "levels" else value for name, value in spec(self).items()}


_EXAMPLE = Day(2024, 3, 17)


def _checked_levels(levels: Sequence[str]) -> tuple[str, ...]:
    right = f"levels go from fine to coarse, out of: {', '.join(LEVELS)}"
    if not isinstance(levels, list | tuple):
        raise BadInput(f"date has levels={levels!r}", right=right)
    chosen = tuple(levels)
    for level in chosen:
        if level not in LEVELS:
            raise BadInput(f"date has no level '{level}'", right=right)
    places = [LEVELS.index(level) for level in chosen]
    if not places or places != sorted(set(places)):
        raise BadInput(f"date has levels {list(chosen)}", right=right)
    return chosen


def _checked_bound(name: str, value: object) -> str:
    text = value.isoformat() if isinstance(value, Day) and not isinstance(value, datetime) else str(value)
    found = _start(text)
    if found is None or found[0] != "day":
        raise BadInput(f"date has {name}={text}, which is not a day", right=f"write it as {_EXAMPLE}")
    return text


def _iso_texts(values: Values) -> list[str]:
    """Dates as ISO text; a time of day is refused, because cutting it off would be a silent change."""
    if values.dtype.kind == "M":
        days = values.astype("datetime64[D]")
        for i in np.flatnonzero(days != values):
            right = "cut the time of day off, or declare it as missing"
            raise BadValue(int(i), f"'{values[i]}' is not a day alone", right)
        return [str(day) for day in days]
    return texts_of(values)


def date(levels: Sequence[str] | None = None, lo: str | None = None, hi: str | None = None) -> Date:
    """A column of dates.

    >>> date(["month", "year"])
    Date(levels=('month', 'year'), lo=None, hi=None)
    """
    return Date(LEVELS if levels is None else levels, lo, hi)  # type: ignore[arg-type]  # made a tuple there


__all__ = ["LEVELS", "Date", "date"]

"""`Date`: days (or hours, minutes, seconds) under months, quarters, years and decades. Leaves are the dates that occur.

The loss of a node is the share of the calendar that it covers, in units of the finest level: with days, "2024-03" is 31 of
all between the bounds (variant B: 30 of one less). A recipient therefore computes the same loss from the written cells,
whichever dates occur. Cells are written as ISO labels, whatever the format of the raw dates (`date_texts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date as Day
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from closeknit.core.date_texts import EXAMPLE, ISO, LEVELS, Moment, is_day, read_dates, read_label, reader
from closeknit.core.domain import Domain, Values
from closeknit.core.duration_texts import UNITS
from closeknit.core.errors import BadInput, BadValue, suggest_name
from closeknit.core.kinds import Kind, Losses, bind_tree, leaf_losses, texts_of
from closeknit.core.limits import MOST_NODES, check_count
from closeknit.core.params import choice, spec, whole
from closeknit.core.tree import STAR, Tree
from closeknit.kernels.arrays import Int32

MOST_SHIFT = 36_500  # days
DAY_LEVELS = LEVELS[LEVELS.index("day") :]
OLDEST = 90  # years; from here on an age is one value in a release under HIPAA Safe Harbor
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}  # months in one unit of the level


def _unit(moment: datetime, level: str) -> int:
    """Number of the unit of this level that holds the moment, counted from the beginning of the calendar."""
    if level in UNITS:
        time = 3600 * moment.hour + 60 * moment.minute + moment.second
        return (UNITS["day"] * moment.toordinal() + time) // UNITS[level]
    return (12 * moment.year + moment.month - 1) // _MONTHS[level]


def _label(unit: int, level: str) -> str:
    if level in UNITS:
        return _start(unit, level).isoformat()[: {"second": 19, "minute": 16, "hour": 13, "day": 10}[level]]
    year, month = divmod(unit * _MONTHS[level], 12)
    names = {"month": f"-{month + 1:02}", "quarter": f"-Q{month // 3 + 1}", "year": "", "decade": "s"}
    return f"{year:04}{names[level]}"


def _start(unit: int, level: str) -> datetime:
    """First moment of the unit, clipped to the calendar."""
    if level in UNITS:
        days, seconds = divmod(unit * UNITS[level], UNITS["day"])
        if days > Day.max.toordinal():
            return datetime.max
        return datetime.fromordinal(days) + timedelta(seconds=seconds)
    year, month = divmod(unit * _MONTHS[level], 12)
    return datetime.min if year < 1 else datetime.max if year > 9999 else datetime(year, month + 1, 1)


def _finest_units(moment: datetime, level: str, finest: str) -> tuple[int, int]:
    """First and last unit of the finest level inside the unit of `level` that holds the moment."""
    unit = _unit(moment, level)
    first = _unit(_start(unit, level), finest)
    if LEVELS.index(level) <= LEVELS.index(finest):
        return first, first
    after = _start(unit + 1, level)
    return first, _unit(after, finest) - (after != datetime.max)


@dataclass(frozen=True, repr=False)
class Date(Kind):
    """A column of dates.

    Args:
        levels: levels from the finest to the coarsest; finer parts of a value are cut off.
        lo: first day that may occur, in ISO form.
        hi: last day that may occur.
        format: format of the raw dates ("%d.%m.%Y", or "iso"); detected from all values of the column if None.
        level: short for `levels` from this one to the coarsest; None once they are set.
        shift: dates are shifted by up to so many days, the same for all dates of a person in columns of equal `shift`.
        reference: for years of birth, a day: people who may be 90 or older on it have one value, written as `<=1934`.

    >>> domain, codes = Date().bind(np.array(["2024-03-17", "2024-01-02", "2031-05-01"], dtype=object))
    >>> codes.tolist(), domain.labels(np.array([0, 0, 1]), np.array([0, 1, 2]))
    ([1, 0, 2], ['2024-01-02', '2024-Q1', '*'])
    >>> year = Date(lo="2024-01-01", hi="2024-12-31")
    >>> year.losses(["2024-01-02", "2024-Q1", "2024", "*", ""])[:, 0].round(3).tolist()
    [0.0, 0.249, 1.0, 1.0, 0.0]
    >>> Date(level="year", reference="2024-12-31").bind(np.array(["1930-05-01", "1935-01-01"], dtype=object))[0].texts
    ('<=1934', '1935')
    """

    name: ClassVar[str] = "date"
    default_distance: ClassVar[str] = "ordered"
    levels: tuple[str, ...] = DAY_LEVELS
    lo: str | None = None
    hi: str | None = None
    format: str | None = None
    level: str | None = None
    shift: int | None = None
    reference: str | None = None

    def __post_init__(self) -> None:
        if self.shift is not None:
            whole("shift", self.shift, least=1, most=MOST_SHIFT)
            if self.lo is not None or self.hi is not None:
                raise BadInput("date has a shift and bounds", right="leave the bounds out: a shifted date may be outside them")
        if self.level is not None:
            choice("level", self.level, LEVELS)
            if tuple(self.levels) != DAY_LEVELS:
                raise BadInput(f"date has level={self.level} and levels", right="give one of them")
            object.__setattr__(self, "levels", LEVELS[LEVELS.index(self.level) :])
            object.__setattr__(self, "level", None)
        object.__setattr__(self, "levels", _check_levels(self.levels))
        for name in ("lo", "hi", "reference"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _check_bound(name, getattr(self, name)))
        if self.reference is not None and self.finest != "year":
            raise BadInput(f"date has a reference and the level {self.finest}", right="write level: year")
        if (self.lo is None) != (self.hi is None):
            raise BadInput("date needs both bounds or none", right="give lo and hi")
        if self.lo is not None and self.hi is not None and not self.lo <= self.hi:
            raise BadInput(f"date has lo={self.lo} and hi={self.hi}", right="lo must not be after hi")
        if self.format is not None:
            if not isinstance(self.format, str):
                raise BadInput(f"date has format={self.format!r}", right='write a text, such as "%d.%m.%Y"')
            reader(self.format)

    @property
    def finest(self) -> str:
        """The level of the leaves."""
        return self.levels[0]

    @property
    def last_hidden(self) -> int | None:
        """The last year of birth of people who may be 90 or older on the reference day."""
        return None if self.reference is None else int(self.reference[:4]) - OLDEST

    @property
    def hidden_text(self) -> str | None:
        """The written cell of those people."""
        return None if self.last_hidden is None else f"<={self.last_hidden}"

    @property
    def bounds(self) -> tuple[int, int] | None:
        """First and last unit of the finest level inside the declared bounds, if any."""
        if self.lo is None or self.hi is None:
            return None
        low, high = datetime.fromisoformat(self.lo), datetime.fromisoformat(self.hi)
        return _unit(low, self.finest), _finest_units(high, "day", self.finest)[1]

    def between_bounds(self) -> Values:
        """Every value that the declared bounds allow, as fine as the finest level needs."""
        unit = {"hour": "h", "minute": "m", "second": "s"}.get(self.finest, "D")
        low, high = self.bounds or (0, 0)
        check_count(f"{self.name} from {self.lo} to {self.hi} has {{}} {self.finest}s", high - low + 1, MOST_NODES)
        return np.arange(np.datetime64(self.lo), np.datetime64(self.hi) + 1, dtype=f"datetime64[{unit}]")

    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """Leaves are the dates that occur, cut to the finest level; their numbers count its units (days, months...).

        The loss of a node counts its units between the declared bounds, or else between the first and the last date.
        """
        units = self._units(values)
        if not units:
            return bind_tree(Tree.of({"none": None}), [], np.zeros(1))
        leaves, codes = np.unique(np.array(units, dtype=np.int64), return_inverse=True)
        return _bind_units(self, tuple(leaves.tolist())), codes.astype(np.int32)

    def bind_units(self, units: Sequence[int]) -> Domain:
        """The domain whose leaves are these units of the finest level.

        Args:
            units: numbers of the units, ascending.
        """
        tree = Tree.of({STAR: self._nest_units([_start(unit, self.finest) for unit in units])})
        return Domain(
            tuple(tree.leaf_labels),
            tree,
            np.array(units, dtype=np.float64),
            None if self.bounds is None else (float(self.bounds[0]), float(self.bounds[1])),
            node_loss=self._shares(tree.labels, self.bounds or (units[0], units[-1]))[:, 0],
            default_distance=self.default_distance,
        )

    def _nest_units(self, starts: Sequence[datetime]) -> dict[str, Any]:
        nested: dict[str, Any] = {}
        for start in starts:
            if self.hidden_text is not None and start.year == self.last_hidden:
                nested[self.hidden_text] = None
                continue
            place = nested
            for level in self.levels[:0:-1]:
                place = place.setdefault(_label(_unit(start, level), level), {})
            place[_label(_unit(start, self.finest), self.finest)] = None
        return nested

    def _units(self, values: Values) -> list[int]:
        typed = values.dtype.kind == "M"
        if typed and LEVELS.index(self.finest) < LEVELS.index("day"):
            values = values.astype("datetime64[s]")  # all at midnight: a frame's times of day would be text
        texts = np.datetime_as_string(values).tolist() if typed else texts_of(values)  # type: ignore[arg-type]
        units = []
        last = self.last_hidden
        texts = [str(last) if text == self.hidden_text else text for text in texts]  # of a release
        for i, moment in enumerate(read_dates(texts, ISO if typed else self.format)):
            if not self._fits(moment[0]):
                fine = {level for level in ("day", self.finest) if self._fits(level)}
                examples = " or ".join(sorted(_label(_unit(EXAMPLE, level), level) for level in fine))
                right = f"write it as {examples}, or list it under missing"
                raise BadValue(i, f"'{texts[i]}' is not as fine as the level {self.finest}", right)
            units.append(_unit(moment[1], self.finest))
            if (bounds := self.bounds) and not bounds[0] <= units[-1] <= bounds[1]:
                right = f"it must lie between {self.lo} and {self.hi}"
                raise BadValue(i, f"'{texts[i]}' is outside the column's bounds", right)
        return units if last is None else [max(unit, last) for unit in units]

    def _fits(self, level: str) -> bool:
        """Whether a raw value of this level belongs to one unit of the finest level."""
        return level == self.finest or (level in UNITS and LEVELS.index(level) <= LEVELS.index(self.finest))

    def notes(self, name: str) -> list[str]:
        """That dates were shifted, from which no guarantee follows; and the years of birth that are one value."""
        notes = []
        if self.shift is not None:
            notes.append(f"dates were shifted by up to {self.shift} days, all dates of a person alike; no guarantee")
        if self.reference is not None:
            notes.append(f"people who may be {OLDEST} or older on {self.reference} have one value, {self.hidden_text}")
        return [f"column '{name}': {note}" for note in notes]

    def units_below(self, label: str) -> tuple[int, int] | None:
        """First and last unit of the finest level below a written label; None for `*` without declared bounds.

        Args:
            label: a written cell.

        >>> [Date().unit_label(unit) for unit in Date().units_below("2024-02")]
        ['2024-02-01', '2024-02-29']
        """
        found, bounds = self._read_cell(label), self.bounds
        if found is None:
            return bounds
        first, last = _finest_units(found[1], found[0], self.finest)
        return (first, last) if bounds is None else (max(first, bounds[0]), min(last, bounds[1]))

    def unit_label(self, unit: int) -> str:
        """The label of a unit of the finest level.

        Args:
            unit: its number.
        """
        if self.hidden_text is not None and unit <= int(self.hidden_text[2:]):
            return self.hidden_text
        return _label(unit, self.finest)

    @property
    def has_fixed_losses(self) -> bool:
        return self.bounds is not None

    def losses(self, cells: Sequence[str]) -> Losses:
        """Units under the node over all units between the declared bounds, or else those of the written cells."""
        spans = []
        for i, cell in enumerate(cells):
            if cell in (STAR, ""):
                continue
            found = self._read_cell(cell)
            if found is None:
                raise BadValue(i, f"'{cell}' is neither a date nor a span of dates", f"write a {', '.join(DAY_LEVELS)} or '*'")
            spans.append(_finest_units(found[1], found[0], self.finest))
            if (bounds := self.bounds) and (spans[-1][1] < bounds[0] or spans[-1][0] > bounds[1]):
                raise BadValue(i, f"'{cell}' is outside the column's bounds", f"it must lie between {self.lo} and {self.hi}")
        span = (min(a for a, _ in spans), max(b for _, b in spans)) if spans else (0, 0)
        return self._shares(cells, self.bounds or span)

    def _shares(self, cells: Sequence[str], span: tuple[int, int]) -> Losses:
        counts = np.zeros(len(cells), dtype=np.int64)
        for i, cell in enumerate(cells):
            if found := self._read_cell(cell):
                first, last = _finest_units(found[1], found[0], self.finest)
                first = span[0] if cell == self.hidden_text else first
                counts[i] = max(min(last, span[1]) - max(first, span[0]) + 1, 0)
        return leaf_losses(counts, span[1] - span[0] + 1, [cell == STAR for cell in cells])

    def _read_cell(self, cell: str) -> Moment | None:
        return read_label(str(self.last_hidden) if cell == self.hidden_text else cell)

    def publish_kind(self, cells: Sequence[str], sensitive: bool = False) -> Kind:
        """As declared, without the format of the raw dates."""
        return without_format(self)

    def spec(self) -> dict[str, Any]:
        """Parameters as a recipe writes them."""
        return {name: list(value) if name == "levels" else value for name, value in spec(self).items()}


@lru_cache(maxsize=8)
def _bind_units(kind: Date, units: tuple[int, ...]) -> Domain:
    """The same column is bound by the method, by each measure and by each attack."""
    return kind.bind_units(units)


def _check_levels(levels: Sequence[str]) -> tuple[str, ...]:
    right = f"levels go from fine to coarse, out of: {', '.join(LEVELS)}"
    if not isinstance(levels, list | tuple):
        raise BadInput(f"date has levels={levels!r}", right=right)
    chosen = tuple(levels)
    for level in chosen:
        if level not in LEVELS:
            raise BadInput(f"date has no level '{level}'", right=suggest_name(level, LEVELS))
    places = [LEVELS.index(level) for level in chosen]
    if not places or places != sorted(set(places)):
        raise BadInput(f"date has levels {list(chosen)}", right=right)
    return chosen


def _check_bound(name: str, value: object) -> str:
    text = value.isoformat() if isinstance(value, Day) and not isinstance(value, datetime) else str(value)
    if not is_day(text):
        raise BadInput(f"date has {name}={text}, which is not a day", right=f"write it as {EXAMPLE.date()}")
    return text


def date(
    levels: Sequence[str] | None = None,
    lo: str | None = None,
    hi: str | None = None,
    format: str | None = None,
    level: str | None = None,
    shift: int | None = None,
    reference: str | None = None,
) -> Date:
    """A column of dates.

    Args:
        levels: from the finest to the coarsest, out of second, minute, hour, day, month, quarter, year and decade; days and all
            coarser ones if left out. Finer parts of a value are cut off.
        lo: first day that may occur, in ISO form; the loss is measured between `lo` and `hi`.
        hi: last day that may occur.
        format: format of the raw dates, such as "%d.%m.%Y" or "iso"; detected from all values if left out.
        level: short for all levels from this one on: `level="year"` publishes no month and no day.
        shift: dates are shifted by up to so many days before anything else, the same for all dates of a person in columns of
            equal `shift`.
        reference: for years of birth, a day: people who may be 90 or older on it have one value, written as `<=1934`.

    >>> date(["month", "year"], format="%d.%m.%Y")
    Date(levels=('month', 'year'), format='%d.%m.%Y')
    >>> date(level="year").bind(np.array(["2024-03-17"], dtype=object))[0].texts
    ('2024',)
    """
    return Date(DAY_LEVELS if levels is None else levels, lo, hi, format, level, shift, reference)  # type: ignore[arg-type]


def without_format(kind: Kind) -> Kind:
    """The kind of the same column in a release: dates in ISO form, whatever the format of the raw dates.

    >>> without_format(date(format="%d.%m.%Y")) == date()
    True
    """
    return replace(kind, format=None) if isinstance(kind, Date) else kind


def with_format(kind: Kind) -> Kind:
    """The kind of a column whose values arrive one by one: a format cannot be detected, so dates are ISO unless declared.

    >>> with_format(date()).format
    'iso'
    """
    return replace(kind, format=ISO) if isinstance(kind, Date) and kind.format is None else kind


def date_of_labels(labels: Sequence[str]) -> Date:
    """The kind whose finest level is that of the finest of these written labels, at most days.

    >>> date_of_labels(["2024-03", "2024-03-17T13"]).finest
    'hour'
    """
    found = [moment for label in labels if (moment := read_label(label))]
    finest = min((LEVELS.index(level) for level, _ in found), default=len(LEVELS))
    return Date(LEVELS[min(finest, LEVELS.index("day")) :])


__all__ = ["DAY_LEVELS", "LEVELS", "Date", "date", "date_of_labels", "with_format", "without_format"]

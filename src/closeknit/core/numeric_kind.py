"""Numbers: a column that is written as ranges, with codes at its ends, a grid, or bins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import LOOKS_WRITTEN, NUMBER_TEXT, Domain, Values, read_ranges
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.exact import plain_number
from closeknit.core.kind import Kind, Losses
from closeknit.core.limits import MOST_INTERVALS, MOST_STEPS, check_count
from closeknit.core.number_coding import NumberCoding
from closeknit.core.params import choice, number, whole
from closeknit.core.tree import STAR
from closeknit.kernels.arrays import Int32

SEPARATED_DIGITS = re.compile(r"[+-]?\d[\d.,'\u2019 \u00a0\u202f]*\d")
MOST = 1e300  # beyond it the width of a column overflows


def numbers_of(values: Values) -> NDArray[np.float64]:
    """Raw values as numbers; a value that is no number is refused."""
    if values.dtype.kind in "iufb":
        return values.astype(np.float64)
    texts = [str(value) for value in values.tolist()]
    for i, text in enumerate(texts):
        if LOOKS_WRITTEN.fullmatch(text):
            raise BadValue(i, f"'{text}' looks like a written range or '*'", "give the raw number, or list it under missing")
        if not NUMBER_TEXT.fullmatch(text):
            grouped = SEPARATED_DIGITS.fullmatch(text) is not None
            right = "name the file's decimal sign and thousands separator" if grouped else "correct it, list it under missing"
            raise BadValue(i, f"'{text}' is not a number", f"{right}, or make the column flat")
    return np.array([float(text) for text in texts], dtype=np.float64)


def _range_losses(cells: Sequence[str], bounds: tuple[float, float] | None) -> Losses:
    lo, hi = read_ranges(cells)
    known = ~np.isnan(lo)
    ends = np.concatenate([lo, hi])
    ends = ends[np.isfinite(ends)]
    low, high = bounds or ((float(ends.min()), float(ends.max())) if len(ends) else (0.0, 0.0))
    lo, hi = np.where(np.isneginf(lo), low, lo), np.where(np.isposinf(hi), high, hi)  # a code ends where the column ends
    for i in np.flatnonzero((lo < low) | (hi > high)).tolist():
        between = f"it must lie between {plain_number(low)} and {plain_number(high)}"
        raise BadValue(i, f"'{cells[i]}' is outside the column's bounds", between)
    width = (hi - lo) / (high - low) if high > low else hi - lo
    loss = np.where(known, width, [float(cell == STAR) for cell in cells])
    return np.stack([loss, loss], axis=1)


@dataclass(frozen=True, repr=False)
class Numeric(Kind):
    """A column of numbers, written as ranges.

    Args:
        lo: the least number that may occur.
        hi: the largest number that may occur.
        step: ranges of decimals end at its multiples, those of whole numbers only with `snap`.
        bins: number of equally wide intervals from `lo` to `hi`, including empty ones, as leaves.
        snap: whether ranges of whole numbers end at multiples of `step`, too.
        top: numbers from here on are one value, written as `90+`.
        bottom: numbers up to here are one value, written as `<=18`.
        coarsen: whether numbers are replaced by their cell of the step's grid before a method sees them.
        swap: numbers are exchanged with others at most so many percent of all ranks away; no guarantee follows.

    >>> domain, codes = Numeric().bind(np.array([41, 30]))
    >>> codes.tolist(), domain.labels(np.array([0]), np.array([1]))
    ([1, 0], ['[30, 41]'])
    >>> Numeric(top=90).bind(np.array([89, 90, 91]))[0].texts, Numeric(step=5, coarsen=True).bind(np.array([21, 24]))[0].texts
    (('89', '90+'), ('[20, 25]',))
    """

    name: ClassVar[str] = "numeric"
    default_distance: ClassVar[str] = "ordered"
    lo: float | None = None
    hi: float | None = None
    step: float | None = None
    bins: int | None = None
    snap: bool = False
    top: float | None = None
    bottom: float | None = None
    coarsen: bool = False
    swap: float | None = None

    def __post_init__(self) -> None:
        if self.swap is not None:
            number("swap", self.swap, least=0.1, most=50)
        for name in ("lo", "hi", "top", "bottom"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name), least=-MOST, most=MOST)
        if (self.lo is None) != (self.hi is None):
            raise BadInput("numeric needs both bounds or none", right="give lo and hi")
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise BadInput(f"numeric has lo={self.lo} and hi={self.hi}", right="lo must be below hi")
        self._check_steps(*(self.bounds or (0.0, 0.0)))
        choice("snap", self.snap, (True, False))
        choice("coarsen", self.coarsen, (True, False))
        self._check_codes()
        if self.bins is not None:
            whole("bins", self.bins, least=1, most=MOST_INTERVALS)
            if self.lo is None:
                raise BadInput("numeric with bins needs its bounds", right="give lo and hi")

    def _check_codes(self) -> None:
        if self.coarsen and self.step is None:
            raise BadInput("numeric with coarsen needs its step", right="give step: numeric(step=5, coarsen=True)")
        if self.coarsen:  # a cell of the grid has both ends
            object.__setattr__(self, "snap", True)
        if self.bins is not None and self.coding.changes:
            raise BadInput("numeric has bins and codes", right="leave bins out, or top, bottom and coarsen")
        low, high = self.bounds or (-MOST, MOST)
        ends = [low, *(float(number("end", end)) for end in (self.bottom, self.top) if end is not None), high]
        if ends != sorted(ends) or (self.bottom is not None and self.bottom == self.top):
            what = f"numeric has lo={self.lo}, bottom={self.bottom}, top={self.top} and hi={self.hi}"
            raise BadInput(what, right="they must ascend, with bottom below top")

    @property
    def coding(self) -> NumberCoding:
        """How numbers are coded before a method sees them."""
        ends = (None if end is None else float(number("end", end)) for end in (self.top, self.bottom, self.step))
        top, bottom, step = ends
        return NumberCoding(top, bottom, step if self.coarsen else None, self.bounds)

    def without_coding(self) -> Numeric:
        """The kind of the raw numbers: without bins and codes."""
        return replace(self, bins=None, top=None, bottom=None, coarsen=False, swap=None)

    def notes(self, name: str) -> list[str]:
        """Codes of the column, and the grid."""
        notes = [] if self.top is None else [f"numbers of {plain_number(self.top)} or more are one value"]
        notes += [] if self.bottom is None else [f"numbers of {plain_number(self.bottom)} or less are one value"]
        if self.coarsen and self.step is not None:
            notes.append(f"numbers were replaced by cells of width {plain_number(self.step)} before anything else")
        if self.swap is not None:
            near = f"numbers were exchanged with others of at most {plain_number(self.swap)} % distance in rank"
            notes.append(f"{near}; rows do not have their true numbers, and no guarantee follows from it")
        return [f"column '{name}': {note}" for note in notes]

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Declared bounds, if any."""
        if self.lo is None or self.hi is None:
            return None
        return float(number("lo", self.lo)), float(number("hi", self.hi))

    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """Leaves are the distinct numbers (or the bins), ascending."""
        if self.bins is not None:
            return self._bind_bins(values)
        coding = self.coding
        numbers = numbers_of(coding.read_written(values))
        self._check_bounds(numbers, values)
        leaves, codes = np.unique(coding.code(numbers) if coding.changes else numbers, return_inverse=True)
        self._check_steps(*leaves[[0, -1]].tolist() if len(leaves) else (0.0, 0.0))
        return self.bind_numbers(leaves), codes.astype(np.int32)

    def bind_numbers(self, leaves: NDArray[np.float64]) -> Domain:
        """The domain of these leaves.

        Args:
            leaves: coded numbers, ascending.
        """
        coding, step = self.coding, None if self.step is None else float(number("step", self.step))
        texts = tuple(coding.texts.get(leaf) or plain_number(leaf) for leaf in leaves.tolist())
        domain = Domain(
            texts, None, leaves, self.bounds, step, self.snap, top=coding.top, bottom=coding.bottom, coarse=self.coarsen
        )
        if not self.coarsen:
            return domain
        places = np.arange(len(leaves), dtype=np.int32)
        return replace(domain, texts=tuple(domain.labels(places, places)))

    def read_numbers(self, values: Values) -> Values:
        """Raw values as numbers, or as texts of numbers; here they are."""
        return values

    def _check_steps(self, low: float, high: float) -> None:
        if self.step is not None:
            steps = (number("hi", high) - number("lo", low)) / number("step", self.step, above=0)
            check_count(f"step={self.step} makes {{}} steps", steps, MOST_STEPS)

    def _check_bounds(self, numbers: NDArray[np.float64], values: Values) -> None:
        low, high = self.bounds or (-MOST, MOST)
        outside = ~((numbers >= low) & (numbers <= high))
        if outside.any():
            i = int(np.argmax(outside))
            inside = f"it must lie between {plain_number(low)} and {plain_number(high)}"
            raise BadValue(i, f"{values[i]} is outside the column's bounds", inside)

    def _bind_bins(self, values: Values) -> tuple[Domain, Int32]:
        assert self.lo is not None and self.hi is not None and self.bins is not None
        low, high = number("lo", self.lo), number("hi", self.hi)  # exact: a value on an edge belongs to the upper bin
        edges = [float(low + (high - low) * i / self.bins) for i in range(self.bins + 1)]
        ends = tuple(pairwise([plain_number(round(edge, 12)) for edge in edges]))
        if any(a == b for a, b in ends):
            raise BadInput(f"numeric has {self.bins} bins, too narrow to be distinguished", right="choose fewer bins")
        texts = [f"[{a}, {b}]" for a, b in ends]
        written = {text: i for i, text in enumerate(texts)}
        given = [str(value) for value in values.tolist()] if values.dtype.kind == "O" else []
        middles = (np.array(edges[:-1]) + np.array(edges[1:])) / 2
        domain = Domain(tuple(texts), None, middles, self.bounds, declared=True, ends=ends)
        if given and all(text in written for text in given):  # a written release of this column
            return domain, np.array([written[text] for text in given], dtype=np.int32)
        numbers = numbers_of(values)
        self._check_bounds(numbers, values)
        codes = np.searchsorted(np.array(edges), numbers, side="right") - 1
        return domain, np.clip(codes, 0, self.bins - 1).astype(np.int32)

    @property
    def has_fixed_losses(self) -> bool:
        return self.bounds is not None

    def losses(self, cells: Sequence[str]) -> Losses:
        """Width of the range over the declared bounds, or else over those of the written cells."""
        return _range_losses(cells, self.bounds)


def numeric(
    lo: float | None = None,
    hi: float | None = None,
    step: float | None = None,
    bins: int | None = None,
    snap: bool = False,
    *,
    top: float | None = None,
    bottom: float | None = None,
    coarsen: bool = False,
    swap: float | None = None,
) -> Numeric:
    """A column of numbers.

    Args:
        lo: the least number that may occur; the loss is measured between `lo` and `hi`.
        hi: the largest number that may occur.
        step: ranges of decimals end at its multiples; proposed from the data if left out.
        bins: number of equally wide intervals from `lo` to `hi` as leaves.
        snap: whether ranges of whole numbers end at multiples of `step`, too.
        top: numbers from here on are one value, written as `90+`.
        bottom: numbers up to here are one value, written as `<=18`.
        coarsen: whether numbers are replaced by their cell of the step's grid before a method sees them.
        swap: rank swapping: numbers are exchanged with others at most so many percent of all ranks away.

    >>> numeric(0, 120, step=5, top=90)
    Numeric(lo=0, hi=120, step=5, top=90)
    """
    return Numeric(lo, hi, step, bins, snap, top, bottom, coarsen, swap)

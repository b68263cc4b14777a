"""Coded numbers: top and bottom codes, and cells of a grid, applied before a method sees a column.

`90+` stands for every number from 90, `<=18` for every number up to 18, `[20, 25]` for every number of a cell of the grid.
Two raw numbers with the same code cannot be distinguished by anything that follows. No code gives a guarantee by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from closeknit.core.domain import RANGE_TEXT, Values, bottom_text, inner_bounds, top_text
from closeknit.kernels.arrays import Reals

CLOSE = 1e-6  # a quotient this near to a whole number is divided exactly


@dataclass(frozen=True)
class NumberCoding:
    """How the numbers of a column are coded.

    Args:
        top: every number from here on is one value.
        bottom: every number up to here is one value.
        step: numbers are cells of the grid of its multiples.
        bounds: declared bounds of the numbers.

    >>> NumberCoding(top=90.0).code(np.array([89.0, 90.0, 91.0])).tolist()
    [89.0, 90.0, 90.0]
    >>> NumberCoding(step=0.1, bounds=(0.0, 0.5)).code(np.array([0.3, 0.38, 0.5])).tolist()
    [0.35, 0.35, 0.45]
    """

    top: float | None = None
    bottom: float | None = None
    step: float | None = None
    bounds: tuple[float, float] | None = None

    @property
    def changes(self) -> bool:
        """Whether any number is coded."""
        return (self.top, self.bottom, self.step) != (None, None, None)

    @property
    def texts(self) -> dict[float, str]:
        """The written cell of each code."""
        top = {} if self.top is None else {self.top: top_text(self.top)}
        return top | ({} if self.bottom is None else {self.bottom: bottom_text(self.bottom)})

    def code(self, numbers: Reals) -> Reals:
        """The number that represents each number: the code itself, or the middle of its cell.

        Args:
            numbers: raw numbers, inside the bounds.
        """
        coded = numbers if self.step is None else self._middles(numbers)
        if self.top is not None:
            coded = np.where(numbers >= self.top, self.top, coded)
        if self.bottom is not None:
            coded = np.where(numbers <= self.bottom, self.bottom, coded)
        return coded

    def read_written(self, values: Values) -> Values:
        """Values with written codes replaced by numbers: a release, or a table that was coded before.

        Args:
            values: distinct raw or written values.

        >>> NumberCoding(top=90.0, step=5.0).read_written(np.array(["90+", "[20, 25]", "7"], dtype=object)).tolist()
        [90.0, 22.5, '7']
        """
        if values.dtype.kind != "O" or not self.changes:
            return values
        codes = {text: number for number, text in self.texts.items()}
        return np.array([self._read(value, codes) for value in values.tolist()], dtype=object)

    def _read(self, value: object, codes: dict[str, float]) -> object:
        text = str(value)
        if text in codes:
            return codes[text]
        if self.step is not None and (match := RANGE_TEXT.fullmatch(text)):
            middle = (Fraction(match[1]) + Fraction(match[2])) / 2
            if self._cell(self._index(middle)) == (Fraction(match[1]), Fraction(match[2])):
                return float(middle)
        return value

    def _index(self, number: Fraction) -> int:
        return math.floor(number / Fraction(str(self.step)))

    def _cell(self, index: int) -> tuple[Fraction, Fraction]:
        """Both ends of a cell of the grid, inside the codes and bounds."""
        step = Fraction(str(self.step))
        low, high = index * step, (index + 1) * step
        if (inner := inner_bounds(self.bounds, self.bottom, self.top)) is None:
            return low, high
        return max(low, Fraction(str(inner[0]))), min(high, Fraction(str(inner[1])))

    def _middles(self, numbers: Reals) -> Reals:
        """The middle of each number's cell; a number at the upper bound belongs to the cell below, as in `snap_range`."""
        assert self.step is not None
        quotient = numbers / self.step
        index = np.floor(quotient)
        near = np.abs(quotient - np.round(quotient)) < CLOSE * np.maximum(np.abs(quotient), 1)
        for i in np.flatnonzero(near).tolist():
            index[i] = self._index(Fraction(str(float(numbers[i]))))
        if self.bounds is not None:
            index = np.minimum(index, math.ceil(Fraction(str(self.bounds[1])) / Fraction(str(self.step))) - 1)
        cells, cell_of = np.unique(index, return_inverse=True)
        return np.array([float(sum(self._cell(int(cell))) / 2) for cell in cells.tolist()], dtype=np.float64)[cell_of]

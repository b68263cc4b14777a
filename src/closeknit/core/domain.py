"""`Domain`: what a kind of column becomes once it has met a table: leaf codes, and the written label of every range of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.exact import plain_number
from closeknit.core.tree import STAR, Int32, Tree

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
NUMBER_TEXT = re.compile(rf"\s*{NUMBER}\s*")
RANGE_TEXT = re.compile(rf"\s*[\[(]\s*({NUMBER})\s*[,;]\s*({NUMBER})\s*[\])\[]\s*")
LOOKS_WRITTEN = re.compile(r"\s*(\*|[\[(].*[,;].*[\])\[])\s*")

Values = NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class Domain:
    """The leaves of one column. Code `size` is the missing leaf.

    Without a tree every range of codes may be written (numbers); with one, ranges are widened to their lowest node.
    `numbers` holds the ascending value of each leaf where distance between leaves has a meaning.
    """

    texts: tuple[str, ...]
    tree: Tree | None = None
    numbers: NDArray[np.float64] | None = None
    bounds: tuple[float, float] | None = None  # declared; else the outermost numbers
    step: float | None = None
    node_loss: NDArray[np.float64] | None = None  # variant A, where leaves do not all weigh the same (dates)
    default_distance: str | None = None  # of t-closeness, where the kind says more than the leaves do (dates)
    declared: bool = False  # leaves were declared: those that nobody has count in an ordered distance all the same
    ends: tuple[tuple[str, str], ...] | None = None  # both ends of each leaf, where a leaf is a range itself (bins)

    @property
    def size(self) -> int:
        """Number of leaves, the missing one not counted."""
        return len(self.texts)

    @property
    def ordered(self) -> bool:
        """Whether the order of the leaves carries a distance."""
        return self.numbers is not None

    def labels(self, lo: Int32, hi: Int32, snap: bool = False) -> list[str]:
        """The written cell of each range: one value as itself, a range or node by its name, missing as '', a mix as `*`."""
        if self.tree is not None:
            names = self.tree.labels
            return [names[node] for node in self.tree.cover(lo, hi)]
        return [self._range(int(a), int(b), snap) for a, b in zip(lo, hi, strict=True)]

    def _range(self, lo: int, hi: int, snap: bool) -> str:
        if hi == self.size:
            return "" if lo == hi else STAR
        if snap and self.step is not None:
            return self._snapped(lo, hi, self.step)
        if lo == hi:
            return self.texts[lo]
        first, last = (self.texts[lo], self.texts[hi]) if self.ends is None else (self.ends[lo][0], self.ends[hi][1])
        return f"[{first}, {last}]"

    def _snapped(self, lo: int, hi: int, step: float) -> str:
        """Bounds on the grid of the step, so that no end of the range says somebody's true value."""
        assert self.numbers is not None
        first, last, grid = (Fraction(str(float(x))) for x in (self.numbers[lo], self.numbers[hi], step))
        if self.bounds is None:
            low, high = math.floor(first / grid) * grid, (math.floor(last / grid) + 1) * grid
        else:  # a value at the upper bound belongs to the cell below: alone it would be a range of one true value
            bottom, top = (Fraction(str(end)) for end in self.bounds)
            cell = min(math.floor(first / grid), math.ceil(top / grid) - 1)
            low, high = max(cell * grid, bottom), min((math.floor(last / grid) + 1) * grid, top)
        return f"[{plain_number(float(low))}, {plain_number(float(high))}]"

    def positions(self) -> NDArray[np.float64]:
        """Each leaf on a line from 0 to 1: numbers by value inside their bounds, other leaves by their order."""
        if self.numbers is None or self.size == 0:
            return np.linspace(0.0, 1.0, self.size) if self.size > 1 else np.zeros(self.size)
        low, high = self.bounds or (float(self.numbers[0]), float(self.numbers[-1]))
        return (self.numbers - low) / (high - low) if high > low else np.zeros(self.size)


def read_ranges(cells: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper end of written numeric cells; `*` and the empty cell give NaN; anything else raises `ValueError`.

    >>> [ends.tolist() for ends in read_ranges(["7", "[1, 2.5]"])]
    [[7.0, 1.0], [7.0, 2.5]]
    """
    lo = np.full(len(cells), np.nan)
    hi = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if cell in (STAR, ""):
            continue
        if match := RANGE_TEXT.fullmatch(cell):
            lo[i], hi[i] = float(match[1]), float(match[2])
        elif NUMBER_TEXT.fullmatch(cell):
            lo[i] = hi[i] = float(cell)
        else:
            raise ValueError(i)
    return lo, hi

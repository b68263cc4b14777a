"""`Domain`: what a kind of column becomes once it has met a table: leaf codes, and the written label of every range of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from closeknit.core.exact import plain_number
from closeknit.core.folding import first_alike
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
    snap: bool = False  # ranges always end at steps
    proposed: bool = False  # the step was read off the data
    node_loss: NDArray[np.float64] | None = None  # variant A, where it is no share of the leaves (dates, prefixes)
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

    @property
    def node_losses(self) -> NDArray[np.float64]:
        """Loss of each node of the tree, variant A: what methods minimize."""
        assert self.tree is not None
        return self.tree.node_loss() if self.node_loss is None else self.node_loss

    @cached_property
    def _first_alike(self) -> Int32 | None:
        # numbers and dates are leaves by value, whatever their spelling
        return first_alike(self.texts) if self.numbers is None else None

    def folding(self, counts: NDArray[np.int64]) -> Int32 | None:
        """For each leaf, the missing one too, the first leaf with rows that looks like it; None where none of these look alike.

        `counts`: the rows of each leaf. Leaves without rows stand for themselves: a spelling that nobody uses moves no value.

        >>> domain = Domain(("Flu", "flu", "flu ", "gout"))
        >>> domain.folding(np.array([0, 2, 1, 3, 0])).tolist(), domain.folding(np.array([0, 2, 0, 3, 0]))
        ([0, 1, 1, 3, 4], None)
        """
        if self._first_alike is None:
            return None
        present = np.flatnonzero(counts[: self.size])
        _, first, group = np.unique(self._first_alike[present], return_index=True, return_inverse=True)
        if len(first) == len(present):
            return None
        leaf_of = np.arange(self.size + 1, dtype=np.int32)
        leaf_of[present] = present[first][group]
        return leaf_of

    def labels(self, lo: Int32, hi: Int32, snap: bool = False) -> list[str]:
        """The written cell of each range: one value as itself, a range or node by its name, missing as '', a mix as `*`."""
        if self.tree is not None:
            names = self.tree.labels
            return [names[node] for node in self.tree.cover(lo, hi)]
        return [self._range(int(a), int(b), snap) for a, b in zip(lo, hi, strict=True)]

    def _range(self, lo: int, hi: int, snap: bool) -> str:
        if hi == self.size:
            return "" if lo == hi else STAR
        if (snap or self.snap) and self.step is not None:
            assert self.numbers is not None
            low, high = snap_range(float(self.numbers[lo]), float(self.numbers[hi]), self.step, self.bounds)
            return f"[{plain_number(low)}, {plain_number(high)}]"
        if lo == hi:
            return self.texts[lo]
        first, last = (self.texts[lo], self.texts[hi]) if self.ends is None else (self.ends[lo][0], self.ends[hi][1])
        return f"[{first}, {last}]"

    def positions(self) -> NDArray[np.float64]:
        """Each leaf on a line from 0 to 1: numbers by value inside their bounds, other leaves by their order."""
        if self.numbers is None or self.size == 0:
            return np.linspace(0.0, 1.0, self.size) if self.size > 1 else np.zeros(self.size)
        low, high = self.bounds or (float(self.numbers[0]), float(self.numbers[-1]))
        return (self.numbers - low) / (high - low) if high > low else np.zeros(self.size)


def snap_range(first: float, last: float, step: float, bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Both ends of a range moved outwards to the grid of the step, so that no end discloses a true value.

    >>> snap_range(0.31, 0.4, 0.1, None), snap_range(7, 10, 5, (0, 10))
    ((0.3, 0.5), (5.0, 10.0))
    """
    lowest, highest, grid = (Fraction(str(x)) for x in (first, last, step))
    if bounds is None:
        low, high = math.floor(lowest / grid) * grid, (math.floor(highest / grid) + 1) * grid
    else:  # a value at the upper bound belongs to the cell below: alone it would be a range of one true value
        bottom, top = (Fraction(str(end)) for end in bounds)
        cell = min(math.floor(lowest / grid), math.ceil(top / grid) - 1)
        low, high = max(cell * grid, bottom), min((math.floor(highest / grid) + 1) * grid, top)
    return float(low), float(high)


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

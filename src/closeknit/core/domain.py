"""`Domain`: a kind of column bound to a table: its leaf codes, and the written label of every range of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from closeknit.core.errors import BadValue
from closeknit.core.exact import plain_number
from closeknit.core.folding import first_alike
from closeknit.core.tree import STAR, Tree
from closeknit.kernels.arrays import Int32, Reals

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
NUMBER_TEXT = re.compile(rf"\s*{NUMBER}\s*")
RANGE_TEXT = re.compile(rf"\s*[\[(]\s*({NUMBER})\s*[,;]\s*({NUMBER})\s*[\])\[]\s*")
OPEN_TEXT = re.compile(rf"\s*(?:({NUMBER})\+|<=\s*({NUMBER}))\s*")  # top and bottom codes, and ranges that include one
LOOKS_WRITTEN = re.compile(r"\s*(\*|[\[(].*[,;].*[\])\[])\s*")

FAR = 1e300  # beyond every number that a column may have

Values = NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class Domain:
    """The leaves of one column. Code `size` is the missing leaf.

    Args:
        texts: the text of each leaf.
        tree: the tree over the leaves: a range is widened to its lowest node. None if every range of codes may be written.
        numbers: the ascending value of each leaf, if the distance between leaves has a meaning.
        bounds: declared bounds of the numbers.
        step: ranges end at multiples of it if `snap` is set.
        snap: whether ranges always end at steps.
        proposed: whether the step is derived from the data.
        node_loss: loss of each node, variant A, if it is not its share of the leaves (dates, prefixes).
        default_distance: ground distance of t-closeness, if the leaves alone do not determine it (dates).
        declared: whether the leaves are declared: then those without rows count in an ordered distance, too.
        ends: both ends of each leaf, if leaves are ranges themselves (bins).
        top: the number from which on all are one leaf.
        bottom: the number up to which all are one leaf.
        coarse: whether leaves are cells of the step's grid, or nodes at a level of a declared tree.
    """

    texts: tuple[str, ...]
    tree: Tree | None = None
    numbers: Reals | None = None
    bounds: tuple[float, float] | None = None
    step: float | None = None
    snap: bool = False
    proposed: bool = False
    node_loss: Reals | None = None
    default_distance: str | None = None
    declared: bool = False
    ends: tuple[tuple[str, str], ...] | None = None
    top: float | None = None
    bottom: float | None = None
    coarse: bool = False

    @property
    def size(self) -> int:
        """Number of leaves, without the missing one."""
        return len(self.texts)

    @property
    def ordered(self) -> bool:
        """Whether the leaves have a distance along their order."""
        return self.numbers is not None

    @property
    def counts_leaves(self) -> bool:
        """Whether a written cell is a run of leaves (a tree, or numbers in bins) and not a range of numbers."""
        return self.tree is not None or self.ends is not None

    @property
    def number_span(self) -> tuple[float, float]:
        """The declared bounds of the numbers, or else the outermost numbers."""
        if self.bounds is not None or self.numbers is None or not self.size:
            return self.bounds or (0.0, 0.0)
        return float(self.numbers[0]), float(self.numbers[-1])

    @property
    def span(self) -> tuple[float, float]:
        """Both ends of the whole domain, as `*` covers it: first and last code if leaves are counted, else numbers.

        >>> Domain(("30", "41"), numbers=np.array([30.0, 41.0])).span, Domain(("f", "m"), ends=(("f", "f"), ("m", "m"))).span
        ((30.0, 41.0), (0.0, 1.0))
        """
        return (0.0, float(max(self.size - 1, 0))) if self.counts_leaves else self.number_span

    @property
    def node_losses(self) -> Reals:
        """Loss of each node of the tree, variant A: what methods minimize."""
        assert self.tree is not None
        return self.tree.node_loss() if self.node_loss is None else self.node_loss

    @cached_property
    def _first_alike(self) -> Int32 | None:
        # numbers and dates are compared by value, whatever their spelling
        return first_alike(self.texts) if self.numbers is None else None

    def folding(self, counts: NDArray[np.int64]) -> Int32 | None:
        """For each leaf, including the missing one, the first leaf with rows that looks like it; None if none look alike.

        Args:
            counts: rows of each leaf; a leaf without rows represents itself, because an unused spelling changes no value.

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
        """The written cell of each range: a value, a range, the name of a node, '' for missing, `*` for a mix."""
        if self.tree is not None:
            names = self.tree.labels
            return [names[node] for node in self.tree.cover(lo, hi)]
        return [self._range(int(a), int(b), snap) for a, b in zip(lo, hi, strict=True)]

    def _range(self, lo: int, hi: int, snap: bool) -> str:
        if hi == self.size:
            return "" if lo == hi else STAR
        from_bottom, to_top = self._is_open(lo, hi)
        if from_bottom and to_top:
            return STAR
        if (snap or self.snap) and self.step is not None:
            assert self.numbers is not None
            inner = inner_bounds(self.bounds, self.bottom, self.top)
            low, high = snap_range(float(self.numbers[lo]), float(self.numbers[hi]), self.step, inner)
            first, last = plain_number(low), plain_number(high)
        elif lo == hi:
            return self.texts[lo]
        else:
            first, last = (self.texts[lo], self.texts[hi]) if self.ends is None else (self.ends[lo][0], self.ends[hi][1])
        if from_bottom or to_top:
            return self.texts[lo] if lo == hi else f"{first}+" if to_top else f"<={last}"
        return f"[{first}, {last}]"

    def _is_open(self, lo: int, hi: int) -> tuple[bool, bool]:
        """Whether a range includes the bottom code, and whether it includes the top code."""
        if self.numbers is None or (self.top is None and self.bottom is None):
            return False, False
        from_bottom = self.bottom is not None and bool(self.numbers[lo] <= self.bottom)
        return from_bottom, self.top is not None and bool(self.numbers[hi] >= self.top)

    def positions(self) -> Reals:
        """Each leaf on a line from 0 to 1: numbers by value inside their span, other leaves by their order."""
        if self.numbers is None:
            return np.linspace(0.0, 1.0, self.size) if self.size > 1 else np.zeros(self.size)
        low, high = self.number_span
        return (self.numbers - low) / (high - low) if high > low else np.zeros(self.size)


def snap_range(first: float, last: float, step: float, bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Move both ends of a range outwards to multiples of the step, so that no end discloses a true value.

    >>> snap_range(0.31, 0.4, 0.1, None), snap_range(7, 10, 5, (0, 10))
    ((0.3, 0.5), (5.0, 10.0))
    """
    lowest, highest, grid = (Fraction(str(x)) for x in (first, last, step))
    if bounds is None:
        low, high = math.floor(lowest / grid) * grid, (math.floor(highest / grid) + 1) * grid
    else:  # a value at the upper bound belongs to the cell below; alone it would be a range of one true value
        bottom, top = (Fraction(str(end)) for end in bounds)
        cell = min(math.floor(lowest / grid), math.ceil(top / grid) - 1)
        low, high = max(cell * grid, bottom), min((math.floor(highest / grid) + 1) * grid, top)
    return float(low), float(high)


def inner_bounds(bounds: tuple[float, float] | None, bottom: float | None, top: float | None) -> tuple[float, float] | None:
    """Between which the cells of a grid are: inside the codes, or else inside the declared bounds.

    >>> inner_bounds((0.0, 120.0), None, 90.0), inner_bounds(None, None, None)
    ((0.0, 90.0), None)
    """
    if top is None and bottom is None:
        return bounds
    low, high = bounds or (-FAR, FAR)
    return (low if bottom is None else bottom), (high if top is None else top)


def top_text(top: float) -> str:
    """The written cell of a top code.

    >>> top_text(90.0), bottom_text(18.0)
    ('90+', '<=18')
    """
    return f"{plain_number(top)}+"


def bottom_text(bottom: float) -> str:
    """The written cell of a bottom code."""
    return f"<={plain_number(bottom)}"


def read_ranges(cells: Sequence[str]) -> tuple[Reals, Reals]:
    """Lower and upper end of written numeric cells; `*` and the empty cell give NaN; anything else raises `BadValue`.

    The open end of a top or bottom code is infinite.

    >>> [ends.tolist() for ends in read_ranges(["7", "[1, 2.5]", "90+"])]
    [[7.0, 1.0, 90.0], [7.0, 2.5, inf]]
    """
    lo = np.full(len(cells), np.nan)
    hi = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if cell in (STAR, ""):
            continue
        if match := RANGE_TEXT.fullmatch(cell):
            lo[i], hi[i] = float(match[1]), float(match[2])
            if lo[i] > hi[i]:
                raise BadValue(i, f"'{cell}' is not a range: its lower end is above its upper end", "write the lower end first")
        elif NUMBER_TEXT.fullmatch(cell):
            lo[i] = hi[i] = float(cell)
        elif match := OPEN_TEXT.fullmatch(cell):
            lo[i], hi[i] = (float(match[1]), math.inf) if match[1] else (-math.inf, float(match[2]))
        else:
            raise BadValue(i, f"'{cell}' is neither a number nor a range", "write a number, a range like [20, 30], or '*'")
    return lo, hi

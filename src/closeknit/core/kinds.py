"""Kinds of column: what is declared about a column before any table is read.

Every kind is a frozen value with a name for recipes. `bind(values)` returns the `Domain` and the leaf code of each distinct
raw value. `losses(cells)` returns the loss of each distinct written cell (variants A and B of the General Loss Metric), from
the written cells alone, so that a recipient computes the same. `publish_kind` returns the kind as a certificate shows it: only
what is declared, and for a tree that is derived from data the nodes that are written.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import LOOKS_WRITTEN, NUMBER_TEXT, Domain, Values, bottom_text, read_ranges, top_text
from closeknit.core.errors import BadInput, BadValue
from closeknit.core.exact import plain_number
from closeknit.core.limits import MOST_INTERVALS, MOST_LENGTH, MOST_STEPS, check_count
from closeknit.core.number_coding import NumberCoding
from closeknit.core.params import choice, number, spec, whole
from closeknit.core.tree import STAR, Int32, Nested, Tree
from closeknit.core.zip_areas import AREA_DIGITS, HIDDEN_AREA, SMALL_2000, check_areas

SEPARATED_DIGITS = re.compile(r"[+-]?\d[\d.,'\u2019 \u00a0\u202f]*\d")
MOST = 1e300  # beyond it the width of a column overflows
Losses = NDArray[np.float64]  # [cells, 2]: variants A and B


class Kind(ABC):
    """Base class of all kinds of column: a frozen dataclass with a name for recipes."""

    name: ClassVar[str]
    default_distance: ClassVar[str] = "equal"  # ground distance of t-closeness if none is given
    from_data: bool = False  # whether a domain that is written out is derived from data
    step: float | None = None  # ranges end at its multiples
    bins: int | None = None  # number of equally wide intervals of a numeric column

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Declared bounds, if any."""
        return None

    @abstractmethod
    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """The domain of distinct values, and the leaf of each.

        Args:
            values: distinct raw values, or written ones of a sensitive attribute.
        """

    def losses(self, cells: Sequence[str]) -> Losses:
        """Loss of each distinct written cell; here a cell is one value (0) or `*` (1).

        Args:
            cells: the distinct written cells.
        """
        loss = np.array([float(cell == STAR) for cell in cells])
        return np.stack([loss, loss], axis=1)

    def publish_kind(self, cells: Sequence[str], sensitive: bool = False) -> Kind:
        """The kind that a certificate shows: as declared, since by default nothing of a kind is derived from data.

        Args:
            cells: the written cells; for a sensitive column its leaves.
            sensitive: whether the column is sensitive.
        """
        return self

    def notes(self, name: str) -> list[str]:
        """What a certificate notes of a column of this kind: values that were changed before the method saw them.

        Args:
            name: the column.
        """
        return []

    def spec(self) -> dict[str, Any]:
        """Parameters as a recipe writes them."""
        return spec(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in spec(self).items())})"


def texts_of(values: Values) -> list[str]:
    """Raw values as text: numbers without a needless `.0`, dates as ISO days."""
    if values.dtype.kind in "iuf":
        return [plain_number(value) for value in values.tolist()]
    if values.dtype.kind == "b":
        return ["true" if value else "false" for value in values.tolist()]
    return [str(value) for value in values.tolist()]


def raw_texts(values: Values) -> list[str]:
    """As `texts_of`, but refuses a raw value that looks like a written range or `*`: the two could be confused."""
    texts = texts_of(values)
    for i, text in enumerate(texts):
        if LOOKS_WRITTEN.fullmatch(text):
            raise BadValue(i, f"'{text}' looks like a written range or '*'", "give the raw value, or declare it as missing")
    return texts


def numbers_of(values: Values) -> NDArray[np.float64]:
    """Raw values as numbers; a value that is no number is refused."""
    if values.dtype.kind in "iufb":
        return values.astype(np.float64)
    texts = [str(value) for value in values.tolist()]
    for i, text in enumerate(texts):
        if LOOKS_WRITTEN.fullmatch(text):
            raise BadValue(i, f"'{text}' looks like a written range or '*'", "give the raw number, or declare it as missing")
        if not NUMBER_TEXT.fullmatch(text):
            grouped = SEPARATED_DIGITS.fullmatch(text) is not None
            right = "name the file's decimal sign and thousands separator" if grouped else "correct it, declare it as missing"
            raise BadValue(i, f"'{text}' is not a number", f"{right}, or make the column flat()")
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
        codes = {} if coding.top is None else {coding.top: top_text(coding.top)}
        codes |= {} if coding.bottom is None else {coding.bottom: bottom_text(coding.bottom)}
        texts = tuple(codes.get(leaf) or plain_number(leaf) for leaf in leaves.tolist())
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

    def losses(self, cells: Sequence[str]) -> Losses:
        """Width of the range over the declared bounds, or else over those of the written cells."""
        return _range_losses(cells, self.bounds)


class Nominal(Kind):
    """Base class of kinds whose leaves are the values that occur and whose cells are nodes of a tree."""

    def tree(self, texts: Sequence[str]) -> Tree:
        """The tree over these values."""
        raise BadInput(f"{self.name} columns have no tree of their own")

    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """Leaves are the values that occur, in the order of their text."""
        texts = raw_texts(values)
        return bind_tree(self.tree(sorted(set(texts))), texts)


def bind_tree(tree: Tree, texts: Sequence[str], numbers: NDArray[np.float64] | None = None) -> tuple[Domain, Int32]:
    """Leaf codes of raw texts in a tree; a text that is no leaf is refused."""
    leaves = {label: i for i, label in enumerate(tree.leaf_labels)}
    for i, text in enumerate(texts):
        if text not in leaves:
            node = " (it is a node, not a leaf)" if text in tree.labels else ""
            right = "add it to the hierarchy or declare it as missing"
            raise BadValue(i, f"'{text}' is not a leaf of the hierarchy{node}", right)
    codes = np.array([leaves[text] for text in texts], dtype=np.int32)
    return Domain(tuple(tree.leaf_labels), tree, numbers), codes


@dataclass(frozen=True)
class Flat(Nominal):
    """Values without structure: a cell is one value or `*`.

    >>> Flat().bind(np.array(["m", "f"], dtype=object))[1].tolist()
    [1, 0]
    """

    name: ClassVar[str] = "flat"

    def tree(self, texts: Sequence[str]) -> Tree:
        """One level under `*`."""
        return Tree.of(dict.fromkeys(texts) or {"none": None})


@dataclass(frozen=True, repr=False)
class Prefix(Nominal):
    """Codes whose first characters are the most significant (zip codes): masked from the right.

    Args:
        length: characters of a full code; that of the longest one if None.
        keep: first characters that are kept; the others are masked before a method sees the column.
        zip3: three-digit areas that are written as 000, as HIPAA Safe Harbor asks for areas of 20,000 people or fewer; or
            a file with the population of each area, or "census2000".

    >>> domain, codes = Prefix().bind(np.array(["47605", "47602", "47906"], dtype=object))
    >>> domain.labels(np.array([0, 0]), np.array([1, 2]))
    ['4760*', '47***']
    >>> Prefix().losses(["4760*", "47***", "47605", "*"])[:, 0].tolist()
    [0.2, 0.6, 0.0, 1.0]
    >>> Prefix(keep=3).bind(np.array(["02139", "02142"], dtype=object))[0].texts
    ('021**',)
    >>> Prefix(zip3="census2000").bind(np.array(["02139", "03601"], dtype=object))[0].texts
    ('000**', '021**')
    """

    name: ClassVar[str] = "prefix"
    default_distance: ClassVar[str] = "hierarchical"
    length: int | None = None
    keep: int | None = None
    zip3: tuple[str, ...] | str | None = None

    def __post_init__(self) -> None:
        if self.length is not None:
            whole("length", self.length, least=1, most=MOST_LENGTH)
        if self.zip3 is not None:
            object.__setattr__(self, "zip3", check_areas(self.zip3))
            if self.keep not in (None, AREA_DIGITS):
                raise BadInput(f"prefix has zip3 and keep={self.keep}", right=f"write keep: {AREA_DIGITS}, or leave it out")
            object.__setattr__(self, "keep", AREA_DIGITS)
        if self.keep is not None:
            whole("keep", self.keep, least=1, most=self.length or MOST_LENGTH)

    def notes(self, name: str) -> list[str]:
        """The characters that are kept."""
        kept = "character is" if self.keep == 1 else f"{self.keep} characters are"
        notes = [] if self.keep is None else [f"column '{name}': only the first {kept} kept, before anything else"]
        if self.zip3 is not None:
            old = " by the census of 2000; the rule asks for current data" if self.zip3 == SMALL_2000 else ""
            notes.append(f"column '{name}': areas of 20,000 people or fewer are written as {HIDDEN_AREA}{old}")
        return notes

    def _mask(self, text: str) -> str:
        """The code with everything after the kept characters masked; it keeps its length."""
        if self.keep is None:
            return text
        area = text[:AREA_DIGITS]
        hidden = self.zip3 is not None and (area in self.zip3 or not re.fullmatch(r"\d{3}", area))
        return (HIDDEN_AREA if hidden else text[: self.keep]) + STAR * (len(text) - self.keep)

    def bind(self, values: Values) -> tuple[Domain, Int32]:
        """Leaves are the codes that occur; a code of another length than `length`, or with a mask, is refused."""
        texts = raw_texts(values)
        for i, text in enumerate(texts):
            if STAR in (text if self.keep is None else text.replace(self._mask(text), "")):
                raise BadValue(i, f"'{text}' looks like a masked code", "give the whole code, or declare it as missing")
            if len(text) > MOST_LENGTH:
                what = f"'{text[:20]}...' has {len(text):,} characters"
                raise BadValue(i, what, f"a code has at most {MOST_LENGTH}; make the column flat()")
            if self.length is not None and len(text) != self.length:
                raise BadValue(i, f"'{text}' has {len(text)} characters", f"a code of this column has {self.length}")
        texts = list(map(self._mask, texts))
        domain, codes = bind_tree(tree := self.tree(sorted(set(texts))), texts)
        # a kept prefix is a leaf: what it masks is lost whatever a method does
        return replace(domain, node_loss=np.where(tree.height == 0, 0.0, self.losses(tree.labels)[:, 0])), codes

    def losses(self, cells: Sequence[str]) -> Losses:
        """Masked characters over `length`, or else over the longest written cell; the same in both variants."""
        width = self.length or max((len(cell) for cell in cells), default=1)
        masked = np.array([width if cell == STAR else cell.count(STAR) for cell in cells], dtype=np.float64)
        loss = np.minimum(masked / max(width, 1), 1.0)
        return np.stack([loss, loss], axis=1)

    def tree(self, texts: Sequence[str]) -> Tree:
        """One level per character; a shorter code is below the masks of its own first characters."""
        if not texts:
            return Tree.of({"none": None})
        width = max(len(text) for text in texts)
        nested: dict[str, Any] = {}
        for text in texts:
            place = nested
            for kept in range(1, len(text.rstrip(STAR))):
                mask = text[:kept] + STAR * (width - kept)
                place = place.setdefault(mask, {})
            place[text] = None
        # one shared first character would become a named root, which changes no distance: keep `*` above it
        return Tree.of({STAR: nested})


def leaf_losses(counts: NDArray[np.int64], total: int, star: Sequence[bool]) -> Losses:
    """Variants A and B from leaf counts; `*` is 1 even where it covers a single value and the missing one."""
    a = np.where(counts <= 1, 0.0, counts / max(total, 1))
    b = np.where(counts <= 1, 0.0, (counts - 1) / max(total - 1, 1))
    stars = np.array(star, dtype=bool)
    return np.stack([np.where(stars, 1.0, a), np.where(stars, 1.0, b)], axis=1)


def tree_losses(tree: Tree, cells: Sequence[str]) -> Losses:
    """Losses of written nodes of a declared tree, of any level."""
    leaves = dict(zip(tree.labels, tree.leaves.tolist(), strict=True))
    for i, cell in enumerate(cells):
        if cell not in leaves:
            raise BadValue(i, f"'{cell}' is neither a value nor a node of the hierarchy", "write a leaf, a node or '*'")
    counts = np.array([leaves[cell] for cell in cells], dtype=np.int64)
    return leaf_losses(counts, tree.size, [cell == STAR for cell in cells])


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


def prefix(
    length: int | None = None, keep: int | None = None, zip3: Sequence[str] | str | PathLike[str] | None = None
) -> Prefix:
    """A column of codes that are masked from the right.

    Args:
        length: characters of a full code; that of the longest one if left out.
        keep: first characters that are kept; the others are masked before a method sees the column.
        zip3: a file with the population of each three-digit ZIP area, "census2000", or the areas to hide: those of 20,000
            people or fewer are written as 000.

    >>> prefix(5, keep=3)
    Prefix(length=5, keep=3)
    """
    return Prefix(length, keep, zip3)  # type: ignore[arg-type]


def flat() -> Flat:
    """A column of values without structure.

    >>> flat()
    Flat()
    """
    return Flat()


__all__ = ["BadValue", "Flat", "Kind", "Nested", "Numeric", "Prefix", "flat", "numeric", "prefix"]

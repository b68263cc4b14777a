"""Arriving rows as numbers, and boxes of them as written cells. Domains are declared before the first row arrives.

A number outside its bounds, a category that is not in its tree, or a text that looks like a written range gets a position of
its own under the root: the class that it joins writes `*` there, and it is counted. In a sensitive column it counts as missing.
Texts of columns without a tree, persons and sensitive values are known by keyed 64-bit digests, so memory does not grow with
the number of distinct values. If two digests collide, a class counts one person or value too few, and a cell of two texts is
written as `*`: both err on the safe side.

A column with a declared step always writes ranges that end at steps: whether decimals will arrive is not known in advance.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns, array_cells
from closeknit.core.date_shift import refuse_shifts
from closeknit.core.dates import Date
from closeknit.core.domain import FAR, LOOKS_WRITTEN, NUMBER_TEXT, Domain, inner_bounds, snap_range
from closeknit.core.errors import BadInput
from closeknit.core.exact import plain_number
from closeknit.core.folding import fold_text
from closeknit.core.geometry import flatten_trees
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.itemsets import ItemSet
from closeknit.core.kinds import BadValue, Flat, Kind, Numeric, texts_of
from closeknit.core.params import number
from closeknit.core.points import Point
from closeknit.core.rank_swap import refuse_swaps
from closeknit.core.schema import Schema
from closeknit.core.tree import STAR
from closeknit.io.arrow import column_from_cell
from closeknit.kernels.arrays import Flags
from closeknit.kernels.arrays import Reals as Reals
from closeknit.kernels.geometry.declared_axes import EQUAL, NUMBER, TREE, Axes

Ints = NDArray[np.int64]
Cells = NDArray[np.object_]
MISSING = -1  # in place of a digest, which is not negative
MANTISSA = 53  # bits of a digest that a float can hold
MOST_KNOWN = 1 << 16  # values whose meaning is cached


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Rows in order of arrival. `cells` holds what is published unchanged: sensitive and plain columns."""

    quasi: Reals  # [n, d]
    persons: Ints  # [n]
    secrets: Ints  # [n, s] digests, equal where the published values are equal or look alike; MISSING for a missing value
    cells: Mapping[str, Cells]  # by column, also those of quasi-identifiers without a tree
    outside: Flags | None = None  # [n, d + s] cells outside the declared domains; None if there are none

    def __len__(self) -> int:
        return len(self.persons)

    @property
    def unknown(self) -> int:
        """The number of cells outside the declared domains."""
        return 0 if self.outside is None else int(self.outside.sum())

    def take(self, rows: NDArray[np.integer]) -> Arrivals:
        """These rows."""
        cells = {name: column[rows] for name, column in self.cells.items()}
        return Arrivals(self.quasi[rows], self.persons[rows], self.secrets[rows], cells)


class Coder:
    """Turns rows of one schema into `Arrivals`, and boxes of them into labels.

    Args:
        schema: roles and kinds of the columns; every quasi domain is declared.
        secret: the key of the digests.
        folds: whether look-alike sensitive values have the same digest.

    >>> from closeknit.core.kinds import flat, numeric
    >>> coder = Coder(Schema(quasi={"age": numeric(0, 100)}, sensitive={"ill": flat()}), b"secret")
    >>> rows = coder.encode(Columns.of({"age": [30, 130, None], "ill": ["flu", "flu", "gout"]}), first=0)
    >>> rows.quasi[:, 0].tolist(), rows.unknown, len(set(rows.secrets[:, 0].tolist()))
    ([30.0, 2e+300, 1e+300], 1, 2)
    >>> coder.labels(0, np.array([30.0, 7.0]), np.array([41.5, 7.0]))
    ['[30, 41.5]', '7']
    """

    def __init__(self, schema: Schema, secret: bytes, folds: bool = False) -> None:
        refuse_shifts(schema, "in a stream")
        refuse_swaps(schema, "in a stream")
        self.schema, self._key, self._folds = schema, secret[:64], folds
        self.domains = {name: _find_domain(name, kind) for name, kind in schema.quasi.items()}
        numbers = {name: kind for name, kind in schema.quasi.items() if isinstance(kind, Numeric) and not kind.bins}
        self._bounds = {name: kind.bounds for name, kind in numbers.items() if kind.bounds is not None}
        self.steps = {name: float(number("step", kind.step)) for name, kind in numbers.items() if kind.step is not None}
        self._codings = {name: kind.coding for name, kind in numbers.items()}
        self.axes = _axes(schema, self.domains, self._bounds)
        self._known: dict[tuple[str, type, Any], tuple[Any, Any, bool, bool]] = {}
        self._used, self._shown = schema.used, schema.published
        listed = ("tree", "point", "itemset")
        trees = {name: domain for name, domain in self.domains.items() if domain and schema.quasi[name].name in listed}
        self._leaves = {name: {text: i for i, text in enumerate(domain.texts)} for name, domain in trees.items()}

    def encode(self, columns: Columns, first: int) -> Arrivals:
        """Rows of a table as numbers; `first` is the position of the first one."""
        return self.meanings(columns).rows(0, columns.rows, first)

    def meanings(self, columns: Columns) -> Meanings:
        """What each distinct value of a table means to this stream: looked up once, whatever the number of rows."""
        quasi = [self._quasi(columns[name], j, name, kind) for j, (name, kind) in enumerate(self.schema.quasi.items())]
        secrets = [self._secret(columns[name], kind) for name, kind in self.schema.sensitive.items()]
        plain: list[Cells] = [np.array([*columns[name].values.tolist(), None], dtype=object) for name in self.schema.plain]
        return Meanings(self, columns, quasi, secrets, plain, self._persons(columns))

    def encode_row(self, row: Mapping[str, Any], first: int) -> Arrivals:
        """As `encode`, for a single row; the meaning of recent values is cached."""
        found = [self._look_up(name, row[name]) for name in self._used]
        d, s = len(self.schema.quasi), len(self.schema.sensitive)
        quasi = np.array([[meaning[0] for meaning in found[:d]]])
        secrets = np.array([[meaning[0] for meaning in found[d : d + s]]], dtype=np.int64)
        persons = np.array([first if self.schema.person is None else found[-1][0]], dtype=np.int64)
        cells = {name: array_cells([meaning[1]]) for name, meaning in zip(self._shown, found, strict=False) if meaning[3]}
        outside = np.array([[meaning[2] for meaning in found[: d + s]]]) if any(meaning[2] for meaning in found) else None
        return Arrivals(quasi, persons, secrets, cells, outside)

    def _look_up(self, name: str, value: Any) -> tuple[Any, Any, bool, bool]:
        """Number and text of a value, whether it is outside its domain, and whether the text is kept."""
        kind = type(value)
        if (kind is int or kind is float) and name in self._bounds and not self._is_coded(name) and not self.schema.missing:
            low, high = self._bounds[name]
            if low <= value <= high:
                return value + 0.0, None, False, False  # without the sign of -0.0
        key = (name, kind, value)
        if not isinstance(value, Hashable) or (meaning := self._known.get(key)) is None:
            column = _column(name, value)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            meaning = self._known[key] = self._meaning(name, column, int(column.codes[0]))
        return meaning

    def _meaning(self, name: str, column: Column, code: int) -> tuple[Any, Any, bool, bool]:
        if name in self.schema.quasi:
            j = list(self.schema.quasi).index(name)
            places, texts, outside = self._quasi(column, j, name, self.schema.quasi[name])
            equal = bool(self.axes.kind[j] == EQUAL)
            return float(places[code]), texts[code] if equal else None, bool(outside[code]), equal
        if name in self.schema.sensitive:
            shown, digests, outside = self._secret(column, self.schema.sensitive[name])
            return int(digests[code]), shown[code], bool(outside[code]), True
        if name == self.schema.person:
            return int(self._persons(Columns({name: column}, 1))[code]), None, False, False  # type: ignore[index]
        return 0, [*column.values.tolist(), None][code], False, True

    def labels(self, j: int, lo: Reals, hi: Reals) -> list[str]:
        """The written cells of ranges of quasi-identifier j, which has a tree or holds numbers."""
        name, missing = list(self.schema.quasi)[j], self.axes.missing[j]
        domain, first, last = self.domains[name], np.minimum(lo, missing), np.minimum(hi, missing)
        if domain is None:
            ends = np.unique(np.concatenate([lo, hi]))
            ends = ends[ends < missing]
            kind = self.schema.quasi[name]
            assert isinstance(kind, Numeric)
            domain = self.bind_numbers(name, ends, kind.bind_numbers(ends).texts)
            first, last = (np.searchsorted(ends, side).astype(np.float64) for side in (lo, hi))
        cells = domain.labels(first.astype(np.int32), last.astype(np.int32))
        for i in np.flatnonzero(hi > missing).tolist():
            cells[i] = STAR
        return cells

    def bind_numbers(self, name: str, numbers: Reals, texts: tuple[str, ...]) -> Domain:
        """The domain of a column of numbers whose leaves are these, ascending, with these texts."""
        coding, step = self._codings[name], self.steps.get(name)
        snap, coarse = step is not None, coding.step is not None
        return Domain(texts, None, numbers, self._bounds[name], step, snap, top=coding.top, bottom=coding.bottom, coarse=coarse)

    def snap_boxes(self, lo: Reals, hi: Reals) -> tuple[Reals, Reals]:
        """The boxes as their cells say them: ranges end on the grid of a step, and those with a code at the bounds."""
        lo, hi = lo.copy(), hi.copy()
        for j, name in enumerate(self.schema.quasi):
            if name not in self.steps and not self._is_coded(name):
                continue
            coding, (low, high) = self._codings[name], self._bounds[name]
            inner = inner_bounds((low, high), coding.bottom, coding.top)
            for i in np.flatnonzero(hi[:, j] < self.axes.missing[j]).tolist():
                from_bottom = coding.bottom is not None and lo[i, j] <= coding.bottom
                to_top = coding.top is not None and hi[i, j] >= coding.top
                first, last = lo[i, j], hi[i, j]
                if name in self.steps:
                    first, last = snap_range(first, last, self.steps[name], inner)
                    first = lo[i, j] if to_top and lo[i, j] == coding.top else first  # a code alone ends where it begins
                    last = hi[i, j] if from_bottom and hi[i, j] == coding.bottom else last
                lo[i, j], hi[i, j] = low if from_bottom else first, high if to_top else last
        return lo, hi

    def _is_coded(self, name: str) -> bool:
        return name in self._codings and self._codings[name].changes

    def _quasi(self, column: Column, j: int, name: str, kind: Kind) -> tuple[Reals, Cells, Flags]:
        """Of each distinct value its position, its text and whether it is outside the domain; the last entry is the missing
        cell.
        """
        values, missing = column.values, self.schema.flag_missing(column.values)
        places = np.full(len(values) + 1, self.axes.missing[j])
        outside = np.zeros(len(values) + 1, dtype=bool)
        there = np.flatnonzero(~missing)
        if self.axes.kind[j] == EQUAL:
            texts = np.array([*texts_of(values), None], dtype=object)
            places[there] = [float(self.digest(texts[i]) % (1 << MANTISSA)) for i in there.tolist()]
            outside[there] = [LOOKS_WRITTEN.fullmatch(texts[i]) is not None for i in there.tolist()]
            places[outside] = self.axes.unknown[j]
            return places, texts, outside
        if name in self._bounds:
            assert isinstance(kind, Numeric)
            positions, bad = _numbers(kind.read_numbers(values[there]), *self._bounds[name])
            if self._is_coded(name):
                positions[~bad] = self._codings[name].code(positions[~bad])
        elif name in self._leaves:
            raw = values[there]
            cells = kind.read_cells(raw) if isinstance(kind, Point | ItemSet) else texts_of(raw)
            positions = np.array([self._leaves[name].get(cell or "", -1) for cell in cells], dtype=np.float64)
            bad = positions < 0
        else:
            _, leaves, bad = _bind_values(kind, values[there], self.domains[name])
            positions = leaves.astype(np.float64)
        places[there], outside[there] = np.where(bad, self.axes.unknown[j], positions), bad
        return places, np.empty(0, dtype=object), outside

    def _secret(self, column: Column, kind: Kind) -> tuple[Cells, Ints, Flags]:
        """Of each distinct value, and of the missing cell, what is published, its digest and whether it is outside the
        domain.
        """
        there = np.flatnonzero(~self.schema.flag_missing(column.values))
        bad = _bind_values(kind, column.values[there], None)[2]
        outside = np.zeros(len(column.values) + 1, dtype=bool)
        outside[there] = bad
        shown = np.full(len(column.values) + 1, None, dtype=object)
        kept = there[~bad]
        if len(kept):
            known = Column(column.values[kept], np.arange(len(kept), dtype=np.int32))
            codes, _, leaf_values = self.schema.encode_column(known, "", kind)
            shown[kept] = leaf_values[codes].tolist()
        digests = [MISSING if value is None else self.secret_digest(value_text(value)) for value in shown.tolist()]
        return shown, np.array(digests, dtype=np.int64), outside

    def secret_digest(self, text: str) -> int:
        """A number that stands for a sensitive value."""
        return self.digest("=" + (fold_text(text) if self._folds else text)) >> 1

    def _persons(self, columns: Columns) -> Ints | None:
        """The person of each distinct value; None without a person column, where every row is a person."""
        if self.schema.person is None:
            return None
        column = columns[self.schema.person]
        if (column.codes < 0).any():
            right, row = "fill it in: a row without a person cannot be counted", column.first_row(-1)
            raise BadInput("a row has no person", column=self.schema.person, row=row, right=right)
        return np.array([self.digest(text) >> 1 for text in texts_of(column.values)], dtype=np.int64)

    def digest(self, text: str) -> int:
        """64 bits that stand for this text in this stream only."""
        return int.from_bytes(blake2b(text.encode(), digest_size=8, key=self._key).digest(), "big")


@dataclass(frozen=True, eq=False)
class Meanings:
    """Per column what its distinct values mean; the last entry is the missing cell."""

    coder: Coder
    columns: Columns
    quasi: list[tuple[Reals, Cells, Flags]]  # position, text, whether it is outside the domain
    secrets: list[tuple[Cells, Ints, Flags]]  # what is published, digest, whether it is outside the domain
    plain: list[Cells]
    persons: Ints | None

    def rows(self, start: int, stop: int, first: int) -> Arrivals:
        """Rows of the table; `first` is the position of the first of them."""
        schema, cells = self.coder.schema, {}
        unknown = np.empty((stop - start, len(self.quasi) + len(self.secrets)), dtype=bool)
        quasi = np.empty((stop - start, len(self.quasi)))
        for j, (name, (places, texts, outside)) in enumerate(zip(schema.quasi, self.quasi, strict=True)):
            codes = self.columns[name].codes[start:stop]
            quasi[:, j], unknown[:, j] = places[codes], outside[codes]
            if self.coder.axes.kind[j] == EQUAL:
                cells[name] = texts[codes]
        secrets = np.empty((stop - start, len(self.secrets)), dtype=np.int64)
        for j, (name, (shown, digests, outside)) in enumerate(zip(schema.sensitive, self.secrets, strict=True)):
            codes = self.columns[name].codes[start:stop]
            secrets[:, j], cells[name] = digests[codes], shown[codes]
            unknown[:, len(self.quasi) + j] = outside[codes]
        for name, values in zip(schema.plain, self.plain, strict=True):
            cells[name] = values[self.columns[name].codes[start:stop]]
        persons = np.arange(first, first + stop - start, dtype=np.int64)
        if self.persons is not None and schema.person is not None:
            persons = self.persons[self.columns[schema.person].codes[start:stop]]
        return Arrivals(quasi, persons, secrets, cells, unknown if unknown.any() else None)


def _column(name: str, cell: Any) -> Column:
    """A single cell as a frame would bring it; without Arrow where the result is the same."""
    kind = type(cell)
    same = cell is None or kind is int or kind is bool or (kind is str and cell != "") or (kind is float and isfinite(cell))
    return Columns.of({name: [cell + 0.0 if kind is float else cell]})[name] if same else column_from_cell(cell, name)


def value_text(value: Any) -> str:
    """The text of a value, the same for equal numbers of any type."""
    return plain_number(value) if isinstance(value, int | float) else str(value)


def _find_domain(name: str, kind: Kind) -> Domain | None:
    """The declared domain of a column; None for plain numbers and for values without a tree."""
    if isinstance(kind, Flat):
        return None
    if isinstance(kind, Numeric):
        if kind.lo is None:
            raise BadInput("is numeric without bounds", column=name, right="a stream needs them in advance: numeric(lo, hi)")
        if kind.snap and kind.step is None and not kind.bins:
            raise BadInput("has no step to snap to", column=name, right="a stream needs it in advance: numeric(lo, hi, step)")
        return kind.bind(np.array([], dtype=np.float64))[0] if kind.bins else None
    if isinstance(kind, Date) and kind.lo is not None:
        return kind.bind(kind.between_bounds())[0]
    if isinstance(kind, Point) and kind.within is not None:
        return kind.bind(kind.list_cells())[0]
    if isinstance(kind, ItemSet) and kind.is_declared:
        return kind.bind(kind.list_sets())[0]
    if isinstance(kind, Hierarchy) and not kind.from_data:
        return kind.bind(np.array([], dtype=object))[0]
    ways = "date(lo=, hi=), point(within=), itemset(Hierarchy, most=)"
    right = f"declare it in advance: {ways}, or a Hierarchy (Hierarchy.prefix(values) for codes)"
    raise BadInput(f"is {kind.name}, and its domain would be read from the rows", column=name, right=right)


def _numbers(values: NDArray[np.generic], low: float, high: float) -> tuple[Reals, Flags]:
    """Raw values as numbers, and whether each is outside its bounds or no number."""
    if values.dtype.kind in "iufb":
        numbers = values.astype(np.float64)
    else:
        texts = [str(value) for value in values.tolist()]
        numbers = np.array([float(text) if NUMBER_TEXT.fullmatch(text) else np.nan for text in texts], dtype=np.float64)
    return numbers, ~((numbers >= low) & (numbers <= high))


def _bind_values(kind: Kind, values: NDArray[np.generic], domain: Domain | None) -> tuple[Domain, NDArray[np.int32], Flags]:
    """As `kind.bind`, but values that it refuses are flagged."""
    bad = np.zeros(len(values), dtype=bool)
    while True:
        kept = np.flatnonzero(~bad)
        try:
            found, codes = kind.bind(values[kept])
        except BadValue as refused:
            if not bad.any():  # there may be many
                bad[:] = [_is_refused(kind, values[i : i + 1]) for i in range(len(values))]
            bad[kept[refused.index]] = True
            continue
        leaves = np.zeros(len(values), dtype=np.int32)
        if domain is not None and isinstance(kind, Date):  # bound to the days that occur, not to all that may
            assert domain.numbers is not None and found.numbers is not None
            codes = np.array(np.searchsorted(domain.numbers, found.numbers[codes]), dtype=np.int32)
        leaves[kept] = codes
        return found, leaves, bad


def _is_refused(kind: Kind, value: NDArray[np.generic]) -> bool:
    try:
        kind.bind(value)
    except BadValue:
        return True
    return False


def _axes(schema: Schema, domains: Mapping[str, Domain | None], bounds: Mapping[str, tuple[float, float]]) -> Axes:
    kinds, spans, missing, weights = [], [], [], np.array(schema.weights(), dtype=np.float64)
    for name, domain in domains.items():
        tree = domain.tree if domain is not None else None
        kinds.append(TREE if tree is not None else EQUAL if isinstance(schema.quasi[name], Flat) else NUMBER)
        low, high = bounds.get(name, (0.0, 1.0 if domain is None else float(max(domain.size - 1, 1))))
        spans.append(high - low)
        missing.append(FAR if domain is None else float(domain.size))
    trees, far = flatten_trees(list(domains.values())), np.array(missing)
    unknown = np.where(far == FAR, 2 * FAR, far + 1)
    leaf_node, parent, hi = (part.astype(np.int64) for part in (trees.leaf_node, trees.parent, trees.hi))
    share = weights / weights.sum() if len(weights) else weights
    start = trees.leaf_start.astype(np.int64)
    return Axes(np.array(kinds, np.int64), np.array(spans), far, unknown, start, leaf_node, parent, hi, trees.loss, share)

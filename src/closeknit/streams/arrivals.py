"""Arriving rows as numbers, and boxes of them as written cells. Domains are declared before the first row comes.

A number outside its bounds, a category that its tree does not have, or a text that could not be told from a written range is
held as a value of its own under the root: the class that it joins writes `*` there, and it is counted. In a sensitive column
it is taken as missing. Texts of columns without a tree, persons and secrets are told apart by keyed 64-bit digests, so nothing
grows with the number of values ever seen. Should two of them fall together, a class counts one person or value less than it
has, and a cell of two texts is written as `*`: both are on the safe side.

A column with a declared step always writes ranges that end at steps: whether decimals will come is not known beforehand.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.domain import LOOKS_WRITTEN, NUMBER_TEXT, Domain, snap_range
from closeknit.core.errors import BadInput
from closeknit.core.exact import plain_number
from closeknit.core.folding import fold_text
from closeknit.core.kinds import BadValue, Kind, texts_of
from closeknit.core.params import number
from closeknit.core.schema import Schema
from closeknit.core.tree import STAR
from closeknit.io.arrow import column_from_cell
from closeknit.kernels.geometry.declared_axes import EQUAL, NUMBER, TREE, Axes

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]
Cells = NDArray[np.object_]
FAR = 1e300  # beyond every number that a column may have
MISSING = -1  # instead of a digest, which is not negative
MANTISSA = 53  # bits of a digest that a float tells apart
MOST_KNOWN = 1 << 16  # values whose meaning is remembered


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Rows in the order in which they came. `cells` holds what is written of them as it is: secrets and plain columns."""

    quasi: Reals  # [n, d]
    persons: Ints  # [n]
    secrets: Ints  # [n, s] equal where the written secrets are, or look alike; MISSING where there is none
    cells: Mapping[str, Cells]  # by column, also those of quasi columns without a tree
    unknown: int = 0  # cells outside the declared domains

    def __len__(self) -> int:
        return len(self.persons)

    def take(self, rows: NDArray[np.integer]) -> Arrivals:
        """These rows."""
        cells = {name: column[rows] for name, column in self.cells.items()}
        return Arrivals(self.quasi[rows], self.persons[rows], self.secrets[rows], cells)


class Coder:
    """Turns rows of one schema into `Arrivals`. `secret` keys the digests; `folds`: look-alike sensitive values have the same.

    >>> from closeknit.core.kinds import flat, numeric
    >>> coder = Coder(Schema(quasi={"age": numeric(0, 100)}, sensitive={"ill": flat()}), b"secret")
    >>> rows = coder.encode(Columns.of({"age": [30, 130, None], "ill": ["flu", "flu", "gout"]}), first=0)
    >>> rows.quasi[:, 0].tolist(), rows.unknown, len(set(rows.secrets[:, 0].tolist()))
    ([30.0, 2e+300, 1e+300], 1, 2)
    >>> coder.labels(np.array([[30.0]]), np.array([[41.5]]), [{}])
    [{'age': '[30, 41.5]'}]
    """

    def __init__(self, schema: Schema, secret: bytes, folds: bool = False) -> None:
        self.schema, self._key, self._folds = schema, secret[:64], folds
        self.domains = {name: _find_domain(name, kind) for name, kind in schema.quasi.items()}
        self.axes = _axes(schema, self.domains)
        self._known: dict[tuple[str, type, Any], tuple[Any, Any, bool, bool]] = {}
        self._used, self._shown = schema.used, schema.published
        trees = {name: domain for name, domain in self.domains.items() if domain and schema.quasi[name].name == "tree"}
        self._leaves = {name: {text: i for i, text in enumerate(domain.texts)} for name, domain in trees.items()}
        bounds = {name: getattr(kind, "bounds", None) for name, kind in schema.quasi.items() if self.domains[name] is None}
        self._bounds = {name: ends for name, ends in bounds.items() if ends is not None}
        steps = {name: getattr(schema.quasi[name], "step", None) for name in self._bounds}
        self.steps = {name: float(number("step", step)) for name, step in steps.items() if step is not None}

    def encode(self, columns: Columns, first: int) -> Arrivals:
        """Rows of a table; `first` is the position of the first one."""
        return self.meanings(columns).rows(0, columns.rows, first)

    def meanings(self, columns: Columns) -> Meanings:
        """What each distinct value of a table means to this stream: met once, however many rows there are."""
        quasi = [self._quasi(columns[name], j, name, kind) for j, (name, kind) in enumerate(self.schema.quasi.items())]
        secrets = [self._secret(columns[name], kind) for name, kind in self.schema.sensitive.items()]
        plain: list[Cells] = [np.array([*columns[name].values.tolist(), None], dtype=object) for name in self.schema.plain]
        return Meanings(self, columns, quasi, secrets, plain, self._persons(columns))

    def encode_row(self, row: Mapping[str, Any], first: int) -> Arrivals:
        """As `coded`, for a single row: what a value means is looked up where it was met before."""
        met = [self._look_up(name, row[name]) for name in self._used]
        d, s = len(self.schema.quasi), len(self.schema.sensitive)
        quasi = np.array([[meaning[0] for meaning in met[:d]]])
        secrets = np.array([[meaning[0] for meaning in met[d : d + s]]], dtype=np.int64)
        persons = np.array([first if self.schema.person is None else met[-1][0]], dtype=np.int64)
        cells = {name: _single(meaning[1]) for name, meaning in zip(self._shown, met, strict=False) if meaning[3]}
        return Arrivals(quasi, persons, secrets, cells, sum(meaning[2] for meaning in met))

    def _look_up(self, name: str, value: Any) -> tuple[Any, Any, bool, bool]:
        """Number and text of a value, whether it is unknown, and whether the text is kept."""
        kind = type(value)
        if (kind is int or kind is float) and name in self._bounds and not self.schema.missing:
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
            places, texts, strange = self._quasi(column, j, name, self.schema.quasi[name])
            equal = bool(self.axes.kind[j] == EQUAL)
            return float(places[code]), texts[code] if equal else None, bool(strange[code]), equal
        if name in self.schema.sensitive:
            shown, digests, strange = self._secret(column, self.schema.sensitive[name])
            return int(digests[code]), shown[code], bool(strange[code]), True
        if name == self.schema.person:
            return int(self._persons(Columns({name: column}, 1))[code]), None, False, False  # type: ignore[index]
        return 0, [*column.values.tolist(), None][code], False, True

    def labels(self, lo: Reals, hi: Reals, texts: list[Mapping[str, str]]) -> list[dict[str, str]]:
        """The written quasi cells of each box; `texts` tells what columns without a tree have where it is one value."""
        written: list[dict[str, str]] = [{} for _ in lo]
        for j, name in enumerate(self.schema.quasi):
            for i, cell in enumerate(self.column_labels(j, name, lo[:, j], hi[:, j])):
                written[i][name] = texts[i].get(name, STAR) if cell is None else cell
        return written

    def snap_boxes(self, lo: Reals, hi: Reals) -> tuple[Reals, Reals]:
        """The boxes as their cells say them: ranges of a column with a step end on its grid."""
        lo, hi = lo.copy(), hi.copy()
        for j, name in enumerate(self.schema.quasi):
            if name in self.steps:
                known = np.flatnonzero(hi[:, j] < self.axes.missing[j])
                lo[known, j], hi[known, j] = self._snap_ranges(name, lo[known, j], hi[known, j])
        return lo, hi

    def _snap_ranges(self, name: str, lo: Reals, hi: Reals) -> tuple[Reals, Reals]:
        ends = [snap_range(a, b, self.steps[name], self._bounds[name]) for a, b in zip(lo.tolist(), hi.tolist(), strict=True)]
        low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
        return low, high

    def column_labels(self, j: int, name: str, lo: Reals, hi: Reals) -> list[str | None]:
        """The written cells of ranges of one column; None where the text itself has to be written."""
        missing, domain = self.axes.missing[j], self.domains[name]
        cells: list[str | None] = [STAR] * len(lo)
        known = np.flatnonzero(hi < missing)
        if domain is not None:
            labels: Sequence[str | None] = domain.labels(lo[known].astype(np.int32), hi[known].astype(np.int32))
        elif self.axes.kind[j] == NUMBER:
            ends = lo[known], hi[known]
            labels = _ranges(*(self._snap_ranges(name, *ends) if name in self.steps else ends))
        else:
            labels = [None if one else STAR for one in (lo[known] == hi[known]).tolist()]
        for i, label in zip(known.tolist(), labels, strict=True):
            cells[i] = label
        for i in np.flatnonzero((lo == missing) & (hi == missing)).tolist():
            cells[i] = ""
        return cells

    def _quasi(self, column: Column, j: int, name: str, kind: Kind) -> tuple[Reals, Cells, NDArray[np.bool_]]:
        """Position, text and whether it is unknown, of each distinct value; the last entry serves the missing cell."""
        values, missing = column.values, self._missing(column)
        places = np.full(len(values) + 1, self.axes.missing[j])
        strange = np.zeros(len(values) + 1, dtype=bool)
        there = np.flatnonzero(~missing)
        if self.axes.kind[j] == EQUAL:
            texts = np.array([*texts_of(values), None], dtype=object)
            places[there] = [float(self.digest(texts[i]) % (1 << MANTISSA)) for i in there.tolist()]
            strange[there] = [LOOKS_WRITTEN.fullmatch(texts[i]) is not None for i in there.tolist()]
            places[strange] = self.axes.unknown[j]
            return places, texts, strange
        if name in self._bounds:
            positions, bad = _numbers(values[there], *self._bounds[name])
        elif name in self._leaves:
            positions = np.array([self._leaves[name].get(text, -1) for text in texts_of(values[there])], dtype=np.float64)
            bad = positions < 0
        else:
            _, leaves, bad = _bind_values(kind, values[there], self.domains[name])
            positions = leaves.astype(np.float64)
        places[there], strange[there] = np.where(bad, self.axes.unknown[j], positions), bad
        return places, np.empty(0, dtype=object), strange

    def _secret(self, column: Column, kind: Kind) -> tuple[Cells, Ints, NDArray[np.bool_]]:
        """What is shown, its digest and whether it was unknown, of each distinct value and of the missing cell."""
        there = np.flatnonzero(~self._missing(column))
        bad = _bind_values(kind, column.values[there], None)[2]
        strange = np.zeros(len(column.values) + 1, dtype=bool)
        strange[there] = bad
        shown = np.full(len(column.values) + 1, None, dtype=object)
        kept = there[~bad]
        if len(kept):
            codes, _, leaf_values = self.schema.encode_column(
                Column(column.values[kept], np.arange(len(kept), dtype=np.int32)), "", kind
            )
            shown[kept] = leaf_values[codes].tolist()
        digests = [MISSING if value is None else self._secret_digest(value_text(value)) for value in shown.tolist()]
        return shown, np.array(digests, dtype=np.int64), strange

    def _secret_digest(self, text: str) -> int:
        return self.digest("=" + (fold_text(text) if self._folds else text)) >> 1

    def _persons(self, columns: Columns) -> Ints | None:
        """Whom each distinct value is about; without such a column every row is about somebody else."""
        if self.schema.person is None:
            return None
        column = columns[self.schema.person]
        if (column.codes < 0).any():
            right, row = "fill it in: rows of nobody cannot be counted", int(np.argmax(column.codes < 0)) + 1
            raise BadInput("a row has no person", column=self.schema.person, row=row, right=right)
        return np.array([self.digest(text) >> 1 for text in texts_of(column.values)], dtype=np.int64)

    def digest(self, text: str) -> int:
        """64 bits that only this stream gives to this text."""
        return int.from_bytes(blake2b(text.encode(), digest_size=8, key=self._key).digest(), "big")

    def _missing(self, column: Column) -> NDArray[np.bool_]:
        marks, missing = self.schema.missing, np.zeros(len(column.values), dtype=bool)
        if not marks:
            return missing
        if column.values.dtype.kind not in "iuf":
            return np.array([text in marks for text in texts_of(column.values)], dtype=bool)
        numbers = [float(mark) for mark in marks if NUMBER_TEXT.fullmatch(mark)]
        for i in np.flatnonzero(np.isin(column.values.astype(np.float64), numbers)).tolist():
            missing[i] = texts_of(column.values[i : i + 1])[0] in marks
        return missing


@dataclass(frozen=True, eq=False)
class Meanings:
    """Per column what its distinct values mean; the last entry serves the missing cell."""

    coder: Coder
    columns: Columns
    quasi: list[tuple[Reals, Cells, NDArray[np.bool_]]]  # position, text, whether it is unknown
    secrets: list[tuple[Cells, Ints, NDArray[np.bool_]]]  # what is shown, digest, whether it was unknown
    plain: list[Cells]
    persons: Ints | None

    def rows(self, start: int, stop: int, first: int) -> Arrivals:
        """Rows of the table; `first` is the position of the first of them."""
        schema, unknown, cells = self.coder.schema, 0, {}
        quasi = np.empty((stop - start, len(self.quasi)))
        for j, (name, (places, texts, strange)) in enumerate(zip(schema.quasi, self.quasi, strict=True)):
            codes = self.columns[name].codes[start:stop]
            quasi[:, j] = places[codes]
            unknown += int(strange[codes].sum())
            if self.coder.axes.kind[j] == EQUAL:
                cells[name] = texts[codes]
        secrets = np.empty((stop - start, len(self.secrets)), dtype=np.int64)
        for j, (name, (shown, digests, strange)) in enumerate(zip(schema.sensitive, self.secrets, strict=True)):
            codes = self.columns[name].codes[start:stop]
            secrets[:, j], cells[name] = digests[codes], shown[codes]
            unknown += int(strange[codes].sum())
        for name, values in zip(schema.plain, self.plain, strict=True):
            cells[name] = values[self.columns[name].codes[start:stop]]
        persons = np.arange(first, first + stop - start, dtype=np.int64)
        if self.persons is not None and schema.person is not None:
            persons = self.persons[self.columns[schema.person].codes[start:stop]]
        return Arrivals(quasi, persons, secrets, cells, unknown)


def _column(name: str, cell: Any) -> Column:
    """A single cell as a frame would bring it, by a short way where that is the same."""
    kind = type(cell)
    same = cell is None or kind is int or kind is bool or (kind is str and cell != "") or (kind is float and isfinite(cell))
    return Columns.of({name: [cell + 0.0 if kind is float else cell]})[name] if same else column_from_cell(cell, name)


def _single(cell: Any) -> Cells:
    cells = np.empty(1, dtype=object)
    cells[0] = cell
    return cells


def _ranges(lo: Reals, hi: Reals) -> list[str]:
    """Ranges of numbers as they are written; the text of each end is made once."""
    ends, place = np.unique(np.concatenate([lo, hi]), return_inverse=True)
    texts, place = [plain_number(end) for end in ends.tolist()], place.tolist()
    pairs = zip(place[: len(lo)], place[len(lo) :], strict=True)
    return [texts[a] if a == b else f"[{texts[a]}, {texts[b]}]" for a, b in pairs]


def value_text(value: Any) -> str:
    """The same for numbers that are equal, whatever type they came in."""
    return plain_number(value) if isinstance(value, int | float) else str(value)


def _find_domain(name: str, kind: Kind) -> Domain | None:
    """The domain of a column that has one before any row comes; None for plain numbers and for values that are equal or not."""
    if kind.name == "flat":
        return None
    if kind.name == "numeric":
        if kind.lo is None:  # type: ignore[attr-defined]
            raise BadInput("is numeric without bounds", column=name, right="a stream needs them beforehand: numeric(lo, hi)")
        if kind.snap and kind.step is None and not kind.bins:  # type: ignore[attr-defined]
            raise BadInput("has no step to snap to", column=name, right="a stream needs it beforehand: numeric(lo, hi, step)")
        return kind.bind(np.array([], dtype=np.float64))[0] if kind.bins else None  # type: ignore[attr-defined]
    if kind.name == "date" and kind.lo is not None:  # type: ignore[attr-defined]
        return kind.bind(kind.between_bounds())[0]  # type: ignore[attr-defined]
    if kind.name == "tree" and not getattr(kind, "from_data", False):
        return kind.bind(np.array([], dtype=object))[0]
    right = "declare it beforehand: date(lo=, hi=), or a Hierarchy (Hierarchy.prefix(values) for codes)"
    raise BadInput(f"is {kind.name}, and its domain would be read off the rows", column=name, right=right)


def _numbers(values: NDArray[np.generic], low: float, high: float) -> tuple[Reals, NDArray[np.bool_]]:
    """Raw values as numbers, and whether each is none or outside its bounds."""
    if values.dtype.kind in "iufb":
        numbers = values.astype(np.float64)
    else:
        texts = [str(value) for value in values.tolist()]
        numbers = np.array([float(text) if NUMBER_TEXT.fullmatch(text) else np.nan for text in texts], dtype=np.float64)
    return numbers, ~((numbers >= low) & (numbers <= high))


def _bind_values(
    kind: Kind, values: NDArray[np.generic], domain: Domain | None
) -> tuple[Domain, NDArray[np.int32], NDArray[np.bool_]]:
    """As `kind.bind`, but values that it refuses are marked instead."""
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
        if domain is not None and kind.name == "date":  # bound to the days that came, not to all there may be
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


def _axes(schema: Schema, domains: Mapping[str, Domain | None]) -> Axes:
    kinds, spans, missing, starts, weights = [], [], [], [], np.array(schema.weights(), dtype=np.float64)
    nodes: list[tuple[NDArray[Any], ...]] = []
    leaves = count = 0
    for name, kind in schema.quasi.items():
        domain = domains[name]
        starts.append(leaves)
        tree = domain.tree if domain is not None else None
        kinds.append(EQUAL if kind.name == "flat" else NUMBER if tree is None else TREE)
        if kinds[-1] == NUMBER and domain is None:
            low, high = kind.bounds  # type: ignore[attr-defined]
            spans.append(high - low)
        else:
            spans.append(float(max(domain.size - 1, 1)) if domain is not None else 1.0)
        missing.append(FAR if domain is None else float(domain.size))
        if tree is not None and domain is not None:
            nodes.append((tree.leaf_node + count, tree.parent + count, tree.hi, domain.node_losses))
            leaves, count = leaves + len(tree.leaf_node), count + len(tree.parent)
    empty = np.empty(0, dtype=np.int64)
    leaf_node, parent, hi = (np.concatenate([empty, *(part[i] for part in nodes)]).astype(np.int64) for i in range(3))
    node_loss = np.concatenate([np.empty(0), *(part[3] for part in nodes)])
    far = np.array(missing)
    return Axes(
        np.array(kinds, np.int64),
        np.array(spans),
        far,
        np.where(far == FAR, 2 * FAR, far + 1),
        np.array(starts, np.int64),
        leaf_node,
        parent,
        hi,
        node_loss,
        weights / weights.sum() if len(weights) else weights,
    )

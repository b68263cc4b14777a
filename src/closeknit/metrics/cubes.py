"""Group-bys of a release: the expected rows of every cell, for columns that are lists of values.

A column is cut into single values, and a written cell spreads its row evenly over those in its range: leaves of a tree or bins;
numbers by the grid they lie on (the declared step, or 1 where all of them are whole), so that [30, 39] always holds ten values;
other numbers by the distinct values of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.perturbation import Law
from closeknit.core.row_sorting import groups, row_of_each
from closeknit.core.schema import Schema
from closeknit.forms.column_axes import Axis
from closeknit.kernels.arrays import Int32, Int64, Reals
from closeknit.kernels.counting.cubes import SortedPoints, StackedParts, spread
from closeknit.metrics.query_answers import combinations

NARROW = 1e-9  # by which a number may miss its grid
ROOM = 1 << 24  # keys up to which the points below each of them are tabulated
MOST_KEYS = 1 << 62
FEW = 1024


@dataclass(frozen=True, eq=False)
class Values:
    """One column as the list of values that rows of the table can have; a place is an entry of it.

    >>> from closeknit.core.kinds import numeric
    >>> ages = Values(Axis("age", numeric(0, 99).bind(np.array([30, 41, 35]))[0]))
    >>> [ends.tolist() for ends in ages.boxes(Columns.of({"age": ["[30, 39]", "41", "*"]})["age"])]
    [[0, 2, 0, 0], [1, 2, 2, -1], [10.0, 1.0, 100.0, 1.0]]
    """

    axis: Axis

    @property
    def size(self) -> int:
        """Number of values."""
        return self.axis.domain.size

    @cached_property
    def grid(self) -> float | None:
        """Distance of two neighbouring numbers of the domain; None where it is unknown."""
        numbers = self.axis.domain.numbers
        if self.axis.leaves or numbers is None:
            return None
        for step in (self.axis.domain.step, 1.0):
            if step and bool((np.abs(numbers / step - np.round(numbers / step)) <= NARROW).all()):
                return float(step)
        return None

    def places(self, column: Column, schema: Schema) -> Int32:
        """Return the value of every row of the table; -1 is a missing one."""
        return self.axis.leaf_column(column, schema).codes

    def boxes(self, column: Column) -> tuple[Int32, Int32, Reals]:
        """Return first and last place of each distinct cell and its number of values; the missing cell has no place."""
        lo, hi = self.axis.ranges(column)
        missing = np.isnan(lo)
        a, b = np.where(missing, 0, lo), np.where(missing, 0, hi)
        if self.axis.leaves:
            first, last, width = a, b - 1, b - a
        else:
            numbers = self.axis.domain.numbers
            assert numbers is not None
            first, last = np.searchsorted(numbers, a, "left"), np.searchsorted(numbers, b, "right") - 1
            width = last - first + 1
            if self.grid:
                width = np.floor(b / self.grid + NARROW) - np.ceil(a / self.grid - NARROW) + 1
        first, last = np.where(missing, 0, first), np.where(missing, -1, last)
        return first.astype(np.int32), last.astype(np.int32), np.maximum(width, 1.0)


@dataclass(frozen=True, eq=False)
class Parts:
    """One group of columns in each bucket: boxes with the rows that a single value in them is expected to have."""

    names: tuple[str, ...]
    starts: Int64  # [buckets + 1]
    lo: Int32  # [parts, names]
    hi: Int32
    weights: Reals

    def column(self, name: str) -> tuple[Int32, Int32]:
        """Return both ends in one column."""
        place = self.names.index(name)
        return self.lo[:, place], self.hi[:, place]

    def of(self, bucket: int) -> Parts:
        """Return the parts of one bucket."""
        a, b = self.starts[bucket : bucket + 2]
        return Parts(self.names, np.array([0, b - a]), self.lo[a:b], self.hi[a:b], self.weights[a:b])


@dataclass(frozen=True, eq=False)
class CubeGroup:
    """Columns that belong together, as in `query_answers.Group`: the distinct combinations of cells in each bucket."""

    columns: Columns
    names: tuple[str, ...]
    row: Int64  # one of each combination
    bucket_of: Int32
    counts: Reals
    buckets: int
    boxes: Mapping[str, tuple[Int32, Int32, Reals]]
    known: dict[tuple[str, ...], Parts] = field(default_factory=dict)  # of single columns: every group-by needs them again

    @classmethod
    def of(
        cls, columns: Columns, names: Sequence[str], values: Mapping[str, Values], bucket_of: Int32, buckets: int
    ) -> CubeGroup:
        """Count combinations of rows."""
        boxes = {name: values[name].boxes(columns[name]) for name in names}
        return cls(columns, tuple(names), *combinations(columns, names, bucket_of, buckets), buckets, boxes)

    def parts(self, names: tuple[str, ...]) -> Parts:
        """Return the parts of some of its columns."""
        if len(names) > 1:
            return self._parts(names)
        if names not in self.known:
            self.known[names] = self._parts(names)
        return self.known[names]

    def _parts(self, names: tuple[str, ...]) -> Parts:
        row, bucket_of, counts = self.row, self.bucket_of, self.counts
        if len(names) < len(self.names) and len(row) > self.buckets:
            codes = [self.columns[name].take(row).coded for name in names]
            same, count = groups([(bucket_of, self.buckets), *codes], len(row))
            first = row_of_each(same, count)
            counts = np.bincount(same, weights=counts, minlength=count).astype(np.float64)
            row, bucket_of = row[first], bucket_of[first]
        ends = [self._ends(name, row) for name in names]
        lo, hi = (np.column_stack([end[i] for end in ends]) for i in (0, 1))
        weights = counts / np.prod([end[2] for end in ends], axis=0)
        return Parts(names, np.searchsorted(bucket_of, np.arange(self.buckets + 1)).astype(np.int64), lo, hi, weights)

    def _ends(self, name: str, row: Int64) -> tuple[Any, Any, Any]:
        lo, hi, width = self.boxes[name]
        codes = self.columns[name].codes[row]
        return lo[codes], hi[codes], width[codes]


def undo_perturbation(parts: Parts, law: Law, values: int, sizes: Reals) -> Parts:
    """Estimate a perturbed attribute by its law: what the law adds to every value is one more part, below 0."""
    retain = float(law.retain)
    added = -(1 - retain) / (retain * law.values) * sizes
    owner = np.concatenate([np.repeat(np.arange(len(sizes)), np.diff(parts.starts)), np.arange(len(sizes))])
    order = np.argsort(owner, kind="stable")
    every = np.zeros((len(sizes), 1), dtype=np.int32)
    lo, hi = np.concatenate([parts.lo, every])[order], np.concatenate([parts.hi, every + (values - 1)])[order]
    weights = np.concatenate([parts.weights / retain, added])[order]
    return Parts(parts.names, parts.starts + np.arange(len(parts.starts)), lo.astype(np.int32), hi.astype(np.int32), weights)


@dataclass(frozen=True, eq=False)
class Points:
    """Cells of a group-by that hold rows: the place of each in every column."""

    places: Mapping[str, Int64]
    sizes: Mapping[str, int]
    counts: Int64

    @classmethod
    def of(cls, places: Mapping[str, Int32], sizes: Mapping[str, int]) -> Points:
        """Count rows; a row without a value in one of the columns is in no cell."""
        kept = np.logical_and.reduce([column >= 0 for column in places.values()])
        key = np.zeros(int(kept.sum()), dtype=np.int64)
        for name, column in places.items():
            key = key * sizes[name] + column[kept]
        total = _keys(sizes)
        if total <= ROOM:
            counted = np.bincount(key, minlength=total)
            cells = np.flatnonzero(counted)
            counts = counted[cells]
        else:
            cells, counts = np.unique(key, return_counts=True)
        found: dict[str, Int64] = {}
        for name in reversed(list(places)):
            cells, found[name] = np.divmod(cells, sizes[name])
        return cls({name: found[name] for name in places}, sizes, counts)

    def __len__(self) -> int:
        return len(self.counts)

    def estimate_rows(self, parts: Sequence[Parts], sizes: Reals) -> Reals:
        """Return how many rows an analyst expects in each cell; groups of columns are independent inside a bucket."""
        found = np.diff([part.starts for part in parts], axis=1).astype(np.float64)
        large = np.prod(found, axis=0) > max(len(self), FEW)  # boxes: it is then less work to evaluate each group per cell
        rows = self._spread(parts, sizes, np.flatnonzero(~large))
        for bucket in np.flatnonzero(large).tolist():
            rows += sizes[bucket] * np.prod([self._alone(part.of(bucket)) / sizes[bucket] for part in parts], axis=0)
        return rows

    def _alone(self, part: Parts) -> Reals:
        """Return what one group of columns implies for each cell, in one bucket."""
        names = part.names
        same, count = groups([(self.places[name], self.sizes[name]) for name in names], len(self))
        first = row_of_each(same, count)
        places = {name: self.places[name][first] for name in names}
        cells = Points(places, {name: self.sizes[name] for name in names}, np.ones(count, dtype=np.int64))
        rows: Reals = cells._spread([part], np.ones(1), np.zeros(1, dtype=np.int64))[same]
        return rows

    def _spread(self, parts: Sequence[Parts], sizes: Reals, buckets: Int64) -> Reals:
        """Sum over passes: columns are compared in blocks of all lengths that some box has."""
        widest = {name: _widest(part, name) for part in parts for name in part.names}
        names = sorted(self.places, key=lambda name: (widest[name], self.sizes[name], name))  # the last one costs least
        stacked = _stack(parts, names)
        rows = np.zeros(len(self))
        lengths = [range(widest[name].bit_length()) for name in names[:-1]]
        for shifts in product(*lengths):
            order, points = self._sort_by_key(names, shifts)
            rows[order] += spread(points, stacked, sizes, buckets)
        return rows

    def _sort_by_key(self, names: Sequence[str], shifts: Sequence[int]) -> tuple[Int64, SortedPoints]:
        """Order the points by their blocks and their last place."""
        counts = {name: (self.sizes[name] >> shift) + 2 for name, shift in zip(names[:-1], shifts, strict=True)}
        counts[names[-1]] = self.sizes[names[-1]] + 1
        total = _keys(counts)
        strides, key = [], np.zeros(len(self), dtype=np.int64)
        rest = total
        for name, shift in zip(names, [*shifts, 0], strict=True):
            rest //= counts[name]
            strides.append(rest)
            key += (self.places[name] >> shift) * rest
        order = np.argsort(key, kind="stable")
        below = np.empty(0, dtype=np.int32)
        if total <= min(ROOM, 64 * len(self) + 65_536):
            below = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=total))]).astype(np.int32)
        return order, SortedPoints(key[order], below, np.array(strides[:-1], dtype=np.int64), np.array(shifts, dtype=np.int64))


def _keys(sizes: Mapping[str, int]) -> int:
    total = 1
    for size in sizes.values():
        total *= max(size, 1)
    if total > MOST_KEYS:
        raise BadInput("the group-by of " + ", ".join(sizes) + " has too many cells", right="choose a lower level")
    return total


def _widest(part: Parts, name: str) -> int:
    """Return the most values of the table that one box has in a column."""
    lo, hi = part.column(name)
    return max(int((hi - lo).max(initial=0)) + 1, 1)


def _stack(parts: Sequence[Parts], names: Sequence[str]) -> StackedParts:
    """Stack the parts of all groups, columns in order, as the compiled loop takes them."""
    before = np.cumsum([0, *(len(part.weights) for part in parts)])
    starts = np.array([part.starts + first for part, first in zip(parts, before, strict=False)], dtype=np.int64)
    lo, hi = (np.zeros((before[-1], len(names)), dtype=np.int32) for _ in range(2))
    part_of = np.zeros(len(names), dtype=np.int64)
    for g, part in enumerate(parts):
        for name in part.names:
            d = names.index(name)
            part_of[d] = g
            lo[before[g] : before[g + 1], d], hi[before[g] : before[g + 1], d] = part.column(name)
    weights = np.concatenate([part.weights for part in parts])
    return StackedParts(starts, lo, hi, weights, part_of)

"""Rows of a bucket that match a query in a group of columns, as far as the cells show: the parts of COUNT query answers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.perturbation import Law
from closeknit.core.row_sorting import groups, row_of_each
from closeknit.core.transition import AnyLaw, Transition
from closeknit.forms.column_axes import Axis
from closeknit.kernels.arrays import Int32, Reals
from closeknit.kernels.counting.queries import CellRanges, Words, below, every, rows_below, sums, weigh

QueryRanges = Mapping[str, tuple[float, float]]  # the range of each column, on its axis
WIDE = 1 << 27  # bytes of the bits (or counts) of one column, beyond which its cells are examined one by one


def combinations(
    columns: Columns, names: Sequence[str], bucket_of: Int32, buckets: int
) -> tuple[NDArray[np.int64], Int32, Reals]:
    """Return a row of every combination of cells that occurs in a bucket, its bucket, and its number of rows, bucket by bucket.

    >>> columns = Columns.of({"age": [30, 30, 41]})
    >>> [found.tolist() for found in combinations(columns, ["age"], np.array([1, 1, 0], np.int32), 2)]
    [[2, 1], [0, 1], [1.0, 2.0]]
    """
    keys = [(bucket_of, buckets), *(columns[name].coded for name in names)]
    combination, count = groups(keys, columns.rows)
    row = row_of_each(combination, count)
    return row, bucket_of[row], np.bincount(combination, minlength=count).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one column: the distinct cell of each combination, and their ranges, in ascending order.

    >>> cells = Cells.of(np.array([1, 0, -1], np.int32), np.array([40.0, 30.0, np.nan]), np.array([40.0, 30.0, np.nan]), False)
    >>> cells.between(35, 50), cells.ranges.codes.tolist()
    ((1, 2), [0, 1, 2])
    """

    ranges: CellRanges  # the missing cell last
    marks: Words | None  # of exact cells: those below each distinct one
    ends: tuple[list[float], list[float]]  # of exact cells, for bisection

    @classmethod
    def of(cls, codes: Int32, lo: Reals, hi: Reals, leaves: bool) -> Cells:
        """Build from codes into ranges; -1 is the missing cell, the last one."""
        order = np.lexsort((hi, lo))  # NaN comes last
        rank = np.empty(len(lo), dtype=np.int32)
        rank[order] = np.arange(len(lo), dtype=np.int32)
        known = int((~np.isnan(lo)).sum())
        exact = bool((hi - lo <= leaves)[order[:known]].all())
        ranked = rank[codes]
        room = (known + 1) * len(codes) // 8 <= WIDE
        marks = below(ranked, known) if exact and room else None
        shown = order[: 0 if marks is None else known]
        return cls(CellRanges(ranked, lo[order], hi[order]), marks, (lo[shown].tolist(), hi[shown].tolist()))

    def between(self, a: float, b: float) -> tuple[int, int]:
        """Return the exact cells inside a range: the first one, and the first one after them."""
        first = bisect_left(self.ends[0], a)
        return first, max(first, bisect_right(self.ends[1], b))

    def narrow(self, left: Words, a: float, b: float) -> bool:
        """Keep the cells between a and b; False where cells are not exact."""
        if self.marks is not None:
            first, last = self.between(a, b)
            left &= self.marks[last] & ~self.marks[first]
        return self.marks is not None


@dataclass(frozen=True, eq=False)
class Group:
    """Columns that belong together: every combination of cells that occurs in a bucket, and its number of rows.

    >>> from closeknit.core.kinds import numeric
    >>> columns, domain = Columns.of({"age": ["[30, 40]", "35", "90"]}), numeric().bind(np.array([30, 35, 90]))[0]
    >>> group = Group.of(columns, ["age"], {"age": Axis("age", domain)}, np.array([0, 0, 1], np.int32), 2)
    >>> group.matching({"age": (30.0, 35.0)}).tolist()
    [1.5, 0.0]
    """

    bucket_of: Int32
    buckets: int
    counts: Reals
    cells: Mapping[str, Cells]
    scratch: Reals
    rows_below: Reals | None  # of a single exact column, by bucket: no cell needs to be examined

    @classmethod
    def of(cls, columns: Columns, names: Sequence[str], axes: Mapping[str, Axis], bucket_of: Int32, buckets: int) -> Group:
        """Count combinations of rows, in the order of the buckets."""
        row, owner, counts = combinations(columns, names, bucket_of, buckets)
        cells = {
            name: Cells.of(columns[name].codes[row], *axes[name].ranges(columns[name]), axes[name].leaves) for name in names
        }
        alone = cells[names[0]] if len(names) == 1 else None
        known = 0 if alone is None or alone.marks is None else len(alone.marks) - 1
        few = 0 < 8 * known * buckets <= WIDE
        rows = rows_below(alone.ranges.codes, known, counts, owner, buckets) if alone is not None and few else None
        return cls(owner, buckets, counts, cells, np.empty(len(row)), rows)

    def matching(self, ranges: QueryRanges) -> Reals | None:
        """Return the rows of each bucket that match in these columns; None if there is no range for any of them."""
        wanted = [(self.cells[name], a, b) for name, (a, b) in ranges.items() if name in self.cells]
        if not wanted:
            return None
        if self.rows_below is not None:
            first, last = wanted[0][0].between(*wanted[0][1:])
            return self.rows_below[last] - self.rows_below[first]
        left = every(len(self.counts))
        coarse = [(cells, a, b) for cells, a, b in wanted if not cells.narrow(left, a, b)]
        weights = self.counts
        for cells, a, b in coarse:
            weigh(left, weights, cells.ranges, a, b, self.scratch)
            weights = self.scratch
        return sums(left, weights, self.bucket_of, self.buckets)


@dataclass(frozen=True, eq=False)
class PerturbedGroup:
    """A perturbed attribute: matching rows as its law lets them be estimated, without bias; they may be below 0."""

    group: Group
    secret: str
    law: Law
    sizes: Reals

    def matching(self, ranges: QueryRanges) -> Reals | None:
        """Return the rows of each class that truly match."""
        written = self.group.matching(ranges)
        if written is None:
            return None
        a, b = ranges[self.secret]
        retain = float(self.law.retain)
        return (written - (1 - retain) * (b - a) / self.law.values * self.sizes) / retain


def undo_perturbation(group: Group, secret: str, law: AnyLaw, sizes: Reals) -> Group | PerturbedGroup:
    """Return the group as it answers where this attribute is perturbed."""
    if secret not in group.cells:
        return group
    return PerturbedGroup(group, secret, refuse_replaced(secret, law), sizes)


def refuse_replaced(secret: str, law: AnyLaw) -> Law:
    """Refuse an attribute whose law retains nothing, or is a full matrix."""
    if isinstance(law, Transition):
        right = "query another column; its certificate has estimates of the true counts"
        raise BadInput("is perturbed by a matrix, and queries about it are not answered", column=secret, right=right)
    if law.retain == 0:
        raise BadInput("is replaced in every row, so it cannot be counted", column=secret, right="query another column")
    return law

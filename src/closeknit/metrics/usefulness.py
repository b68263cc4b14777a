"""How useful a release still is, column by column: its distributions and associations next to those of the original.

As for COUNT queries, a row lies uniformly in its cells, so a cell counts in every bin by the share of it that lies there. This
is the mean over all tables that the release may represent: nothing is drawn at random. Inside a bucket, groups of columns that
do not line up are combined with all rows of the bucket alike.

The association of two columns is Cramér's V of their bins, from 0 (independent) to 1 (one determines the other). It applies to
numbers and categories alike. Cost: O(rows) for each pair of columns.

Source: H. Cramér, Mathematical methods of statistics, 1946, sec. 21.9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Codes, Column
from closeknit.core.exact import plain_number
from closeknit.core.reading import Reading
from closeknit.core.record import Record
from closeknit.core.schema import Schema
from closeknit.forms.column_axes import Axis, axes_of, original_columns
from closeknit.forms.release_reading import Published, reading_of
from closeknit.kernels.arrays import Reals

Matrix = tuple[tuple[float, ...], ...]
BINS = 10  # of a column, missing cells apart
MOST_LEAVES = 12  # that are bins of their own
MOST_COLUMNS = 12  # whose associations are compared
MISSING = "missing"
DENSE = 1_000_000  # pairs of cells that are counted in a full table


class Distribution(Record):
    """How a column is distributed before and after.

    Args:
        column: The column.
        bins: Names of its bins.
        original: Share of the original rows in each bin.
        published: Share of the published rows in each bin.
        distance: Half the sum of the differences: the share of rows that would have to change their bin.
    """

    column: str
    bins: tuple[str, ...]
    original: tuple[float, ...]
    published: tuple[float, ...]
    distance: float


class Usefulness(Record):
    """Distributions and associations of a release and of its original.

    Args:
        distributions: One for each column.
        columns: Columns whose associations are compared.
        original: Associations in the original, each column with each.
        published: Associations in the release.
    """

    distributions: tuple[Distribution, ...]
    columns: tuple[str, ...]
    original: Matrix
    published: Matrix

    @property
    def change(self) -> float | None:
        """Mean difference of the associations of two columns; None if there are no two."""
        pairs = np.triu_indices(len(self.columns), 1)
        if not len(pairs[0]):
            return None
        return float(np.abs(np.array(self.original)[pairs] - np.array(self.published)[pairs]).mean())


@dataclass(frozen=True, eq=False)
class _Bins:
    """Bins of one column as edges on its axis."""

    axis: Axis
    edges: Reals
    names: tuple[str, ...]

    @classmethod
    def of(cls, axis: Axis, column: Column) -> _Bins:
        """Bins for the leaves of a column: leaf by leaf, runs of leaves, or ranges of numbers with outliers at the ends."""
        low, high = axis.ends
        if axis.leaves:
            count = int(high - low)
            edges: Reals = np.arange(count + 1.0) if count <= MOST_LEAVES else np.linspace(0, count, BINS + 1).round()
            texts = axis.domain.texts
            ends = [(texts[int(a)], texts[int(b) - 1]) for a, b in pairwise(edges)]
            return cls(axis, edges, tuple(a if a == b else f"{a} … {b}" for a, b in ends))
        numbers = np.mean(axis.ranges(column), axis=0)[: len(column.values)]  # the middle of a coded number: 90+, [20, 25]
        lower, upper = np.percentile(np.repeat(numbers, column.counts), (2, 98)) if column.counts.sum() else (low, high)
        inner = np.linspace(lower, upper, BINS + 1)[1:-1] if upper > lower else np.empty(0)
        edges = np.unique(np.array([low, *(float(f"{edge:.3g}") for edge in inner if low < edge < high), high]))
        shown = [plain_number(edge) for edge in edges.tolist()]
        ranges = [f"{a} to {b}" for a, b in pairwise(shown)]
        return cls(axis, edges if len(edges) > 1 else np.array([low, low + 1]), tuple(ranges or [shown[0]]))

    def shares(self, column: Column) -> Reals:
        """The share of every distinct cell in every bin, the missing one last: [cells + 1, bins + 1]."""
        lo, hi = self.axis.ranges(column)
        first, last, missing = self.edges[:-1], self.edges[1:], np.isnan(lo)
        lo, hi = np.where(missing, 0.0, lo)[:, None], np.where(missing, 0.0, hi)[:, None]
        width = np.where(hi > lo, hi - lo, 1.0)
        spread = np.clip(np.minimum(hi, last) - np.maximum(lo, first), 0, None) / width
        place = np.clip(np.searchsorted(self.edges, lo[:, 0], side="right") - 1, 0, len(first) - 1)
        single = np.arange(len(first)) == place[:, None]
        found = np.where(hi > lo, spread, single) * ~missing[:, None]
        return np.column_stack([found, missing])


@dataclass(frozen=True, eq=False)
class _View:
    """A table as its analyst sees it: the code of each row's cell, and the share of each cell in each bin."""

    codes: Mapping[str, Codes]  # the missing cell is the last one
    shares: Mapping[str, Reals]

    @classmethod
    def of(cls, columns: Mapping[str, Column], bins: Mapping[str, _Bins]) -> _View:
        """The view of these columns."""
        codes = {name: np.where(columns[name].codes < 0, len(columns[name].values), columns[name].codes) for name in bins}
        return cls(codes, {name: bins[name].shares(columns[name]) for name in bins})

    def masses(self, name: str) -> Reals:
        """Rows in each bin."""
        masses: Reals = np.bincount(self.codes[name], minlength=len(self.shares[name])) @ self.shares[name]
        return masses

    def masses_by(self, class_of: NDArray[np.int32], classes: int, name: str) -> Reals:
        """Rows in each bin, by class."""
        masses: Reals = _count_pairs(class_of, self.codes[name], (classes, len(self.shares[name]))) @ self.shares[name]
        return masses

    def joint(self, one: str, other: str) -> Reals:
        """Rows in each pair of bins, where both cells of a row belong together."""
        counts = _count_pairs(self.codes[one], self.codes[other], (len(self.shares[one]), len(self.shares[other])))
        joint: Reals = self.shares[one].T @ (counts @ self.shares[other])
        return joint


def _count_pairs(one: Codes, other: Codes, shape: tuple[int, int]) -> Any:
    """Rows of each pair of codes, as a matrix; a large one is sparse."""
    if shape[0] * shape[1] <= DENSE:
        return np.bincount(one.astype(np.int64) * shape[1] + other, minlength=shape[0] * shape[1]).reshape(shape)
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(one)), (one, other)), shape=shape)


def usefulness(published: Published | Reading, original: Any, schema: Schema) -> Usefulness:
    """Compare the distributions and associations of a release with those of its original.

    Args:
        published: A release, or what its form read.
        original: The table that it was computed from.
        schema: Schema of the table.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> found = usefulness(ck.anonymize(table, schema, [ck.KAnonymity(5)]), table, schema)
    >>> [round(one.distance, 3) for one in found.distributions if one.column in schema.sensitive]
    [0.0, 0.0, 0.0]
    >>> 0 < found.change < 1
    True
    """
    reading, columns = reading_of(published), original_columns(original, schema)
    axes = {name: axis for name, axis in axes_of(columns, schema).items() if name in reading.columns}
    leaves = {name: axis.leaf_column(columns[name], schema) for name, axis in axes.items()}
    bins = {name: _Bins.of(axis, leaves[name]) for name, axis in axes.items()}
    before, after = _View.of(leaves, bins), _View.of(reading.columns, bins)
    compared = tuple(axes)[:MOST_COLUMNS]
    return Usefulness(
        distributions=tuple(_compare(name, bins[name], before, after) for name in axes),
        columns=compared,
        original=_matrix(compared, before.joint),
        published=_matrix(compared, lambda one, other: _joint_in_release(reading, after, one, other)),
    )


def _compare(name: str, bins: _Bins, before: _View, after: _View) -> Distribution:
    masses = [view.masses(name) for view in (before, after)]
    there, gone = (mass / max(mass.sum(), 1) for mass in masses)
    kept = len(there) if there[-1] or gone[-1] else len(there) - 1
    return Distribution(
        column=name,
        bins=(*bins.names, MISSING)[:kept],
        original=tuple(there[:kept].tolist()),
        published=tuple(gone[:kept].tolist()),
        distance=float(np.abs(there - gone).sum() / 2),
    )


def _joint_in_release(reading: Reading, view: _View, one: str, other: str) -> Reals:
    groups = reading.column_groups or (tuple(reading.columns),)
    if any(one in group and other in group for group in groups):
        return view.joint(one, other)
    first, second = (view.masses_by(reading.class_of, len(reading.classes), name) for name in (one, other))
    joint: Reals = first.T @ (second / np.maximum(reading.classes.sizes, 1)[:, None])
    return joint


def _matrix(names: Sequence[str], joint: Any) -> Matrix:
    found = np.eye(len(names))
    for i, one in enumerate(names):
        for j in range(i):
            found[i, j] = found[j, i] = cramers_v(joint(one, names[j]))
    return tuple(map(tuple, found.tolist()))


def cramers_v(joint: Reals) -> float:
    """Association of two columns: 0 if they are independent or one is constant, 1 if one determines the other.

    Args:
        joint: Rows in each pair of bins.

    >>> cramers_v(np.array([[5.0, 0.0], [0.0, 5.0]])), cramers_v(np.array([[2.0, 2.0], [3.0, 3.0]]))
    (1.0, 0.0)
    """
    joint = joint[joint.sum(axis=1) > 0][:, joint.sum(axis=0) > 0]
    freedom = min(joint.shape) - 1
    if freedom < 1:
        return 0.0
    rows, columns, total = joint.sum(axis=1), joint.sum(axis=0), joint.sum()
    expected = rows[:, None] * columns / total
    return float(min(np.sqrt((((joint - expected) ** 2) / expected).sum() / (total * freedom)), 1.0))

"""Adult in buckets: column groups as codes, groupings of rows, and the attack on membership of each.

The settings are those of the paper on slicing, sec. 5.1: OCC-7 and OCC-15, random buckets of p rows, c column groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from closeknit.attacks import Membership, membership
from closeknit.fills.spreading import spread_buckets
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys
from closeknit.kernels.slicing.fakes import fitting, index_buckets

Int32 = NDArray[np.int32]
Slice = tuple[tuple[str, ...], ...]
SEED, MANY = 7, 20
SIZES, USUAL = (10, 100, 500, 1000), 100
SECRET = "occupation"
OCC_7 = ("age", "workclass", "education", "marital-status", "race", "sex", SECRET)
FIVE: Slice = (("age", "marital-status", "sex"), ("workclass",), ("education",), ("race",), (SECRET,))
TWO: Slice = (("age", "marital-status", "sex"), ("workclass", "education", "race", SECRET))
BUCKETIZED: Slice = (OCC_7[:-1], (SECRET,))
OCC_15: Slice = (
    ("age", "workclass", "education", "education-num", "capital-gain", "hours-per-week", "salary-class"),
    ("marital-status", SECRET, "relationship", "sex"),
    ("race", "native-country"),
    ("fnlwgt",),
    ("capital-loss",),
)


def shown(columns: Slice) -> str:
    """Column groups for a reader.

    >>> shown((("a", "b"), ("c",)))
    'a, b / c'
    """
    return " / ".join(", ".join(group) for group in columns)


@dataclass(frozen=True)
class Sliced:
    """A table as codes per column group, with the sensitive attribute and without."""

    values: Int32
    known: Int32

    @classmethod
    def of(cls, frame: pl.DataFrame, columns: Slice) -> Sliced:
        known = tuple(tuple(name for name in group if name != SECRET) for group in columns)
        return cls(coded(frame, columns), coded(frame, known))

    def attacked(self, bucket_of: Int32) -> Membership:
        return membership(bucket_of, self.values, self.values, self.known, seed=SEED)

    def rows_with_many(self, bucket_of: Int32) -> int:
        """Rows of the table, not different tuples, that fit into more than 20 buckets: what the source counts."""
        shelves = index_buckets(bucket_of, self.values, self.values.max(axis=0).astype(np.int64) + 1)
        return int((fitting(shelves, self.values) > MANY).sum())


def coded(frame: pl.DataFrame, columns: Slice) -> Int32:
    dense = [pl.struct(group).rank("dense") - 1 if group else pl.lit(0) for group in columns]
    cells = [frame.select(one.cast(pl.Int32).alias("code")).to_series() for one in dense]
    return np.column_stack([np.broadcast_to(cell.to_numpy(), frame.height) for cell in cells])


# Groupings -----------------------------------------------------------------------------------------------------------------


def chance(values: Int32, size: int) -> Int32:
    """Random buckets, the last one smaller."""
    return _cut(np.random.default_rng(SEED).permutation(len(values)), size)


def dealt(values: Int32, size: int) -> Int32:
    """Rows sorted by their values, the widest column group first, most frequent values first, dealt out in turn."""
    ranked, widths = _ranked(values), [len(np.unique(column)) for column in values.T]
    return _deal(np.lexsort([ranked[:, j] for j in np.argsort(widths, kind="stable")]), size)


def dealt_along_the_curve(values: Int32, size: int) -> Int32:
    """Rows in the order of the Hilbert curve, dealt out in turn."""
    return _deal(_along_the_curve(values), size)


def cut_from_the_curve(values: Int32, size: int) -> Int32:
    """Rows in the order of the Hilbert curve, cut into pieces: similar rows share a piece."""
    return _cut(_along_the_curve(values), size)


def anchored(values: Int32, size: int) -> Int32:
    """All rows of one value of the widest column group in one bucket, the values in random order."""
    rng = np.random.default_rng(SEED)
    widest = values[:, np.argmax([len(np.unique(column)) for column in values.T])]
    return _cut(np.lexsort([rng.permutation(len(values)), rng.permutation(widest.max() + 1)[widest]]), size)


def spread(values: Int32, size: int) -> Int32:
    """Dealt out, then rows exchanged as long as buckets come to hold more different values."""
    return spread_buckets(values, size, SEED)


GROUPINGS: dict[str, Callable[[Int32, int], Int32]] = {
    "random": chance,
    "sorted and dealt": dealt,
    "Hilbert order, dealt": dealt_along_the_curve,
    "spread": spread,
    "anchored": anchored,
    "Hilbert order, cut": cut_from_the_curve,
}
SCATTERED = ("random", "sorted and dealt", "Hilbert order, dealt", "spread")  # they put like rows into different buckets


def _ranked(values: Int32) -> Int32:
    counts = [np.bincount(column) for column in values.T]
    ranks = [np.argsort(np.argsort(-count, kind="stable"), kind="stable") for count in counts]
    return np.column_stack([rank[column] for rank, column in zip(ranks, values.T, strict=True)]).astype(np.int32)


def _along_the_curve(values: Int32) -> NDArray[np.int64]:
    return np.argsort(hilbert_keys(_ranked(values) / (values.max(axis=0) + 1.0)), kind="stable")


def _cut(order: NDArray[np.int64], size: int) -> Int32:
    bucket_of = np.empty(len(order), np.int32)
    bucket_of[order] = np.arange(len(order)) // size
    return bucket_of


def _deal(order: NDArray[np.int64], size: int) -> Int32:
    bucket_of = np.empty(len(order), np.int32)
    bucket_of[order] = np.arange(len(order)) % max(len(order) // size, 1)
    return bucket_of


# Attacks -------------------------------------------------------------------------------------------------------------------


def with_outsiders(table: Sliced, group: Callable[[Int32, int], Int32], size: int) -> Membership:
    """A random half is published; the other half are real people who are not in it."""
    order = np.random.default_rng(SEED).permutation(len(table.values))
    inside, outside = (table.values[np.sort(half)] for half in np.array_split(order, 2))
    return membership(group(inside, size), inside, inside, outsiders=outside, seed=SEED, most=0, draws=2)


def most_with_many(values: Int32) -> int:
    """Tuples that are in no row and of which every value has more than 20 rows."""
    frequent = [np.bincount(column) > MANY for column in values.T]
    originals = np.unique(values, axis=0)
    taken = np.all([often[column] for often, column in zip(frequent, originals.T, strict=True)], axis=0).sum()
    return int(np.prod([int(often.sum()) for often in frequent], dtype=object)) - int(taken)

"""Fakes: tuples that the buckets of a sliced release admit and that no row has, counted or sampled.

Each admitted tuple is visited once, with its number of buckets (`kernels.fakes.admitted`); the originals are then subtracted.
The work is the sum over buckets of the product of distinct values, known beforehand. Where that is too much the fakes are
estimated without bias: draw a bucket in proportion to its product and a tuple in it, and weigh it by 1 / its buckets (Karp and
Luby, Monte-Carlo algorithms for enumeration and reliability problems, FOCS 1983).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from closeknit.core.row_sorting import groups, row_of_each
from closeknit.kernels.arrays import Int32, Int64, Reals
from closeknit.kernels.slicing.fakes import BucketIndex, contains_rows, count_admitted, fitting, index_buckets


@dataclass(frozen=True, eq=False)
class Tallies:
    """Originals and others that match exactly 0, 1, 2 ... buckets; of sampled others also each draw and its weight.

    >>> Tallies(np.array([0, 0, 1]), np.array([0, 3, 1])).auc()
    Fraction(7, 8)
    """

    original: Int64
    other: Int64 | Reals
    fits: Int64 | None = None  # buckets of each drawn tuple
    weights: Reals | None = None  # others that it represents

    @property
    def count(self) -> int | float:
        """Number of distinct others."""
        count: int | float = self.other.sum().item()
        return count

    @property
    def error(self) -> float | None:
        """Standard error of the count; None where all were counted."""
        return None if self.weights is None else float(self.weights.std(ddof=1) * np.sqrt(len(self.weights)))

    def _ahead(self) -> list[Fraction]:
        """Return for each number of buckets the share of originals that match more, equal ones as halves."""
        total, above = int(self.original.sum()), 0
        shares = []
        for equal in self.original[::-1].tolist():
            shares.append(Fraction(2 * above + equal, 2 * total))
            above += equal
        return shares[::-1]

    def auc(self) -> Fraction | float | None:
        """Return P(an original matches more buckets than another), a rational where all were counted; None without either."""
        if not self.original.sum() or not self.other.sum():
            return None
        if self.weights is not None:
            return float(np.array(self._ahead(), np.float64) @ self.other / self.other.sum())
        weighed = (share * count for share, count in zip(self._ahead(), self.other.tolist(), strict=True) if count)
        return sum(weighed, start=Fraction(0)) / int(self.other.sum())

    def auc_error(self) -> float | None:
        """Return the standard error of `auc`: that of a quotient of two sums over the same draws."""
        auc = self.auc()
        if self.weights is None or self.fits is None or auc is None:
            return None
        gaps = self.weights * (np.array(self._ahead(), np.float64)[self.fits] - float(auc))
        return float(np.sqrt((gaps**2).sum()) / self.weights.sum())


def tally_fakes(bucket_of: Int32, values: Int32, originals: Int32, seed: int, most: int, draws: int) -> Tallies:
    """Count the fakes where the walk is short enough, else estimate them; `originals` as `distinct` returns them.

    >>> values = np.array([[0, 0], [1, 1]], np.int32)
    >>> tally_fakes(np.array([0, 0], np.int32), values, values, seed=0, most=100, draws=10).count
    2
    """
    shelves = index_buckets(bucket_of, values, _sizes(values, originals))
    original = _count_fits(shelves, originals)
    products = shelves.widths.prod(axis=1, dtype=np.float64)
    if products.sum() > most:
        return _draw_fakes(shelves, originals, original, products, np.random.default_rng(seed), draws)
    widest_last = np.argsort(shelves.widths.sum(axis=0), kind="stable")
    fake = count_admitted(shelves, widest_last)
    fake[1:] -= original[1:]  # an original that matches no bucket (its row is suppressed) is not among the admitted
    return Tallies(original, fake)


def tally_outsiders(bucket_of: Int32, values: Int32, originals: Int32, others: Int32) -> Tallies:
    """Tally originals and tuples of people outside the table, admitted or not; both as `distinct` returns them.

    >>> values = np.array([[0, 0], [1, 1]], np.int32)
    >>> tally_outsiders(np.array([0, 0], np.int32), values, values, np.array([[0, 0], [0, 1], [0, 2]], np.int32)).other.tolist()
    [1, 1]
    """
    others = others[~contains_rows(originals, others)]
    shelves = index_buckets(bucket_of, values, _sizes(values, originals, others))
    return Tallies(_count_fits(shelves, originals), _count_fits(shelves, others))


def distinct(tuples: Int32) -> Int32:
    """Return each tuple once, in ascending order.

    >>> distinct(np.array([[1, 0], [0, 2], [1, 0]], np.int32)).tolist()
    [[0, 2], [1, 0]]
    """
    group, count = groups([(column, int(column.max(initial=0)) + 1) for column in tuples.T], len(tuples))
    return tuples[row_of_each(group, count)]


def _sizes(*tuples: Int32) -> Int64:
    """Return one more than the largest code of each column group."""
    return np.max([given.max(axis=0, initial=0) for given in tuples], axis=0).astype(np.int64) + 1


def _count_fits(shelves: BucketIndex, tuples: Int32) -> Int64:
    return np.bincount(fitting(shelves, tuples), minlength=len(shelves.widths) + 1)


def _draw_fakes(
    shelves: BucketIndex, originals: Int32, original: Int64, products: Reals, rng: np.random.Generator, draws: int
) -> Tallies:
    """Estimate the fakes from a sample: one that m buckets admit is drawn in m ways, so it weighs 1/m of all ways."""
    c = len(shelves.first) - 1
    until = np.cumsum(products)
    bucket = np.searchsorted(until, rng.random(draws) * until[-1], side="right").clip(max=len(until) - 1)
    width = shelves.widths[bucket]
    place = (rng.random((draws, c)) * width).astype(np.int64).clip(max=width - 1)
    start = shelves.starts[bucket[:, None] * c + np.arange(c)]
    tuples = (shelves.values[start + place] - shelves.first[:-1]).astype(np.int32)
    fits = fitting(shelves, tuples)
    weights = np.where(contains_rows(originals, tuples), 0.0, until[-1] / draws / fits)
    return Tallies(original, np.bincount(fits, weights, minlength=len(original)), fits, weights)

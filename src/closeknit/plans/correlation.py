"""How much one attribute says of another: the mean-square contingency coefficient, over discretized values.

Numbers and dates are put into a few bins first, for correlation only: nothing here is ever published. Three ways:

- `frequency`: bins of nearly the same number of rows;
- `width`: bins of the same width between the least and the largest value;
- `kmeans`: one-dimensional k-means, cut at the midpoints between the sorted final centres.

Source: the paper on slicing, sec. 4.1.1 and 4.1.2, and its Algorithm 1.2. The correction is Bergsma's, A bias-correction for
Cramér's V and Tschuprow's T, 2013.

Different from the source:
- the coefficient is corrected for chance unless asked otherwise: as printed it is 1 between row numbers and anything;
- Algorithm 1.2 has no loop around its steps 5 to 7: they are repeated until no value changes its bin;
- its centres start from the first distinct values, which depend on the order of the rows, and stay where they are bad on skewed
  columns; here all values are cut in two, then one of the parts, and so on, always where squared distances fall most;
- it does not say what happens when a bin becomes empty: another one is cut in two, by the same rule;
- a column with no more distinct values than bins keeps them as they are (Algorithm 1.2 cannot start there).

Cost: O(n) per pair of attributes while their observed values make a small table, else O(n log n); one round of k-means costs
O(bins * log(distinct values)), however many rows there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from closeknit.core.domain import Domain
from closeknit.core.params import choice, whole
from closeknit.kernels.arrays import Int32, Int64, Reals

BINS = 10
HOW = ("frequency", "width", "kmeans")
ROUNDS = 300  # of k-means at most; it needs a few dozen
FEW = 1 << 16  # cells of a table of observed pairs that are always affordable
ROWS_PER_VALUE = (
    10  # an attribute with fewer says so much of single rows that it must not share a column group with a sensitive attribute
)


def discretize(codes: Int32, domain: Domain, bins: int = BINS, how: str = "frequency") -> Int32:
    """Bin of every row, bins ascending from 0; the missing leaf is a bin of its own, after the others.

    Attributes without an order (trees, flat ones) and those with at most `bins` different values keep one bin a value.

    >>> ages = Domain(tuple("abcdef"), numbers=np.array([20.0, 21, 22, 40, 41, 90]))
    >>> codes = np.array([0, 1, 2, 3, 4, 5, 6], dtype=np.int32)
    >>> [discretize(codes, ages, 3, how).tolist() for how in HOW]
    [[0, 0, 1, 1, 2, 2, 3], [0, 0, 0, 0, 0, 1, 2], [0, 0, 0, 1, 1, 2, 3]]
    """
    choice("how", how, HOW)
    whole("bins", bins, least=2)
    leaves, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    known = int(np.searchsorted(leaves, domain.size))
    bin_of = np.arange(len(leaves))
    if domain.numbers is not None and known > bins:
        found = _BINNERS[how](domain.numbers[leaves[:known]], counts[:known], bins)
        bin_of[:known] = np.unique(found, return_inverse=True)[1]
        bin_of[known:] = bin_of[known - 1] + 1
    return bin_of[inverse].astype(np.int32)


def _by_frequency(values: Reals, counts: Int64, bins: int) -> Int64:
    """The bin in which the middle row of each value falls when all rows are divided evenly."""
    return bins * (2 * np.cumsum(counts) - counts) // (2 * counts.sum())


def _by_width(values: Reals, counts: Int64, bins: int) -> Int64:
    return np.minimum((_positions(values) * bins).astype(np.int64), bins - 1)


def _positions(values: Reals) -> Reals:
    """Ascending values on a line from 0 to 1; halved first, because the width of the largest numbers is no number."""
    low, high = values[0] / 2, values[-1] / 2
    return (values / 2 - low) / (high - low)


def kmeans(values: Reals, counts: Int64, k: int) -> Int64:
    """Bin of each of these ascending distinct values, which occur `counts` times: the one whose mean is nearest.

    >>> kmeans(np.array([1.0, 2, 3, 10, 11, 50]), np.ones(6, np.int64), 3).tolist()
    [0, 0, 0, 1, 1, 2]
    """
    if len(values) <= k:
        return np.arange(len(values))
    x = _positions(values)
    rows, sums = (np.concatenate([[0], np.cumsum(each)]) for each in (counts, x * counts))
    ends = _cut(np.empty(0, dtype=np.int64), rows, sums, k - 1)
    for _ in range(ROUNDS):
        edges = np.concatenate([[0], ends, [len(x)]])
        centres = np.diff(sums[edges]) / np.diff(rows[edges])
        before, ends = ends, np.searchsorted(x, (centres[:-1] + centres[1:]) / 2, side="right")  # midway: the lower one
        kept = np.unique(ends[(ends > 0) & (ends < len(x))])
        ends = _cut(kept, rows, sums, len(ends) - len(kept))
        if np.array_equal(before, ends):
            break
    return np.searchsorted(ends, np.arange(len(x)), side="right")


def _cut(ends: Int64, rows: Int64, sums: Reals, more: int) -> Int64:
    """Runs of values cut as many times more, each time where squared distances to the means fall most."""
    for _ in range(more):
        edges = np.concatenate([[0], ends, [len(rows) - 1]])
        place = np.setdiff1d(np.arange(1, len(rows) - 1), ends)
        run = np.searchsorted(edges, place) - 1
        a, b = edges[run], edges[run + 1]
        apart = (sums[place] - sums[a]) / (rows[place] - rows[a]) - (sums[b] - sums[place]) / (rows[b] - rows[place])
        gain = apart**2 * (rows[place] - rows[a]) * ((rows[b] - rows[place]) / (rows[b] - rows[a]))
        ends = np.sort(np.append(ends, place[np.argmax(gain)]))
    return ends


_BINNERS = {"frequency": _by_frequency, "width": _by_width, "kmeans": kmeans}


def has_too_many(codes: Int32) -> bool:
    """Whether an attribute has more different values than a tenth of its rows: it must not share a group with a sensitive
    attribute.

    >>> has_too_many(np.arange(20, dtype=np.int32)), has_too_many(np.arange(20, dtype=np.int32) % 2)
    (True, False)
    """
    return len(np.unique(codes)) * ROWS_PER_VALUE > len(codes)


def mean_square_contingency(a: Int32, b: Int32, corrected: bool = True, few: int = FEW) -> float:
    """phi2 of two attributes, from 0 (independent) to 1 (the one with fewer values follows from the other).

    phi2 = X / (min(dA, dB) - 1), where X sums (f_ij - f_i f_j)^2 / (f_i f_j) over the dA and dB values that occur; 0 if an
    attribute has one value. `corrected`: X loses what chance adds, (dA-1)(dB-1)/(n-1), and d becomes d - (d-1)^2/(n-1).
    `few`: cells up to which pairs are counted in a table; more are sorted, with the same result.

    >>> sex, name = np.array([0, 0, 1, 1], dtype=np.int32), np.array([0, 1, 2, 3], dtype=np.int32)
    >>> mean_square_contingency(sex, sex), mean_square_contingency(sex, name)
    (1.0, 0.0)
    >>> mean_square_contingency(sex, name, corrected=False)
    1.0
    """
    return _phi2(_count_values(a), _count_values(b), corrected, few)


Observed = tuple[Int64, Int64]  # values numbered without gaps, and how many rows have each


def _count_values(codes: Int32) -> Observed:
    _, ranks, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return ranks.astype(np.int64), counts


def _phi2(first: Observed, second: Observed, corrected: bool, few: int = FEW) -> float:
    (a, of_a), (b, of_b) = first, second
    n, da, db = len(a), len(of_a), len(of_b)
    if min(da, db) < 2:
        return 0.0
    pairs = a * db + b
    if da * db <= max(few, n):
        table = np.bincount(pairs, minlength=da * db)
        seen = np.flatnonzero(table)
        both = table[seen]
    else:
        seen, both = np.unique(pairs, return_counts=True)
    shares = both.astype(np.float64) ** 2 / (of_a[seen // db].astype(np.float64) * of_b[seen % db])
    x = float(np.sort(shares).sum()) - 1.0  # sorted: the same sum whichever attribute comes first
    if not corrected:
        return min(max(x / (min(da, db) - 1), 0.0), 1.0)
    chance = (da - 1) * (db - 1) / (n - 1)
    room = min((d - 1) * (n - d) for d in (da, db)) / (n - 1)  # d - (d-1)^2/(n-1) - 1, exactly 0 where all values differ
    return min(max(x - chance, 0.0) / room, 1.0) if room > 0 else 0.0


def correlations(columns: Sequence[Int32], corrected: bool = True) -> Reals:
    """phi2 of every two attributes, 1 of an attribute with itself.

    >>> correlations([np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), np.array([0, 1, 0, 1])]).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    observed = [_count_values(codes) for codes in columns]
    found = np.eye(len(columns))
    for i, first in enumerate(observed):
        for j in range(i):
            found[i, j] = found[j, i] = _phi2(first, observed[j], corrected)
    return found

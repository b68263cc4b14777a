"""Buckets that each hold as many different values of every column group as can be: so that fakes fit into many of them.

A sliced release hides who is in the table behind the tuples that its buckets admit next to the originals. A tuple cannot fit
into more buckets than its rarest value has rows; random buckets stay far below that, since equal values meet in one bucket by
chance. Here rows are sorted by their values, the widest column group first, and dealt out in turn, so that each bucket is a
systematic sample; then two rows of different buckets change places wherever the product of all numbers of different values of
both buckets grows. The products are what buckets admit, and a product over buckets is raised most where a bucket is poor, so
that no bucket is left behind.

Cost: O(passes * rows * column groups). Buckets exchange rows inside pools that are as large as a table of counts
(buckets x values) may be.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from closeknit.core.params import whole
from closeknit.core.row_sorting import row_order
from closeknit.kernels.arrays import Int32
from closeknit.kernels.slicing.spreading import count_values, exchange_rows

PASSES = 40
CELLS = 1 << 20  # counts held at once: they stay near the processor, and larger pools gain about a thousandth


def spread_buckets(values: Int32, size: int, seed: int, cells: int = CELLS) -> Int32:
    """Bucket of each row, `size` rows or a few more in each; `values[n, c]` are codes per column group.

    At most `cells` counts are held at once.

    >>> values = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int32)
    >>> spread_buckets(values, 2, seed=0).tolist()
    [1, 0, 0, 1]
    """
    size, n = whole("size", size, 1), len(values)
    buckets = max(n // size, 1)
    ranked = np.column_stack([_rank_values(column) for column in values.T]) if n else values
    bucket_of = np.empty(n, np.int32)
    bucket_of[_widest_first(ranked)] = np.arange(n) % buckets
    rng = np.random.default_rng(seed)
    pools = -(-buckets // _pool(ranked, buckets, cells))
    pool_of = bucket_of % pools
    by_pool, ends = np.argsort(pool_of, kind="stable"), np.cumsum(np.bincount(pool_of, minlength=pools))
    for pool, rows in enumerate(np.split(by_pool, ends[:-1])):
        bucket_of[rows] = _spread(bucket_of[rows] // pools, ranked[rows], rng) * pools + pool
    return bucket_of


def _rank_values(column: Int32) -> Int32:
    """Codes by frequency, the most frequent value first."""
    count = np.bincount(column)
    rank = np.empty(len(count), np.int32)
    rank[np.argsort(-count, kind="stable")] = np.arange(len(count))
    return rank[column]


def _widest_first(ranked: Int32) -> NDArray[np.int64]:
    sizes = ranked.max(axis=0, initial=0).astype(np.int64) + 1
    return row_order([(ranked[:, j], int(sizes[j])) for j in np.argsort(-sizes, kind="stable")], len(ranked))


def _pool(ranked: Int32, buckets: int, cells: int) -> int:
    """How many buckets, at least two, exchange rows among themselves: their counts have to fit."""
    sizes, rows = ranked.max(axis=0, initial=0).astype(np.int64) + 1, -(-len(ranked) // buckets)
    choices = range(2, buckets + 1)
    fit = bisect_right(choices, cells, key=lambda some: some * int(np.minimum(sizes, some * rows).sum()))
    return max(fit + 1, 2)


def _spread(bucket_of: Int32, ranked: Int32, rng: np.random.Generator) -> Int32:
    """Exchange rows until nothing is gained any more, at most `PASSES` times over all rows."""
    columns = [np.unique(column, return_inverse=True) for column in ranked.T]
    first = np.concatenate(([0], np.cumsum([len(found) for found, _ in columns])))
    numbered = np.column_stack([code + first[j] for j, (_, code) in enumerate(columns)]).astype(np.int32)
    bucket_of = bucket_of.astype(np.int32)
    count, width = count_values(bucket_of, numbered, int(bucket_of.max(initial=-1)) + 1, int(first[-1]))
    for _ in range(PASSES):
        if not exchange_rows(bucket_of, numbered, count, width, rng.permutation(len(bucket_of))):
            break
    return bucket_of

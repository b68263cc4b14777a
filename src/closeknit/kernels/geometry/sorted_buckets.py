"""Rows sorted by bucket and Hilbert key, and their assignment to classes by rank.

A plan defines how many rows of each bucket a class takes: `allotments[class, bucket]`, column sums = bucket sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Reals
from closeknit.kernels.geometry.boxes import Codes, Ints
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys, hilbert_words

FEW = 8  # up to so many axes a key of one word has 8 bits for each; more need two words

Keys = NDArray[np.uint64]


class SortedBuckets(NamedTuple):
    """Rows sorted by bucket, then key, then row number; bucket i has the positions `start[i] .. start[i + 1]`."""

    rows: Codes  # [n]
    keys: Keys  # [n, words] of these rows, the highest word first
    start: Ints  # [buckets + 1]


def curve(points: Reals) -> Keys:
    """Hilbert keys `[n, words]` of points of the unit cube: one word, or two where the axes are many.

    >>> curve(np.zeros((3, 2))).shape, curve(np.zeros((3, 20))).shape
    ((3, 1), (3, 2))
    """
    return hilbert_keys(points).reshape(-1, 1) if points.shape[1] <= FEW else hilbert_words(points)


def sort_buckets(keys: Keys, bucket_of_row: Codes, buckets: int) -> SortedBuckets:
    """Sort rows by bucket, key and row number.

    >>> sort_buckets(np.array([[5], [3], [4]], np.uint64), np.array([1, 0, 1], np.int32), 2).rows.tolist()
    [1, 2, 0]
    """
    order = np.argsort(keys[:, 0], kind="stable") if keys.shape[1] == 1 else np.lexsort(keys.T[::-1])
    bucket = bucket_of_row.astype(np.uint16) if buckets < 1 << 16 else bucket_of_row  # of two bytes: sorted in linear time
    order = order[np.argsort(bucket[order], kind="stable")]
    start = np.concatenate(([0], np.cumsum(np.bincount(bucket_of_row, minlength=buckets)))).astype(np.int64)
    return SortedBuckets(order.astype(np.int32), keys[order], start)


def by_rank(shelf: SortedBuckets, allotments: Ints) -> Codes:
    """Class of each row when class j takes the next `allotments[j, i]` rows of every bucket i.

    >>> shelf = sort_buckets(np.array([[0], [9], [8], [1]], np.uint64), np.array([0, 0, 1, 1], np.int32), 2)
    >>> by_rank(shelf, np.array([[1, 1], [1, 1]])).tolist()
    [0, 1, 1, 0]
    """
    classes = np.tile(np.arange(len(allotments), dtype=np.int32), allotments.shape[1])
    class_of = np.empty(len(shelf.rows), np.int32)
    class_of[shelf.rows] = np.repeat(classes, allotments.T.ravel())
    return class_of

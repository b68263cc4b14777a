"""Exchanges of rows between buckets while the number of distinct values per bucket grows."""

from __future__ import annotations

import numpy as np

from closeknit.kernels.arrays import Int32, Int64
from closeknit.kernels.compiling import kernel

CLEARLY = 1.0 + 1e-12  # a gain that is not a rounding error


@kernel
def count_values(bucket_of: Int32, values: Int32, buckets: int, size: int) -> tuple[Int32, Int64]:
    """Count rows per value and bucket, and distinct values per bucket and column group; values are below `size`.

    >>> count, width = count_values(np.array([0, 0], np.int32), np.array([[0, 2], [1, 2]], np.int32), 1, 3)
    >>> count.tolist(), width.tolist()
    ([[1, 1, 2]], [[2, 1]])
    """
    count = np.zeros((buckets, size), np.int32)
    width = np.zeros((buckets, values.shape[1]), np.int64)
    for row in range(len(bucket_of)):
        for j in range(values.shape[1]):
            width[bucket_of[row], j] += count[bucket_of[row], values[row, j]] == 0
            count[bucket_of[row], values[row, j]] += 1
    return count, width


@kernel
def _gain(count: Int32, width: Int64, a: int, b: int, out: Int32, into: Int32) -> float:
    """Factor by which the product of all widths of both buckets grows if row `out` of a and row `into` of b are exchanged."""
    gain = 1.0
    for j in range(len(out)):
        if out[j] != into[j]:
            more_a = np.int64(count[a, into[j]] == 0) - np.int64(count[a, out[j]] == 1)
            more_b = np.int64(count[b, out[j]] == 0) - np.int64(count[b, into[j]] == 1)
            gain *= (width[a, j] + more_a) / width[a, j] * ((width[b, j] + more_b) / width[b, j])
    return gain


@kernel
def _move(count: Int32, width: Int64, a: int, b: int, row: Int32) -> None:
    for j in range(len(row)):
        count[a, row[j]] -= 1
        width[a, j] -= count[a, row[j]] == 0
        width[b, j] += count[b, row[j]] == 0
        count[b, row[j]] += 1


@kernel
def exchange_rows(bucket_of: Int32, values: Int32, count: Int32, width: Int64, partner: Int64) -> int:
    """Try to exchange each row with its partner, in place; return the number of exchanges.

    >>> bucket_of, values = np.array([0, 0, 1, 1], np.int32), np.array([[0], [0], [1], [1]], np.int32)
    >>> exchange_rows(bucket_of, values, *count_values(bucket_of, values, 2, 2), np.array([2, 0, 3, 1])), bucket_of.tolist()
    (1, [1, 0, 0, 1])
    """
    done = 0
    for row in range(len(bucket_of)):
        other = partner[row]
        a, b = bucket_of[row], bucket_of[other]
        if a != b and _gain(count, width, a, b, values[row], values[other]) > CLEARLY:
            _move(count, width, a, b, values[row])
            _move(count, width, b, a, values[other])
            bucket_of[row], bucket_of[other] = b, a
            done += 1
    return done

"""Tuples that a sliced release admits, and the number of buckets that each of them fits into.

A bucket admits a tuple where every column group of it has the tuple's value among its own, so it admits the product of its
distinct values. `BucketIndex` has the distinct values of every bucket, and for every value the buckets that have it: as a list,
and as a row of bits where the list is longer than that row. So its memory is linear in the rows, however many buckets and
values there are.

A value has one number over all column groups: its code plus `first` of its group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Flags, Int32, Int64
from closeknit.kernels.compiling import kernel
from closeknit.kernels.slicing.profile_matching import position

WORD = 64


class BucketIndex(NamedTuple):
    """The distinct values of each bucket and column group, and an inverted index from a value to its buckets.

    >>> shelves = index_buckets(np.array([0, 0, 1], np.int32), np.array([[0, 1], [1, 1], [0, 0]], np.int32), np.array([2, 2]))
    >>> shelves.widths.tolist()
    [[2, 1], [1, 1]]
    """

    first: Int64  # [c + 1] number of the first value of each column group
    starts: Int64  # [b * c + 1] start of the values of a bucket's column group
    values: Int32  # [entries] ascending inside each
    posting_starts: Int64  # [values + 1] start of the buckets of a value
    homes: Int32  # [entries] ascending inside each
    line: Int32  # [values] row of `bits` of a value, -1 where its list is short
    bits: NDArray[np.uint64]  # [lines, words] bit i of word w: the value is in bucket 64 * w + i

    @property
    def widths(self) -> Int64:
        """Distinct values, `[b, c]`."""
        return np.diff(self.starts).reshape(-1, len(self.first) - 1)


def index_buckets(bucket_of: Int32, values: Int32, sizes: Int64) -> BucketIndex:
    """Sort the values of every bucket and column group; codes of group j are below `sizes[j]`."""
    c = values.shape[1]
    count = int(bucket_of.max()) + 1 if len(bucket_of) else 0
    first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    pairs = np.concatenate([_pairs(bucket_of, values[:, j] + first[j], first[-1]) for j in range(c)])
    bucket, value = np.divmod(pairs, first[-1])
    group = np.searchsorted(first, value, side="right") - 1
    by_bucket, by_value = np.lexsort((value, bucket)), np.lexsort((bucket, value))
    homes = bucket[by_value].astype(np.int32)
    posting_starts = _starts(value, int(first[-1]))
    line, bits = _lines(posting_starts, homes, count)
    starts = _starts(bucket * c + group, count * c)
    return BucketIndex(first, starts, value[by_bucket].astype(np.int32), posting_starts, homes, line, bits)


def _pairs(bucket_of: Int32, value: Int64, most: int) -> Int64:
    return np.unique(bucket_of.astype(np.int64) * most + value)


def _starts(keys: Int64, size: int) -> Int64:
    return np.concatenate(([0], np.cumsum(np.bincount(keys, minlength=size)))).astype(np.int64)


def _lines(posting_starts: Int64, homes: Int32, count: int) -> tuple[Int32, NDArray[np.uint64]]:
    """Bits for the values with more buckets than a row of bits has words."""
    words = -(-count // WORD)
    long = np.diff(posting_starts) > words
    line = np.where(long, np.cumsum(long) - 1, -1).astype(np.int32)
    return line, _bits(posting_starts, homes, line, int(long.sum()), words)


@kernel
def _bits(posting_starts: Int64, homes: Int32, line: Int32, lines: int, words: int) -> NDArray[np.uint64]:
    bits = np.zeros((lines, words), np.uint64)
    for value in range(len(line)):
        if line[value] >= 0:
            for i in range(posting_starts[value], posting_starts[value + 1]):
                bits[line[value], homes[i] >> 6] |= np.uint64(1) << np.uint64(homes[i] & 63)
    return bits


@kernel
def _ones(word: np.uint64) -> int:
    """Count the set bits: sums of 2, 4 and 8 neighbours, then all bytes by one product."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56)))


@kernel
def _in_bucket(shelves: BucketIndex, value: int, bucket: int) -> bool:
    if shelves.line[value] >= 0:
        word = shelves.bits[shelves.line[value], bucket >> 6]
        return (word >> np.uint64(bucket & 63)) & np.uint64(1) == np.uint64(1)
    return position(shelves.homes, shelves.posting_starts[value], shelves.posting_starts[value + 1], bucket) >= 0


@kernel
def _fitting(shelves: BucketIndex, whole: Int64) -> int:
    """Count the buckets that have all these values: by bits if every value has them, else along the shortest list."""
    rarest = 0
    least = np.int64(1) << 62
    for j in range(len(whole)):
        length = shelves.posting_starts[whole[j] + 1] - shelves.posting_starts[whole[j]]
        if length < least:
            rarest, least = j, length
    found = 0
    if shelves.line[whole[rarest]] >= 0:
        for w in range(shelves.bits.shape[1]):
            word = shelves.bits[shelves.line[whole[0]], w]
            for j in range(1, len(whole)):
                word &= shelves.bits[shelves.line[whole[j]], w]
            found += _ones(word)
        return found
    for i in range(shelves.posting_starts[whole[rarest]], shelves.posting_starts[whole[rarest] + 1]):
        inside = True
        for j in range(len(whole)):
            if j != rarest and not _in_bucket(shelves, whole[j], shelves.homes[i]):
                inside = False
                break
        found += inside
    return found


@kernel
def fitting(shelves: BucketIndex, tuples: Int32) -> Int64:
    """How many buckets admit each tuple, `tuples[m, c]` in codes.

    >>> shelves = index_buckets(np.array([0, 0, 1], np.int32), np.array([[0, 1], [1, 1], [0, 0]], np.int32), np.array([2, 2]))
    >>> fitting(shelves, np.array([[0, 1], [0, 0], [1, 0]], np.int32)).tolist()
    [1, 1, 0]
    """
    found = np.zeros(len(tuples), np.int64)
    whole = np.empty(tuples.shape[1], np.int64)
    for i in range(len(tuples)):
        for j in range(len(whole)):
            whole[j] = tuples[i, j] + shelves.first[j]
        found[i] = _fitting(shelves, whole)
    return found


@kernel
def _count_values(shelves: BucketIndex, j: int, part: Int32, count: Int64, seen: Int32) -> int:
    """How many values of group j these buckets have: listed in `seen`, with the buckets that have each in `count`."""
    c = len(shelves.first) - 1
    values = 0
    for bucket in part:
        for i in range(shelves.starts[bucket * c + j], shelves.starts[bucket * c + j + 1]):
            value = shelves.values[i]
            if count[value] == 0:
                seen[values] = value
                values += 1
            count[value] += 1
    return values


@kernel
def _children(shelves: BucketIndex, j: int, part: Int32, count: Int64, seen: Int32, starts: Int64, into: Int32) -> int:
    """The values of group j in these buckets, and for each the buckets that have it: the next step of the search."""
    c = len(shelves.first) - 1
    values = _count_values(shelves, j, part, count, seen)
    starts[0] = 0
    for k in range(values):
        starts[k + 1] = starts[k] + count[seen[k]]
        count[seen[k]] = starts[k]
    for bucket in part:
        for i in range(shelves.starts[bucket * c + j], shelves.starts[bucket * c + j + 1]):
            value = shelves.values[i]
            into[count[value]] = bucket
            count[value] += 1
    for k in range(values):
        count[seen[k]] = 0
    return values


@kernel
def _tally(shelves: BucketIndex, j: int, part: Int32, count: Int64, seen: Int32, tally: Int64) -> None:
    """The last group: each value is one tuple, and the buckets that have it are those that admit it."""
    for k in range(_count_values(shelves, j, part, count, seen)):
        tally[count[seen[k]]] += 1
        count[seen[k]] = 0


@kernel
def count_admitted(shelves: BucketIndex, order: Int64) -> Int64:
    """Entry m: the number of different tuples that exactly m buckets admit. Each tuple is visited once.

    The column groups are searched in this order, value by value, with the buckets that admit the tuple so far. The work
    is the sum over buckets of the product of their distinct values; the memory is linear in the rows.

    >>> shelves = index_buckets(np.array([0, 0, 1], np.int32), np.array([[0, 1], [1, 1], [0, 1]], np.int32), np.array([2, 2]))
    >>> count_admitted(shelves, np.array([0, 1])).tolist()
    [0, 1, 1]
    """
    c = len(order)
    buckets = (len(shelves.starts) - 1) // c
    tally = np.zeros(buckets + 1, np.int64)
    count = np.zeros(shelves.first[c], np.int64)
    seen = np.empty(shelves.first[c], np.int32)
    everywhere = np.arange(buckets).astype(np.int32)
    if c == 1:
        _tally(shelves, order[0], everywhere, count, seen, tally)
        return tally
    starts = np.empty((c - 1, shelves.first[c] + 1), np.int64)
    parts = np.empty((c - 1, len(shelves.values)), np.int32)
    at = np.zeros(c - 1, np.int64)
    end = np.zeros(c - 1, np.int64)
    end[0] = _children(shelves, order[0], everywhere, count, seen, starts[0], parts[0])
    depth = 0
    while depth >= 0:
        k = at[depth]
        if k == end[depth]:
            depth -= 1
            continue
        at[depth] += 1
        part = parts[depth, starts[depth, k] : starts[depth, k + 1]]
        if depth == c - 2:
            _tally(shelves, order[c - 1], part, count, seen, tally)
        else:
            depth += 1
            at[depth] = 0
            end[depth] = _children(shelves, order[depth], part, count, seen, starts[depth], parts[depth])
    return tally


@kernel
def contains_rows(whole: Int32, tuples: Int32) -> Flags:
    """Whether each tuple is a row of `whole`, whose rows ascend.

    >>> contains_rows(np.array([[0, 1], [2, 0]], np.int32), np.array([[2, 0], [1, 1]], np.int32)).tolist()
    [True, False]
    """
    found = np.zeros(len(tuples), np.bool_)
    for i in range(len(tuples)):
        low, high = 0, len(whole)
        while low < high:
            middle = (low + high) // 2
            if _before(whole[middle], tuples[i]):
                low = middle + 1
            else:
                high = middle
        found[i] = low < len(whole) and not _before(tuples[i], whole[low])
    return found


@kernel
def _before(one: Int32, other: Int32) -> bool:
    for j in range(len(one)):
        if one[j] != other[j]:
            return one[j] < other[j]
    return False

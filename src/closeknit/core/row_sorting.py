"""Sorting and grouping rows by several integer columns at once: columns are packed into as few 64-bit words as fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.counting.sorting import append, ascending, stable_order

Words = list[NDArray[np.uint64]]
Coded = tuple[NDArray[np.integer], int]  # codes 0..size-1 and size


def pack_columns(columns: Iterable[Coded]) -> Words:
    """Words whose lexicographic order is that of the columns, first column first; columns that come one by one are held so.

    >>> [word.tolist() for word in pack_columns([(np.array([1, 0]), 2), (np.array([2, 4]), 5)])]
    [[7, 4]]
    """
    words: Words = []
    room = 0  # how many values the last word can still distinguish
    for codes, size in columns:
        size = max(int(size), 1)
        if not words or room < size:
            words.append(codes.astype(np.uint64))
            room = 2**64 // size
        else:
            append(words[-1], codes, size)
            room //= size
    return words


def row_order(columns: Iterable[Coded], rows: int) -> NDArray[np.int64]:
    """Positions of the rows in the lexicographic order of their codes; equal rows keep their order.

    >>> row_order([(np.array([1, 0, 1]), 2), (np.array([0, 0, 0]), 1)], 3).tolist()
    [1, 0, 2]
    """
    return _order(pack_columns(columns), rows)


def _order(words: Words, rows: int) -> NDArray[np.int64]:
    if not words or (len(words) == 1 and ascending(words[0])):  # a release is sorted already
        return np.arange(rows)
    return stable_order(words[0]) if len(words) == 1 else np.lexsort(words[::-1])


def groups(columns: Iterable[Coded], rows: int) -> tuple[NDArray[np.int32], int]:
    """Number of the group of equal rows that each row belongs to, in lexicographic order, and the number of groups.

    >>> groups([(np.array([5, 2, 5]), 6)], 3)[0].tolist()
    [1, 0, 1]
    """
    if rows == 0:
        return np.empty(0, dtype=np.int32), 0
    words = pack_columns(columns)
    order = _order(words, rows)
    fresh = np.zeros(rows, dtype=bool)
    while words:
        word = words.pop()[order]  # sorted; the other order is freed
        fresh[1:] |= word[1:] != word[:-1]
    group = np.empty(rows, dtype=np.int32)
    group[order] = np.cumsum(fresh, dtype=np.int32)
    return group, int(fresh.sum()) + 1


def row_of_each(group: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """A row of each group: the last one.

    >>> row_of_each(np.array([1, 0, 1]), 2).tolist()
    [1, 2]
    """
    row = np.empty(count, dtype=np.int64)
    row[group] = np.arange(len(group))
    return row


def tie_order(columns: Sequence[Coded], rows: int, seed: int) -> NDArray[np.int64]:
    """The rows in the order of these columns; rows that are equal in them are ordered by the seed alone.

    Rows must be in canonical order, by all their cells. A row's place there represents its content and its number among
    identical rows, so a keyed hash of the place breaks ties by neither the input order nor the value of another column: over
    all seeds every order of equal rows is equally likely, whatever else these rows contain.

    Args:
        columns: codes of the quasi-identifiers with their sizes.
        rows: number of rows.
        seed: private seed of the method.

    >>> [tie_order([(np.array([0, 0, 0, 1]), 2)], 4, seed).tolist() for seed in (1, 3)]
    [[2, 1, 0, 3], [1, 2, 0, 3]]
    """
    group, count = groups(columns, rows)
    if count == rows:
        return stable_order(group.astype(np.uint64))
    key = shake_256(b"closeknit ties " + str(seed).encode())
    noise = np.frombuffer(key.digest(8 * rows), dtype="<u8")
    bits = np.uint64((count - 1).bit_length())
    return stable_order((group.astype(np.uint64) << (np.uint64(64) - bits)) | (noise >> bits) if bits else noise)

"""Rows for classes along the Hilbert curve: by rank, or nearest to the key of a seed row.

A plan says how many rows of each bucket a class takes (`allotments[class, bucket]`, column sums = bucket sizes). The
rows of each bucket stand on a *shelf* in the order of their keys; `taken` rows are passed over by union-find, so that all
of the work is O(n log n + classes * buckets).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from closeknit.kernels.boxes import Codes, Ints, Reals

Keys = NDArray[np.uint64]


class Shelves(NamedTuple):
    """Rows sorted by bucket, then key, then row number; bucket i stands at `start[i] .. start[i + 1]`."""

    rows: Codes
    keys: Keys
    start: Ints


def shelves(keys: Keys, bucket_of_row: Codes, buckets: int) -> Shelves:
    """Put rows on the shelves of their buckets.

    >>> shelves(np.array([5, 3, 4], np.uint64), np.array([1, 0, 1], np.int32), 2).rows.tolist()
    [1, 2, 0]
    """
    along = np.argsort(keys, kind="stable")
    order = along[np.argsort(bucket_of_row[along].astype(np.uint16 if buckets < 1 << 16 else np.int32), kind="stable")]
    sizes = np.bincount(bucket_of_row, minlength=buckets)
    return Shelves(order.astype(np.int32), keys[order], np.concatenate(([0], np.cumsum(sizes))).astype(np.int64))


def by_rank(shelf: Shelves, allotments: Ints) -> Codes:
    """Class j takes the next `allotments[j, i]` rows of every shelf i: a row's class follows from its rank in its own bucket.

    >>> shelf = shelves(np.array([0, 9, 8, 1], np.uint64), np.array([0, 0, 1, 1], np.int32), 2)
    >>> by_rank(shelf, np.array([[1, 1], [1, 1]])).tolist()
    [0, 1, 1, 0]
    """
    class_of = np.empty(len(shelf.rows), np.int32)
    class_of[shelf.rows] = np.repeat(np.tile(np.arange(len(allotments), dtype=np.int32), allotments.shape[1]), allotments.T.ravel())
    return class_of


class Seeds(NamedTuple):
    """Rows waiting to be the seed of a class; `order` holds the places of each shelf in the order they are asked for."""

    order: Ints
    next: Ints  # [buckets] where the search for a free one goes on
    chance: Reals  # [classes] which bucket; empty: the one with the smallest key


def seeds_along(shelf: Shelves) -> Seeds:
    """Seeds in the order of the curve."""
    return Seeds(np.arange(len(shelf.rows)), shelf.start[:-1].copy(), np.empty(0))


def seeds_at_random(shelf: Shelves, classes: int, seed: int) -> Seeds:
    """Seeds drawn evenly from the free rows."""
    rng = np.random.default_rng(seed)
    bucket = np.repeat(np.arange(len(shelf.start) - 1), np.diff(shelf.start))
    return Seeds(np.lexsort((rng.random(len(bucket)), bucket)), shelf.start[:-1].copy(), rng.random(classes))


@njit(cache=True, nogil=True)
def next_seed(seeds: Seeds, shelf: Shelves, taken: NDArray[np.bool_], free: Ints, allotment: Ints, c: int) -> int:
    """Place of a free row in a bucket from which class c takes at least one row; -1 if it takes none at all."""
    b = len(allotment)
    for i in range(b):
        if allotment[i] > 0:
            while taken[seeds.order[seeds.next[i]]]:
                seeds.next[i] += 1
    if len(seeds.chance) > 0:
        total = 0
        for i in range(b):
            total += free[i] if allotment[i] > 0 else 0
        left = int(seeds.chance[c] * total)
        for i in range(b):
            if allotment[i] > 0:
                if left < free[i]:
                    return seeds.order[seeds.next[i]]
                left -= free[i]
        return -1
    best = -1
    for i in range(b):
        if allotment[i] > 0:
            at = seeds.order[seeds.next[i]]
            if best < 0 or shelf.keys[at] < shelf.keys[best]:
                best = at
    return best


@njit(cache=True, nogil=True)
def _root(link: Ints, x: int) -> int:
    while link[x] != x:
        link[x] = link[link[x]]
        x = link[x]
    return x


@njit(cache=True, nogil=True)
def _place_of(keys: Keys, lo: int, hi: int, key: np.uint64) -> int:
    """First place in lo..hi whose key is not smaller."""
    while lo < hi:
        middle = (lo + hi) >> 1
        if keys[middle] < key:
            lo = middle + 1
        else:
            hi = middle
    return lo


@njit(cache=True, nogil=True)
def nearest_keys(shelf: Shelves, allotments: Ints, seeds: Seeds) -> Codes:
    """Every class takes a seed, and from each shelf the free rows with keys nearest to it (ties: the larger key, so a seed takes itself)."""
    n, b = len(shelf.rows), allotments.shape[1]
    class_of = np.empty(n, np.int32)
    taken = np.zeros(n, np.bool_)
    right, left = np.arange(n + 1), np.arange(n + 1)  # next free place at or after x; one more than the last free before x
    free = np.diff(shelf.start)
    for c in range(allotments.shape[0]):
        seed = next_seed(seeds, shelf, taken, free, allotments[c], c)
        if seed < 0:
            continue
        key = shelf.keys[seed]
        for i in range(b):
            if allotments[c, i] == 0:
                continue
            at = seed if shelf.start[i] <= seed < shelf.start[i + 1] else _place_of(shelf.keys, shelf.start[i], shelf.start[i + 1], key)
            for _ in range(allotments[c, i]):
                above, below = _root(right, at), _root(left, at) - 1
                up = above < shelf.start[i + 1]
                if up and below >= shelf.start[i]:
                    up = shelf.keys[above] - key <= key - shelf.keys[below]
                at = above if up else below
                class_of[shelf.rows[at]] = c
                taken[at] = True
                right[at], left[at + 1] = at + 1, at
            free[i] -= allotments[c, i]
    return class_of

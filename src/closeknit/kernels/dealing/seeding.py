"""Choose the seed of a class: the next free row along the curve, a random one, or the farthest from the mean of free rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.box_trees import Trees, farthest
from closeknit.kernels.geometry.boxes import Ints, Scales
from closeknit.kernels.geometry.sorted_buckets import Keys, SortedBuckets

ORDERS = ("hilbert", "random", "farthest")
HILBERT, RANDOM, FARTHEST = range(3)


class Seeds(NamedTuple):
    """How seeds are chosen, and the rows of each bucket in the order in which they become seeds."""

    how: int
    order: Ints  # [n] positions
    next: Ints  # [buckets] where in `order` the search for a free row of the bucket continues
    chance: Reals  # [classes] in [0, 1): selects the bucket


def seeds_of(how: str, shelf: SortedBuckets, classes: int, seed: int) -> Seeds:
    """Prepare the seeds of all classes from one random seed; `how` is one of `ORDERS`."""
    n = len(shelf.rows)
    order, chance = np.arange(n), np.zeros(classes)
    if how == "random":
        rng = np.random.default_rng(seed)
        order, chance = rng.permutation(n), rng.random(classes)
        bucket = np.repeat(np.arange(len(shelf.start) - 1), np.diff(shelf.start))
        bucket = bucket.astype(np.uint16) if len(shelf.start) <= 1 << 16 else bucket
        order = order[np.argsort(bucket[order], kind="stable")]
    return Seeds(ORDERS.index(how), order, shelf.start[:-1].copy(), chance)


@kernel
def before(keys: Keys, a: int, b: int) -> bool:
    """Whether the key at place a is smaller than the one at place b."""
    for w in range(keys.shape[1]):
        if keys[a, w] != keys[b, w]:
            return keys[a, w] < keys[b, w]
    return False


@kernel
def next_seed(seeds: Seeds, forest: Trees, shelf: SortedBuckets, scales: Scales, allotment: Ints, c: int) -> tuple[int, int]:
    """Find bucket and position of a free row for class c, in a bucket with an allotment; -1 if there is none."""
    bucket, place, beyond, left, free = -1, -1, -1.0, 0, 0
    for i in range(len(allotment)):
        free += forest.free[forest.first[i] + 1]
        if allotment[i] > 0:
            left += forest.free[forest.first[i] + 1]
    left = int(seeds.chance[c] * left)
    centre = forest.sums / max(1, free)
    for i in range(len(allotment)):
        if allotment[i] == 0:
            continue
        if seeds.how == FARTHEST:
            found, beyond = farthest(forest, shelf, scales, i, centre, beyond)
            if found >= 0:
                bucket, place = i, found
            continue
        while forest.taken[seeds.order[seeds.next[i]]]:
            seeds.next[i] += 1
        at = seeds.order[seeds.next[i]]
        if seeds.how == RANDOM and 0 <= left < forest.free[forest.first[i] + 1]:
            return i, at
        left -= forest.free[forest.first[i] + 1]
        if seeds.how == HILBERT and (place < 0 or before(shelf.keys, at, place)):
            bucket, place = i, at
    return bucket, place

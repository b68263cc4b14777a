"""Choose the rows of a class, starting with a seed: the nearest along the Hilbert curve, or those that cost its box least.

Both respect the allotments exactly, whatever the rows. Along the curve taken rows are skipped by union-find:
O(n log n + classes * buckets * log n). By cost each row is found in a tree of boxes: about n log n, at worst n^2.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.compiling import kernel
from closeknit.kernels.dealing.seeding import FARTHEST, Seeds, before, next_seed
from closeknit.kernels.geometry.box_trees import BLOCK, nearest, take, trees
from closeknit.kernels.geometry.boxes import Codes, Ints, Scales
from closeknit.kernels.geometry.ranges import Costs, build_tables
from closeknit.kernels.geometry.sorted_buckets import Keys, SortedBuckets

PULL = 0.1  # a box has plateaus: a mixed column costs the same for any row; the distance to the seed decides there


@kernel
def _root(link: Codes, x: int) -> int:
    while link[x] != x:
        link[x] = link[link[x]]
        x = link[x]
    return x


@kernel
def _place_of(keys: Keys, lo: int, hi: int, seed: int) -> int:
    """Find the first position in lo..hi whose key is not smaller than the one at position `seed`."""
    while lo < hi:
        middle = (lo + hi) >> 1
        if before(keys, middle, seed):
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel
def _above_is_nearer(keys: Keys, above: int, seed: int, below: int) -> bool:
    """Whether key[above] - key[seed] <= key[seed] - key[below], in numbers of one or two words."""
    if keys.shape[1] == 1:
        return keys[above, 0] - keys[seed, 0] <= keys[seed, 0] - keys[below, 0]
    up, down = keys[above, 1] - keys[seed, 1], keys[seed, 1] - keys[below, 1]
    borrow_up, borrow_down = np.uint64(keys[above, 1] < keys[seed, 1]), np.uint64(keys[seed, 1] < keys[below, 1])
    high_up, high_down = keys[above, 0] - keys[seed, 0] - borrow_up, keys[seed, 0] - keys[below, 0] - borrow_down
    return high_up < high_down or (high_up == high_down and up <= down)


@kernel
def nearest_keys(shelf: SortedBuckets, allotments: Ints, quasi: Codes, scales: Scales, seeds: Seeds) -> Codes:
    """Give every class the free rows of each bucket with keys nearest to its seed's; ties go to the larger key."""
    n = len(shelf.rows)
    class_of = np.empty(n, np.int32)
    far = seeds.how == FARTHEST
    forest = trees(shelf, quasi if far else quasi[:, :0], scales, BLOCK if far else n + 1)
    right, left = (
        np.arange(n + 1, dtype=np.int32),
        np.arange(n + 1, dtype=np.int32),
    )  # next free position from x on; one after the last free position before x
    for c in range(allotments.shape[0]):
        own, seed = next_seed(seeds, forest, shelf, scales, allotments[c], c)
        for i in range(allotments.shape[1]):
            if allotments[c, i] == 0:
                continue
            begin, end = shelf.start[i], shelf.start[i + 1]
            at = seed if i == own else _place_of(shelf.keys, begin, end, seed)
            for _ in range(allotments[c, i]):
                above, below = _root(right, at), _root(left, at) - 1
                up = above < end and (below < begin or _above_is_nearer(shelf.keys, above, seed, below))
                at = above if up else below
                class_of[shelf.rows[at]] = c
                right[at], left[at + 1] = at + 1, at
                take(forest, shelf, scales, i, at)
    return class_of


@kernel
def nearest_rows(shelf: SortedBuckets, allotments: Ints, quasi: Codes, scales: Scales, seeds: Seeds, euclid: bool) -> Codes:
    """Give every class one row after the other, bucket by bucket from its seed's on: the cheapest for its box so far.

    With `euclid` the rows nearest to the seed.
    """
    b, d = allotments.shape[1], quasi.shape[1]
    class_of = np.empty(len(shelf.rows), np.int32)
    table, table_start = build_tables(scales, euclid)
    price = Costs(scales, euclid, table, table_start)
    forest = trees(shelf, quasi, scales, BLOCK)
    box = np.empty((3, d), np.int32)  # lowest and highest codes so far, and the seed
    pull = 0.0 if euclid else PULL
    for c in range(allotments.shape[0]):
        own, at = next_seed(seeds, forest, shelf, scales, allotments[c], c)
        if own < 0:
            continue
        for j in range(d):
            box[0, j] = box[1, j] = box[2, j] = forest.codes[at, j]
        for step in range(b):
            i = (own + step) % b
            for x in range(allotments[c, i]):
                if step > 0 or x > 0:
                    at = nearest(forest, shelf, price, i, box, pull)
                class_of[shelf.rows[at]] = c
                take(forest, shelf, scales, i, at)
                if not euclid:
                    for j in range(d):
                        code = forest.codes[at, j]
                        box[0, j], box[1, j] = min(box[0, j], code), max(box[1, j], code)
    return class_of

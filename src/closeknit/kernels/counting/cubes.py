"""Sum the weights of all boxes that contain each of the given points: the estimate of every group-by cell from all classes.

Points are sorted by a key: the outer columns, then the last one. A range of the last column is then a run of points, to which a
weight is added at a few nodes of a binary tree over their ranks; a range of an outer column is the union of at most two blocks
of each length 1, 2, 4, ..., so each length has a pass of its own, in which columns are compared in blocks. Nothing is ever
subtracted: a point that no box contains has exactly 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import kernel

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Reals = NDArray[np.float64]


@kernel
def _before(keys: Int64, below: Int32, key: int) -> int:
    """Count the points with a lower key; `below` is a lookup table, if the keys are few enough for one."""
    if len(below):
        return below[key]
    a, b = 0, len(keys)
    while a < b:
        middle = (a + b) >> 1
        if keys[middle] < key:
            a = middle + 1
        else:
            b = middle
    return a


@kernel
def _add(tree: Reals, first: int, last: int, weight: float) -> None:
    """Add a weight to the points `first` .. `last - 1`, at nodes of a tree whose leaves are its second half."""
    a, b = first + (len(tree) >> 1), last + (len(tree) >> 1)
    while a < b:
        if a & 1:
            tree[a] += weight
            a += 1
        if b & 1:
            b -= 1
            tree[b] += weight
        a >>= 1
        b >>= 1


@kernel
def _blocks(lo: int, hi: int, shift: int, blocks: Int64) -> int:
    """Return the blocks of length 2^shift that cover part of the range lo..hi, and their number: none, one or two."""
    a, b = (lo + (1 << shift) - 1) >> shift, (hi + 1) >> shift
    many = 0
    if a < b and a & 1:
        blocks[many] = a
        many += 1
    if a < b and b & 1:
        blocks[many] = b - 1
        many += 1
    return many


@kernel
def _add_box(tree: Reals, keys: Int64, below: Int32, strides: Int64, blocks: Int64, many: Int64, turn: Int64,
             lo: int, hi: int, weight: float) -> None:  # fmt: skip
    """Add a weight to the points of every combination of blocks, between lo and hi in the last column."""
    turn[:] = 0
    while True:
        key = 0
        for d in range(len(turn)):
            key += blocks[d, turn[d]] * strides[d]
        first, last = _before(keys, below, key + lo), _before(keys, below, key + hi + 1)
        if first < last:
            _add(tree, first, last, weight)
        d = len(turn) - 1
        while d >= 0:
            turn[d] += 1
            if turn[d] < many[d]:
                break
            turn[d] = 0
            d -= 1
        if d < 0:
            return


@kernel
def spread(keys: Int64, below: Int32, strides: Int64, shifts: Int64, starts: Int64, lo: Int32, hi: Int32, weights: Reals,
           part_of: Int64, sizes: Reals, buckets: Int64) -> Reals:  # fmt: skip
    """Compute what each point receives from some buckets in one pass.

    Bucket b has the parts `starts[g, b] .. starts[g, b + 1]` of each group of columns g; column d is described by those of
    group `part_of[d]`. One part of each group form a box; its weight is the product of theirs, divided by the size of the
    bucket (groups - 1) times.

    >>> keys, none = np.array([0, 1, 5]), np.zeros(0, np.int64)
    >>> box = np.array([[1]], np.int32), np.array([[5]], np.int32), np.array([2.0]), np.zeros(1, np.int64), np.ones(1)
    >>> spread(keys, np.zeros(0, np.int32), none, none, np.array([[0, 1]]), *box, np.zeros(1, np.int64)).tolist()
    [0.0, 2.0, 2.0]
    """
    outer = len(strides)
    tree = np.zeros(2 * len(keys))
    at = np.empty(len(starts), np.int64)
    blocks, many, turn = np.empty((outer, 2), np.int64), np.empty(outer, np.int64), np.empty(outer, np.int64)
    for b in buckets:
        filled = True
        for g in range(len(at)):
            at[g] = starts[g, b]
            filled &= at[g] < starts[g, b + 1]
        while filled:
            met = True
            for d in range(outer):
                part = at[part_of[d]]
                many[d] = _blocks(lo[part, d], hi[part, d], shifts[d], blocks[d])
                met &= many[d] > 0
            if met:
                weight = weights[at[0]]
                for g in range(1, len(at)):
                    weight *= weights[at[g]] / sizes[b]
                part = at[part_of[outer]]
                _add_box(tree, keys, below, strides, blocks, many, turn, lo[part, outer], hi[part, outer], weight)
            g = len(at) - 1
            while g >= 0:
                at[g] += 1
                if at[g] < starts[g, b + 1]:
                    break
                at[g] = starts[g, b]
                g -= 1
            filled = g >= 0
    for node in range(1, len(keys)):
        tree[2 * node] += tree[node]
        tree[2 * node + 1] += tree[node]
    return tree[len(keys) :]

"""Sum the weights of all boxes that contain each of the given points: the estimate of every group-by cell from all classes.

Points are sorted by a key: the outer columns, then the last one. A range of the last column is then a run of points, to which a
weight is added at a few nodes of a binary tree over their ranks; a range of an outer column is the union of at most two blocks
of each length 1, 2, 4, ..., so each length has a pass of its own, in which columns are compared in blocks. Nothing is ever
subtracted: a point that no box contains has exactly 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import kernel
from closeknit.kernels.counting.sorting import smaller

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Reals = NDArray[np.float64]


class SortedPoints(NamedTuple):
    """Points in the order of their keys: the sum of block * stride over the outer columns, plus the place in the last one."""

    keys: Int64
    below: Int32  # how many points have a lower key; empty if there are too many keys for a table
    strides: Int64  # of each outer column
    shifts: Int64  # its blocks have the length 2^shift


class StackedParts(NamedTuple):
    """The parts of all groups of columns. One part of each group form a box."""

    starts: Int64  # [groups, buckets + 1] parts of a bucket
    lo: Int32  # [parts, columns]
    hi: Int32
    weights: Reals
    part_of: Int64  # [columns] the group whose parts describe a column


class Cover(NamedTuple):
    """Scratch: per outer column the blocks that cover part of a box, their number, and the one whose turn it is."""

    blocks: Int64  # [outer columns, 2]
    many: Int64
    turn: Int64


@kernel
def _before(keys: Int64, below: Int32, key: int) -> int:
    """Count the points with a lower key; `below` is a lookup table, if the keys are few enough for one."""
    if len(below):
        return below[key]
    return smaller(keys, key)


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
def _add_box(tree: Reals, points: SortedPoints, cover: Cover, lo: int, hi: int, weight: float) -> None:
    """Add a weight to the points of every combination of blocks, between lo and hi in the last column."""
    keys, below, blocks, turn = points.keys, points.below, cover.blocks, cover.turn
    turn[:] = 0
    while True:
        key = 0
        for d in range(len(turn)):
            key += blocks[d, turn[d]] * points.strides[d]
        first, last = _before(keys, below, key + lo), _before(keys, below, key + hi + 1)
        if first < last:
            _add(tree, first, last, weight)
        d = len(turn) - 1
        while d >= 0:
            turn[d] += 1
            if turn[d] < cover.many[d]:
                break
            turn[d] = 0
            d -= 1
        if d < 0:
            return


@kernel
def spread(points: SortedPoints, parts: StackedParts, sizes: Reals, buckets: Int64) -> Reals:
    """Compute what each point receives from some buckets in one pass.

    The weight of a box is the product of those of its parts, divided by the size of the bucket (groups - 1) times.

    >>> none = np.zeros(0, np.int64)
    >>> points = SortedPoints(np.array([0, 1, 5]), np.zeros(0, np.int32), none, none)
    >>> box = np.array([[1]], np.int32), np.array([[5]], np.int32), np.array([2.0]), np.zeros(1, np.int64)
    >>> spread(points, StackedParts(np.array([[0, 1]]), *box), np.ones(1), np.zeros(1, np.int64)).tolist()
    [0.0, 2.0, 2.0]
    """
    starts, lo, hi, weights, part_of = parts.starts, parts.lo, parts.hi, parts.weights, parts.part_of
    outer, n = len(points.strides), len(points.keys)
    tree = np.zeros(2 * n)
    at = np.empty(len(starts), np.int64)
    cover = Cover(np.empty((outer, 2), np.int64), np.empty(outer, np.int64), np.empty(outer, np.int64))
    for b in buckets:
        filled = True
        for g in range(len(at)):
            at[g] = starts[g, b]
            filled &= at[g] < starts[g, b + 1]
        while filled:
            met = True
            for d in range(outer):
                part = at[part_of[d]]
                cover.many[d] = _blocks(lo[part, d], hi[part, d], points.shifts[d], cover.blocks[d])
                met &= cover.many[d] > 0
            if met:
                weight = weights[at[0]]
                for g in range(1, len(at)):
                    weight *= weights[at[g]] / sizes[b]
                part = at[part_of[outer]]
                _add_box(tree, points, cover, lo[part, outer], hi[part, outer], weight)
            g = len(at) - 1
            while g >= 0:
                at[g] += 1
                if at[g] < starts[g, b + 1]:
                    break
                at[g] = starts[g, b]
                g -= 1
            filled = g >= 0
    for node in range(1, n):
        tree[2 * node] += tree[node]
        tree[2 * node + 1] += tree[node]
    return tree[n:]

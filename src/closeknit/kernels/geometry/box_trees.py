"""Exact search for the nearest and the farthest free row of a bucket: a tree of boxes per bucket.

The cost of a row for a class is a sum over columns of the cost of a range of codes: that of the class's box with the row in it.
A range never becomes cheaper by growing, so the near side of a node's box bounds the cost of every row under it. Range costs
may be losses, or squares of differences: then a box of one row gives the Euclidean distance to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import inlined, kernel
from closeknit.kernels.geometry.boxes import Codes, Ints, Scales
from closeknit.kernels.geometry.ranges import Costs, range_cost
from closeknit.kernels.geometry.sorted_buckets import SortedBuckets

BLOCK = 8  # rows under a leaf of a tree that is searched
DEEP = 128  # stack entries: two per level, and no tree has 64 levels


class Trees(NamedTuple):
    """One binary tree per bucket; its node x (the root is 1, its children 2x and 2x + 1) has the index `first[bucket] + x`."""

    block: int  # rows under a leaf
    codes: Codes  # [n, d] of the rows, sorted by bucket
    taken: NDArray[np.bool_]  # [n]
    first: Ints  # [buckets]
    leaves: Ints  # [buckets] a power of two
    free: Ints  # [nodes] free rows under the node
    lo: Codes  # [nodes, d]
    hi: Codes  # [nodes, d]
    sums: Reals  # [d] of the positions of all free rows


@kernel
def trees(shelf: SortedBuckets, quasi: Codes, scales: Scales, block: int = BLOCK) -> Trees:
    """Build the trees of all buckets, every row free. With a `block` of all rows they only count: taking a row is fast then."""
    n, d, b = len(shelf.rows), quasi.shape[1], len(shelf.start) - 1
    first, leaves = np.zeros(b + 1, np.int64), np.ones(b, np.int64)
    for i in range(b):
        while leaves[i] * block < shelf.start[i + 1] - shelf.start[i]:
            leaves[i] *= 2
        first[i + 1] = first[i] + 2 * leaves[i]
    lo, hi = np.full((first[b], d), np.iinfo(np.int32).max, np.int32), np.full((first[b], d), -1, np.int32)
    forest = Trees(
        block, quasi[shelf.rows], np.zeros(n, np.bool_), first[:b], leaves, np.zeros(first[b], np.int64), lo, hi, np.zeros(d)
    )
    for i in range(b):
        for at in range(shelf.start[i], shelf.start[i + 1]):
            node = first[i] + leaves[i] + (at - shelf.start[i]) // block
            forest.free[node] += 1
            for j in range(d):
                code = forest.codes[at, j]
                lo[node, j], hi[node, j] = min(lo[node, j], code), max(hi[node, j], code)
                forest.sums[j] += scales.position[scales.leaf_start[j] + code]
        for x in range(leaves[i] - 1, 0, -1):
            node, one = first[i] + x, first[i] + 2 * x
            forest.free[node] = forest.free[one] + forest.free[one + 1]
            for j in range(d):
                lo[node, j], hi[node, j] = min(lo[one, j], lo[one + 1, j]), max(hi[one, j], hi[one + 1, j])
    return forest


@kernel
def take(forest: Trees, shelf: SortedBuckets, scales: Scales, i: int, at: int) -> None:
    """Mark the row at this position of bucket i as taken."""
    forest.taken[at] = True
    x = forest.leaves[i] + (at - shelf.start[i]) // forest.block
    while x > 0:
        forest.free[forest.first[i] + x] -= 1
        x //= 2
    for j in range(forest.codes.shape[1]):
        forest.sums[j] -= scales.position[scales.leaf_start[j] + forest.codes[at, j]]


@inlined
def _measure_cost(costs: Costs, box: Codes, low: Codes, high: Codes, x: int, pull: float) -> float:
    """Cost of the box with a row somewhere in low[x]..high[x], plus `pull` times the cost of this row and the seed alone."""
    total, table, table_start = 0.0, costs.table, costs.table_start
    for j in range(box.shape[1]):
        below, above = low[x, j], high[x, j]
        lo, hi = min(box[0, j], above), max(box[1, j], below)
        first, last = min(box[2, j], above), max(box[2, j], below)
        if table_start[j] >= 0:
            side = costs.scales.size[j] + 1
            total += table[table_start[j] + lo * side + hi] + pull * table[table_start[j] + first * side + last]
        else:
            total += range_cost(costs, j, lo, hi) + pull * range_cost(costs, j, first, last)
    return total


@kernel
def nearest(forest: Trees, shelf: SortedBuckets, costs: Costs, i: int, box: Codes, pull: float) -> int:
    """Position of the cheapest free row of bucket i; ties go to the first found when nearer halves are searched first.

    `box` = lowest codes, highest codes and seed of an incomplete class.
    """
    codes, lo, hi = forest.codes, forest.lo, forest.hi
    stack, bound = np.empty(DEEP, np.int64), np.empty(DEEP)
    stack[0], bound[0], depth = 1, 0.0, 1
    best, found = np.inf, -1
    while depth > 0:
        depth -= 1
        x = stack[depth]
        if bound[depth] >= best:
            continue
        if x >= forest.leaves[i]:
            begin = shelf.start[i] + (x - forest.leaves[i]) * forest.block
            for at in range(begin, min(begin + forest.block, shelf.start[i + 1])):
                if not forest.taken[at]:
                    cost = _measure_cost(costs, box, codes, codes, at, pull)
                    if cost < best:
                        best, found = cost, at
            continue
        one, two = forest.first[i] + 2 * x, forest.first[i] + 2 * x + 1
        to_one = _measure_cost(costs, box, lo, hi, one, pull) if forest.free[one] > 0 else np.inf
        to_two = _measure_cost(costs, box, lo, hi, two, pull) if forest.free[two] > 0 else np.inf
        near = 0 if to_one <= to_two else 1  # the last pushed is visited first
        stack[depth], bound[depth] = 2 * x + 1 - near, max(to_one, to_two)
        stack[depth + 1], bound[depth + 1] = 2 * x + near, min(to_one, to_two)
        depth += 2
    return found


@kernel
def _reach(scales: Scales, lo: Codes, hi: Codes, centre: Reals) -> float:
    """Squared distance from the centre to the far corner of a box."""
    total = 0.0
    for j in range(len(lo)):
        first = scales.leaf_start[j]
        way = max(centre[j] - scales.position[first + lo[j]], scales.position[first + hi[j]] - centre[j])
        total += way * way
    return total


@kernel
def farthest(forest: Trees, shelf: SortedBuckets, scales: Scales, i: int, centre: Reals, beyond: float) -> tuple[int, float]:
    """Position of the free row of bucket i farthest from a point, and its squared distance; -1 if none is `beyond`."""
    stack = np.empty(DEEP, np.int64)
    stack[0], depth = 1, 1
    found = -1
    while depth > 0:
        depth -= 1
        x = stack[depth]
        node = forest.first[i] + x
        if forest.free[node] == 0 or _reach(scales, forest.lo[node], forest.hi[node], centre) <= beyond:
            continue
        if x >= forest.leaves[i]:
            begin = shelf.start[i] + (x - forest.leaves[i]) * forest.block
            for at in range(begin, min(begin + forest.block, shelf.start[i + 1])):
                if not forest.taken[at]:
                    way = _reach(scales, forest.codes[at], forest.codes[at], centre)
                    if way > beyond:
                        beyond, found = way, at
            continue
        stack[depth], stack[depth + 1] = 2 * x + 1, 2 * x
        depth += 2
    return found, beyond

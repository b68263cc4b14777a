"""Exact nearest free rows: one tree of boxes per bucket over its rows in Hilbert order, pruned by what a box must cost.

What a row costs a class is a sum over columns of the cost of a range of codes: of the class's box with the row in it.
A range never becomes cheaper by growing, so the nearest corner of a node's box bounds the cost of every row under it.
With squares of differences of positions as range costs and the seed alone as box this is the Euclidean distance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from closeknit.kernels.boxes import Codes, Ints, Reals, Scales
from closeknit.kernels.filling import Seeds, Shelves, next_seed
from closeknit.kernels.ranges import Costs, costs, grown_cost

BLOCK = 8  # rows under a leaf of a tree


class Trees(NamedTuple):
    """One binary tree per bucket: node 1 is the root, children of x are 2x and 2x + 1; node x of bucket i at `first[i] + x`."""

    codes: Codes  # [n, d] of the rows on the shelves
    taken: NDArray[np.bool_]  # [n]
    first: Ints
    leaves: Ints  # [buckets] leaves of the tree, a power of two
    free: Ints  # [nodes] rows left under the node
    lo: Codes  # [nodes, d]
    hi: Codes


@njit(cache=True, nogil=True)
def trees(shelf: Shelves, quasi: Codes) -> Trees:
    """Trees over all shelves, every row free."""
    n, d, b = len(shelf.rows), quasi.shape[1], len(shelf.start) - 1
    first, leaves = np.empty(b, np.int64), np.ones(b, np.int64)
    total = 0
    for i in range(b):
        while leaves[i] * BLOCK < shelf.start[i + 1] - shelf.start[i]:
            leaves[i] *= 2
        first[i] = total
        total += 2 * leaves[i]
    free = np.zeros(total, np.int64)
    lo = np.full((total, d), np.iinfo(np.int32).max, np.int32)
    hi = np.full((total, d), -1, np.int32)
    codes = np.empty((n, d), np.int32)
    for i in range(b):
        for at in range(shelf.start[i], shelf.start[i + 1]):
            node = first[i] + leaves[i] + (at - shelf.start[i]) // BLOCK
            free[node] += 1
            for j in range(d):
                codes[at, j] = quasi[shelf.rows[at], j]
                lo[node, j], hi[node, j] = min(lo[node, j], codes[at, j]), max(hi[node, j], codes[at, j])
        for x in range(leaves[i] - 1, 0, -1):
            node, one, two = first[i] + x, first[i] + 2 * x, first[i] + 2 * x + 1
            free[node] = free[one] + free[two]
            for j in range(d):
                lo[node, j], hi[node, j] = min(lo[one, j], lo[two, j]), max(hi[one, j], hi[two, j])
    return Trees(codes, np.zeros(n, np.bool_), first, leaves, free, lo, hi)


@njit(cache=True, nogil=True)
def _take(grove: Trees, shelf: Shelves, i: int, at: int) -> None:
    """The row at this place of shelf i is free no more; boxes above it shrink to what is left."""
    grove.taken[at] = True
    x = grove.leaves[i] + (at - shelf.start[i]) // BLOCK
    while x > 0:
        grove.free[grove.first[i] + x] -= 1
        x //= 2


@njit(cache=True, nogil=True)
def _sift(near: Ints, cost: Reals, size: int) -> None:
    """Let the last of a heap (dearest first) rise, or with a full heap the first sink."""
    x = size - 1
    while x > 0 and cost[(x - 1) // 2] < cost[x]:
        up = (x - 1) // 2
        cost[x], cost[up], near[x], near[up] = cost[up], cost[x], near[up], near[x]
        x = up


@njit(cache=True, nogil=True)
def _sink(near: Ints, cost: Reals, size: int) -> None:
    x = 0
    while 2 * x + 1 < size:
        child = 2 * x + 1
        if child + 1 < size and cost[child + 1] > cost[child]:
            child += 1
        if cost[child] <= cost[x]:
            return
        cost[x], cost[child], near[x], near[child] = cost[child], cost[x], near[child], near[x]
        x = child


@njit(cache=True, nogil=True)
def _nearest(grove: Trees, shelf: Shelves, costs: Costs, i: int, lo: Codes, hi: Codes, wanted: int,
             near: Ints, cost: Reals, stack: Ints, bound: Reals) -> None:  # fmt: skip
    """Places of the `wanted` cheapest free rows of shelf i into `near`; among equals those met first on the way down."""
    size, depth = 0, 1
    stack[0], bound[0] = 1, 0.0
    while depth > 0:
        depth -= 1
        x = stack[depth]
        if size == wanted and bound[depth] >= cost[0]:
            continue
        if x >= grove.leaves[i]:
            begin = shelf.start[i] + (x - grove.leaves[i]) * BLOCK
            for at in range(begin, min(begin + BLOCK, shelf.start[i + 1])):
                if grove.taken[at]:
                    continue
                here = grown_cost(costs, lo, hi, grove.codes[at], grove.codes[at])
                if size < wanted:
                    near[size], cost[size] = at, here
                    size += 1
                    _sift(near, cost, size)
                elif here < cost[0]:
                    near[0], cost[0] = at, here
                    _sink(near, cost, size)
            continue
        one, two = grove.first[i] + 2 * x, grove.first[i] + 2 * x + 1
        to_one = grown_cost(costs, lo, hi, grove.lo[one], grove.hi[one]) if grove.free[one] > 0 else np.inf
        to_two = grown_cost(costs, lo, hi, grove.lo[two], grove.hi[two]) if grove.free[two] > 0 else np.inf
        swap = to_two < to_one
        for child in ((2 * x, 2 * x + 1) if swap else (2 * x + 1, 2 * x)):  # the nearer is looked at first
            to = to_one if child == 2 * x else to_two
            if to < np.inf:
                stack[depth], bound[depth] = child, to
                depth += 1


@njit(cache=True, nogil=True)
def _farthest(grove: Trees, shelf: Shelves, costs: Costs, allotment: Ints, centre: Reals, stack: Ints) -> int:
    """Place of the free row farthest from a point of the unit cube (Euclid), in a bucket the class takes from."""
    best, found = -1.0, -1
    for i in range(len(allotment)):
        if allotment[i] == 0:
            continue
        depth = 1
        stack[0] = 1
        while depth > 0:
            depth -= 1
            x = stack[depth]
            node = grove.first[i] + x
            if grove.free[node] == 0 or _reach(costs.scales, grove.lo[node], grove.hi[node], centre) <= best:
                continue
            if x >= grove.leaves[i]:
                begin = shelf.start[i] + (x - grove.leaves[i]) * BLOCK
                for at in range(begin, min(begin + BLOCK, shelf.start[i + 1])):
                    if not grove.taken[at]:
                        way = _reach(costs.scales, grove.codes[at], grove.codes[at], centre)
                        if way > best:
                            best, found = way, at
                continue
            stack[depth], stack[depth + 1] = 2 * x + 1, 2 * x
            depth += 2
    return found


@njit(cache=True, nogil=True)
def _reach(scales: Scales, lo: Codes, hi: Codes, centre: Reals) -> float:
    """Squared distance from the centre to the far corner of a box."""
    total = 0.0
    for j in range(len(lo)):
        first = scales.leaf_start[j]
        way = max(centre[j] - scales.position[first + lo[j]], scales.position[first + hi[j]] - centre[j])
        total += way * way
    return total


@njit(cache=True, nogil=True)
def nearest_rows(shelf: Shelves, allotments: Ints, quasi: Codes, scales: Scales, seeds: Seeds, euclid: bool, grow: bool, far: int) -> Codes:
    n, b, d = len(shelf.rows), allotments.shape[1], quasi.shape[1]
    class_of = np.empty(n, np.int32)
    price = costs(scales, euclid)
    grove = trees(shelf, quasi)
    free = np.diff(shelf.start)
    most = 1
    for i in range(b):
        for c in range(allotments.shape[0]):
            most = max(most, allotments[c, i])
    near, cost = np.empty(most, np.int64), np.empty(most)
    stack, bound = np.empty(128, np.int64), np.empty(128)
    lo, hi = np.empty(d, np.int32), np.empty(d, np.int32)
    total = np.zeros(d)
    for at in range(n):
        for j in range(d):
            total[j] += scales.position[scales.leaf_start[j] + grove.codes[at, j]]
    left = n
    last=np.zeros(d)
    for c in range(allotments.shape[0]):
        if far==1:
            seed = _farthest(grove, shelf, price, allotments[c], total / max(left, 1), stack)
        elif far==2:
            seed = _farthest(grove, shelf, price, allotments[c], last, stack)
        else:
            seed = next_seed(seeds, shelf, grove.taken, free, allotments[c], c)
        if seed < 0:
            continue
        lo[:] = grove.codes[seed]
        hi[:] = grove.codes[seed]
        for j in range(d): last[j]=scales.position[scales.leaf_start[j]+lo[j]]
        own = np.searchsorted(shelf.start, seed, side="right") - 1
        for step in range(b):
            i = (own + step) % b
            wanted = allotments[c, i]
            if wanted == 0: continue
            if i == own:
                class_of[shelf.rows[seed]]=c
                _take(grove,shelf,i,seed)
                wanted-=1
            if wanted>0: _nearest(grove, shelf, price, i, lo, hi, wanted, near, cost, stack, bound)
            for x in range(wanted):
                class_of[shelf.rows[near[x]]] = c
                _take(grove, shelf, i, near[x])
                for j in range(d):
                    code = grove.codes[near[x], j]
                    total[j] -= scales.position[scales.leaf_start[j] + code]
                    if grow:
                        lo[j], hi[j] = min(lo[j], code), max(hi[j], code)
            if i==own:
                for j in range(d):
                    total[j] -= scales.position[scales.leaf_start[j] + grove.codes[seed,j]]
            free[i] -= allotments[c,i]
            left -= allotments[c,i]
    return class_of

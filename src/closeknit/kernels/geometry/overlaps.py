"""Search for boxes of codes that overlap a given one: a binary tree over the boxes.

A point is a box of one code in every column. So the same search finds the boxes that cover a point, and the points in a box. A
node stores the least and greatest of both ends under it: if no box can overlap the node is skipped, and if all do its total
weight is added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import inlined, kernel

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]

BLOCK = 8  # boxes under a leaf
DEEP = 130  # stack entries: two per level, and no tree has 64 levels


class BoxTree(NamedTuple):
    """Node x (the root is 1, its children 2x and 2x + 1); leaf i has the boxes `order[i * BLOCK : (i + 1) * BLOCK]`."""

    order: Ints  # [b]
    lo: Codes  # [b, d] in that order
    hi: Codes
    weight: Reals  # [b]
    leaves: int  # a power of two
    total: Reals  # [nodes] weight of all boxes under a node
    ends: Codes  # [nodes, 4, d] least and greatest lower end, least and greatest upper end


@kernel
def box_tree(lo: Codes, hi: Codes, weight: Reals) -> BoxTree:
    """Build the tree over boxes `lo[b, d] .. hi[b, d]`; a box that is empty in some column overlaps nothing.

    >>> one = np.array([[0], [3]], np.int32)
    >>> float(box_tree(one, one, np.ones(2)).total[1])
    2.0
    """
    b, d = lo.shape
    leaves = 1
    while leaves * BLOCK < b:
        leaves *= 2
    order = _sort_by_halves(lo, hi, leaves)
    tree = BoxTree(
        order, lo[order], hi[order], weight[order], leaves, np.zeros(2 * leaves), np.empty((2 * leaves, 4, d), np.int32)
    )
    tree.ends[:, 0], tree.ends[:, 2] = np.iinfo(np.int32).max, np.iinfo(np.int32).max
    tree.ends[:, 1], tree.ends[:, 3] = np.iinfo(np.int32).min, np.iinfo(np.int32).min
    for i in range(b):
        x = leaves + i // BLOCK
        tree.total[x] += tree.weight[i]
        for j in range(d):
            _widen(tree.ends, x, j, tree.lo[i, j], tree.lo[i, j], tree.hi[i, j], tree.hi[i, j])
    for x in range(leaves - 1, 0, -1):
        tree.total[x] = tree.total[2 * x] + tree.total[2 * x + 1]
        for child in (2 * x, 2 * x + 1):
            for j in range(d):
                ends = tree.ends[child, :, j]
                _widen(tree.ends, x, j, ends[0], ends[1], ends[2], ends[3])
    return tree


@kernel
def _widen(ends: Codes, x: int, j: int, a: int, b: int, c: int, d: int) -> None:
    ends[x, 0, j], ends[x, 1, j] = min(ends[x, 0, j], a), max(ends[x, 1, j], b)
    ends[x, 2, j], ends[x, 3, j] = min(ends[x, 2, j], c), max(ends[x, 3, j], d)


@kernel
def _sort_by_halves(lo: Codes, hi: Codes, leaves: int) -> Ints:
    """Sort the boxes so that each node is halved in the column in which the middles of its boxes spread most."""
    b, d = lo.shape
    order = np.arange(b)
    middle = lo.astype(np.int64) + hi
    width = np.ones(d, np.int64)
    for j in range(d):
        for i in range(b):
            width[j] = max(width[j], hi[i, j] + 1)
    size = leaves * BLOCK
    while size > BLOCK:
        for begin in range(0, b, size):
            end = min(begin + size, b)
            widest, spread = 0, -1.0
            for j in range(d):
                values = middle[order[begin:end], j]
                across = (values.max() - values.min()) / width[j]
                if across > spread:
                    widest, spread = j, across
            if d > 0:
                inside = order[begin:end]
                order[begin:end] = inside[np.argsort(middle[inside, widest], kind="mergesort")]
        size //= 2
    return order


@inlined
def _relation(ends: Codes, x: int, lo: Codes, hi: Codes) -> int:
    """0: no box under the node overlaps; 2: all do; 1: some may."""
    every = True
    for j in range(len(lo)):
        if ends[x, 0, j] > hi[j] or ends[x, 3, j] < lo[j]:
            return 0
        every = every and ends[x, 1, j] <= hi[j] and ends[x, 2, j] >= lo[j] and ends[x, 1, j] <= ends[x, 2, j]
    return 2 if every else 1


@inlined
def _overlap(tree: BoxTree, i: int, lo: Codes, hi: Codes) -> bool:
    yes = True
    for j in range(len(lo)):
        yes = yes and tree.lo[i, j] <= hi[j] and tree.hi[i, j] >= lo[j] and tree.lo[i, j] <= tree.hi[i, j]
    return yes


@inlined
def _next_node(tree: BoxTree, stack: Ints, depth: int, lo: Codes, hi: Codes, sums: bool) -> tuple[int, bool, int]:
    """Walk on to a leaf under which some boxes may overlap, or with `sums` to a node under which all do (True); 0: the end."""
    while depth > 0:
        depth -= 1
        x = stack[depth]
        relation = _relation(tree.ends, x, lo, hi)
        if sums and relation == 2:
            return x, True, depth
        if relation > 0 and x >= tree.leaves:
            return x, False, depth
        if relation > 0:
            stack[depth], stack[depth + 1] = 2 * x, 2 * x + 1
            depth += 2
    return 0, False, 0


@inlined
def _boxes_under(tree: BoxTree, x: int) -> tuple[int, int]:
    """The first box of a leaf, and the first one after them."""
    begin = (x - tree.leaves) * BLOCK
    return begin, min(begin + BLOCK, len(tree.order))


@kernel
def overlapping_weight(tree: BoxTree, lo: Codes, hi: Codes) -> Reals:
    """Weight of all boxes of the tree that overlap each query box.

    >>> tree = box_tree(np.array([[0], [2]], np.int32), np.array([[2], [5]], np.int32), np.array([10.0, 1.0]))
    >>> requested = np.array([[1], [2], [9]], np.int32)
    >>> overlapping_weight(tree, requested, requested).tolist()
    [10.0, 11.0, 0.0]
    """
    found = np.zeros(len(lo))
    stack = np.empty(DEEP, np.int64)
    for q in range(len(lo)):
        if (lo[q] > hi[q]).any():
            continue
        stack[0] = 1
        x, whole, depth = _next_node(tree, stack, 1, lo[q], hi[q], True)
        while x > 0:
            if whole:
                found[q] += tree.total[x]
            else:
                begin, end = _boxes_under(tree, x)
                for i in range(begin, end):
                    if _overlap(tree, i, lo[q], hi[q]):
                        found[q] += tree.weight[i]
            x, whole, depth = _next_node(tree, stack, depth, lo[q], hi[q], True)
    return found


@kernel
def weigh_boxes(tree: BoxTree, lo: Codes, hi: Codes, weight: Reals) -> Reals:
    """Weight of all query boxes that overlap each box of the tree: for few boxes and many queries.

    >>> tree = box_tree(np.array([[0], [2]], np.int32), np.array([[2], [5]], np.int32), np.ones(2))
    >>> points = np.array([[1], [2], [9]], np.int32)
    >>> weigh_boxes(tree, points, points, np.array([10.0, 1.0, 5.0])).tolist()
    [11.0, 1.0]
    """
    found, held = np.zeros(len(tree.order)), np.zeros(2 * tree.leaves)
    stack = np.empty(DEEP, np.int64)
    for q in range(len(lo)):
        if (lo[q] > hi[q]).any():
            continue
        stack[0] = 1
        x, whole, depth = _next_node(tree, stack, 1, lo[q], hi[q], True)
        while x > 0:
            if whole:
                held[x] += weight[q]  # for every box under the node
            else:
                begin, end = _boxes_under(tree, x)
                for i in range(begin, end):
                    if _overlap(tree, i, lo[q], hi[q]):
                        found[tree.order[i]] += weight[q]
            x, whole, depth = _next_node(tree, stack, depth, lo[q], hi[q], True)
    for x in range(1, tree.leaves):
        held[2 * x] += held[x]
        held[2 * x + 1] += held[x]
    for i in range(len(tree.order)):
        found[tree.order[i]] += held[tree.leaves + i // BLOCK]
    return found


@kernel
def overlapping(tree: BoxTree, lo: Codes, hi: Codes, counts: Ints) -> Ints:
    """Boxes of the tree that overlap each query box, ascending, concatenated over the queries; `counts[q]` for query q.

    >>> tree = box_tree(np.array([[0], [2]], np.int32), np.array([[2], [5]], np.int32), np.ones(2))
    >>> overlapping(tree, np.array([[2], [4]], np.int32), np.array([[2], [4]], np.int32), np.array([2, 1])).tolist()
    [0, 1, 1]
    """
    found = np.empty(counts.sum(), np.int64)
    stack = np.empty(DEEP, np.int64)
    at = 0
    for q in range(len(lo)):
        first = at
        stack[0] = 1
        x, _, depth = _next_node(tree, stack, int(counts[q] > 0), lo[q], hi[q], False)
        while x > 0:
            begin, end = _boxes_under(tree, x)
            for i in range(begin, end):
                if _overlap(tree, i, lo[q], hi[q]):
                    found[at] = tree.order[i]
                    at += 1
            x, _, depth = _next_node(tree, stack, depth, lo[q], hi[q], False)
        found[first:at].sort()
    return found


@kernel
def points_at_ends(tree: BoxTree, lo: Codes, hi: Codes, ends: Codes) -> tuple[Reals, Ints]:
    """For each query box: the weight of the points with code `ends[q, j, e]` in column j, and one of them (-1: none).

    The tree contains points. Integer weights are counted up to 2: more does not single a point out, and the search ends as
    soon as all ends have that many. A negative end is skipped.

    >>> points = np.array([[1, 7], [1, 8], [4, 8]], np.int32)
    >>> ends = np.array([[[1, 4], [-1, -1]]], np.int32)
    >>> weight, found = points_at_ends(box_tree(points, points, np.ones(3)), np.array([[1, 7]], np.int32),
    ...                                np.array([[4, 9]], np.int32), ends)
    >>> weight[0, 0].tolist(), found[0, 0, 1].tolist()
    ([2.0, 1.0], 2)
    """
    weight, found = np.zeros(ends.shape), np.full(ends.shape, -1, np.int64)
    stack = np.empty(DEEP, np.int64)
    for q in range(len(lo)):
        wanted = (ends[q] >= 0).sum()
        stack[0] = 1
        x, _, depth = _next_node(tree, stack, 1, lo[q], hi[q], False)
        while x > 0 and wanted > 0:
            begin, end = _boxes_under(tree, x)
            for i in range(begin, end):
                if _overlap(tree, i, lo[q], hi[q]):
                    wanted -= _add_at_ends(tree, i, ends[q], weight[q], found[q])
            x, _, depth = _next_node(tree, stack, depth, lo[q], hi[q], False)
    return weight, found


@inlined
def _add_at_ends(tree: BoxTree, i: int, ends: Codes, weight: Reals, found: Ints) -> int:
    """Count a point of the box at each end that has less than 2; return how many ends reach 2."""
    overlapping = 0
    for j in range(len(ends)):
        for e in range(2):
            if tree.lo[i, j] == ends[j, e] and weight[j, e] < 2:
                weight[j, e] += tree.weight[i]
                found[j, e] = tree.order[i]
                overlapping += weight[j, e] >= 2
    return overlapping

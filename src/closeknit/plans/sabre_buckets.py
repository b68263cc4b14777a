"""SABRE's first phase: values of the sensitive attribute are put into buckets until no choice of rows inside them can cost
more than `t`.

If a class takes from every bucket its fair number of rows, whichever they are, its earth mover's distance to the release
is at most U, the sum over buckets of

    CET(B) = max over l in B of sum over i in B of d(l, i) * p_i,

reached when all rows taken from B carry the one value l (the distance is convex). From one bucket of all present values on, the
bucket that gains most is split until U <= t: on a line at its best cut, in a tree into the children of its lowest node.

Source: the thesis on SABRE and BUREL, sec. 3.3 and 3.4.1, `bucketNum` and `bucketCat`.

Different from the source:
- a bucket is split while `U > t`, not `U >= t`, and only if it has two present values or more: as printed t = 0 never
  ends, and a bucket of one value could be split into nothing, its rows lost;
- the left part of a cut ends with the cutting value; the node of a bucket is the lowest over its *present* values;
- `bound="exact"` is CET above. The printed bound in a tree, h(node)/h(top) * (sum p - min p), is one but not tight, although
  its theorem says so; `bound="printed"` keeps it. On a line both are the same.

All in whole numbers over n * scale. Cost: on a line O(m) a split, O(m^2) at worst; in a tree O(nodes * depth).
"""

from __future__ import annotations

import heapq
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.params import choice
from closeknit.kernels.arrays import Int32, Int64
from closeknit.plans.ground import Branches, Line, ground_of

BOUNDS = ("exact", "printed")


def bucketize(counts: Int64, domain: Domain, distance: str, t: Fraction, bound: str = "exact") -> list[Int32]:
    """Buckets of present leaf codes, in the order of their codes, with U <= t.

    >>> from closeknit.core.kinds import numeric
    >>> domain, _ = numeric().bind(np.array([1, 2, 3, 4]))
    >>> [codes.tolist() for codes in bucketize(np.array([2, 3, 3, 2, 0]), domain, "ordered", Fraction(1, 4))]
    [[0, 1], [2, 3]]
    """
    choice("bound", bound, BOUNDS)
    ground = ground_of(counts, domain, distance)
    if len(ground.codes) == 0:
        return []
    room = Fraction(t) * int(counts.sum()) * ground.scale  # what U may be, over n * scale
    return _cut_line(ground, room) if isinstance(ground, Line) else _open_tree(ground, room, bound)


def measure_spread(counts: Int64, domain: Domain, distance: str, buckets: list[Int32], bound: str = "exact") -> Fraction:
    """U of any buckets that are runs of a line or subtrees.

    >>> from closeknit.core.kinds import numeric
    >>> domain, _ = numeric().bind(np.array([1, 2, 3, 4]))
    >>> measure_spread(np.array([2, 3, 3, 2, 0]), domain, "ordered", [np.array([0, 1, 2, 3])])
    Fraction(1, 2)
    """
    ground = ground_of(counts, domain, distance)
    if isinstance(ground, Line):
        runs = _Runs(ground)
        ends = [np.searchsorted(ground.codes, [codes[0], codes[-1]]).tolist() for codes in buckets]
        total = sum(runs.cost(first, last) for first, last in ends)
    else:
        costs = node_costs(ground, bound)
        total = sum(int(costs[ground.tree.cover([codes[0]], [codes[-1]])[0]]) for codes in buckets)
    return Fraction(total, max(int(counts.sum()), 1) * ground.scale)


class _Runs:
    """CET of any run of present values in O(1), by prefix sums of p and of rank * p."""

    def __init__(self, line: Line) -> None:
        self.ranks = line.ranks
        self.mass = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(line.counts)])
        self.moment = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(line.ranks * line.counts)])

    def costs(self, first: NDArray[np.integer] | int, last: NDArray[np.integer] | int) -> Int64:
        mass = self.mass[last + 1] - self.mass[first]
        moment = self.moment[last + 1] - self.moment[first]
        costs: Int64 = np.maximum(moment - self.ranks[first] * mass, self.ranks[last] * mass - moment)
        return costs

    def cost(self, first: int, last: int) -> int:
        return int(self.costs(first, last))

    def best_cut(self, first: int, last: int) -> tuple[int, int]:
        """The gain of the best cut, and the last index of its left part (the smallest on a tie)."""
        left = np.arange(first, last)
        parts = self.costs(first, left) + self.costs(left + 1, last)
        best = int(np.argmin(parts))
        return self.cost(first, last) - int(parts[best]), first + best


def _cut_line(line: Line, room: Fraction) -> list[Int32]:
    runs = _Runs(line)
    heap: list[tuple[int, int, int, int]] = []

    def offer(first: int, last: int) -> None:
        if first < last:
            gain, cut = runs.best_cut(first, last)
            heapq.heappush(heap, (-gain, first, last, cut))

    ends = [len(line.codes) - 1]
    offer(0, ends[0])
    total = runs.cost(0, ends[0])
    while total > room:
        loss, first, last, cut = heapq.heappop(heap)
        total += loss
        ends.append(cut)
        offer(first, cut)
        offer(cut + 1, last)
    return np.split(line.codes, np.sort(ends)[:-1] + 1)


def node_costs(ground: Branches, bound: str) -> Int64:
    """CET of the present leaves under every node.

    Exact: if l lies under the child c of x, everything outside c pays h(x); so CET(x) = max CET(c) + h(x) * (p(x) - p(c)).
    """
    tree, rows = ground.tree, ground.rows
    costs = np.zeros(len(rows), dtype=np.int64)
    least = np.where(tree.height == 0, rows, np.iinfo(np.int64).max)
    for level in reversed(ground.levels):
        above = tree.parent[level]
        np.maximum.at(costs, above, costs[level] + tree.height[above] * (rows[above] - rows[level]))
        np.minimum.at(least, above, least[level])
    if bound == "exact":
        return costs
    height = tree.height[ground.narrow].astype(np.int64)
    return np.where(rows > 0, height * (rows - np.where(rows > 0, least, 0)), 0)


def _open_tree(ground: Branches, room: Fraction, bound: str) -> list[Int32]:
    costs, parent = node_costs(ground, bound), ground.tree.parent
    nodes = np.flatnonzero(ground.rows > 0)
    nodes = nodes[nodes > 0]
    inside = np.zeros(len(costs), dtype=np.int64)
    np.add.at(inside, parent[nodes], costs[nodes])
    order = nodes[np.argsort(parent[nodes], kind="stable")]
    starts = np.searchsorted(parent[order], np.arange(len(costs) + 1))
    heap: list[tuple[int, int]] = []
    done: list[int] = []

    def offer(node: int) -> None:
        low = int(ground.narrow[node])
        if ground.branching[low]:
            heapq.heappush(heap, (int(inside[low] - costs[low]), low))
        else:
            done.append(low)

    offer(0)
    total = int(costs[0])
    while total > room:
        loss, node = heapq.heappop(heap)
        total += loss
        for child in order[starts[node] : starts[node + 1]].tolist():
            offer(child)
    return [ground.leaves(node) for node in sorted([*done, *(node for _, node in heap)])]

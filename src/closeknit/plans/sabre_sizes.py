"""SABRE's second phase: may a class take `a_j` rows of each bucket `j`, whichever rows a fill then picks?

Source: the thesis on SABRE and BUREL, sec. 3.4.2. With n rows in all and s = |a| in the class, x_j = a_j/s - |B_j|/n:
- `d(a)`: earth mover's distance between class and release over buckets, two buckets as far apart as their farthest values;
- `u`: what choices inside fair buckets can add (see `sabre_buckets`); printed test: `d(a) + u <= t`;
- `worst_case(a)`: the largest distance that any fill can reach. Never above `d(a) + u`, and `worst_case(a) <= t` is just as
  safe, so it allows more classes. `bound="exact"` asks it where the printed test refuses.

The source does not say how D is found. Closed forms, no transportation problem:
- line: farthest values of two runs are |c_i - c_j| + w_i + w_j apart (centres, half widths), so
  D = ( sum (c_{i+1} - c_i) * |x_1 + ... + x_i| + sum w_i * |x_i| ) / (m - 1);
- tree: a bucket is represented by one of its leaves, and the distance is half the sum over nodes of |surplus under it| times
  (height of its parent - its own).

The worst case decouples: what crosses the border of a bucket is fixed by `a`, and inside each the distance is convex, so
one value takes all its rows. Cost of one test: O(m), O(nodes) in a tree. All in whole numbers.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.params import choice
from closeknit.kernels.arrays import Int32, Int64
from closeknit.plans.ground import Branches, Line, ground_of
from closeknit.plans.plan import bucket_sizes
from closeknit.plans.sabre_buckets import BOUNDS, measure_spread

Whole = NDArray[Any]  # int64, or Python's integers where 64 bits are not enough
ROOM = 1 << 62


class ClosenessTest:
    """Judges allotments for buckets in code order, each a run of a line or a subtree.

    >>> from closeknit.core.kinds import numeric
    >>> domain, _ = numeric().bind(np.array([1, 2, 3, 4]))
    >>> buckets = [np.array([0, 1]), np.array([2, 3])]
    >>> test = ClosenessTest(np.array([2, 3, 3, 2, 0]), domain, "ordered", buckets, Fraction(1, 4))
    >>> a = np.array([1, 1])
    >>> test.d(a), test.u, test.worst_case(a), test.allows(a)
    (Fraction(0, 1), Fraction(1, 5), Fraction(1, 5), True)
    """

    def __init__(
        self, counts: Int64, domain: Domain, distance: str, buckets: list[Int32], t: Fraction, bound: str = "exact"
    ) -> None:
        choice("bound", bound, BOUNDS)
        self.t, self.bound = Fraction(t), bound
        self.sizes = bucket_sizes(buckets, counts)
        self.n = int(self.sizes.sum())
        self._given = counts, domain, distance, buckets, bound
        ground = ground_of(counts, domain, distance)
        self._costs = _LineCosts(ground, buckets) if isinstance(ground, Line) else _TreeCosts(ground, buckets)
        self._scale = ground.scale

    @cached_property
    def u(self) -> Fraction:
        """What choices inside fair buckets can cost at most, by the bound requested."""
        return measure_spread(*self._given)

    def d(self, a: Int64) -> Fraction:
        """Distance between the buckets' shares in the class and in the release."""
        whole, s = self._whole(a)
        return Fraction(int(self._costs.between(self.n * whole - s * self._sizes(whole))), 2 * self.n * s * self._scale)

    def worst_case(self, a: Int64) -> Fraction:
        """The largest distance of a class with this allotment."""
        whole, s = self._whole(a)
        surplus = self.n * whole - s * self._sizes(whole)
        return Fraction(int(self._costs.worst(self.n * whole, s, surplus)), 2 * self.n * s * self._scale)

    def allows(self, a: Int64) -> bool:
        """Whether every fill of this allotment is within `t`."""
        if self.d(a) + self.u <= self.t:
            return True
        return self.bound == "exact" and self.worst_case(a) <= self.t

    def _whole(self, a: Int64) -> tuple[Whole, int]:
        s = int(a.sum())
        if s <= 0:
            raise ValueError("an allotment without rows has no distance")
        return (a if 8 * self.n * s * self._scale < ROOM else a.astype(object)), s

    def _sizes(self, like: Whole) -> Whole:
        return self.sizes.astype(like.dtype)


class _LineCosts:
    """Twice the costs on a line, over n * s * (m - 1)."""

    def __init__(self, line: Line, buckets: list[Int32]) -> None:
        if not np.array_equal(np.concatenate([np.empty(0, np.int32), *buckets]), line.codes):
            raise ValueError("buckets must be runs of the present values, in their order")
        lengths = np.array([len(codes) for codes in buckets], dtype=np.int64)
        self.last = np.cumsum(lengths) - 1
        self.first = self.last - lengths + 1
        self.bucket_of = np.repeat(np.arange(len(buckets)), lengths)
        low, high = line.ranks[self.first], line.ranks[self.last]
        self.twice_apart, self.twice_half = np.diff(low + high), high - low
        self.borders = low[1:] - high[:-1]
        self.cuts = np.append(np.diff(line.ranks), 0)  # steps from each value to the next
        self.cumulative = np.cumsum(line.counts)

    def between(self, surplus: Whole) -> Whole:
        crossing = np.abs(np.cumsum(surplus)[:-1])
        return (self.twice_apart * crossing).sum() + (self.twice_half * np.abs(surplus)).sum()

    def worst(self, allotted: Whole, s: int, surplus: Whole) -> Whole:
        borders = (self.borders * np.abs(np.cumsum(surplus)[:-1])).sum()
        # if value l takes all rows, a cut before l has had none of them and a cut from l on all of them
        full = np.cumsum(allotted)
        expected = s * self.cumulative.astype(full.dtype)
        after = np.abs(full[self.bucket_of] - expected) * self.cuts
        before = np.abs((full - allotted)[self.bucket_of] - expected) * self.cuts
        up_to, rest = np.cumsum(before) - before, np.cumsum(after) - after
        inside = np.maximum.reduceat(up_to - rest, self.first) - up_to[self.first] + rest[self.last]
        return 2 * (borders + inside.sum())


class _TreeCosts:
    """Twice the costs in a tree, over n * s * height."""

    def __init__(self, ground: Branches, buckets: list[Int32]) -> None:
        tree, self.rows = ground.tree, ground.rows
        firsts = np.array([codes[0] for codes in buckets], dtype=np.int32)
        tops = tree.cover(firsts, np.array([codes[-1] for codes in buckets], dtype=np.int32))
        for codes, top in zip(buckets, tops.tolist(), strict=True):
            if not np.array_equal(codes, ground.leaves(top)):
                raise ValueError("buckets must be the present leaves under nodes of the tree")
        if sum(map(len, buckets)) != len(ground.codes) or (np.diff(firsts) <= 0).any():
            raise ValueError("buckets must hold every present leaf once, in their order")
        self.step = (tree.height[tree.parent] - tree.height).astype(np.int64)
        self.parent, self.top_height = tree.parent, tree.height[tops].astype(np.int64)
        nodes = np.flatnonzero(self.rows > 0)
        nodes = nodes[nodes > 0]
        self.bucket_of = np.zeros(len(self.rows), dtype=np.int64)
        first_leaf = ground.codes[np.searchsorted(ground.codes, tree.lo[nodes])]
        self.bucket_of[nodes] = np.searchsorted(firsts, first_leaf, side="right") - 1
        top = tops[self.bucket_of]
        is_inside = np.zeros(len(self.rows), dtype=bool)
        is_inside[nodes] = (nodes > top[nodes]) & (tree.hi[nodes] <= tree.hi[top[nodes]])
        self.outside = nodes[~is_inside[nodes]]
        self.levels = [level[is_inside[level]] for level in ground.levels]
        self.starts = np.searchsorted(firsts, tree.lo[self.outside])
        self.ends = np.searchsorted(firsts, tree.hi[self.outside], side="right")
        self.leaf_node = tree.leaf_node[ground.codes]
        self.first_leaf = np.searchsorted(ground.codes, firsts)
        # before any row is placed, each node inside a bucket lacks what it should have
        self.lacking = int((self.step * self.rows)[is_inside].sum())

    def between(self, surplus: Whole) -> Whole:
        return self._outside(surplus) + (self.top_height * np.abs(surplus)).sum()

    def worst(self, allotted: Whole, s: int, surplus: Whole) -> Whole:
        path = np.zeros(len(self.rows), dtype=allotted.dtype)
        for level in self.levels:
            expected = s * self.rows[level].astype(allotted.dtype)
            placed = np.abs(allotted[self.bucket_of[level]] - expected) - expected
            path[level] = path[self.parent[level]] + self.step[level] * placed
        inside = np.maximum.reduceat(path[self.leaf_node], self.first_leaf)
        return self._outside(surplus) + s * self.lacking + inside.sum()

    def _outside(self, surplus: Whole) -> Whole:
        sums = np.concatenate([np.zeros(1, dtype=surplus.dtype), np.cumsum(surplus)])
        return (self.step[self.outside] * np.abs(sums[self.ends] - sums[self.starts])).sum()

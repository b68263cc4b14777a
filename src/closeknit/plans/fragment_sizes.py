"""How many rows of every fragment each class takes.

Dealt: fragments are stacked one after the other and dealt like cards to `e` classes, so each class takes floor or ceil of |F|
/ e. That is not quite a fair share; an allotment `a` of s rows is allowed if, for every sensitive attribute, the smaller one
of two bounds on the distance of *any* class that takes these numbers is within t. With x = a/s - |F|/n:
- D + bound: D moves the surplus of fragments, two of them as far apart as their farthest values (so far as x is 0, nothing
  moves), and `bound` is that of a conforming class. Fragments with the same interval count as one;
  line: D = ( sum (c_{i+1} - c_i) * |x_1 + ... + x_i| + sum w_i * |x_i| ) / (m - 1), in the order of the centres c with the half
  widths w, also where intervals overlap; tree: half the sum of |x|;
- per cut ("best" only): at every cut all rows of the fragments that it cuts may be on either side.

By the greatest common divisor, as printed: q classes that all conform, q the largest divisor of all |F| with n/q >= k.

Source: the dissertation on methods to achieve t-closeness, sec. 4.4.2 and 4.4.3.

Different from the source:
- it takes the divisor itself and forgets k: for a loose t one fragment of n rows gives n classes of one row; and of several
  fragments the divisor is nearly always 1, which is one class. So dealing is the default;
- its class takes r * |F| rows of a fragment; meant is the share of F, r * |F| / n.

A class takes ceil up to some fragment and floor from there on, so of `e` classes only as many lines differ as there are
fragments, plus one: `e` costs little to test. Whole numbers throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.params import choice, whole
from closeknit.kernels.arrays import Int64
from closeknit.plans.fragments import BOUNDS, Fragments
from closeknit.plans.halving import halve
from closeknit.plans.plan import Plan

Whole = NDArray[Any]  # int64, or Python's integers where 64 bits are not enough
ROOM = 1 << 62
SEATS = 1 << 24  # classes times fragments, the size of a plan; and sets times fragments
LARGER = 16  # numbers of classes above the first one found that are tried: dealing more may also be allowed
SIZINGS = ("deal", "halve", "gcd")


def deal_sizes(sizes: Int64, e: int, classes: Int64 | None = None) -> Int64:
    """Rows of each fragment in each of `e` classes (or in some of them).

    >>> deal_sizes(np.array([5, 2, 3]), 3).tolist()
    [[2, 1, 1], [2, 0, 1], [1, 1, 1]]
    """
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    which = np.arange(e) if classes is None else classes
    return np.diff((ends[None, :] - which[:, None] + e - 1) // e, axis=1)


def gcd_classes(sizes: Int64, k: int = 1) -> int:
    """The most classes of at least k rows that all have exactly the same share of every fragment.

    >>> gcd_classes(np.array([250, 100, 350, 300])), gcd_classes(np.array([250, 100, 350, 300]), 21)
    (50, 25)
    """
    g, n = math.gcd(*sizes.tolist()), int(sizes.sum())
    small = [q for q in range(1, math.isqrt(g) + 1) if g % q == 0]
    return max(q for q in [*small, *(g // q for q in small)] if q == 1 or n >= q * k)


class FragmentTest:
    """Judges allotments: whether every class that takes these rows of the fragments is within `t_i` for every sensitive
    attribute.
    """

    def __init__(self, fragments: Fragments, t: Sequence[Fraction], bound: str = "best") -> None:
        choice("bound", bound, tuple(BOUNDS))
        self.t, self.best = [Fraction(limit) for limit in t], bound == "best"
        self.sizes, self.n = fragments.sizes, fragments.space.n
        self.bounds = [fragments.distance_bound(i, bound) for i in range(len(self.t))]
        self.axes = [_AxisCosts(fragments, i) for i in range(len(self.t))]

    def d(self, a: Int64, i: int) -> Fraction:
        """What the surplus of fragments costs in attribute i at most."""
        lines, s = self._lines(a)
        return Fraction(int(self.axes[i].between(self.n * lines - s * self._sizes(lines))[0]), self._whole(int(a.sum()), i))

    def per_cut(self, a: Int64, i: int) -> Fraction:
        """The bound per cut for attribute i."""
        lines, s = self._lines(a)
        return Fraction(int(self.axes[i].per_cut(lines, s, self.n)[0]), self._whole(int(a.sum()), i))

    def allows(self, a: Int64) -> bool:
        """Whether all of these allotments, one a line, keep every t."""
        lines, s = self._lines(a)
        surplus = self.n * lines - s * self._sizes(lines)
        for i, axis in enumerate(self.axes):
            kept = self._check_costs(axis.between(surplus), s, i, self.t[i] - self.bounds[i])
            if self.best and axis.few_sets and not kept.all():
                kept |= self._check_costs(axis.per_cut(lines, s, self.n), s, i, self.t[i])
            if not kept.all():
                return False
        return True

    def _check_costs(self, costs: Whole, s: Whole, i: int, room: Fraction) -> NDArray[np.bool_]:
        if room < 0:
            return np.zeros(len(costs), dtype=bool)
        most = [math.floor(room * self._whole(int(size), i)) for size in s[:, 0].tolist()]
        return np.array([int(cost) <= limit for cost, limit in zip(costs.tolist(), most, strict=True)], dtype=bool)

    def _whole(self, s: int, i: int) -> int:
        return self.n * s * self.axes[i].unit

    def _lines(self, a: Int64) -> tuple[Whole, Whole]:
        lines: Whole = np.atleast_2d(a)
        s: Whole = lines.sum(axis=1, keepdims=True)
        if 4 * self.n * int(s.max()) * max(axis.unit * axis.depth for axis in self.axes) >= ROOM:
            lines, s = lines.astype(object), s.astype(object)
        return lines, s

    def _sizes(self, like: Whole) -> Whole:
        return self.sizes.astype(like.dtype)


class _AxisCosts:
    """Costs in one sensitive attribute over n * s * unit, for many allotments at once."""

    def __init__(self, fragments: Fragments, i: int) -> None:
        axis, (lo, hi) = fragments.space.axes[i], fragments.boxes
        self.unit, self.on_line, self.weight = axis.unit, axis.on_line, axis.weight
        self.depth = 1 if axis.on_line else max(int(axis.weight.sum()), 1)
        boxes, self.group_of = np.unique(np.column_stack([lo[:, i], hi[:, i]]), axis=0, return_inverse=True)
        self.group_of = self.group_of.ravel()
        self.few_sets = len(lo) * len(axis.weight) <= SEATS  # else only D is asked
        inside, open_ = fragments.stance(i) if self.few_sets else (np.zeros((1, 1)), np.zeros((1, 1)))
        self.inside, self.reach = inside.astype(np.float64), np.maximum(inside, open_).astype(np.float64)
        at, rows = fragments.space.cells[:, i], np.zeros(len(axis.codes) + 1, dtype=np.int64)
        np.add.at(rows, at + 1, fragments.space.counts)
        below = np.cumsum(rows)
        self.estimate_rows = below[axis.last + 1] - below[axis.first]
        if self.on_line:  # twice the rank at both ends: their sum is four times the centre, their difference four half widths
            low, high = axis.place[boxes[:, 0]], axis.place[boxes[:, 1]]
            self.order = np.argsort(low + high, kind="stable")
            self.apart = np.diff((low + high)[self.order]) // 2
            self.half = (high - low) // 2

    def between(self, surplus: Whole) -> Whole:
        """D of every line."""
        groups = np.zeros((len(surplus), int(self.group_of.max(initial=-1)) + 1), dtype=surplus.dtype)
        np.add.at(groups.T, self.group_of, surplus.T)
        if not self.on_line:
            return np.abs(groups).sum(axis=1) * (self.unit // 2)
        crossing = np.abs(np.cumsum(groups[:, self.order], axis=1)[:, :-1])
        costs: Whole = (crossing * self.apart).sum(axis=1) + (np.abs(groups) * self.half).sum(axis=1)
        return costs

    def per_cut(self, lines: Whole, s: Whole, n: int) -> Whole:
        """The sum over sets of the farthest that any choice of rows can get there."""
        rows = lines.astype(np.float64)  # products of floats are fast, and these whole numbers are exact in them
        most, least = (n * (rows @ share).astype(np.int64).astype(lines.dtype) for share in (self.reach, self.inside))
        expected = s * self.estimate_rows.astype(lines.dtype)
        costs: Whole = (np.maximum(most - expected, expected - least) * self.weight).sum(axis=1)
        return costs


def most_classes(sizes: Int64, k: int, allows: Callable[[Int64], bool]) -> int:
    """A large number of classes of at least k rows whose dealing is allowed: bisection, then some larger ones.

    >>> most_classes(np.array([50, 50]), 5, lambda a: bool((a.sum(axis=1) >= 7).all()))
    14
    """
    n = int(sizes.sum())
    most = max(min(n // max(k, 1), SEATS // max(len(sizes), 1)), 1)
    ends = np.cumsum(sizes)

    def fine(e: int) -> bool:
        return e == 1 or allows(deal_sizes(sizes, e, np.unique(np.append(ends % e, 0))))

    if fine(most):
        return most
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fine(middle) else (low, middle)
    larger = np.unique(np.linspace(low + 1, min(2 * low, most), LARGER).astype(np.int64))
    return next((e for e in larger[::-1].tolist() if low < e < most and fine(e)), low)


def fragment_plan(fragments: Fragments, t: Sequence[Fraction], k: int = 1, sizing: str = "deal", bound: str = "best") -> Plan:
    """The plan over the cells of a space: which fragment they are in, and what every class takes of it.

    >>> from closeknit.core.classes import Histogram
    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.plans.fragments import Space, find_fragmentation
    >>> domain, codes = numeric().bind(np.repeat([1, 2, 3, 4], [2, 3, 3, 2]))
    >>> space = Space.of([(codes, Histogram.of(np.zeros(10, np.int32), 1, codes, domain), None)])
    >>> fragments = find_fragmentation(space, [Fraction(1, 4)])
    >>> fragment_plan(fragments, [Fraction(1, 4)]).allotments.tolist()
    [[1, 1], [1, 1], [1, 1], [1, 1], [1, 1]]
    """
    choice("sizing", sizing, SIZINGS)
    whole("k", k, least=1)
    sizes = fragments.sizes
    if sizing == "gcd":
        q = gcd_classes(sizes, k)
        allotments = np.tile(sizes // q, (q, 1))
    else:
        allows = FragmentTest(fragments, t, bound).allows
        halves = sizing == "halve"
        allotments = halve(sizes, k, allows, balanced=True) if halves else deal_sizes(sizes, most_classes(sizes, k, allows))
    plan = Plan(fragments.fragment_of, sizes, allotments)
    plan.check(fragments.space.counts)
    return plan

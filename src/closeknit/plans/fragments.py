"""Fragments of the space of several sensitive attributes: boxes of near values, such that fair shares of all of them are near
the release.

A *cell* is a combination of sensitive values that occurs; a *fragment* holds the cells inside a box, one interval of values
per sensitive attribute. If a class takes from every fragment its fair share of rows (it *conforms*), whichever rows they are,
its distance in attribute i is at most `bound_i`. From one fragment of everything on, fragments are cut in two until `bound_i
<= t_i` for every i: each time the cut after which the bounds exceed their limits least, then the one with the least sum of
bounds, then the first.

Three bounds, all in whole numbers over n * twice the scale:
- printed: the sum over fragments of Delta = (all rows of the fragment at one end of its interval);
- grouped: fragments with the same interval in attribute i are added up before Delta is taken;
- per cut: at each cut of the line, fragments that it cuts may have all rows on one side or all on the other;
  the sum over cuts of the worse of the two.
"best" is the smaller one of the last two, for each sensitive attribute. Both are valid for any conforming class, because the
distance is a sum over cuts (per cut) and never more than what groups cost on their own (grouped); a split never raises the
one per cut.

In a tree (and "equal", a tree of one level) leaves are in depth-first order, the cuts are the subtrees, and Delta is the
share of a fragment times the height over its interval: a bound, not a tight one.

Source: the dissertation on methods to achieve t-closeness, sec. 4.3, 4.4.1 and 4.5, `FIND-FRAGMENTATION`.

Different from the source:
- it prints no formula of Delta; here distances are over m - 1 of the whole domain;
- the sum of Delta per fragment can rise by a split (.5 to .6 in its figure 4.6); that is an artefact of the sum;
- the strategy's second case reads as the first one by a slip; each attribute's excess is counted if *it* is above its limit;
- a box ends with values that occur in it: from empty slices at its edge no row can be taken;
- only cells that occur are held, never the product of the domains;
- work is bounded by counts: at most `MOST` fragments, `CUTS` cuts of one fragment along one sensitive attribute (where more
  values occur, at even shares of its rows) and `WORK` looks at a set of values. Where these end the search, `met` is False:
  the plan has no guarantee then, and only what is measured counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import floor

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Histogram
from closeknit.core.params import choice, number
from closeknit.kernels.arrays import Int64
from closeknit.kernels.cutting.fragments import BEST, ENDS, PRINTED, WORK, Axes, State, descend, whole
from closeknit.models.t_closeness import default_distance
from closeknit.plans.ground import Branches, Line, ground_of

BOUNDS = {"best": BEST, "printed": PRINTED}
MOST = 256
CUTS = 64


@dataclass(frozen=True, eq=False)
class Axis:
    """One secret: its present codes in order, and the sets of them (runs `first..last`) whose weighted surplus is the distance.

    `unit` is twice the scale; `place` is twice the rank on a line, twice the height over a value and the next one in a tree.
    """

    codes: NDArray[np.int32]
    first: Int64
    last: Int64
    weight: Int64
    place: Int64
    on_line: bool
    unit: int

    @classmethod
    def of(cls, secret: Histogram, distance: str | None) -> Axis:
        """Of an attribute's counts in the release, under its ground distance."""
        ground = ground_of(secret.reference, secret.domain, distance or default_distance(secret.domain))
        if isinstance(ground, Line):
            last = np.arange(len(ground.codes) - 1)
            return cls(
                ground.codes, np.zeros_like(last), last, 2 * np.diff(ground.ranks), 2 * ground.ranks, True, 2 * ground.scale
            )
        first, last, weight = _subtrees(ground)
        tops = ground.tree.cover(ground.codes[:-1], ground.codes[1:])
        place = np.append(2 * ground.tree.height[tops].astype(np.int64), 0)
        return cls(ground.codes, first, last, weight, place, False, 2 * max(ground.scale, 1))


def _subtrees(ground: Branches) -> tuple[Int64, Int64, Int64]:
    """Runs of present leaves under nodes, each once; the weight of a node is how much higher its parent is."""
    tree = ground.tree
    nodes = np.flatnonzero(ground.rows > 0)
    nodes = nodes[nodes > 0]
    ends = np.searchsorted(ground.codes, tree.lo[nodes]), np.searchsorted(ground.codes, tree.hi[nodes], side="right") - 1
    runs, where = np.unique(np.stack(ends, axis=1), axis=0, return_inverse=True)
    weight = np.bincount(where.ravel(), (tree.height[tree.parent[nodes]] - tree.height[nodes]), minlength=len(runs))
    part = (runs[:, 1] - runs[:, 0] + 1 < len(ground.codes)) & (weight > 0)
    return runs[part, 0], runs[part, 1], weight[part].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Space:
    """The cells that occur: `cells[c, i]` is a place on axis i, `counts[c]` its rows, `cell_of` the cell of every row."""

    axes: tuple[Axis, ...]
    cells: Int64
    counts: Int64
    cell_of: Int64

    @classmethod
    def of(cls, secrets: Sequence[tuple[NDArray[np.integer], Histogram, str | None]]) -> Space:
        """From the codes of every row, the counts and the distance of each sensitive attribute.

        >>> from closeknit.core.kinds import numeric
        >>> domain, codes = numeric().bind(np.array([1, 2, 2, 9]))
        >>> secret = Histogram.of(np.zeros(4, np.int32), 1, codes, domain)
        >>> space = Space.of([(codes, secret, None), (codes[::-1], secret, "equal")])
        >>> space.cells.tolist(), space.counts.tolist(), space.cell_of.tolist()
        ([[0, 2], [1, 1], [2, 0]], [1, 2, 1], [0, 1, 1, 2])
        """
        axes = tuple(Axis.of(secret, distance) for _, secret, distance in secrets)
        cell_of = np.zeros(len(secrets[0][0]), dtype=np.int64)
        cells = np.zeros((min(len(cell_of), 1), 0), dtype=np.int64)
        for axis, (codes, _, _) in zip(axes, secrets, strict=True):
            keys = cell_of * len(axis.codes) + np.searchsorted(axis.codes, codes)
            found, cell_of = np.unique(keys, return_inverse=True)
            cells = np.column_stack([cells[found // max(len(axis.codes), 1)], found % max(len(axis.codes), 1)])
        return cls(axes, cells, np.bincount(cell_of, minlength=len(cells)), cell_of)

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class Fragments:
    """`fragment_of[cell]`; parts of one split are side by side. `met`: whether the bounds requested were reached."""

    space: Space
    fragment_of: NDArray[np.int32]
    met: bool = True
    _known: dict[tuple[int, str], Fraction] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> Int64:
        """Rows of every fragment."""
        return np.bincount(self.fragment_of, weights=self.space.counts).astype(np.int64)

    @cached_property
    def boxes(self) -> tuple[Int64, Int64]:
        """First and last place that occurs in every fragment, along every axis."""
        lo = np.full((len(self.sizes), len(self.space.axes)), np.iinfo(np.int64).max)
        hi = np.full_like(lo, -1)
        np.minimum.at(lo, self.fragment_of, self.space.cells)
        np.maximum.at(hi, self.fragment_of, self.space.cells)
        return lo, hi

    def distance_bound(self, i: int, kind: str = "best") -> Fraction:
        """How far a conforming class can be in attribute i: "printed", "grouped", "cuts" or "best"."""
        choice("kind", kind, ("printed", "grouped", "cuts", "best"))
        if kind == "best":
            return min(self.distance_bound(i, "grouped"), self.distance_bound(i, "cuts"))
        if (i, kind) not in self._known:
            worst = self._per_cut(i) if kind == "cuts" else self._sum_bound(i, kind == "grouped")
            self._known[i, kind] = Fraction(worst, max(self.space.n, 1) * self.space.axes[i].unit)
        return self._known[i, kind]

    def _sum_bound(self, i: int, grouped: bool) -> int:
        axis, (lo, hi) = self.space.axes[i], self.boxes
        keys = np.column_stack([lo[:, i], hi[:, i], np.zeros(len(lo), np.int64) if grouped else np.arange(len(lo))])
        groups, group_of = np.unique(keys, axis=0, return_inverse=True)
        of_cell, rows = group_of.ravel()[self.fragment_of], self.space.counts
        mass, moment = np.zeros(len(groups), dtype=np.int64), np.zeros(len(groups), dtype=np.int64)
        np.add.at(mass, of_cell, rows)
        np.add.at(moment, of_cell, axis.place[self.space.cells[:, i]] * rows)
        if axis.on_line:
            first, last = axis.place[groups[:, 0]], axis.place[groups[:, 1]]
            return int(np.maximum(moment - first * mass, last * mass - moment).sum())
        tops = [int(axis.place[first:last].max(initial=0)) for first, last, _ in groups.tolist()]
        return int((mass * np.array(tops)).sum())

    def _per_cut(self, i: int) -> int:
        axis, cells, (lo, hi) = self.space.axes[i], self.space.cells[:, i], self.boxes
        up, down = np.zeros(len(axis.weight), dtype=np.int64), np.zeros(len(axis.weight), dtype=np.int64)
        for f, members in enumerate(np.split(np.argsort(self.fragment_of, kind="stable"), np.cumsum(self._cell_counts)[:-1])):
            rows = np.zeros(len(axis.codes) + 1, dtype=np.int64)
            np.add.at(rows, cells[members] + 1, self.space.counts[members])
            below = np.cumsum(rows)
            open_ = np.flatnonzero(_stance(axis, lo[f, i], hi[f, i])[1])
            there = below[axis.last[open_] + 1] - below[axis.first[open_]]
            up[open_] += self.sizes[f] - there
            down[open_] += there
        return int((axis.weight * np.maximum(up, down)).sum())

    @property
    def _cell_counts(self) -> Int64:
        return np.bincount(self.fragment_of, minlength=len(self.sizes))

    def stance(self, i: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """For every fragment and set of axis i: whether its box lies inside, and whether the set is open for it."""
        lo, hi = self.boxes
        return _stance(self.space.axes[i], lo[:, i, None], hi[:, i, None])


def _stance(axis: Axis, lo: Int64, hi: Int64) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    inside = (axis.first <= lo) & (axis.last >= hi)
    return inside, (axis.first <= hi) & (axis.last >= lo) & ~inside


def find_fragmentation(space: Space, t: Sequence[Fraction], bound: str = "best", most: int = MOST) -> Fragments:
    """Fragments with `bound_i <= t_i` for every sensitive attribute.

    >>> from closeknit.core.kinds import numeric
    >>> domain, codes = numeric().bind(np.repeat([1, 2, 3, 4], [2, 3, 3, 2]))
    >>> space = Space.of([(codes, Histogram.of(np.zeros(10, np.int32), 1, codes, domain), None)])
    >>> fragments = find_fragmentation(space, [Fraction(1, 4)])
    >>> fragments.fragment_of.tolist(), fragments.distance_bound(0)
    ([0, 0, 1, 1], Fraction(1, 5))
    """
    return next(refine_fragments(space, [t], bound, most))


def refine_fragments(
    space: Space, limits: Sequence[Sequence[Fraction]], bound: str = "best", most: int = MOST
) -> Iterator[Fragments]:
    """Fragments for each of several limits, loose ones first; the search for the next one resumes where the last one ended."""
    choice("bound", bound, tuple(BOUNDS))
    units = [axis.unit * space.n for axis in space.axes]
    axes, state = _arrays(space, units, most)
    whole(state, axes)
    for t in limits:
        exact = [number("t", limit, least=0) for limit in t]
        room = np.array([floor(limit * unit) for limit, unit in zip(exact, units, strict=True)], dtype=np.int64)
        floats = np.array([float(limit) for limit in exact])
        met = descend(state, axes, room, floats, BOUNDS[bound], most, WORK)
        yield Fragments(space, _fragment_of(state), bool(met))


def _fragment_of(state: State) -> NDArray[np.int32]:
    """Fragments numbered along their links."""
    fragment_of = np.empty(len(state.counts), dtype=np.int32)
    f, number = 0, 0
    while f >= 0:
        fragment_of[state.order[state.begin[f] : state.end[f]]] = number
        f, number = int(state.follow[f]), number + 1
    return fragment_of


def _tops(place: Int64) -> Int64:
    """Greatest entry of every run of 1, 2, 4, ... entries (cut off at the end)."""
    rows = [place]
    while 1 << len(rows) <= len(place):
        step = 1 << (len(rows) - 1)
        rows.append(np.maximum(rows[-1], np.append(rows[-1][step:], np.zeros(step, dtype=np.int64))))
    return np.array(rows)


def _arrays(space: Space, units: Sequence[int], most: int) -> tuple[Axes, State]:
    def ends(lengths: list[int]) -> Int64:
        return np.cumsum([0, *lengths], dtype=np.int64)

    def concat(parts: Iterable[NDArray[np.integer]]) -> Int64:
        return np.concatenate([*parts]).astype(np.int64)

    sets, s = ends([len(axis.weight) for axis in space.axes]), len(space.axes)
    axes = Axes(
        ends([len(axis.codes) for axis in space.axes]),
        concat(axis.place for axis in space.axes),
        _tops(concat(axis.place for axis in space.axes)),
        np.array([axis.on_line for axis in space.axes]),
        sets,
        concat(axis.first for axis in space.axes),
        concat(axis.last for axis in space.axes),
        concat(axis.weight for axis in space.axes),
        np.array(units, dtype=np.float64),
    )

    def blank(*shape: int) -> Int64:
        return np.zeros(shape, dtype=np.int64)

    cuts = (most, s, CUTS + ENDS)
    state = State(
        np.ascontiguousarray(space.cells),
        space.counts.astype(np.int64),
        np.arange(len(space.counts)),
        blank(most),
        blank(most),
        blank(most, s),
        blank(most, s),
        blank(most),
        blank(most, s),
        blank(sets[-1]),
        blank(sets[-1]),
        blank(most),
        blank(2),
        blank(most, s),
        blank(*cuts),
        blank(*cuts, 2),
        blank(*cuts, 2, s),
        blank(*cuts, 2, s),
        blank(*cuts, 2, s),
    )
    return axes, state

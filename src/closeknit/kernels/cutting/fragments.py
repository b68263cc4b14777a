"""Split fragments of the space of several sensitive attributes one at a time, each time where the bounds gain most.

Only the box of a fragment matters (per axis the first and last value that occurs in it), its rows, and per axis their moment.
Every distance is a sum over sets of values of weight * |share in the class - share in the release|: the sets are prefixes of
a line or subtrees of a tree, always runs `first..last`. A box inside or outside a set contributes nothing to it; of any
other box all rows may fall into the set (`up` counts those that are not there yet) or none (`down` those that are).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import kernel
from closeknit.kernels.compiling import whole as number

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PRINTED, BEST = 0, 1
ENDS = 2  # cuts that are tried in addition to those at even shares
SAME = 1e-12  # closer keys count as equal, so that rounding decides nothing
WORK = 500_000_000  # visits of groups and sets in one search


class Axes(NamedTuple):
    """Axis i has the places `values[i]:values[i+1]` and the sets `sets[i]:sets[i+1]`; lengths are over twice its scale."""

    values: Ints
    place: Ints  # on a line: twice the rank
    tops: Ints  # [levels, values] in a tree: twice the greatest height over this value and the next 2^level ones
    on_line: NDArray[np.bool_]
    sets: Ints
    first: Ints
    last: Ints
    weight: Ints
    whole: Floats  # rows * twice the scale: what a distance of 1 is


class State(NamedTuple):
    """Cells of fragment f: `order[begin[f]:end[f]]`. `follow` links fragments so that parts of one are neighbours."""

    cells: Ints  # [cells, axes]
    counts: Ints
    order: Ints
    begin: Ints
    end: Ints
    lo: Ints  # [fragments, axes]
    hi: Ints
    mass: Ints
    moment: Ints  # [fragments, axes]
    up: Ints
    down: Ints
    follow: Ints
    used: Ints  # the number of fragments; work done
    cuts: Ints  # [fragments, axes] how many cuts of a fragment along an axis are tried
    cut_at: Ints  # [fragments, axes, cuts] the last value below the cut
    cut_rows: Ints  # [fragments, axes, cuts, 2] rows below the cut and above it
    cut_lo: Ints  # [fragments, axes, cuts, 2, axes] and their boxes
    cut_hi: Ints
    cut_moment: Ints


class Sides(NamedTuple):
    """Both sides of some cuts of a fragment along one axis: below (0) and above (1)."""

    rows: Ints  # [cuts, 2]
    lo: Ints  # [cuts, 2, axes]
    hi: Ints
    moment: Ints


@kernel
def delta(axes: Axes, i: int, lo: int, hi: int, mass: int, moment: int) -> int:
    """The largest distance that rows inside a box can cause: all at its far end; in a tree all across its top."""
    start = axes.values[i]
    if axes.on_line[i]:
        return max(moment - axes.place[start + lo] * mass, axes.place[start + hi] * mass - moment)
    if lo == hi:
        return 0
    level = 0
    while 2 << level <= hi - lo:
        level += 1
    return max(axes.tops[level, start + lo], axes.tops[level, start + hi - (1 << level)]) * mass


@kernel
def _measure(state: State, axes: Axes, f: int) -> None:
    """Compute box, rows and moments of a fragment from its cells."""
    state.mass[f] = 0
    for i in range(state.cells.shape[1]):
        state.lo[f, i], state.hi[f, i], state.moment[f, i] = axes.values[i + 1], -1, 0
    for at in range(state.begin[f], state.end[f]):
        cell = state.order[at]
        state.mass[f] += state.counts[cell]
        for i in range(state.cells.shape[1]):
            v = state.cells[cell, i]
            state.lo[f, i], state.hi[f, i] = min(state.lo[f, i], v), max(state.hi[f, i], v)
            state.moment[f, i] += axes.place[axes.values[i] + v] * state.counts[cell]


@kernel
def _sides(state: State, axes: Axes, f: int, d: int) -> Any:
    """Both sides of every cut of a fragment along axis d, and whether the value before the cut occurs."""
    low, length, s = state.lo[f, d], state.hi[f, d] - state.lo[f, d] + 1, state.cells.shape[1]
    rows, moment = np.zeros((length, 2), np.int64), np.zeros((length, 2, s), np.int64)
    lo, hi = np.full((length, 2, s), np.iinfo(np.int64).max, np.int64), np.full((length, 2, s), -1, np.int64)
    for at in range(state.begin[f], state.end[f]):
        cell = state.order[at]
        v, many = state.cells[cell, d] - low, state.counts[cell]
        for side, u in ((0, v), (1, v - 1)):
            if u >= 0:
                rows[u, side] += many
                for i in range(s):
                    x = state.cells[cell, i]
                    lo[u, side, i], hi[u, side, i] = min(lo[u, side, i], x), max(hi[u, side, i], x)
                    moment[u, side, i] += axes.place[axes.values[i] + x] * many
    seen = rows[:, 0] > 0
    for u in range(1, length):
        for side, one, other in ((0, u, u - 1), (1, length - 1 - u, length - u)):
            rows[one, side] += rows[other, side]
            for i in range(s):
                lo[one, side, i] = min(lo[one, side, i], lo[other, side, i])
                hi[one, side, i] = max(hi[one, side, i], hi[other, side, i])
                moment[one, side, i] += moment[other, side, i]
    return Sides(rows, lo, hi, moment), seen


@kernel
def _choose_cuts(sides: Sides, seen: NDArray[np.bool_], mass: int, d: int, cuts: int) -> Any:
    """Choose the cuts to try: all, or if they are too many those at even shares and at either end."""
    offered, share = seen.copy(), 0
    offered[-1] = False
    if offered.sum() > cuts:
        for u in range(len(offered) - 1):
            now = sides.rows[u, 0] * cuts // mass
            at_end = sides.lo[u, 0, d] == sides.hi[u, 0, d] or sides.lo[u, 1, d] == sides.hi[u, 1, d]
            offered[u] = offered[u] and (now > share or at_end)
            share = now if offered[u] else share
    return np.flatnonzero(offered)


@kernel
def _enter(state: State, axes: Axes, f: int) -> None:
    """Add a fragment: its measures and its candidate cuts, with both sides of each."""
    _measure(state, axes, f)
    for d in range(state.cells.shape[1]):
        state.cuts[f, d] = 0
        if state.lo[f, d] < state.hi[f, d]:
            sides, seen = _sides(state, axes, f, d)
            for u in _choose_cuts(sides, seen, state.mass[f], d, state.cut_at.shape[2] - ENDS):
                c = state.cuts[f, d]
                state.cut_at[f, d, c] = state.lo[f, d] + u
                state.cut_rows[f, d, c], state.cut_moment[f, d, c] = sides.rows[u], sides.moment[u]
                state.cut_lo[f, d, c], state.cut_hi[f, d, c] = sides.lo[u], sides.hi[u]
                state.cuts[f, d] += 1


@kernel
def whole(state: State, axes: Axes) -> None:
    """Start with one fragment of all cells."""
    state.used[0], state.begin[0], state.end[0], state.follow[0] = 1, 0, len(state.counts), -1
    _enter(state, axes, number(0))
    for i in range(state.cells.shape[1]):
        rows = np.zeros(axes.values[i + 1] - axes.values[i] + 1, np.int64)
        for cell in range(len(state.counts)):
            rows[state.cells[cell, i] + 1] += state.counts[cell]
        rows = np.cumsum(rows)
        for j in range(axes.sets[i], axes.sets[i + 1]):
            state.down[j] = rows[axes.last[j] + 1] - rows[axes.first[j]]
            state.up[j] = state.mass[0] - state.down[j]


@kernel
def _groups(state: State) -> Any:
    """Sum fragments with the same interval per axis: lo, hi, rows, moment; and the number of groups."""
    groups = np.zeros((state.cells.shape[1], state.used[0], 4), np.int64)
    many = np.zeros(state.cells.shape[1], np.int64)
    for i in range(len(many)):
        for f in range(state.used[0]):
            g = _group_at(groups[i, : many[i]], state.lo[f, i], state.hi[f, i])
            if g < 0:
                g = many[i]
                many[i] += 1
                groups[i, g, 0], groups[i, g, 1] = state.lo[f, i], state.hi[f, i]
            groups[i, g, 2] += state.mass[f]
            groups[i, g, 3] += state.moment[f, i]
    return groups, many


@kernel
def _group_at(groups: Ints, lo: int, hi: int) -> int:
    for g in range(len(groups)):
        if groups[g, 0] == lo and groups[g, 1] == hi:
            return g
    return -1


@kernel
def _bounds(state: State, axes: Axes, how: int, i: int, groups: Ints) -> tuple[int, int]:
    """The sum over fragments (or groups of them), and the sum over sets, of axis i."""
    summed, per_set = 0, 0
    if how == PRINTED:
        for f in range(state.used[0]):
            summed += delta(axes, i, state.lo[f, i], state.hi[f, i], state.mass[f], state.moment[f, i])
        return summed, summed
    for g in range(len(groups)):
        summed += delta(axes, i, groups[g, 0], groups[g, 1], groups[g, 2], groups[g, 3])
    for j in range(axes.sets[i], axes.sets[i + 1]):
        per_set += axes.weight[j] * max(state.up[j], state.down[j])
    return summed, per_set


@kernel
def _relate_to_set(first: int, last: int, lo: int, hi: int) -> int:
    """-1 if the box lo..hi misses the set, 1 if it lies in it, 0 if the set is open for it. (A call with `Axes` is slow.)"""
    if first > hi or last < lo:
        return -1
    return 1 if first <= lo and last >= hi else 0


@kernel
def _open_sets(state: State, axes: Axes, f: int) -> Any:
    """Sets that are open for a fragment, and where those of each axis begin among them."""
    found, starts = np.empty(len(axes.weight), np.int64), np.zeros(state.cells.shape[1] + 1, np.int64)
    for i in range(state.cells.shape[1]):
        starts[i + 1] = starts[i]
        for j in range(axes.sets[i], axes.sets[i + 1]):
            if _relate_to_set(axes.first[j], axes.last[j], state.lo[f, i], state.hi[f, i]) == 0:
                found[starts[i + 1]] = j
                starts[i + 1] += 1
    return found[: starts[-1]], starts


@kernel
def _change_as_printed(state: State, axes: Axes, f: int, i: int, sides: Sides, u: int) -> int:
    change = -delta(axes, i, state.lo[f, i], state.hi[f, i], state.mass[f], state.moment[f, i])
    for side in range(2):
        rows, moment = sides.rows[u, side], sides.moment[u, side, i]
        change += delta(axes, i, sides.lo[u, side, i], sides.hi[u, side, i], rows, moment)
    return change


@kernel
def _change_by_group(state: State, axes: Axes, f: int, i: int, sides: Sides, u: int, groups: Ints) -> int:
    """Remove the fragment from its group, and add either part to the group of its own interval."""
    moves = np.zeros((3, 4), np.int64)
    moves[2, 0], moves[2, 1], moves[2, 2], moves[2, 3] = state.lo[f, i], state.hi[f, i], -state.mass[f], -state.moment[f, i]
    for side in range(2):
        moves[side, 0], moves[side, 1] = sides.lo[u, side, i], sides.hi[u, side, i]
        moves[side, 2], moves[side, 3] = sides.rows[u, side], sides.moment[u, side, i]
    change = 0
    for x in range(3):
        lo, hi, mass, moment = moves[x]
        if _group_at(moves[:x], lo, hi) >= 0:
            continue
        for y in range(x + 1, 3):
            if moves[y, 0] == lo and moves[y, 1] == hi:
                mass, moment = mass + moves[y, 2], moment + moves[y, 3]
        g = _group_at(groups, lo, hi)
        if g >= 0:
            change -= delta(axes, i, lo, hi, groups[g, 2], groups[g, 3])
            mass, moment = mass + groups[g, 2], moment + groups[g, 3]
        change += delta(axes, i, lo, hi, mass, moment)
    return change


@kernel
def _per_set_change(state: State, axes: Axes, i: int, sides: Sides, u: int, sets: Ints) -> int:
    """Subtract rows of a part that now lies inside or outside a set: they cannot be chosen any more."""
    change = 0
    if sides.lo[u, 0, i] == sides.lo[u, 1, i] and sides.hi[u, 0, i] == sides.hi[u, 1, i]:
        return 0  # both parts have the interval of the whole
    state.used[1] += len(sets)
    below, above = sides.rows[u, 0], sides.rows[u, 1]
    low, high = (sides.lo[u, 0, i], sides.hi[u, 0, i]), (sides.lo[u, 1, i], sides.hi[u, 1, i])
    first, last, weight, ups, downs = axes.first, axes.last, axes.weight, state.up, state.down
    for j in sets:
        one, other = _relate_to_set(first[j], last[j], *low), _relate_to_set(first[j], last[j], *high)
        up = ups[j] - (one < 0) * below - (other < 0) * above
        down = downs[j] - (one > 0) * below - (other > 0) * above
        change += weight[j] * (max(up, down) - max(ups[j], downs[j]))
    return change


@kernel
def _split(state: State, axes: Axes, f: int, d: int, v: int) -> None:
    """Split fragment f: values up to v on axis d stay in it, the others become a new fragment after it."""
    new = state.used[0]
    cells = state.order[state.begin[f] : state.end[f]].copy()
    below = state.cells[cells, d] <= v
    middle = state.begin[f] + below.sum()
    state.order[state.begin[f] : middle] = cells[below]
    state.order[middle : state.end[f]] = cells[~below]
    opened, starts = _open_sets(state, axes, f)
    state.begin[new], state.end[new], state.end[f] = middle, state.end[f], middle
    state.follow[new], state.follow[f] = state.follow[f], new
    state.used[0] += 1
    for part in (f, new):
        _enter(state, axes, part)
        for i in range(state.cells.shape[1]):
            for j in opened[starts[i] : starts[i + 1]]:
                how = _relate_to_set(axes.first[j], axes.last[j], state.lo[part, i], state.hi[part, i])
                if how < 0:
                    state.up[j] -= state.mass[part]
                elif how > 0:
                    state.down[j] -= state.mass[part]


@kernel
def _best_cut(state: State, axes: Axes, limits: Floats, how: int, groups: Ints, many: Ints, bounds: Ints) -> Any:
    """Find the split (fragment, axis, value) with the least excess over the limits, then with the least bounds."""
    best, excess, total = (-1, -1, -1), np.inf, np.inf
    for f in range(state.used[0]):
        opened, starts = _open_sets(state, axes, f)
        state.used[1] += len(axes.weight)
        for d in range(len(many)):
            sides = Sides(state.cut_rows[f, d], state.cut_lo[f, d], state.cut_hi[f, d], state.cut_moment[f, d])
            state.used[1] += state.cuts[f, d] * 3 * many.sum()
            for u in range(state.cuts[f, d]):
                over, after = 0.0, 0.0
                for i in range(len(many)):
                    if how == PRINTED:
                        bound = bounds[i, 0] + _change_as_printed(state, axes, f, i, sides, u)
                    else:
                        grouped = _change_by_group(state, axes, f, i, sides, u, groups[i, : many[i]])
                        per_set = _per_set_change(state, axes, i, sides, u, opened[starts[i] : starts[i + 1]])
                        bound = min(bounds[i, 0] + grouped, bounds[i, 1] + per_set)
                    level = bound / axes.whole[i]
                    over, after = over + max(level - limits[i], 0.0), after + level
                if over < excess - SAME or (over < excess + SAME and after < total - SAME):
                    best, excess, total = (f, d, state.cut_at[f, d, u]), over, after
    return best


@kernel
def descend(state: State, axes: Axes, room: Ints, limits: Floats, how: int, most: int, work: int) -> bool:
    """Split until every bound is within its limit; False if `most` fragments or the work limit are reached first."""
    bounds = np.zeros((len(room), 2), np.int64)
    while True:
        groups, many = _groups(state)
        met = True
        for i in range(len(room)):
            bounds[i] = _bounds(state, axes, how, i, groups[i, : many[i]])
            met = met and bounds[i].min() <= room[i]
        if met or state.used[0] >= most or state.used[1] >= work:
            return met
        f, d, v = _best_cut(state, axes, limits, how, groups, many, bounds)
        if f < 0:
            return False
        _split(state, axes, f, d, v)

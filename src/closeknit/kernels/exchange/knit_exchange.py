"""Exchange: rows move to near classes, or change places with a row there, while the loss falls and every guarantee is kept.

Rows are visited in turn. Each looks at the classes of its neighbours along an order of all rows. It moves where both classes
together lose less then; else, if it alone stretches the box of its class, it changes places with the best row there. `heat`
lets changes pass that lose a little more, the rarer the more they lose: so a search leaves places from where every single step
is a loss. With `once` every class is changed at most once, so that whoever judges the classes afterwards can undo each change.
Classes are parted into groups; rows stay in the group of their class, so groups can be swept in threads: whatever another
group does meanwhile is not looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.exchange.class_state import State, take
from closeknit.kernels.exchange.knit_guard import Guard, alike, is_allowed_after
from closeknit.kernels.geometry.boxes import Codes, Ints
from closeknit.kernels.geometry.ranges import Costs, range_cost

WIDTH = 16  # neighbours of a row on either side whose classes it is offered, as a rule
GAIN = 1e-9  # rounding of sums is no gain
NO_ROW = whole(-1)


class Search(NamedTuple):
    """How changes are accepted, and scratch."""

    heat: float
    once: bool
    random_state: NDArray[np.uint64]  # [1] state of the generator
    touched: NDArray[np.bool_]  # [classes]
    group: Codes  # [classes]
    mine: int  # the group that is swept
    width: int  # neighbours on either side
    counts: Codes  # [nodes]
    lo: Codes  # [d] box of the class without the row
    hi: Codes


@kernel
def sweep(costs: Costs, guard: Guard, state: State, order: Codes, visit: Codes, group: Codes, mine: int, width: int,
          heat: float, once: bool, seed: int) -> int:  # fmt: skip
    """Offers the rows of group `mine`, in the order of `visit`, the classes of their neighbours along `order`.

    How many changes were made.

    >>> from closeknit.kernels.geometry.boxes import flat_scales
    >>> from closeknit.kernels.exchange.knit_guard import one_cap
    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from closeknit.kernels.exchange.class_state import state_of
    >>> quasi, price = np.array([[0], [9], [8], [1]], np.int32), costs(flat_scales([10]))
    >>> guard, rows = one_cap(np.array([0, 0, 1, 1], np.int32), 2), np.arange(4, dtype=np.int32)
    >>> state = state_of(price, guard, quasi, np.array([0, 1, 0, 1], np.int32), 2)
    >>> sweep(price, guard, state, rows, rows, np.zeros(2, np.int32), 0, 2, 0.0, False, 1), state.class_of.tolist()
    (1, [1, 0, 0, 1])
    """
    n, changes = len(order), 0
    search = Search(
        heat, once, np.array([seed | 1], np.uint64), np.zeros(len(state.size), np.bool_), group, mine, width,
        np.zeros(len(guard.parent), np.int32), np.empty(state.quasi.shape[1], np.int32),
        np.empty(state.quasi.shape[1], np.int32),
    )  # fmt: skip
    place, seen = np.empty(n, np.int64), np.full(len(state.size), -1, np.int64)
    for x in range(n):
        place[order[x]] = x
    for i in range(len(visit)):
        row = whole(visit[i])
        c = state.class_of[row]
        if c < 0 or group[c] != mine:
            continue
        if state.loss[c] > 0.0 and state.size[c] > 1 and not (once and search.touched[c]):
            seen[c] = i
            changes += _offer_row(costs, guard, state, search, order, place[row], row, seen, i)
    return changes


@bare
def _offer_row(costs: Costs, guard: Guard, state: State, search: Search, order: Codes, place: int, row: int, seen: Ints,
             turn: int) -> bool:  # fmt: skip
    """The classes of the neighbours, the nearest first, until one of them takes the row."""
    c, may_leave = whole(state.class_of[row]), -1  # not known yet
    size, worse = state.size[c], _draw_tolerance(search)
    shrink = state.loss[c] - _without(costs, state, search, c, row)
    moved, swapped = state.loss[c] + (size - 1) * shrink + worse, size * shrink + worse if shrink > 0.0 else 0.0
    for step in range(2, 2 * search.width + 2):
        at = place + step // 2 if step % 2 == 0 else place - step // 2
        to = whole(state.class_of[order[at]] if 0 <= at < len(order) else -1)
        if to < 0 or seen[to] == turn or search.group[to] != search.mine or (search.once and search.touched[to]):
            continue
        seen[to] = turn
        there = state.size[to]
        may_move = (moved - state.loss[to]) / (there + 1) if may_leave != 0 else 0.0
        most = max(may_move, swapped / there)
        if most <= 0.0:
            continue
        more = _measure_stretch(costs, state, to, row, most)
        if more < may_move:
            if may_leave < 0:
                may_leave = 1 if is_allowed_after(guard, state.under, c, size, row, NO_ROW, search.counts) else 0
            if may_leave == 1 and is_allowed_after(guard, state.under, to, there, NO_ROW, row, search.counts):
                take(costs, guard, state, row, to)
                search.touched[c] = search.touched[to] = True
                return True
        if there * more < swapped:
            other = _partner(costs, guard, state, search, row, to, swapped - there * more)
            if other >= 0:
                take(costs, guard, state, row, to)
                take(costs, guard, state, other, c)
                search.touched[c] = search.touched[to] = True
                return True
    return False


@bare
def _without(costs: Costs, state: State, search: Search, c: int, row: int) -> float:
    """Loss of class c without one of its rows; the box it has then is written down."""
    total = 0.0
    for j in range(state.quasi.shape[1]):
        q, lo, hi = state.quasi[row, j], state.ends[c, j, 0], state.ends[c, j, 3]
        if q == lo and state.ends[c, j, 1] == 1:
            lo = state.ends[c, j, 2]
        if q == hi and state.ends[c, j, 4] == 1:
            hi = state.ends[c, j, 5]
        search.lo[j], search.hi[j] = lo, hi
        total += range_cost(costs, j, lo, hi)
    return total


@bare
def _measure_stretch(costs: Costs, state: State, c: int, row: int, most: float) -> float:
    """What a row of class c loses more if one row is added; it is not counted further than `most`."""
    more = 0.0
    for j in range(state.quasi.shape[1]):
        more += _wider(costs, j, state.quasi[row, j], state.ends[c, j, 0], state.ends[c, j, 3])
        if more >= most:
            break
    return more


@bare
def _wider(costs: Costs, j: int, q: int, lo: int, hi: int) -> float:
    """What the range from lo to hi in column j costs more when it takes in the code q."""
    if q < lo:
        return range_cost(costs, j, q, hi) - range_cost(costs, j, lo, hi)
    if q > hi:
        return range_cost(costs, j, lo, q) - range_cost(costs, j, lo, hi)
    return 0.0


@bare
def _partner(costs: Costs, guard: Guard, state: State, search: Search, row: int, to: int, room: float) -> int:
    """The row of class `to` that stretches what is left of the class of `row` least, -1 where none is allowed."""
    found, size, y = NO_ROW, state.size[state.class_of[row]], whole(state.first[to])
    most = room / size
    while y >= 0:
        more = 0.0
        for j in range(state.quasi.shape[1]):
            more += _wider(costs, j, state.quasi[y, j], search.lo[j], search.hi[j])
            if more >= most:
                break
        if more < most and _may_change(guard, state, search, row, y):
            found, most = y, more
            if more <= 0.0:
                break
        y = whole(state.after[y])
    return found


@bare
def _may_change(guard: Guard, state: State, search: Search, row: int, other: int) -> bool:
    c, to = whole(state.class_of[row]), whole(state.class_of[other])
    return alike(guard, row, other) or (
        is_allowed_after(guard, state.under, c, state.size[c], row, other, search.counts)
        and is_allowed_after(guard, state.under, to, state.size[to], other, row, search.counts)
    )


@bare
def _draw_tolerance(search: Search) -> float:
    """How much worse the next change may be: exponential with mean `heat` (xorshift); a gain where it is 0."""
    x = search.random_state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    search.random_state[0] = x
    return -search.heat * np.log((np.float64(x >> np.uint64(11)) + 1.0) / 9007199254740993.0) - GAIN

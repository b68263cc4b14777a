"""Exchange: move rows to nearby classes, or swap them with rows there, while the loss falls and every guarantee is met.

Rows are visited in turn. Each tries the classes of its neighbours along an order of all rows. It moves if that reduces the loss
of both classes together; else, if it alone stretches the box of its class, it is swapped with the best row there; else all rows
at one end of the class, the row among them, leave it together, each to the place where it costs least. `heat`
accepts changes that increase the loss a little, with falling probability: so the search can escape local minima. With `once`
every class is changed at most once, so that a later check of the classes can undo each change. Classes are divided into
groups; rows stay in the group of their class, so groups can be swept in independent threads.
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

WIDTH = 16  # default number of neighbours on either side whose classes a row tries
GAIN = 1e-9  # smaller gains may be rounding errors
NO_ROW = whole(-1)
MOST_CLEARED, FEW_CLEARED = 64, 4  # rows that leave an end of a class together: an eighth of the class, within these


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
    tried: NDArray[np.bool_]  # [classes, 2 * d] ends that were tried to be cleared
    log: Codes  # [MOST_CLEARED, 3] rows that left an end, the class each went to, and the row that came for it


@kernel
def sweep(costs: Costs, guard: Guard, state: State, order: Codes, visit: Codes, group: Codes, mine: int, width: int,
          heat: float, once: bool, seed: int) -> int:  # fmt: skip
    """Try to move rows of group `mine`, in the order of `visit`, to the classes of their neighbours along `order`.

    Returns the number of changes.

    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from closeknit.kernels.exchange.class_state import state_of
    >>> from kernel_inputs import flat_scales, one_cap
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
        np.empty(state.quasi.shape[1], np.int32), np.zeros((len(state.size), 2 * state.quasi.shape[1]), np.bool_),
        np.empty((MOST_CLEARED, 3), np.int32),
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
            if _offer_row(costs, guard, state, search, order, place[row], row, seen, i):
                changes += 1
            elif not once:
                changes += _clear_end(costs, guard, state, search, order, place, row)
    return changes


@bare
def _offer_row(costs: Costs, guard: Guard, state: State, search: Search, order: Codes, place: int, row: int, seen: Ints,
             turn: int) -> bool:  # fmt: skip
    """Try the classes of the neighbours, nearest first, until a change is made."""
    c, may_lose = whole(state.class_of[row]), -1  # not known yet
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
        may_move = (moved - state.loss[to]) / (there + 1) if may_lose != 0 else 0.0
        most = max(may_move, swapped / there)
        if most <= 0.0:
            continue
        more = _measure_stretch(costs, state, to, row, most)
        if more < may_move:
            if may_lose < 0:
                may_lose = 1 if is_allowed_after(guard, state.under, c, size, row, NO_ROW, search.counts) else 0
            if may_lose == 1 and is_allowed_after(guard, state.under, to, there, NO_ROW, row, search.counts):
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
    """Loss of class c without one of its rows; stores the box without it."""
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
    """Increase of the loss per row of class c if a row is added; inexact above `most`."""
    more = 0.0
    for j in range(state.quasi.shape[1]):
        more += _wider(costs, j, state.quasi[row, j], state.ends[c, j, 0], state.ends[c, j, 3])
        if more >= most:
            break
    return more


@bare
def _wider(costs: Costs, j: int, q: int, lo: int, hi: int) -> float:
    """Increase of the cost of the range lo..hi in column j when it includes the code q."""
    if q < lo:
        return range_cost(costs, j, q, hi) - range_cost(costs, j, lo, hi)
    if q > hi:
        return range_cost(costs, j, lo, q) - range_cost(costs, j, lo, hi)
    return 0.0


@bare
def _partner(costs: Costs, guard: Guard, state: State, search: Search, row: int, to: int, room: float) -> int:
    """Find the row of class `to` that stretches the class of `row` without `row` least; -1 if none is allowed."""
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
def _clear_end(costs: Costs, guard: Guard, state: State, search: Search, order: Codes, place: Ints, row: int) -> bool:
    """Try to rid the class of `row` of all rows at one of its ends, `row` among them: they move or are swapped together."""
    c, end = whole(state.class_of[row]), _choose_end(costs, state, search, row)
    if end < 0:
        return False
    search.tried[c, end] = True
    column, upper = end // 2, end % 2
    for j in range(state.quasi.shape[1]):
        search.lo[j], search.hi[j] = state.ends[c, j, 0], state.ends[c, j, 3]
    if upper == 1:
        search.hi[column] = state.ends[c, column, 5]
    else:
        search.lo[column] = state.ends[c, column, 2]
    gain = _gain(costs, state, c, column, upper)
    loss, room = state.loss[c] - gain, state.size[c] * gain + _draw_tolerance(search)
    code, count = state.quasi[row, column], state.ends[c, column, 1 + 3 * upper]
    y, done = whole(state.first[c]), 0
    while y >= 0 and done < count:
        after = whole(state.after[y])
        if state.quasi[y, column] == code:
            cost, to, other = _find_place(costs, guard, state, search, order, place[y], y, loss, room)
            if to < 0:
                break
            room -= cost
            take(costs, guard, state, y, to)
            if other >= 0:
                take(costs, guard, state, other, c)
            search.log[done, 0], search.log[done, 1], search.log[done, 2] = y, to, other
            done += 1
        y = after
    if done == count:
        return True
    for i in range(done - 1, -1, -1):
        if search.log[i, 2] >= 0:
            take(costs, guard, state, whole(search.log[i, 2]), whole(search.log[i, 1]))
        take(costs, guard, state, whole(search.log[i, 0]), c)
    return False


@bare
def _choose_end(costs: Costs, state: State, search: Search, row: int) -> int:
    """Find the end of its class, twice the column plus 1 for the upper one, with most to gain for each of its rows; or -1."""
    c, found, best = whole(state.class_of[row]), NO_ROW, 0.0
    most = min(max(FEW_CLEARED, state.size[c] // 8), MOST_CLEARED)
    for j in range(state.quasi.shape[1]):
        for upper in range(2):
            rows, end = state.ends[c, j, 1 + 3 * upper], 2 * j + upper
            if state.quasi[row, j] == state.ends[c, j, 3 * upper] and rows <= most and not search.tried[c, end]:
                gain = _gain(costs, state, c, j, upper) / rows
                if gain > best:
                    found, best = whole(end), gain
    return found


@bare
def _gain(costs: Costs, state: State, c: int, j: int, upper: int) -> float:
    """Loss of a row of class c that goes when no row is left at one end of a column; 0 where both ends are the same."""
    lo, hi = state.ends[c, j, 0], state.ends[c, j, 3]
    if lo == hi:
        return 0.0
    if upper == 1:
        return range_cost(costs, j, lo, hi) - range_cost(costs, j, lo, state.ends[c, j, 5])
    return range_cost(costs, j, lo, hi) - range_cost(costs, j, state.ends[c, j, 2], hi)


@bare
def _find_place(costs: Costs, guard: Guard, state: State, search: Search, order: Codes, place: int, row: int, loss: float,
                room: float) -> tuple[float, int, int]:  # fmt: skip
    """Find the cheapest class for a row that leaves an end, and the row that comes for it: -1 where none has to."""
    c, found, partner, least = whole(state.class_of[row]), NO_ROW, NO_ROW, room
    may_lose = is_allowed_after(guard, state.under, c, state.size[c], row, NO_ROW, search.counts)
    for step in range(2, search.width + 2):
        at = place + step // 2 if step % 2 == 0 else place - step // 2
        to = whole(state.class_of[order[at]] if 0 <= at < len(order) else -1)
        if to < 0 or to == c or search.group[to] != search.mine:
            continue
        there = state.size[to]
        most = least / there
        if may_lose:
            most = max(most, (least + loss - state.loss[to]) / (there + 1))
        more = _measure_stretch(costs, state, to, row, most)
        if more >= most:
            continue
        cost = (there + 1) * more + state.loss[to] - loss
        if may_lose and cost < least and is_allowed_after(guard, state.under, to, there, NO_ROW, row, search.counts):
            found, partner, least = to, NO_ROW, cost
        if there * more < least:
            other = _find_inside(guard, state, search, row, to)
            if other >= 0:
                found, partner, least = to, other, there * more
    return least, found, partner


@bare
def _find_inside(guard: Guard, state: State, search: Search, row: int, to: int) -> int:
    """Find a row of class `to` inside the box that `row` leaves, such that they may change places; -1 if there is none."""
    y = whole(state.first[to])
    while y >= 0:
        inside = True
        for j in range(state.quasi.shape[1]):
            inside = inside and search.lo[j] <= state.quasi[y, j] <= search.hi[j]
        if inside and _may_change(guard, state, search, row, y):
            return y
        y = whole(state.after[y])
    return NO_ROW


@bare
def _draw_tolerance(search: Search) -> float:
    """Draw the accepted increase of the loss: exponential with mean `heat` (xorshift); with 0 only gains are accepted."""
    x = search.random_state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    search.random_state[0] = x
    return -search.heat * np.log((np.float64(x >> np.uint64(11)) + 1.0) / 9007199254740993.0) - GAIN

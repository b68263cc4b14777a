"""Exchange: move rows to nearby classes, or swap them with rows there, while the loss falls and every guarantee is met.

Rows are visited in turn. Each tries the classes of its neighbours along an order of all rows. It moves if that reduces the loss
of both classes together; else, if it alone stretches the box of its class, it is swapped with the best row there; else all rows
outside a narrower range of one column leave the class together, each to the place where it costs least. `heat`
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
from closeknit.kernels.geometry.boxes import Codes, Ints, climb
from closeknit.kernels.geometry.ranges import Costs, range_cost

WIDTH = 16  # default number of neighbours on either side whose classes a row tries
GAIN = 1e-9  # smaller gains may be rounding errors
NO_ROW = whole(-1)
MOST_CLEARED, FEW_CLEARED = 64, 4  # rows that leave a class together: half of the class, within these
FAR = 1 << 40  # more rows than any class has


class Search(NamedTuple):
    """How changes are accepted, and scratch."""

    heat: float
    once: bool
    random_state: NDArray[np.uint64]  # [1] state of the generator
    touched: NDArray[np.bool_]  # [classes]
    seen: Ints  # [classes] the last search for a place that tried the class
    turn: Ints  # [1] number of the current search
    group: Codes  # [classes]
    mine: int  # the group that is swept
    width: int  # neighbours on either side
    lo: Codes  # [d] box of the class without the row
    hi: Codes
    tried: NDArray[np.bool_]  # [classes, 2 * d] ends, or the child of a tree, that were tried
    tally: Codes  # [nodes of all trees]
    log: Codes  # [MOST_CLEARED, 3] rows that left, the class each went to, and the row that came for it


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
        heat, once, np.array([seed | 1], np.uint64), np.zeros(len(state.size), np.bool_),
        np.zeros(len(state.size), np.int64), np.zeros(1, np.int64), group, mine, width,
        np.empty(state.quasi.shape[1], np.int32), np.empty(state.quasi.shape[1], np.int32),
        np.zeros((len(state.size), 2 * state.quasi.shape[1]), np.bool_),
        np.zeros(len(costs.scales.node_parent), np.int32), np.empty((MOST_CLEARED, 3), np.int32),
    )  # fmt: skip
    place = np.empty(n, np.int64)
    for x in range(n):
        place[order[x]] = x
    for i in range(len(visit)):
        row = whole(visit[i])
        c = state.class_of[row]
        if c < 0 or group[c] != mine:
            continue
        if state.loss[c] > 0.0 and state.size[c] > 1 and not (once and search.touched[c]):
            if _offer_row(costs, guard, state, search, order, place[row], row):
                changes += 1
            elif not once:
                changes += _clear_range(costs, guard, state, search, order, place, row)
    return changes


@bare
def _offer_row(costs: Costs, guard: Guard, state: State, search: Search, order: Codes, place: int, row: int) -> bool:
    """Try the classes of the neighbours, nearest first, until a change is made."""
    c, turn = whole(state.class_of[row]), _begin_turn(state, search, row)
    may_lose = -1  # not known yet
    size, worse = state.size[c], _draw_tolerance(search)
    shrink = state.loss[c] - _without(costs, state, search, c, row)
    moved, swapped = state.loss[c] + (size - 1) * shrink + worse, size * shrink + worse if shrink > 0.0 else 0.0
    for step in range(2, 2 * search.width + 2):
        at = place + step // 2 if step % 2 == 0 else place - step // 2
        to = whole(state.class_of[order[at]] if 0 <= at < len(order) else -1)
        if to < 0 or search.seen[to] == turn or search.group[to] != search.mine or (search.once and search.touched[to]):
            continue
        search.seen[to] = turn
        there = state.size[to]
        may_move = (moved - state.loss[to]) / (there + 1) if may_lose != 0 else 0.0
        most = max(may_move, swapped / there)
        if most <= 0.0:
            continue
        more = _measure_stretch(costs, state, to, row, most)
        if more < may_move:
            if may_lose < 0:
                may_lose = 1 if is_allowed_after(guard, state.under, c, size, row, NO_ROW) else 0
            if may_lose == 1 and is_allowed_after(guard, state.under, to, there, NO_ROW, row):
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
def _begin_turn(state: State, search: Search, row: int) -> int:
    """Number of a new search for a place of `row`, which does not try the row's own class."""
    search.turn[0] += 1
    search.seen[state.class_of[row]] = search.turn[0]
    return whole(search.turn[0])


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
        is_allowed_after(guard, state.under, c, state.size[c], row, other)
        and is_allowed_after(guard, state.under, to, state.size[to], other, row)
    )


@bare
def _clear_range(costs: Costs, guard: Guard, state: State, search: Search, order: Codes, place: Ints, row: int) -> bool:
    """Try to rid the class of `row` of all rows outside a narrower range of one column: they move or are swapped together."""
    c = whole(state.class_of[row])
    column, lo, hi, count = _choose_range(costs, state, search, row)
    if column < 0:
        return False
    for j in range(state.quasi.shape[1]):
        search.lo[j], search.hi[j] = state.ends[c, j, 0], state.ends[c, j, 3]
    before = range_cost(costs, column, search.lo[column], search.hi[column])
    search.lo[column], search.hi[column] = lo, hi
    gain = before - range_cost(costs, column, search.lo[column], search.hi[column])
    loss, room = state.loss[c] - gain, state.size[c] * gain + _draw_tolerance(search)
    y, done = whole(state.first[c]), 0
    while y >= 0 and done < count:
        after, q = whole(state.after[y]), state.quasi[y, column]
        if q < lo or q > hi:
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
def _choose_range(costs: Costs, state: State, search: Search, row: int) -> tuple[int, int, int, int]:
    """Find the column and narrower range with most to gain for each row outside it; and how many these are. -1: none."""
    c, best = whole(state.class_of[row]), 0.0
    column, low, high, outside, chosen = NO_ROW, NO_ROW, NO_ROW, NO_ROW, NO_ROW
    most = min(max(FEW_CLEARED, state.size[c] // 2), MOST_CLEARED)
    for j in range(state.quasi.shape[1]):
        now = range_cost(costs, j, state.ends[c, j, 0], state.ends[c, j, 3])
        for upper in range(2):
            end = 2 * j + upper
            if now > 0.0 and not search.tried[c, end]:
                lo, hi, rows = _narrow(costs, state, search, row, j, upper)
                if rows > most:
                    search.tried[c, end] = not costs.scales.numeric[j]  # the same for all rows of the class
                    continue
                gain = (now - range_cost(costs, j, np.int32(lo), np.int32(hi))) / rows
                if gain > best:
                    column, low, high, outside, chosen, best = whole(j), lo, hi, rows, whole(end), gain
    if column >= 0:
        search.tried[c, chosen] = True
    return column, low, high, outside


@bare
def _narrow(costs: Costs, state: State, search: Search, row: int, j: int, upper: int) -> tuple[int, int, int]:
    """A narrower range of the class of `row`, and how many of its rows are outside: all of them where there is none.

    On an axis it is the range without the end at which `row` is. In a tree the range stays as wide until all rows but those
    under one child of the node over the class are gone, so it is that of the child with most rows.
    """
    c = whole(state.class_of[row])
    lo, hi = whole(state.ends[c, j, 0]), whole(state.ends[c, j, 3])
    if not costs.scales.numeric[j] and upper == 0:
        return _narrow_to_child(costs, state, search, c, j)
    if not costs.scales.numeric[j] or state.quasi[row, j] != state.ends[c, j, 3 * upper]:
        return lo, hi, whole(FAR)
    if upper == 1:
        return lo, whole(state.ends[c, j, 5]), whole(state.ends[c, j, 4])
    return whole(state.ends[c, j, 2]), hi, whole(state.ends[c, j, 1])


@bare
def _narrow_to_child(costs: Costs, state: State, search: Search, c: int, j: int) -> tuple[int, int, int]:
    """Range of the rows of class c under that child of its node in column j that has most of them, and the rows outside."""
    scales, first = costs.scales, costs.scales.leaf_start[j]
    lo, hi = state.ends[c, j, 0], whole(state.ends[c, j, 3])
    top = climb(scales.node_parent, scales.node_hi, whole(scales.leaf_node[first + lo]), hi)
    most, child, y = whole(0), whole(-1), whole(state.first[c])
    while y >= 0:
        node = _child(costs, top, scales.leaf_node[first + state.quasi[y, j]])
        search.tally[node] += 1
        if search.tally[node] > most:
            most, child = whole(search.tally[node]), node
        y = whole(state.after[y])
    lo, hi, y = whole(scales.node_hi[child]), whole(scales.node_lo[child]), whole(state.first[c])
    while y >= 0:
        q = whole(state.quasi[y, j])
        node = _child(costs, top, scales.leaf_node[first + q])
        search.tally[node] = 0
        if node == child:
            lo, hi = min(lo, q), max(hi, q)
        y = whole(state.after[y])
    return lo, hi, whole(state.size[c] - most)


@bare
def _child(costs: Costs, top: int, node: int) -> int:
    """The child of `top` that is above a node, or the node itself."""
    node = whole(node)
    while costs.scales.node_parent[node] != top:
        node = whole(costs.scales.node_parent[node])
    return node


@bare
def _find_place(costs: Costs, guard: Guard, state: State, search: Search, order: Codes, place: int, row: int, loss: float,
                room: float) -> tuple[float, int, int]:  # fmt: skip
    """Find the cheapest class for a row that leaves, or the first that costs nothing; and the row that comes for it, or -1."""
    c, found, partner, least = whole(state.class_of[row]), NO_ROW, NO_ROW, room
    turn = _begin_turn(state, search, row)
    may_lose = is_allowed_after(guard, state.under, c, state.size[c], row, NO_ROW)
    for step in range(2, 2 * search.width + 2):
        if least <= 0.0 and found >= 0:
            break
        at = place + step // 2 if step % 2 == 0 else place - step // 2
        to = whole(state.class_of[order[at]] if 0 <= at < len(order) else -1)
        if to < 0 or search.seen[to] == turn or search.group[to] != search.mine:
            continue
        search.seen[to] = turn
        there = state.size[to]
        most = least / there
        if may_lose:
            most = max(most, (least + loss - state.loss[to]) / (there + 1))
        more = _measure_stretch(costs, state, to, row, most)
        if more >= most:
            continue
        cost = (there + 1) * more + state.loss[to] - loss
        if may_lose and cost < least and is_allowed_after(guard, state.under, to, there, NO_ROW, row):
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

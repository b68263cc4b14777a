"""Exchange: move rows to nearby classes, or swap them with rows there, while the loss falls and every guarantee is met.

Rows are visited in turn. Each tries the classes of its neighbours along an order of all rows. It moves if that reduces the loss
of the classes together; where its own class cannot spare it, a row of a third class comes for it (`class_rebuilding`). Else, if
it alone stretches the box of its class, it is swapped with the best row there. Else all rows outside a narrower range of one
column leave the class together, each to the place where it costs least (`range_clearing`). Else the row begins a new class, or
its class is dissolved. `heat` accepts changes that increase the loss a little, with falling probability: so the search can
escape local minima. With `once` every class is changed at most once, so that a later check of the classes can undo each
change. Classes are divided into groups; rows stay in the group of their class, so groups can be swept in independent threads.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.compiling import bare, kernel, truth, whole
from closeknit.kernels.exchange.class_rebuilding import begin_class, dissolve, find_helper
from closeknit.kernels.exchange.class_state import State, take
from closeknit.kernels.exchange.knit_guard import Buckets, Guard, is_allowed_after
from closeknit.kernels.exchange.knit_search import (
    MOST_TAKEN,
    NO_ROW,
    Search,
    begin_turn,
    draw_tolerance,
    leave_box,
    may_swap,
    measure_gap,
    measure_stretch,
    measure_wider,
)
from closeknit.kernels.exchange.range_clearing import clear_range
from closeknit.kernels.geometry.boxes import Codes
from closeknit.kernels.geometry.ranges import Costs

WIDTH = 16  # default number of neighbours on either side whose classes a row tries


@kernel
def sweep(costs: Costs, guard: Guard, buckets: Buckets, state: State, order: Codes, visit: Codes, group: Codes, mine: int,
          width: int, heat: float, once: bool, seed: int, rebuild: bool) -> int:  # fmt: skip
    """Try to move rows of group `mine`, in the order of `visit`, to the classes of their neighbours along `order`.

    With `rebuild`, classes are also begun and dissolved. Returns the number of changes.

    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from closeknit.kernels.exchange.class_state import state_of
    >>> from kernel_inputs import flat_scales, one_cap
    >>> quasi, price = np.array([[0], [9], [8], [1]], np.int32), costs(flat_scales([10]))
    >>> secret, rows, group = np.array([0, 0, 1, 1], np.int32), np.arange(4, dtype=np.int32), np.zeros(2, np.int32)
    >>> guard, pairs = one_cap(secret, 2), Buckets(secret, np.array([0, 2], np.int32))
    >>> state = state_of(price, guard, quasi, np.array([0, 1, 0, 1], np.int32), 2)
    >>> sweep(price, guard, pairs, state, rows, rows, group, 0, 2, 0.0, False, 1, True), state.class_of.tolist()
    (1, [1, 0, 0, 1])
    """
    n, changes = len(order), 0
    place, kept, have, count = np.empty(n, np.int64), np.empty(n, np.int32), np.zeros(len(state.size), np.bool_), 0
    for x in range(n):
        place[order[x]] = count
        c = state.class_of[order[x]]
        if c < 0 or group[c] != mine or (state.loss[c] == 0.0 and have[c]):
            continue
        have[c] = True
        kept[count] = order[x]
        count += 1
    search = Search(
        heat, once, np.array([seed | 1], np.uint64), np.zeros(len(state.size), np.bool_),
        np.zeros(len(state.size), np.int64), np.zeros(1, np.int64), group, mine, width, kept[:count], place,
        np.empty(state.quasi.shape[1], np.int32), np.empty(state.quasi.shape[1], np.int32),
        np.zeros((len(state.size), 2 * state.quasi.shape[1]), np.bool_),
        np.zeros(len(costs.scales.node_parent), np.int32), np.full(len(state.size), not rebuild, np.bool_),
        np.zeros(len(guard.parent), np.int32), np.zeros(1, np.int64),
        np.full(len(state.size), not rebuild, np.bool_), np.empty((MOST_TAKEN, 3), np.int32),
        buckets, np.zeros((2, len(buckets.sample)), np.int64),
    )  # fmt: skip
    for i in range(len(visit)):
        row = whole(visit[i])
        c = state.class_of[row]
        if c < 0 or group[c] != mine:
            continue
        if state.loss[c] > 0.0 and state.size[c] > 1 and not (once and search.touched[c]):
            if _offer_row(costs, guard, state, search, row):
                changes += 1
            elif not once:
                changes += _change_more(costs, guard, state, search, row)
    return changes


@bare
def _offer_row(costs: Costs, guard: Guard, state: State, search: Search, row: int) -> bool:
    """Try the classes of the neighbours, nearest first, until a change is made."""
    c = whole(state.class_of[row])
    may_lose = -1  # not known yet
    size, worse = state.size[c], draw_tolerance(search)
    left = leave_box(costs, state, search, c, row)
    shrink = state.loss[c] - left
    if shrink <= 0.0 and size <= guard.k:
        return False
    moved, swapped = state.loss[c] + (size - 1) * shrink + worse, size * shrink + worse if shrink > 0.0 else 0.0
    order, place, helper, source = search.order, search.place, NO_ROW, NO_ROW
    turn = begin_turn(state, search, row)
    for step in range(2, 2 * search.width + 2):
        at = place[row] + step // 2 if step % 2 == 0 else place[row] - step // 2
        if not 0 <= at < len(order):
            continue
        to = whole(state.class_of[order[at]])
        if search.seen[to] == turn or (search.once and search.touched[to]):
            continue
        search.seen[to] = turn
        there = state.size[to]
        may_move = (moved - state.loss[to]) / (there + 1) if may_lose != 0 or (helper >= 0 and to != source) else 0.0
        most = max(may_move, swapped / there)
        if most <= 0.0:
            continue
        more = measure_stretch(costs, state, to, row, most)
        if more < may_move:
            if may_lose < 0:
                may_lose = 1 if is_allowed_after(guard, state.under, c, size, row, NO_ROW, truth(True)) else 0
                if may_lose == 0 and shrink > 0.0 and not search.once:
                    helper, cost = find_helper(costs, guard, state, search, row, left, moved)
                    if helper >= 0:
                        moved, source = moved - cost, whole(state.class_of[helper])
                        may_move = (moved - state.loss[to]) / (there + 1) if to != source else 0.0
            if (
                (may_lose == 1 or helper >= 0)
                and more < may_move
                and is_allowed_after(guard, state.under, to, there, NO_ROW, row, truth(True))
            ):
                take(costs, guard, state, row, to)
                if helper >= 0:
                    take(costs, guard, state, helper, c)
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
def _change_more(costs: Costs, guard: Guard, state: State, search: Search, row: int) -> bool:
    """Try the steps that change many rows of the class of `row`."""
    c = state.class_of[row]
    if clear_range(costs, guard, state, search, row):
        return True
    if not search.settled[c] and begin_class(costs, guard, state, search, row):
        return True
    return not search.kept[c] and dissolve(costs, guard, state, search, row)


@bare
def _partner(costs: Costs, guard: Guard, state: State, search: Search, row: int, to: int, room: float) -> int:
    """Find the row of class `to` that stretches the class of `row` without `row` least; -1 if none is allowed."""
    found, size, y = NO_ROW, state.size[state.class_of[row]], whole(state.first[to])
    most = room / size
    if measure_gap(costs, state, search, to) >= most:
        return NO_ROW
    while y >= 0:
        more = 0.0
        for j in range(state.quasi.shape[1]):
            more += measure_wider(costs, j, state.quasi[y, j], search.lo[j], search.hi[j])
            if more >= most:
                break
        if more < most and may_swap(guard, state, search, row, y):
            found, most = y, more
            if more <= 0.0:
                break
        y = whole(state.after[y])
    return found

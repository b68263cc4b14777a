"""Steps that change three or more classes: a row from a third class, a new class of spare rows, and a class that is dissolved.

A row is *spare* if its class is allowed without it. Where a class has no spare row, none can leave it by itself.
"""

from __future__ import annotations

from closeknit.kernels.compiling import bare, truth, whole
from closeknit.kernels.exchange.class_state import NO_ENDS, State, take
from closeknit.kernels.exchange.knit_guard import Guard, is_allowed, is_allowed_after
from closeknit.kernels.exchange.knit_search import (
    MOST_TAKEN,
    NO_ROW,
    Search,
    draw_tolerance,
    find_place,
    leave_box,
    measure_stretch,
    measure_wider,
    measure_without,
)
from closeknit.kernels.geometry.ranges import Costs


@bare
def find_helper(
    costs: Costs, guard: Guard, state: State, search: Search, row: int, left: float, room: float
) -> tuple[int, float]:
    """Find the row of a third class that takes the place of `row` in its class at the least cost; -1 if there is none."""
    c, found, least = whole(state.class_of[row]), NO_ROW, room
    order, place, size = search.order, search.place, state.size[c]
    member = whole(state.first[c])
    if member == row:
        member = whole(state.after[row])
    if member < 0:
        return found, least
    for step in range(2, 2 * search.width + 2):
        at = place[member] + step // 2 if step % 2 == 0 else place[member] - step // 2
        if at < 0 or at >= len(order):
            continue
        y = whole(order[at])
        d = whole(state.class_of[y])
        if d == c or state.size[d] <= guard.k:
            continue
        gain = state.loss[d]
        if gain > 0.0:
            gain += (state.size[d] - 1) * (gain - measure_without(costs, state, d, y))
        most = (least + gain - left) / size
        if most <= 0.0:
            continue
        more = 0.0
        for j in range(state.quasi.shape[1]):
            more += measure_wider(costs, j, state.quasi[y, j], search.lo[j], search.hi[j])
            if more >= most:
                break
        if (
            more < most
            and is_allowed_after(guard, state.under, d, state.size[d], y, NO_ROW, truth(True))
            and is_allowed_after(guard, state.under, c, size, row, y, truth(True))
        ):
            found, least = y, size * more + left - gain
    return found, least


@bare
def begin_class(costs: Costs, guard: Guard, state: State, search: Search, row: int) -> bool:
    """Try to make a new class of `row` and of rows that their classes do not need."""
    c = whole(state.class_of[row])
    size, least = state.size[c], max(guard.k, 1)
    left = leave_box(costs, state, search, c, row)
    shrink = state.loss[c] - left
    if shrink <= 0.0 or least + 2 > MOST_TAKEN:
        return False
    new = _next_free(state, search)
    search.settled[c] = True
    if new < 0:
        return False
    room, helper = state.loss[c] + (size - 1) * shrink + draw_tolerance(search), NO_ROW
    for j in range(state.quasi.shape[1]):
        state.ends[new, j, 0] = state.ends[new, j, 3] = state.quasi[row, j]
    state.loss[new] = 0.0
    y, _ = _find_spare(costs, guard, state, search, row, new, room)
    for j in range(state.quasi.shape[1]):
        state.ends[new, j, 0], state.ends[new, j, 3] = NO_ENDS[0], NO_ENDS[3]
    if y < 0:
        return False
    if not is_allowed_after(guard, state.under, c, size, row, NO_ROW, truth(True)):
        helper, cost = find_helper(costs, guard, state, search, row, left, room)
        if helper < 0:
            return False
        room -= cost
    search.log[0, 0], search.log[0, 1] = row, c
    done = 1
    take(costs, guard, state, row, new)
    if helper >= 0:
        search.log[1, 0], search.log[1, 1] = helper, state.class_of[helper]
        done = 2
        take(costs, guard, state, helper, c)
    while state.size[new] < least:
        y, gain = _find_spare(costs, guard, state, search, row, new, room)
        if y < 0:
            break
        room += gain
        source = whole(state.class_of[y])
        same = state.loss[source] == 0.0  # the order has one row of such a class
        while (
            y >= 0
            and state.size[new] < least
            and is_allowed_after(guard, state.under, source, state.size[source], y, NO_ROW, truth(True))
        ):
            search.log[done, 0], search.log[done, 1] = y, source
            done += 1
            take(costs, guard, state, y, new)
            y = whole(state.first[source]) if same else NO_ROW
    if state.size[new] == least and is_allowed(guard, state.under, new, search.nothing, whole(1), least):
        return True
    for i in range(done - 1, -1, -1):
        take(costs, guard, state, whole(search.log[i, 0]), whole(search.log[i, 1]))
    return False


@bare
def _find_spare(costs: Costs, guard: Guard, state: State, search: Search, row: int, new: int, room: float) -> tuple[int, float]:
    """Find the row near `row` that a new class takes at the least cost, and what its class gains; -1: none in the room."""
    order, place, least = search.order, search.place[row], max(guard.k, 1)
    found, best, gained = NO_ROW, room - least * state.loss[new], 0.0
    for step in range(2, 2 * search.width + 2):
        at = place + step // 2 if step % 2 == 0 else place - step // 2
        if at < 0 or at >= len(order):
            continue
        y = whole(order[at])
        d = whole(state.class_of[y])
        if d == new or state.size[d] <= guard.k:
            continue
        gain = state.size[d] * state.loss[d]  # at most
        more = measure_stretch(costs, state, new, y, (best + gain) / least)
        if least * more - gain >= best:
            continue
        if gain > 0.0:
            gain -= (state.size[d] - 1) * measure_without(costs, state, d, y)
        if least * more - gain < best and is_allowed_after(guard, state.under, d, state.size[d], y, NO_ROW, truth(True)):
            found, best, gained = y, least * more - gain, gain
    return found, gained


@bare
def _next_free(state: State, search: Search) -> int:
    """An empty class of the group; -1: none is left."""
    x = search.free[0]
    while x < len(state.size) and (state.size[x] > 0 or search.group[x] != search.mine):
        x += 1
    search.free[0] = x
    return x if x < len(state.size) else NO_ROW


@bare
def dissolve(costs: Costs, guard: Guard, state: State, search: Search, row: int) -> bool:
    """Try to move all rows of the class of `row` to other classes, `row` first."""
    c = whole(state.class_of[row])
    size, y, done = whole(state.size[c]), whole(row), 0
    search.kept[c] = True
    if size > min(2 * guard.k, MOST_TAKEN):
        return False
    room = size * state.loss[c] + draw_tolerance(search)
    while y >= 0:
        cost, to, _ = find_place(costs, guard, state, search, y, -1.0, room)
        if to < 0:
            break
        room -= cost
        take(costs, guard, state, y, to)
        search.log[done, 0] = y
        done += 1
        y = whole(state.first[c])
    if done == size:
        return True
    for i in range(done - 1, -1, -1):
        take(costs, guard, state, whole(search.log[i, 0]), c)
    return False

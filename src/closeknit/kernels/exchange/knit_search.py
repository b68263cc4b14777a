"""What the steps of a sweep share: what a row costs its class or another one, which changes are accepted, and places for rows.

`heat` accepts changes that increase the loss a little, with falling probability, so the search can escape local minima.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, truth, whole
from closeknit.kernels.exchange.class_state import State
from closeknit.kernels.exchange.knit_guard import Buckets, Guard, is_allowed_after
from closeknit.kernels.geometry.boxes import Codes, Ints
from closeknit.kernels.geometry.ranges import Costs, range_cost

GAIN = 1e-9  # smaller gains may be rounding errors
NO_ROW = whole(-1)
MOST_TAKEN = 64  # rows that leave a class, or come to one, in one step


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
    order: Codes  # rows that are neighbours: those of the group, and one row of a class whose rows have equal cells
    place: Ints  # [n] of each row in `order`, or where it would be
    lo: Codes  # [d] box of the class without the row
    hi: Codes
    tried: NDArray[np.bool_]  # [classes, 2 * d] ends, or the child of a tree, that were tried
    tally: Codes  # [nodes of all trees]
    kept: NDArray[np.bool_]  # [classes] that are not to be dissolved, or not again
    nothing: Codes  # [nodes] zeros
    free: Ints  # [1] the next class that may be empty
    settled: NDArray[np.bool_]  # [classes] of which no row is to begin a new class, or not again
    log: Codes  # [MOST_TAKEN, 3] rows that left, the class each went to, and the row that came for it
    buckets: Buckets
    known: Ints  # [2, buckets] cached answers of may_swap for the row's class and for the other class: 2 * key + allowed


@bare
def begin_turn(state: State, search: Search, row: int) -> int:
    """Number of a new search for a place of `row`, which does not try the row's own class."""
    search.turn[0] += 1
    search.seen[state.class_of[row]] = search.turn[0]
    return whole(search.turn[0])


@bare
def leave_box(costs: Costs, state: State, search: Search, c: int, row: int) -> float:
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
def measure_without(costs: Costs, state: State, c: int, row: int) -> float:
    """Loss of class c without one of its rows."""
    total = 0.0
    for j in range(state.quasi.shape[1]):
        q, lo, hi = state.quasi[row, j], state.ends[c, j, 0], state.ends[c, j, 3]
        if q == lo and state.ends[c, j, 1] == 1:
            lo = state.ends[c, j, 2]
        if q == hi and state.ends[c, j, 4] == 1:
            hi = state.ends[c, j, 5]
        total += range_cost(costs, j, lo, hi)
    return total


@bare
def measure_stretch(costs: Costs, state: State, c: int, row: int, most: float) -> float:
    """Increase of the loss per row of class c if a row is added; inexact above `most`."""
    more = 0.0
    for j in range(state.quasi.shape[1]):
        more += measure_wider(costs, j, state.quasi[row, j], state.ends[c, j, 0], state.ends[c, j, 3])
        if more >= most:
            break
    return more


@bare
def measure_wider(costs: Costs, j: int, q: int, lo: int, hi: int) -> float:
    """Increase of the cost of the range lo..hi in column j when it includes the code q."""
    if q < lo:
        return range_cost(costs, j, q, hi) - range_cost(costs, j, lo, hi)
    if q > hi:
        return range_cost(costs, j, lo, q) - range_cost(costs, j, lo, hi)
    return 0.0


@bare
def measure_gap(costs: Costs, state: State, search: Search, to: int) -> float:
    """Least increase of the loss per row of the box `search.lo..hi` by any row of class `to`."""
    more = 0.0
    for j in range(state.quasi.shape[1]):
        if state.ends[to, j, 3] < search.lo[j]:
            more += measure_wider(costs, j, state.ends[to, j, 3], search.lo[j], search.hi[j])
        elif state.ends[to, j, 0] > search.hi[j]:
            more += measure_wider(costs, j, state.ends[to, j, 0], search.lo[j], search.hi[j])
    return more


@bare
def may_swap(guard: Guard, state: State, search: Search, row: int, other: int) -> bool:
    """Whether both classes are allowed after a swap. Answers are cached: one check per search, bucket and class."""
    c, to, bucket = whole(state.class_of[row]), whole(state.class_of[other]), search.buckets.of[other]
    if bucket == search.buckets.of[row]:
        return True
    turn = search.turn[0]
    if search.known[0, bucket] >> 1 != turn:
        allowed = is_allowed_after(guard, state.under, c, state.size[c], row, other, truth(True))
        search.known[0, bucket] = 2 * turn + allowed
    if search.known[0, bucket] & 1 == 0:
        return False
    key = turn * len(state.size) + to
    if search.known[1, bucket] >> 1 != key:
        allowed = is_allowed_after(guard, state.under, to, state.size[to], other, row, truth(True))
        search.known[1, bucket] = 2 * key + allowed
    return truth(search.known[1, bucket] & 1 == 1)


@bare
def find_place(
    costs: Costs, guard: Guard, state: State, search: Search, row: int, loss: float, room: float
) -> tuple[float, int, int]:
    """Find the cheapest class for a row that leaves, or the first that costs nothing; and the row that comes for it, or -1.

    `loss` is that of its class without it; below 0 the class is dissolved, so no row comes.
    """
    order, place, dissolve = search.order, search.place[row], loss < 0.0
    loss = max(loss, 0.0)
    c, found, partner, least = whole(state.class_of[row]), NO_ROW, NO_ROW, room
    turn = begin_turn(state, search, row)
    may_lose = dissolve or is_allowed_after(guard, state.under, c, state.size[c], row, NO_ROW, truth(True))
    for step in range(2, 2 * search.width + 2):
        if least <= 0.0 and found >= 0:
            break
        at = place + step // 2 if step % 2 == 0 else place - step // 2
        if not 0 <= at < len(order):
            continue
        to = whole(state.class_of[order[at]])
        if search.seen[to] == turn:
            continue
        search.seen[to] = turn
        there = state.size[to]
        most = 0.0 if dissolve else least / there
        if may_lose:
            most = max(most, (least + loss - state.loss[to]) / (there + 1))
        more = measure_stretch(costs, state, to, row, most)
        if more >= most:
            continue
        cost = (there + 1) * more + state.loss[to] - loss
        if may_lose and cost < least and is_allowed_after(guard, state.under, to, there, NO_ROW, row, truth(True)):
            found, partner, least = to, NO_ROW, cost
        if not dissolve and there * more < least:
            other = _find_inside(guard, state, search, row, to)
            if other >= 0:
                found, partner, least = to, other, there * more
    return least, found, partner


@bare
def _find_inside(guard: Guard, state: State, search: Search, row: int, to: int) -> int:
    """Find a row of class `to` inside the box that `row` leaves, such that they may change places; -1 if there is none."""
    y = whole(state.first[to])
    for j in range(state.quasi.shape[1]):
        if state.ends[to, j, 3] < search.lo[j] or state.ends[to, j, 0] > search.hi[j]:
            return NO_ROW
    while y >= 0:
        inside = True
        for j in range(state.quasi.shape[1]):
            if not search.lo[j] <= state.quasi[y, j] <= search.hi[j]:
                inside = False
                break
        if inside and may_swap(guard, state, search, row, y):
            return y
        y = whole(state.after[y])
    return NO_ROW


@bare
def draw_tolerance(search: Search) -> float:
    """Draw the accepted increase of the loss: exponential with mean `heat` (xorshift); with 0 only gains are accepted."""
    x = search.random_state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    search.random_state[0] = x
    return -search.heat * np.log((np.float64(x >> np.uint64(11)) + 1.0) / 9007199254740993.0) - GAIN

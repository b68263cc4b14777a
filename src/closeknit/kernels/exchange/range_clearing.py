"""Clearing a range: all rows of a class outside a narrower range of one column leave it together.

They may be the rows at one end of an axis. A cell of a tree stays as wide until all rows outside one child of its node are
gone.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.compiling import bare, whole
from closeknit.kernels.exchange.class_state import State, take
from closeknit.kernels.exchange.knit_guard import Guard
from closeknit.kernels.exchange.knit_search import MOST_TAKEN, NO_ROW, Search, draw_tolerance, find_place
from closeknit.kernels.geometry.boxes import climb
from closeknit.kernels.geometry.ranges import Costs, range_cost

FEW_CLEARED = 4  # rows taken out of a class of any size, at most; of a larger one, half of its rows
FAR = 1 << 40  # more rows than any class has


@bare
def clear_range(costs: Costs, guard: Guard, state: State, search: Search, row: int) -> bool:
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
    loss, room = state.loss[c] - gain, state.size[c] * gain + draw_tolerance(search)
    y, done = whole(state.first[c]), 0
    while y >= 0 and done < count:
        after, q = whole(state.after[y]), state.quasi[y, column]
        if q < lo or q > hi:
            cost, to, other = find_place(costs, guard, state, search, y, max(loss, 0.0), room)
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
    most = min(max(FEW_CLEARED, state.size[c] // 2), MOST_TAKEN)
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
        found = state.narrow[c, j]
        if found[2] < 0:
            found[0], found[1], found[2] = _narrow_to_child(costs, state, search, c, j)
        return whole(found[0]), whole(found[1]), whole(found[2])
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

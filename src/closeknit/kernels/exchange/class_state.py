"""Mutable classes: linked lists of members, boxes with their second-lowest and second-highest codes, counts under every node.

Per class and column: the smallest code, the number of its rows, and the next larger code; the same from above. So the cost of a
box without one of its rows is known without visiting the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.exchange.knit_guard import Guard, count_row
from closeknit.kernels.geometry.boxes import Codes, Ints, Reals
from closeknit.kernels.geometry.ranges import Costs, range_cost

HIGHEST = np.iinfo(np.int32).max  # above all codes
NO_ENDS = (HIGHEST, 0, HIGHEST, -1, 0, -1)  # of an empty class


class State(NamedTuple):
    """All classes; changed in place."""

    quasi: Codes  # [n, d]
    class_of: Codes  # [n]
    after: Codes  # [n] next member of the class, -1 at its end
    before: Codes  # [n]
    first: Codes  # [classes]
    size: Ints  # [classes]
    under: Codes  # [classes, nodes]
    ends: Codes  # [classes, d, 6]: lowest, rows there, next above it; highest, rows there, next below it
    loss: Reals  # [classes] of one row
    narrow: Codes  # [classes, d, 3]: range without the rows outside one child, and how many these are; 0, 0, -1: not known


def state_of(costs: Costs, guard: Guard, quasi: Codes, class_of: Codes, classes: int) -> State:
    """Build the state from rows; rows of class -1 are in no class.

    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from kernel_inputs import flat_scales, one_cap
    >>> quasi, classes = np.array([[0], [4], [1]], np.int32), np.array([0, 0, 1], np.int32)
    >>> state = state_of(costs(flat_scales([5])), one_cap(np.array([0, 1, 1], np.int32), 1), quasi, classes, 2)
    >>> state.size.tolist(), state.loss.tolist(), state.under.tolist()
    ([2, 1], [1.0, 0.0], [[2, 1, 1], [1, 0, 1]])
    """
    n, d = quasi.shape
    state = State(
        quasi, class_of.copy(), np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.full(classes, -1, np.int32),
        np.zeros(classes, np.int64), np.zeros((classes, len(guard.parent)), np.int32),
        np.tile(np.array(NO_ENDS, np.int32), (classes, d, 1)), np.zeros(classes), np.full((classes, d, 3), -1, np.int32),
    )  # fmt: skip
    _take_all(costs, guard, state)
    return state


@kernel
def _take_all(costs: Costs, guard: Guard, state: State) -> None:
    """Add all rows to their classes."""
    for r in range(len(state.class_of) - 1, -1, -1):
        c = whole(state.class_of[r])
        if c >= 0:
            _link(state, r, c)
            count_row(guard, state.under, c, r, whole(1))
            for j in range(state.quasi.shape[1]):
                stretch_ends(state.ends, c, j, state.quasi[r, j])
    for c in range(len(state.size)):
        state.loss[c] = _loss(costs, state, c)


@bare
def _link(state: State, row: int, c: int) -> None:
    old = state.first[c]
    state.after[row], state.before[row] = old, -1
    if old >= 0:
        state.before[old] = row
    state.first[c] = row
    state.class_of[row] = c
    state.size[c] += 1


@bare
def _unlink(state: State, row: int) -> None:
    c, a, b = state.class_of[row], state.before[row], state.after[row]
    if a >= 0:
        state.after[a] = b
    else:
        state.first[c] = b
    if b >= 0:
        state.before[b] = a
    state.size[c] -= 1


@bare
def _loss(costs: Costs, state: State, c: int) -> float:
    total = 0.0
    if state.size[c] > 0:
        for j in range(state.quasi.shape[1]):
            total += range_cost(costs, j, state.ends[c, j, 0], state.ends[c, j, 3])
    return total


@bare
def take(costs: Costs, guard: Guard, state: State, row: int, to: int) -> None:
    """Move row `row` to another class.

    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from kernel_inputs import flat_scales, one_cap
    >>> quasi, price, guard = np.array([[0], [4], [1]], np.int32), costs(flat_scales([5])), one_cap(np.zeros(3, np.int32), 1)
    >>> state = state_of(price, guard, quasi, np.array([0, 0, 1], np.int32), 2)
    >>> take(price, guard, state, 0, 1)
    >>> state.class_of.tolist(), state.loss.tolist()
    ([1, 0, 1], [0.0, 0.25])
    """
    c = whole(state.class_of[row])
    _unlink(state, row)
    _link(state, row, to)
    count_row(guard, state.under, c, row, whole(-1))
    count_row(guard, state.under, to, row, whole(1))
    for j in range(state.quasi.shape[1]):
        _shrink(state, c, j, state.quasi[row, j])
        stretch_ends(state.ends, to, j, state.quasi[row, j])
        state.narrow[c, j, 2] = state.narrow[to, j, 2] = -1
    state.loss[c], state.loss[to] = _loss(costs, state, c), _loss(costs, state, to)


@bare
def _shrink(state: State, c: int, j: int, q: int) -> None:
    """Remove a row with code q; members are visited only if an end or the code next to it may be gone."""
    end = state.ends[c, j]
    low, high = q == end[0], q == end[3]
    end[1] -= low
    end[4] -= high
    remain = (low and end[1] > 0) or (high and end[4] > 0)  # other rows still have this code
    if not remain and (low or q == end[2]):
        if low:
            end[0] = end[2]
        end[1], end[2] = _count_end(state, c, j, whole(end[0]), whole(1))
    if not remain and (high or q == end[5]):
        if high:
            end[3] = end[5]
        end[4], end[5] = _count_end(state, c, j, whole(end[3]), whole(-1))


@bare
def _count_end(state: State, c: int, j: int, end: int, direction: int) -> tuple[int, int]:
    """Count the rows of class c at one end of column j and find the next code inwards; direction 1: lower end, -1: upper."""
    rows, none, row = whole(0), whole(HIGHEST), state.first[c]
    nearest = none
    while row >= 0:
        inwards = direction * (whole(state.quasi[row, j]) - end)
        rows += inwards == 0
        nearest = min(nearest, inwards if inwards > 0 else none)
        row = state.after[row]
    if nearest == none:
        return rows, none if direction > 0 else whole(-1)
    return rows, end + direction * nearest


@bare
def stretch_ends(ends: Codes, c: int, j: int, q: int) -> None:
    """Add a row with code q to column j of class c.

    >>> ends = np.array([[[3, 1, 5, 5, 1, 3]]], np.int32)
    >>> stretch_ends(ends, 0, 0, 2)
    >>> ends.tolist()
    [[[2, 1, 3, 5, 1, 3]]]
    """
    if q < ends[c, j, 0]:
        ends[c, j, 2], ends[c, j, 0], ends[c, j, 1] = ends[c, j, 0], q, 1
    elif q == ends[c, j, 0]:
        ends[c, j, 1] += 1
    elif q < ends[c, j, 2]:
        ends[c, j, 2] = q
    if q > ends[c, j, 3]:
        ends[c, j, 5], ends[c, j, 3], ends[c, j, 4] = ends[c, j, 3], q, 1
    elif q == ends[c, j, 3]:
        ends[c, j, 4] += 1
    elif q > ends[c, j, 5]:
        ends[c, j, 5] = q

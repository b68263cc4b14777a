"""Changes left over: the sensitive values that a member cannot have if no allowed change of two classes lowers the loss.

A change moves a member to another class, alone or in exchange for a row there. Whether it lowers the loss depends on
quasi-identifiers alone; whether the guard allows it depends, for a member whose value is not known, on that value alone: both
classes are known as histograms. So a change that was not made excludes the values with which it would have been allowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, kernel, truth, whole
from closeknit.kernels.exchange.class_state import State
from closeknit.kernels.exchange.knit_guard import Guard, is_allowed_after
from closeknit.kernels.exchange.knit_search import GAIN, NO_ROW
from closeknit.kernels.geometry.boxes import Codes, Ints
from closeknit.kernels.geometry.ranges import Costs, range_cost

Flags = NDArray[np.bool_]


class Candidates(NamedTuple):
    """The values that each member of a class may have: those that occur in it."""

    kind: Codes  # [n] of each row
    own: Codes  # a row of the class for each kind in it
    excluded: Flags  # [members, own] with these the other class would have an allowed change
    seen: Ints  # [own, kinds + 1] twice the class that was last judged, plus whether it may change; per kind that comes


@kernel
def find_excluded(
    costs: Costs, guard: Guard, state: State, c: int, kind: Codes, own: Codes, excluded: Flags
) -> tuple[int, int]:
    """Find the values that members of class c cannot have, given with which classes it has no change left over.

    `kind` numbers the sensitive values of each row, `own` has a row of the class for each kind in it, and `excluded`,
    [members, kinds of the class], is filled. Returns with how many classes some change lowers the loss and none is allowed,
    and with how many an allowed one is left over: those exclude nothing.

    >>> from closeknit.kernels.exchange.class_state import state_of
    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from kernel_inputs import flat_scales, one_cap
    >>> quasi, price = np.array([[0], [1], [2], [9]], np.int32), costs(flat_scales([10]))
    >>> kind, rows, found = np.array([0, 0, 1, 2], np.int32), np.array([1, 2], np.int32), np.zeros((2, 2), np.bool_)
    >>> state = state_of(price, one_cap(kind, 2), quasi, np.array([0, 1, 1, 0], np.int32), 2)
    >>> find_excluded(price, one_cap(kind, 2), state, 1, kind, rows, found), found.tolist()
    ((1, 0), [[False, True], [True, False]])
    """
    d = state.quasi.shape[1]
    rest, held, left = np.empty((2, d), np.int32), 0, 0
    values = Candidates(kind, own, np.zeros_like(excluded), np.full((len(own), kind.max() + 2), -1, np.int64))
    for to in range(len(state.size) if state.size[c] > 1 else 0):
        if to == c or state.size[to] == 0:
            continue
        values.excluded[:] = False
        changes = _exclude_with(costs, guard, state, c, whole(to), values, rest)
        if changes < 0:
            left += 1
        elif changes > 0:
            held += 1
            excluded |= values.excluded
    return held, left


@bare
def _exclude_with(costs: Costs, guard: Guard, state: State, c: int, to: int, values: Candidates, rest: Codes) -> int:
    """Mark the values with which a change with class `to` would be allowed; the number of changes, -1 if one is left over."""
    kind, own, excluded = values.kind, values.own, values.excluded
    row, a, changes = whole(state.first[c]), 0, 0
    while row >= 0:
        _leave_out(state, c, row, rest)
        if _may_gain(costs, state, c, to, row, rest):
            other = NO_ROW
            while True:
                if _lowers_loss(costs, state, c, to, row, other, rest):
                    changes += 1
                    for b in range(len(own)):
                        mine = kind[own[b]] == kind[row]
                        if (mine or not excluded[a, b]) and _is_allowed(guard, state, c, to, values, b, other):
                            excluded[a, b] = True
                            if mine:
                                return -1
                other = whole(state.first[to] if other < 0 else state.after[other])
                if other < 0:
                    break
        row, a = whole(state.after[row]), a + 1
    return changes


@bare
def _leave_out(state: State, c: int, row: int, box: Codes) -> None:
    """Store the box of class c, of two rows or more, without a row."""
    for j in range(state.quasi.shape[1]):
        q, end = state.quasi[row, j], state.ends[c, j]
        box[0, j] = end[2] if q == end[0] and end[1] == 1 else end[0]
        box[1, j] = end[5] if q == end[3] and end[4] == 1 else end[3]


@bare
def _may_gain(costs: Costs, state: State, c: int, to: int, row: int, rest: Codes) -> bool:
    """Whether some change could lower the loss: the class without the row, the other without its farthest rows."""
    mine, theirs = 0.0, 0.0
    for j in range(state.quasi.shape[1]):
        q, end = state.quasi[row, j], state.ends[to, j]
        mine += range_cost(costs, j, rest[0, j], rest[1, j])
        lo, hi = end[2] if end[1] == 1 else end[0], end[5] if end[4] == 1 else end[3]
        if lo <= hi:  # two rows at the ends: either may go
            theirs += range_cost(costs, j, min(lo, q), max(hi, q))
    least = (state.size[c] - 1) * mine + state.size[to] * theirs
    return least < state.size[c] * state.loss[c] + state.size[to] * state.loss[to] - GAIN


@bare
def _lowers_loss(costs: Costs, state: State, c: int, to: int, row: int, other: int, rest: Codes) -> bool:
    """Whether both classes lose less after row goes to class `to` and `other` (-1: none) comes for it."""
    mine, theirs, alone = 0.0, 0.0, other >= 0 and state.size[to] == 1
    for j in range(state.quasi.shape[1]):
        q, end = state.quasi[row, j], state.ends[to, j]
        lo, hi, low, high = rest[0, j], rest[1, j], end[0], end[3]
        if other >= 0:
            z = state.quasi[other, j]
            low = end[2] if z == low and end[1] == 1 else low
            high = end[5] if z == high and end[4] == 1 else high
            lo, hi = min(lo, z), max(hi, z)
        mine += range_cost(costs, j, lo, hi)
        if not alone:
            theirs += range_cost(costs, j, min(low, q), max(high, q))
    more = whole(other < 0)
    after = (state.size[c] - more) * mine + (state.size[to] + more) * theirs
    return after < state.size[c] * state.loss[c] + state.size[to] * state.loss[to] - GAIN


@bare
def _is_allowed(guard: Guard, state: State, c: int, to: int, values: Candidates, b: int, other: int) -> bool:
    """Whether both classes may change if the row has the values of `own[b]`; the answer for class `to` is kept."""
    own, seen = values.own, values.seen
    w = values.kind[other] + 1 if other >= 0 else 0
    if seen[b, w] // 2 != to:
        row, unsure = whole(own[b]), truth(False)  # any classes may be asked about
        fine = is_allowed_after(guard, state.under, c, state.size[c], row, other, unsure) and is_allowed_after(
            guard, state.under, to, state.size[to], other, row, unsure
        )
        seen[b, w] = 2 * to + whole(fine)
    return seen[b, w] % 2 == 1

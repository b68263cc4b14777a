"""Boxes of rows that are peeled, end by end: a cut in several columns at once.

A cut in one column leaves two sides that are as wide as before in all other columns. Here rows at one end of a column are
removed, then at one end of another, each time where the box narrows most for every row that is removed (after PRIM, Friedman
and Fisher 1999). In a tree the rows under one child are kept. What remains is one side, and all removed rows together are the
other. Of all boxes on the way the one is used whose two sides are expected to lose least.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, kernel, truth
from closeknit.kernels.geometry.declared_axes import EQUAL, NUMBER, Axes, Ints, Reals, range_cost

Flags = NDArray[np.bool_]
NEVER = 1e300  # the value of a cut that is not possible
NEAR = 1e-9  # smaller differences of values are rounding errors
PEELED = 0.02  # share of the remaining rows that one step removes, together with rows of equal value
MOST_PEELED = 0.25  # a step that would remove a larger share is not taken


class Peeling(NamedTuple):
    """Rows that remain; changed in place."""

    rows: Reals  # [n, d]
    orders: Ints  # [d, n]
    gone: Flags  # [n]
    ends: Ints  # [2, d] the first and the last place in each order whose row remains
    runs: Ints  # [d, n] in a tree: the first place of the rows under the same child
    stops: Ints  # [d, n] the place after the rows under the child whose rows begin at this place
    size: Ints  # [d, n] and how many of them remain
    known: Reals  # [2, d] the lowest and the highest value for which `runs` was computed
    keep: Reals  # [3] the best next step: what is gained for each removed row, and the lowest and the highest value kept
    outer: Reals  # [2, d] the box of the removed rows
    bounds: Reals  # [2, d] values that were kept so far


@kernel
def peel_box(axes: Axes, rows: Reals, orders: Ints, least: float, worth: Reals, inside: Flags, bounds: Reals) -> float:
    """Find the best box: `inside` becomes its rows, `bounds` what it keeps of every column. Returns its value, NEVER if none.

    Args:
        axes: the geometry of the quasi-identifiers.
        rows: the rows, or a sample of them.
        orders: for each column the rows in ascending order.
        least: the fewest rows of a side.
        worth: for each number of rows the share of its loss that a side is expected to keep: in columns of numbers, in others.
        inside: whether each row is in the box; changed.
        bounds: the lowest and the highest value of each column in the box; infinite at an end that is not cut; changed.

    >>> from kernel_inputs import number_axes
    >>> rows = np.array([[1.0, 1.0], [2.0, 2.0], [1.0, 9.0], [9.0, 1.0]])
    >>> inside, bounds = np.zeros(4, np.bool_), np.zeros((2, 2))
    >>> orders = np.argsort(rows.T, axis=1, kind="stable")
    >>> value = peel_box(number_axes([10.0, 10.0]), rows, orders, 2.0, np.ones((2, 5)), inside, bounds)
    >>> inside.tolist(), bounds[1].tolist()
    ([True, True, False, False], [2.0, 2.0])
    """
    d, n = orders.shape
    state = Peeling(
        rows, orders, np.zeros(n, np.bool_), np.zeros((2, d), np.int64), np.zeros((d, n), np.int64), np.zeros((d, n), np.int64),
        np.zeros((d, n), np.int64), np.full((2, d), np.nan), np.zeros(3), np.full((2, d), np.inf), np.full((2, d), np.inf),
    )  # fmt: skip
    for j in range(d):
        state.ends[1, j] = n - 1
        state.outer[1, j] = state.bounds[0, j] = -np.inf
    best, remaining = NEVER, n
    while True:
        j = _find_step(axes, state, remaining, least)
        if n - remaining >= least:
            value = _measure_boxes(axes, state, remaining, worth)
            if value < best - NEAR:
                best = value
                for q in range(d):
                    bounds[0, q], bounds[1, q] = state.bounds[0, q], state.bounds[1, q]
                for row in range(n):
                    inside[row] = not state.gone[row]
        if j < 0:
            return best
        remaining -= _remove_ends(axes, state, j)


@bare
def _find_step(axes: Axes, state: Peeling, remaining: int, least: float) -> int:
    """Find the column with the best next step, -1 if there is none."""
    found = -1
    state.keep[0] = NEAR
    for j in range(len(state.orders)):
        order = state.orders[j]
        while state.gone[order[state.ends[0, j]]]:
            state.ends[0, j] += 1
        while state.gone[order[state.ends[1, j]]]:
            state.ends[1, j] -= 1
        cost = axes.weight[j] * range_cost(axes, j, _end(state, j, 0), _end(state, j, 1))
        if cost <= 0.0:
            continue
        if axes.kind[j] != NUMBER:
            better = _try_children(axes, state, j, cost, remaining, least)
        else:
            better = _try_end(axes, state, j, cost, remaining, least, truth(False))
            better = _try_end(axes, state, j, cost, remaining, least, truth(True)) or better
        if better:
            found = j
    return found


@bare
def _end(state: Peeling, j: int, upper: int) -> float:
    """The lowest or the highest value that remains."""
    return state.rows[state.orders[j, state.ends[upper, j]], j]


@bare
def _try_end(axes: Axes, state: Peeling, j: int, cost: float, remaining: int, least: float, upper: bool) -> bool:
    """Whether removing some rows at one end of a column is the best step so far."""
    step, at = (-1, state.ends[1, j]) if upper else (1, state.ends[0, j])
    wanted = max(1.0, PEELED * remaining)
    most = min(max(wanted, MOST_PEELED * remaining), remaining - least)
    removed, x = 0, 0.0
    while removed <= most:  # a row always remains
        row = state.orders[j, at]
        at += step
        if state.gone[row]:
            continue
        if removed >= wanted and state.rows[row, j] != x:
            x = state.rows[row, j]
            break
        x = state.rows[row, j]
        removed += 1
    if removed > most:
        return False
    lo, hi = (_end(state, j, 0), x) if upper else (x, _end(state, j, 1))
    return _offer_step(axes, state, j, cost, removed, lo, hi)


@bare
def _try_children(axes: Axes, state: Peeling, j: int, cost: float, remaining: int, least: float) -> bool:
    """Whether keeping the rows under one child is the best step so far."""
    lo, hi = _end(state, j, 0), _end(state, j, 1)
    if state.known[0, j] != lo or state.known[1, j] != hi:
        _find_children(axes, state, j, lo, hi)
    start, better = state.ends[0, j], False
    while start <= state.ends[1, j]:
        start = state.runs[j, state.orders[j, start]]
        stop, size = state.stops[j, start], state.size[j, start]
        if least <= size < remaining:
            low, high = state.rows[state.orders[j, start], j], state.rows[state.orders[j, stop - 1], j]
            better = _offer_step(axes, state, j, cost, remaining - size, low, high) or better
        start = stop
    return better


@bare
def _find_children(axes: Axes, state: Peeling, j: int, lo: float, hi: float) -> None:
    """Mark and count the rows under every child of the lowest node over all rows that remain."""
    start, end, order = state.ends[0, j], state.ends[1, j], state.orders[j]
    state.known[0, j], state.known[1, j] = lo, hi
    while start <= end:
        upto, at, size = last_of_child(axes, j, state.rows[order[start], j], lo, hi), start, 0
        while at <= end and state.rows[order[at], j] <= upto:
            state.runs[j, order[at]] = start
            size += not state.gone[order[at]]
            at += 1
        state.stops[j, start], state.size[j, start] = at, size
        start = at


@bare
def last_of_child(axes: Axes, j: int, x: float, lo: float, hi: float) -> float:
    """The last leaf under the same child as x of the lowest node over lo to hi; x itself where no tree is above all of them.

    >>> from kernel_inputs import number_axes
    >>> last_of_child(number_axes([10.0])._replace(kind=np.array([EQUAL])), 0, 3.0, 1.0, 5.0)
    3.0
    """
    if axes.kind[j] == EQUAL or hi >= axes.missing[j]:
        return x
    node = axes.leaf_node[axes.leaf_start[j] + np.int64(x)]
    while axes.node_parent[node] >= 0 and not _is_over(axes, j, axes.node_parent[node], lo, hi):
        node = axes.node_parent[node]
    return axes.node_hi[node]


@bare
def _is_over(axes: Axes, j: int, node: int, lo: float, hi: float) -> bool:
    """Whether a node lies above all leaves between two."""
    above = axes.leaf_node[axes.leaf_start[j] + np.int64(lo)]
    while above != node and axes.node_parent[above] >= 0:
        above = axes.node_parent[above]
    return above == node and axes.node_hi[node] >= hi


@bare
def _offer_step(axes: Axes, state: Peeling, j: int, cost: float, removed: int, lo: float, hi: float) -> bool:
    """Use a step if it gains more for each removed row than the best so far."""
    gain = (cost - axes.weight[j] * range_cost(axes, j, lo, hi)) / removed
    if gain <= state.keep[0]:
        return False
    state.keep[0], state.keep[1], state.keep[2] = gain, lo, hi
    return True


@bare
def _remove_ends(axes: Axes, state: Peeling, j: int) -> int:
    """Remove the rows outside what is kept of a column; return how many."""
    removed, lo, hi = 0, state.keep[1], state.keep[2]
    if _end(state, j, 0) < lo:
        state.bounds[0, j] = lo
    if _end(state, j, 1) > hi:
        state.bounds[1, j] = hi
    at = state.ends[0, j]
    while state.rows[state.orders[j, at], j] < lo:
        removed += _remove(axes, state, state.orders[j, at])
        at += 1
    at = state.ends[1, j]
    while state.rows[state.orders[j, at], j] > hi:
        removed += _remove(axes, state, state.orders[j, at])
        at -= 1
    return removed


@bare
def _remove(axes: Axes, state: Peeling, row: int) -> bool:
    """Remove a row, unless it was removed before."""
    if state.gone[row]:
        return False
    state.gone[row] = True
    for q in range(state.rows.shape[1]):
        x = state.rows[row, q]
        state.outer[0, q], state.outer[1, q] = min(state.outer[0, q], x), max(state.outer[1, q], x)
        if axes.kind[q] != NUMBER:
            state.size[q, state.runs[q, row]] -= 1
    return True


@bare
def _measure_boxes(axes: Axes, state: Peeling, remaining: int, worth: Reals) -> float:
    """The value of the cut between the rows that remain and those that were removed."""
    value, removed = 0.0, len(state.rows) - remaining
    for j in range(state.rows.shape[1]):
        kept = worth[0 if axes.kind[j] == NUMBER else 1]
        inner = range_cost(axes, j, _end(state, j, 0), _end(state, j, 1)) * remaining * kept[remaining]
        outer = range_cost(axes, j, state.outer[0, j], state.outer[1, j]) * removed * kept[removed]
        value += axes.weight[j] * (inner + outer)
    return value

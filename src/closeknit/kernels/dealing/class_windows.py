"""Reassign the rows of a window of classes so that their boxes shrink: exact descent, one layer at a time.

A layer is one slot of each class that has one left, all of one kind. Its rows are reassigned by the minimum-cost assignment
to the boxes of the other rows. The current assignment is one of the choices, so the loss never grows (with `pull` = 0).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import kernel
from closeknit.kernels.dealing.assignment import assign
from closeknit.kernels.dealing.boundary import Rules, forbid
from closeknit.kernels.dealing.class_members import ClassMembers, corners
from closeknit.kernels.geometry.boxes import Codes, Ints
from closeknit.kernels.geometry.ranges import Costs, range_cost


class Window(NamedTuple):
    """A copy of the members of a window's classes, with their boxes during the reassignment."""

    at: Ints  # [classes + 1] as `start` of the members
    mine: Codes  # [slots]
    codes: Codes  # [slots, columns]; zeros, never used, where there is no row
    here: Ints  # [classes] the first slot not reassigned yet
    size: Ints  # [classes] rows
    middle: Codes  # [classes, columns] medians, if there is a pull
    box: Codes  # [classes, 2, columns] lowest and highest codes of the rows reassigned so far
    after: Codes  # [slots + classes, 2, columns] box of the slots x, x + 1, .. of class i in entry x + i


@kernel
def _open(classes: Ints, held: ClassMembers, pull: float) -> Window:
    """Copy element by element: an assignment of slices takes seconds to compile."""
    w, d = len(classes), held.quasi.shape[1]
    at = np.zeros(w + 1, np.int64)
    for i in range(w):
        at[i + 1] = at[i] + held.start[classes[i] + 1] - held.start[classes[i]]
    mine, codes, size = np.empty(at[w], np.int32), np.zeros((at[w], d), np.int32), np.zeros(w, np.int64)
    box, after = np.full((w, 2, d), -1, np.int32), np.full((at[w] + w, 2, d), -1, np.int32)
    for i in range(w):
        for j in range(d):
            box[i, 0, j] = after[at[i + 1] + i, 0, j] = np.iinfo(np.int32).max
        for x in range(at[i + 1] - 1, at[i] - 1, -1):
            mine[x] = row = held.member[held.start[classes[i]] + x - at[i]]
            size[i] += row >= 0
            for j in range(d):
                lo, hi = after[x + i + 1, 0, j], after[x + i + 1, 1, j]
                if row >= 0:
                    codes[x, j] = held.quasi[row, j]
                    lo, hi = min(lo, codes[x, j]), max(hi, codes[x, j])
                after[x + i, 0, j], after[x + i, 1, j] = lo, hi
    middle = corners(held, classes, np.full(d, 2, np.int64)) if pull > 0.0 else np.zeros((w, d), np.int32)
    return Window(at, mine, codes, at[:w].copy(), size, middle, box, after)


@kernel
def _next_layer(win: Window, classes: Ints, held: ClassMembers) -> tuple[Ints, int]:
    """Find the first kind with remaining slots, and the classes that have one; no class at the end."""
    kind, layer, g = -1, np.empty(len(classes), np.int64), 0
    for i in range(len(classes)):
        if win.here[i] < win.at[i + 1]:
            this = held.kind[held.start[classes[i]] + win.here[i] - win.at[i]]
            if g == 0 or this < kind:
                kind, g = this, 0
            if this == kind:
                layer[g] = i
                g += 1
    return layer[:g], kind


@kernel
def _add_tabled(price: Costs, rest: Codes, cells: Codes, j: int, sizes: Ints, pull: float, cost: Reals) -> None:
    table, side = price.table[price.table_start[j] :], price.scales.size[j] + 1
    g = cost.shape[0]
    for i in range(g):
        lo, hi, middle, size = rest[i, 0, j], rest[i, 1, j], rest[i, 2, j], sizes[i]
        for x in range(g):
            code = cells[x, j]
            cost[i, x] += size * table[min(lo, code) * side + max(hi, code)]
            if pull > 0.0:
                cost[i, x] += pull * table[min(middle, code) * side + max(middle, code)]


@kernel
def _add_computed(price: Costs, rest: Codes, cells: Codes, j: int, sizes: Ints, pull: float, cost: Reals) -> None:
    g = cost.shape[0]
    for i in range(g):
        lo, hi, middle, size = rest[i, 0, j], rest[i, 1, j], rest[i, 2, j], sizes[i]
        for x in range(g):
            code = cells[x, j]
            cost[i, x] += size * range_cost(price, j, min(lo, code), max(hi, code))
            if pull > 0.0:
                cost[i, x] += pull * range_cost(price, j, min(middle, code), max(middle, code))


@kernel
def _costs(price: Costs, rest: Codes, rows: Codes, cells: Codes, sizes: Ints, pull: float) -> Reals:
    """cost[i, x]: size times loss of class i's box with row x in it, plus `pull` times x's distance to its median.

    `rest[i]` = lowest and highest codes of the other rows of class i, and its median; `sizes[i]` = their number and one.
    """
    g = len(rows)
    cost = np.zeros((g, g))
    for j in range(cells.shape[1]):
        if price.table_start[j] >= 0:
            _add_tabled(price, rest, cells, j, sizes, pull, cost)
        else:
            _add_computed(price, rest, cells, j, sizes, pull, cost)
    for x in range(g):
        if rows[x] < 0:  # a class without a row keeps its box, for one row less
            for i in range(g):
                cost[i, x] = 0.0
                for j in range(cells.shape[1] if sizes[i] > 1 else 0):
                    cost[i, x] += (sizes[i] - 1) * range_cost(price, j, rest[i, 0, j], rest[i, 1, j])
    return cost


@kernel
def _deal_layer(win: Window, layer: Ints, kind: int, value: Codes, rules: Rules, price: Costs, pull: float) -> None:
    g, d = len(layer), win.codes.shape[1]
    rest, cells = np.empty((g, 3, d), np.int32), np.empty((g, d), np.int32)
    rows, partner, sizes = np.empty(g, np.int32), np.empty(g, np.int32), np.empty(g, np.int64)
    for y in range(g):
        i = layer[y]
        x = win.here[i]
        rows[y], sizes[y] = win.mine[x], win.size[i] + (win.mine[x] < 0)
        for j in range(d):
            rest[y, 0, j] = min(win.box[i, 0, j], win.after[x + i + 1, 0, j])
            rest[y, 1, j] = max(win.box[i, 1, j], win.after[x + i + 1, 1, j])
            rest[y, 2, j], cells[y, j] = win.middle[i, j], win.codes[x, j]
    cost = _costs(price, rest, rows, cells, sizes, pull)
    for line in range(2):
        if rules.partner[line, kind] >= 0:
            for y in range(g):
                partner[y] = win.mine[win.at[layer[y]] + rules.partner[line, kind]]
            far = 4.0 * g * (len(win.mine) + pull)  # above the costs of the whole layer, small enough to keep their digits
            forbid(cost, rows, partner, value, rules.value[line, kind], rules.cover[line, kind], far)
    given = assign(cost)
    for y in range(g):
        i, row = layer[y], rows[given[y]]
        win.mine[win.here[i]] = row
        win.here[i] += 1
        win.size[i] = sizes[y] - (row < 0)
        for j in range(d if row >= 0 else 0):
            win.box[i, 0, j] = min(win.box[i, 0, j], cells[given[y], j])
            win.box[i, 1, j] = max(win.box[i, 1, j], cells[given[y], j])


@kernel
def deal_windows(edges: Ints, order: Ints, held: ClassMembers, rules: Rules, price: Costs, pull: float) -> None:
    """Reassign rows among the classes order[edges[x] : edges[x + 1]], for every x; changes `held.member` in place.

    With rules, each class must have one slot of each kind 0, 1, ..
    """
    for window in range(len(edges) - 1):
        classes = order[edges[window] : edges[window + 1]]
        win = _open(classes, held, pull)
        layer, kind = _next_layer(win, classes, held)
        while len(layer) > 0:
            _deal_layer(win, layer, kind, held.value, rules, price, pull)
            layer, kind = _next_layer(win, classes, held)
        for i in range(len(classes)):
            for x in range(win.at[i], win.at[i + 1]):
                held.member[held.start[classes[i]] + x - win.at[i]] = win.mine[x]

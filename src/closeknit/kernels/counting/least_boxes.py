"""The narrowest box around a row whose rows can contain an allowed class: a lower bound of what the class of the row loses."""

from __future__ import annotations

import numpy as np

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.counting.least_classes import HAIR, Rows, admits
from closeknit.kernels.exchange.knit_guard import Guard
from closeknit.kernels.geometry.boxes import Codes, Ints, Reals
from closeknit.kernels.geometry.ranges import Costs, range_cost


@kernel
def least_boxes(costs: Costs, guard: Guard, distance: Reals, rows: Rows, chosen: Ints, work: int) -> Reals:
    """For each chosen cell the least loss of a box around it whose rows may contain an allowed class; -1: too much work.

    Ranges of all columns but the first are tried in turn, each around the cell; the range of the first is a run of the cells
    that are inside all others.

    Args:
        costs: the loss of ranges.
        guard: the guarantees.
        distance: the limit of each view of closeness, in its weights.
        rows: the rows; cells are in the order of their first column.
        chosen: the cells to look at.
        work: cells that may be visited around each chosen one.

    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from kernel_inputs import flat_scales, one_cap
    >>> cells, first, secret = np.array([[0], [1], [4]], np.int32), np.arange(4), np.array([0, 1, 0], np.int32)
    >>> rows = Rows(cells, first, (secret + 1).reshape(3, 1), np.ones(3, np.int64))
    >>> least_boxes(costs(flat_scales([5])), one_cap(secret, 2), np.zeros(1), rows, np.arange(3), 100).tolist()
    [0.249999999, 0.249999999, 0.749999999]
    """
    count, d = rows.cells.shape
    found, under = np.zeros(len(chosen)), np.zeros((1, len(guard.parent)), np.int32)
    inside, held = np.empty((d, count), np.int32), np.zeros(d, np.int64)  # cells inside the ranges of later columns
    lo, hi, spent = np.full(d, -1, np.int64), np.full(d, -1, np.int64), np.zeros(d)
    for c in range(count):
        inside[d - 1, c] = c
    held[d - 1] = count
    for i in range(len(chosen)):
        r, best, left, j = whole(chosen[i]), np.inf, work, d - 1
        lo[j] = -1
        while j < d and left >= 0:
            left -= held[j]
            room = best - spent[j]
            if j == 0:
                best = min(best, spent[0] + _least_run(costs, guard, distance, rows, inside[0], held[0], r, under))
                j += 1
            elif not _widen_range(costs, rows.cells[r, j], j, lo, hi, room):
                j += 1
            else:
                spent[j - 1] = spent[j] + range_cost(costs, j, lo[j], hi[j])
                held[j - 1] = _keep_inside(rows.cells, j, lo[j], hi[j], inside[j], held[j], inside[j - 1])
                j -= 1
                lo[j] = -1
        found[i] = max(best - HAIR, 0.0) if left >= 0 else -1.0
    return found


@bare
def _widen_range(costs: Costs, q: int, j: int, lo: Ints, hi: Ints, room: float) -> bool:
    """Go to the next range of column j around the code q that costs less than `room`, the narrowest one first (lo = -1)."""
    scales, first, last = costs.scales, costs.scales.leaf_start[j], whole(costs.scales.size[j])
    if lo[j] < 0:
        lo[j], hi[j] = q, q
        return room > 0.0
    if not scales.numeric[j]:
        node = scales.leaf_node[first + q]
        while scales.node_lo[node] >= lo[j] and scales.node_hi[node] <= hi[j]:
            node = scales.node_parent[node]
            if node < 0:
                return False
        lo[j], hi[j] = scales.node_lo[node], scales.node_hi[node]
        return range_cost(costs, j, lo[j], hi[j]) < room
    hi[j] += 1
    if hi[j] > last or range_cost(costs, j, lo[j], hi[j]) >= room:
        lo[j], hi[j] = lo[j] - 1, q
    return lo[j] >= 0 and range_cost(costs, j, lo[j], hi[j]) < room


@bare
def _keep_inside(cells: Codes, j: int, lo: int, hi: int, before: Codes, held: int, kept: Codes) -> int:
    """Store the cells whose code in column j is in the range, in order; how many these are."""
    count = 0
    for x in range(held):
        if lo <= cells[before[x], j] <= hi:
            kept[count] = before[x]
            count += 1
    return count


@bare
def _least_run(costs: Costs, guard: Guard, distance: Reals, rows: Rows, inside: Codes, held: int, r: int,
               under: Codes) -> float:  # fmt: skip
    """Least cost of a range of the first column around cell r, of which the rows inside may contain an allowed class."""
    best, size, q, y = np.inf, 0, rows.cells[r, 0], 0  # cells x to y - 1 are counted
    under[:] = 0
    for x in range(held):
        lo = rows.cells[inside[x], 0]
        if lo > q:
            break
        while y < held and (rows.cells[inside[y], 0] <= q or not admits(guard, distance, under[0], size)):
            size += count_cell(guard, rows, inside[y], under, whole(1))
            y += 1
        if not admits(guard, distance, under[0], size):
            break
        best = min(best, range_cost(costs, 0, lo, max(q, rows.cells[inside[y - 1], 0])))
        size += count_cell(guard, rows, inside[x], under, whole(-1))
    return best


@bare
def count_cell(guard: Guard, rows: Rows, cell: int, under: Codes, sign: int) -> int:
    """Add the rows of a cell to the counts under every node, or remove them; how many that changes."""
    changed = 0
    for kind in range(rows.first[cell], rows.first[cell + 1]):
        by = whole(sign * rows.rows[kind])
        for v in range(len(guard.kind)):
            x = rows.node[kind, v]
            under[0, x] += by
            while guard.parent[x] != x:
                x = guard.parent[x]
                under[0, x] += by
        changed += by
    return changed

"""Prices of rows that add up to no more than the loss in any class: their sum is a lower bound of the loss of all classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.compiling import bare, kernel, whole
from closeknit.kernels.counting.least_boxes import count_cell
from closeknit.kernels.counting.least_classes import Rows, admits
from closeknit.kernels.exchange.knit_guard import Guard
from closeknit.kernels.geometry.boxes import Codes, Ints, Reals
from closeknit.kernels.geometry.ranges import Costs, range_cost

TRIES = 30  # times that the highest prices of a box are lowered, before all of them are


class Ranges(NamedTuple):
    """What can be written in each column but the first, the cheapest range first."""

    start: Ints  # [d + 1] first range of each column
    lo: Codes
    hi: Codes
    cost: Reals


class Prices(NamedTuple):
    """A price for each row of a cell."""

    rows: Rows  # cells are in the order of their first column
    size: Ints  # [cells] rows of each cell
    price: Reals  # [cells] of one row


class _Room(NamedTuple):
    """Space for the search."""

    inside: Codes  # [d, cells] cells inside the ranges of later columns
    top: Ints  # [k] cells with the highest prices, falling
    under: Codes  # [1, nodes] counts under every node of the guard


@kernel
def lower_prices(costs: Costs, guard: Guard, distance: Reals, ranges: Ranges, prices: Prices, slab: int, work: int) -> int:
    """Lower prices until the k highest of each box add up to at most k times its loss.

    Boxes with one range of the last column are visited, but not those that cannot contain an allowed class. Prices only fall,
    so boxes that were visited stay as they are.

    Args:
        costs: the loss of ranges.
        guard: the guarantees.
        distance: the limit of each view of closeness, in its weights.
        ranges: the ranges of all columns but the first.
        prices: the prices, which are lowered in place.
        slab: number of the range in the last column; with a single column there is one slab, of all boxes.
        work: cells that may be visited.

    Returns:
        What is left of the work; below 0 boxes may be left that were not visited.

    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from kernel_inputs import flat_scales, one_cap
    >>> cells, first, secret = np.array([[0], [1], [4]], np.int32), np.arange(4), np.array([0, 1, 0], np.int32)
    >>> rows = Rows(cells, first, (secret + 1).reshape(3, 1), np.ones(3, np.int64))
    >>> ranges = Ranges(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))
    >>> prices = Prices(rows, np.ones(3, np.int64), np.ones(3))
    >>> lower_prices(costs(flat_scales([5])), one_cap(secret, 2), np.zeros(1), ranges, prices, 0, 100) >= 0
    True
    >>> prices.price.round(3).tolist()  # the box 0..1 loses 1/4, and 1..4 loses 3/4
    [0.25, 0.25, 1.0]
    """
    rows, price = prices.rows, prices.price
    cells, d = rows.cells.shape
    room = _Room(np.empty((d, cells), np.int32), np.zeros(guard.k, np.int64), np.zeros((1, len(guard.parent)), np.int32))
    held, at, spent, highest = np.zeros(d, np.int64), np.zeros(d, np.int64), np.zeros(d), np.zeros(d)
    inside, left, j = room.inside, work, d - 1
    for c in range(cells):
        inside[j, c] = c
        highest[j] = max(highest[j], price[c])
    held[j], at[j] = cells, ranges.start[j] + slab - 1
    while j < d and left >= 0:
        if j == 0:
            left -= _lower_runs(costs, guard, distance, prices, room, held[0], spent[0])
            j += 1
            continue
        at[j] += 1
        x = at[j]
        last = ranges.start[j] + slab + 1 if j == d - 1 else ranges.start[j + 1]
        if x >= last or spent[j] + ranges.cost[x] >= highest[j]:
            j += 1
            continue
        left -= held[j]
        lo, hi, kept, inner, low, high, most = ranges.lo[x], ranges.hi[x], 0, 0, ranges.hi[x], ranges.lo[x], 0.0
        for y in range(held[j]):
            c = inside[j, y]
            code = rows.cells[c, j]
            if lo <= code <= hi:
                inside[j - 1, kept] = c
                kept += 1
                inner += prices.size[c]
                low, high, most = min(low, code), max(high, code), max(most, price[c])
        spent[j - 1] = spent[j] + ranges.cost[x]
        # a box that is wider than its cells need is no stricter than the narrow one
        if inner >= guard.k and most > spent[j - 1] and range_cost(costs, j, low, high) >= ranges.cost[x]:
            j -= 1
            held[j], highest[j], at[j] = kept, most, ranges.start[j] - 1
    return left


@bare
def _lower_runs(costs: Costs, guard: Guard, distance: Reals, prices: Prices, room: _Room, held: int, spent: float) -> int:
    """Visit each range of the first column, of the cells inside all other ranges; how many cells that visits."""
    rows, inside, k = prices.rows, room.inside[0], guard.k
    used, full = _find_top(prices, room, 0, held, k)
    limit, visited = _sum_top(prices, room.top, used, full, k) / k, held
    if limit <= spent:
        return visited
    for x in range(held):
        lo = rows.cells[inside[x], 0]
        if x > 0 and rows.cells[inside[x - 1], 0] == lo:
            continue
        used, full, y = whole(0), whole(0), x
        while y < held:
            hi = rows.cells[inside[y], 0]
            loss = spent + range_cost(costs, 0, lo, hi)
            if loss >= limit:
                break
            while y < held and rows.cells[inside[y], 0] == hi:
                used, full = _add_top(prices, room.top, used, full, inside[y], k)
                y += 1
                visited += 1
            if full >= k and _sum_top(prices, room.top, used, full, k) > k * loss:
                visited += y - x
                if _admits_run(guard, distance, rows, room, x, y):
                    used, full = _lower_box(prices, room, x, y, k, loss)
    return visited


@bare
def _admits_run(guard: Guard, distance: Reals, rows: Rows, room: _Room, x: int, y: int) -> bool:
    """Whether the cells x to y - 1 may contain an allowed class; they have k rows."""
    if len(guard.kind) == 0:
        return True
    size = 0
    room.under[:] = 0
    for z in range(x, y):
        size += count_cell(guard, rows, room.inside[0, z], room.under, whole(1))
    return admits(guard, distance, room.under[0], size)


@bare
def _lower_box(prices: Prices, room: _Room, x: int, y: int, k: int, loss: float) -> tuple[int, int]:
    """Lower the k highest prices of the cells x to y - 1 until they add up to k times the loss, with the least change."""
    price, size, top = prices.price, prices.size, room.top
    for step in range(TRIES + 2):
        used, full = _find_top(prices, room, x, y, k)
        over = _sum_top(prices, top, used, full, k) - k * loss
        if over <= 0.0:
            break
        if step >= TRIES:
            for z in range(x, y):
                price[room.inside[0, z]] = min(price[room.inside[0, z]], loss)
            continue
        across = 0.0
        for z in range(used):
            part = min(size[top[z]], k) - (full - k if z == used - 1 else 0)
            across += part * part / size[top[z]]
        for z in range(used):
            part = min(size[top[z]], k) - (full - k if z == used - 1 else 0)
            price[top[z]] = max(0.0, price[top[z]] - 1.0000001 * over * part / size[top[z]] / across)
    return _find_top(prices, room, x, y, k)


@bare
def _find_top(prices: Prices, room: _Room, x: int, y: int, k: int) -> tuple[int, int]:
    """Store the cells with the k highest prices of x to y - 1; how many cells these are, and how many rows they have."""
    used, full = whole(0), whole(0)
    for z in range(x, y):
        used, full = _add_top(prices, room.top, used, full, room.inside[0, z], k)
    return used, full


@bare
def _add_top(prices: Prices, top: Ints, used: int, full: int, c: int, k: int) -> tuple[int, int]:
    """Insert a cell where it has one of the k highest prices."""
    price, size = prices.price, prices.size
    if full >= k and price[c] <= price[top[used - 1]]:
        return used, full
    rows = min(size[c], k)
    if full >= k and full - min(size[top[used - 1]], k) + rows >= k:
        full -= min(size[top[used - 1]], k)
        used -= 1
    y = used
    while y > 0 and price[top[y - 1]] < price[c]:
        top[y] = top[y - 1]
        y -= 1
    top[y] = c
    used, full = used + 1, full + rows
    while full - min(size[top[used - 1]], k) >= k:
        full -= min(size[top[used - 1]], k)
        used -= 1
    return used, full


@bare
def _sum_top(prices: Prices, top: Ints, used: int, full: int, k: int) -> float:
    """The sum of the k highest prices."""
    total = 0.0
    for y in range(used):
        total += min(prices.size[top[y]], k) * prices.price[top[y]]
    return total - (full - k) * prices.price[top[used - 1]]

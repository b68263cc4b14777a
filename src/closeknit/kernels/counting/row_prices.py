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

SWEEPS = 20  # over all known classes, before the next pass over all boxes
TRIES = 8  # times that the highest prices of a box are lowered, before all of them are lowered alike


class Ranges(NamedTuple):
    """What can be written in each column but the first, the cheapest range first."""

    start: Ints  # [d + 1] first range of each column
    lo: Codes
    hi: Codes
    cost: Reals


class Prices(NamedTuple):
    """A price for each row of a cell, which may be below 0. Where values have caps, each value has cells of its own."""

    rows: Rows
    size: Ints  # [cells] rows of each cell
    value: Ints  # [cells] number of the value
    ease: Reals  # [cells] how readily a price changes
    price: Reals  # [cells] of one row


class Level(NamedTuple):
    """The boxes to visit, and what a class in them may contain if it has one of the wanted values."""

    size: int  # least rows of such a class
    most: Reals  # [values] rows of each value in a class of this size; 0: none
    wanted: Codes  # [values] 1 where it is
    listed: Codes  # cells that such a class may contain, the highest price first
    slab: int  # number of the range in the last column; with a single column there is one slab, of all boxes
    work: int  # cells that may be visited


class Classes(NamedTuple):
    """Classes whose prices were too high once, and multipliers: how far each lowers the prices of its rows."""

    known: Ints  # [1] how many there are
    start: Ints  # [most + 1] first entry of each
    limit: Reals  # [most] what its prices may add up to
    force: Reals  # [most] its multiplier
    ceiling: Reals  # [cells] the multiplier of the highest price that any row may have
    cell: Codes  # [entries]
    part: Reals  # [entries] rows of the cell in the class


class _Room(NamedTuple):
    """Space for the search."""

    lists: Codes  # [depth, cells] cells inside the ranges so far, the highest price first
    held: Ints  # [depth] how many these are
    spent: Reals  # [d] what the ranges of later columns lose
    ends: Ints  # [depth, 5] where a range of the first column begins and ends, least and most each, and the list above
    part: Reals  # [cells] rows of each listed cell in the costliest class
    taken: Reals  # [values] rows of each value in it
    under: Codes  # [1, nodes] counts under every node of the guard


@kernel
def lower_prices(costs: Costs, guard: Guard, distance: Reals, ranges: Ranges, prices: Prices, level: Level,
                 classes: Classes) -> int:  # fmt: skip
    """Lower prices until no class of the level has higher ones than it loses, whatever its box.

    Counts of rows are real numbers. Boxes that cannot contain an allowed class are not visited. Prices only fall, so boxes that
    were visited stay as they are.

    Args:
        costs: the loss of ranges.
        guard: the guarantees.
        distance: the limit of each view of closeness, in its weights.
        ranges: the ranges of all columns but the first.
        prices: the prices, which are lowered in place.
        level: the boxes and the classes.
        classes: what is lowered is added here, where there is room.

    Returns:
        What is left of the work; below 0 boxes may be left that were not visited.

    >>> from closeknit.kernels.geometry.ranges import costs
    >>> from kernel_inputs import flat_scales, one_cap
    >>> cells, first, secret = np.array([[0], [1], [4]], np.int32), np.arange(4), np.array([0, 1, 0], np.int32)
    >>> rows = Rows(cells, first, (secret + 1).reshape(3, 1), np.ones(3, np.int64))
    >>> ranges = Ranges(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))
    >>> prices = Prices(rows, np.ones(3, np.int64), secret.astype(np.int64), np.ones(3), np.ones(3))
    >>> level = Level(2, np.ones(2), np.ones(2, np.int32), np.arange(3, dtype=np.int32), 0, 100)
    >>> classes = room_for_classes(3, 9)
    >>> lower_prices(costs(flat_scales([5])), one_cap(secret, 2), np.zeros(1), ranges, prices, level, classes) >= 0
    True
    >>> prices.price.round(3).tolist()  # the box 0..1 loses 1/4, and 1..4 loses 3/4
    [0.25, 0.25, 1.0]
    >>> settle_prices(prices, classes, 1.0, np.inf)
    >>> prices.price.round(3).tolist()  # all rise, and the class of the box 0..1 is too high again
    [0.25, 0.25, 2.0]
    """
    cells, d = prices.rows.cells.shape
    depth = d + 3 + 2 * whole(np.log2(costs.scales.size[0] + 1.0))  # both ends are halved until one code is left
    room = _Room(np.empty((depth, cells), np.int32), np.zeros(depth, np.int64), np.zeros(d), np.zeros((2 * depth, 5), np.int64),
                 np.zeros(cells), np.zeros(len(level.most)), np.zeros((1, len(guard.parent)), np.int32))  # fmt: skip
    at, highest, held, spent, left, j = np.zeros(d, np.int64), np.zeros(d), room.held, room.spent, level.work, d - 1
    held[j] = len(level.listed)
    room.lists[j, : held[j]] = level.listed
    at[j] = ranges.start[j] + level.slab - 1
    highest[j] = _price_class(prices, level, room, j) / level.size
    while j < d and left >= 0:
        if j == 0:
            left -= _lower_ranges(costs, guard, distance, prices, level, room, classes)
            j += 1
            continue
        at[j] += 1
        x = at[j]
        last = ranges.start[j] + level.slab + 1 if j == d - 1 else ranges.start[j + 1]
        if x >= last or spent[j] + ranges.cost[x] >= highest[j]:
            j += 1
            continue
        left -= held[j]
        low, high = _keep_between(prices, level, room, j, j - 1, j, (whole(ranges.lo[x]), whole(ranges.hi[x])))
        # a box that is wider than its cells need is no stricter than the narrow one
        if held[j - 1] == 0 or range_cost(costs, j, low, high) < ranges.cost[x]:
            continue
        spent[j - 1] = spent[j] + ranges.cost[x]
        highest[j - 1] = _price_class(prices, level, room, j - 1) / level.size
        if highest[j - 1] > spent[j - 1]:
            j -= 1
            at[j] = ranges.start[j] - 1
    return left


@bare
def _keep_between(prices: Prices, level: Level, room: _Room, above: int, below: int, j: int,
                  ends: tuple[int, int]) -> tuple[int, int]:  # fmt: skip
    """List the cells whose code in column j is in a range, the highest price first; return their least and largest code.

    The list is empty where too few rows for a class are inside, or none that is wanted.
    """
    price, before, kept = prices.price, room.lists[above], room.lists[below]
    lo, hi = ends
    count, rows, wanted, low, high = 0, 0, False, hi, lo
    for y in range(room.held[above]):
        c = before[y]
        code = whole(prices.rows.cells[c, j])
        if lo <= code <= hi:
            z = count
            while z > 0 and price[kept[z - 1]] < price[c]:  # rare: prices have fallen since the list above was written
                kept[z] = kept[z - 1]
                z -= 1
            kept[z] = c
            count += 1
            rows += prices.size[c]
            wanted = wanted or level.wanted[prices.value[c]] == 1
            low, high = min(low, code), max(high, code)
    room.held[below] = count if wanted and rows >= level.size else 0
    return low, high


@bare
def _price_class(prices: Prices, level: Level, room: _Room, at: int) -> float:
    """The highest prices of a class of the level's size from a list, added up; -1 where there is none."""
    inside, held, room.taken[:] = room.lists[at], room.held[at], 0.0
    total, left, y = 0.0, float(level.size), 0
    while y < held and left > 0.0:
        c = inside[y]
        v = prices.value[c]
        room.part[y] = min(float(prices.size[c]), level.most[v] - room.taken[v], left)
        room.taken[v] += room.part[y]
        total += room.part[y] * prices.price[c]
        left -= room.part[y]
        y += 1
    room.part[y:held] = 0.0
    return total if left <= 1e-6 else -1.0


@bare
def _lower_ranges(costs: Costs, guard: Guard, distance: Reals, prices: Prices, level: Level, room: _Room,
                  classes: Classes) -> int:  # fmt: skip
    """Visit ranges of the first column; how many cells that visits.

    A node is all ranges that begin in a..b and end in e..f. Each lies between b..e and a..f. Where the costliest class of the
    widest range has prices of at most what the narrowest range loses, the node needs no visit; else it is halved.
    """
    cells, ends, visited, d = prices.rows.cells, room.ends, 0, prices.rows.cells.shape[1]
    first, last = whole(cells[room.lists[0, 0], 0]), whole(0)
    for y in range(room.held[0]):
        code = whole(cells[room.lists[0, y], 0])
        first, last = min(first, code), max(last, code)
    ends[0, 0], ends[0, 1], ends[0, 2], ends[0, 3], ends[0, 4] = first, last, first, last, 0
    todo = 1
    while todo > 0:
        todo -= 1
        a, b, e, f, above = ends[todo]
        below = max(above + 1, d)
        visited += room.held[above]
        low, high = _keep_between(prices, level, room, above, below, whole(0), (a, f))
        if room.held[below] == 0 or low > b or high < e:
            continue
        a, f = max(a, low), min(f, high)
        most = level.size * (room.spent[0] + (range_cost(costs, 0, b, e) if b < e else 0.0))
        if _price_class(prices, level, room, below) <= most:
            continue
        if a == b and e == f:
            if _admits_list(guard, distance, prices, room, below):
                _add_class(classes, room, below, most)
                _lower_box(prices, level, room, below, most)
            continue
        for side in range(2):  # the narrow half is the last one on the stack, and visited first
            ends[todo, 0], ends[todo, 1], ends[todo, 2], ends[todo, 3], ends[todo, 4] = a, b, e, f, below
            if f - e > b - a:
                ends[todo, 2 + side] = (e + f) // 2 + 1 - side
            else:
                ends[todo, 1 - side] = (a + b) // 2 + side
            todo += 1
    return visited


@bare
def _admits_list(guard: Guard, distance: Reals, prices: Prices, room: _Room, at: int) -> bool:
    """Whether the cells of a list may contain an allowed class."""
    if len(guard.kind) == 0:
        return True
    size = 0
    room.under[:] = 0
    for y in range(room.held[at]):
        size += count_cell(guard, prices.rows, room.lists[at, y], room.under, whole(1))
    return admits(guard, distance, room.under[0], size)


@bare
def _add_class(classes: Classes, room: _Room, at: int, most: float) -> None:
    """Add the costliest class of a list to the classes whose prices were too high."""
    i = classes.known[0]
    z = classes.start[i]
    if i == len(classes.limit) or z + room.held[at] > len(classes.cell):
        return
    for y in range(room.held[at]):
        if room.part[y] > 0.0:
            classes.cell[z], classes.part[z] = room.lists[at, y], room.part[y]
            z += 1
    classes.limit[i], classes.force[i], classes.start[i + 1] = most, 0.0, z
    classes.known[0] = i + 1


@bare
def _lower_box(prices: Prices, level: Level, room: _Room, at: int, most: float) -> None:
    """Lower the prices of the costliest class of a list until they add up to `most`, with the least change."""
    price, part, inside, held = prices.price, room.part, room.lists[at], room.held[at]
    for step in range(TRIES + 1):
        total = _price_class(prices, level, room, at)
        if total <= most:
            break
        across = 0.0
        for y in range(held):
            across += prices.ease[inside[y]] * part[y] * part[y] / prices.size[inside[y]]
        for y in range(held):
            c = inside[y]
            if step == TRIES:
                price[c] -= 1.000001 * (total - most) / level.size
            elif part[y] > 0.0:
                change = 1.0000001 * (total - most) * prices.ease[c] * part[y] / prices.size[c] / across
                price[c] -= change
        for y in range(1, held):
            c, z = inside[y], y
            while z > 0 and price[inside[z - 1]] < price[c]:
                inside[z] = inside[z - 1]
                z -= 1
            inside[z] = c


def room_for_classes(cells: int, most: int) -> Classes:
    """No classes, and room for so many with 32 cells each."""
    many, force, ceiling = np.zeros(most + 1, np.int64), np.zeros(most), np.zeros(cells)
    return Classes(
        np.zeros(1, np.int64), many, np.zeros(most), force, ceiling, np.zeros(32 * most, np.int32), np.zeros(32 * most)
    )


@kernel
def settle_prices(prices: Prices, classes: Classes, step: float, highest: float) -> None:
    """Raise all prices, and lower those of the known classes until these can pay them, with the least change in total.

    A class that lowers prices keeps its multiplier for the next call, and gives it back where others have lowered them enough.
    Classes that lower nothing are dropped.

    Args:
        prices: the prices, which are changed in place.
        classes: the known classes.
        step: by how much prices rise.
        highest: no price shall be higher than this.
    """
    price, size, ease, count = prices.price, prices.size, prices.ease, classes.known[0]
    for c in range(len(price)):
        price[c] += ease[c] * (step - classes.ceiling[c])
    for i in range(count):
        _lower_class(prices, classes, i, classes.force[i])
    for _ in range(SWEEPS):
        for i in range(count):
            total, across = -classes.limit[i], 0.0
            for z in range(classes.start[i], classes.start[i + 1]):
                c = classes.cell[z]
                total += classes.part[z] * price[c]
                across += ease[c] * classes.part[z] * classes.part[z] / size[c]
            change = max(total / across, -classes.force[i])
            classes.force[i] += change
            _lower_class(prices, classes, i, change)
        if highest < np.inf:
            for c in range(len(price)):
                change = max((price[c] - highest) / ease[c], -classes.ceiling[c])
                classes.ceiling[c] += change
                price[c] -= ease[c] * change
    kept = 0
    for i in range(count):
        if classes.force[i] > 0.0:
            at, first, entries = classes.start[kept], classes.start[i], classes.start[i + 1] - classes.start[i]
            for z in range(entries):
                classes.cell[at + z], classes.part[at + z] = classes.cell[first + z], classes.part[first + z]
            classes.limit[kept], classes.force[kept], classes.start[kept + 1] = classes.limit[i], classes.force[i], at + entries
            kept += 1
    classes.known[0] = kept


@bare
def _lower_class(prices: Prices, classes: Classes, i: int, change: float) -> None:
    """Lower the prices of a class by a multiplier, or raise them where it is below 0."""
    if change != 0.0:
        for z in range(classes.start[i], classes.start[i + 1]):
            c = classes.cell[z]
            prices.price[c] -= change * prices.ease[c] * classes.part[z] / prices.size[c]

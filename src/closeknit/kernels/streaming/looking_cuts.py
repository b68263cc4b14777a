"""Cuts of waiting rows in two, best first: all places of all columns are tried, and the best are followed by further cuts.

A cut sends the rows between two places in the order of one column to one side. In a small piece that may divide rows of equal
value: otherwise a piece with few values stays large. Its value is the loss that both sides are expected to have after further
cuts: a side of i rows has room for m = i // k classes, and its loss is taken as the loss of its box times m ** -decay. So a cut
that leaves k - 1 rows over is worth less than one that leaves none. Where k is large, the decay is steeper in columns of
numbers: few more cuts of a small piece are in trees.

In a small piece one more cut is tried: a box of several columns (`peeled_boxes`) against all other rows.

The best cuts are followed: the value of a cut is then that of the best cuts of its sides, and for small k that of the cuts
after these. Following two cuts does not pay where classes are large: measured, see docs/knit_stream.md.
"""

from __future__ import annotations

import numpy as np

from closeknit.kernels.compiling import bare, kernel, truth
from closeknit.kernels.geometry.declared_axes import NUMBER, Axes, Ints, Reals, range_cost
from closeknit.kernels.streaming.peeled_boxes import NEAR, NEVER, Flags, last_of_child, peel_box

DECAY, MOST_DECAY = 0.9, 0.12  # of the loss with the number of classes, for one column, and at most: see docs/knit_stream.md
DECAY_LARGE = 0.1  # the same where k is large, for any number of columns
STEEP, BEND = 0.2, 8.0  # the same for columns of numbers where k is large, up to so many classes
DIVIDED = 8  # times k: a cut may divide rows of equal value in a piece with fewer rows
LARGE = 50  # k from which a cut is followed one cut further, not two, and the numbers named so are used
PEELABLE, PEELABLE_LARGE = 16, 32  # times k: a box of several columns is peeled in a piece with fewer rows


@kernel
def propose_cuts(
    axes: Axes, rows: Reals, orders: Ints, person_of: Ints, k: int, share: float, tries: int
) -> tuple[Ints, Flags, Reals]:
    """The possible cuts, at most one for each column and one of several columns: their numbers, best first; for each cut the
    rows of one side; and the lowest and the highest value of each column there, infinite at an end that is not cut.

    Args:
        axes: the geometry of the quasi-identifiers.
        rows: the rows, or a sample of them.
        orders: for each column the rows in ascending order; a cut may divide rows of equal value where this is all rows.
        person_of: the number of each row's person; empty if every row is its own.
        k: the fewest persons of a side.
        share: the sample's share of the rows; 1 if these are all rows.
        tries: how many of the cuts are followed.

    >>> from kernel_inputs import number_axes
    >>> ages = np.array([[30.0], [70.0], [31.0], [72.0], [33.0]])
    >>> orders = np.argsort(ages.T, axis=1, kind="stable")
    >>> order, sides, bounds = propose_cuts(number_axes([100.0]), ages, orders, np.empty(0, np.int64), 2, 1.0, 1)
    >>> sides[order[0]].tolist(), bounds[order[0]].tolist()
    ([True, False, True, False, True], [[-inf], [33.0]])
    """
    d, n = orders.shape
    first, last, values = np.zeros(d, np.int64), np.zeros(d, np.int64), np.empty(d)
    columns = _transpose(rows)
    _scan_columns(axes, columns, orders, person_of, k, share, first, last, values)
    sides, bounds, ahead, count = np.zeros((d + 1, n), np.bool_), np.empty((d + 1, 2, d)), np.full(d + 1, NEVER), 0
    if 2 * k * share <= n < (PEELABLE if k < LARGE else PEELABLE_LARGE) * k * share:
        count += _peel(axes, rows, orders, person_of, k, share, sides[0], bounds[0])
    boxes = count
    for _ in range(d):
        j = _find_least(values)
        if values[j] == NEVER:
            break
        for q in range(d):
            bounds[count, 0, q], bounds[count, 1, q] = -np.inf, np.inf
        for i in range(first[j], last[j]):
            sides[count, orders[j, i]] = True
        if first[j] > 0:
            bounds[count, 0, j] = rows[orders[j, first[j]], j]
        if last[j] < n:
            bounds[count, 1, j] = rows[orders[j, last[j] - 1], j]
        values[j], count = NEVER, count + 1
    followed, order = min(tries, count), np.arange(count)
    for c in range(followed):
        if k < LARGE:
            ahead[c] = _look_further(axes, columns, orders, person_of, k, share, sides[c])
        else:
            ahead[c] = _look_ahead(axes, columns, orders, person_of, k, share, sides[c])
        ahead[c] += NEAR if c < boxes else 0.0
    for i in range(followed):
        order[i] = _find_least(ahead)
        ahead[order[i]] = NEVER
    return order, sides, bounds


@bare
def _find_least(values: Reals) -> int:
    found = 0
    for j in range(1, len(values)):
        if values[j] < values[found]:
            found = j
    return found


@kernel
def _peel(axes: Axes, rows: Reals, orders: Ints, person_of: Ints, k: int, share: float, inside: Flags, bounds: Reals) -> bool:
    """Find a cut of several columns; a side has as many rows as persons are needed, if all have equally many rows."""
    persons = len(rows) if len(person_of) == 0 else 0
    for person in person_of:
        persons = max(persons, person + 1)
    least, worth = k * share * len(rows) / persons, np.empty((2, len(rows) + 1))
    _weigh_sizes(k, len(orders), least, worth)
    return peel_box(axes, rows, orders, least, worth, inside, bounds) < NEVER


@kernel
def keep_orders(orders: Ints, inside: Flags) -> Ints:
    """The orders of the rows inside alone, numbered without the others.

    >>> keep_orders(np.array([[2, 0, 1], [1, 2, 0]]), np.array([True, False, True])).tolist()
    [[1, 0], [1, 0]]
    """
    d, n = orders.shape
    number, size = np.empty(n, np.int64), 0
    for row in range(n):
        number[row] = size
        size += inside[row]
    kept = np.empty(d * size + 1, np.int64)  # without a branch, as in `_take_side`
    for j in range(d):
        at = j * size
        for i in range(n):
            row = orders[j, i]
            kept[at] = number[row]
            at += inside[row]
    return kept[: d * size].reshape(d, size)


@kernel
def _transpose(rows: Reals) -> Reals:
    """One array for each column: the values of a column are read together."""
    n, d = rows.shape
    columns = np.empty((d, n))
    for i in range(n):
        for j in range(d):
            columns[j, i] = rows[i, j]
    return columns


@kernel
def _look_further(axes: Axes, columns: Reals, orders: Ints, person_of: Ints, k: int, share: float, inside: Flags) -> float:
    """The value of both sides of a cut after the best cut of each, where that is followed in the same way."""
    d = len(orders)
    first, last, values, total = np.zeros(d, np.int64), np.zeros(d, np.int64), np.empty(d), 0.0
    for other in range(2):
        size = _count_side(orders, inside, other == 1)
        if size < 2 * k * share:
            total += size * _measure_side(axes, columns, orders, inside, other == 1)
            continue
        side, inner = _take_side(orders, inside, other == 1, size), np.zeros(columns.shape[1], np.bool_)
        whole = _scan_columns(axes, columns, side, person_of, k, share, first, last, values)
        j = _find_least(values)
        if values[j] == NEVER:
            total += whole
            continue
        for i in range(first[j], last[j]):
            inner[side[j, i]] = True
        total += min(_look_ahead(axes, columns, side, person_of, k, share, inner), whole)
    return total


@kernel
def _look_ahead(axes: Axes, columns: Reals, orders: Ints, person_of: Ints, k: int, share: float, inside: Flags) -> float:
    """The value of both sides of a cut after the best cut of each."""
    d = len(orders)
    first, last, values, total = np.zeros(d, np.int64), np.zeros(d, np.int64), np.empty(d), 0.0
    for other in range(2):
        size = _count_side(orders, inside, other == 1)
        if size < 2 * k * share:
            total += size * _measure_side(axes, columns, orders, inside, other == 1)
            continue
        side = _take_side(orders, inside, other == 1, size)
        whole = _scan_columns(axes, columns, side, person_of, k, share, first, last, values)
        total += min(values[_find_least(values)], whole)
    return total


@bare
def _count_side(orders: Ints, inside: Flags, other: bool) -> int:
    """The number of rows inside, or of all others."""
    size = 0
    for i in range(orders.shape[1]):
        size += inside[orders[0, i]] != other
    return size


@bare
def _measure_side(axes: Axes, columns: Reals, orders: Ints, inside: Flags, other: bool) -> float:
    """The loss of the box of the rows inside, or of all others."""
    loss = 0.0
    for q in range(len(orders)):
        lowest, highest = 0, orders.shape[1] - 1
        while inside[orders[q, lowest]] == other:
            lowest += 1
        while inside[orders[q, highest]] == other:
            highest -= 1
        loss += axes.weight[q] * range_cost(axes, q, columns[q, orders[q, lowest]], columns[q, orders[q, highest]])
    return loss


@kernel
def _take_side(orders: Ints, inside: Flags, other: bool, size: int) -> Ints:
    """The orders of the rows inside alone, or of all others. Every row is written, and the next over it if it is not taken:
    a branch would be predicted wrongly for every second row.
    """
    d, n = orders.shape
    side = np.empty(d * size + 1, np.int64)
    for q in range(d):
        at = q * size
        for i in range(n):
            row = orders[q, i]
            side[at] = row
            at += inside[row] != other
    return side[: d * size].reshape(d, size)


@kernel
def _scan_columns(
    axes: Axes, columns: Reals, orders: Ints, person_of: Ints, k: int, share: float, first: Ints, last: Ints, values: Reals
) -> float:
    """Find the best cut of each column and its value, NEVER if there is none; return the value of no cut."""
    d, n = orders.shape
    ends, before, after = np.empty((2, d)), np.empty((2, n + 1)), np.empty((2, n + 1))
    left, right, seen = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.zeros(len(person_of), np.bool_)
    worth, whole, least = np.empty((2, n + 1)), 0.0, k * share
    for j in range(d):
        values[j], ends[0, j], ends[1, j] = NEVER, columns[j, orders[j, 0]], columns[j, orders[j, n - 1]]
        whole += axes.weight[j] * range_cost(axes, j, ends[0, j], ends[1, j])
    if n < 2 * least:
        return whole * n
    _weigh_sizes(k, len(orders), least, worth)
    for i in range(n + 1):
        left[i] = right[i] = i
    fewest, place = np.int64(np.ceil(least)), np.empty(columns.shape[1], np.int64)
    divides = share == 1.0 and n < DIVIDED * k
    for j in range(d):
        order = orders[j]
        if range_cost(axes, j, ends[0, j], ends[1, j]) <= 0.0:
            continue
        for i in range(n):
            place[order[i]] = i
        measure_sides(axes, columns, orders, place, truth(False), fewest, before)
        measure_sides(axes, columns, orders, place, truth(True), fewest, after)
        if len(person_of) > 0:
            _count_persons(order, person_of, truth(False), seen, left)
            _count_persons(order, person_of, truth(True), seen, right)
        for i in range(fewest, n - fewest + 1):
            if left[i] >= least and right[n - i] >= least and (divides or columns[j, order[i - 1]] < columns[j, order[i]]):
                value = i * (before[0, i] * worth[0, i] + before[1, i] * worth[1, i])
                value += (n - i) * (after[0, n - i] * worth[0, n - i] + after[1, n - i] * worth[1, n - i])
                if value < values[j] - NEAR:
                    values[j], first[j], last[j] = value, 0, i
        if axes.kind[j] != NUMBER:
            start, end = _find_largest_run(axes, columns, order, j)
            if start > 0 and end < n and end - start >= least and n - end + start >= least:
                value = _measure_run(axes, columns, order, start, end, ends, worth)
                if value < values[j] - NEAR:
                    values[j], first[j], last[j] = value, start, end
    return whole * n


@bare
def _weigh_sizes(k: int, d: int, least: float, worth: Reals) -> None:
    """The shares of its loss that a side of each size is expected to keep: in columns of numbers, and in others."""
    decay = min(DECAY / d, MOST_DECAY) if k < LARGE else DECAY_LARGE
    steeper = 0.0 if k < LARGE else STEEP - DECAY_LARGE
    classes, kept, kept_of_numbers = 1.0, 1.0, 1.0
    for i in range(worth.shape[1]):
        if i >= (classes + 1.0) * least:
            classes = np.floor(i / least)
            kept = classes**-decay
            kept_of_numbers = kept * min(classes, BEND) ** -steeper
        worth[0, i], worth[1, i] = kept_of_numbers, kept


@bare
def measure_sides(axes: Axes, columns: Reals, orders: Ints, place: Ints, backwards: bool, least: int, losses: Reals) -> None:
    """The loss of the box of the first i rows of an order, from either end, for every i that leaves `least` rows on both sides.

    Column by column. From its lowest value on, a row bounds the first i rows if none of those before it in the column's order
    is among them. So few rows of every order are looked at: about n / least, if columns are independent.

    Args:
        axes: the geometry of the quasi-identifiers.
        columns: the values.
        orders: for each column the rows in ascending order.
        place: the place of each row in the order that is cut.
        backwards: whether its last rows are measured.
        least: the fewest rows of a side.
        losses: by kind of column and number of rows; changed.
    """
    n, d = orders.shape[1], len(orders)
    for i in range(least, n - least + 1):
        losses[0, i] = 0.0
        losses[1, i] = 0.0
    for q in range(d):
        column, order, kind = columns[q], orders[q], 0 if axes.kind[q] == NUMBER else 1
        if column[order[0]] == column[order[n - 1]]:
            losses[kind, least] += axes.weight[q] * range_cost(axes, q, column[order[0]], column[order[0]])
            continue
        at_lo, at_hi, lo_place, hi_place = -1, n, n - least, n - least
        at_lo, lo_place = _find_earlier(order, place, at_lo, 1, lo_place, backwards)
        at_hi, hi_place = _find_earlier(order, place, at_hi, -1, hi_place, backwards)
        lo, hi = column[order[at_lo]], column[order[at_hi]]
        cost = axes.weight[q] * range_cost(axes, q, lo, hi)
        while lo_place >= least or hi_place >= least:
            start = max(lo_place, hi_place)
            if lo_place > hi_place:
                at_lo, lo_place = _find_earlier(order, place, at_lo, 1, lo_place, backwards)
            else:
                at_hi, hi_place = _find_earlier(order, place, at_hi, -1, hi_place, backwards)
            if lo != column[order[at_lo]] or hi != column[order[at_hi]]:
                lo, hi = column[order[at_lo]], column[order[at_hi]]
                less = axes.weight[q] * range_cost(axes, q, lo, hi)
                losses[kind, start + 1] += cost - less
                cost = less
        losses[kind, least] += cost
    for i in range(least, n - least):
        losses[0, i + 1] += losses[0, i]
        losses[1, i + 1] += losses[1, i]


@bare
def _find_earlier(order: Ints, place: Ints, at: int, step: int, before: int, backwards: bool) -> tuple[int, int]:
    """The next row of an order whose place is lower, and its place."""
    n = len(order)
    while True:
        at += step
        found = n - 1 - place[order[at]] if backwards else place[order[at]]
        if found < before:
            return at, found


@bare
def _count_persons(order: Ints, person_of: Ints, backwards: bool, seen: Flags, heads: Ints) -> None:
    """The persons among the first i rows, for every i, from either end."""
    n = len(order)
    seen[:] = False
    for i in range(n):
        person = person_of[order[n - 1 - i] if backwards else order[i]]
        heads[i + 1] = heads[i] + (not seen[person])
        seen[person] = True


@bare
def _find_largest_run(axes: Axes, columns: Reals, order: Ints, j: int) -> tuple[int, int]:
    """The largest group of rows under one child of the lowest node over all of them, or with one value of no tree."""
    n, start, most, found = len(order), 0, 0, 0
    while start < n:
        end, upto = start + 1, last_of_child(axes, j, columns[j, order[start]], columns[j, order[0]], columns[j, order[n - 1]])
        while end < n and columns[j, order[end]] <= upto:
            end += 1
        if end - start > most:
            most, found = end - start, start
        start = end
    return found, found + most


@bare
def _measure_run(axes: Axes, columns: Reals, order: Ints, start: int, end: int, ends: Reals, worth: Reals) -> float:
    """The value of a cut between some rows in the middle of an order and all others."""
    n, size, value = len(order), end - start, 0.0
    for q in range(len(columns)):
        kept = worth[0 if axes.kind[q] == NUMBER else 1]
        value += size * kept[size] * _measure_some(axes, columns, order, start, end, q, ends)
        value += (n - size) * kept[n - size] * _measure_some(axes, columns, order, end, n + start, q, ends)
    return value


@bare
def _measure_some(axes: Axes, columns: Reals, order: Ints, start: int, end: int, q: int, ends: Reals) -> float:
    """The loss of one column of some rows in a row; after the last comes the first."""
    lo, hi, n = np.inf, -np.inf, len(order)
    for i in range(start, end):
        x = columns[q, order[i if i < n else i - n]]
        lo, hi = min(lo, x), max(hi, x)
        if lo == ends[0, q] and hi == ends[1, q]:
            break
    return axes.weight[q] * range_cost(axes, q, lo, hi)

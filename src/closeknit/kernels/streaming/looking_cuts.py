"""Cuts of waiting rows in two, best first: all places of all columns are tried, and the best are followed one cut further.

A cut sends the rows between two places in the order of one column to one side. In a small piece that may divide rows of equal
value: otherwise a piece with few values stays large. Its value is the loss that both sides are expected to have after further
cuts: a side of i rows has room for m = i // k classes, and its loss is taken as the loss of its box times m ** -DECAY. So a cut
that leaves k - 1 rows over is worth less than one that leaves none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.compiling import bare, kernel, truth
from closeknit.kernels.geometry.declared_axes import EQUAL, NUMBER, Axes, Ints, Reals, range_cost

Flags = NDArray[np.bool_]
DECAY = 0.1  # of the loss with the number of classes: measured, see docs/knit_stream.md
DIVIDED = 8  # times k: a cut may divide rows of equal value in a piece with fewer rows
NEVER = 1e300  # the value of a cut that is not possible
NEAR = 1e-9  # smaller differences of values are rounding errors


@kernel
def propose_cuts(axes: Axes, rows: Reals, orders: Ints, person_of: Ints, k: int, share: float, tries: int) -> Ints:
    """Column, and start and end of one side in the order of that column, of the possible cuts, best first; at most one for
    each column.

    Args:
        axes: the geometry of the quasi columns.
        rows: the rows, or a sample of them.
        orders: for each column the rows in ascending order; a cut may divide rows of equal value where this is all rows.
        person_of: the number of each row's person; empty if every row is its own.
        k: the fewest persons of a side.
        share: the sample's share of the rows; 1 if these are all rows.
        tries: how many of the cuts are followed one cut further.

    >>> from kernel_inputs import number_axes
    >>> ages = np.array([[30.0], [70.0], [31.0], [72.0], [33.0]])
    >>> orders = np.argsort(ages.T, axis=1, kind="stable")
    >>> propose_cuts(number_axes([100.0]), ages, orders, np.empty(0, np.int64), 2, 1.0, 1).tolist()
    [[0, 0, 3]]
    """
    d = rows.shape[1]
    first, last, values = np.zeros(d, np.int64), np.zeros(d, np.int64), np.empty(d)
    _scan_columns(axes, rows, orders, person_of, k, share, first, last, values)
    ahead, count = np.full(d, NEVER), 0
    for j in range(d):
        count += values[j] < NEVER
    cuts = np.empty((count, 3), np.int64)
    for _ in range(min(tries, count)):
        j = _find_least(values)
        ahead[j] = _look_ahead(axes, rows, orders, person_of, k, share, j, first[j], last[j])
        values[j] = NEVER
    for i in range(count):
        followed = i < tries
        j = _find_least(ahead) if followed else _find_least(values)
        cuts[i, 0], cuts[i, 1], cuts[i, 2] = j, first[j], last[j]
        if followed:
            ahead[j] = NEVER
        else:
            values[j] = NEVER
    return cuts


@bare
def _find_least(values: Reals) -> int:
    found = 0
    for j in range(1, len(values)):
        if values[j] < values[found]:
            found = j
    return found


@kernel
def _look_ahead(
    axes: Axes, rows: Reals, orders: Ints, person_of: Ints, k: int, share: float, j: int, first: int, last: int
) -> float:
    """The value of both sides of a cut after the best cut of each."""
    d, n = orders.shape
    size, inside = last - first, np.zeros(n, np.bool_)
    for i in range(first, last):
        inside[orders[j, i]] = True
    a, b, values = np.zeros(d, np.int64), np.zeros(d, np.int64), np.empty(d)
    total = 0.0
    for side in range(2):
        inner = np.empty((d, size if side == 0 else n - size), np.int64)
        for q in range(d):
            at = 0
            for i in range(n):
                row = orders[q, i]
                if inside[row] == (side == 0):
                    inner[q, at] = row
                    at += 1
        whole = _scan_columns(axes, rows, inner, person_of, k, share, a, b, values)
        total += min(values[_find_least(values)], whole)
    return total


@kernel
def _scan_columns(
    axes: Axes, rows: Reals, orders: Ints, person_of: Ints, k: int, share: float, first: Ints, last: Ints, values: Reals
) -> float:
    """Find the best cut of each column and its value, NEVER if there is none; return the value of no cut."""
    d, n = orders.shape
    ends, box, growing = np.empty((2, d)), np.empty((3, d)), np.empty(d, np.int64)
    before, after = np.empty(n + 1), np.empty(n + 1)
    left, right, seen = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.zeros(len(person_of), np.bool_)
    worth, whole, least = np.empty(n + 1), 0.0, k * share
    for j in range(d):
        values[j], ends[0, j], ends[1, j] = NEVER, rows[orders[j, 0], j], rows[orders[j, n - 1], j]
        whole += axes.weight[j] * range_cost(axes, j, ends[0, j], ends[1, j])
    if n < 2 * least:
        return whole * n
    _weigh_sizes(least, worth)
    divides = share == 1.0 and n < DIVIDED * k
    for j in range(d):
        order = orders[j]
        if range_cost(axes, j, ends[0, j], ends[1, j]) <= 0.0:
            continue
        _measure_sides(axes, rows, order, truth(False), ends, box, growing, before)
        _measure_sides(axes, rows, order, truth(True), ends, box, growing, after)
        _count_heads(order, person_of, truth(False), seen, left)
        _count_heads(order, person_of, truth(True), seen, right)
        for i in range(1, n):
            if left[i] >= least and right[n - i] >= least and (divides or rows[order[i - 1], j] < rows[order[i], j]):
                value = i * before[i] * worth[i] + (n - i) * after[n - i] * worth[n - i]
                if value < values[j] - NEAR:
                    values[j], first[j], last[j] = value, 0, i
        if axes.kind[j] != NUMBER:
            start, end = _find_largest_run(axes, rows, order, j)
            if start > 0 and end < n and end - start >= least and n - end + start >= least:
                value = _measure_run(axes, rows, order, start, end, worth)
                if value < values[j] - NEAR:
                    values[j], first[j], last[j] = value, start, end
    return whole * n


@bare
def _weigh_sizes(least: float, worth: Reals) -> None:
    """The share of its loss that a side of each size is expected to keep."""
    classes, kept = 1.0, 1.0
    for i in range(len(worth)):
        if i >= (classes + 1.0) * least:
            classes = np.floor(i / least)
            kept = classes**-DECAY
        worth[i] = kept


@bare
def _measure_sides(
    axes: Axes, rows: Reals, order: Ints, backwards: bool, ends: Reals, box: Reals, growing: Ints, losses: Reals
) -> None:
    """The loss of the box of the first i rows, for every i, from either end.

    A column that has reached its `ends` is left out of the loop.
    """
    n, d = len(order), rows.shape[1]
    row = order[n - 1] if backwards else order[0]
    lo, hi, cost = box[0], box[1], box[2]
    total, columns = 0.0, 0
    for q in range(d):
        lo[q] = hi[q] = rows[row, q]
        cost[q] = axes.weight[q] * range_cost(axes, q, lo[q], hi[q])
        total += cost[q]
        if ends[0, q] < ends[1, q]:
            growing[columns] = q
            columns += 1
    losses[0], losses[1] = 0.0, total
    for i in range(1, n):
        row = order[n - 1 - i] if backwards else order[i]
        at = 0
        while at < columns:
            q = growing[at]
            at += 1
            x = rows[row, q]
            if x < lo[q] or x > hi[q]:
                lo[q], hi[q] = min(lo[q], x), max(hi[q], x)
                more = axes.weight[q] * range_cost(axes, q, lo[q], hi[q])
                total += more - cost[q]
                cost[q] = more
                if lo[q] == ends[0, q] and hi[q] == ends[1, q]:
                    columns, at = columns - 1, at - 1
                    growing[at] = growing[columns]
        losses[i + 1] = total


@bare
def _count_heads(order: Ints, person_of: Ints, backwards: bool, seen: Flags, heads: Ints) -> None:
    """The persons among the first i rows, for every i, from either end."""
    n = len(order)
    heads[0] = 0
    if len(person_of) == 0:
        for i in range(n):
            heads[i + 1] = i + 1
        return
    seen[:] = False
    for i in range(n):
        person = person_of[order[n - 1 - i] if backwards else order[i]]
        heads[i + 1] = heads[i] + (not seen[person])
        seen[person] = True


@bare
def _find_largest_run(axes: Axes, rows: Reals, order: Ints, j: int) -> tuple[int, int]:
    """The largest group of rows under one child of the lowest node over all of them, or with one value of no tree."""
    n, start, most, found = len(order), 0, 0, 0
    highest = rows[order[n - 1], j]
    while start < n:
        end, upto = start + 1, rows[order[start], j]
        if axes.kind[j] != EQUAL and highest < axes.missing[j]:
            node = axes.leaf_node[axes.leaf_start[j] + np.int64(upto)]
            while axes.node_parent[node] >= 0 and not _is_over(axes, j, axes.node_parent[node], rows[order[0], j], highest):
                node = axes.node_parent[node]
            upto = axes.node_hi[node]
        while end < n and rows[order[end], j] <= upto:
            end += 1
        if end - start > most:
            most, found = end - start, start
        start = end
    return found, found + most


@bare
def _is_over(axes: Axes, j: int, node: int, lo: float, hi: float) -> bool:
    """Whether a node lies above all leaves between two."""
    above = axes.leaf_node[axes.leaf_start[j] + np.int64(lo)]
    while above != node and axes.node_parent[above] >= 0:
        above = axes.node_parent[above]
    return above == node and axes.node_hi[node] >= hi


@bare
def _measure_run(axes: Axes, rows: Reals, order: Ints, start: int, end: int, worth: Reals) -> float:
    """The value of a cut between some rows in the middle of an order and all others."""
    n, d = len(order), rows.shape[1]
    value = 0.0
    for q in range(d):
        lo, hi, low, high = np.inf, -np.inf, np.inf, -np.inf
        for i in range(n):
            x = rows[order[i], q]
            if start <= i < end:
                lo, hi = min(lo, x), max(hi, x)
            else:
                low, high = min(low, x), max(high, x)
        size = end - start
        value += axes.weight[q] * size * range_cost(axes, q, lo, hi) * worth[size]
        value += axes.weight[q] * (n - size) * range_cost(axes, q, low, high) * worth[n - size]
    return value

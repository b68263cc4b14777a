"""How small, and how near to a row, an allowed class can be at best: the loops behind lower bounds of the loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from closeknit.kernels.compiling import bare, kernel
from closeknit.kernels.exchange.knit_guard import CAPS, CLOSENESS, VALUES, Guard
from closeknit.kernels.geometry.boxes import Codes, Ints, Reals
from closeknit.kernels.geometry.ranges import Costs, range_cost

FAR = 1 << 60
HAIR = 1e-9  # a float that misses a limit by less may be a rounding error


@kernel
def least_size(guard: Guard, v: int, there: Ints, wanted: int, most: int) -> int:
    """Least rows of a class that view `v` allows, of the rows that are there at each of its nodes, one of them at `wanted`.

    `most + 1` where it is more than that. Counts are dealt from the leaves up; in closeness each node adds what it costs.

    >>> from kernel_inputs import one_cap
    >>> least_size(one_cap(np.array([0, 1], np.int32), 1), 0, np.array([0, 3, 3]), 1, 6)
    2
    """
    a, b, n = guard.start[v], guard.start[v + 1], guard.rows[guard.start[v]]
    for size in range(guard.k, most + 1):
        cost = np.full((b - a, size + 1), FAR)
        for x in range(a, b):
            for u in range(x == wanted, min(size, there[x - a]) + 1):
                cost[x - a, u] = 0
        for x in range(b - 1, a - 1, -1):
            for u in range(size + 1):
                if guard.kind[v] == CLOSENESS:
                    cost[x - a, u] += guard.weight[x] * abs(n * u - size * guard.rows[x])
                elif guard.kind[v] == CAPS and (
                    u * guard.cap_den[x] > size * guard.cap_num[x] or u * guard.low_den[x] < size * guard.low_num[x]
                ):
                    cost[x - a, u] = FAR
            p = guard.parent[x]
            if p == x:
                continue
            merged = np.full(size + 1, FAR)
            for u in range(size + 1):
                for w in range(size + 1 - u):
                    merged[u + w] = min(merged[u + w], cost[p - a, u] + cost[x - a, w])
            for u in range(size + 1):
                cost[p - a, u] = merged[u]
        if cost[0, size] <= (guard.most[v, size] if guard.kind[v] == CLOSENESS else 0):
            return size
    return most + 1


@bare
def admits(guard: Guard, distance: Reals, under: Codes, held: int) -> bool:
    """Whether rows with these counts under every node may contain an allowed class; no is certain, yes is not.

    A class of s >= k of the rows has at most `under / s`, so at most `under / k`, of its rows under a node, and at least
    what the other nodes cannot hold. Each view is judged by itself.
    """
    if held < guard.k:
        return False
    k = float(guard.k)
    for v in range(len(guard.kind)):
        a, b, kind = guard.start[v], guard.start[v + 1], guard.kind[v]
        if kind == CLOSENESS:
            moved = 0.0
            for x in range(a, b):
                share = guard.rows[x] / guard.rows[a]
                least, most = 1.0 - (held - under[x]) / k, under[x] / k
                moved += guard.weight[x] * max(0.0, share - most, least - share)
            if moved > distance[v] + HAIR:
                return False
        elif kind == CAPS:
            room = 0.0
            for x in range(a + 1, b):
                most = min(guard.cap_num[x] / guard.cap_den[x], under[x] / k)
                if most < guard.low_num[x] / guard.low_den[x] - HAIR:
                    return False
                room += most
            if room < 1.0 - HAIR:
                return False
        elif kind == VALUES:
            values = 0
            for x in range(a, b):
                values += guard.leaf[x] == 1 and under[x] > 0
            if values < guard.values[v]:
                return False
    return True


class Rows(NamedTuple):
    """The rows of a table: different cells in order, and the kinds of rows in each."""

    cells: Codes  # [cells, d] different quasi-identifiers
    first: Ints  # [cells + 1] the first kind of row of each cell
    node: Codes  # [kinds, views] leaf of each kind of row
    rows: Ints  # [kinds] rows of this kind


@kernel
def nearest_classes(costs: Costs, guard: Guard, distance: Reals, rows: Rows, chosen: Ints, steps: int) -> Reals:
    """For each chosen cell a bound from below of the loss of any allowed class with a row in this cell.

    A class with rows r and s is written with a box around both, and so loses at least what the box of r and s loses. Rows are
    taken by this loss, rounded down to a step, until they may contain an allowed class.

    Args:
        costs: the loss of ranges.
        guard: the guarantees.
        distance: the limit of each view of closeness, in its weights.
        rows: the rows.
        chosen: the cells to look at.
        steps: steps between loss 0 and 1.
    """
    cells, nodes, found = rows.cells, len(guard.parent), np.zeros(len(chosen))
    held, under = np.zeros(steps + 1, np.int64), np.zeros((steps + 1, nodes), np.int32)
    for i in range(len(chosen)):
        for step in range(steps + 1):
            held[step] = 0
            for x in range(nodes):
                under[step, x] = 0
        r = chosen[i]
        for s in range(len(cells)):
            loss = 0.0
            for j in range(cells.shape[1]):
                loss += range_cost(costs, j, min(cells[r, j], cells[s, j]), max(cells[r, j], cells[s, j]))
            step = max(0, min(steps, int(np.floor((loss - HAIR) * steps))))
            for kind in range(rows.first[s], rows.first[s + 1]):
                held[step] += rows.rows[kind]
                for v in range(len(guard.kind)):
                    under[step, rows.node[kind, v]] += rows.rows[kind]
        for step in range(1, steps + 1):
            held[step] += held[step - 1]
        for x in range(nodes - 1, -1, -1):
            p = guard.parent[x]
            for step in range(steps + 1):
                before = under[step - 1, x] if step > 0 else 0
                under[step, x] += before
                if p != x:
                    under[step, p] += under[step, x] - before
        low, high = 0, steps  # the whole table is allowed, or the request is refused anyway
        while low < high:
            middle = (low + high) // 2
            if admits(guard, distance, under[middle], held[middle]):
                high = middle
            else:
                low = middle + 1
        found[i] = low / steps
    return found

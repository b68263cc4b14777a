"""How little any release can lose: a lower bound for tables that are too large to try every partition.

Two classes that are written with the same box may be merged: the box stays, and guarantees that merging cannot break are kept.
So a partition gives each box at most one class, and is a choice of a box for every row. With shares of rows in the place of
whole rows this is a linear program, and no partition is below its least value:

    least   sum over boxes B and rows r inside B of  y[B, r] * loss(B)
    where   the shares y[., r] of each row add up to 1,
            what each box holds keeps its guarantees: closeness and caps are linear in counts,
            m[B, r] * y[B, r] <= sum of y[B, .]: a class that has this row has so many rows at least.

m[B, r] is the least size of an allowed class of whole rows inside B that has the value of r, judged by one guarantee at a
time; a row that no allowed class of B can have gets no share of it. Rows with the same cells and secrets count as one, many
times. Distinct and entropy diversity are left out of the program, which only lowers it. Guarantees are taken as Knit's guard
takes them, so a secret on a line of more than 512 values is refused here: its guard is stricter than the guarantee.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from closeknit.core.geometry import scales
from closeknit.core.model import Model
from closeknit.core.schema import Schema
from closeknit.core.table import Partition, Table
from closeknit.kernels.exchange.knit_guard import CAPS, CLOSENESS, Guard
from closeknit.kernels.geometry.boxes import Scales, box_losses
from closeknit.kernels.geometry.boxes import boxes as box_ends
from knit_best import guarded

LOOKED = 30  # rows of a class up to which its least size is exact
NEVER = 1 << 40
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Kinds:
    """Rows that are alike in cells and secrets, with one of them, and how many each stands for."""

    quasi: NDArray[np.int32]  # [kinds, d]
    node: NDArray[np.int32]  # [kinds, views] leaf of the guard
    rows: Ints

    @classmethod
    def of(cls, table: Table, guard: Guard) -> tuple[Kinds, Ints]:
        """The kinds of a table, and the kind of each row."""
        both = np.concatenate([table.quasi, guard.node], axis=1)
        kinds, kind_of, rows = np.unique(both, axis=0, return_inverse=True, return_counts=True)
        quasi, node = np.split(kinds, [table.quasi.shape[1]], axis=1)
        return cls(np.ascontiguousarray(quasi), np.ascontiguousarray(node), rows.astype(np.int64)), kind_of.ravel()


def boxes(kinds: Kinds, geometry: Scales, least: int) -> Iterator[Flags]:
    """The members of every box that has `least` rows at least and is the smallest one around its members."""
    ranges = [_ranges(kinds.quasi[:, j], geometry, j) for j in range(kinds.quasi.shape[1])]

    def narrowed(inside: Flags, chosen: list[tuple[int, int]]) -> Iterator[Flags]:
        if len(chosen) == len(ranges):
            yield inside
            return
        j = len(chosen)
        for lo, hi in ranges[j]:
            some = inside & (kinds.quasi[:, j] >= lo) & (kinds.quasi[:, j] <= hi)
            if kinds.rows[some].sum() < least:
                continue
            low, high = kinds.quasi[some].min(axis=0), kinds.quasi[some].max(axis=0)
            both = [*chosen, (lo, hi)]  # a column that is not narrow now will not become so when rows are left out
            if all(span(geometry, i, int(low[i]), int(high[i])) == one for i, one in enumerate(both)):
                yield from narrowed(some, both)

    return narrowed(np.ones(len(kinds.rows), dtype=bool), [])


def span(geometry: Scales, j: int, lo: int, hi: int) -> tuple[int, int]:
    """What is written for the codes lo..hi: themselves, or all leaves under the node above them."""
    if geometry.numeric[j]:
        return lo, hi
    node = geometry.leaf_node[geometry.leaf_start[j] + lo]
    while geometry.node_hi[node] < hi:
        node = geometry.node_parent[node]
    return int(geometry.node_lo[node]), int(geometry.node_hi[node])


def _ranges(codes: NDArray[np.int32], geometry: Scales, j: int) -> list[tuple[int, int]]:
    there = np.unique(codes).tolist()
    return sorted({span(geometry, j, a, b) for a in there for b in there if a <= b})


@njit(cache=True)
def least_size(guard: Guard, v: int, there: Ints, wanted: int, most: int) -> int:
    """Least rows of a class that view `v` allows, of the rows that are there at each of its nodes, one of them at `wanted`.

    `most + 1` where it is more than that. Counts are dealt from the leaves up; in closeness each node adds what it costs.
    """
    a, b, n = guard.start[v], guard.start[v + 1], guard.rows[guard.start[v]]
    for size in range(guard.k, most + 1):
        found = np.full((b - a, size + 1), np.iinfo(np.int64).max // 4)
        for x in range(a, b):
            for u in range(x == wanted, min(size, there[x - a]) + 1):
                found[x - a, u] = 0
        for x in range(b - 1, a - 1, -1):
            for u in range(size + 1):
                if guard.kind[v] == CLOSENESS:
                    found[x - a, u] += guard.weight[x] * abs(n * u - size * guard.rows[x])
                elif guard.kind[v] == CAPS and (
                    u * guard.cap_den[x] > size * guard.cap_num[x] or u * guard.low_den[x] < size * guard.low_num[x]
                ):
                    found[x - a, u] = np.iinfo(np.int64).max // 4
            p = guard.parent[x]
            if p == x:
                continue
            merged = np.full(size + 1, np.iinfo(np.int64).max // 4)
            for u in range(size + 1):
                for w in range(size + 1 - u):
                    merged[u + w] = min(merged[u + w], found[p - a, u] + found[x - a, w])
            found[p - a] = merged
        if found[0, size] <= (guard.most[v, size] if guard.kind[v] == CLOSENESS else 0):
            return size
    return most + 1


class Program:
    """A linear program that is written down column by column and row by row; all variables are at least 0."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.cells: dict[bool, tuple[list[int], list[int], list[float]]] = {True: ([], [], []), False: ([], [], [])}
        self.limits: dict[bool, list[float]] = {True: [], False: []}  # of sums that are equal to it, or at most so large

    def variables(self, count: int, cost: float = 0.0) -> range:
        """New ones, by their numbers."""
        first = len(self.cost)
        self.cost.extend([cost] * count)
        return range(first, first + count)

    def row(self, equal: bool, columns: Iterable[int], values: Iterable[float], limit: float = 0.0) -> None:
        """One more condition."""
        rows, places, factors = self.cells[equal]
        before = len(places)
        places.extend(columns)
        factors.extend(values)
        rows.extend([len(self.limits[equal])] * (len(places) - before))
        self.limits[equal].append(limit)

    def solved(self) -> tuple[float, Reals]:
        """The least cost, and variables that have it."""
        sides = {}
        for equal, (rows, places, factors) in self.cells.items():
            shape = (len(self.limits[equal]), len(self.cost))
            sides[equal] = csr_array((factors, (rows, places)), shape=shape)
        found = linprog(self.cost, sides[False], self.limits[False], sides[True], self.limits[True], method="highs-ipm")
        if found.status != 0:
            raise ArithmeticError(f"the linear program was not solved: {found.message}")
        return float(found.fun), found.x


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The solved program: what it loses, and the rows of each kind that each box has a share of."""

    loss: float  # mean over all rows; exact up to the solver's 1e-7
    boxes: int
    shares: list[dict[int, float]]  # of each kind, by box
    kind_of: Ints  # of each row

    def rounded(self) -> Partition:
        """Whole rows in the place of shares, the largest parts of a row first. It may break guarantees here and there."""
        class_of = np.zeros(len(self.kind_of), dtype=np.int64)
        for kind, shares in enumerate(self.shares):
            rows = np.flatnonzero(self.kind_of == kind)
            names, share = np.array(list(shares)), np.array(list(shares.values()))
            counts = np.floor(share + 1e-6).astype(np.int64)
            counts[np.argsort(counts - share, kind="stable")[: len(rows) - counts.sum()]] += 1
            class_of[rows] = np.repeat(names, counts)[: len(rows)]
        return Partition.of(class_of)


def lower_bound(table: Table, models: Sequence[Model]) -> float:
    """What no partition under these guarantees is below: mean loss of a row.

    >>> import closeknit as ck
    >>> from knit_best import loss_of, optimum
    >>> table, models = ck.datasets.hospital_schema().encode(ck.datasets.hospital(8)), [ck.KAnonymity(4)]
    >>> best = loss_of(table, optimum(table, models))
    >>> 0.9 * best < lower_bound(table, models) < best + 1e-6
    True
    """
    return relaxed(table, models).loss


def relaxed(table: Table, models: Sequence[Model], only: Partition | None = None) -> Relaxed:
    """The program of a table; with `only`, over the boxes of this partition and no others."""
    guard, geometry = guarded(table, models), scales(table)
    kinds, kind_of = Kinds.of(table, guard)
    program, places = Program(), [dict[int, int]() for _ in kinds.rows]
    every = boxes(kinds, geometry, guard.k) if only is None else _boxes_of(table, only, kinds, geometry)
    count = 0
    for count, inside in enumerate(every, 1):
        for kind, variable in _box(program, kinds, guard, geometry, np.flatnonzero(inside)):
            places[kind][count - 1] = variable
    for place, rows in zip(places, kinds.rows.tolist(), strict=True):
        program.row(True, place.values(), [1.0] * len(place), float(rows))
    least, values = program.solved()
    shares = [{box: float(values[y]) for box, y in place.items() if values[y] > 1e-9} for place in places]
    return Relaxed(least / len(table), count, shares, kind_of)


def by_parts(table: Table, models: Sequence[Model], parts: Sequence[Sequence[str]]) -> float:
    """A bound for many columns: what they lose together is at least what groups of them lose, each with classes of its own."""
    names, weights = list(table.schema.quasi), table.schema.weights()
    total = 0.0
    for part in parts:
        places = [names.index(name) for name in part]
        kept = {name: weights[i] for name, i in zip(part, places, strict=True)}
        schema = Schema(quasi={n: table.schema.quasi[n] for n in part}, sensitive=table.schema.sensitive, importance=kept)
        domains = tuple(table.quasi_domains[i] for i in places)
        narrow = replace(table, schema=schema, quasi=np.ascontiguousarray(table.quasi[:, places]), quasi_domains=domains)
        total += lower_bound(narrow, models) * sum(kept.values()) / sum(weights)
    return total


def _boxes_of(table: Table, partition: Partition, kinds: Kinds, geometry: Scales) -> Iterator[Flags]:
    """The members of the different boxes of a partition."""
    ends = box_ends(table.quasi, partition.class_of, partition.count)
    written = {
        tuple(span(geometry, j, int(a), int(b)) for j, (a, b) in enumerate(zip(*one, strict=True)))
        for one in zip(*ends, strict=True)
    }
    for box in sorted(written):
        low, high = np.array(box).T
        yield ((kinds.quasi >= low) & (kinds.quasi <= high)).all(axis=1)


def _box(program: Program, kinds: Kinds, guard: Guard, geometry: Scales, held: Ints) -> Iterator[tuple[int, int]]:
    """The shares that one box may have of its kinds of rows, and what they must keep."""
    m = _least_sizes(kinds, guard, held)
    quasi = kinds.quasi[held]
    loss = float(box_losses(geometry, quasi.min(axis=0)[None], quasi.max(axis=0)[None])[0])
    held, m = held[m < NEVER], m[m < NEVER]
    if len(held) == 0:
        return
    share = program.variables(len(held), loss)
    (size,) = program.variables(1)
    program.row(True, [*share, size], [*[1.0] * len(held), -1.0])
    for y, rows, at_least in zip(share, kinds.rows[held].tolist(), m.tolist(), strict=True):
        if at_least > rows:  # else it says nothing
            program.row(False, [y, size], [at_least / rows, -1.0])
    for v in range(len(guard.kind)):
        _view(program, guard, v, kinds.node[held, v], share, size)
    yield from zip(held.tolist(), share, strict=True)


def _least_sizes(kinds: Kinds, guard: Guard, held: Ints) -> Ints:
    """For each kind of row in a box the least rows of an allowed class in it that has such a row; NEVER: there is none."""
    m, rows = np.full(len(held), guard.k, dtype=np.int64), kinds.rows[held]
    most = min(int(rows.sum()), LOOKED)
    for v in range(len(guard.kind)):
        first, last = guard.start[v], guard.start[v + 1]
        there = np.bincount(kinds.node[held, v] - first, weights=rows, minlength=last - first).astype(np.int64)
        nodes, kind_of = np.unique(kinds.node[held, v], return_inverse=True)
        found = np.array([least_size(guard, v, there, int(x), most) for x in nodes])
        found[(found > most) & (most < LOOKED)] = NEVER
        m = np.maximum(m, found[kind_of])
    return m


def _view(program: Program, guard: Guard, v: int, node: NDArray[np.int32], share: range, size: int) -> None:
    """One guarantee about what a box holds: counts under the nodes of its tree, and their limits."""
    first, last = int(guard.start[v]), int(guard.start[v + 1])
    if guard.kind[v] not in (CLOSENESS, CAPS):
        return
    under = program.variables(last - first)
    below: list[list[int]] = [[] for _ in under]
    for y, x in zip(share, node.tolist(), strict=True):
        below[x - first].append(y)
    for x in range(last - 1, first, -1):
        below[guard.parent[x] - first].append(under[x - first])
    for count, parts in zip(under, below, strict=True):
        program.row(True, [*parts, count], [*[1.0] * len(parts), -1.0])
    fair = guard.rows[first:last] / guard.rows[first]
    if guard.kind[v] == CLOSENESS:
        weight = guard.weight[first:last]
        apart = [(program.variables(2), w) for w in weight.tolist()]
        for count, p, ((more, less), _) in zip(under, fair, apart, strict=True):
            program.row(True, [count, size, more, less], [1.0, -p, -1.0, 1.0])
        sizes = np.arange(1, guard.most.shape[1])
        room = float(((guard.most[v, 1:] + 1) / sizes).min()) / float(guard.rows[first])  # t times the scale, or a little more
        far = [(end, float(w)) for ends, w in apart for end in ends]
        program.row(False, [*(end for end, _ in far), size], [*(w for _, w in far), -room])
    else:
        caps, lows = (num / den for num, den in ((guard.cap_num, guard.cap_den), (guard.low_num, guard.low_den)))
        for count, cap, low in zip(under, caps[first:last], lows[first:last], strict=True):
            if cap < 1:
                program.row(False, [count, size], [1.0, -cap])
            if low > 0:
                program.row(False, [count, size], [-1.0, low])

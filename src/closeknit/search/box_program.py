"""A linear program over boxes: no release of a table under its guarantees loses less than the least value of the program.

Two classes that are written with the same box may be merged: the box stays the same, and guarantees that merging cannot break
are still met. So a partition gives each box at most one class, and is a choice of a box for every row. With shares of rows
instead of whole rows this is a linear program:

    least   sum over boxes B and rows r inside B of  y[B, r] * loss(B)
    where   the shares y[., r] of each row add up to 1,
            what each box holds meets the guarantees: closeness and caps are linear in counts,
            m[B, r] * y[B, r] <= sum of y[B, .]: a class that has this row has at least so many rows.

m[B, r] is the least size of an allowed class of whole rows inside B that has the value of r, judged by one guarantee at a
time. A row that no allowed class of B can have gets no share of it. Rows with the same cells and sensitive values are one kind.
Distinct and entropy diversity are left out, which only lowers the value. Where rows may be suppressed, a row may also have a
share in nothing, which loses 1.

The value is proved although a solver computes with floats: any prices of the conditions give a valid bound (weak duality, with
an upper bound for each variable). The solver's prices are used, and the rounding error of the sum is subtracted.

Source: our own; docs/knit.md has the proof. Cost: a variable for each box and each kind of row in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations_with_replacement, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from closeknit.core.geometry import scales
from closeknit.core.table import Partition, Table
from closeknit.kernels.counting.least_classes import least_size
from closeknit.kernels.exchange.knit_guard import CAPS, CLOSENESS, Guard
from closeknit.kernels.geometry.boxes import Scales, box_losses
from closeknit.kernels.geometry.boxes import boxes as box_ends

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LOOKED = 30  # rows of a class up to which its least size is exact
NEVER = 1 << 40
ROUNDING = 1e-12  # more than the relative error of each term of the proved sum
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


class TooLarge(Exception):
    """The program would have more entries than allowed, or was not solved in time."""


@dataclass(frozen=True, eq=False)
class Kinds:
    """Rows that are alike in cells and sensitive values: their codes, and how many rows there are of each kind."""

    quasi: NDArray[np.int32]  # [kinds, d]
    node: NDArray[np.int32]  # [kinds, views] leaf of the guard
    rows: Ints

    @classmethod
    def of(cls, table: Table, guard: Guard) -> tuple[Kinds, Ints]:
        """The kinds of a table, ordered by cells, and the kind of each row."""
        both = np.concatenate([table.quasi, guard.node], axis=1)
        kinds, kind_of, rows = np.unique(both, axis=0, return_inverse=True, return_counts=True)
        quasi, node = np.split(kinds, [table.quasi.shape[1]], axis=1)
        return cls(np.ascontiguousarray(quasi), np.ascontiguousarray(node), rows.astype(np.int64)), kind_of.ravel()


def list_boxes(kinds: Kinds, geometry: Scales, least: int) -> Iterator[Flags]:
    """The members of every box that has at least `least` rows and is the smallest one around its members."""
    ranges = [list_ranges(kinds.quasi[:, j], geometry, j) for j in range(kinds.quasi.shape[1])]

    def narrow(inside: Flags, chosen: list[tuple[int, int]]) -> Iterator[Flags]:
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
                yield from narrow(some, both)

    return narrow(np.ones(len(kinds.rows), dtype=bool), [])


def span(geometry: Scales, j: int, lo: int, hi: int) -> tuple[int, int]:
    """What is written for the codes lo..hi: themselves, or all leaves under the node above them."""
    if geometry.numeric[j]:
        return lo, hi
    node = geometry.leaf_node[geometry.leaf_start[j] + lo]
    while geometry.node_hi[node] < hi:
        node = geometry.node_parent[node]
    return int(geometry.node_lo[node]), int(geometry.node_hi[node])


def list_ranges(codes: NDArray[np.int32], geometry: Scales, j: int) -> list[tuple[int, int]]:
    """Every range of column j that can be written around some of these codes."""
    there = np.unique(codes).tolist()
    # the node above some leaves is the node above two neighbours of them
    pairs = (
        combinations_with_replacement(there, 2)
        if geometry.numeric[j]
        else chain(zip(there, there, strict=True), pairwise(there))
    )
    return sorted({span(geometry, j, a, b) for a, b in pairs})


class Program:
    """A linear program that is written down variable by variable and condition by condition; all variables are at least 0."""

    def __init__(self, most: int) -> None:
        self.most = most  # entries
        self.cost: list[float] = []
        self.largest: list[float] = []
        self.cells: dict[bool, tuple[list[int], list[int], list[float]]] = {True: ([], [], []), False: ([], [], [])}
        self.limits: dict[bool, list[float]] = {True: [], False: []}  # of sums that are equal to it, or at most so large

    def add_variables(self, largest: Sequence[float], cost: float = 0.0) -> range:
        """New variables with an upper bound each, by their numbers."""
        first = len(self.cost)
        self.cost.extend([cost] * len(largest))
        self.largest.extend(largest)
        return range(first, first + len(largest))

    def add_condition(self, equal: bool, columns: Iterable[int], values: Iterable[float], limit: float = 0.0) -> None:
        """A sum of variables that is equal to the limit, or at most the limit."""
        rows, places, factors = self.cells[equal]
        before = len(places)
        places.extend(columns)
        factors.extend(values)
        rows.extend([len(self.limits[equal])] * (len(places) - before))
        self.limits[equal].append(limit)
        if len(places) > self.most:
            raise TooLarge(f"the linear program has more than {self.most:,} entries")

    def solve(self, seconds: float | None = None) -> tuple[float, Reals]:
        """A proved bound from below of the least cost, and variables that nearly have it.

        >>> program = Program(10)
        >>> x, y = program.add_variables([5.0, 5.0], cost=1.0)
        >>> program.add_condition(False, [x, y], [-1.0, -2.0], limit=-4.0)
        >>> round(program.solve()[0], 9)
        2.0
        """
        from scipy.optimize import linprog
        from scipy.sparse import csr_array

        sides = {}
        for equal, (rows, places, factors) in self.cells.items():
            shape = (len(self.limits[equal]), len(self.cost))
            sides[equal] = csr_array((factors, (rows, places)), shape=shape)
        options = {} if seconds is None else {"time_limit": max(seconds, 0.1)}
        solved = linprog(
            self.cost, sides[False], self.limits[False], sides[True], self.limits[True], method="highs-ipm", options=options
        )
        if solved.status != 0:
            raise TooLarge(f"the linear program was not solved: {solved.message}")
        prices = {True: np.asarray(solved.eqlin.marginals), False: np.minimum(solved.ineqlin.marginals, 0.0)}
        return self._prove(sides, prices), solved.x

    def _prove(self, sides: dict[bool, csr_array], prices: dict[bool, Reals]) -> float:
        """What no solution costs less than, by weak duality, with the rounding error subtracted."""
        cost, largest = np.array(self.cost), np.array(self.largest)
        left, size, total, terms = cost.copy(), np.abs(cost), 0.0, 0.0
        for equal, matrix in sides.items():
            price, limit = prices[equal], np.array(self.limits[equal])
            left -= matrix.T @ price
            size += abs(matrix).T @ np.abs(price)
            total += float(price @ limit)
            terms += float(np.abs(price) @ np.abs(limit))
        total += float(np.minimum(left, 0.0) @ largest)
        return total - ROUNDING * (terms + float(size @ largest))


@dataclass(frozen=True, eq=False)
class BoxShares:
    """The solved program: what no release loses less than, and the rows of each kind that each box has a share of."""

    loss: float  # mean over all rows
    boxes: int
    shares: list[dict[int, float]]  # of each kind, by box
    kind_of: Ints  # of each row

    def round_shares(self) -> Partition:
        """Whole rows instead of shares, the largest parts of a row first. Single classes may then miss a guarantee."""
        class_of = np.zeros(len(self.kind_of), dtype=np.int64)
        for kind, shares in enumerate(self.shares):
            rows = np.flatnonzero(self.kind_of == kind)
            names, share = np.array(list(shares)), np.array(list(shares.values()))
            counts = np.floor(share + 1e-6).astype(np.int64)
            counts[np.argsort(counts - share, kind="stable")[: len(rows) - counts.sum()]] += 1
            class_of[rows] = np.repeat(names, counts)[: len(rows)]
        return Partition.of(class_of)


def solve_boxes(
    table: Table,
    guard: Guard,
    only: Partition | None = None,
    suppress: bool = False,
    most: int = 20_000_000,
    seconds: float | None = None,
) -> BoxShares:
    """Solve the program of a table.

    Args:
        table: the table.
        guard: its guarantees, none of them stricter than the models.
        only: use the boxes of this partition and no others; the value then bounds other assignments of rows to these boxes.
        suppress: whether rows may be suppressed.
        most: entries of the program; a larger one raises `TooLarge`.
        seconds: what the solver may take; where it needs more, this raises `TooLarge`.

    >>> import closeknit as ck
    >>> from closeknit.search.guards import guard_of
    >>> table, models = ck.datasets.hospital_schema().encode(ck.datasets.hospital(8)), [ck.KAnonymity(4)]
    >>> found = solve_boxes(table, guard_of(table, models).guard)
    >>> 0 < found.loss <= ck.anonymize(ck.datasets.hospital(8), ck.datasets.hospital_schema(), models).loss
    True
    """
    geometry = scales(table)
    kinds, kind_of = Kinds.of(table, guard)
    program, places = Program(most), [dict[int, int]() for _ in kinds.rows]
    every = list_boxes(kinds, geometry, guard.k) if only is None else _boxes_of(table, only, kinds, geometry)
    count = 0
    for count, inside in enumerate(every, 1):
        for kind, variable in _add_box(program, kinds, guard, geometry, np.flatnonzero(inside)):
            places[kind][count - 1] = variable
    dropped = program.add_variables(kinds.rows.tolist(), 1.0) if suppress else None
    for i, (place, rows) in enumerate(zip(places, kinds.rows.tolist(), strict=True)):
        held = [*place.values(), *([] if dropped is None else [dropped[i]])]
        program.add_condition(True, held, [1.0] * len(held), float(rows))
    least, values = program.solve(seconds)
    shares = [{box: float(values[y]) for box, y in place.items() if values[y] > 1e-9} for place in places]
    return BoxShares(least / len(table), count, shares, kind_of)


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


def _add_box(program: Program, kinds: Kinds, guard: Guard, geometry: Scales, held: Ints) -> Iterator[tuple[int, int]]:
    """The shares that one box may have of its kinds of rows, and the conditions on them."""
    m = _least_sizes(kinds, guard, held)
    quasi = kinds.quasi[held]
    loss = float(box_losses(geometry, quasi.min(axis=0)[None], quasi.max(axis=0)[None])[0])
    held, m = held[m < NEVER], m[m < NEVER]
    if len(held) == 0:
        return
    rows = kinds.rows[held].tolist()
    share = program.add_variables(rows, loss)
    (size,) = program.add_variables([sum(rows)])
    program.add_condition(True, [*share, size], [*[1.0] * len(held), -1.0])
    for y, there, at_least in zip(share, rows, m.tolist(), strict=True):
        if at_least > there:  # else it says nothing
            program.add_condition(False, [y, size], [at_least / there, -1.0])
    for v in range(len(guard.kind)):
        _add_view(program, guard, v, kinds.node[held, v], share, size)
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


def room_of(guard: Guard, v: int) -> float:
    """The limit of a view of closeness on the sum of its weights times the differences of shares, rounded up."""
    sizes = np.arange(1, guard.most.shape[1])
    return float(((guard.most[v, 1:] + 1) / sizes).min()) / float(guard.rows[guard.start[v]])


def _add_view(program: Program, guard: Guard, v: int, node: NDArray[np.int32], share: range, size: int) -> None:
    """One guarantee about what a box holds: counts under the nodes of its tree, and their limits."""
    first, last = int(guard.start[v]), int(guard.start[v + 1])
    if guard.kind[v] not in (CLOSENESS, CAPS):
        return
    largest = program.largest[size]
    under = program.add_variables([largest] * (last - first))
    below: list[list[int]] = [[] for _ in under]
    for y, x in zip(share, node.tolist(), strict=True):
        below[x - first].append(y)
    for x in range(last - 1, first, -1):
        below[guard.parent[x] - first].append(under[x - first])
    for count, parts in zip(under, below, strict=True):
        program.add_condition(True, [*parts, count], [*[1.0] * len(parts), -1.0])
    if guard.kind[v] == CLOSENESS:
        fair = guard.rows[first:last] / guard.rows[first]
        apart = [(program.add_variables([largest] * 2), w) for w in guard.weight[first:last].tolist()]
        for count, p, ((more, less), _) in zip(under, fair, apart, strict=True):
            program.add_condition(True, [count, size, more, less], [1.0, -p, -1.0, 1.0])
        far = [(end, float(w)) for ends, w in apart for end in ends]
        program.add_condition(False, [*(end for end, _ in far), size], [*(w for _, w in far), -room_of(guard, v)])
        return
    caps, lows = (num / den for num, den in ((guard.cap_num, guard.cap_den), (guard.low_num, guard.low_den)))
    for count, cap, low in zip(under, caps[first:last], lows[first:last], strict=True):
        if cap < 1:
            program.add_condition(False, [count, size], [1.0, -cap])
        if low > 0:
            program.add_condition(False, [count, size], [-1.0, low])

"""A lower bound of the loss: no release of a table under the requested guarantees loses less, whatever the method.

Four bounds are computed, and the largest counts. Each is valid by itself:
1. *nearest class*: the class of a row loses at least what the narrowest box around the row loses that contains rows enough
   for an allowed class (`kernels.counting.least_boxes`); where there are too many boxes, at least what the box of the row and
   its farthest member loses (`kernels.counting.least_classes`);
2. *prices of rows*: prices that are raised from the first bound while no box has k rows whose prices exceed k times its loss
   (`kernels.counting.row_prices`). A class pays for its rows, so the prices of all rows are at most the loss. Where values
   have caps, the rows are those that the caps allow, for each least size of a class at which one more value is possible;
3. *boxes*: the linear program over all boxes (`search.box_program`), where they can be listed;
4. *groups of columns*: all columns together lose at least what groups of them lose, each group with classes of its own. A
   group has the best of the other bounds.

The bound covers releases as ranges and nodes of hierarchies. Where a domain is not declared, a release measures the loss in the
domain of its own cells, which can be less than in that of the table. Such a column counts 0, and the record lists it; whole
numbers count, because their ranges end at numbers of the table. A guarantee that cannot be written as limits on shares,
or that is judged on the whole release, is left out, which only lowers the bound; the record lists it. Where rows may be
suppressed, guarantees that compare with the distribution of all rows are left out too, because their reference changes.

Source: our own; docs/knit.md has the proofs. Cost: the first bound compares all different combinations of quasi-identifiers
with each other; within `seconds` it looks at as many as it can, in an order that does not depend on their values, and all
others count 0. The second bound visits every box whose loss is below the highest price inside it, again and again; a pass that
does not end in time is dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.geometry import scales
from closeknit.core.kind import Kind
from closeknit.core.loss import LossBound
from closeknit.core.method import Progress, ignore_progress
from closeknit.core.model import Model
from closeknit.core.schema import Schema
from closeknit.core.share_limits import ROUNDED
from closeknit.core.table import Table
from closeknit.kernels.counting.least_boxes import least_boxes
from closeknit.kernels.counting.least_classes import HAIR, Rows, nearest_classes
from closeknit.kernels.counting.row_prices import Classes, Level, Prices, Ranges, lower_prices, room_for_classes, settle_prices
from closeknit.kernels.exchange.knit_guard import CAPS, CLOSENESS, ENTROPY, VALUES, Guard
from closeknit.kernels.geometry.boxes import Scales
from closeknit.kernels.geometry.ranges import Costs, costs, range_cost
from closeknit.kernels.threads import THREADS, in_threads
from closeknit.search.box_program import Kinds, TooLarge, list_ranges, room_of, solve_boxes
from closeknit.search.guards import LONGEST, guard_of

LEEWAY = 1e-7  # more than the rounding error of an entropy
STEPS = 2_048  # of the loss, in the bound by the nearest class
WORK = 1 << 19  # cells visited in search of the narrowest box around one of them
BLOCK = 64  # cells that a thread looks at between two looks at the clock
PASSES = 250  # over all boxes, in which prices are lowered
PATIENCE, GROWTH = 12, 1.0002  # passes after which the bound has to have grown by this factor, else it is as good as it gets
RAISE = 2.0  # of all prices before each pass, as a share of the mean price
MOST_CLASSES = 1 << 17  # that are known to have had too high prices
SLAB_WORK = 1 << 32  # cells visited while prices are lowered, between two looks at the clock
MOST_RANGES = 20_000  # of a column, in the prices of rows; the column with the most values has no limit
MOST_BOXES = 1_500  # boxes of a group of columns
MOST_ENTRIES = 3_000_000  # of a linear program
ENTRIES_A_SECOND = 50_000  # the solver looks at its time too seldom to be given a program that it cannot solve in time
NEAREST, PRICES, BOXES, GROUPS = "nearest class", "prices of rows", "boxes", "groups of columns"


@dataclass(frozen=True, eq=False)
class _Request:
    """A table with the guarantees that a bound uses, and the time that it has."""

    table: Table
    models: list[Model]
    suppress: bool
    ends: float  # by the monotonic clock

    @property
    def seconds(self) -> float:
        """Seconds that are left."""
        return self.ends - time.monotonic()

    def guard(self) -> Guard:
        """The guarantees as a guard that is nowhere stricter than the models: caps and floors are moved a hair outwards.

        An entropy is a cap here: the share that one value may have if all others are as frequent as one another.
        """
        guard = guard_of(self.table, self.models).guard
        cap, low = guard.cap_num / guard.cap_den, guard.low_num / guard.low_den
        for v in np.flatnonzero(guard.kind == ENTROPY).tolist():
            values = np.flatnonzero(guard.leaf[guard.start[v] : guard.start[v + 1]]) + guard.start[v]
            cap[values] = _cap_of_entropy(float(guard.entropy[v]), len(values))
        guard = guard._replace(kind=np.where(guard.kind == ENTROPY, CAPS, guard.kind))
        least = [guard.k]  # rows of an allowed class: each guarantee may need more than k
        for v, kind in enumerate(guard.kind):
            if kind == CAPS:
                here = slice(guard.start[v] + 1, guard.start[v + 1])
                needed = cap[here][low[here] > 0]  # each class has a row of these values, which is at most its share
                least.append(int(np.ceil(1 / (needed.min() if len(needed) else cap[here].max()) - 1e-6)))
            elif kind == VALUES:
                least.append(int(guard.values[v]))
        return guard._replace(
            k=max(least),
            cap_num=np.where(cap < 1, np.floor(cap * ROUNDED) + 3, 1).astype(np.int64),
            cap_den=np.where(cap < 1, ROUNDED, 1).astype(np.int64),
            low_num=np.maximum(np.ceil(low * ROUNDED) - 3, 0).astype(np.int64),
            low_den=np.full(len(low), ROUNDED, dtype=np.int64),
        )

    def narrow(self, names: Sequence[str]) -> _Request:
        """The same rows with some of the quasi-identifiers."""
        table, every = self.table, list(self.table.schema.quasi)
        places = [every.index(name) for name in names]
        weights = table.schema.weights()
        schema = Schema(
            quasi={name: table.schema.quasi[name] for name in names},
            sensitive=table.schema.sensitive,
            importance={name: weights[i] for name, i in zip(names, places, strict=True)},
        )
        domains = tuple(table.quasi_domains[i] for i in places)
        quasi = np.ascontiguousarray(table.quasi[:, places])
        return replace(self, table=replace(table, schema=schema, quasi=quasi, quasi_domains=domains))


def bound_table(
    table: Table, models: Sequence[Model], *, suppress: bool = False, seconds: float = 60, progress: Progress = ignore_progress
) -> LossBound:
    """A lower bound of the loss of any release of a table under these guarantees.

    Args:
        table: the coded table.
        models: the guarantees.
        suppress: whether rows may be suppressed.
        seconds: time for the bound; the first step of each bound is always taken.
        progress: called with what happens, and the share that is done.

    >>> import closeknit as ck
    >>> data, schema, models = ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)]
    >>> found = bound_table(schema.encode(data), models)
    >>> 0 < found.loss <= ck.anonymize(data, schema, models, ck.Mondrian()).loss
    True
    """
    used, left_out = _split_models(table, models, suppress)
    request = _Request(table, used, suppress, time.monotonic() + seconds)
    quasi = zip(table.schema.quasi.items(), table.quasi_domains, strict=True)
    names = [name for (name, kind), domain in quasi if _is_measured_alike(kind, domain)]
    unmeasured = tuple(name for name in table.schema.quasi if name not in names)
    if not names or len(table) == 0:
        return LossBound(loss=0.0, by=NEAREST, left_out=left_out, unmeasured=unmeasured)
    whole, request = sum(table.schema.weights()), request.narrow(names)
    groups, early = _group_columns(request), replace(request, ends=request.ends - seconds / 2)
    total = 0.0
    for i, group in enumerate(groups):
        progress("linear programs", i / len(groups) / 2)
        weight = sum(request.narrow(group).table.schema.weights()) / whole
        total += weight * _bound_group(early.narrow(group))
    progress("nearest classes and prices", 0.5)
    found = _bound_rows(request, lambda share: progress("nearest classes and prices", (1 + share) / 2))
    loss = found.loss * sum(request.table.schema.weights()) / whole
    found = found.model_copy(update={"loss": loss, "left_out": left_out, "unmeasured": unmeasured})
    if total <= found.loss:
        return found
    by = BOXES if len(groups) == 1 else GROUPS
    return found.model_copy(update={"loss": total, "by": by, "groups": tuple(groups) if by == GROUPS else ()})


def _is_measured_alike(kind: Kind, domain: Domain) -> bool:
    """Whether a cell loses in every release at least what it loses in the domain of the table."""
    if kind.has_fixed_losses or domain.tree is not None or domain.numbers is None:
        return kind.has_fixed_losses
    return domain.step is None and domain.top is None and domain.bottom is None and bool((domain.numbers % 1 == 0).all())


def _cap_of_entropy(entropy: float, values: int) -> float:
    """The largest share of one value, rounded up, with which so many values can have this entropy."""
    low, high = 1 / values, 1.0
    while high - low > LEEWAY:
        share = (low + high) / 2
        others = (1 - share) * np.log((values - 1) / (1 - share)) if values > 1 else 0.0
        low, high = (share, high) if others - share * np.log(share) >= entropy - LEEWAY else (low, share)
    return high


def _split_models(table: Table, models: Sequence[Model], suppress: bool) -> tuple[list[Model], tuple[str, ...]]:
    """The guarantees that the bound uses, and the texts of the others."""

    def is_used(model: Model) -> bool:
        if model.over is not None or model.budget or model.of_method or not model.by_class or (suppress and model.compares):
            return False
        # the guard of a long line is stricter than the guarantee
        if model.bounds == "distance" and model.column is not None and len(np.unique(table.secret(model.column)[0])) > LONGEST:
            return False
        return not guard_of(table, [model]).unguarded

    used = [model for model in models if is_used(model)]
    return used, tuple(model.describe(None) for model in models if model not in used)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The different rows of a request, in the order of the column with the most values, and what a class of them loses."""

    request: _Request
    guard: Guard
    distance: NDArray[np.float64]  # the limit of each view of closeness, in its weights
    costs: Costs
    rows: Rows
    count: NDArray[np.int64]  # rows of each cell

    @classmethod
    def of(cls, request: _Request) -> _Cells:
        """The cells of a request, with its widest column first."""
        codes = dict(zip(request.table.schema.quasi, request.table.quasi.T, strict=True))
        request = request.narrow(sorted(codes, key=lambda name: -len(np.unique(codes[name]))))
        guard, geometry = request.guard(), scales(request.table)
        kinds, _ = Kinds.of(request.table, guard)
        first = np.append(np.flatnonzero(np.append(True, (np.diff(kinds.quasi, axis=0) != 0).any(axis=1))), len(kinds.rows))
        rows = Rows(np.ascontiguousarray(kinds.quasi[first[:-1]]), first, kinds.node, kinds.rows)
        distance = np.array([room_of(guard, v) if kind == CLOSENESS else 0.0 for v, kind in enumerate(guard.kind)])
        return cls(request, guard, distance, costs(geometry), rows, np.add.reduceat(kinds.rows, first[:-1]))

    def mean(self, prices: NDArray[np.float64]) -> float:
        """The mean of a number for each cell, over the rows of the table."""
        return float(prices @ self.count) / len(self.request.table)

    def find_nearest(self, report: Callable[[float], None]) -> tuple[NDArray[np.float64], float]:
        """What the nearest class of each cell loses at least, and the share of rows that was looked at; others have 0."""
        found, ends = np.zeros(len(self.count)), time.monotonic() + self.request.seconds / 2  # the other half is for prices
        order = np.random.default_rng(0).permutation(len(found))  # of places, so of no value
        seen = 0

        def look(chosen: NDArray[np.int64]) -> None:
            least = least_boxes(self.costs, self.guard, self.distance, self.rows, chosen, WORK)
            if (missed := least < 0).any():
                least[missed] = nearest_classes(self.costs, self.guard, self.distance, self.rows, chosen[missed], STEPS)
            found[chosen] = least

        for a, b in pairwise([*range(0, len(order), BLOCK * THREADS), len(order)]):
            in_threads(look, [order[i : min(i + BLOCK, b)] for i in range(a, b, BLOCK)])
            seen = b
            report(b / len(order))
            if time.monotonic() >= ends:
                break
        return found, float(self.count[order[:seen]].sum()) / len(self.request.table)

    def raise_prices(self, nearest: NDArray[np.float64], report: Callable[[float], None]) -> float:
        """The mean price of a row, raised from what its nearest class loses; 0 where no pass ends in time.

        Before each pass all prices are raised, and lowered where classes that earlier passes found cannot pay them. The pass
        finds further classes, and lowers the prices of a copy until no class at all has too high ones.
        """
        if max(list(_ranges(self.request))[1:], default=0) > MOST_RANGES:
            return 0.0
        ranges, (prices, levels) = self.list_ranges(), self.list_levels(nearest.copy())
        classes, ceiling = room_for_classes(len(prices.size), MOST_CLASSES), 1.0 if self.request.suppress else np.inf
        start, rows, highest = self.mean(nearest), len(self.request.table), [0.0]
        unit = RAISE * rows / float(prices.ease @ prices.size)
        for done in range(PASSES):
            settle_prices(prices, classes, unit * max(highest[-1], start), ceiling)
            price = np.minimum(prices.price, ceiling)
            if not self.lower(prices._replace(price=price), levels, ranges, classes):
                break
            mean = float(price @ prices.size) / rows - HAIR
            highest.append(min(max(mean, highest[-1]), 1.0))
            report(done / PASSES)
            if done >= PATIENCE and highest[-1] < GROWTH * highest[-PATIENCE]:
                break
        return highest[-1]

    def list_levels(self, nearest: NDArray[np.float64]) -> tuple[Prices, list[Level]]:
        """The prices to begin with, and the least sizes of classes that may have one more value, smaller ones first.

        Where several attributes have caps, prices use those of the attribute with the least one.
        """
        guard, rows, k = self.guard, self.rows, self.guard.k
        share = guard.cap_num / guard.cap_den
        caps = {v: share[guard.start[v] + 1 : guard.start[v + 1]] for v in np.flatnonzero(guard.kind == CAPS).tolist()}
        none = np.zeros(0, np.int32)
        if not caps:
            plain = Prices(rows, self.count, np.zeros(len(nearest), np.int64), np.ones(len(nearest)), nearest)
            return plain, [Level(k, np.full(1, float(k)), np.ones(1, np.int32), none, 0, SLAB_WORK)]
        v = min(caps, key=lambda v: float(caps[v].min()))
        least = np.maximum(np.ceil(1 / caps[v] - 1e-6).astype(np.int64), k)
        cell, value = np.repeat(np.arange(len(nearest)), np.diff(rows.first)), rows.node[:, v].astype(np.int64)
        value -= guard.start[v] + 1  # the root comes first
        kinds = Rows(np.ascontiguousarray(rows.cells[cell]), np.arange(len(cell) + 1), rows.node, rows.rows)
        levels = []
        for size in np.unique(least).tolist():
            most, wanted = np.where(least <= size, caps[v] * size, 0), (least == size).astype(np.int32)
            levels.append(Level(size, most, wanted, none, 0, SLAB_WORK))
        return Prices(kinds, rows.rows, value, least[value] / k, nearest[cell]), levels

    def lower(self, prices: Prices, levels: list[Level], ranges: Ranges, classes: Classes) -> bool:
        """Lower prices until no class can have higher ones than it loses; False where time ends before."""
        for level in levels:
            possible = level.most[prices.value] > 0
            for slab in range(max(int(ranges.start[-1] - ranges.start[-2]), 1)):
                if self.request.seconds <= 0:
                    return False
                listed = np.argsort(np.where(possible, -prices.price, np.inf), kind="stable")[: possible.sum()].astype(np.int32)
                task = level._replace(listed=listed, slab=slab)
                if lower_prices(self.costs, self.guard, self.distance, ranges, prices, task, classes) < 0:
                    return False
        return True

    def list_ranges(self) -> Ranges:
        """The ranges of each column but the first, the cheapest first."""
        start, lo, hi, cost = [0, 0], [], [], []
        for j in range(1, self.rows.cells.shape[1]):
            priced = sorted(
                (range_cost(self.costs, j, a, b), a, b) for a, b in list_ranges(self.rows.cells[:, j], self.costs.scales, j)
            )
            cost += [each[0] for each in priced]
            lo += [each[1] for each in priced]
            hi += [each[2] for each in priced]
            start.append(len(cost))
        return Ranges(np.array(start), np.array(lo, np.int32), np.array(hi, np.int32), np.array(cost, np.float64))


def _bound_rows(request: _Request, report: Callable[[float], None]) -> LossBound:
    """The better of the bounds by the nearest class and by prices of rows."""
    cells = _Cells.of(request)
    nearest, looked = cells.find_nearest(lambda share: report(share / 2))
    least = cells.mean(nearest)
    raised = cells.raise_prices(nearest, lambda share: report((1 + share) / 2))
    return LossBound(loss=max(least, raised), by=PRICES if raised > least else NEAREST, looked=looked)


def _bound_group(request: _Request) -> float:
    """The bound of a few columns: by boxes where they can be listed in time, else by the nearest class."""
    if request.seconds > 0 and _count_ranges(request) <= MOST_BOXES:
        try:
            guard, most = request.guard(), min(MOST_ENTRIES, int(ENTRIES_A_SECOND * request.seconds))
            found = solve_boxes(request.table, guard, suppress=request.suppress, most=most, seconds=request.seconds)
            return max(found.loss, 0.0)
        except TooLarge:
            pass
    return _bound_rows(request, lambda share: None).loss


def _count_ranges(request: _Request) -> int:
    return int(np.prod(list(_ranges(request)), dtype=np.float64))


def _ranges(request: _Request) -> Iterator[int]:
    """Ranges that can be written in each column."""
    geometry: Scales = scales(request.table)
    for j in range(request.table.quasi.shape[1]):
        codes = request.table.quasi[:, j]
        distinct = len(np.unique(codes))
        yield distinct * (distinct + 1) // 2 if geometry.numeric[j] else len(list_ranges(codes, geometry, j))


def _group_columns(request: _Request) -> list[tuple[str, ...]]:
    """Groups of columns whose boxes can be listed, as few as possible; a column with too many ranges is a group by itself."""
    groups: list[tuple[list[str], int]] = []
    for name, count in sorted(zip(request.table.schema.quasi, _ranges(request), strict=True), key=lambda one: one[1]):
        fitting = next((i for i, (_, boxes) in enumerate(groups) if boxes * count <= MOST_BOXES), None)
        if fitting is None:
            groups.append(([name], count))
        else:
            groups[fitting] = ([*groups[fitting][0], name], groups[fitting][1] * count)
    return [tuple(names) for names, _ in groups]

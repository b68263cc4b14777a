"""What cutting and exchanging share: a table with the costs of its boxes, the guard of its guarantees, and orders of its rows.

Guarantees that the guard does not cover are judged by their models, on whole partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from closeknit.core.combined_secrets import Secret
from closeknit.core.domain import Domain
from closeknit.core.geometry import points, scales
from closeknit.core.model import Model
from closeknit.core.row_sorting import groups
from closeknit.core.table import Partition, Table
from closeknit.kernels.counting.sorting import stable_order
from closeknit.kernels.exchange.class_state import State
from closeknit.kernels.exchange.knit_guard import VALUES, Buckets, Guard
from closeknit.kernels.geometry.boxes import Codes, Ints, Reals, Scales, box_losses, boxes, partition_loss
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys
from closeknit.kernels.geometry.ranges import Costs, costs
from closeknit.search.repair import find_broken_classes

LEVELS = 3  # how coarsely an order may see a column: value by value, or twice more and more roughly
ROUGHER = 4  # parts of an axis, and parts of these
LONGEST_KEY = 1 << 63
TINY = 1e-9  # columns that lose nothing come first, in any order


@dataclass(frozen=True, eq=False)
class KnitState:
    """One table under its guarantees."""

    table: Table
    scales: Scales
    costs: Costs
    guard: Guard
    unguarded: Sequence[Model]
    buckets: Buckets
    rough: list[list[Codes]]  # per column and level: the rough code of every code

    @classmethod
    def of(cls, table: Table, guard: Guard, unguarded: Sequence[Model]) -> KnitState:
        """The state of a table; `unguarded`: guarantees that the guard does not cover."""
        geometry = scales(table)
        rough = [[_rough(domain, level) for level in range(LEVELS)] for domain in table.quasi_domains]
        return cls(table, geometry, costs(geometry), guard, unguarded, _buckets(guard, len(table)), rough)

    @cached_property
    def quick(self) -> bool:
        """Whether size and diversity alone decide: no distance and no share of each value is compared for a change."""
        return not self.unguarded and bool((self.guard.kind >= VALUES).all())

    @cached_property
    def points(self) -> Reals:
        """The place of each row on unit axes."""
        return points(self.table)

    @cached_property
    def whole(self) -> dict[Secret, Ints]:
        """How often each value of every sensitive attribute occurs in the whole table."""
        return {name: histogram.reference for name, histogram in self.table.one_class().histograms.items()}

    def part(self, rows: Ints) -> KnitState:
        """Some rows under the same guard: shares are still measured against those of the whole table."""
        table = replace(self.table.take(rows), references=self.whole)
        return KnitState.of(table, self.guard._replace(node=self.guard.node[rows]), self.unguarded)

    def loss(self, partition: Partition) -> float:
        """Mean loss of a row."""
        return float(partition_loss(self.scales, self.table.quasi, partition.class_of, partition.count))

    def losses(self, partition: Partition) -> Reals:
        """What the rows of each class lose together."""
        lo, hi = boxes(self.table.quasi, partition.class_of, partition.count)
        lost: Reals = box_losses(self.scales, lo, hi) * np.bincount(partition.class_of, minlength=partition.count)
        return lost

    def column_losses(self, state: State) -> Reals:
        """What all rows lose together in each column."""
        kept = state.size > 0
        lo, hi, columns = state.ends[kept, :, 0], state.ends[kept, :, 3], range(len(self.rough))
        one_wide = [np.where(np.arange(len(columns)) == j, hi, lo) for j in columns]
        return np.array([state.size[kept] @ box_losses(self.scales, lo, wide) for wide in one_wide])

    def find_broken(self, partition: Partition) -> NDArray[np.bool_]:
        """Classes that do not meet a guarantee which the guard does not cover."""
        if not self.unguarded:
            return np.zeros(partition.count, dtype=bool)
        return find_broken_classes(self.table, partition, self.unguarded)

    def row_order(self, rng: np.random.Generator, lost: Reals | None = None) -> Codes:
        """All rows, sorted by all columns: some first, some seen roughly, another choice each time.

        Args:
            rng: the source of the choices.
            lost: what the rows lose in each column; a column with half the loss comes before another twice as often as
                after it, because neighbours share the cells of the first columns. Without it all orders are as likely.
        """
        key, room, d = np.zeros(len(self.table), dtype=np.int64), 1, len(self.rough)
        for j in rng.permutation(d) if lost is None else np.argsort(rng.standard_exponential(d) * (lost + TINY)):
            rough = self.rough[j][int(rng.integers(LEVELS))]
            width = int(rough.max(initial=0)) + 1
            if room * width < LONGEST_KEY:
                room *= width
                key = key * width + rough[self.table.quasi[:, j]]
        shuffled = rng.permutation(len(self.table))
        return shuffled[stable_order(key[shuffled].astype(np.uint64))].astype(np.int32)

    def class_order(self, partition: Partition, rng: np.random.Generator) -> Ints:
        """Classes along a curve through their middles, or through a row of each, with axes turned and squeezed."""
        kept = rng.permutation(len(self.table))
        owner = partition.class_of
        one = np.empty(partition.count, dtype=np.int64)
        one[owner[kept]] = kept
        places = self.points[one]
        if rng.integers(2):
            sums = [np.bincount(owner, weights=axis, minlength=partition.count) for axis in self.points.T]
            places = np.stack(sums, axis=1) / np.bincount(owner, minlength=partition.count)[:, None]
        axes = rng.permutation(places.shape[1])
        squeezed = places[:, axes] / 2.0 ** rng.integers(0, LEVELS, places.shape[1])
        return np.argsort(hilbert_keys(np.ascontiguousarray(squeezed)), kind="stable")


def _rough(domain: Domain, level: int) -> Codes:
    """A rough code of every code, the missing one last: the part of the axis, or so many nodes up, yet never the top."""
    codes = np.arange(domain.size + 1, dtype=np.int32)
    if level == 0:
        return codes
    if domain.tree is None:
        parts = ROUGHER ** (LEVELS - level)
        return np.append(np.minimum(domain.positions() * parts, parts - 1), parts).astype(np.int32)
    node, parent = domain.tree.leaf_node, domain.tree.parent
    for _ in range(level):
        node = np.where(parent[node] == 0, node, parent[node])
    return node.astype(np.int32)


def _buckets(guard: Guard, n: int) -> Buckets:
    """Rows with the same leaf in every view."""
    if guard.node.shape[1] == 0 or n == 0:
        return Buckets(np.zeros(n, dtype=np.int32), np.zeros(min(n, 1), dtype=np.int32))
    bucket_of, count = groups([(column, int(column.max()) + 1) for column in guard.node.T], n)
    sample = np.empty(count, dtype=np.int32)
    sample[bucket_of[::-1]] = np.arange(n - 1, -1, -1, dtype=np.int32)  # the first row of each is written last
    return Buckets(bucket_of, sample)

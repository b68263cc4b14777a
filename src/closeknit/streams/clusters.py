"""Open clusters: rows that wait together, their box and persons, in the arrays of `kernels.streaming.castle`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.geometry.declared_axes import Axes
from closeknit.kernels.streaming.castle import (
    OpenClusters,
    arrive,
    forget,
    members,
    merging_order,
    refill,
    rehash_counts,
    shrink,
)
from closeknit.streams.arrivals import Arrivals, Ints
from closeknit.streams.pending import Pending

SMALLEST = 64


class Clusters:
    """At most `eta` clusters, oldest first.

    Args:
        axes: the geometry of the quasi-identifiers.
        columns: the number of quasi-identifiers.
        eta: the most clusters.
        by_person: whether persons are counted rather than rows.

    >>> from kernel_inputs import number_axes
    >>> rows = Arrivals(np.array([[30.0], [80.0], [30.0]]), np.array([7, 8, 7]), np.zeros((3, 0), np.int64), {})
    >>> clusters = Clusters(number_axes([100.0]), 1, eta=5, by_person=True)
    >>> clusters.add(rows, first=0, span=(0, 3), tau=0.0)
    >>> [clusters.members(c).tolist() for c in range(len(clusters))], clusters.open.persons[:2].tolist()
    ([[0, 2], [1]], [1, 1])
    """

    def __init__(self, axes: Axes, columns: int, eta: int, by_person: bool) -> None:
        self.axes, self.by_person = axes, by_person
        lo, hi, cost = (np.zeros((eta, columns)) for _ in range(3))
        persons, rows, ids, head, tail = (np.zeros(eta, np.int64) for _ in range(5))
        rings = _rings(SMALLEST, by_person)
        self.open = OpenClusters(lo, hi, cost, persons, rows, ids, head, tail, np.zeros(3, np.int64), *rings)

    def __len__(self) -> int:
        return int(self.open.totals[0])

    @property
    def oldest(self) -> int:
        """The cluster with the oldest row."""
        return int(self.open.head[: len(self)].argmin())

    @property
    def head(self) -> int | None:
        """Position of the oldest row; None if there is none."""
        return int(self.open.head[: len(self)].min()) if len(self) else None

    @property
    def person_count(self) -> int:
        """Persons in all clusters together."""
        return int(self.open.totals[2])

    def add(self, rows: Arrivals, first: int, span: tuple[int, int], tau: float) -> None:
        """Add the rows `span` of a block: each joins the cluster that it enlarges least, or opens one."""
        head = self.head
        self._make_room(first + span[1] - (first + span[0] if head is None else head))
        arrive(self.axes, self.open, rows.quasi, rows.persons, span, first, tau)

    def members(self, c: int) -> Ints:
        """Positions of the rows of a cluster, oldest first."""
        found: Ints = members(self.open, c)
        return found

    def box(self, c: int) -> tuple[Reals, Reals]:
        """Its box."""
        return self.open.lo[c].copy(), self.open.hi[c].copy()

    def merging_order(self, c: int) -> Ints:
        """Cluster c, then each time the cluster that enlarges the merged ones least."""
        order: Ints = merging_order(self.axes, self.open.lo[: len(self)], self.open.hi[: len(self)], c)
        return order

    def drop(self, numbers: Sequence[int] | Ints, pending: Pending) -> None:
        """Remove these clusters."""
        for c in numbers:
            forget(self.open, int(c), pending.persons(self.members(int(c))))
        kept = np.ones(len(self), dtype=bool)
        kept[np.asarray(numbers)] = False
        for array in self.open[:8]:
            array[: kept.sum()] = array[: len(kept)][kept]
        self.open.totals[0] = kept.sum()

    def hold(self, c: int, positions: Ints, pending: Pending) -> None:
        """Replace the rows of a cluster by these, oldest first."""
        forget(self.open, c, pending.persons(self.members(c)))
        refill(self.axes, self.open, c, pending.quasi(positions), pending.persons(positions), positions)

    def remove(self, c: int, gone: Ints, stays: Ints, pending: Pending) -> None:
        """Remove some rows of a cluster and shrink its box; drop it if none stays."""
        if len(stays) == 0:
            return self.drop([c], pending)
        forget(self.open, c, pending.persons(gone))
        self.open.links[stays[:-1] & (len(self.open.links) - 1)] = stays[1:]
        self.open.rows[c], self.open.head[c], self.open.tail[c] = len(stays), stays[0], stays[-1]
        left = pending.quasi(gone)
        if ((left == self.open.lo[c]) | (left == self.open.hi[c])).any():
            shrink(self.axes, self.open, c, pending.quasi(stays))

    def _make_room(self, span: int) -> None:
        """Lengthen the rings to hold all positions between the oldest row and the newest."""
        if span <= len(self.open.links):
            return
        length, old, chains = 1 << (span - 1).bit_length(), self.open, [self.members(c) for c in range(len(self))]
        self.open = OpenClusters(*old[:9], *_rings(length, self.by_person))
        for chain in chains:
            self.open.links[chain[:-1] & (length - 1)] = chain[1:]
        rehash_counts(self.open, old.who_id, old.who, old.times)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: the rows of each cluster."""
        return {
            "ids": self.open.ids[: len(self)].copy(),
            "ever": int(self.open.totals[1]),
            "members": [self.members(c) for c in range(len(self))],
        }

    def restore(self, state: dict[str, Any], pending: Pending) -> None:
        """Resume from what `state` returned."""
        chains = state["members"]
        if chains:
            self._make_room(max(int(chain[-1]) for chain in chains) + 1 - min(int(chain[0]) for chain in chains))
        self.open.totals[:] = len(chains), state["ever"], 0
        self.open.ids[: len(chains)] = state["ids"]
        for c, chain in enumerate(chains):
            refill(self.axes, self.open, c, pending.quasi(chain), pending.persons(chain), chain)


def _rings(length: int, by_person: bool) -> tuple[Ints, Ints, Ints, Ints]:
    table = 4 * length if by_person else 0
    return np.zeros(length, np.int64), np.full(table, -1, np.int64), np.zeros(table, np.int64), np.zeros(table, np.int64)

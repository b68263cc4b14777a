"""`Castle`: rows wait in clusters and are published within `delta`, in classes of at least `k` persons, at every instant.

Guarantees, after every batch: each published generalization has k persons (K); every other guarantee about classes, such as l
values of l different persons, holds for each batch (L); a row is published at the latest while the row `delta` positions later
is handled (D); each row is published once or counted as suppressed (1); what is published covers the row (C).

Source: the thesis on SABRE and BUREL, ch. 5. `eta`: the most clusters open at a time; `tau`: mean loss of the last `mu` classes
published, beyond which a row opens a new cluster; Omega: stored generalizations.

Different from the source:
- when clusters merge, the persons of the union are counted: a sum of sizes counts a person twice (one person as a class of
  two);
- merging continues until every guarantee holds, not only k;
- a row that is reused or suppressed is removed from its cluster: otherwise it is published twice, and counts for a later k;
- the end of the stream merges small clusters or suppresses them: published as they are, a class may be one person;
- reuse is off: it publishes single rows, and what it does not reuse is informative (`docs/castle.md`). "held" reuses only when
  pending rows of k persons share a stored generalization; they wait in their clusters until then and are published as one
  batch;
- a class is stored if its loss is at most tau (printed: below, so that equal losses are never stored), for `delta` positions,
  and at most 10 eta are stored;
- clusters that would remain too few for a class, and whose oldest row expires before k more rows arrive, are published together
  with the expiring one; the source suppresses their rows one by one;
- a class is published whole; `order="input"` holds whole batches until every older row is published, which is at most until
  their own oldest row expires.

Cost: eta columns for the choice of a cluster, compiled; merging eta^2 columns, splitting n^2 columns / k, once per class.
Memory: delta + 1 rows, and eta boxes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, ClassVar

import numpy as np

from closeknit.core.errors import BadInput
from closeknit.core.model import Model
from closeknit.core.params import choice, whole
from closeknit.core.schema import Schema
from closeknit.kernels.geometry.declared_axes import box_cost, boxes_of
from closeknit.kernels.streaming.castle import NEAR, inside
from closeknit.streams.arrivals import Arrivals, Ints
from closeknit.streams.clusters import Clusters
from closeknit.streams.delayed_stream import Clock, DelayedStream
from closeknit.streams.splitting import split_k, split_l
from closeknit.streams.stored_boxes import Omega, StoredBox
from closeknit.streams.stream import Emission, Emissions

MOST = 1_000_000  # clusters, or losses: memory for all of them is allocated at once
STORED = 10  # stored generalizations per cluster that may be open


class Castle(DelayedStream):
    """Clusters of near rows that are published together.

    Args:
        schema: roles and kinds of the columns; every quasi domain must be declared.
        k: the fewest persons of a class.
        delta: the longest delay, in rows (10_000) or as a time ("5m").
        l: the fewest distinct values of the only sensitive column in a class.
        eta: the most clusters open at a time.
        mu: the number of published classes whose mean loss decides whether a row opens a new cluster.
        reuse: False; True publishes single rows with stored generalizations; "held" reuses them for k persons only.
        models: further guarantees about classes.
        order: "batch" publishes a class at once; "input" holds it until all older rows are published.
        seed: makes all choices reproducible; by default they are random.
        clock: a function that returns seconds, or "tick"; used if `delta` is a time.

    >>> from closeknit.core.kinds import flat, numeric
    >>> schema = Schema(quasi={"age": numeric(0, 100)}, sensitive={"ill": flat()}, person="name")
    >>> stream = Castle(schema, k=2, delta=3, seed=1)
    >>> for age, name in ((30, "Ann"), (70, "Bob"), (31, "Cid"), (71, "Dan")):
    ...     left = stream.push({"age": age, "name": name, "ill": "flu"})
    >>> left
    [{'age': '[30, 31]', 'ill': 'flu'}, {'age': '[30, 31]', 'ill': 'flu'}]
    >>> [row["age"] for row in stream.flush()]
    ['[70, 71]', '[70, 71]']
    """

    name: ClassVar[str] = "castle"

    def __init__(
        self,
        schema: Schema,
        k: int | None = None,
        delta: int | str = 10_000,
        l: int | None = None,
        eta: int = 50,
        mu: int = 100,
        reuse: bool | str = False,
        models: Sequence[Model] | None = None,
        order: str = "batch",
        seed: int | None = None,
        clock: Clock | str | None = None,
    ) -> None:
        super().__init__(schema, k, delta, l, models, seed, clock)
        if any(model.reference is not None for model in self.models):
            raise BadInput("castle compares with no declared reference", right="use KnitStream or KnnStream, which do")
        choice("reuse", reuse, (False, True, "held"))
        choice("order", order, ("batch", "input"))
        self.reuse, self.order = reuse, order
        axes = self.coder.axes
        self.clusters = Clusters(axes, len(schema.quasi), whole("eta", eta, 1, MOST), self.judge.by_person)
        self.omega = Omega(axes, STORED * eta, self.delta)
        self.recent: deque[float] = deque(maxlen=whole("mu", mu, 1, MOST))
        self.tau = 0.0
        self._held: list[tuple[int, int, Emission]] = []  # a heap: the batch with the oldest row first

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes for the certificate on `reuse` and `order`."""
        alone = (
            f"reuse=True: {self.counters.reused:,} rows were published alone, with a generalization that was published before: "
            "an adversary who knows when a person arrived has one candidate, and a merged row was in no stored generalization"
        )
        ordered = "order='input': batches are in the order of their oldest row, which reveals which of two began earlier"
        return (*([alone] if self.reuse is True else []), *([ordered] if self.order == "input" else []))

    def _oldest(self) -> int | None:
        return self.clusters.head

    def _take(self, rows: Arrivals, first: int, span: tuple[int, int]) -> None:
        self.clusters.add(rows, first, span, self.tau)

    def _expire(self, y: int) -> Iterator[Emissions]:
        yield from self._expire_cluster(self.clusters.oldest, y)
        yield from self._release_held()

    def _expire_cluster(self, c: int, y: int) -> Iterator[Emissions]:
        """EXPIRE: y, in cluster c, must be published."""
        if self._valid([c]):
            yield from self._output(self._add_expiring([c]))
        elif (reused := self._reuse_stored(c, y)) is not None:
            yield from self._emit_in_order([reused])
        elif (parts := self._merge_clusters(c)) is not None:
            yield from self._output(self._add_expiring(parts))
        else:
            self._remove(c, np.array([y]))
            self._suppress(np.array([y]))

    def _merge_clusters(self, c: int) -> list[int] | None:
        """Cluster c and as many others, each enlarging it least, as form a class; None if even all of them do not."""
        everything = list(range(len(self.clusters)))
        if self.clusters.person_count < self.k or (self.judge.grows and not self._valid(everything)):
            return None
        order = self.clusters.merging_order(c).tolist()
        persons = np.cumsum(self.clusters.open.persons[order])
        for last in range(int(np.searchsorted(persons, self.k)), len(order)):
            if self._valid(order[: last + 1]):
                return sorted(order[: last + 1])
        return None

    def _add_expiring(self, numbers: list[int]) -> list[int]:
        """These clusters and those that would remain too few, and expire before k more rows arrive."""
        rest = [c for c in range(len(self.clusters)) if c not in numbers]
        if self.timed or not rest or self._valid(rest):
            return numbers
        late = [c for c in rest if self.clusters.open.head[c] + self.delta < self.handled + self.k]
        more = sorted([*numbers, *late])
        return more if self.judge.grows or self._valid(more) else numbers

    def _output(self, numbers: list[int]) -> Iterator[Emissions]:
        """OUTPUT: publish these clusters, merged, in as many classes as they can be split into."""
        positions = self._members(numbers)
        self.clusters.drop(numbers, self.pending)
        quasi, persons = self.pending.quasi(positions), self.pending.persons(positions)
        class_of, count = self._split(positions)
        lo, hi = boxes_of(quasi, class_of, count)
        classes = [class_of == part for part in range(count)]
        for part, mine in enumerate(classes):
            loss = float(box_cost(self.coder.axes, lo[part], hi[part]))
            self.recent.append(loss)
            self.tau = sum(self.recent) / len(self.recent)
            if self.reuse and (loss <= self.tau + NEAR or not self.omega.all):
                secrets, oldest = self.pending.secrets(positions[mine]), int(positions[mine][0])
                self.omega.store(StoredBox(lo[part], hi[part], self._time, persons[mine], secrets, oldest), self._time)
        yield from self._emit_in_order([Emission(positions[mine], at=self.handled) for mine in classes])

    def _split(self, positions: Ints) -> tuple[Ints, int]:
        """SPLIT: the class of each row, and their number; one if some class would not meet the guarantees."""
        whole_one = np.zeros(len(positions), np.int64), 1
        persons = self.pending.persons(positions)
        if self.judge.heads(persons) < 2 * self.k:
            return whole_one
        axes, quasi, draw = self.coder.axes, self.pending.quasi(positions), self.choice("split", int(positions[0]))
        diverse = next((model for model in self.judge.models if model.least_values), None)
        if diverse is None:
            splits = [split_k(axes, quasi, persons, self.k, draw)]
        else:
            values = self.pending.secrets(positions)[:, list(self.schema.sensitive).index(str(diverse.column))]
            splits = split_l(axes, quasi, persons, values, self.k, diverse.least_values, draw)
        return next((split for split in splits if self._all_hold(positions, *split)), whole_one)

    def _all_hold(self, positions: Ints, class_of: Ints, count: int) -> bool:
        return all(self._holds(positions[class_of == part]) for part in range(count))

    def _reuse_stored(self, c: int, y: int) -> Emission | None:
        """y, or with "held" all rows that share a stored generalization with it, published with that."""
        if not self.reuse:
            return None
        known = self.omega.covering(self.pending.quasi(np.array([y]))[0], self._time)
        fit = [(stored, rows) for stored in known if (rows := self._find_sharing(stored, y)) is not None]
        if not fit:
            return None
        stored, positions = fit[int(self.choice("reuse", y).integers(len(fit)))]
        if self.reuse is True:
            self.counters.reused += 1
            stored.persons = np.concatenate([stored.persons, self.pending.persons(positions)])
            stored.secrets = np.concatenate([stored.secrets, self.pending.secrets(positions)])
            self._remove(c, positions)
        else:
            for other in range(len(self.clusters) - 1, -1, -1):
                self._remove(other, positions)
        return Emission(positions, (stored.lo, stored.hi), at=self.handled, joins=self.reuse is True)

    def _find_sharing(self, stored: StoredBox, y: int) -> Ints | None:
        """Positions that may be published with a stored generalization now; None if the guarantees forbid it."""
        if self.reuse is True:
            if self.pending.is_pending(stored.oldest):  # held, so not published yet
                return None
            rows = np.array([y])
            persons = np.concatenate([stored.persons, self.pending.persons(rows)])
            return rows if self.judge(persons, np.concatenate([stored.secrets, self.pending.secrets(rows)])) else None
        small = [other for other in range(len(self.clusters)) if not self._valid([other])]
        rows = self._members(small)
        rows = rows[inside(self.coder.axes, stored.lo, stored.hi, self.pending.quasi(rows))]
        return rows if self._holds(rows) else None

    def _end(self) -> Iterator[Emissions]:
        while (small := [c for c in range(len(self.clusters)) if not self._valid([c])]) != []:
            c = min(small, key=lambda number: int(self.clusters.open.head[number]))
            if len(self.clusters) > 1 and self._valid(list(range(len(self.clusters)))):
                one, other = sorted(self.clusters.merging_order(c)[:2].tolist())
                rows = self._members([one, other])
                self.clusters.drop([other], self.pending)
                self.clusters.hold(one, rows, self.pending)
                continue
            yield from self._flush_cluster(c)
        while len(self.clusters):
            yield from self._output([0])
        yield from self._release_held()

    def _flush_cluster(self, c: int) -> Iterator[Emissions]:
        """Rows that fit no class: reused if they are covered, else suppressed."""
        rows = self.clusters.members(c)
        for y in rows.tolist():
            if self.reuse is True and (reused := self._reuse_stored(c, y)) is not None:
                yield from self._emit_in_order([reused])
            else:
                self._remove(c, np.array([y]))
                self._suppress(np.array([y]))

    def _valid(self, numbers: list[int]) -> bool:
        """Whether these clusters together meet every guarantee."""
        everything = len(numbers) == len(self.clusters)
        persons = self.clusters.person_count if everything else int(self.clusters.open.persons[numbers].sum())
        if persons < self.k:
            return False
        if not self.judge.models and (everything or len(numbers) == 1 or not self.judge.by_person):
            return True
        return self._holds(self._members(numbers))

    def _members(self, numbers: list[int]) -> Ints:
        return np.sort(np.concatenate([np.empty(0, np.int64), *(self.clusters.members(c) for c in numbers)]))

    def _remove(self, c: int, positions: Ints) -> None:
        """REMOVE: shrink the cluster, and drop it if it is empty."""
        rows = self.clusters.members(c)
        if len(positions) == 1 and positions[0] == rows[0]:
            self.clusters.remove(c, rows[:1], rows[1:], self.pending)
        elif (gone := np.isin(rows, positions)).any():
            self.clusters.remove(c, rows[gone], rows[~gone], self.pending)

    def _emit_in_order(self, classes: list[Emission]) -> Iterator[Emissions]:
        """At once, or with `order="input"` when every older row is published."""
        if self.order == "batch":
            yield from classes if classes[0].box is not None else [classes]
        else:
            for each in classes:
                heappush(self._held, (int(each.positions[0]), 0, each))

    def _release_held(self) -> Iterator[Emissions]:
        while self._held and self._held[0][0] == self.pending.first:
            yield replace(heappop(self._held)[2], at=self.handled)

    def _secrets_in_use(self) -> Ints:
        return np.concatenate([super()._secrets_in_use(), *(stored.secrets for stored in self.omega.all)])

    def _state(self) -> dict[str, Any]:
        held = [(each.positions, each.box, each.joins) for _, _, each in self._held]
        own = {"clusters": self.clusters.state(), "omega": self.omega.state(), "recent": list(self.recent), "held": held}
        return super()._state() | own

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.clusters.restore(state["clusters"], self.pending)
        self.omega.restore(state["omega"])
        self.recent.extend(state["recent"])
        self.tau = sum(self.recent) / len(self.recent) if self.recent else 0.0
        for positions, box, joins in state["held"]:
            heappush(self._held, (int(positions[0]), 0, Emission(positions, box, joins=joins)))

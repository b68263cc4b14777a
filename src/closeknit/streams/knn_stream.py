"""`KnnStream`: a row whose delay is over is published with the nearest pending rows, as one class of `k` persons.

Gives the same guarantees as `Castle`, without clusters, `eta`, `tau` and `mu`, and never publishes a single row.

Source: our own variant of CASTLE (the thesis on SABRE and BUREL, ch. 5), after the idea of gathering near rows at expiry.
When y expires: the nearest row of each of the k - 1 nearest other persons; if diversity is requested, then the nearest rows
with values that the class does not have yet, of new persons first, until the guarantees hold; and if new values alone do not
help, the nearest rows of each value in turn. At the end, a class takes all rows if fewer than a class would remain. Rows are
sorted before they are published, so that y cannot be recognised.

Cost: delta columns per class. Memory: delta + 1 rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.kinds import Numeric
from closeknit.core.model import Model
from closeknit.core.schema import Schema
from closeknit.core.table import WrittenTable
from closeknit.kernels.streaming.castle import distances
from closeknit.models.declared_reference import weigh_values
from closeknit.streams.arrivals import Arrivals, Ints, value_text
from closeknit.streams.delayed_stream import Clock, DelayedStream
from closeknit.streams.drift import UndeclaredValue
from closeknit.streams.stream import Emission, Emissions

OTHER = "other"  # a value of a declared reference: as it are published all values that the reference does not have


class KnnStream(DelayedStream):
    """A row and its nearest neighbours.

    Args:
        schema: roles and kinds of the columns; every quasi domain must be declared.
        k: the fewest persons of a class.
        delta: the longest delay, in rows (10_000) or as a time ("5m").
        l: the fewest distinct values of the only sensitive column in a class.
        models: further guarantees about classes.
        seed: makes all choices reproducible; by default they are random.
        clock: a function that returns seconds, or "tick"; used if `delta` is a time.

    >>> from closeknit.core.kinds import flat, numeric
    >>> schema = Schema(quasi={"age": numeric(0, 100)}, sensitive={"ill": flat()}, person="name")
    >>> stream = KnnStream(schema, k=2, delta=3, seed=1)
    >>> for age, name in ((30, "Ann"), (70, "Bob"), (31, "Cid"), (71, "Dan")):
    ...     left = stream.push({"age": age, "name": name, "ill": "flu"})
    >>> [row["age"] for row in left], [row["age"] for row in stream.flush()]
    (['[30, 31]', '[30, 31]'], ['[70, 71]', '[70, 71]'])
    """

    name: ClassVar[str] = "knn_stream"

    def __init__(
        self,
        schema: Schema,
        k: int | None = None,
        delta: int | str = 10_000,
        l: int | None = None,
        models: Sequence[Model] | None = None,
        seed: int | None = None,
        clock: Clock | str | None = None,
    ) -> None:
        super().__init__(schema, k, delta, l, models, seed, clock)
        self._declared = [each for model in self.models if (each := _declare_weights(self.schema, model)) is not None]

    def _oldest(self) -> int | None:
        first = self.pending.first
        return first if first <= self.handled and first < self.pending.end else None

    def _take(self, rows: Arrivals, first: int, span: tuple[int, int]) -> None:
        """The rows are pending already."""

    def blocks_of(self, columns: Columns) -> Iterator[WrittenTable]:
        """As `Stream`; a table with a value that is not declared is refused before any of its rows is accepted.

        Args:
            columns: the rows that arrive.
        """
        if self._declared:
            self._map_undeclared(self.coder.encode(columns, self.position))
        yield from super().blocks_of(columns)

    def _accept(self, rows: Arrivals) -> Iterable[Emissions]:
        mapped, count = self._map_undeclared(rows)
        self.counters.as_other += count
        return super()._accept(mapped)

    def _map_undeclared(self, rows: Arrivals) -> tuple[Arrivals, int]:
        """Rows whose value a declared reference does not have get the value "other" if it has that, or stop the stream.

        To leave them out would suppress rows for their sensitive value, which whoever looks for a person would notice.
        """
        mapped = np.zeros(len(rows), dtype=bool)
        for j, weights in self._declared:
            name = list(self.schema.sensitive)[j]
            _, at, where = np.unique(rows.secrets[:, j], return_index=True, return_inverse=True)
            strange = np.array([_render_value(cell) not in weights for cell in rows.cells[name][at].tolist()], dtype=bool)[
                where
            ]
            if not strange.any():
                continue
            if OTHER not in weights:
                right = "begin a new stream with a reference that declares it, or that has 'other', as which it is published"
                what = "the declared reference does not have the value of a row, and no row is left out for its value"
                raise UndeclaredValue(
                    what, column=name, row=int(np.argmax(strange)) + 1 if len(rows) > 1 else None, right=right
                )
            cells, secrets = rows.cells[name].copy(), rows.secrets.copy()
            cells[strange], secrets[strange, j] = OTHER, self.coder.secret_digest(OTHER)
            rows = replace(rows, secrets=secrets, cells={**rows.cells, name: cells})
            mapped |= strange
        return rows, int(mapped.sum())

    def _expire(self, y: int) -> Iterator[Emissions]:
        waiting = self._waiting()
        rows = self._gather_rows(waiting)
        if rows is None:
            self._suppress(np.array([y]))
        else:
            yield Emission(waiting[rows], at=self.handled)

    def _end(self) -> Iterator[Emissions]:
        while len(waiting := self._waiting()) and self._holds(waiting):
            rows = self._gather_rows(waiting)
            if rows is not None and len(remaining := np.delete(waiting, rows)) and not self._holds(remaining):
                rows = None
            yield Emission(waiting if rows is None else waiting[rows], at=self.handled)

    def _gather_rows(self, waiting: Ints) -> Ints | None:
        """y and the waiting rows published with it, ascending; None if no choice meets the guarantees."""
        persons, secrets = self.pending.persons(waiting), self.pending.secrets(waiting)
        if self.judge.heads(persons) < self.k or (self.judge.grows and not self.judge(persons, secrets)):
            return None
        quasi = self.pending.quasi(waiting)
        far = distances(self.coder.axes, np.ascontiguousarray(quasi.T), quasi[0])
        far[0] = -1.0
        nearest = np.argsort(far, kind="stable")
        chosen = self._first_per_person(nearest, persons)[: self.k]
        while not self.judge(persons[chosen], secrets[chosen]):
            more = self._next_value(nearest, chosen, persons, secrets)
            if more is None:
                return self._take_in_turn(nearest, persons, secrets)
            chosen = np.append(chosen, more)
        return np.sort(chosen)

    def _first_per_person(self, nearest: Ints, persons: Ints) -> Ints:
        if not self.judge.by_person:
            return nearest
        _, first = np.unique(persons[nearest], return_index=True)
        return nearest[np.sort(first)]

    def _next_value(self, nearest: Ints, chosen: Ints, persons: Ints, secrets: Ints) -> int | None:
        """The nearest row with a value that is not chosen yet, if possible of a person who is not chosen yet."""
        for _, j in self.judge.columns:
            fresh = nearest[~np.isin(secrets[nearest, j], secrets[chosen, j])]
            others = fresh[~np.isin(persons[fresh], persons[chosen])]
            if len(fresh):
                return int((others if len(others) else fresh)[0])
        return None

    def _take_in_turn(self, nearest: Ints, persons: Ints, secrets: Ints) -> Ints | None:
        """The nearest rows, each value in turn, twice as many each time, until they meet the guarantees.

        A value with twice the declared share has its turn twice as often.
        """
        column = self._declared[0][0] if self._declared else self.judge.columns[0][1]
        values = secrets[nearest, column]
        by_value = np.argsort(values, kind="stable")
        ranked = values[by_value]
        turn = np.empty(len(values), np.float64)
        turn[by_value] = np.arange(len(values)) - np.searchsorted(ranked, ranked)
        if self._declared:
            shown, weights = self.judge.shown[list(self.schema.sensitive)[column]], self._declared[0][1]
            turn = (turn + 0.5) / np.array([weights[_render_value(shown[digest])] for digest in values.tolist()])
        order = nearest[np.argsort(turn, kind="stable")]
        size = max(self.k, len(np.unique(values)))
        while True:
            if self.judge(persons[order[:size]], secrets[order[:size]]):
                return np.sort(order[:size])
            if size >= len(order):
                return None
            size = min(2 * size, len(order))

    def _waiting(self) -> Ints:
        """Rows up to the one being handled; a block may have more."""
        positions = self.pending.positions()
        return positions[: int(np.searchsorted(positions, self.handled, side="right"))]


def _declare_weights(schema: Schema, model: Model) -> tuple[int, dict[str, int]] | None:
    """The place of the sensitive attribute, and the weight of each of its values that a guarantee declares."""
    reference = model.reference
    if reference is None or not isinstance(model.column, str):
        return None
    kind = schema.sensitive[model.column]
    none = Classes.of(np.zeros(0, dtype=np.int32), 0, {model.column: (np.zeros(0, dtype=np.int32), kind.declared_domain)})
    model.refuse(none)
    by_number = isinstance(kind, Numeric) and not kind.bins
    weights = {_render_value(float(value) if by_number else value): weight for value, weight in weigh_values(reference).items()}
    return list(schema.sensitive).index(model.column), weights


def _render_value(cell: Any) -> str:
    """The text of a published value; the same for equal numbers."""
    return "" if cell is None else value_text(float(cell) if isinstance(cell, int) else cell)

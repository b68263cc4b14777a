"""`KnitStream`: rows wait until the oldest is nearly due, then all of them are cut into classes, a few at a time.

Guarantees, after every batch: each published class has k persons and meets every other requested guarantee; a row is published
at the latest while the row `delta` positions later is handled; each row is published once or counted as suppressed.

Invariant: every *piece*, a set of waiting rows that may still be cut, meets all guarantees. The first piece is all waiting
rows, if they do. A piece is replaced by two only if both meet them, and is published whole. So whatever is published meets
them, whenever that happens (`docs/knit_stream.md`).

Source: our own. The cuts are Mondrian's (LeFevre et al. 2006), and in small pieces boxes of several columns
(`kernels.streaming.peeled_boxes`). They are chosen by the loss that both sides are expected to have after further cuts, and
followed by further cuts (`kernels.streaming.looking_cuts`). A large piece chooses its cut by a sample.
A small piece is cut into all its classes at once, and these exchange rows (`kernels.streaming.polishing`); if
a class then does not meet a guarantee, they stay as they were cut. Rows that cannot form a class at that time wait until they
are due, and are then published with their nearest waiting rows as in `KnnStream`, or suppressed.

Cost: log2(delta / k) cuts of every row and `SWEEPS` offers to the other classes of its piece, spread over the last 1 / `PHASE`
of the delay. Memory: delta + 1 rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.model import Model
from closeknit.core.params import whole
from closeknit.core.schema import Schema
from closeknit.kernels.geometry.declared_axes import range_costs
from closeknit.kernels.streaming.looking_cuts import LARGE, keep_orders, propose_cuts
from closeknit.kernels.streaming.polishing import polish_classes
from closeknit.streams.arrivals import Ints, Reals
from closeknit.streams.delayed_stream import Clock
from closeknit.streams.knn_stream import KnnStream
from closeknit.streams.splitting import number_codes
from closeknit.streams.stream import Emission, Emissions

Flags = NDArray[np.bool_]

PHASE, LONG_PHASE = 128, 32  # a cut takes the last 1 / PHASE of the delay; 1 / LONG_PHASE of a time, when rows may be rare
LEAST_PHASE = 16  # rows over which a cut is spread, but at most 1 / LONG_PHASE of the delay
SLICES = 256  # steps in which rows are cut and published
SAMPLED = 1024  # the most rows by which a cut is chosen; twice as many where k is large
TRIES, TRIES_LARGE = 6, 3  # cuts that are followed by default, and where k is large
POOLED, SWEEPS = 8, 3  # classes among which rows are exchanged, where k is large, and how often each row is tried
EVERY_ROW = np.empty(0, np.int64)  # in place of the numbers of persons


@dataclass(frozen=True, eq=False)
class Piece:
    """Waiting rows that meet all guarantees together.

    Args:
        positions: their positions, ascending.
        formed: whether they are a class, which is not cut further.
        rows: their quasi-identifiers, or those of a sample, once they are needed.
        orders: for each column the order of these rows.
    """

    positions: Ints
    formed: bool = False
    rows: Reals | None = None
    orders: Ints | None = None

    def sample(self, most: int) -> Ints:
        """Positions by which a cut is chosen: all, or evenly spaced ones."""
        return self.positions[:: -(-len(self.positions) // most)]

    def take(self, inside: Flags) -> Piece:
        """Some of its rows."""
        positions = self.positions[inside]
        if self.rows is None or self.orders is None or len(self.rows) < len(inside):
            return Piece(positions)
        return Piece(positions, False, self.rows[inside], keep_orders(self.orders, inside))


class KnitStream(KnnStream):
    """All waiting rows, cut into classes with little loss.

    Args:
        schema: roles and kinds of the columns; every quasi domain must be declared.
        k: the fewest persons of a class.
        delta: the longest delay, in rows (10_000) or as a time ("5m").
        l: the fewest distinct values of the only sensitive column in a class.
        models: further guarantees about classes.
        tries: cuts of a piece that are followed before one is chosen, by default 3 from k = 50 and 6 below; more take longer.
        seed: makes all choices reproducible; by default they are random.
        clock: a function that returns seconds, or "tick"; used if `delta` is a time.

    >>> from closeknit.core.kinds import flat, numeric
    >>> schema = Schema(quasi={"age": numeric(0, 100)}, sensitive={"ill": flat()}, person="name")
    >>> stream = KnitStream(schema, k=2, delta=3, seed=1)
    >>> for age, name in ((30, "Ann"), (70, "Bob"), (31, "Cid"), (71, "Dan")):
    ...     left = stream.push({"age": age, "name": name, "ill": "flu"})
    >>> [row["age"] for row in left]
    ['[30, 31]', '[30, 31]', '[70, 71]', '[70, 71]']
    """

    name: ClassVar[str] = "knit_stream"

    def __init__(
        self,
        schema: Schema,
        k: int | None = None,
        delta: int | str = 10_000,
        l: int | None = None,
        models: Sequence[Model] | None = None,
        tries: int | None = None,
        seed: int | None = None,
        clock: Clock | str | None = None,
    ) -> None:
        super().__init__(schema, k, delta, l, models, seed, clock)
        large = self.k >= LARGE
        self.tries = whole("tries", tries, least=0) if tries is not None else TRIES_LARGE if large else TRIES
        self.sampled = 2 * SAMPLED if large else SAMPLED
        longest = self.delta / LONG_PHASE if self.timed else self.delta // LONG_PHASE
        self.phase = longest if self.timed else min(longest, max(LEAST_PHASE, self.delta // PHASE))
        self.pooled = max(self.sampled, POOLED * self.k)
        self.pieces: list[Piece] = []  # the last one is cut first
        self.began = 0.0  # when the first piece was formed: a position, or seconds
        self.rows = self.left = 0  # of the first piece: its rows, and those that are not yet published
        self.tried = -1  # the oldest row when all waiting rows were last considered

    def _alarm(self, arrived: float) -> float:
        if self.pieces:
            return -np.inf if self.timed else self.handled + self._gap - (self.handled - self.began) % self._gap
        return arrived + self.delta - (0 if self._oldest() == self.tried else self.phase)

    def _work(self) -> Iterator[Emissions]:
        y = self._oldest()
        if (
            not self.pieces
            and y is not None
            and y != self.tried
            and self._arrival_of(y) + self.delta - self.phase <= self._time
        ):
            self._begin(y)
        if self.pieces and (self.timed or (self.handled - self.began) % self._gap == 0):
            yield from self._cut((self._time - self.began) / self.phase if self.phase else 1.0)

    def _expire(self, y: int) -> Iterator[Emissions]:
        if not self.pieces:
            self._begin(y)
        if self.pieces:
            yield from self._cut(1.0)
        else:
            yield from super()._expire(y)

    def _end(self) -> Iterator[Emissions]:
        yield from self._cut(1.0)
        if len(waiting := self._waiting()):
            self._begin(int(waiting[0]))
        yield from self._cut(1.0)
        yield from super()._end()

    def _begin(self, y: int) -> None:
        """Make all waiting rows the first piece, if they meet the guarantees; y is the oldest."""
        self.tried, waiting = y, self._waiting()
        if self._holds(waiting):
            self.pieces, self.began, self.rows, self.left = [Piece(waiting)], self._time, len(waiting), len(waiting)

    def _cut(self, share: float) -> Iterator[list[Emission]]:
        """Cut pieces until this share of the rows is published."""
        classes = []
        while self.pieces and self.rows - self.left < min(share, 1.0) * self.rows:
            piece = self.pieces.pop()
            if not piece.formed:
                self.pieces += self._divide(piece)
                continue
            self.left -= len(piece.positions)
            classes.append(Emission(piece.positions, at=self.handled))
        if classes:
            self._note_wait(classes)
            yield classes

    def _divide(self, piece: Piece) -> list[Piece]:
        """The classes of a piece if it is small, otherwise its two sides."""
        if len(piece.positions) > self.pooled and (sides := self._halve(piece)) is not None:
            return [Piece(side.positions) for side in sides]
        classes, uncut = [], [piece]
        while uncut:
            part = uncut.pop()
            if (sides := self._halve(part)) is not None:
                uncut += sides
            else:
                classes.append(part.positions)
        return [Piece(positions, formed=True) for positions in reversed(self._polish(classes))]

    def _halve(self, piece: Piece) -> list[Piece] | None:
        """Both sides of the best cut whose sides meet the guarantees; None if there is none."""
        size = len(piece.positions)
        if size < 2 * self.k:
            return None
        piece = self._load(piece)
        assert piece.rows is not None and piece.orders is not None
        person_of, sampled = EVERY_ROW, len(piece.rows) < size
        if self.judge.by_person:
            person_of = number_codes(self.pending.persons(piece.sample(self.sampled)))[0]
        share = len(piece.rows) / size
        order, sides, bounds = propose_cuts(self.coder.axes, piece.rows, piece.orders, person_of, self.k, share, self.tries)
        for cut in order.tolist():
            inside = self._find_inside(piece.positions, *bounds[cut]) if sampled else sides[cut]
            if self._allows(piece.positions, inside.astype(np.int64), 2):
                return [piece.take(~inside), piece.take(inside)]
        return None

    def _find_inside(self, positions: Ints, lo: Reals, hi: Reals) -> Flags:
        """Which rows are between two values of each column."""
        inside = np.ones(len(positions), dtype=bool)
        for j in np.flatnonzero((lo > -np.inf) | (hi < np.inf)).tolist():
            values = self.pending.quasi_values(positions, j)
            inside &= (values >= lo[j]) & (values <= hi[j])
        return inside

    def _load(self, piece: Piece) -> Piece:
        """With rows and orders. Rows of equal value are in the order of the costliest column, then of the next; rows that are
        equal in all columns in a random order, because a cut may divide them.
        """
        if piece.rows is not None:
            return piece
        sample, axes = piece.sample(self.sampled), self.coder.axes
        ties = np.arange(len(sample))
        rows = self.pending.quasi(sample)
        columns = [_narrow(column) for column in np.ascontiguousarray(rows.T)]
        if len(sample) == len(piece.positions):
            ties = self.choice("ties", int(sample[0]), len(sample)).permutation(len(sample))
            costs = range_costs(axes, rows.min(axis=0)[None], rows.max(axis=0)[None])[0] * axes.weight
            ties = ties[np.lexsort([columns[j][ties] for j in np.argsort(costs, kind="stable")])]
        return replace(piece, rows=rows, orders=np.stack([ties[np.argsort(each[ties], kind="stable")] for each in columns]))

    def _polish(self, classes: list[Ints]) -> list[Ints]:
        """The classes after rows have moved between them, if they still meet the guarantees."""
        if len(classes) == 1:
            return classes
        positions, class_of = np.concatenate(classes), np.repeat(np.arange(len(classes)), [len(each) for each in classes])
        person_of = number_codes(self.pending.persons(positions))[0] if self.judge.by_person else EVERY_ROW
        rows = self.pending.quasi(positions)
        if not polish_classes(self.coder.axes, rows, person_of, class_of, len(classes), self.k, SWEEPS):
            return classes
        if not self._allows(positions, class_of, len(classes)):
            return classes
        order = np.lexsort((positions, class_of))
        return np.split(positions[order], np.cumsum(np.bincount(class_of))[:-1])

    def _allows(self, positions: Ints, class_of: Ints, count: int) -> bool:
        return self.judge.allows(self.pending.persons(positions), self.pending.secrets(positions), class_of, count)

    def _note_wait(self, classes: list[Emission]) -> None:
        if self.timed and (y := self._oldest()) is not None and any(each.positions[0] == y for each in classes):
            self.counters.wait_most = max(self.counters.wait_most, self.now - self._time_of(y))

    @property
    def _gap(self) -> int:
        """Rows from one slice to the next."""
        return max(1, int(self.phase) // SLICES)

    def _state(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("began", "rows", "left", "tried")}
        return super()._state() | own | {"pieces": [(piece.positions, piece.formed) for piece in self.pieces]}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        for name in ("began", "rows", "left", "tried"):
            setattr(self, name, state[name])
        self.pieces = [Piece(positions, formed) for positions, formed in state["pieces"]]


def _narrow(column: Reals) -> NDArray[Any]:
    """The same order in 16 bits where all values are whole numbers near each other: these are sorted in a third of the time."""
    above = column - column.min()
    if above.max() < 2**16 and (above == (short := above.astype(np.uint16))).all():
        return short
    return column

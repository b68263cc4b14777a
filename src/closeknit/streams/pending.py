"""Pending rows by their position in the stream: a ring, which grows if the delay is in seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Reals
from closeknit.streams.arrivals import Arrivals, Ints

SMALLEST = 64


class Pending:
    """Arrived rows in a ring of slots: position p lies in slot p mod the ring's length.

    >>> rows = Arrivals(np.array([[1.0], [2.0]]), np.array([7, 8]), np.zeros((2, 0), np.int64), {})
    >>> pending = Pending()
    >>> pending.add(rows, first=5)
    >>> pending.take(np.array([6])).persons.tolist(), pending.first, len(pending)
    ([8], 5, 2)
    >>> pending.drop(np.array([5]))
    >>> pending.first, pending.positions().tolist()
    (6, [6])
    """

    def __init__(self) -> None:
        self.first = self.end = 0  # positions: the oldest that may be pending, and the next one
        self._here = np.zeros(SMALLEST, dtype=bool)
        self._rows: Arrivals | None = None

    def __len__(self) -> int:
        return int(self._here.sum())

    def add(self, rows: Arrivals, first: int) -> None:
        """Add the next rows; `first` is the position of the first one."""
        if self.first == self.end:  # empty
            self.first = self.end = first
        self._make_room(first + len(rows) - self.first, rows)
        assert first == self.end
        self._store(np.arange(first, first + len(rows)), rows)
        self.end = first + len(rows)

    def take(self, positions: NDArray[np.integer]) -> Arrivals:
        """The rows at these positions."""
        return self._ring.take(positions & (len(self._here) - 1))

    def quasi(self, positions: NDArray[np.integer]) -> Reals:
        """Only their quasi-identifiers."""
        return self._ring.quasi[positions & (len(self._here) - 1)]

    def quasi_values(self, positions: NDArray[np.integer], j: int) -> Reals:
        """Only one of their quasi-identifiers."""
        return self._ring.quasi[positions & (len(self._here) - 1), j]

    def persons(self, positions: NDArray[np.integer]) -> Ints:
        """Only their persons."""
        return self._ring.persons[positions & (len(self._here) - 1)]

    def secrets(self, positions: NDArray[np.integer]) -> Ints:
        """Only the digests of their sensitive values."""
        return self._ring.secrets[positions & (len(self._here) - 1)]

    def drop(self, positions: NDArray[np.integer]) -> None:
        """Remove these rows."""
        self._here[positions & (len(self._here) - 1)] = False
        while self.first < self.end and not self._here[self.first & (len(self._here) - 1)]:
            ahead = np.arange(self.first, min(self.first + SMALLEST, self.end))
            here = self._here[ahead & (len(self._here) - 1)]
            self.first += int(np.argmax(here)) if here.any() else len(ahead)

    def is_pending(self, position: int) -> bool:
        """Whether the row at a position is pending."""
        return self.first <= position < self.end and bool(self._here[position & (len(self._here) - 1)])

    def positions(self, first: int = 0, end: int | None = None) -> Ints:
        """Positions of all pending rows, oldest first; from `first` up to but not including `end`."""
        span = np.arange(max(first, self.first), self.end if end is None else min(end, self.end))
        return span[self._here[span & (len(self._here) - 1)]]

    def restore(self, positions: Ints, rows: Arrivals | None, first: int, end: int) -> None:
        """Fill an empty ring with the rows of a checkpoint; None if there are none."""
        assert len(self) == 0
        if rows is not None:
            self.first = self.end = first
            self._make_room(end - first, rows)
            self._store(positions, rows)
        self.first, self.end = first, end

    def _store(self, positions: Ints, rows: Arrivals) -> None:
        slots: Any = positions & (len(self._here) - 1)
        if len(slots) == 1:  # a slice is ten times cheaper than an index array
            slots = slice(int(slots[0]), int(slots[0]) + 1)
        self._here[slots] = True
        for mine, new in zip(_arrays(self._ring), _arrays(rows), strict=True):
            mine[slots] = new

    @property
    def _ring(self) -> Arrivals:
        assert self._rows is not None
        return self._rows

    def _make_room(self, span: int, like: Arrivals) -> None:
        """Lengthen the ring to hold this span of positions."""
        length = max(len(self._here), SMALLEST, 1 << (span - 1).bit_length())
        if self._rows is not None and length == len(self._here):
            return
        old, here, positions = self._rows, self._here, self.positions()
        self._rows = Arrivals(
            np.zeros((length, like.quasi.shape[1])),
            np.zeros(length, np.int64),
            np.zeros((length, like.secrets.shape[1]), np.int64),
            {name: np.full(length, None, dtype=object) for name in like.cells},
        )
        self._here = np.zeros(length, dtype=bool)
        self._here[positions & (length - 1)] = True
        if old is not None:
            for mine, before in zip(_arrays(self._rows), _arrays(old), strict=True):
                mine[positions & (length - 1)] = before[positions & (len(here) - 1)]


def _arrays(rows: Arrivals) -> list[NDArray[Any]]:
    return [rows.quasi, rows.persons, rows.secrets, *(rows.cells[name] for name in sorted(rows.cells))]

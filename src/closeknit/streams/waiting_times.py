"""When the waiting rows of a running stream arrived, so that their delay is known in seconds, whatever bounds it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST = 64  # entries


class WaitingTimes:
    """Arrival times by position: one entry for all rows that arrived together.

    >>> times = WaitingTimes()
    >>> for position, now in ((0, 100.0), (3, 101.0), (5, 104.0)):
    ...     times.note(position, now)
    >>> times.sum_waits(np.array([0, 2, 3, 5]))
    11.0
    >>> times.forget(4)
    >>> times.entries().tolist()
    [[3.0, 101.0], [5.0, 104.0]]
    """

    def __init__(self, entries: NDArray[np.float64] | None = None) -> None:
        known = np.empty((0, 2)) if entries is None else entries
        self.now = float(known[-1, 1]) if len(known) else 0.0
        self._entries, self._first, self._end = known.copy(), 0, len(known)  # position of the first row, and its time

    def note(self, position: int, now: float) -> None:
        """Rows from this position on arrive now, until another time is noted.

        Args:
            position: the position of the next row.
            now: the time in seconds.
        """
        self.now = max(now, self.now)
        if self._end > self._first and self._entries[self._end - 1, 0] == position:
            self._end -= 1  # no row arrived at the time before
        if self._end == len(self._entries):
            kept = self.entries()
            self._entries = np.empty((max(2 * len(kept), LEAST), 2))
            self._entries[: len(kept)] = kept
            self._first, self._end = 0, len(kept)
        self._entries[self._end] = position, self.now
        self._end += 1

    def sum_waits(self, positions: NDArray[np.integer]) -> float:
        """How long these rows have waited, in seconds, summed.

        Args:
            positions: their positions.
        """
        known = self.entries()
        place = np.maximum(np.searchsorted(known[:, 0], positions, side="right") - 1, 0)
        return float((self.now - known[place, 1]).sum()) if len(known) else 0.0

    def forget(self, first: int) -> None:
        """Drop the times of rows before a position.

        Args:
            first: the oldest position that may still wait.
        """
        self._first += max(int(np.searchsorted(self.entries()[:, 0], first, side="right")) - 1, 0)

    def entries(self) -> NDArray[np.float64]:
        """The position and time of each entry, oldest first."""
        return self._entries[self._first : self._end]

"""The time of a running stream: it elapses evenly, whatever the clock of the machine is set to.

A clock that is set back would extend the delay of all waiting rows, and one that is set forward would make them due at once. So
between two readings the time advances by what a clock that cannot be set has measured. Only after a restart is the wall clock
compared with the time in the checkpoint, and the later of the two counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

JUMP = 1.0  # seconds by which the wall clock must deviate to be counted


def read_steady() -> float:
    """Seconds of a clock that cannot be set and that also counts while the machine sleeps, where there is one.

    >>> read_steady() <= read_steady()
    True
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class RunClock:
    """A clock that never decreases, and the jumps of the wall clock.

    Args:
        wall: returns the time in seconds; it can be set.
        steady: returns seconds that elapse; by default a clock of the machine if `wall` is one, else `wall`, whose steps
            forward then count as time that passed.

    >>> walls, steady = iter([1000.0, 1005.0, 405.0, 9410.0]), iter([7.0, 12.0, 12.0, 17.0])
    >>> clock = RunClock(lambda: next(walls), lambda: next(steady))
    >>> [clock.read(0.0) for _ in range(4)]
    [(1000.0, 0.0), (1005.0, 0.0), (1005.0, 600.0), (1010.0, 9000.0)]
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] | None = None) -> None:
        self._wall, self._steady = wall, steady or (read_steady if wall is time.time else None)
        self._last: tuple[float, float, float] | None = None  # the time, and the readings of both clocks

    def read(self, least: float) -> tuple[float, float]:
        """The time, and by how many seconds the wall clock jumped since the last reading; 0 if it did not.

        Args:
            least: a time that has passed already.
        """
        wall = self._wall()
        steady = self._steady() if self._steady else wall
        if self._last is None:
            now, jump = max(least, wall), max(least - wall, 0.0)
        else:
            then, wall_then, steady_then = self._last
            elapsed = max(steady - steady_then, 0.0)
            now, jump = max(least, then + elapsed), abs(wall - wall_then - elapsed)
        self._last = now, wall, steady
        return now, jump if jump > JUMP else 0.0

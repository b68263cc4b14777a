"""A clock for a search in rounds: how many more fit into the time, by the speed of those done."""

from __future__ import annotations

import time

ENDLESS = 1 << 40  # rounds where no clock decides
CAREFUL = 0.95  # share of the time left that is planned
LATE = 1.25  # times the seconds after which a cycle is dropped: the machine became slower than planned


class RoundClock:
    """Seconds from its creation on; None: no limit.

    >>> RoundClock(None).count_rounds() == ENDLESS, RoundClock(0).count_rounds()
    (True, 0)
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds, self._begun = seconds, time.monotonic()
        self._at, self._each = self._begun, 0.0

    @property
    def used(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self._begun

    def count_rounds(self) -> int:
        """Rounds that fit into the time left; one where none was measured yet. The next cycle begins now."""
        if self.seconds is None:
            return ENDLESS
        self._at = time.monotonic()
        left = self.seconds - (self._at - self._begun)
        return int(left > 0) if self._each == 0.0 else max(int(CAREFUL * left / self._each), 0)

    def end_cycle(self, rounds: int) -> None:
        """So many rounds were done since the cycle began."""
        if self.seconds is not None:
            self._each = max((time.monotonic() - self._at) / rounds, 1e-9)

    def is_late(self) -> bool:
        """Whether the time is long over."""
        return self.seconds is not None and self.used > LATE * self.seconds

    def share(self) -> float:
        """Share of the time that is over, at most 1; 0 without a limit."""
        return 0.0 if not self.seconds else min(self.used / self.seconds, 1.0)

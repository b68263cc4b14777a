"""An output that is down: the same batch is written again and again until it succeeds or patience ends.

Meanwhile nothing is read, so no more rows are held in memory than before: the sender waits (a pipe), or its rows stay where
they are (a file, Redis). A sink raises `SinkDown` only if the same write may be repeated, so no row is lost or doubled. If
patience ends, the run ends with an error, and resumes from its checkpoint when it is started again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from closeknit.core.errors import BadInput
from closeknit.streams.counters import Counters
from closeknit.streams.run_clock import read_steady
from closeknit.streams.sinks import SinkDown

SHORT, LONG = 0.1, 5.0  # seconds between two attempts: at first, and at most
SLOW = 1.0  # seconds that a write may take before it counts as an outage
log = logging.getLogger("closeknit.streams")


@dataclass(frozen=True)
class Outages:
    """Writes that may have to be repeated, and how long they took.

    Args:
        counters: where outages are counted.
        patience: seconds after which the run ends.
        stopping: whether the run should stop.
        sleep: waits some seconds.
        steady: returns seconds of a clock that cannot be set.

    >>> seconds, failures = iter(range(0, 1000, 50)), iter([True, True, False])
    >>> def write():
    ...     if next(failures):
    ...         raise SinkDown("no space left")
    >>> outages = Outages(Counters(), 3600.0, sleep=lambda seconds: None, steady=lambda: float(next(seconds)))
    >>> outages.write(write), outages.counters.outages, outages.counters.outage_most
    (150.0, 1, 150.0)
    """

    counters: Counters
    patience: float
    stopping: Callable[[], bool] = lambda: False
    sleep: Callable[[float], None] = time.sleep
    steady: Callable[[], float] = read_steady

    def write(self, act: Callable[[], None]) -> float:
        """Write, until it succeeds.

        Args:
            act: writes; it may be repeated if it raises `SinkDown`.

        Returns:
            The seconds that it took.
        """
        began, pause = self.steady(), SHORT
        while True:
            try:
                act()
            except SinkDown as down:
                self._wait(down, self.steady() - began, pause)
                pause = min(2 * pause, LONG)
            else:
                took = self.steady() - began
                if took > SLOW:
                    self._count(took)
                return took

    def _wait(self, down: SinkDown, lasted: float, pause: float) -> None:
        again = "start the same command again with its --checkpoint: it resumes, and no row is lost or doubled"
        if self.stopping() or lasted >= self.patience:
            self._count(lasted)
            why = "stopped" if self.stopping() else "ended"
            raise BadInput(f"the run {why} after the output was down for {lasted:,.1f} seconds ({down.what})", right=again)
        if pause == SHORT:
            log.warning("the output is down (%s); trying again for %s seconds", down.what, f"{self.patience:,.0f}")
        self.sleep(pause)

    def _count(self, took: float) -> None:
        counters = self.counters
        counters.outages += 1
        counters.outage_most, counters.outage_sum = max(counters.outage_most, took), counters.outage_sum + took

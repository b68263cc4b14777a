"""Outages: an output that is down gets the same batch again and again until it succeeds, an input is asked again.

While the output is down nothing is read, so no more rows are held in memory than before: the sender waits (a pipe), or its rows
stay where they are (a file, Redis, a table). While the input is down, rows that become due are published. A
sink raises `SinkDown` and a source `SourceDown` only if the same call may be repeated, so no row is lost or doubled. If
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
from closeknit.streams.sources import Block, Source, SourceDown

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
    (True, 1, 150.0)
    """

    counters: Counters
    patience: float
    stopping: Callable[[], bool] = lambda: False
    sleep: Callable[[float], None] = time.sleep
    steady: Callable[[], float] = read_steady

    def write(self, act: Callable[[], None]) -> bool:
        """Write, until it succeeds.

        Args:
            act: writes; it may be repeated if it raises `SinkDown`.

        Returns:
            Whether the output was down.
        """
        began, pause = self.steady(), SHORT
        while True:
            try:
                act()
            except SinkDown as down:
                lasted = self.steady() - began
                stopped = self.stopping() and pause > SHORT  # not after one attempt, which may find an old connection cut
                if stopped or lasted >= self.patience:
                    self.counters.count_outage(lasted)
                    raise _end_run("output", "stopped" if stopped else "ended", lasted, down) from None
                if pause == SHORT:
                    _warn("output", down, self.patience)
                self.sleep(pause)
                pause = min(2 * pause, LONG)
            else:
                took = self.steady() - began
                if was_down := pause > SHORT or took > SLOW:
                    self.counters.count_outage(took)
                return was_down


class PatientSource:
    """A source that returns no rows while it is down.

    Args:
        source: the source.
        outages: patience, clock and counters.

    >>> class Gone:
    ...     def read(self, wait):
    ...         raise SourceDown("no one answers")
    >>> source = PatientSource(Gone(), Outages(Counters(), 3600.0, sleep=lambda seconds: None))
    >>> source.read(None)
    Block(rows=[], refused=[])
    """

    def __init__(self, source: Source, outages: Outages) -> None:
        self.source, self.outages = source, outages
        self._since: float | None = None  # when it was last found to be down
        self._pause = SHORT

    def read(self, wait: float | None) -> Block | None:
        """As `Source`, but no rows if it is down.

        Args:
            wait: how long to wait for rows.
        """
        try:
            block = self.source.read(wait)
        except SourceDown as down:
            self._wait(down, LONG if wait is None else wait)
            return Block()
        if self._since is not None:
            self.outages.counters.count_outage(self.outages.steady() - self._since, "input_")
            self._since, self._pause = None, SHORT
        return block

    def _wait(self, down: SourceDown, longest: float) -> None:
        outages = self.outages
        now = outages.steady()
        if self._since is None:
            self._since = now
            _warn("input", down, outages.patience)
        if (lasted := now - self._since) >= outages.patience:
            outages.counters.count_outage(lasted, "input_")
            raise _end_run("input", "ended", lasted, down) from None
        outages.sleep(min(self._pause, longest))
        self._pause = min(2 * self._pause, LONG)


def _warn(side: str, down: BadInput, patience: float) -> None:
    log.warning("the %s is down (%s); trying again for %s seconds", side, down.what, f"{patience:,.0f}")


def _end_run(side: str, why: str, lasted: float, down: BadInput) -> BadInput:
    again = "start the same command again with its --checkpoint: it resumes, and no row is lost or doubled"
    return BadInput(f"the run {why} after the {side} was down for {lasted:,.1f} seconds ({down.what})", right=again)

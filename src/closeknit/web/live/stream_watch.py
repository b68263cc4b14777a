"""`StreamWatch`: what the process of a stream reports about it, as one small private file that the server reads.

It contains counts, rates and levels: no row, no cell and no seed.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from closeknit.io.folders import write_whole
from closeknit.release.release_paths import CERTIFICATE
from closeknit.streams.stream_run import StreamRun
from closeknit.web.cases import read_json
from closeknit.web.live.inbox_source import InboxSource

STATUS = "status.json"
SAMPLES = 180  # that the chart shows
EACH = 1.0  # seconds between two samples
RECENT = 10  # samples over which rates and recent delays are measured
PAUSE = 2.0  # seconds between two checkpoints, if rows wait for one
SHARE = 20  # a checkpoint takes at most one part in so many of the time


class Sample(NamedTuple):
    """The counters at a time."""

    at: float
    rows_in: int
    rows_out: int
    delay_sum: int
    pending: int


@dataclass(frozen=True)
class StreamStatus:
    """What a stream has done so far.

    Args:
        at: when this was written.
        ended: whether it is flushed and ended.
        paused: whether it waits because its output is full.
        taken: rows taken from the queue.
        set_aside: rows that were not accepted as rows of this stream: late, repeated, or with a cell that cannot be read.
        counters: rows, classes, delays and loss, as `Counters` counts them.
        longest: the guaranteed delay.
        timed: whether that is in seconds.
        guarantees: text, requested limit, measured level, and whether it is met.
        samples: the counters of the last minutes.
    """

    at: float = 0.0
    ended: bool = False
    paused: bool = False
    taken: int = 0
    set_aside: int = 0
    counters: dict[str, Any] = field(default_factory=dict)
    longest: float | None = None
    timed: bool = False
    guarantees: list[list[str]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def count(self, name: str) -> int:
        """Return a counter; 0 before the process has started."""
        return int(self.counters.get(name, 0))

    @property
    def mean_delay(self) -> float:
        """Mean delay of all published rows, in rows."""
        return self.count("delay_sum") / max(self.count("rows_out"), 1)

    def rate(self, name: str) -> float:
        """Return the rows a second of late.

        >>> samples = [Sample(0.0, 0, 0, 0, 0), Sample(2.0, 300, 200, 900, 100)]
        >>> StreamStatus(samples=samples).rate("rows_in"), StreamStatus(samples=samples).recent_delay
        (150.0, 4.5)
        """
        first, last = self._recent
        return float((getattr(last, name) - getattr(first, name)) / max(last.at - first.at, EACH))

    @property
    def recent_delay(self) -> float | None:
        """Mean delay of the rows published of late, in rows; None if there are none."""
        first, last = self._recent
        rows = last.rows_out - first.rows_out
        return (last.delay_sum - first.delay_sum) / rows if rows else None

    @property
    def _recent(self) -> tuple[Sample, Sample]:
        found = self.samples or [Sample(0.0, 0, 0, 0, 0)]
        return found[-RECENT:][0], found[-1]


class StreamWatch:
    """Writes the status while a stream runs, and lets it save a checkpoint soon after rows have arrived.

    Args:
        folder: the folder of the stream.
        source: its inbox.
        full: whether the output is full.
        every: rows between checkpoints, however fast they arrive.
    """

    def __init__(self, folder: Path, source: InboxSource, full: Callable[[], bool], every: int) -> None:
        self._folder, self._source, self._full, self._every = folder, source, full, every
        self._saved, self._written = 0.0, 0.0
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)

    def __call__(self, run: StreamRun, saved: bool) -> None:
        """As `StreamRun.watch`."""
        now = time.monotonic()
        if saved:
            self._saved = now
            write_whole(self._folder / CERTIFICATE, run.stream.certificate.to_json().encode(), 0o600)
        pause = max(PAUSE, SHARE * self._source.saving)
        run.every = 0 if self._source.uncommitted and now - self._saved > pause else self._every
        if saved or now - self._written > EACH:
            self.write(run)

    def write(self, run: StreamRun) -> None:
        """Write the status."""
        self._written, counters = time.monotonic(), run.stream.counters
        now = Sample(time.time(), counters.rows_in, counters.rows_out, counters.delay_sum, counters.pending)
        if not self._samples or now.at - self._samples[-1].at >= EACH:
            self._samples.append(now)
        status = StreamStatus(
            at=now.at,
            ended=run.stream.ended,
            paused=self._full(),
            taken=self._source.taken,
            set_aside=run.set_aside,
            counters=counters.record(),
            longest=run.stream.longest_delay,
            timed=run.stream.timed,
            guarantees=[guarantee.cells() for guarantee in run.stream.certificate.guarantees],
            samples=list(self._samples),
        )
        hidden = self._folder / f".{STATUS}"
        hidden.write_text(json.dumps(asdict(status)), encoding="utf-8")
        os.replace(hidden, self._folder / STATUS)


def read_status(folder: Path) -> StreamStatus:
    """Read the status of a stream; an empty one if its process has not started yet.

    Args:
        folder: the folder of the stream.
    """
    record = read_json(folder / STATUS)
    if record is None:
        return StreamStatus()
    return StreamStatus(**{**record, "samples": [Sample(*each) for each in record["samples"]]})

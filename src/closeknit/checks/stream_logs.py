"""Runs of a stream under checks: what it publishes after each event, and what it counts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from closeknit.checks.stream_cases import Row, StreamCase
from closeknit.core.columns import Columns

Make = Callable[[Any], Any]  # schema -> stream
SEED = 2**90 + 11


@dataclass(eq=False)
class Log:
    """A run: after each event (a row arrived, time passed, the end) the published batches, and some counters of the stream."""

    stream: Any
    batches: list[tuple[int, list[Row]]] = field(default_factory=list)  # number of the event, and the rows published then
    arrived: list[int] = field(default_factory=list)  # after each event
    now: list[float] = field(default_factory=list)
    published: list[int] = field(default_factory=list)
    suppressed: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    def note(self, arrived: int, now: float, batches: Iterator[Columns]) -> None:
        self.batches += [(len(self.arrived), batch.list_rows()) for batch in batches]
        self.arrived.append(arrived)
        self.now.append(now)
        self.published.append(len(self.rows))
        self.suppressed.append(self.stream.counters.suppressed)
        self.waiting.append(len(self.stream.pending))

    @property
    def rows(self) -> list[Row]:
        """All published rows."""
        return [row for _, batch in self.batches for row in batch]


def build_stream(make: Make, case: StreamCase) -> Any:
    """Return a new stream, ignoring its warnings."""
    with warnings.catch_warnings(action="ignore"):
        return make(case.schema)


def load_stream(stream: Any, path: Path) -> Any:
    """Return the saved stream; a clock cannot be saved."""
    with warnings.catch_warnings(action="ignore"):
        loaded = type(stream).load(path)
    loaded.clock = stream.clock
    return loaded


def events(stream: Any, case: StreamCase) -> Iterator[tuple[int, float]]:
    """Yield the next row (-1: none) and the time; between rows a timed stream receives ticks."""
    now = 0.0
    for i, seconds in enumerate(case.seconds):
        while stream.timed and now < seconds:
            now = min(now + 4.0, seconds)
            yield -1, now
        yield i, now


def as_columns(case: StreamCase, first: int, end: int) -> Columns:
    """Return some rows as `io` would read them."""
    names = [*case.schema.used, *case.schema.identifier]
    return Columns.of({name: [row[name] for row in case.rows[first:end]] for name in names})


@lru_cache(maxsize=4)  # the checks of one case follow one another
def run_stream(make: Make, case: StreamCase) -> Log:
    """Run a stream row by row to the end, and log each batch."""
    log, arrived = Log(build_stream(make, case)), 0
    for i, now in events(log.stream, case):
        if i < 0:
            log.note(arrived, now, log.stream.batches_due(now))
            continue
        arrived += 1
        log.note(arrived, now, log.stream.batches_of(as_columns(case, i, i + 1)))
    log.note(arrived, float("-inf"), log.stream.batches_at_end())
    return log


def push_rows(stream: Any, case: StreamCase) -> Iterator[Row]:
    """Yield the published rows of a stream that gets every row alone, without its end."""
    for i, now in events(stream, case):
        yield from stream.tick(now) if i < 0 else stream.push(case.rows[i])

"""Source -> stream -> sink: a process killed at any instant loses no row and repeats no batch that can be removed.

A checkpoint has a place in the input, a place in the output and the state between them, at one instant. Work after it is
replayed after a kill, with the same positions, batch numbers and choices.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.streams.arrival_order import ArrivalOrder, cells_of
from closeknit.streams.checkpoint_folder import CheckpointFolder, Tick
from closeknit.streams.drift import UndeclaredValue
from closeknit.streams.input_rules import parse_seconds
from closeknit.streams.lines import ArrivedRow, RejectedLine
from closeknit.streams.outages import Outages, PatientSource
from closeknit.streams.run_clock import RunClock
from closeknit.streams.sinks import BufferedSink, Rejects, Sink
from closeknit.streams.sources import Block, Source
from closeknit.streams.stream import Stream
from closeknit.streams.waiting_times import WaitingTimes

PATIENCE = 0.2  # seconds of silence after which a stream with a delay in seconds gets a tick


@dataclass
class StreamRun:
    r"""One run of a stream, begun with `begin` or `resume`.

    Args:
        stream: the stream.
        source: its input.
        sink: its output.
        order: which rows are accepted.
        rejects: where rejected lines are written.
        clock: returns the time in seconds, or a clock that no one can set.
        folder: where checkpoints are written; None for none.
        every: rows between checkpoints.
        strict: whether a rejected line ends the run.
        stopping: whether the run should stop.
        watch: called with the run after each block, and with True after each checkpoint.
        number: the number of the last checkpoint.
        batches: the number of the last batch written.
        set_aside: the number of rejected lines.
        first_aside: the first one of this run, and the reason.

    >>> import tempfile, time
    >>> from pathlib import Path
    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.core.schema import Schema
    >>> from closeknit.streams.castle import Castle
    >>> from closeknit.streams.sinks import FileSink
    >>> from closeknit.streams.sources import FileSource
    >>> schema = Schema(quasi={"age": numeric(0, 100)})
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = Path(place, "in.ndjson").write_text('{"age": 41}\n{"age": 30}\n', encoding="utf-8")
    ...     source, sink = FileSource(f"{place}/in.ndjson"), FileSink(f"{place}/out.ndjson")
    ...     run = StreamRun(Castle(schema, k=2, delta=9), source, sink, ArrivalOrder(schema), Rejects(None), time.time)
    ...     run.begin()
    ...     run.run(), Path(place, "out.ndjson").read_text(encoding="utf-8")
    (True, '{"age":"[30, 41]"}\n{"age":"[30, 41]"}\n')
    """

    stream: Stream
    source: Source
    sink: Sink
    order: ArrivalOrder
    rejects: Rejects
    clock: Callable[[], float] | RunClock
    folder: CheckpointFolder | None = None
    every: int = 100_000
    strict: bool = False
    stopping: Callable[[], bool] = lambda: False
    watch: Callable[[StreamRun, bool], None] = lambda run, saved: None
    number: int = 0
    batches: int = 0
    set_aside: int = 0
    first_aside: str = ""
    _replay: deque[Tick] = field(default_factory=deque)
    _now: float = 0.0
    _saved_at: int = 0
    _offset: int | None = None  # of the input
    _settled: int = 0  # published rows that a sink does not hold back

    def __post_init__(self) -> None:
        rules, counters = self.stream.rules, self.stream.counters
        self.order.set_rules(rules, counters)
        self._outages = Outages(counters, parse_seconds("patience", rules.patience), lambda: self.stopping())
        self._waiting = counters.waiting = WaitingTimes()
        self._patient = PatientSource(self.source, self._outages)

    def begin(self) -> None:
        """Begin a new stream: the first checkpoint is saved before anything is written."""
        if self.folder is not None:
            self._save_checkpoint()
        self.sink.empty()
        self.rejects.empty()

    def resume(self, metadata: dict[str, Any], ticks: Sequence[Tick]) -> None:
        """Return to a checkpoint.

        Args:
            metadata: what was stored with the stream.
            ticks: the ticks since then.
        """
        for place, name in ((self.source, "source"), (self.sink, "sink"), (self.rejects, "rejects")):
            place.seek(metadata[name])
        self.order.last, self._now = metadata["last"], metadata["now"]
        self.order.known = dict.fromkeys(metadata.get("keys", np.empty(0)).tolist())
        self.number, self.batches, self.set_aside = metadata["number"], metadata["batches"], metadata["rejected"]
        self._waiting = self.stream.counters.waiting = WaitingTimes(metadata.get("waiting"))
        self._replay, self._saved_at, self._settled = deque(ticks), self.stream.position, self.stream.counters.rows_out

    def run(self) -> bool:
        """Process the input.

        Returns:
            True if the input has ended and the stream is flushed; False if the run was stopped and saved a checkpoint.
        """
        while not self.stream.ended:
            if self.stopping() and self.folder is not None:
                self._save_checkpoint()
                return False
            block = None if self.stopping() else self._patient.read(PATIENCE if self._by_clock else None)
            if block is None:
                self._finish()
            else:
                self._take(block)
                if self._by_clock and not self._replay:
                    self._tick(self._time(), silent=True)
                if self.folder is not None and self.stream.position - self._saved_at >= self.every and not self._replay:
                    self._save_checkpoint()
            self._settle()
            self.watch(self, False)
        return True

    def _settle(self, saving: bool = False) -> None:
        """Write what a sink has collected, with the certificate of these rows and all before them."""
        if isinstance(self.sink, BufferedSink):
            act = partial(self.sink.settle, lambda: self.stream.certificate.to_json(), saving)
            if self._outages.write(act):
                self.stream.counters.held += self.stream.counters.rows_out - self._settled
            self._settled = self.stream.counters.rows_out

    def _take(self, block: Block) -> None:
        good, bad = self.order.check_rows(block.rows)
        for each in sorted([*block.refused, *bad]):  # by their lines
            self._reject_line(each)
        if self.order.time is not None:
            for now, rows in groupby(good, key=lambda found: self.order.time_of(found.row)):
                self._tick(now, noted=True)
                self._push(list(rows))
        else:
            self._push_by_clock(good)

    def _push_by_clock(self, rows: list[ArrivedRow]) -> None:
        while rows:
            self._replay_ticks()
            count = len(rows)
            if self._replay:
                count = min(count, self._replay[0].position - self.stream.position)
            elif self.stream.timed:
                self._tick(self._time())
            self._push(rows[:count])
            rows = rows[count:]
        self._replay_ticks()

    def _push(self, rows: list[ArrivedRow]) -> None:
        self._waiting.note(self.stream.position, self._read_seconds())
        self._waiting.forget(self.stream.pending.first)
        fresh, keys, repeated = self.order.check_keys(rows, self.stream.coder.digest)
        before, self._offset = self.stream.position, rows[-1].end if rows else self._offset
        batches = self.stream.batches_of(cells_of([found.row for found in fresh], self.stream.schema.used))
        try:
            if fresh:
                self._emit(batches, Tick(self._now, before + len(fresh), None, self._offset))
        except BadInput as bad:
            if self.stream.position != before or isinstance(bad, UndeclaredValue):
                raise
            for key in keys:  # a refused row may be corrected
                del self.order.known[key]
            if len(rows) == 1:
                self._reject_line(RejectedLine(rows[0].line, str(bad), ""))
            for found in rows if len(rows) > 1 else ():
                self._push([found])
        else:
            self.order.trim_keys()
            self.stream.counters.keys += len(keys)
            for each in repeated:
                self._reject_line(each)

    def _replay_ticks(self) -> None:
        """Replay the logged ticks of this row."""
        while self._replay and self._replay[0].position <= self.stream.position and not self._replay[0].end:
            tick = self._replay.popleft()
            if tick.position < self.stream.position or tick.batch not in (None, self.batches):
                logged, found = (tick.position, tick.batch), (self.stream.position, self.batches)
                what = f"the log of ticks has row and batch {logged}, the stream has {found}"
                raise BadInput(what, right="give the same input")
            self._tick(tick.now, noted=True)

    def _tick(self, now: float, silent: bool = False, noted: bool = False) -> None:
        """Advance the time; `noted`: it is known again after a crash; `silent`: no row depends on it."""
        counters, self._now = self.stream.counters, now
        self._waiting.note(self.stream.position, self._read_seconds())
        tick = Tick(now, self.stream.position, self.batches, self._offset)
        before = counters.suppressed, self.batches
        if not silent and not noted:
            self._log_tick(tick)
        self._emit(self.stream.batches_due(now), tick if silent else None)
        if silent and counters.suppressed != before[0] and self.batches == before[1]:
            self._log_tick(tick)

    def _log_tick(self, tick: Tick) -> None:
        if self.folder is not None:
            self.folder.log_tick(tick)

    def _emit(self, batches: Iterable[Columns], cause: Tick | None = None) -> None:
        """Write batches; a time that caused them and is not in the input is logged before the first one."""
        if cause is not None and self._by_clock and not self._replay:
            batches = self._log_first(batches, cause)
        held = False
        for batch in batches:
            if self.folder is not None:
                self.folder.sync()
            held |= self._outages.write(partial(self.sink.write, self.batches + 1, batch))
            self.batches += 1
            self.stream.counters.held += batch.rows if held else 0

    def _log_first(self, batches: Iterable[Columns], cause: Tick) -> Iterator[Columns]:
        for i, batch in enumerate(batches):
            if i == 0:
                self._log_tick(cause)
            yield batch

    @property
    def _by_clock(self) -> bool:
        return self.stream.timed and self.order.time is None

    def _reject_line(self, bad: RejectedLine) -> None:
        if self.strict:
            raise BadInput(f"line {bad.line:,}: {bad.why}", right="correct it, or leave --strict out to set such lines aside")
        self.set_aside += 1
        self.first_aside = self.first_aside or f"line {bad.line:,} is set aside: {bad.why}"
        if bad.counter:
            setattr(self.stream.counters, bad.counter, getattr(self.stream.counters, bad.counter) + 1)
        self.rejects.write(bad.line, bad.why, bad.text)

    def _finish(self) -> None:
        self._replay_ticks()
        end = Tick(self._now, self.stream.position, None, self._offset, end=True)
        self._emit(self.stream.batches_at_end(), end)
        if self.folder is not None:
            self._save_checkpoint()

    def _save_checkpoint(self) -> None:
        """Save a checkpoint, after everything before it is safe."""
        assert self.folder is not None
        self._settle(saving=True)
        self.number += 1
        metadata = {
            "number": self.number,
            "source": self.source.mark(),
            "sink": self.sink.mark(),
            "rejects": self.rejects.mark(),
            "batches": self.batches,
            "last": self.order.last,
            "keys": np.array(list(self.order.known), dtype=np.uint64),
            "rejected": self.set_aside,
            "now": self._now,
            "waiting": self._waiting.entries(),
        }
        self.folder.save(self.stream, metadata)
        self.source.commit()
        self._saved_at = self.stream.position
        self.watch(self, True)

    def _read_seconds(self) -> float:
        """The time from which delays in seconds are measured: that of the stream, or the clock if it has none."""
        return self._now if self.stream.timed else time.time()

    def _time(self) -> float:
        """The time, which never decreases, also after a restart."""
        if not isinstance(self.clock, RunClock):
            self.clock = RunClock(self.clock)
        now, jump = self.clock.read(self._now)
        if jump:
            self.stream.counters.count_jump(jump)
        return now

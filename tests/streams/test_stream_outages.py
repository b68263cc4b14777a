"""An output that is down, for an hour or for good: each row is written once, the sender waits, and delays are counted."""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.streams.input_rules import InputRules
from closeknit.streams.redis_streams import sink
from closeknit.streams.run_clock import RunClock
from closeknit.streams.sinks import FileSink, SinkDown
from redis_runs import Server, redis
from stream_faults import K, Output, build, check_batches, every_method, every_timed, people, start

BATCH = Columns.of({"age": ["[30, 39]", "41"], "cost": [2.0, None]})


@every_method
def test_an_output_that_is_down_for_an_hour_gets_each_row_once(name: str, tmp_path: Path) -> None:
    rows, now = people(200), [0.0]
    straight = Output()
    start(tmp_path / "straight", build(name), rows, straight).run()

    def sleep(seconds: float) -> None:
        now[0] += seconds

    output = Output(lambda number: number == 3 and now[0] < 3500)
    run = start(tmp_path / "run", build(name), rows, output)
    run._outages = replace(run._outages, sleep=sleep, steady=lambda: now[0])
    held = len(straight.batches[3])
    assert run.run() and output.batches == straight.batches
    check_batches(output, rows, run.stream)
    counters = run.stream.counters
    assert counters.outages == 1 and 3500 <= counters.outage_most == counters.outage_sum < 3510 and counters.held >= held
    assert any(note.startswith("the output was down 1 times, for at most 3,50") for note in run.stream.certificate.notes)


@every_method
def test_when_patience_ends_the_run_ends_and_resumes(name: str, tmp_path: Path) -> None:
    rows, now, output = people(200), [0.0], Output(lambda number: number == 3)
    run = start(tmp_path, build(name, InputRules(patience="30m")), rows, output, kept=True)

    def sleep(seconds: float) -> None:
        now[0] += seconds

    run._outages = replace(run._outages, sleep=sleep, steady=lambda: now[0])
    with pytest.raises(
        ck.BadInput, match=r"the run ended after the output was down for 1,80.* seconds \(no one answers\); start"
    ):
        run.run()
    assert now[0] < 1810 and len(output.batches) == 2
    run.folder.close()  # type: ignore[union-attr]
    output.down = lambda number: False
    resumed = start(tmp_path, build(name), rows, output, kept=True)
    assert resumed.run()
    check_batches(output, rows, resumed.stream)


def test_a_signal_ends_waiting_for_the_output(tmp_path: Path) -> None:
    run = start(tmp_path, build("castle"), people(100), Output(lambda number: True))
    slept: list[float] = []
    run.stopping, run._outages = lambda: len(slept) > 3, replace(run._outages, sleep=slept.append)
    with pytest.raises(ck.BadInput, match="the run stopped after the output was down"):
        run.run()
    assert slept == [0.1, 0.2, 0.4, 0.8]


@every_timed
def test_rows_that_wait_through_an_outage_are_overdue_and_counted(name: str, tmp_path: Path) -> None:
    now = [1000.0]

    def read() -> float:
        now[0] += 0.5
        return now[0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    output = Output(lambda number: number == 2 and now[0] < 4600)
    run = start(
        tmp_path, build(name, delta="20s"), rows := people(300), output, clock=RunClock(read, lambda: now[0]), chunk=300
    )
    run._outages = replace(run._outages, sleep=sleep, steady=lambda: now[0])
    assert run.run()
    check_batches(output, rows, run.stream)
    counters = run.stream.counters
    assert counters.outages == 1 and counters.held >= K and K <= counters.overdue < 300 and counters.clock_jumps == 0
    assert f"{counters.overdue} rows were published after their delay" in run.stream.certificate.notes


def test_a_full_disk_loses_and_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, usual, failures = people(200), os.write, [0]
    start(tmp_path / "straight", build("castle"), rows, FileSink(tmp_path / "whole.ndjson")).run()
    sink = FileSink(tmp_path / "rows.ndjson")

    def write(handle: int, data: Any) -> int:
        if handle == sink._handle:
            failures[0] += 1
            if failures[0] % 5 in (2, 4):
                raise OSError(errno.ENOSPC, "No space left on device")
            if failures[0] % 5 == 1:  # half of it, then no more
                return usual(handle, bytes(data)[: len(data) // 2])
        return usual(handle, data)

    run = start(tmp_path / "run", build("castle"), rows, sink)
    run._outages = replace(run._outages, sleep=lambda seconds: None)
    monkeypatch.setattr(os, "write", write)
    assert run.run() and failures[0] > 40
    assert (tmp_path / "rows.ndjson").read_bytes() == (tmp_path / "whole.ndjson").read_bytes()


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server here (Debian: redis-server)")
@pytest.mark.parametrize("written", [True, False])
def test_a_batch_whose_answer_redis_could_not_send_is_written_once(
    written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not Redis had written it before the connection broke."""
    server, execute = Server(tmp_path), redis.client.Pipeline.execute
    writer = sink(server.url("rows"))
    writer.write(1, BATCH)

    def break_off(pipeline: Any, *args: Any) -> None:
        if written:
            execute(pipeline, *args)
        raise redis.ConnectionError("reset by peer")

    with monkeypatch.context() as broken:
        broken.setattr(redis.client.Pipeline, "execute", break_off)
        with pytest.raises(SinkDown, match="no Redis answers there"):
            writer.write(2, BATCH)
    writer.write(2, BATCH)
    writer.write(3, BATCH)
    assert [id for id, _ in server.client.xrange("rows")] == [f"{n}-{i}".encode() for n in (1, 2, 3) for i in (1, 2)]
    server.client.xadd("rows", {"age": 1}, id="4-1")
    with pytest.raises(ck.BadInput, match="another writer"):
        writer.write(4, BATCH)
    server.process.terminate()
    server.process.wait()


class Noting(Output):
    """The time at which each row is published."""

    run: Any

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[int, float] = {}

    def write(self, number: int, batch: Columns) -> None:
        super().write(number, batch)
        self.times.update((row["id"], self.run._now) for row in self.batches[number])


@every_timed
def test_the_mean_delay_in_seconds_is_that_of_the_published_rows(name: str, tmp_path: Path) -> None:
    """Compared with the time at which the output gets each row, also after a restart."""
    arrived = [float(i + i * i // 90) for i in range(200)]
    rows = [{**row, "seen": seen} for row, seen in zip(people(200), arrived, strict=True)]
    output, ended = Noting(), []
    for calls in (60, 1_000_000):
        output.run = run = start(tmp_path, build(name, delta="40s"), rows, output, time="seen", kept=True, chunk=300)
        turns = iter(range(calls))
        run.stopping = lambda turns=turns: next(turns, None) is None
        ended.append(run.run())
        run.folder.close()  # type: ignore[union-attr]
    waits = [now - arrived[each] for each, now in output.times.items()]
    counters = run.stream.counters
    assert ended == [False, True] and len(waits) == counters.timed_out == counters.rows_out
    assert abs(counters.wait_sum - sum(waits)) < 1e-6
    assert counters.wait_mean is not None and 0 < counters.wait_mean <= 40

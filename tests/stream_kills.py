"""Streams killed with SIGKILL again and again: one process forks each run, so that a kill costs little.

A run dies before one of its calls of the system that leave a trace, in the middle of a write, or at any instant. After every
kill, what a reader finds is compared with plain rules: batches of k persons whose cells are true, and no row twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import RawValue
from pathlib import Path
from typing import Any

import closeknit as ck
from closeknit.streams import REGISTRY
from closeknit.streams.arrival_order import ArrivalOrder
from closeknit.streams.checkpoint_folder import CheckpointFolder
from closeknit.streams.sinks import FileSink, PipeSink, Rejects
from closeknit.streams.sources import FileSource
from closeknit.streams.stream_run import StreamRun
from stream_runs import CONTEXT, LETHAL, _make_lethal, as_ndjson, started_server

SCHEMA = ck.Schema(
    quasi={"age": ck.numeric(0, 100), "sex": ck.flat()},
    sensitive={"ill": ck.flat()},
    plain=["id"],
    allow_unique=["id"],
    person="who",
)
K, ROWS = 4, 240
Batches = dict[int, list[dict[str, Any]]]


@dataclass(frozen=True)
class Case:
    """A stream, and where it writes: rows to a file, or numbered batches to a pipe."""

    stream: str
    delta: int | str
    to_file: bool

    def run(self, folder: Path, draw: int = 0) -> StreamRun:
        """Begin, or resume from the checkpoint; `draw` decides how the clock advances."""
        checkpoints = CheckpointFolder(folder / "ck")
        stream, marks, ticks = REGISTRY[self.stream](schema=SCHEMA, k=K, delta=self.delta, seed=5), {}, []  # type: ignore[call-arg]
        if resuming := checkpoints.begun:
            stream, marks, ticks = checkpoints.load()
        if stream.timed:
            stream.clock = "tick"
        handle = os.open(folder / "out", os.O_WRONLY | os.O_CREAT | os.O_APPEND) if not self.to_file else -1
        sink: Any = FileSink(folder / "out") if self.to_file else PipeSink(handle)
        source, order = FileSource(folder / "in.ndjson", chunk=2000), ArrivalOrder(SCHEMA)  # a few rows at once
        run = StreamRun(stream, source, sink, order, Rejects(None), uneven_clock(draw), checkpoints, every=40)
        run.resume(marks, ticks) if resuming else run.begin()
        return run


def uneven_clock(draw: int) -> Callable[[], float]:
    """A clock that advances with every reading, unevenly, and begins again with every process."""
    chance, now = random.Random(draw), [1000.0]

    def read() -> float:
        now[0] += chance.choice([0.0, 0.1, 0.7, 3.0])
        return now[0]

    return read


def people(seed: int) -> list[dict[str, Any]]:
    """Rows of persons who occur repeatedly."""
    chance = random.Random(seed)
    ages, ills = range(18, 90), ["flu", "gout", None]
    return [
        {
            "age": chance.choice(ages),
            "sex": chance.choice("fm"),
            "ill": chance.choice(ills),
            "id": i,
            "who": chance.randrange(60),
        }
        for i in range(ROWS)
    ]


def check_batches(batches: Sequence[list[dict[str, Any]]], raw: Sequence[dict[str, Any]]) -> None:
    """The rules, by plain code: k persons, cells that are true, no row twice."""
    ids = [row["id"] for batch in batches for row in batch]
    assert len(ids) == len(set(ids)), "a row is published twice"
    for batch in batches:
        assert len({raw[row["id"]]["who"] for row in batch}) >= K, "a class has fewer than k persons"
        assert len({(row["age"], row["sex"]) for row in batch}) == 1
        ends = [float(end) for end in batch[0]["age"].strip("[]").split(",")]
        for row in batch:
            true = raw[row["id"]]
            assert ends[0] <= true["age"] <= ends[-1] and row["sex"] in ("*", true["sex"]) and row["ill"] == true["ill"]


def read_batches(lines: bytes) -> list[list[dict[str, Any]]]:
    """What the reader of a pipe has: torn lines and repeated numbers dropped, where a repeat has the same rows."""
    batches: Batches = {}
    for piece in lines.split(b"\n"):
        try:
            batch = json.loads(piece)
        except ValueError:
            continue
        assert batches.setdefault(batch["batch"], batch["rows"]) == batch["rows"], "a repeated batch differs"
    assert list(batches) == list(range(1, len(batches) + 1))
    return list(batches.values())


def fork_run(case: Case, folder: Path, die_at: int | None, calls: Any, draw: int = 0) -> int:
    """A run in a process of its own; its id."""
    calls.value = 0
    if (child := os.fork()) != 0:
        return child
    try:
        for owner, name in LETHAL:
            _make_lethal(owner, name, die_at, calls)
        run = case.run(folder, draw)
        assert run.run()
        (folder / "suppressed").write_text(str(run.stream.counters.suppressed))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def kill_often(case: Case, folder: Path, kills: int, seed: int) -> None:
    """Kill runs of a stream so many times, in as many streams as that takes."""
    chance, calls, done, number = random.Random(seed), RawValue("q", 0), 0, 0
    warm = folder / "warm"
    warm.mkdir()
    (warm / "in.ndjson").write_bytes(as_ndjson(people(1)))
    assert case.run(warm).run()  # loads the compiled kernels, so that children need not
    while done < kills:
        place, raw, number = folder / str(number), people(chance.randrange(2**32)), number + 1
        whole, most = run_whole(case, folder / f"{number}-whole", raw, calls)
        place.mkdir()
        (place / "in.ndjson").write_bytes(as_ndjson(raw))
        for _ in range(10):
            at = chance.randrange(1, most // 2) if chance.random() < 0.8 else None
            child = fork_run(case, place, at if done < kills else None, calls, chance.randrange(2**32))
            if at is None and done < kills:
                time.sleep(chance.random() * 0.05)
                os.kill(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            check_output(case, (place / "out").read_bytes() if (place / "out").exists() else b"", whole, raw)
            if status == 0:
                break
            assert status == -signal.SIGKILL
            done += 1
        else:
            finish(case, place, calls)
        check_end(case, place, whole, raw)
    (folder / "kills").write_text(str(done))


def finish(case: Case, place: Path, calls: Any) -> None:
    """Run to the end without a kill."""
    assert os.waitstatus_to_exitcode(os.waitpid(fork_run(case, place, None, calls), 0)[1]) == 0


def run_whole(case: Case, place: Path, raw: list[dict[str, Any]], calls: Any) -> tuple[bytes, int]:
    """The output of a run that nobody kills, and its calls of the system."""
    place.mkdir()
    (place / "in.ndjson").write_bytes(as_ndjson(raw))
    finish(case, place, calls)
    return (place / "out").read_bytes(), int(calls.value)


def check_output(case: Case, found: bytes, whole: bytes, raw: list[dict[str, Any]]) -> None:
    """After a kill: a file is the beginning of the whole one, and a reader of a pipe has whole batches that keep the rules."""
    if case.to_file:
        assert whole.startswith(found), "the file is not the beginning of the whole one"
    else:
        check_batches(read_batches(found), raw)


def check_end(case: Case, place: Path, whole: bytes, raw: list[dict[str, Any]]) -> None:
    """At the end: each row is published once, in a batch that keeps the rules, or counted as suppressed."""
    found, suppressed = (place / "out").read_bytes(), int((place / "suppressed").read_text())
    if case.to_file:
        assert found == whole
        batches = read_batches(run_whole(Case(case.stream, case.delta, False), place / "pipe", raw, RawValue("q", 0))[0])
        rows = "".join(json.dumps(row, separators=(",", ":")) + "\n" for batch in batches for row in batch)
        assert rows.encode() == whole
    else:
        batches = read_batches(found)
    check_batches(batches, raw)
    assert sum(map(len, batches)) + suppressed == ROWS, "a row is lost"


def run_kills(case: Case, folder: Path, kills: int, seed: int) -> int:
    """`kill_often` in a process without threads, forked from the server that has everything loaded; the number of kills."""
    started_server()
    process = CONTEXT.Process(target=kill_often, args=(case, folder, kills, seed))
    process.start()
    process.join()
    assert process.exitcode == 0, f"seed {seed}"
    return int((folder / "kills").read_text())

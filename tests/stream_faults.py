"""Runs of every stream method for the tests of faults: rows with a record, an output that may be down, what must hold."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.streams.arrival_order import ArrivalOrder
from closeknit.streams.checkpoint_folder import CheckpointFolder
from closeknit.streams.input_rules import InputRules
from closeknit.streams.sinks import Rejects, SinkDown
from closeknit.streams.sources import CHUNK, FileSource
from closeknit.streams.stream import Stream
from closeknit.streams.stream_request import StreamRequest
from closeknit.streams.stream_run import StreamRun
from stream_runs import as_ndjson
from streams_checked import CITIES

K = 3
SCHEMA = ck.Schema(
    identifier=["record"],
    quasi={"age": ck.numeric(0, 100), "city": ck.Hierarchy.from_nested(CITIES)},
    sensitive={"ill": ck.flat()},
    plain=["id"],
    allow_unique=["id"],
)
NAMES = ("age", "city", "ill", "id")
PARAMS: dict[str, dict[str, Any]] = {
    "castle": {"k": K, "delta": 40},
    "knn_stream": {"k": K, "delta": 40},
    "knit_stream": {"k": K, "delta": 64},
    "sabre_window": {"models": [ck.TCloseness("ill", 0.5)], "omega": 60, "advance": 20, "k": K},
    "burel_window": {"models": [ck.BetaLikeness("ill", 3)], "omega": 60, "advance": 20, "k": K},
    "windowed": {"method": "mondrian", "models": [ck.KAnonymity(K)], "omega": 60, "advance": 20},
}
TIMED = ("castle", "knn_stream", "knit_stream")
every_method = pytest.mark.parametrize("name", PARAMS)
every_timed = pytest.mark.parametrize("name", TIMED)


def build(name: str, rules: InputRules | None = None, **changes: Any) -> Stream:
    params = {**PARAMS[name], **changes}
    models = params.pop("models", [])
    stream = StreamRequest.of({name: params}).build(SCHEMA, models, seed=5)
    stream.rules = rules or stream.rules
    return stream


def people(count: int, seed: int = 1) -> list[dict[str, Any]]:
    chance, cities = random.Random(seed), ["Rome", "Bari", "Oslo", "Turku"]
    return [
        {
            "record": f"r{i}",
            "age": chance.randrange(18, 90),
            "city": chance.choice(cities),
            "ill": ["flu", "gout", "SARS"][i % 3],
            "id": i,
        }
        for i in range(count)
    ]


def as_columns(rows: list[dict[str, Any]]) -> Columns:
    return Columns.of({name: [row[name] for row in rows] for name in ("record", *NAMES)})


class Output:
    """Batches by number; it is down while `down` says so, before or after it has written."""

    def __init__(self, down: Callable[[int], bool] = lambda number: False) -> None:
        self.batches: dict[int, list[dict[str, Any]]] = {}
        self.down = down

    def write(self, number: int, batch: Columns) -> None:
        if self.down(number):
            raise SinkDown("no one answers")
        rows = [dict(zip(batch, cells, strict=True)) for cells in zip(*(c.cells() for c in batch.values()), strict=True)]
        assert self.batches.setdefault(number, rows) == rows, f"batch {number} differs"

    def mark(self) -> dict[str, Any]:
        return {}

    def seek(self, mark: dict[str, Any]) -> None:
        pass

    empty = close = lambda self: None

    @property
    def ids(self) -> list[int]:
        return [row["id"] for number in sorted(self.batches) for row in self.batches[number]]


def start(
    folder: Path,
    stream: Stream,
    rows: list[dict[str, Any]],
    output: Any = None,
    time: str | None = None,
    clock: Any = lambda: 0.0,
    kept: bool = False,
    chunk: int = CHUNK,
) -> StreamRun:
    folder.mkdir(exist_ok=True)
    (folder / "in.ndjson").write_bytes(as_ndjson(rows))
    checkpoints = CheckpointFolder(folder / "ck") if kept else None
    metadata, ticks = None, []
    if checkpoints is not None and checkpoints.begun:
        stream, metadata, ticks = checkpoints.load()
    if stream.timed:
        stream.clock = "tick"
    order, rejects = ArrivalOrder(SCHEMA, None, time), Rejects(folder / "rejects")
    source = FileSource(folder / "in.ndjson", chunk=chunk)
    run = StreamRun(stream, source, output or Output(), order, rejects, clock, checkpoints, every=50)
    run.begin() if metadata is None else run.resume(metadata, ticks)
    return run


def check_batches(output: Output, rows: list[dict[str, Any]], stream: Stream) -> None:
    """Each accepted row once, in a class of k persons whose cells are true of it, or counted as suppressed."""
    raw = {row["id"]: row for row in rows}
    assert len(set(output.ids)) == len(output.ids) and set(output.ids) <= set(raw)
    assert len(output.ids) == stream.counters.rows_out
    assert stream.counters.rows_out + stream.counters.suppressed == stream.counters.rows_in
    for batch in output.batches.values():
        assert len({raw[row["id"]]["record"] for row in batch}) >= K
        assert len({(row["age"], row["city"]) for row in batch}) == 1
        ends = [float(end) for end in batch[0]["age"].strip("[]").split(",")]
        assert all(ends[0] <= raw[row["id"]]["age"] <= ends[-1] for row in batch)

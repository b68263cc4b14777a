"""Streams that are saved, stopped and killed: a stream resumed from a checkpoint does what it would have done anyway."""

from __future__ import annotations

import json
import random
import signal
import stat
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.kinds import flat, numeric
from closeknit.core.schema import Schema
from closeknit.streams.arrival_order import ArrivalOrder
from closeknit.streams.arrivals import Arrivals
from closeknit.streams.burel_window import BurelWindow
from closeknit.streams.castle import Castle
from closeknit.streams.checkpoint import VERSION, load, load_with_metadata, save
from closeknit.streams.checkpoint_folder import CheckpointFolder
from closeknit.streams.knit_stream import KnitStream
from closeknit.streams.knn_stream import KnnStream
from closeknit.streams.packing import from_bytes, to_bytes
from closeknit.streams.sabre_window import SabreWindow
from closeknit.streams.sinks import Rejects
from closeknit.streams.sources import FileSource
from closeknit.streams.stream import Emission, Stream
from closeknit.streams.stream_run import StreamRun
from closeknit.streams.windowed import Windowed
from conftest import SOAK_SEED
from stream_runs import Run, as_ndjson, some_rows, write_recipe

SCHEMA = Schema(
    quasi={"age": numeric(0, 100), "sex": flat(), "born": ck.date(lo="2000-01-01", hi="2003-12-31")},
    sensitive={"ill": flat(), "cost": numeric()},
    plain=["ward"],
    allow_unique=["ward"],
    person="who",
)


class InOrder(Stream):
    """As little as a stream can be: every k rows leave together."""

    name = "in_order"

    def __init__(self, schema: Schema, k: int, seed: int | None = None) -> None:
        super().__init__(schema, [ck.KAnonymity(k)], seed)
        self.k, self.left = k, []  # type: ignore[var-annotated]

    def _arrive(self, rows: Arrivals, first: int) -> Iterator[Emission]:
        for end in range(first + 1, first + len(rows) + 1):
            if end % self.k == 0:
                self.left = [*self.left[-3:], (end, self.choice(end).random())]
                yield Emission(np.arange(end - self.k, end))

    def _end(self) -> Iterator[Emission]:
        return iter(())


STREAMS: dict[str, Callable[[], Stream]] = {
    "in_order": lambda: InOrder(SCHEMA, 3),
    "castle": lambda: Castle(SCHEMA, k=3, delta=20, eta=4),
    "castle_split": lambda: Castle(SCHEMA, k=2, delta=50, eta=3, mu=4, models=[ck.LDiversity("ill", 2)]),
    "castle_held": lambda: Castle(SCHEMA, k=3, delta=20, eta=4, reuse="held", order="input"),
    "castle_reuse": lambda: Castle(SCHEMA, k=3, delta=20, eta=4, reuse=True),
    "knit": lambda: KnitStream(SCHEMA, k=3, delta=64),
    "knit_diverse": lambda: KnitStream(SCHEMA, k=2, delta=40, models=[ck.LDiversity("ill", 2)]),
    "knn": lambda: KnnStream(SCHEMA, k=3, delta=20),
    "sabre_window": lambda: SabreWindow(SCHEMA, [ck.TCloseness("ill", 0.4)], omega=40, advance=20, k=2),
    "burel_window": lambda: BurelWindow(SCHEMA, [ck.BetaLikeness("ill", 2)], omega=40, advance=20, k=2),
    "windowed": lambda: Windowed(ck.Mondrian(), SCHEMA, [ck.KAnonymity(3)], omega=40, advance=20),
}


def people(count: int, chance: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "age": chance.choice([*range(20, 90), 130, None]),
            "sex": chance.choice(["f", "m", None]),
            "born": date(2000 + chance.randrange(4), 1 + chance.randrange(12), 5),
            "ill": chance.choice(["flu", "gout", "SARS"]),
            "cost": chance.choice([1, 2.5, 7, None]),
            "ward": chance.choice(["A", "B"]),
            "who": f"p{chance.randrange(60)}",
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("name", STREAMS)
def test_going_on_equals_never_having_stopped(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    rows = people(160, chance)
    for cuts in [sorted(chance.sample(range(161), 3)) for _ in range(3)]:
        stream = STREAMS[name]()
        stream.save(tmp_path / "at_the_start")
        other = type(stream).load(tmp_path / "at_the_start")
        there, here = [], []
        for i, row in enumerate(rows):
            if i in cuts:
                other.save(tmp_path / "cut")
                other = type(stream).load(tmp_path / "cut")
            there.append(stream.push(row))
            here.append(other.push(row))
        assert [*here, other.flush()] == [*there, stream.flush()]
        assert other.counters == stream.counters and other.position == 160 and other.ended


@pytest.mark.parametrize("name", STREAMS)
def test_a_whole_table_may_follow(name: str, tmp_path: Path) -> None:
    table = Columns.of({name: [row[name] for row in people(90, random.Random(3))] for name in SCHEMA.used})
    first, second = table.take(np.arange(33)), table.take(np.arange(33, 90))
    stream = STREAMS[name]()
    stream.push_many(first)
    stream.save(tmp_path / "kept")
    other = type(stream).load(tmp_path / "kept")
    assert {name: column.cells() for name, column in stream.push_many(second).items()} == {
        name: column.cells() for name, column in other.push_many(second).items()
    }


def test_a_stream_that_ended_stays_so(tmp_path: Path) -> None:
    stream = InOrder(SCHEMA, 3)
    stream.flush()
    stream.save(tmp_path / "kept")
    with pytest.raises(BadInput, match="has ended"):
        InOrder.load(tmp_path / "kept").flush()


def test_the_file_is_private_and_no_history(tmp_path: Path) -> None:
    sizes, stream = [], Castle(SCHEMA, k=3, delta=20, eta=4, seed=1)
    for row in people(1000, random.Random(1)):
        stream.push(row)
        if stream.position in (100, 1000):
            stream.save(tmp_path / "kept")
            sizes.append((tmp_path / "kept").stat().st_size)
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o600
    assert sizes[1] < 1.5 * sizes[0]
    assert len(list(tmp_path.iterdir())) == 1


def test_any_algorithm_is_found_by_its_name(tmp_path: Path) -> None:
    stream = SabreWindow(SCHEMA, [ck.TCloseness("ill", 0.4)], omega=40, advance=20)
    stream.save(tmp_path / "kept")
    again = Stream.load(tmp_path / "kept")
    assert type(again) is SabreWindow and again.models == stream.models and again.secret == stream.secret
    assert again.schema.forms() == stream.schema.forms()


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    InOrder(SCHEMA, 3).save(file)
    with pytest.raises(BadInput, match="checkpoint of in_order, not of castle"):
        Castle.load(file)
    with pytest.raises(BadInput, match="in_order, which is unknown"):
        Stream.load(file)
    whole = file.read_bytes()
    content = from_bytes(whole)
    newer = {**content, "version": VERSION + 1, "closeknit": "7.1"}
    oldest = {"asked" if key == "requested" else key: content[key] for key in content if key != "closeknit"} | {"version": 1}
    for other, version, writer in ((newer, VERSION + 1, "7.1"), (oldest, 1, "0.1")):
        file.write_bytes(to_bytes(other))
        says = rf"closeknit {writer} wrote this checkpoint \(version {version}\), and closeknit .* reads version {VERSION}"
        with pytest.raises(BadInput, match=f"{says}; end this stream with closeknit {writer}, or begin a new one"):
            InOrder.load(file)
    less = {key: value for key, value in content.items() if key != "secret"}
    for wrong in (
        b"",
        b"nonsense",
        whole[: len(whole) // 2],
        to_bytes({"mark": "else"}),
        to_bytes([1]),
        to_bytes({**content, "requested": 3}),
        to_bytes(less),
    ):
        file.write_bytes(wrong)
        with pytest.raises(BadInput, match="not a checkpoint of a stream, or it is damaged"):
            load(file, InOrder)
    with pytest.raises(BadInput, match="no such file"):
        load(tmp_path / "nothing", InOrder)


def test_nothing_in_the_file_is_run(tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", plain=np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(BadInput, match="not a checkpoint"):
        load(tmp_path / "evil.npz", InOrder)


def test_metadata_comes_back(tmp_path: Path) -> None:
    metadata = {"offset": 5, "names": ["a"], "none": None}
    save(InOrder(SCHEMA, 3), tmp_path / "kept", metadata)
    assert load_with_metadata(tmp_path / "kept", InOrder)[1] == metadata


# processes that are killed ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["castle", "knit_stream"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    write_recipe(folder, stream={request.param: {"k": 4, "delta": 40 if request.param == "castle" else 160}})
    lines = as_ndjson(some_rows(700)).split(b"\n")
    lines[100:100] = [b'{"age": ', b"", b'{"age": 5, "sex": "f", "ill": "flu", "name": "x", "shoe": 4}']
    (folder / "in.ndjson").write_bytes(b"\n".join(lines))
    return folder


def words(home: Path, place: Path, output: Path | None) -> list[object]:
    (place / "home").mkdir(exist_ok=True)
    (place / "out").mkdir(exist_ok=True)
    given: list[object] = [
        "stream",
        home / "recipe.yaml",
        "-i",
        home / "in.ndjson",
        "--checkpoint",
        place / "home" / "ck",
        "--every",
        100,
        "--rejects",
        place / "home" / "rejects",
    ]
    return given if output is None else [*given, "-o", output]


@pytest.fixture(scope="module")
def whole_run(home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, int]:
    place = tmp_path_factory.mktemp("whole")
    run = Run(*words(home, place, place / "out" / "rows.ndjson"), out=place / "said")
    assert run.wait() == 0, run.said
    return (place / "out" / "rows.ndjson").read_bytes(), (place / "home" / "rejects").read_bytes(), run.calls


def killed_again_and_again(kills: int, chance: random.Random, home: Path, place: Path, output: Path | None, calls: int) -> int:
    """Kills until none is left or the work is done; how many there were."""
    for kill in range(kills):
        at = chance.randrange(1, calls // 2) if kill % 5 else None  # after so many calls of the system, or at any time
        run = Run(*words(home, place, output), out=place / "said", die_at=at)
        if at is None:
            time.sleep(chance.random() * 0.8)
            run.process.kill()
        if (status := run.wait()) == 0:
            return kill
        assert status == -signal.SIGKILL, run.said
    run = Run(*words(home, place, output), out=place / "said")
    assert run.wait() == 0, run.said
    return kills


def kill_runs(kills: int, seed: int, home: Path, whole: tuple[bytes, bytes, int], tmp_path: Path, to_file: bool) -> None:
    chance, done = random.Random(seed), 0
    while done < kills:
        place = tmp_path / str(done)
        place.mkdir()
        output = place / "out" / "rows.ndjson" if to_file else None
        done += max(killed_again_and_again(min(kills - done, 4), chance, home, place, output, whole[2]), 1)
        if output is not None:
            assert output.read_bytes() == whole[0]
        else:
            assert without_repeats((place / "said").read_bytes()) == whole[0]
        assert (place / "home" / "rejects").read_bytes() == whole[1]


def without_repeats(lines: bytes) -> bytes:
    """What a consumer makes of it: torn lines and repeated numbers dropped; a repeat says the same."""
    batches: dict[int, Any] = {}
    for piece in lines.split(b"\n"):
        try:
            batch = json.loads(piece)
        except ValueError:  # empty or torn
            continue
        assert batches.setdefault(batch["batch"], batch["rows"]) == batch["rows"]
    assert list(batches) == list(range(1, len(batches) + 1))
    rows = [row for number in sorted(batches) for row in batches[number]]
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()


def test_killed_at_any_instant_a_file_has_each_row_once(
    home: Path, whole_run: tuple[bytes, bytes, int], tmp_path: Path
) -> None:
    assert whole_run[0].count(b"\n") == 700 and whole_run[1].count(b"\n") == 2
    kill_runs(7, 5, home, whole_run, tmp_path, to_file=True)


def test_killed_at_any_instant_a_pipe_repeats_batches_with_their_numbers(
    home: Path, whole_run: tuple[bytes, bytes, int], tmp_path: Path
) -> None:
    kill_runs(3, 6, home, whole_run, tmp_path, to_file=False)


@pytest.mark.soak
@pytest.mark.parametrize("to_file", [True, False])
def test_killed_a_hundred_times(home: Path, whole_run: tuple[bytes, bytes, int], tmp_path: Path, to_file: bool) -> None:
    kill_runs(100, SOAK_SEED, home, whole_run, tmp_path, to_file)


# delays in seconds -----------------------------------------------------------------------------------------------------


class Crash(Exception):
    """Instead of a kill."""


class Consumer:
    """A pipe's other end, which breaks after some batches."""

    def __init__(self, batches: dict[int, list[dict[str, object]]], breaks_after: int | None) -> None:
        self.batches, self.breaks_after, self.written = batches, breaks_after, 0

    def write(self, number: int, batch: Columns) -> None:
        if self.written == self.breaks_after:
            raise Crash
        self.written += 1
        rows = [dict(zip(batch, cells, strict=True)) for cells in zip(*(c.cells() for c in batch.values()), strict=True)]
        assert self.batches.setdefault(number, rows) == rows, f"batch {number} says something else"

    def mark(self) -> dict[str, Any]:
        return {}

    def seek(self, mark: dict[str, Any]) -> None:
        pass

    empty = close = lambda self: None


class Clock:
    """A clock that advances with every reading, unevenly."""

    def __init__(self, chance: random.Random, start: float) -> None:
        self.chance, self.now = chance, start

    def __call__(self) -> float:
        self.now += self.chance.choice([0.0, 0.1, 0.7, 3.0])
        return self.now


def timed_run(
    folder: Path,
    batches: dict[int, list[dict[str, object]]],
    breaks_after: int | None,
    clock: Clock,
    time_column: str | None = None,
    chunk: int = 300,  # a few rows at once
) -> StreamRun:
    schema = Schema(quasi={"age": numeric(0, 100)}, sensitive={"ill": flat()})
    kept = CheckpointFolder(folder / "ck")
    stream: Stream = Castle(schema, k=3, delta="5s", seed=3)
    begun = kept.begun
    metadata, ticks = {}, []
    if begun:
        stream, metadata, ticks = kept.load()
    stream.clock = "tick"
    source, order = FileSource(folder / "in.ndjson", chunk=chunk), ArrivalOrder(schema, None, time_column)
    run = StreamRun(stream, source, Consumer(batches, breaks_after), order, Rejects(None), clock, kept, every=40)
    if begun:
        run.resume(metadata, ticks)
    else:
        run.begin()
    try:
        assert run.run()
    finally:
        kept.close()
        source.close()
    return run


@pytest.mark.parametrize("seed", range(6))
def test_ticks_are_repeated_after_a_crash(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    rows = [{"age": chance.randrange(100), "ill": chance.choice(["flu", "gout"])} for _ in range(300)]
    (tmp_path / "in.ndjson").write_bytes(as_ndjson(rows))
    batches: dict[int, list[dict[str, object]]] = {}
    crashes, clock = 0, Clock(chance, 1000.0)
    while True:
        try:
            run = timed_run(tmp_path, batches, chance.randrange(6 * (crashes + 1)), clock, chunk=200)
            break
        except Crash:
            crashes += 1
            clock = Clock(chance, clock.now - chance.choice([0, 50, -50]))  # clocks are set, too
    out = [row for number in sorted(batches) for row in batches[number]]
    assert crashes > 3 and run.stream.counters.batches == len(batches) > 10
    assert len(out) + run.stream.counters.suppressed == 300 and run.stream.counters.rows_out == len(out)


def test_time_may_come_with_the_rows(tmp_path: Path) -> None:
    chance, now, rows = random.Random(4), 0.0, []
    for _ in range(200):
        now += chance.choice([0.0, 0.0, 0.4, 2.0])
        rows.append({"age": chance.randrange(100), "ill": "flu", "seen": now})
    (tmp_path / "in.ndjson").write_bytes(as_ndjson(rows))
    clock = Clock(chance, 0.0)
    broken: dict[int, list[dict[str, object]]] = {}
    breaks = 0
    while True:
        try:
            timed_run(tmp_path, broken, breaks := breaks + 2, clock, "seen")
            break
        except Crash:
            continue
    other = tmp_path / "other"
    other.mkdir()
    (other / "in.ndjson").write_bytes(as_ndjson(rows))
    straight: dict[int, list[dict[str, object]]] = {}
    timed_run(other, straight, None, clock, "seen")
    assert broken == straight and len(straight) > 5 and clock.now == 0.0

"""Streams on Spark compared with local ones: the same rows, guarantees met in every shard, nothing lost or published twice.

All tests that need Spark share one session; without pyspark or Java they are skipped.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import closeknit as ck
from closeknit.checks.oracle import oracle_holds
from closeknit.core.columns import Columns
from closeknit.io.batches import block_from
from closeknit.io.files import write_parquet
from closeknit.io.packets import frame_of_bytes, unpack_blocks
from closeknit.spark.stream_operator import Operator
from closeknit.spark.stream_query import _seconds, _sortable
from closeknit.spark.stream_shards import Shards

SEED = 2**100 + 7
Row = dict[str, Any]
TREE = ck.Hierarchy.from_nested({"north": ["Oslo", "Turku"], "south": ["Rome", "Nice"]})
SCHEMA = ck.Schema(
    identifier=["name"],
    quasi={"age": ck.numeric(0, 100), "city": TREE},
    sensitive={"ill": ck.flat(), "cost": ck.numeric()},
    plain=["tag"],
    allow_unique=["tag"],
)
SPARK_TYPES = "nr bigint, name string, age bigint, city string, ill string, cost double, tag string, seen double, ward string"
STREAMS = {
    "castle": lambda: ck.Castle(SCHEMA, k=4, delta=30, models=[ck.LDiversity("ill", 2)], seed=SEED),
    "knn_stream": lambda: ck.KnnStream(SCHEMA, k=4, delta=30, seed=SEED),
    "sabre_window": lambda: ck.SabreWindow(SCHEMA, [ck.TCloseness("ill", 0.5)], omega=40, advance=20, k=3, seed=SEED),
    "burel_window": lambda: ck.BurelWindow(SCHEMA, [ck.BetaLikeness("ill", 3)], omega=40, advance=20, k=3, seed=SEED),
}

KEPT = ("castle", "sabre_window")  # one that delays and one of windows; the others under soak


def some_rows(count: int, first: int = 0) -> list[Row]:
    chance = random.Random(first + 1)
    cities, ills = ["Oslo", "Turku", "Rome", "Nice", None], ["flu", "gout", "SARS", None]
    return [
        {
            "nr": first + i,
            "name": f"n{i}",
            "age": chance.randrange(100),
            "city": chance.choice(cities),
            "ill": chance.choice(ills),
            "cost": chance.choice([1.5, 2.0]),
            "tag": f"t{first + i}",
            "seen": float(1000 + first + i),
            "ward": "east",
        }
        for i in range(count)
    ]


def come(folder: Path, rows: Sequence[Row]) -> None:
    """One more file, which is one micro-batch; its rows have no order."""
    folder.mkdir(exist_ok=True)
    number, mixed = len(list(folder.iterdir())), random.Random(5).sample(rows, len(rows))
    file = folder / f"{number}.parquet"
    write_parquet(Columns.of({name: [row[name] for row in mixed] for name in rows[0]}), file.with_suffix(".part"))
    os.utime(file.with_suffix(".part"), (10**9 + number,) * 2)  # Spark takes them by their age
    file.with_suffix(".part").rename(file)


def reading(spark: Any, folder: Path, partitions: int = 2, used: Sequence[str] = ()) -> Any:
    frame = spark.readStream.schema(SPARK_TYPES).option("maxFilesPerTrigger", 1).parquet(str(folder)).repartition(partitions)
    return frame.select("name", *SCHEMA.used, *used)


def started(frame: Any, home: Path, out: Path, **trigger: Any) -> Any:
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(home)).trigger(**trigger)
    return writer.start(str(out))


def worked(frame: Any, home: Path, out: Path) -> None:
    """All that is there, and no more."""
    started(frame, home, out, availableNow=True).awaitTermination()


def found(frame: Any) -> list[Row]:
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows


def same(one: Sequence[Row], other: Sequence[Row]) -> bool:
    return sorted(map(repr, one)) == sorted(map(repr, other))


def here(stream: Any, rows: Sequence[Row]) -> list[Row]:
    return [left for row in rows for left in stream.push({name: row[name] for name in ("name", *SCHEMA.used)})]


# The same as here ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*KEPT, *(pytest.param(name, marks=pytest.mark.soak) for name in STREAMS if name not in KEPT)])
def test_one_shard_is_the_local_stream(spark: Any, name: str, tmp_path: Path) -> None:
    make, rows, home, out = STREAMS[name], some_rows(150), tmp_path / "home", tmp_path / "out"
    come(tmp_path / "in", rows[:70])
    come(tmp_path / "in", rows[70:])
    worked(ck.stream_on_spark(reading(spark, tmp_path / "in", used=["nr"]), make(), home, order="nr"), home, out)
    local = make()
    left = here(local, rows)
    assert left and same(found(spark.read.parquet(str(out))), left)
    assert ck.certificate_on_spark(make(), home) == local.certificate
    assert same(found(ck.flush_on_spark(make(), home)), local.flush())
    assert name != "castle" or ck.certificate_on_spark(make(), home) == local.certificate
    with pytest.raises(ck.BadInput, match="has ended"):
        ck.stream_on_spark(reading(spark, tmp_path / "in", used=["nr"]), make(), home, order="nr")


def test_shards_keep_their_guarantees_however_often_it_is_stopped(spark: Any, tmp_path: Path) -> None:
    """Three shards in one go, in other partitions; stopped after each file; and with a micro-batch that is done again."""
    make, rows, folder = STREAMS["castle"], some_rows(240), tmp_path / "in"

    def go_on(home: str, partitions: int) -> None:
        frame = ck.stream_on_spark(reading(spark, folder, partitions), make(), tmp_path / home, by="age", shards=[40, 70])
        worked(frame, tmp_path / home, tmp_path / f"{home}-out")

    for first in (0, 120):
        come(folder, rows[first : first + 120])
        go_on("stopped", 2)
    go_on("at-once", 3)
    (tmp_path / "at-once" / "commits" / "1").unlink()
    (tmp_path / "at-once" / "commits" / ".1.crc").unlink()
    with pytest.raises(ck.BadInput, match="not finished"):
        ck.flush_on_spark(make(), tmp_path / "at-once")
    go_on("at-once", 3)
    certificate, results = ck.certificate_on_spark(make(), tmp_path / "stopped"), []
    for home in ("stopped", "at-once"):
        left = found(spark.read.parquet(str(tmp_path / f"{home}-out")))
        results.append([*left, *found(ck.flush_on_spark(make(), tmp_path / home))])
    assert certificate.ok and certificate.rows == len(left)
    assert same(*results)
    assert_kept(results[0], rows)


def assert_kept(left: Sequence[Row], rows: Sequence[Row]) -> None:
    """Every row once at most, with its own secret, in a class of four with two illnesses, and in its own part of the ages."""
    by_tag, classes = {row["tag"]: row for row in rows}, defaultdict[tuple[Any, ...], list[Row]](list)
    assert max(Counter(row["tag"] for row in left).values()) == 1 and len(left) > 0.9 * len(rows)
    for row in left:
        raw = by_tag[row["tag"]]
        assert (row["ill"], row["cost"]) == (raw["ill"], raw["cost"])
        low, high = np.array([*row["age"].strip("[]").split(", ") * 2][:2], dtype=float)
        assert low <= raw["age"] <= high and len(set(np.searchsorted([40, 70], [low, high], side="right"))) == 1
        classes[row["age"], row["city"]].append(row)
    for mine in classes.values():
        secrets = [row["ill"] for row in mine]
        assert oracle_holds("k_anonymity", secrets, [], k=4) and oracle_holds("l_diversity", secrets, [], l=2)


def test_a_repeated_micro_batch_publishes_the_same(spark: Any, tmp_path: Path) -> None:
    batches = defaultdict[int, list[list[Row]]](list)
    come(tmp_path / "in", some_rows(100))
    schema = SCHEMA.model_copy(update={"sensitive": {"ill": ck.flat(), "cost": ck.numeric()}})
    for _ in range(2):
        stream = ck.KnnStream(schema, k=4, delta=30)  # a new one each time, and the secret of the first
        frame = ck.stream_on_spark(reading(spark, tmp_path / "in"), stream, tmp_path / "home", by="city", shards=2)
        sink = frame.writeStream.foreachBatch(lambda batch, number: batches[number].append(found(batch)))
        sink.option("checkpointLocation", str(tmp_path / "home")).trigger(availableNow=True).start().awaitTermination()
        for mark in (tmp_path / "home" / "commits").iterdir():
            mark.unlink()
    (once, again) = batches[0]
    assert once and same(once, again)
    kept = tmp_path / "home" / "closeknit"
    assert kept.stat().st_mode & 0o777 == 0o600 and kept.parent.stat().st_mode & 0o777 == 0o700


def test_rows_of_spark_s_own_generator(spark: Any, tmp_path: Path) -> None:
    schema, home, out = (
        ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()}),
        tmp_path / "home",
        tmp_path / "out",
    )
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 60).option("numPartitions", 3).load()
    rows = source.selectExpr("value AS nr", "pmod(value * 37, 101) AS age", "concat('i', pmod(value, 7)) AS ill")
    frame = ck.stream_on_spark(rows, ck.Castle(schema, k=4, delta=30, seed=SEED), home, order="nr")
    query = started(frame, home, out, processingTime="10 milliseconds")
    while query.isActive and not (home / "commits" / "1").exists():
        query.awaitTermination(0.1)
    query.stop()
    assert query.exception() is None
    batches = len(list((out / "_spark_metadata").glob("[0-9]*")))
    stream = ck.Castle(schema, k=4, delta=30, seed=SEED)
    left = [row for i in range(60 * batches) for row in stream.push({"age": i * 37 % 101, "ill": f"i{i % 7}"})]
    assert batches > 1 and left and same(found(spark.read.parquet(str(out))), left)


# Time ----------------------------------------------------------------------------------------------------------------------


def test_rows_leave_in_silence_when_their_time_is_over(spark: Any, tmp_path: Path) -> None:
    """Also where the query is stopped after the sink has them and before Spark has noted so: they leave once."""
    come(tmp_path / "in", some_rows(60))
    home, out, make = tmp_path / "home", tmp_path / "out", lambda: ck.Castle(SCHEMA, k=4, delta="500ms", seed=SEED)

    def begun(**trigger: Any) -> Any:
        frame = ck.stream_on_spark(reading(spark, tmp_path / "in"), make(), home, by="age", shards=2)
        return started(frame, home, out, **trigger)

    query = begun(processingTime="200 milliseconds")
    while query.isActive and sum((left := rows_that_left(out)).values()) < 60 and len(left) < 100:
        query.awaitTermination(0.1)
    query.stop()
    assert query.exception() is None and left[0] == 0, "they left before their time"
    last = max(batch for batch, rows in left.items() if rows)
    forget(home / "offsets", last), forget(out / "_spark_metadata", last), forget(home / "commits", last - 1)
    with pytest.raises(ck.BadInput, match="not finished"):
        ck.flush_on_spark(make(), home)
    begun(once=True).awaitTermination()
    assert len(found(spark.read.parquet(str(out)))) == 60 and found(ck.flush_on_spark(make(), home)) == []


def rows_that_left(out: Path) -> dict[int, int]:
    """How many rows the file sink has noted of each micro-batch."""
    left, files = dict[int, int](), set[Path]()
    for entry in sorted((out / "_spark_metadata").glob("[0-9]*"), key=batch_of):
        noted = {out / json.loads(line)["path"].rsplit("/", 1)[1] for line in entry.read_text().splitlines()[1:]}
        left[batch_of(entry)] = sum(pq.read_metadata(file).num_rows for file in noted - files)
        files |= noted
    return left


def forget(log: Path, last: int) -> None:
    """The logs of Spark if everything had stopped with this micro-batch."""
    for entry in [*log.glob("[0-9]*"), *log.glob(".[0-9]*.crc")]:
        if batch_of(entry) > last:
            entry.unlink()


def batch_of(entry: Path) -> int:
    return int(entry.name.strip(".").split(".")[0])


def test_rows_that_set_the_time(spark: Any, tmp_path: Path) -> None:
    """Two wards: one falls silent, and the rows of the other let its time go on."""
    east, west = some_rows(40), [{**row, "ward": "west", "seen": row["seen"] + 100} for row in some_rows(40, first=40)]
    come(tmp_path / "in", east)
    come(tmp_path / "in", west)
    stream = ck.Castle(SCHEMA, k=4, delta="30s", seed=SEED)
    frame = reading(spark, tmp_path / "in", used=["seen", "ward"])
    frame = ck.stream_on_spark(frame, stream, tmp_path / "home", by="ward", time="seen", late="5s")
    worked(frame, tmp_path / "home", tmp_path / "out")
    left = found(spark.read.parquet(str(tmp_path / "out")))
    rest = found(ck.flush_on_spark(stream, tmp_path / "home"))
    assert not {row["tag"] for row in rest} & {row["tag"] for row in east}, "the silent ward has waited"
    operator, expected = Operator(stream, stream.secret, Shards.of(SCHEMA, "ward", 1), {}), [list[Row](), list[Row]()]
    for rows in (east, west):
        local = operator.open_shard("=" + rows[0]["ward"], None)
        for row in rows:
            expected[0] += [*local.tick(row["seen"]), *here(local, [row])]
        expected[0] += local.tick(west[-1]["seen"] - 6)
        expected[1] += local.flush()
    assert expected[1] and same(left, expected[0]) and same(rest, expected[1])


def test_rows_that_come_too_late_never_leave(spark: Any, tmp_path: Path) -> None:
    """Spark drops what is older than its watermark allows; the others leave as if it had never come."""
    rows, late = some_rows(80), [{**row, "seen": 1001.0} for row in some_rows(5, first=500)]
    for part in (rows[:40], [{**row, "seen": row["seen"] + 100} for row in rows[40:]], late):
        come(tmp_path / "in", part)
    stream = ck.Castle(SCHEMA, k=4, delta="30s", seed=SEED)
    frame = reading(spark, tmp_path / "in", used=["seen"])
    worked(ck.stream_on_spark(frame, stream, tmp_path / "home", time="seen", late="5s"), tmp_path / "home", tmp_path / "out")
    left = found(spark.read.parquet(str(tmp_path / "out"))) + found(ck.flush_on_spark(stream, tmp_path / "home"))
    assert sorted(row["tag"] for row in left) == sorted(row["tag"] for row in rows)
    assert ck.certificate_on_spark(stream, tmp_path / "home").rows == len(rows)


# Bad input -----------------------------------------------------------------------------------------------------------------


def test_what_cannot_be_is_said(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    frame, castle = reading(spark, tmp_path / "in", used=["seen", "ward"]), STREAMS["castle"]

    def refused(match: str, stream: Any = None, frame: Any = frame, **requested: Any) -> None:
        with pytest.raises(ck.BadInput, match=match):
            ck.stream_on_spark(frame, stream or castle(), tmp_path / "home", **{"order": "seen", "by": "ward", **requested})

    with pytest.raises(ck.BadInput, match="cannot read back"):
        ck.stream_on_spark(frame, castle(), tmp_path / "my home")
    refused("not a streaming frame", frame=spark.range(3))
    refused("'seen': has no role", order=())
    refused("'when': is not in the frame", order=["seen", "when"])
    refused("each of its values is a shard", shards=3)
    refused("needs a column to split", by=None, shards=3)
    refused("increasing numbers", by="age", shards=[50, 20])
    refused("need a quasi-identifier of numbers", by="city", shards=[50, 20])
    refused("counted in rows", time="seen")
    refused("not a column of times", stream=ck.Castle(SCHEMA, k=4, delta="1s"), time="ward")
    refused("is not a duration", time="seen", late=5)
    refused("not published", stream=STREAMS["sabre_window"]())
    assert not (tmp_path / "home").exists()
    ck.stream_on_spark(frame, castle(), tmp_path / "home", order="seen", by="ward")
    refused("has another k", stream=ck.Castle(SCHEMA, k=5, delta=30, models=[ck.LDiversity("ill", 2)], seed=SEED))
    refused("checkpoint of castle, and knn_stream is requested", stream=STREAMS["knn_stream"]())
    refused("has another order", order=["seen", "ward"])
    with pytest.raises(ck.BadInput, match="no stream of closeknit"):
        ck.flush_on_spark(castle(), tmp_path / "elsewhere")


# What needs no session -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "shards"), [("age", 7), ("age", [20, 50]), ("city", 2), ("sex", 3)])
def test_every_row_has_one_shard_and_near_rows_share_it(by: str, shards: Any) -> None:
    schema = ck.Schema(quasi={"age": ck.numeric(0, 100), "city": TREE, "sex": ck.flat()}, missing=["?"])
    cells = {"age": list(range(101)), "city": ["Oslo", "Turku", "Rome", "Nice"], "sex": [f"s{i}" for i in range(90)]}[by]
    columns = Columns.of({by: [*cells, None]})
    places = Shards.of(schema, by, shards).places(columns, b"secret")
    count = shards if isinstance(shards, int) else len(shards) + 1
    assert set(places.tolist()) == set(range(count)) and places[-1] == 0
    if by != "sex":
        assert (np.diff(places[:-1]) >= 0).all()
    else:
        assert (places != Shards.of(schema, by, shards).places(columns, b"other")).any(), "without a tree the secret draws"


def test_the_order_of_a_micro_batch_does_not_depend_on_partitions() -> None:
    stream, rows = STREAMS["castle"](), some_rows(50)
    operator = Operator(stream, stream.secret, Shards(SCHEMA), {}, ["nr"])

    def order(rows: Sequence[Row], operator: Operator) -> list[Any]:
        columns = Columns.of({name: [row[name] for row in rows] for name in ("nr", *SCHEMA.used)})
        block = block_from(dict(columns))
        assert unpack_blocks(operator.shards.packets(block, b"", False).column("rows").to_pylist()).equals(block)
        return [rows[i]["nr"] for i in operator._order(stream, block, np.zeros(len(rows)))]

    mixed = random.Random(3).sample(rows, len(rows))
    assert order(mixed, operator) == list(range(50))
    free = Operator(stream, stream.secret, Shards(SCHEMA), {})
    drawn = order(rows, free)
    assert order(mixed, free) == drawn != list(range(50))


def test_times_without_a_zone_give_order_and_time(spark: Any, tmp_path: Path) -> None:
    """Written without a zone by whoever is not Spark; a table of people would see their day only."""
    times = [datetime(2020, 1, 1, 10, 0, 0, micro) for micro in (0, 5, 45, 500_000)]
    frame = spark.createDataFrame(pa.table({"seen": times})).selectExpr("CAST(seen AS timestamp_ntz) AS seen")
    found = frame.select(_sortable(frame, "seen").alias("place"), _seconds(frame, "seen").alias("time")).toArrow()
    assert found.column("place").to_pylist() == sorted(set(found.column("place").to_pylist()))
    assert np.diff(found.column("time").to_numpy()).round(6).tolist() == [5e-6, 4e-5, 0.499955]


class _State:
    """What Spark hands to a shard in its first micro-batch."""

    exists, hasTimedOut = False, False

    def getCurrentProcessingTimeMs(self) -> int:
        return 1000

    def update(self, held: tuple[bytes]) -> None:
        assert held[0]


@pytest.mark.parametrize(
    ("cells", "kind", "type_"), [([3, 4], pa.int64(), "bigint"), ([date(2000, 1, 1), date(1999, 1, 1)], pa.date32(), "date")]
)
def test_shards_without_a_value_are_published_with_the_others(cells: list[Any], kind: Any, type_: str) -> None:
    """A column of which one shard knows nothing has the type of the others' cells; dates are such a type."""
    secret = ck.numeric() if type_ == "bigint" else ck.flat()
    schema = ck.Schema(quasi={"age": ck.numeric(0, 9)}, sensitive={"ill": secret}, plain=["tag"], allow_unique=["tag"])
    cell = [None if i % 2 else cells[i // 2 % 2] for i in range(40)]
    block = pa.table({"age": [8 if i % 2 else 1 for i in range(40)], "ill": pa.array(cell, kind), "tag": pa.array(cell, kind)})
    shown = pa.schema({"age": pa.string(), "ill": kind, "tag": kind})
    shards = Shards.of(schema, "age", 2)
    types = {"age": "string", "ill": type_, "tag": type_}
    operator = Operator(ck.Castle(schema, k=3, delta=5, seed=SEED), b"secret", shards, types, shown=shown)
    left = []
    for part in shards.packets(block, b"secret", False).to_pylist():
        for frame in operator.step((part["shard"],), [frame_of_bytes("rows", [part["rows"]])], _State()):
            left += frame["left"].tolist()
    assert len(left) == 2
    found = unpack_blocks(left)
    assert found.schema.equals(shown) and set(found.column("ill").to_pylist()) == {None, *cells}
    assert np.array_equal(found.column("ill").to_pylist(), found.column("tag").to_pylist())

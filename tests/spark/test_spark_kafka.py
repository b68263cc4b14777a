"""The Kafka program of the documentation, with files of Kafka's columns in place of the broker and its connector."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import closeknit as ck

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark_streams.md"
COLUMNS = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
ARROW = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
    }
)
PEOPLE = [{"name": f"n{i}", "age": i * 37 % 120, "zip": f"{12300 + i % 7}", "ill": f"i{i}"} for i in range(160)]


def send(folder: Path, number: int, values: list[bytes | None]) -> None:
    """Messages of two partitions, as Spark's connector reads them; the offsets of this file begin at 1,000 times its number."""
    seen = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        {"key": b"n", "value": value, "topic": "people", "partition": i % 2, "offset": 1000 * number + i // 2}
        | {"timestamp": seen, "timestampType": 0}
        for i, value in enumerate(values)
    ]
    pq.write_table(pa.Table.from_pylist(rows[::-1], ARROW), folder / f"{number}.parquet")


def program(folder: Path) -> str:
    """The lines of the page; only the formats, and where the checkpoint is, are others."""
    (text,) = [block for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S) if "kafka" in block]
    assert text.count('format("kafka")') == 2 and text.count('"private/castle"') == 2
    reader, writer = 'spark.readStream.format("kafka")', 'messages.writeStream.format("kafka")'
    text = text.replace(
        reader, f'spark.readStream.schema({COLUMNS!r}).format("parquet").option("path", {str(folder / "in")!r})'
    )
    out = f'.format("json").option("path", {str(folder / "out")!r}).trigger(availableNow=True)'
    return text.replace(writer, f"messages.writeStream{out}").replace('"private/castle"', repr(str(folder / "home")))


def build_stream() -> Any:
    quasi = {"age": ck.numeric(0, 120), "zip": ck.Hierarchy.prefix([row["zip"] for row in PEOPLE])}
    return ck.Castle(ck.Schema(identifier=["name"], quasi=quasi, sensitive={"ill": ck.flat()}), k=4, delta=8, seed=2**90)


def run(spark: Any, folder: Path) -> None:
    names: dict[str, Any] = {"spark": spark, "ck": ck, "stream": build_stream()}
    exec(program(folder), names)  # the page is ours
    names["query"].awaitTermination()


def test_kafka_program_publishes_every_message_once(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    send(tmp_path / "in", 0, [None, *(json.dumps(row).encode() for row in PEOPLE)])
    run(spark, tmp_path)
    texts = [line for file in (tmp_path / "out").glob("*.json") for line in file.read_text(encoding="utf-8").splitlines()]
    left = [json.loads(json.loads(line)["value"]) for line in texts]
    assert len(left) > 60 and set(map(tuple, left)) == {("age", "zip", "ill")}
    left += ck.flush_on_spark(build_stream(), tmp_path / "home").toArrow().to_pylist()
    ages, classes = {row["ill"]: row["age"] for row in PEOPLE}, defaultdict[tuple[str, str], list[str]](list)
    certificate = ck.certificate_on_spark(build_stream(), tmp_path / "home")
    assert len({row["ill"] for row in left}) == len(left) == certificate.rows == 160 - certificate.suppressed > 140
    for row in left:
        low, high = map(float, [*row["age"].strip("[]").split(", ") * 2][:2])
        assert low <= ages[row["ill"]] <= high
        classes[row["age"], row["zip"]].append(row["ill"])
    assert min(map(len, classes.values())) >= 4


@pytest.mark.soak
def test_a_message_that_is_not_json_stops_the_query(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    send(tmp_path / "in", 0, [b'{"age": '])
    with pytest.raises(Exception, match="MALFORMED_RECORD_IN_PARSING"):
        run(spark, tmp_path)
    assert not list((tmp_path / "out").glob("*.json"))

"""Streams on Spark: `stream_on_spark`, `flush_on_spark` and `certificate_on_spark`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from closeknit.api.replaying import refuse_started
from closeknit.core.certificate import Certificate
from closeknit.core.errors import BadInput
from closeknit.streams.delayed_stream import delay_of
from closeknit.streams.stream import Stream


def stream_on_spark(
    frame: Any,
    stream: Stream,
    checkpoint: str | PathLike[str],
    *,
    by: str | None = None,
    shards: int | Sequence[float] = 1,
    order: str | Sequence[str] = (),
    time: str | None = None,
    late: str | None = None,
) -> Any:
    """Return a streaming frame of the published rows; write it with any sink of Spark and this checkpoint location.

    Rows are distributed over shards. Each shard is a stream that meets the guarantees on its own.

    Args:
        frame: A streaming frame of Spark.
        stream: A stream that has not started yet.
        checkpoint: The checkpoint location of the query.
        by: Column that decides the shard: a quasi-identifier with a declared domain, or a column with a shard per value.
        shards: Number of equal parts of the domain of `by`, or the numbers between the parts.
        order: Columns that sort the rows of a micro-batch.
        time: Column with the time of a row, from which delays count; default: the time of the micro-batch.
        late: How late a row may arrive after its `time`, such as "10s"; Spark drops later ones.

    Examples:
        rows_out = ck.stream_on_spark(rows, ck.Castle(schema, k=50, delta="30s"), "private/ck", by="age", shards=16)
        rows_out.writeStream.option("checkpointLocation", "private/ck").trigger(processingTime="5 seconds").start("out")

    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.core.schema import Schema
    >>> from closeknit.streams import Castle
    >>> stream_on_spark([1, 2], Castle(Schema(quasi={"age": numeric(0, 100)}), k=2, delta=9), "private/ck")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: a list is not a streaming frame of Spark; read it with spark.readStream
    """
    from closeknit.spark.session import is_spark_frame, translate_errors

    refuse_started(stream)
    if not is_spark_frame(frame) or not frame.isStreaming:
        kind = "batch frame" if is_spark_frame(frame) else type(frame).__name__
        raise BadInput(f"a {kind} is not a streaming frame of Spark", right="read it with spark.readStream")
    from closeknit.spark.stream_checkpoint import CheckpointLocation
    from closeknit.spark.stream_query import RowOrder, begin_stream
    from closeknit.spark.stream_shards import Shards

    rows = RowOrder([order] if isinstance(order, str) else list(order), time, read_late(late))
    requested = Shards.of(stream.schema, by, shards)
    with translate_errors():
        return begin_stream(frame, stream, CheckpointLocation.at(frame.sparkSession, checkpoint), requested, rows)


def flush_on_spark(stream: Stream, checkpoint: str | PathLike[str], master: str | None = None) -> Any:
    """Flush a stream whose query has stopped: return a frame of all pending rows that can be published.

    The other rows are suppressed. Calling it again returns the same rows. No query can resume from the checkpoint afterwards.

    Args:
        stream: The stream of the query.
        checkpoint: The checkpoint location of the query.
        master: Address of the Spark cluster; default: this machine.
    """
    from closeknit.spark.session import session, translate_errors
    from closeknit.spark.stream_checkpoint import CheckpointLocation
    from closeknit.spark.stream_query import flush_stream

    with translate_errors(checkpoint):
        return flush_stream(stream, CheckpointLocation.at(session(master), checkpoint))


def certificate_on_spark(stream: Stream, checkpoint: str | PathLike[str], master: str | None = None) -> Certificate:
    """Return the certificate of all rows published so far, over all shards: as of the last finished micro-batch, or the end.

    Args:
        stream: The stream of the query.
        checkpoint: The checkpoint location of the query.
        master: Address of the Spark cluster; default: this machine.
    """
    from closeknit.spark.session import session
    from closeknit.spark.stream_checkpoint import CheckpointLocation
    from closeknit.spark.stream_query import sum_counters

    return sum_counters(stream, CheckpointLocation.at(session(master), checkpoint)).certificate


def read_late(late: str | None) -> float:
    """Return how many seconds late a row may be.

    Args:
        late: A duration; None for none.

    >>> read_late("5m"), read_late(None)
    (300.0, 0.0)
    """
    allowed, timed = (0.0, True) if late is None else delay_of(late)
    if not timed:
        raise BadInput(f"late={late!r} is not a duration", right="write it as '10s' or '5m'")
    return allowed

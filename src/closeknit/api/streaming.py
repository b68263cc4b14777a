"""Streams on Spark: `stream_on_spark`, and what there is to ask of one afterwards."""

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
    """A streaming frame of what leaves a stream; write it with any sink of Spark, and with this checkpoint location.

    Rows go to shards, each of which is a stream of its own and keeps the guarantees by itself: `shards` equal parts of the
    declared domain of the quasi column `by` (or parts between the numbers of a list), or one for each value of another column.
    Rows of a micro-batch come in the order of the columns `order`. A delay in seconds counts from the time of the micro-batch,
    or from what the column `time` says, where a row may be `late` by so much ("10s"; later ones are dropped by Spark).

    Examples:
        left = ck.stream_on_spark(rows, ck.Castle(schema, k=50, delta="30s"), "home/ck", by="age", shards=16)
        left.writeStream.option("checkpointLocation", "home/ck").trigger(processingTime="5 seconds").start("out")

    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.core.schema import Schema
    >>> from closeknit.streams import Castle
    >>> stream_on_spark([1, 2], Castle(Schema(quasi={"age": numeric(0, 100)}), k=2, delta=9), "home/ck")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: a list is no streaming frame of Spark; read it with spark.readStream
    """
    from closeknit.spark.session import is_spark_frame, translate_errors

    refuse_started(stream)
    if not is_spark_frame(frame) or not frame.isStreaming:
        kind = "frame that is whole" if is_spark_frame(frame) else type(frame).__name__
        raise BadInput(f"a {kind} is no streaming frame of Spark", right="read it with spark.readStream")
    from closeknit.spark.stream_checkpoint import CheckpointLocation
    from closeknit.spark.stream_query import begin_stream
    from closeknit.spark.stream_shards import Shards

    orders = [order] if isinstance(order, str) else list(order)
    requested = Shards.of(stream.schema, by, shards)
    with translate_errors():
        return begin_stream(
            frame, stream, CheckpointLocation.at(frame.sparkSession, checkpoint), requested, orders, time, _late(late)
        )


def flush_on_spark(stream: Stream, checkpoint: str | PathLike[str], master: str | None = None) -> Any:
    """The end of a stream whose query has stopped: a frame of all rows that may still leave; the rest is suppressed.

    It is a function of the checkpoint: asked again, it gives the same rows. No query can go on from there afterwards.
    """
    from closeknit.spark.session import session, translate_errors
    from closeknit.spark.stream_checkpoint import CheckpointLocation
    from closeknit.spark.stream_query import flush_stream

    with translate_errors(checkpoint):
        return flush_stream(stream, CheckpointLocation.at(session(master), checkpoint))


def certificate_on_spark(stream: Stream, checkpoint: str | PathLike[str], master: str | None = None) -> Certificate:
    """What holds for all rows that have left so far, all shards together: as of the last finished micro-batch, or the end."""
    from closeknit.spark.session import session
    from closeknit.spark.stream_checkpoint import CheckpointLocation
    from closeknit.spark.stream_query import sum_counters

    return sum_counters(stream, CheckpointLocation.at(session(master), checkpoint)).certificate


def _late(late: str | None) -> float:
    allowed, timed = (0.0, True) if late is None else delay_of(late)
    if not timed:
        raise BadInput(f"late={late!r} is no time", right="write it as '10s' or '5m'")
    return allowed

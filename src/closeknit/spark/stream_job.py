"""One query of `closeknit stream --engine spark`: from a folder of files, through a stream, to a folder of files.

What the query reads and writes is kept in its checkpoint, and another input or output is refused: the file sink of Spark skips
micro-batches that its folder has already, so rows would be lost in the folder of another query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from closeknit.core.errors import BadInput
from closeknit.spark.session import translate_errors
from closeknit.spark.stream_checkpoint import CheckpointLocation
from closeknit.spark.stream_input import InputFolder
from closeknit.spark.stream_query import RowOrder, begin_stream, flush_stream, sum_counters
from closeknit.spark.stream_shards import Shards
from closeknit.streams.arrival_order import ArrivalOrder
from closeknit.streams.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITERS: dict[str, tuple[str, dict[str, str]]] = {  # by format: Spark's name for it, and its options
    "parquet": ("parquet", {}),
    "csv": ("csv", {"header": "true", "escape": '"', "emptyValue": ""}),
    "ndjson": ("json", {"ignoreNullFields": "false"}),
}
ONCE, AVAILABLE = "once", "available-now"
REST = "-rest"  # rows that are published at the end: Spark's readers skip files that its sink has not noted
PATIENCE = 1  # seconds that a signal may wait


def read_trigger(text: str) -> dict[str, Any]:
    """The options of Spark's trigger.

    Args:
        text: `once`, `available-now`, or an interval.

    >>> read_trigger("available-now"), read_trigger("10 seconds")
    ({'availableNow': True}, {'processingTime': '10 seconds'})
    >>> read_trigger("often")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: --trigger 'often' is unknown; write once, available-now, or an interval such as '10 seconds'
    """
    if text in (ONCE, AVAILABLE):
        return {"once": True} if text == ONCE else {"availableNow": True}
    if not re.fullmatch(r"\d+ (millisecond|second|minute|hour)s?", text):
        raise BadInput(f"--trigger {text!r} is unknown", right="write once, available-now, or an interval such as '10 seconds'")
    return {"processingTime": text}


@dataclass(frozen=True, eq=False)
class StreamJob:
    """A query, before it runs.

    Args:
        spark: the session.
        stream: the stream in its initial state.
        location: its checkpoint location.
        input: where rows come from.
        output: the folder of the published rows.
        format: the format of the published files.
        order: columns for position and time.
        shards: how rows are distributed.
        late: how many seconds late a row may be.
    """

    spark: SparkSession
    stream: Stream
    location: CheckpointLocation
    input: InputFolder
    output: str
    format: str
    order: ArrivalOrder
    shards: Shards
    late: float = 0.0

    def run(self, trigger: Mapping[str, Any], stopping: Callable[[], bool]) -> bool:
        """Run the query until its trigger is done or a signal arrives.

        Args:
            trigger: when micro-batches begin.
            stopping: whether a signal has arrived.

        Returns:
            Whether the trigger is done.
        """
        kept = self._keep()
        rows = self.input.open(self.spark, kept["columns"], self.order)
        orders = [] if self.order.position is None else [self.order.position]
        with translate_errors(self.input.path):
            order = RowOrder(orders, self.order.time, self.late)
            frame = begin_stream(rows, self.stream, self.location, self.shards, order, kept)
            name, options = WRITERS[self.format]
            writer = frame.writeStream.format(name).options(**options)
            writer = writer.option("checkpointLocation", self.location.location).trigger(**trigger)
            query = writer.start(self.output)
            while query.isActive and not stopping():
                query.awaitTermination(PATIENCE)
            done = not query.isActive
            query.stop()
            query.awaitTermination()  # raises the reason if it has failed
        return done

    def flush(self) -> str:
        """End the stream and write the rows that can still be published.

        Returns:
            The folder of these rows; a repeated call writes the same rows to it.
        """
        place = self.output.rstrip("/") + REST
        name, options = WRITERS[self.format]
        with translate_errors(place):
            rows = flush_stream(self.stream, self.location)
            rows.write.format(name).options(**options).mode("overwrite").save(place)
        return place

    def sum_counters(self) -> Stream:
        """A stream without rows that has the counters of all shards together."""
        return sum_counters(self.stream, self.location) if self.location.finished else self.stream

    def _keep(self) -> dict[str, str]:
        """What the checkpoint has to remember of input and output; a new stream needs an empty output."""
        known = self.location.load(self.stream) if self.location.begun else {}
        if not known and self.location.holds_files(self.output):
            right = "choose another folder: Spark would skip the micro-batches that it has already"
            raise BadInput("it is not empty", file=self.output, right=right)
        if known and "columns" not in known:
            right = "resume it with that program, or choose another --checkpoint"
            raise BadInput("a program began this checkpoint, not this command", file=self.location.location, right=right)
        columns = known.get("columns") or self.input.read_columns(self.spark)
        return {"input": self.input.path, "output": self.output, "format": self.format, "columns": columns}

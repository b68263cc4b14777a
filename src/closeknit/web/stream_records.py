"""The typed records of streams, which the OpenAPI description lists and the live page shows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from closeknit.web.live.alarms import list_alarms
from closeknit.web.live.live_stream import LiveStream
from closeknit.web.live.stream_watch import StreamStatus


class StreamGuarantee(BaseModel):
    """A guarantee and its worst measured level so far."""

    text: str
    requested: str
    measured: str
    met: bool


class StreamAlarm(BaseModel):
    """What the operator should know now."""

    name: str
    sentence: str


class StreamState(BaseModel):
    """A stream: where its rows are, how long they take, and what is guaranteed."""

    id: str
    name: str
    sink: str = Field(description="batches, table, or the file to which rows are appended")
    made: datetime
    state: Literal["starting", "running", "closing", "ended", "stopped"]
    accepted: int = Field(description="rows accepted from all senders")
    queued: int = Field(description="rows that the stream has not taken yet")
    queue: int = Field(description="rows that count against the limit of the queue: in no checkpoint yet")
    queue_limit: int
    pending: int = Field(description="rows that wait for their class")
    published: int
    suppressed: int
    set_aside: int = Field(description="rows that are late, repeated, or have a cell that cannot be read")
    classes: int
    loss: float
    rate: float = Field(description="rows taken per second, over the last seconds")
    delay_mean: float = Field(description="rows that arrived until a row was published")
    wait_mean: float = Field(description="seconds from the arrival of a row at the stream until it was published")
    delay_most: int
    wait_most: float = Field(description="seconds until a row was published, if the delay is in seconds")
    delay_limit: float | None = Field(description="the guaranteed delay; null if there is none")
    delay_unit: Literal["rows", "seconds"]
    guarantees: list[StreamGuarantee]
    alarms: list[StreamAlarm]

    @classmethod
    def of(cls, stream: LiveStream) -> StreamState:
        """Build the record of a stream."""
        status = stream.status
        return cls(
            id=stream.record.id,
            name=stream.record.name,
            sink=stream.record.sink,
            made=datetime.fromtimestamp(stream.record.made, UTC),
            state=_state(stream, status),
            accepted=stream.inbox.accepted,
            queued=max(stream.inbox.accepted - status.taken, 0),
            queue=stream.inbox.waiting[0],
            queue_limit=stream.inbox.most_rows,
            pending=status.count("pending"),
            published=status.count("rows_out"),
            suppressed=status.count("suppressed"),
            set_aside=status.set_aside,
            classes=status.count("batches"),
            loss=float(status.counters.get("loss", 0.0)),
            rate=0.0 if stream.ended else status.rate("rows_in"),
            delay_mean=status.mean_delay,
            wait_mean=float(status.counters.get("wait_mean") or 0.0),
            delay_most=status.count("delay_most"),
            wait_most=float(status.counters.get("wait_most", 0.0)),
            delay_limit=status.longest,
            delay_unit="seconds" if status.timed else "rows",
            guarantees=[
                StreamGuarantee(text=text, requested=requested, measured=measured, met=met == "met")
                for text, requested, measured, met in status.guarantees
            ],
            alarms=[StreamAlarm(name=alarm.name, sentence=alarm.sentence) for alarm in list_alarms(stream, status)],
        )


def _state(stream: LiveStream, status: StreamStatus) -> Any:
    if stream.ended:
        return "ended"
    if stream.failure is not None:
        return "stopped"
    if not status.at:
        return "starting"
    return "closing" if stream.inbox.ended else "running"


class RowsReceipt(BaseModel):
    """What became of a request with rows: they are on disk, and will be published or suppressed."""

    accepted: int
    repeated: int = Field(description="rows that were accepted before, and are not accepted twice")
    next: int = Field(description="number of the sender's next row")


class Senders(BaseModel):
    """The number of the next row of each sender."""

    next: dict[str, int]


class Batches(BaseModel):
    """Published batches in order; `last` is the number to fetch after."""

    batches: list[dict[str, Any]]
    last: int
    ended: bool = Field(description="whether the stream has ended and there are no more batches")

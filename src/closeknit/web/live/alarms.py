"""`Alarm`: what the operator of a stream should know now, one sentence each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from closeknit.web.live.live_stream import LiveStream
from closeknit.web.live.stream_watch import StreamStatus

NEAR = 0.9  # share of a bound
LATE = 1.0  # seconds beyond a delay in seconds: the clock is looked at a few times a second
REMEMBERED = 60.0  # seconds for which a refused request is shown


@dataclass(frozen=True)
class Alarm:
    """One alarm.

    Args:
        name: of its kind.
        sentence: what is wrong, and what to do.
    """

    name: str
    sentence: str


def list_alarms(stream: LiveStream, status: StreamStatus) -> list[Alarm]:
    """Return the alarms of a stream, the most urgent first.

    Args:
        stream: the stream.
        status: what its process reported last.
    """
    return [*_output_alarms(stream, status), *_input_alarms(stream, status), *result_alarms(status)]


def _output_alarms(stream: LiveStream, status: StreamStatus) -> Iterator[Alarm]:
    if (failure := stream.failure) is not None and not stream.ended:
        if failure["what"] == "sink":
            yield Alarm("sink down", f"the output cannot be written ({failure['sentence']}); it is tried again by itself")
        else:
            yield Alarm("stopped", f"the stream stopped ({failure['sentence']}); it is started again by itself")
    if status.paused and not stream.ended:
        yield Alarm("sink full", "published batches fill their space; fetch them, and acknowledge those that you have")


def _input_alarms(stream: LiveStream, status: StreamStatus) -> Iterator[Alarm]:
    if stream.ended:
        return
    rows, size = stream.inbox.waiting
    now = time.time()
    if now - stream.inbox.refused < REMEMBERED:
        yield Alarm("queue full", "rows were refused in the last minute because the queue was full; send more slowly")
    elif rows > NEAR * stream.inbox.most_rows or size > NEAR * stream.inbox.most_bytes:
        yield Alarm("queue full", "the queue is nearly full; new rows will be refused")
    silent = now - stream.inbox.heard
    if silent > stream.settings.quiet and not stream.inbox.ended:
        pending = status.count("pending")
        wait = f"; {pending:,} rows wait for company" if pending and not status.timed else ""
        yield Alarm("no input", f"no row has arrived for {_duration(silent)}{wait}")


def result_alarms(status: StreamStatus) -> Iterator[Alarm]:
    """Yield the alarms about what was published and what was not.

    Args:
        status: what the process of the stream reported last.

    >>> [alarm.name for alarm in result_alarms(StreamStatus(counters={"rows_in": 9, "suppressed": 2}, set_aside=1))]
    ['suppression', 'set aside']
    """
    if status.count("broken"):
        yield Alarm(
            "not met", "a published class does not meet a guarantee; stop the stream and report this fault of the program"
        )
    if status.count("suppressed"):
        share = status.count("suppressed") / max(status.count("rows_in"), 1)
        what = f"{status.count('suppressed'):,} rows were suppressed ({share:.2%})"
        yield Alarm("suppression", f"{what}; a longer delay or a weaker guarantee suppresses fewer")
    recent, longest = status.recent_delay, status.longest
    if longest is not None and status.timed and (waited := float(status.counters.get("wait_most", 0.0))) > longest + LATE:
        yield Alarm("delay", f"a row waited {waited:,.1f} seconds, longer than the delay of {longest:,g} seconds")
    if longest is not None and not status.timed and not status.ended and recent is not None and recent > NEAR * longest:
        yield Alarm("delay", f"rows are published {recent:,.0f} rows after they arrive, near the bound of {longest:,g}")
    if status.set_aside:
        yield Alarm(
            "set aside", f"{status.set_aside:,} rows were set aside: late, repeated, or with a cell that cannot be read"
        )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"

"""What `closeknit stream` reports about itself: a line at a terminal, counters, the certificate, and the last sentence."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from closeknit.streams.stream import Stream
    from closeknit.streams.stream_run import StreamRun


class Watch:
    """Reports progress: a line at a terminal, a private JSON file, and the certificate of the published rows."""

    def __init__(self, counters: Path | None, certificate: Path | None, every: int) -> None:
        self._counters, self._certificate, self._every = counters, certificate, every
        self._written, self._sentence = 0, 0.0
        self._status: Any = None

    def __enter__(self) -> Watch:
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("waiting for rows")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, running: StreamRun, saved: bool) -> None:
        rows = running.stream.counters.rows_in
        if saved or rows - self._written >= self._every:
            self.write(running)
        if self._status is not None and time.monotonic() - self._sentence > 0.2:
            self._status.update(describe_counts(running.stream, running.set_aside))
            self._sentence = time.monotonic()

    def write(self, running: StreamRun) -> None:
        """Write the files."""
        self._written = running.stream.counters.rows_in
        write_counts(running.stream, self._counters, self._certificate, running.set_aside)


def write_counts(stream: Stream, counters: Path | None, certificate: Path | None, set_aside: int = 0) -> None:
    """Write the certificate and the counters of a stream, if they have a file.

    Args:
        stream: the stream.
        counters: the private file of the counters.
        certificate: the file of the certificate.
        set_aside: the number of rejected lines.
    """
    from closeknit.io.folders import write_whole

    if certificate is not None:
        write_whole(certificate, stream.certificate.to_json().encode())
    if counters is not None:
        found = stream.counters
        mean = found.delay_sum / found.rows_out if found.rows_out else 0.0
        record = {**found.record(), "delay_mean": mean, "set_aside": set_aside}
        write_whole(counters, (json.dumps(record, indent=2) + "\n").encode(), 0o600)


def describe_counts(stream: Stream, set_aside: int = 0) -> str:
    """Return what a stream has done so far.

    Args:
        stream: the stream.
        set_aside: the number of rejected lines.
    """
    counted = stream.counters.record()
    out = max(counted["rows_out"], 1)
    text = "rows in {rows_in:,}, out {rows_out:,}, pending {pending:,}, suppressed {suppressed:,}".format(**counted)
    aside = f", set aside {set_aside:,}" if set_aside else ""
    delays = f"delay at most {counted['delay_most']:,}, mean {counted['delay_sum'] / out:,.1f} rows"
    delays += "" if counted["wait_mean"] is None else f", {counted['wait_mean']:,.1f} seconds"
    faults = "".join(f"; {fault}" for fault in stream.counters.list_faults())
    return f"{text}{aside}; {delays}; loss {counted['loss']:.4f}; batches {counted['batches']:,}{faults}"


def describe_end(stream: Stream, stopped: bool, idle: bool, checkpoint: str | None, set_aside: int = 0) -> str:
    """Return the last line on stderr.

    Args:
        stream: the stream.
        stopped: whether the stream can resume.
        idle: whether the stream had ended before this command began.
        checkpoint: where it resumes from.
        set_aside: the number of rejected lines.
    """
    counts = describe_counts(stream, set_aside)
    if idle:
        return f"{counts}; this stream had ended before: choose another --checkpoint for a new one"
    return f"stopped; {counts}; to resume, run the same command with --checkpoint {checkpoint}" if stopped else counts

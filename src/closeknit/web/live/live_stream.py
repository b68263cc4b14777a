"""`LiveStream`: one stream of one owner, in a private folder, and the process that runs it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from closeknit.api.recipe import Recipe
from closeknit.core.errors import CloseknitError
from closeknit.io.folders import write_whole
from closeknit.web.cases import DISK_FULL, SPACE, LimitExceeded, NotReady, read_json, touch_record
from closeknit.web.live.inbox import Inbox, QueueFull, Receipt
from closeknit.web.live.stream_watch import StreamStatus, read_status
from closeknit.web.live.stream_worker import BATCHES, FAILED, TABLE, read_recipe
from closeknit.web.settings import Settings
from closeknit.web.worker_process import ChildProcess

RECORD, RECIPE = "stream.json", "recipe.yaml"
IN_TABLE = "this stream publishes into the table that its recipe names; read it there"
LONGEST_WAIT = 60  # seconds that a sender is asked to wait, and between two attempts to start a process
STEADY = 60.0  # seconds after which a process counts as healthy


@dataclass(frozen=True)
class StreamRecord:
    """What is known of a stream before it runs.

    Args:
        id: a random name.
        owner: the user.
        name: for display.
        sink: `batches`, `table`, or the name of the file to which rows are appended.
        made: when it was created.
    """

    id: str
    owner: str
    name: str
    sink: str
    made: float


class LiveStream:
    """A stream with its inbox, its process and its status.

    Args:
        record: what is known of it.
        folder: its folder.
        settings: limits of the server.
    """

    def __init__(self, record: StreamRecord, folder: Path, settings: Settings) -> None:
        self.record, self.folder, self.settings = record, folder, settings
        self.inbox = Inbox(folder / "inbox", settings.queue, settings.queue_bytes)
        self.touched = (folder / RECORD).stat().st_mtime
        self._process: StreamProcess | None = None
        self._failures, self._next = 0, 0.0
        self._lock = threading.Lock()
        self._over = self.status.ended

    @classmethod
    def create(cls, record: StreamRecord, recipe: str, folder: Path, settings: Settings) -> LiveStream:
        """Write a new stream to its folder."""
        folder.mkdir(mode=0o700)
        write_whole(folder / RECIPE, recipe.encode(), 0o600)
        write_whole(folder / RECORD, json.dumps(asdict(record)).encode(), 0o600)  # the last one: it makes the folder a stream
        return cls(record, folder, settings)

    @classmethod
    def read(cls, folder: Path, settings: Settings) -> LiveStream:
        """Read a stream of an earlier run of the server."""
        return cls(StreamRecord(**json.loads((folder / RECORD).read_text(encoding="utf-8"))), folder, settings)

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe."""
        return read_recipe((self.folder / RECIPE).read_text(encoding="utf-8"))

    @property
    def status(self) -> StreamStatus:
        """What its process reported last."""
        return read_status(self.folder)

    @property
    def ended(self) -> bool:
        """Whether all its rows are published or suppressed, and no more can arrive."""
        return self._over

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.alive

    @property
    def failure(self) -> dict[str, str] | None:
        """Why its process stopped, if it has not recovered since: what failed, and one sentence."""
        found: dict[str, str] | None = read_json(self.folder / FAILED)
        return found

    @property
    def published(self) -> Path:
        """The folder of the batches that can be fetched."""
        if self.record.sink == TABLE:
            raise NotReady(IN_TABLE)
        if self.record.sink != BATCHES:
            raise NotReady(f"this stream appends its rows to {self.record.sink}; fetch /api/streams/ID/rows")
        return self.folder / "published"

    @property
    def rows_file(self) -> Path:
        """The file to which rows are appended."""
        if self.record.sink == TABLE:
            raise NotReady(IN_TABLE)
        if self.record.sink == BATCHES:
            raise NotReady("this stream publishes batches; fetch /api/streams/ID/batches")
        place = self.folder / "out" / self.record.sink
        if not place.is_file():
            raise NotReady("nothing is published yet")
        return place

    def accept(self, sender: str, first: int, rows: Sequence[Mapping[str, Any]]) -> Receipt:
        """Accept rows, or refuse all of them.

        Args:
            sender: the name of the sender.
            first: the number of the first row.
            rows: the rows.
        """
        if shutil.disk_usage(self.folder).free < SPACE:
            raise LimitExceeded(DISK_FULL)
        try:
            receipt = self.inbox.accept(sender, first, rows)
        except QueueFull as full:
            full.seconds = min(max(math.ceil(full.rows / max(self.status.rate("rows_in"), 1.0)), 1), LONGEST_WAIT)
            raise
        self._wake()
        return receipt

    def close(self) -> None:
        """Accept no more rows, and publish what can be published."""
        self.inbox.close()
        self._wake()

    def touch(self) -> None:
        """Note that its owner uses it."""
        self.touched = touch_record(self.folder / RECORD, self.touched)

    def oversee(self) -> None:
        """Start its process, or start it again a while after it failed: called by the one thread that starts processes."""
        with self._lock:
            if self._over or self.running:
                return
            if self._process is not None:
                self._over = self._process.finished and self.status.ended
                self._failures = 1 if time.time() - self._process.since > STEADY else self._failures + 1
                self._next = time.time() + min(2 ** (self._failures - 1), LONGEST_WAIT)
                self._process.end()
                self._process = None
            elif time.time() >= self._next:
                self._process = StreamProcess(self.record, self.folder, self.settings)

    def stop(self) -> None:
        """Ask its process to save a checkpoint and end."""
        with self._lock:
            if self._process is not None:
                self._process.stop()

    def end(self, patience: float = 0.0) -> None:
        """Kill its process, after some seconds in which it may end by itself."""
        with self._lock:
            if self._process is not None:
                self._process.wait(patience)
                self._process.end()
                self._process = None
            self._over = True  # it is not started again

    def _wake(self) -> None:
        with self._lock:
            if self._process is not None:
                self._process.wake()


class StreamProcess(ChildProcess):
    """The process of a stream, which is woken by a byte on its standard input.

    Args:
        record: what is known of the stream.
        folder: its folder.
        settings: limits of the server.
    """

    def __init__(self, record: StreamRecord, folder: Path, settings: Settings) -> None:
        options = {
            "folder": str(folder),
            "sink": record.sink,
            "every": max(settings.queue // 4, 1),
            "published": settings.published,
            "memory": settings.memory,
        }
        super().__init__(settings, "closeknit.web.live.stream_worker", options)
        os.set_blocking(self._input.fileno(), False)

    def wake(self) -> None:
        """Wake it; if its input is full, it is awake."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ValueError):
            os.write(self._input.fileno(), b"\n")

    def stop(self) -> None:
        """Close its input."""
        self._input.close()

    def wait(self, seconds: float) -> None:
        """Wait until it ends, up to some seconds."""
        deadline = time.monotonic() + seconds
        while self.alive and time.monotonic() < deadline:
            time.sleep(0.02)

    @property
    def finished(self) -> bool:
        """Whether it ended without a fault."""
        return self._process.poll() == 0


class StreamNotFound(CloseknitError):
    """There is no such stream, or another owner's: the answer is the same."""

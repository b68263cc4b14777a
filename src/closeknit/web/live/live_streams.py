"""`LiveStreams`: all streams of a server. One thread starts their processes, since a process ends with its thread."""

from __future__ import annotations

import logging
import re
import secrets
import shutil
import threading
import time
from pathlib import Path

from closeknit.api.recipe import Recipe
from closeknit.core.errors import BadInput
from closeknit.core.params import choice
from closeknit.io.database import Database
from closeknit.web.cases import DISK_FULL, SPACE, LimitExceeded, clean_name
from closeknit.web.live.live_stream import RECORD, LiveStream, StreamNotFound, StreamRecord
from closeknit.web.live.stream_worker import BATCHES, SINKS, TABLE, open_table, read_recipe
from closeknit.web.settings import Settings

FOLDER = "streams"
EACH = 0.2  # seconds between two looks at the processes
PATIENCE = 5.0  # seconds for checkpoints when the server stops

log = logging.getLogger("closeknit.web")


class LiveStreams:
    """All streams of a server, including those of an earlier run, which resume.

    Args:
        settings: folder and limits of the server.

    >>> import tempfile
    >>> recipe = "schema: {quasi: {age: {numeric: {lo: 0, hi: 120}}}}\\nmodels: []\\nstream: {k: 2, delta: 4}"
    >>> with tempfile.TemporaryDirectory() as home:
    ...     streams = LiveStreams(Settings(home=Path(home)))
    ...     stream = streams.create("ann", "ward 3", recipe)
    ...     streams.of("ann", stream.record.id) is stream, len(LiveStreams(streams.settings).all())
    (True, 1)
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._streams: dict[str, LiveStream] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._oversee, name="streams", daemon=True)
        self._folder = settings.home / FOLDER
        for folder in self._folder.glob("*") if self._folder.is_dir() else ():
            self._find(folder)

    def open(self) -> None:
        """Start the processes."""
        self._thread.start()

    def close(self) -> None:
        """Let every process save a checkpoint and end."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        for stream in self.all():
            stream.stop()
        deadline = time.monotonic() + PATIENCE
        for stream in self.all():
            stream.end(max(deadline - time.monotonic(), 0.0))

    def create(self, owner: str, name: str, recipe: str, sink: str = BATCHES) -> LiveStream:
        """Create a stream; a recipe that cannot run is refused.

        Args:
            owner: the user.
            name: for display.
            recipe: the text of its recipe, with the key `stream`.
            sink: one of `SINKS`.
        """
        choice("sink", sink, SINKS)
        requested = read_recipe(recipe)
        assert requested.stream is not None
        requested.build_stream()
        self._check_table(requested, sink)
        if shutil.disk_usage(self.settings.home).free < SPACE:
            raise LimitExceeded(DISK_FULL)
        record = StreamRecord(secrets.token_hex(16), owner, clean_name(name) if name else "stream", sink, time.time())
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with self._lock:
            if sum(stream.record.owner == owner for stream in self._streams.values()) >= self.settings.streams:
                raise LimitExceeded(f"you have {self.settings.streams} streams here already; remove one of them first")
            if sum(not stream.ended for stream in self._streams.values()) >= self.settings.streams_all:
                raise LimitExceeded("as many streams run as this server allows; try again when one of them has ended")
            stream = LiveStream.create(record, recipe, self._folder / record.id, self.settings)
            self._streams[record.id] = stream
        return stream

    def _check_table(self, recipe: Recipe, sink: str) -> None:
        """Refuse a table that the operator does not allow or that cannot be written, before any row is accepted."""
        if (sink == TABLE) != isinstance(recipe.target, Database):
            right = (
                "name a table in it, output: {url: ..., table: schema.name}, and choose the sink 'table', or neither of them"
            )
            raise BadInput(f"the sink is '{sink}', and the recipe names {'no' if sink == TABLE else 'a'} table", right=right)
        if isinstance(recipe.target, Database):
            allowed = self.settings.outputs
            if allowed is not None and recipe.target.url not in allowed:
                right = f"name one of: {', '.join(allowed)}" if allowed else "ask for one: closeknit serve --output-database"
                raise BadInput("streams may not publish into this database", file=recipe.target.place, right=right)
            open_table(recipe).close()

    def of(self, owner: str, id: str) -> LiveStream:
        """Return this stream of this owner, and touch it."""
        stream = self._streams.get(id)
        if stream is None or stream.record.owner != owner:
            raise StreamNotFound("there is no such stream here: it has expired, was removed, or never existed")
        stream.touch()
        return stream

    def list_owned(self, owner: str) -> list[LiveStream]:
        """Return all streams of this owner, newest first."""
        return sorted((each for each in self.all() if each.record.owner == owner), key=lambda each: -each.record.made)

    def all(self) -> list[LiveStream]:
        """Return the streams of all owners."""
        with self._lock:
            return list(self._streams.values())

    def remove(self, stream: LiveStream) -> None:
        """Stop a stream and delete its data; waiting rows are not published."""
        with self._lock:
            self._streams.pop(stream.record.id, None)
        stream.end()
        shutil.rmtree(stream.folder, ignore_errors=True)

    def expire(self) -> None:
        """Remove streams that were not touched for `keep` seconds."""
        limit = time.time() - self.settings.keep
        for stream in self.all():
            if stream.touched < limit:
                self.remove(stream)

    def _oversee(self) -> None:
        while not self._stop.wait(EACH):
            for stream in self.all():
                try:
                    stream.oversee()
                except Exception as error:  # such as a full disk: other streams must continue
                    log.error("%s while managing streams", type(error).__name__)

    def _find(self, folder: Path) -> None:
        """Register a folder of an earlier run; one without a record is left from an interrupted request."""
        if folder.is_symlink() or not re.fullmatch(r"[0-9a-f]{32}", folder.name):
            return
        if not (folder / RECORD).exists():
            shutil.rmtree(folder, ignore_errors=True)
            return
        try:
            stream = LiveStream.read(folder, self.settings)
        except (OSError, ValueError, TypeError, KeyError, BadInput) as error:
            log.error("%s while reading a stream of an earlier run", type(error).__name__)
            return
        self._streams[stream.record.id] = stream

"""`InboxSource`: the inbox as the source of a stream, in the process of the stream."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from closeknit.io.folders import write_whole
from closeknit.streams.lines import ArrivedRow
from closeknit.streams.sources import Block, Mark
from closeknit.web.live.inbox import COMMITTED, read_committed, read_request, read_senders, request_path

HEARTBEAT = 0.5  # seconds of silence after which an empty block is returned


class InboxSource:
    """Reads the requests of an inbox in order, and deletes those that a checkpoint contains.

    Args:
        folder: the folder of the requests.
        wake: a file descriptor on which the server writes a byte for each request; its end stops the stream.
        paused: whether to read nothing for now, because the output is full.

    >>> import tempfile
    >>> from closeknit.web.live.inbox import Inbox
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Inbox(Path(folder), 10, 1000).accept("", 0, [{"age": 30}])
    ...     source = InboxSource(Path(folder), None)
    ...     [found.row for found in source.read(None).rows], source.taken
    ...     source.commit()
    ...     sorted(os.listdir(folder))
    Receipt(accepted=1, repeated=0, next=1)
    ([{'age': 30}], 1)
    ['committed.json']
    """

    def __init__(self, folder: Path, wake: int | None, paused: Callable[[], bool] = lambda: False) -> None:
        self.stopped = False
        self.saving = 0.0  # seconds from the last mark to its checkpoint
        self._marked = 0.0
        self._folder, self._wake, self._paused = folder, wake, paused
        committed = read_committed(folder)
        self._committed = committed["number"]
        self._number, self.taken, self._ended = self._committed, int(committed["rows"]), bool(committed["end"])
        self._senders = read_senders(committed)

    def read(self, wait: float | None) -> Block | None:
        """As `Source`: the rows of the next request."""
        if self._ended:
            return None
        place = request_path(self._folder, self._number + 1)
        if self.stopped or self._paused() or not place.exists():
            self._sleep(HEARTBEAT if wait is None else min(wait, HEARTBEAT))
            return Block()
        request, rows = read_request(place)
        self._number = request.number
        if request.end:
            self._ended = True
            return None
        self._senders[request.sender] = request.sent
        before, self.taken = self.taken, self.taken + len(rows)
        return Block([ArrivedRow(row, number, number) for number, row in enumerate(rows, before + 1)])

    @property
    def uncommitted(self) -> bool:
        """Whether a request was read that no checkpoint contains."""
        return self._number > self._committed

    def mark(self) -> Mark:
        """As `Source`."""
        self._marked = time.monotonic()
        senders = {name: asdict(sent) for name, sent in self._senders.items()}
        return {"number": self._number, "rows": self.taken, "senders": senders, "end": self._ended}

    def commit(self) -> None:
        """As `Source`: the record comes first, so that the server always knows every sender."""
        self.saving = time.monotonic() - self._marked
        write_whole(self._folder / COMMITTED, json.dumps(self.mark()).encode(), 0o600)
        for number in range(self._committed + 1, self._number + 1):
            request_path(self._folder, number).unlink(missing_ok=True)
        self._committed = self._number

    def seek(self, mark: Mark) -> None:
        """As `Source`; the process may have been killed before it could commit."""
        self._number, self.taken, self._ended = mark["number"], mark["rows"], mark["end"]
        self._senders = read_senders(mark)
        self._marked = time.monotonic()
        self.commit()

    def close(self) -> None:
        """As `Source`: there is nothing to release."""

    def _sleep(self, seconds: float) -> None:
        if self._wake is None:
            return
        ready, _, _ = select.select([self._wake], [], [], seconds)
        if ready and not os.read(self._wake, 1 << 16):
            self.stopped = True

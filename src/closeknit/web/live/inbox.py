"""`Inbox`: the durable queue of a stream. A request is one file, which is deleted once a checkpoint contains its effect.

Rows are numbered by their sender. A request that is sent again is recognised by its numbers, so it doubles no row; a request
that would leave a gap is refused. The queue is bounded in rows and bytes: what does not fit is refused as a whole.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from closeknit.core.errors import CloseknitError
from closeknit.core.limits import MOST_SENDERS, check_count
from closeknit.io.folders import write_whole

COMMITTED = "committed.json"
DIGITS = 12  # of the number of a request


class QueueFull(CloseknitError):
    """The queue has no room for these rows: send them again later."""

    def __init__(self, sentence: str, rows: int) -> None:
        super().__init__(sentence)
        self.rows = rows  # that must be processed first
        self.seconds = 1  # after which it is worth trying again


class TooLong(CloseknitError):
    """A request that would not fit into an empty queue."""


class OutOfOrder(CloseknitError):
    """A request whose numbers do not continue those of its sender, or a row after the end."""


@dataclass(frozen=True)
class Sent:
    """What a sender has sent: the number of its next row, and the first number and digest of its last request."""

    next: int = 0
    first: int = 0
    digest: str = ""


@dataclass(frozen=True)
class Request:
    """One accepted request; `end` closes the stream."""

    number: int
    sender: str
    rows: int
    sent: Sent
    end: bool = False


@dataclass(frozen=True)
class Receipt:
    """What became of a request: rows accepted now, rows that were accepted before, and the number of the sender's next row."""

    accepted: int
    repeated: int
    next: int


class Inbox:
    """The server's side: accepts requests, one at a time.

    Args:
        folder: the folder of the requests.
        most_rows: rows that may wait.
        most_bytes: bytes that may wait.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     inbox = Inbox(Path(folder), most_rows=3, most_bytes=1000)
    ...     inbox.accept("ward", 0, [{"age": 30}, {"age": 31}])
    ...     inbox.accept("ward", 0, [{"age": 30}, {"age": 31}])
    ...     Inbox(Path(folder), most_rows=3, most_bytes=1000).accept("ward", 1, [{"age": 31}, {"age": 32}])
    Receipt(accepted=2, repeated=0, next=2)
    Receipt(accepted=0, repeated=2, next=2)
    Receipt(accepted=1, repeated=1, next=3)
    """

    def __init__(self, folder: Path, most_rows: int, most_bytes: int) -> None:
        self.folder, self.most_rows, self.most_bytes = folder, most_rows, most_bytes
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Path, int, int]] = deque()  # requests with their rows and bytes, oldest first
        self._rows, self._bytes = 0, 0  # of these
        folder.mkdir(mode=0o700, exist_ok=True)
        committed = read_committed(folder)
        self.senders = read_senders(committed)
        self.accepted, self.ended, self._number = committed["rows"], committed["end"], committed["number"]
        for place in sorted(folder.glob("[0-9]" * DIGITS)):
            request = read_head(place)
            if request.number > self._number:
                self._count(request, place, place.stat().st_size)
        self.heard, self.refused = time.time(), 0.0  # when rows were last accepted, and refused

    def accept(self, sender: str, first: int, rows: Sequence[Mapping[str, Any]]) -> Receipt:
        """Store rows; once this returns, they are on disk.

        Args:
            sender: the name of the sender; each counts its own rows.
            first: the number of the first row, from 0 on.
            rows: the rows.
        """
        with self._lock:
            before = self.senders.get(sender, Sent())
            known = min(max(before.next - first, 0), len(rows))
            digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
            self._check_order(sender, first, len(rows), before, digest)
            if known == len(rows):
                return Receipt(0, known, before.next)
            sent = Sent(first + len(rows), first, digest)
            self._store(Request(self._number + 1, sender, len(rows) - known, sent), rows[known:])
            self.heard = time.time()
            return Receipt(len(rows) - known, known, sent.next)

    def close(self) -> None:
        """Accept no more rows; the stream is flushed after the last one."""
        with self._lock:
            if not self.ended:
                self._store(Request(self._number + 1, "", 0, Sent(), end=True), ())

    @property
    def waiting(self) -> tuple[int, int]:
        """Rows and bytes that are not in a checkpoint yet."""
        with self._lock:
            return self._measure()

    def _check_order(self, sender: str, first: int, rows: int, before: Sent, digest: str) -> None:
        if self.ended and first + rows > before.next:
            raise OutOfOrder("the stream is closed and takes no more rows; create another one")
        if first > before.next:
            who = f" of sender '{sender}'" if sender else ""
            raise OutOfOrder(f"the next row{who} is number {before.next:,}, not {first:,}; send from {before.next:,} on")
        if first == before.first and first + rows == before.next and digest != before.digest:
            raise OutOfOrder(
                f"rows {first:,} to {before.next - 1:,} were accepted with other cells; send new rows from {before.next:,} on"
            )
        if sender not in self.senders:
            check_count("the stream has {} senders", len(self.senders) + 1, MOST_SENDERS)

    def _store(self, request: Request, rows: Sequence[Mapping[str, Any]]) -> None:
        data = f"{json.dumps(asdict(request))}\n{json.dumps(rows)}\n".encode()
        if not request.end:
            self._check_room(request.rows, len(data))
        place = request_path(self.folder, request.number)
        write_whole(place, data, 0o600)
        self._count(request, place, len(data))

    def _check_room(self, rows: int, size: int) -> None:
        if rows > self.most_rows or size > self.most_bytes:
            most = f"{self.most_rows:,} rows or {self.most_bytes:,} bytes"
            raise TooLong(f"the queue of this stream holds at most {most}; send fewer rows in one request")
        rows_waiting, bytes_waiting = self._measure()
        over = rows_waiting + rows - self.most_rows
        if over > 0 or bytes_waiting + size > self.most_bytes:
            self.refused = time.time()
            raise QueueFull(f"the queue is full: {rows_waiting:,} rows wait; send the same rows again later", max(over, rows))

    def _count(self, request: Request, place: Path, size: int) -> None:
        self._number, self.ended = request.number, self.ended or request.end
        self.accepted += request.rows
        if not request.end:
            self.senders[request.sender] = request.sent
        self._waiting.append((place, request.rows, size))
        self._rows, self._bytes = self._rows + request.rows, self._bytes + size

    def _measure(self) -> tuple[int, int]:
        while self._waiting and not self._waiting[0][0].exists():  # the process deletes the oldest first
            _, rows, size = self._waiting.popleft()
            self._rows, self._bytes = self._rows - rows, self._bytes - size
        return self._rows, self._bytes


def request_path(folder: Path, number: int) -> Path:
    """Return the file of a request."""
    return folder / f"{number:0{DIGITS}d}"


def read_head(place: Path) -> Request:
    """Read a request without its rows."""
    with open(place, encoding="ascii") as file:
        return _request(file.readline())


def read_request(place: Path) -> tuple[Request, list[dict[str, Any]]]:
    """Read a request with its rows."""
    head, rows, _ = place.read_text(encoding="ascii").split("\n")
    return _request(head), json.loads(rows)


def _request(head: str) -> Request:
    record = json.loads(head)
    return Request(**{**record, "sent": Sent(**record["sent"])})


def read_committed(folder: Path) -> dict[str, Any]:
    """Read what a checkpoint contains already: the number of the last request, rows, senders, and whether it was the end."""
    place = folder / COMMITTED
    if not place.exists():
        return {"number": 0, "rows": 0, "senders": {}, "end": False}
    return dict(json.loads(place.read_text(encoding="utf-8")))


def read_senders(committed: Mapping[str, Any]) -> dict[str, Sent]:
    """Return the senders of a record that `read_committed` returned."""
    return {name: Sent(**sent) for name, sent in committed["senders"].items()}

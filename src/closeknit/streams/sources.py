"""Where rows come from. A source gives blocks, says where it stands, and can go back there: all that a connector has to do."""

from __future__ import annotations

import hashlib
import os
import select
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Protocol

from closeknit.core.errors import BadInput
from closeknit.io.csv import CsvFormat
from closeknit.io.faults import explain_os_error
from closeknit.streams.lines import ArrivedRow, CsvRows, Lines, NdjsonRows, RejectedLine, Rows

CHUNK = 1 << 16  # bytes that are read at once: memory does not grow with the speed of the writer
REREAD = 1 << 12  # bytes before an offset by which an input is known again
Mark = dict[str, Any]
Check = Callable[[Sequence[str]], None]


@dataclass(frozen=True)
class Block:
    """What came at once: rows in their order, and lines that are none."""

    rows: list[ArrivedRow] = field(default_factory=list)
    refused: list[RejectedLine] = field(default_factory=list)


class Source(Protocol):
    """A connector for what comes in."""

    def read(self, wait: float | None) -> Block | None:
        """What came; an empty block where nothing came for `wait` seconds (None: for ever) or a signal did; None at the end."""

    def mark(self) -> Mark:
        """Plain values by which `seek` finds the place behind all that `read` gave."""

    def commit(self) -> None:
        """The last mark is in a checkpoint: what stands before it will not be asked for again."""

    def seek(self, mark: Mark) -> None:
        """Go on there; an input that is not the same is refused."""

    def close(self) -> None:
        """No more is read."""


class FileSource:
    r"""A file, a named pipe or (path None) standard input, as NDJSON or CSV.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "in.ndjson").write_text('{"age": 41}\n{"age": 30}\n', encoding="utf-8")
    ...     source = FileSource(f"{folder}/in.ndjson")
    ...     [found.row for found in source.read(None).rows], source.mark()["offset"], source.read(None)
    ([{'age': 41}, {'age': 30}], 24, None)
    """

    def __init__(
        self,
        path: str | PathLike[str] | None,
        csv: CsvFormat | None = None,
        wake: int | None = None,
        again: bool | None = None,
        check: Check | None = None,
    ) -> None:
        """`csv` None means NDJSON; `wake` is a handle that ends waiting when something can be read from it; `again` says
        whether a pipe that is taken up again tells everything from its start, or goes on; `check` refuses a wrong header."""
        self.name = "standard input" if path is None else str(path)
        self._csv, self._again, self._check = csv, again, check
        try:
            self._handle = os.dup(0) if path is None else os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            if stat.S_ISDIR(os.fstat(self._handle).st_mode):
                raise BadInput("this is a folder, not a file", file=path, right="name a file in it")
        except OSError as error:
            raise explain_os_error(error, self.name) from None
        self._poll = select.poll()
        for handle in (self._handle, wake):
            if handle is not None:
                self._poll.register(handle, select.POLLIN | select.POLLHUP)
        self._lines, self._rows, self._ended = Lines(), self._reader({}), False
        self._end, self._recent = 0, b""  # how much was read, and the last of it

    def read(self, wait: float | None) -> Block | None:
        """As `Source` says."""
        if self._ended:
            return None
        ready = dict(self._poll.poll(None if wait is None else max(int(wait * 1000), 0)))
        if self._handle not in ready:
            return Block()
        data = self._bytes()
        self._ended = not data
        self._remember(data)
        block = Block()
        for found in self._rows.read(self._lines.cut(data, last=self._ended), last=self._ended):
            (block.rows if isinstance(found, ArrivedRow) else block.refused).append(found)  # type: ignore[arg-type]
        return None if self._ended and not block.rows and not block.refused else block

    def mark(self) -> Mark:
        """As `Source` says: the offset behind the last row, and a digest of what stands before it."""
        unfinished = self._rows.held[:1]  # is read again
        offset = unfinished[0].start if unfinished else self._lines.offset
        number = unfinished[0].number - 1 if unfinished else self._lines.number
        tail = self._recent[: max(len(self._recent) - (self._end - offset), 0)][-REREAD:]
        return {
            "offset": offset,
            "lines": number,
            "known": self._rows.known,
            "before": len(tail),
            "digest": hashlib.sha256(tail).hexdigest(),
        }

    def commit(self) -> None:
        """As `Source` says: a file stays as it is."""

    def seek(self, mark: Mark) -> None:
        """As `Source` says."""
        if "offset" not in mark:
            right = "name that as input, or begin with another --checkpoint folder"
            raise BadInput(f"the checkpoint reads from {mark.get('path')}", file=self.name, right=right)
        offset, before = mark["offset"], mark["before"]
        if offset == 0:
            return
        if self._seekable():
            os.lseek(self._handle, offset - before, os.SEEK_SET)
        elif self._again is None:
            what = f"a pipe cannot be wound forward, and the checkpoint has read {offset:,} bytes of the input"
            right = "give --pipe replay if the sender repeats all rows, or --pipe resume if it sends only the remaining ones"
            raise BadInput(what, file=self.name, right=right)
        if not self._seekable() and self._again:
            self._skip(offset - before)
        if self._seekable() or self._again:
            self._remember(self._exactly(before))
            if hashlib.sha256(self._recent).hexdigest() != mark["digest"]:
                right = "give the same input again, or begin with another --checkpoint folder"
                raise BadInput("this is not the input that the checkpoint has read", file=self.name, right=right)
        self._end = offset
        self._lines, self._rows = Lines(offset, mark["lines"]), self._reader(mark["known"])

    def close(self) -> None:
        """As `Source` says."""
        os.close(self._handle)

    def _reader(self, known: Mark) -> Rows:
        return NdjsonRows() if self._csv is None else CsvRows(self._csv, known, self._check)

    def _seekable(self) -> bool:
        return stat.S_ISREG(os.fstat(self._handle).st_mode)

    def _bytes(self, most: int | None = None) -> bytes:
        while True:
            try:
                return os.read(self._handle, min(most or CHUNK, CHUNK))
            except BlockingIOError:
                self._poll.poll()
            except OSError as error:
                raise explain_os_error(error, self.name) from None

    def _exactly(self, count: int) -> bytes:
        parts: list[bytes] = []
        while count > 0 and (part := self._bytes(count)):
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _skip(self, count: int) -> None:
        while count > 0 and (part := self._bytes(count)):
            count -= len(part)

    def _remember(self, data: bytes) -> None:
        self._end += len(data)
        self._recent = (self._recent + data)[-(CHUNK + REREAD) :]

"""Inputs of a stream. A source returns blocks of rows, marks its place, and can return to a mark."""

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
from closeknit.io.faults import explain_os_error, name_os_errors
from closeknit.streams.lines import ArrivedRow, CsvRows, Lines, NdjsonRows, RejectedLine, Rows
from closeknit.streams.sinks import NEW_FOLDER

CHUNK = 1 << 16  # bytes read at once: memory does not grow with the speed of the writer
REREAD = 1 << 12  # bytes before an offset by which an input is recognised
Mark = dict[str, Any]
Check = Callable[[Sequence[str]], None]


@dataclass(frozen=True)
class Block:
    """Rows that arrived together, in order, and rejected lines."""

    rows: list[ArrivedRow] = field(default_factory=list)
    refused: list[RejectedLine] = field(default_factory=list)


class SourceDown(BadInput):
    """The input is down for the moment, and no row was taken from it: the same call may be repeated."""


class Source(Protocol):
    """A connector for arriving rows."""

    def read(self, wait: float | None) -> Block | None:
        """The next rows; an empty block after `wait` seconds of silence (None: no limit) or a signal; None at the end.

        Raise `SourceDown` if the input is down for the moment and this call may be repeated.
        """

    def mark(self) -> Mark:
        """Plain values from which `seek` finds the place after all rows that `read` returned."""

    def commit(self) -> None:
        """The last mark is in a checkpoint: rows before it will not be read again."""

    def seek(self, mark: Mark) -> None:
        """Resume at a mark; refuse another input."""

    def close(self) -> None:
        """Release the input."""


def refuse_other_input(mark: Mark, here: Mark, names: Sequence[str]) -> None:
    """Refuse a mark of another input.

    Args:
        mark: from the checkpoint.
        here: the mark of this input.
        names: the keys that distinguish inputs; the first one is `path`.
    """
    for name in names:
        if mark.get(name) != here[name]:
            what = f"the checkpoint reads from {mark.get(name) or 'another input'}, not from {here[name]}"
            raise BadInput(what, file=here["path"], right=f"name the {name} of the checkpoint, {NEW_FOLDER}")


class FileSource:
    r"""A file, a named pipe or standard input, as NDJSON or CSV.

    Args:
        path: the file or pipe; None for standard input.
        csv: the format of a CSV input; None for NDJSON.
        wake: a file descriptor that ends waiting when it becomes readable.
        replay: after a restart, whether a pipe sends all rows again (True) or only the remaining ones (False).
        check: refuses a wrong header.
        chunk: bytes read at once.

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
        replay: bool | None = None,
        check: Check | None = None,
        chunk: int = CHUNK,
    ) -> None:
        self.name = "standard input" if path is None else str(path)
        self._csv, self._replay, self._check, self._chunk = csv, replay, check, chunk
        with name_os_errors(self.name):
            self._handle = os.dup(0) if path is None else os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            if stat.S_ISDIR(os.fstat(self._handle).st_mode):
                raise BadInput("this is a folder, not a file", file=path, right="name a file in it")
        self._poll = select.poll()
        for handle in (self._handle, wake):
            if handle is not None:
                self._poll.register(handle, select.POLLIN | select.POLLHUP)
        self._lines, self._rows, self._ended = Lines(), self._reader({}), False
        self._end, self._recent = 0, b""  # bytes read, and the last of them

    def read(self, wait: float | None) -> Block | None:
        """As `Source`."""
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
        """As `Source`: the offset after the last row, and a digest of the bytes before it."""
        unfinished = self._rows.held[:1]  # will be read again
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
        """As `Source`: a file does not change."""

    def seek(self, mark: Mark) -> None:
        """As `Source`."""
        if "offset" not in mark:
            right = f"name that as input, {NEW_FOLDER}"
            raise BadInput(f"the checkpoint reads from {mark.get('path')}", file=self.name, right=right)
        offset, before = mark["offset"], mark["before"]
        if offset == 0:
            return
        if self._seekable():
            os.lseek(self._handle, offset - before, os.SEEK_SET)
        elif self._replay is None:
            what = f"a pipe cannot be wound forward, and the checkpoint has read {offset:,} bytes of the input"
            right = "give --pipe replay if the sender repeats all rows, or --pipe resume if it sends only the remaining ones"
            raise BadInput(what, file=self.name, right=right)
        if not self._seekable() and self._replay:
            self._skip(offset - before)
        if self._seekable() or self._replay:
            self._remember(self._exactly(before))
            if hashlib.sha256(self._recent).hexdigest() != mark["digest"]:
                right = f"give the same input, {NEW_FOLDER}"
                raise BadInput("this is not the input that the checkpoint has read", file=self.name, right=right)
        self._end = offset
        self._lines, self._rows = Lines(offset, mark["lines"]), self._reader(mark["known"])

    def close(self) -> None:
        """As `Source`."""
        os.close(self._handle)

    def _reader(self, known: Mark) -> Rows:
        return NdjsonRows() if self._csv is None else CsvRows(self._csv, known, self._check)

    def _seekable(self) -> bool:
        return stat.S_ISREG(os.fstat(self._handle).st_mode)

    def _bytes(self, most: int | None = None) -> bytes:
        while True:
            try:
                return os.read(self._handle, min(most or self._chunk, self._chunk))
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
        self._recent = (self._recent + data)[-(self._chunk + REREAD) :]

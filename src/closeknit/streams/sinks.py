"""Outputs of a stream. A sink writes batches, marks what is safe, and can return to a mark."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from os import PathLike
from typing import Any, Protocol, runtime_checkable

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.canonical import canonical_blocks
from closeknit.io.faults import explain_os_error, name_os_errors
from closeknit.io.ndjson import lines_of

Mark = dict[str, Any]
NEW_FOLDER = "or begin with another --checkpoint folder"
DOWN = {errno.ENOSPC, errno.EDQUOT, errno.ETIMEDOUT, errno.ESTALE}  # a disk that is full or away for some time


class SinkDown(BadInput):
    """The output is down for the moment, and nothing is written by halves: the same batch may be written again."""


class Sink(Protocol):
    """A connector for published batches."""

    def write(self, number: int, batch: Columns) -> None:
        """Write a batch; after a restart a number may be written again, with the same rows.

        Raise `SinkDown` if the output is down for the moment and this call may be repeated.
        """

    def mark(self) -> Mark:
        """Make everything written safe; plain values from which `seek` finds this place again."""

    def seek(self, mark: Mark) -> None:
        """Return to a mark: later batches will be written again, so remove them if possible."""

    def empty(self) -> None:
        """Begin a new stream: remove what an older one wrote."""

    def close(self) -> None:
        """Release the output."""


@runtime_checkable
class BufferedSink(Sink, Protocol):
    """A sink that collects batches, and writes them together with the certificate of all rows up to the last one."""

    def settle(self, certificate: Callable[[], str], saving: bool) -> None:
        """Rows that arrived together are all processed: write what was collected.

        Raise `SinkDown` if the output is down for the moment and this call may be repeated.

        Args:
            certificate: returns the certificate of all rows up to the last batch.
            saving: whether a checkpoint follows: a certificate that has changed without a new row is written, too.
        """


class FileSink:
    r"""Rows appended to a file. Returning to a mark truncates it, so the file has each row exactly once.

    Args:
        path: the file.
        csv: whether to write CSV instead of NDJSON.
        mode: the permissions of the file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sink = FileSink(f"{folder}/out.csv", csv=True)
    ...     sink.write(1, Columns.of({"age": ["[30, 39]"]}))
    ...     mark = sink.mark()
    ...     sink.write(2, Columns.of({"age": ["41"]}))
    ...     sink.seek(mark)
    ...     Path(folder, "out.csv").read_bytes()
    b'age\n"[30, 39]"\n'
    """

    def __init__(self, path: str | PathLike[str], csv: bool = False, mode: int = 0o644) -> None:
        self.path, self._csv, self._offset = os.path.abspath(path), csv, 0
        with name_os_errors(path):
            self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT, mode)
            if not stat.S_ISREG(os.fstat(self._handle).st_mode):
                raise BadInput("this is not a regular file", file=path, right="choose another name")
            os.fchmod(self._handle, mode)

    def write(self, number: int, batch: Columns) -> None:
        """As `Sink`; the number is not written."""
        self.write_bytes(csv_bytes(batch, self._offset == 0) if self._csv else ndjson_bytes(batch))

    def write_bytes(self, data: bytes) -> None:
        """Append bytes."""
        try:
            write_all(self._handle, data)
        except OSError as error:
            failed = explain_os_error(error, self.path)
            if error.errno not in DOWN:
                raise failed from None
            self._cut(self._offset)
            raise SinkDown(failed.what, file=self.path, right="make room on the disk") from None
        self._offset += len(data)

    def mark(self) -> Mark:
        """As `Sink`: the length of the file on disk."""
        os.fsync(self._handle)
        return {"path": self.path, "offset": self._offset, "csv": self._csv}

    def seek(self, mark: Mark) -> None:
        """As `Sink`."""
        right = f"name the output of the checkpoint, {NEW_FOLDER}"
        if (mark.get("path"), mark.get("csv")) != (self.path, self._csv):
            raise BadInput(f"the checkpoint writes to {describe_mark(mark)}", file=self.path, right=right)
        if (there := os.fstat(self._handle).st_size) < mark["offset"]:
            what = f"the file has {there:,} bytes, and the checkpoint has written {mark['offset']:,}"
            raise BadInput(what, file=self.path, right=f"restore the file, {NEW_FOLDER}")
        self._cut(mark["offset"])

    def empty(self) -> None:
        """As `Sink`."""
        self._cut(0)

    def _cut(self, offset: int) -> None:
        os.ftruncate(self._handle, offset)
        self._offset = os.lseek(self._handle, offset, os.SEEK_SET)

    def close(self) -> None:
        """As `Sink`."""
        os.close(self._handle)


class PipeSink:
    r"""Standard output or a named pipe: a line for each batch with its number, so that the reader can drop repeats.

    Args:
        handle: the file descriptor.
        csv: whether to write CSV instead of NDJSON.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     PipeSink(file.fileno()).write(7, Columns.of({"age": ["[30, 39]", "[30, 39]"]}))
    ...     _ = file.seek(0)
    ...     file.read()
    b'{"batch":7,"rows":[{"age":"[30, 39]"},{"age":"[30, 39]"}]}\n'
    """

    def __init__(self, handle: int, csv: bool = False) -> None:
        self._handle, self._csv, self._begun = os.dup(handle), csv, False

    def write(self, number: int, batch: Columns) -> None:
        """As `Sink`."""
        rows = ",".join(lines_of(batch))
        data = csv_bytes(batch, not self._begun) if self._csv else f'{{"batch":{number},"rows":[{rows}]}}\n'.encode()
        self._begun = True
        write_all(self._handle, data)

    def mark(self) -> Mark:
        """As `Sink`; a pipe has no place to return to."""
        return {"path": None}

    def seek(self, mark: Mark) -> None:
        """As `Sink`: batches after the mark are written again."""
        if mark.get("path") is not None:
            right = f"name that file as output, {NEW_FOLDER}"
            raise BadInput(f"the checkpoint writes to {describe_mark(mark)}, not to a pipe", right=right)
        write_all(self._handle, b"\n")  # ends a line that was incomplete when the process was killed

    def empty(self) -> None:
        """As `Sink`: nothing to remove."""

    def close(self) -> None:
        """As `Sink`."""
        os.close(self._handle)


class Rejects:
    r"""Rejected lines, in a private file if a path is given.

    Args:
        path: the file, or None.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Rejects(f"{folder}/rejects").write(3, "it is not JSON", "{")
    ...     Path(folder, "rejects").read_text()
    '{"line": 3, "why": "it is not JSON", "text": "{"}\n'
    """

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self._file = None if path is None else FileSink(path, mode=0o600)

    def write(self, line: int, why: str, text: str) -> None:
        """Write a rejected line: its number, the reason, and its beginning."""
        if self._file is not None:
            self._file.write_bytes((json.dumps({"line": line, "why": why, "text": text}, ensure_ascii=False) + "\n").encode())

    def mark(self) -> Mark:
        """As `Sink`."""
        return {"path": None} if self._file is None else self._file.mark()

    def seek(self, mark: Mark) -> None:
        """As `Sink`; a file that the checkpoint does not have begins here."""
        if self._file is not None and mark.get("path") is not None:
            self._file.seek(mark)
        else:
            self.empty()

    def empty(self) -> None:
        """As `Sink`."""
        if self._file is not None:
            self._file.empty()

    def close(self) -> None:
        """As `Sink`."""
        if self._file is not None:
            self._file.close()


def ndjson_bytes(batch: Columns) -> bytes:
    """One line for each row.

    >>> ndjson_bytes(Columns.of({"age": [30]}))
    b'{"age":30}\\n'
    """
    return "".join(line + "\n" for line in lines_of(batch)).encode()


def csv_bytes(batch: Columns, header: bool) -> bytes:
    """The canonical CSV text, with or without its header.

    >>> csv_bytes(Columns.of({"age": [30]}), header=False)
    b'30\\n'
    """
    head, *blocks = canonical_blocks(batch)
    return (head if header else b"") + b"".join(blocks)


def write_all(handle: int, data: bytes) -> None:
    """Write all of these bytes: the system may take fewer at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def describe_mark(mark: Mark) -> str:
    """The output of a mark, for a message.

    >>> describe_mark({"path": "rows.csv", "offset": 0, "csv": True}), describe_mark({"path": None})
    ('rows.csv as CSV', 'a pipe')
    """
    kind = f" as {'CSV' if mark['csv'] else 'NDJSON'}" if "csv" in mark else ""
    return "a pipe" if mark.get("path") is None else f"{mark['path']}{kind}"

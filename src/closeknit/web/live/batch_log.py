"""`BatchLog`: published batches that wait to be fetched, in files of a bounded size. Recipients acknowledge what they have.

A line is a batch, `{"batch": 17, "rows": [...]}`. A file is named after its first batch and deleted once all its batches are
acknowledged, so an endless stream needs bounded space. After a restart batches are written again with the same numbers and
rows: whoever has fetched them continues with the next number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.faults import name_os_errors
from closeknit.io.folders import write_whole
from closeknit.io.ndjson import lines_of
from closeknit.streams.sinks import Mark, write_all
from closeknit.web.cases import read_json

ACKNOWLEDGED = "acknowledged.json"
FILES = 8  # into which the space is divided at least
LARGEST = 4 << 20  # bytes of a file, beyond which the next one begins: a request reads one or two
BEFORE = len('{"batch":')


class BatchLog:
    r"""A sink of batches, in the process of the stream.

    Args:
        folder: the folder of the files.
        most: bytes that may wait.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = BatchLog(Path(folder), most=80)
    ...     for number in (1, 2, 3):
    ...         log.write(number, Columns.of({"age": ["[30, 39]"]}))
    ...     fetch_batches(Path(folder), after=1, most=1000), log.full
    ...     acknowledge(Path(folder), 2)
    ...     mark = log.mark()
    ...     log.delete_acknowledged()
    ...     fetch_batches(Path(folder), after=2, most=1000), log.full
    ([b'{"batch":2,"rows":[{"age":"[30, 39]"}]}', b'{"batch":3,"rows":[{"age":"[30, 39]"}]}'], True)
    ([b'{"batch":3,"rows":[{"age":"[30, 39]"}]}'], False)
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._first, self._handle, self._offset = 0, -1, 0  # the file that is written
        self._size, self._last = 0, 0  # bytes of all files, and the last batch in them
        self._marked = 0  # the file of the last mark: those before it are never written again
        folder.mkdir(mode=0o700, exist_ok=True)

    def write(self, number: int, batch: Columns) -> None:
        """As `Sink`."""
        if self._handle < 0 or self._offset >= min(self._most // FILES, LARGEST):
            self.close()
            self._open(number)
        line = f'{{"batch":{number},"rows":[{",".join(lines_of(batch))}]}}\n'.encode()
        with name_os_errors(_path(self._folder, self._first)):
            write_all(self._handle, line)
        self._offset, self._size, self._last = self._offset + len(line), self._size + len(line), number

    def mark(self) -> Mark:
        """As `Sink`."""
        if self._handle >= 0:
            os.fsync(self._handle)
        self._marked = self._first
        return {"first": self._first, "offset": self._offset}

    def seek(self, mark: Mark) -> None:
        """As `Sink`: removes what was written later."""
        self.close()
        for first in list_files(self._folder):
            if first > mark["first"]:
                _path(self._folder, first).unlink()
        self._marked = mark["first"]
        if mark["first"]:
            self._open(mark["first"])
            os.ftruncate(self._handle, mark["offset"])
            self._offset = os.lseek(self._handle, mark["offset"], os.SEEK_SET)
        self._size = sum(_path(self._folder, first).stat().st_size for first in list_files(self._folder))
        self._last = find_last(self._folder)

    def empty(self) -> None:
        """As `Sink`."""
        self.seek({"first": 0, "offset": 0})

    def close(self) -> None:
        """As `Sink`."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle, self._offset = -1, 0

    @property
    def full(self) -> bool:
        """Whether batches that no one has acknowledged fill the space."""
        return self._size >= self._most and read_acknowledged(self._folder) < self._last

    def delete_acknowledged(self) -> None:
        """Delete files whose batches are all acknowledged, and to which no restart returns."""
        through = read_acknowledged(self._folder)
        for first, following in pairwise(list_files(self._folder)):
            if following - 1 <= through and first < self._marked:
                self._size -= (place := _path(self._folder, first)).stat().st_size
                place.unlink()

    def _open(self, first: int) -> None:
        place = _path(self._folder, first)
        with name_os_errors(place):
            self._handle = os.open(place, os.O_WRONLY | os.O_CREAT, 0o600)
        self._first, self._offset = first, 0


def fetch_batches(folder: Path, after: int, most: int) -> list[bytes]:
    """Return the lines of the batches that follow a number; the first one in any case, others up to `most` bytes.

    Args:
        folder: the folder of a `BatchLog`.
        after: the number of the last batch that the recipient has.
        most: bytes.
    """
    if after < (gone := read_acknowledged(folder)):
        raise BadInput(f"batches up to {gone:,} were acknowledged and are deleted", right=f"fetch them after {gone:,}")
    found: list[bytes] = []
    for line in _lines_after(folder, after):
        if found and sum(map(len, found)) + len(line) > most:
            break
        found.append(line)
    return found


def acknowledge(folder: Path, through: int) -> None:
    """Note that all batches through this number were received.

    Args:
        folder: the folder of a `BatchLog`.
        through: the number of the last one.
    """
    last = find_last(folder)
    if through > max(last, read_acknowledged(folder)):
        raise BadInput(f"batch {through:,} is not published yet", right=f"acknowledge at most {last:,}")
    if through > read_acknowledged(folder):
        write_whole(folder / ACKNOWLEDGED, str(through).encode(), 0o600)


def read_acknowledged(folder: Path) -> int:
    """Return the number of the last acknowledged batch; 0 if there is none."""
    return read_json(folder / ACKNOWLEDGED) or 0


def list_files(folder: Path) -> list[int]:
    """Return the first batch of each file, in order."""
    return sorted(int(place.stem) for place in folder.glob("*.ndjson"))


def find_last(folder: Path) -> int:
    """Return the number of the last batch; 0 if there is none."""
    files = list_files(folder)
    return max((number_of(line) for line in _lines_after(folder, files[-1] - 1)), default=0) if files else 0


def number_of(line: bytes) -> int:
    """Return the number of a batch.

    >>> number_of(b'{"batch":17,"rows":[]}')
    17
    """
    return int(line[BEFORE : line.index(b",", BEFORE)])


def _lines_after(folder: Path, after: int) -> Iterator[bytes]:
    """Yield complete lines: the last one may just be written."""
    files = list_files(folder)
    begin = max((i for i, first in enumerate(files) if first <= after + 1), default=0)
    for first in files[begin:]:
        with suppress(FileNotFoundError), open(_path(folder, first), "rb") as file:  # it may be acknowledged meanwhile
            for line in file:
                if line.endswith(b"\n") and number_of(line) > after:
                    yield line[:-1]


def _path(folder: Path, first: int) -> Path:
    return folder / f"{first:012d}.ndjson"

"""The folder of a running stream: its checkpoint and, if the delay is in seconds, the log of ticks since then.

A tick changes what is published, and no input records it. So each tick that matters is synced to the log before a batch that
depends on it is written; after a crash the ticks are replayed from the log, at the same rows.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from closeknit.core.errors import BadInput
from closeknit.io.faults import explain_os_error
from closeknit.io.folders import refuse_no_parent
from closeknit.streams.checkpoint import load_with_metadata, save
from closeknit.streams.stream import Stream

CHECKPOINT, TICKS = "checkpoint", "ticks-"


class Tick(NamedTuple):
    """A time and its place: after `position` rows and `batch` batches (None: while rows were added)."""

    now: float
    position: int
    batch: int | None
    offset: int | None = None  # of the input; informative
    end: bool = False  # whether the input had ended


class CheckpointFolder:
    """A private folder for one process at a time.

    Args:
        path: the folder, which is created if it does not exist.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = CheckpointFolder(f"{place}/ck")
    ...     CheckpointFolder(f"{place}/ck")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: ...: another process uses this checkpoint; stop it first, or choose another folder
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        self._created = not self.path.exists()
        refuse_no_parent(Path(path))
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(self.path, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            right = "stop it first, or choose another folder"
            raise BadInput("another process uses this checkpoint", file=path, right=right) from None
        except OSError as error:
            raise explain_os_error(error, path) from None
        self._log: int | None = None
        self._unsynced = False
        for left in self.path.glob(f".{CHECKPOINT}.tmp-*"):  # from a run that was killed
            left.unlink()

    @property
    def begun(self) -> bool:
        """Whether there is a checkpoint."""
        return (self.path / CHECKPOINT).exists()

    def load(self) -> tuple[Stream, dict[str, Any], list[Tick]]:
        """The stream, its metadata, and the ticks since the checkpoint."""
        stream, metadata = load_with_metadata(self.path / CHECKPOINT, Stream)
        if "number" not in metadata:
            right = "load it with load(), or choose another --checkpoint folder"
            raise BadInput("this checkpoint has no place in an input", file=self.path / CHECKPOINT, right=right)
        log = self.path / f"{TICKS}{metadata['number']}"
        ticks = _read_ticks(log)
        self._open(log, os.O_APPEND)
        return stream, metadata, ticks

    def save(self, stream: Stream, metadata: dict[str, Any]) -> None:
        """Write a new checkpoint and begin a new log."""
        save(stream, self.path / CHECKPOINT, metadata)
        self._close()
        for old in self.path.glob(f"{TICKS}*"):
            old.unlink()
        self._open(self.path / f"{TICKS}{metadata['number']}", os.O_TRUNC)

    def log_tick(self, tick: Tick) -> None:
        """Log a tick; it is safe after `sync`."""
        assert self._log is not None
        os.write(self._log, (json.dumps(tick._asdict()) + "\n").encode())
        self._unsynced = True

    def sync(self) -> None:
        """Write all logged ticks to disk."""
        if self._unsynced:
            assert self._log is not None
            os.fsync(self._log)
            self._unsynced = False

    def close(self) -> None:
        """Release the folder; a new one that got no checkpoint is removed."""
        self._close()
        if self._created and not self.begun:
            with suppress(OSError):  # it has other files
                self.path.rmdir()
        os.close(self._lock)

    def _open(self, log: Path, how: int) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | how, 0o600)
        os.fsync(self._lock)  # the descriptor of the folder: the name of the log must be on disk as well

    def _close(self) -> None:
        if self._log is not None:
            os.close(self._log)
            self._log = None


def _read_ticks(log: Path) -> list[Tick]:
    """Complete lines only: one that was being written when the process was killed has had no effect."""
    if not log.exists():
        return []
    text = log.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        os.truncate(log, len(whole))
    try:
        return [Tick(**json.loads(line)) for line in whole.splitlines()]
    except (ValueError, TypeError):
        right = "restore the file, or begin with another --checkpoint folder"
        raise BadInput("this is not a log of ticks", file=log, right=right) from None

"""The folders of the server. That of `closeknit ui` is deleted at its end, or at the next start if it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from closeknit.core.errors import BadInput


@contextmanager
def open_temporary_workspace(parent: Path | None = None) -> Iterator[Path]:
    """Yield a folder that is deleted at the end. A server locks its folder, so an unlocked one is left from a killed server.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_temporary_workspace(Path(folder)) as home:
    ...         there = home.is_dir()
    ...     there, home.exists()
    (True, False)
    """
    parent = parent or Path(tempfile.gettempdir())
    place = parent / f"closeknit-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise BadInput("this folder is not private to you", file=place, right="remove it, or set TMPDIR to another place")
    for left in place.iterdir():
        _remove_left(left)
    home = Path(tempfile.mkdtemp(prefix="ui-", dir=place))
    lock = _lock_folder(home)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def open_workspace(home: Path) -> Iterator[Path]:
    """Yield a folder that persists; one server at a time may use it."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(home.stat().st_mode) & 0o077:
        raise BadInput("other users can read this folder", file=home, right="make it private: chmod 700")
    lock = _lock_folder(home)
    if lock is None:
        raise BadInput("another server uses this folder", file=home, right="stop it, or choose another folder")
    try:
        yield home
    finally:
        os.close(lock)


def _remove_left(folder: Path) -> None:
    with suppress(OSError):
        lock = _lock_folder(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock_folder(folder: Path) -> int | None:
    """Lock a folder; the system releases the lock even if the process is killed. None if another process holds it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle

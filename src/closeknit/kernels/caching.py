"""The cache of compiled kernels: chosen once per process, the first of these folders that is writable. Without any, a process
compiles in memory.

1. `NUMBA_CACHE_DIR`, if it is set.
2. `__pycache__` next to the kernels.
3. The user's cache folder (`$XDG_CACHE_HOME/closeknit` or `~/.cache/closeknit` on Linux): a read-only installation.
4. `closeknit-USER` in the folder for temporary files, for users without a home folder. Only if it belongs to the user and no
   one else can write there, because code loaded from it is executed.

Numba compares the source file of a kernel with that of the cached code. Here the files of the kernels it calls are compared
too: otherwise an upgrade that changes only these would keep the old code.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.misc.appdirs import AppDirs

HERE = Path(__file__).parent
KERNELS = re.compile(r"^from closeknit\.kernels\.([\w.]+) import", re.MULTILINE)


@cache
def cache_folder() -> Path | None:
    """Return the cache folder of this process, None if no folder is writable."""
    return next((folder for folder in _candidates() if _is_writable(folder)), None)


def _candidates() -> Iterator[Path]:
    """Yield all candidate folders; in shared ones each installation has its own subfolder."""
    own = hashlib.sha256(os.fsencode(HERE)).hexdigest()[:16]
    if chosen := config.CACHE_DIR:  # type: ignore[attr-defined]
        yield Path(chosen) / f"closeknit-{own}"
    yield HERE / "__pycache__"
    yield Path(AppDirs("closeknit", appauthor=False).user_cache_dir) / own
    with contextlib.suppress(OSError, KeyError):  # a user without a name
        private = Path(tempfile.gettempdir()) / f"closeknit-{getpass.getuser()}"
        private.mkdir(mode=0o700, exist_ok=True)
        if _is_private(private):
            yield private / own


def _is_private(folder: Path) -> bool:
    """Whether it is a folder of this user to which no one else can write.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     own = _is_private(Path(folder))
    ...     os.chmod(folder, 0o777)
    ...     own, _is_private(Path(folder))
    (True, False)
    """
    found = folder.lstat()
    if not hasattr(os, "getuid"):  # Windows has a temporary folder per user
        return stat.S_ISDIR(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


@cache
def _stamp(module: Path) -> bytes:
    """Hash a kernel's file together with all files from which it imports kernels.

    >>> _stamp(HERE / "geometry" / "boxes.py") == _stamp(HERE / "geometry" / "ranges.py")
    False
    """
    files = {module}
    waiting = [module]
    while waiting:
        text = waiting.pop().read_text(encoding="utf-8")
        more = {HERE / f"{name.replace('.', '/')}.py" for name in KERNELS.findall(text)} - files
        files |= more
        waiting += more
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).digest()


class _Locator:
    """Numba's interface to the location and the version of a kernel's cached code."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        self._line, self._file = py_func.__code__.co_firstlineno, Path(py_file)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        return cls(py_func, py_file)

    def ensure_cache_path(self) -> None:
        os.makedirs(self.get_cache_path(), exist_ok=True)

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> bytes:
        return _stamp(self._file)

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Impl(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012 - as numba declares it


class KernelCache(FunctionCache):
    """The cache of one kernel."""

    _impl_class = _Impl

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        # Numba unpickles an index before it compares sources, which fails where a kernel's types have moved since.
        self._cache_file._version += self._cache_file._source_stamp.hex()

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code; a full disk is not an error."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)

"""`WorkerProcess`: a process for the tasks of one case, started before there is one, so that its imports are over by then."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from closeknit.web.settings import Settings


class WorkerProcess:
    """Waits for lines on its standard input and does what they say; it ends when that input is closed."""

    def __init__(self, settings: Settings) -> None:
        limits = {"memory": settings.memory, "unpacked": settings.unpacked, "rows": settings.rows, "columns": settings.columns}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "closeknit.web.worker", json.dumps(limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # a library may complain with cells in it
            cwd=settings.home,
            start_new_session=True,  # a group of its own, which is ended as one
        )
        self.since = time.time()

    def give(self, folder: Path, number: int) -> None:
        """A task; from now on its time counts."""
        assert self._process.stdin is not None
        self.since = time.time()
        with contextlib.suppress(BrokenPipeError):  # it was killed: this is found out when it is collected
            self._process.stdin.write(json.dumps({"folder": str(folder), "task": number}).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def alive(self) -> bool:
        """Whether it still works or waits."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its number in the system."""
        return self._process.pid

    def end(self) -> None:
        """At once, with all that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

"""`WorkerProcess`: a process for the tasks of one case, started ahead of time because its imports are slow."""

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
    """Takes tasks as lines on standard input; it ends when that input is closed."""

    def __init__(self, settings: Settings) -> None:
        limits = {"memory": settings.memory, "unpacked": settings.unpacked, "rows": settings.rows, "columns": settings.columns}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "closeknit.web.worker", json.dumps(limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # messages of a library may contain cells
            cwd=settings.home,
            start_new_session=True,  # a process group of its own, which is killed as one
        )
        self.since = time.time()

    def give(self, folder: Path, number: int) -> None:
        """Hand over a task and start its clock."""
        assert self._process.stdin is not None
        self.since = time.time()
        with contextlib.suppress(BrokenPipeError):  # the process was killed: `Tasks` notices that later
            self._process.stdin.write(json.dumps({"folder": str(folder), "task": number}).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def end(self) -> None:
        """Kill the process with its children."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

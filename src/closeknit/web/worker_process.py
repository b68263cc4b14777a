"""Processes of the server: `WorkerProcess` for the tasks of one case, started ahead of time because its imports are slow."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from closeknit.web.settings import Settings


class ChildProcess:
    """A module that runs in a process of its own and ends when its standard input is closed.

    Args:
        settings: folder and limits of the server.
        module: the module.
        options: its only argument, as JSON.
    """

    def __init__(self, settings: Settings, module: str, options: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # messages of a library may contain cells
            cwd=settings.home,
            start_new_session=True,  # a process group of its own, which is killed as one
        )
        assert self._process.stdin is not None
        self._input = self._process.stdin
        self.since = time.time()

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
        with contextlib.suppress(BrokenPipeError):
            self._input.close()


class WorkerProcess(ChildProcess):
    """Takes tasks as lines on standard input."""

    def __init__(self, settings: Settings) -> None:
        limits = {"memory": settings.memory, "unpacked": settings.unpacked, "rows": settings.rows, "columns": settings.columns}
        super().__init__(settings, "closeknit.web.worker", limits)

    def give(self, folder: Path, number: int) -> None:
        """Hand over a task and start its clock."""
        self.since = time.time()
        with contextlib.suppress(BrokenPipeError):  # the process was killed: its owner notices that later
            self._input.write(json.dumps({"folder": str(folder), "task": number}).encode() + b"\n")
            self._input.flush()

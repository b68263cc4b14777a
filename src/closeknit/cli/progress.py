"""The progress bar of a command: on stderr, only at a terminal, and only for work of more than a second."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from closeknit.api.compile_progress import with_compiling
from closeknit.core.method import Progress

PATIENCE = 1.0  # seconds


class ProgressBar:
    """A callable that takes the current step and the share of the work done.

    >>> with ProgressBar(shown=False) as bar:
    ...     bar("dealing", 0.5)
    """

    def __init__(self, shown: bool | None = None) -> None:
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._at = ("starting", 0.0)
        self._bar: Any = None
        self._task: Any = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._watching = ExitStack()
        self._report: Progress = self._note

    def __enter__(self) -> ProgressBar:
        if self._shown:
            self._timer.start()
            self._report = self._watching.enter_context(with_compiling(self._note))
        return self

    def __call__(self, what: str, share: float) -> None:
        self._report(what, share)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._watching.close()
        self._timer.cancel()
        with self._lock:
            self._shown = False
            if self._bar is not None:
                self._bar.stop()

    def _note(self, what: str, share: float) -> None:
        with self._lock:
            self._at = (what, share)
            if self._bar is not None:
                self._bar.update(self._task, description=what, completed=share)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if not self._shown:
                return
            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._at[0], total=1.0, completed=self._at[1])
            self._bar.start()

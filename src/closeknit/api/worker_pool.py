"""Independent tasks, in this process or in several, with the same results.

A process takes seconds to start, so several are used for large tables only. Shared data are sent to a process once, at its
start. Processes do not run the user's script again: one without `if __name__ == "__main__"` would otherwise repeat its work in
each of them. If an object is defined in that script (such as a user's own model), all tasks therefore run in this process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from closeknit.core.errors import BadInput
from closeknit.core.params import whole

SMALL = 20_000  # rows; below, starting processes costs more than it saves
Work = Callable[[Any, Any], Any]  # takes the shared data and a task
PieceProgress = Callable[[int, int], None]  # takes the number of tasks done, and of all
_shared: dict[str, Any] = {}


def processes(jobs: int | None, rows: int) -> int:
    """Return the number of processes: as given, or one per core if the table is large.

    >>> processes(3, 100), processes(None, 100)
    (3, 1)
    """
    if jobs is not None:
        return whole("jobs", jobs, least=1)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if rows >= SMALL else 1


class WorkerPool:
    """Runs tasks and returns their results in the order of the tasks.

    >>> with WorkerPool(10, jobs=1) as workers:
    ...     workers.each(lambda shared, task: shared + task, [1, 2])
    [11, 12]
    """

    def __init__(self, shared: Any, jobs: int) -> None:
        self._shared, self._executor = shared, None
        packed = _pack_object(shared) if jobs > 1 else None
        if packed is not None:
            spawn = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(jobs, spawn, initializer=_begin, initargs=(packed,))

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def each(self, work: Work, tasks: Sequence[Any], progress: PieceProgress = lambda done, count: None) -> list[Any]:
        """Run `work` on each task; with several processes it must be a function of a module."""
        results: list[Any] = [None] * len(tasks)
        if self._executor is None or _pack_object(tasks) is None:
            for i, task in enumerate(tasks):
                progress(i, len(tasks))
                results[i] = work(self._shared, task)
            return results
        with _hide_script():
            place: dict[Future[Any], int] = {self._executor.submit(_do, work, task): i for i, task in enumerate(tasks)}
        try:
            for done, future in enumerate(as_completed(place), 1):
                results[place[future]] = future.result()
                progress(done, len(tasks))
        except BrokenProcessPool:
            raise BadInput("a process was killed, perhaps because memory ran out", right="try jobs=1") from None
        return results


def _pack_object(thing: Any) -> bytes | None:
    """Pickle an object for another process; None if that is impossible."""
    try:
        packed = pickle.dumps(thing)
    except (pickle.PicklingError, AttributeError, TypeError):  # such as a function without a name in a module
        return None
    return None if b"__main__" in packed else packed


def _begin(packed: bytes) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt must not print a traceback for every process
    _shared["it"] = pickle.loads(packed)


def _do(work: Work, task: Any) -> Any:
    return work(_shared["it"], task)


@contextmanager
def _hide_script() -> Iterator[None]:
    """Hide the user's script while processes start."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script

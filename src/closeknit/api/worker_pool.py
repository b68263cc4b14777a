"""Pieces of work that do not need each other, in this process or in several; what comes out is the same.

A process of its own costs seconds to start, so it is for large tables. What all pieces share is given to it once, when it
starts. It does not run the user's script again: one without `if __name__ == "__main__"` would otherwise start its work anew in
every process. Where something was defined in that script itself (a model of one's own), all work is therefore done here.
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
Work = Callable[[Any, Any], Any]  # what all share, and the piece
PieceProgress = Callable[[int, int], None]  # pieces done, and all
_shared: dict[str, Any] = {}


def processes(jobs: int | None, rows: int) -> int:
    """How many are meant: as asked, or one for each core where the table is large.

    >>> processes(3, 100), processes(None, 100)
    (3, 1)
    """
    if jobs is not None:
        return whole("jobs", jobs, least=1)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if rows >= SMALL else 1


class WorkerPool:
    """Does pieces of work and gives their results in the order of the pieces.

    >>> with WorkerPool(10, jobs=1) as workers:
    ...     workers.each(lambda shared, piece: shared + piece, [1, 2])
    [11, 12]
    """

    def __init__(self, shared: Any, jobs: int) -> None:
        self._here, self._executor = shared, None
        packed = _pack_object(shared) if jobs > 1 else None
        if packed is not None:
            spawn = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(jobs, spawn, initializer=_begin, initargs=(packed,))

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def each(self, work: Work, pieces: Sequence[Any], told: PieceProgress | None = None) -> list[Any]:
        """`work` on each piece, which must be a function of a module where there are several processes."""
        tell = told or (lambda done, all: None)
        results: list[Any] = [None] * len(pieces)
        if self._executor is None or _pack_object(pieces) is None:
            for i, piece in enumerate(pieces):
                tell(i, len(pieces))
                results[i] = work(self._here, piece)
            return results
        with _hide_script():
            place: dict[Future[Any], int] = {self._executor.submit(_do, work, piece): i for i, piece in enumerate(pieces)}
        try:
            for done, future in enumerate(as_completed(place), 1):
                results[place[future]] = future.result()
                tell(done, len(pieces))
        except BrokenProcessPool:
            raise BadInput("a process was ended from outside, perhaps for want of memory", right="try with jobs=1") from None
        return results


def _pack_object(thing: Any) -> bytes | None:
    """As another process can read it; None where it cannot."""
    try:
        packed = pickle.dumps(thing)
    except (pickle.PicklingError, AttributeError, TypeError):  # something without a name of its own in a module
        return None
    return None if b"__main__" in packed else packed


def _begin(packed: bytes) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever stops the program wants no report of every process
    _shared["it"] = pickle.loads(packed)


def _do(work: Work, piece: Any) -> Any:
    return work(_shared["it"], piece)


@contextmanager
def _hide_script() -> Iterator[None]:
    """While processes are started they see an empty script."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script

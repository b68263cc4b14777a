"""Signals that stop a command after it has saved its work."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def wake_on_signals() -> Iterator[int]:
    """Yield a file descriptor that becomes readable when a signal arrives."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    before = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    try:
        yield wake
    finally:
        signal.set_wakeup_fd(before)
        os.close(wake)
        os.close(waker)


@contextmanager
def watch_signals() -> Iterator[Callable[[], bool]]:
    """Yield whether SIGTERM or SIGINT has arrived; a second one ends the process as usual."""
    requested: list[int] = []
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}

    def stop(number: int, frame: object) -> None:
        requested.append(number)
        for each, usual in before.items():
            signal.signal(each, usual)

    for each in before:
        signal.signal(each, stop)
    try:
        yield lambda: bool(requested)
    finally:
        for each, usual in before.items():
            signal.signal(each, usual)

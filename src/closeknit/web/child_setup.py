"""What every process of the server does first; it imports nothing, since the imports of a process are slow."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal

BROKEN = "closeknit failed ({name}); this is a fault of the program, not of your table"


def set_up() -> None:
    """Write private files only, and end with the server, even if it is killed and even during a compiled loop."""
    os.umask(0o077)
    os.nice(5)  # the server, which answers requests, has priority
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG on Linux; elsewhere the end of its input ends the process


def limit_memory(most: int) -> None:
    """Limit the memory of this process, in bytes."""
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core would be a copy of the rows

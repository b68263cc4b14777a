"""What every process of the server does first; it imports nothing, since the imports of a process are slow."""

from __future__ import annotations

import contextlib
import ctypes
import signal

BROKEN = "closeknit failed ({name}); this is a fault of the program, not of your table"


def die_with_parent() -> None:
    """End this process with the server, even if it is killed and even during a compiled loop."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG on Linux; elsewhere the end of its input ends the process

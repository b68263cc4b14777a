"""Time and peak memory of a block of code.

The peak comes from the system (on Linux the high-water mark of the resident memory, which a process may reset), so it includes
compiled code, which a sampling thread would miss. On other systems it is not available. Free memory is returned to the system
first, as far as the allocators do so: memory that they keep and reuse is not counted.
"""

from __future__ import annotations

import ctypes
import gc
import time
from pathlib import Path
from types import TracebackType

STATUS = Path("/proc/self/status")
RESET_FILE = Path("/proc/self/clear_refs")
PEAK_ONLY = "5"  # resets the high-water mark and nothing else
MEGABYTE = 1_000_000


class Meter:
    """Seconds of a block, and the megabytes of its peak above the memory of the process at its start.

    `reset_file` of Linux resets the peak; where it is missing, the megabytes are None.

    >>> with Meter() as meter:
    ...     numbers = [*range(1000)]
    >>> meter.seconds > 0
    True
    """

    def __init__(self, reset_file: Path = RESET_FILE) -> None:
        self._reset_file, self.seconds = reset_file, 0.0
        self.megabytes: float | None = None

    def __enter__(self) -> Meter:
        _free_memory(self._reset_file.exists())
        self._held = _read_status("VmRSS") if _reset_peak(self._reset_file) else None
        self._began = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.seconds = time.perf_counter() - self._began
        peak = _read_status("VmHWM")
        if self._held is not None and peak is not None:
            self.megabytes = max(peak - self._held, 0) / MEGABYTE


def _free_memory(linux: bool) -> None:
    """Return free memory to the system, or the block would reuse it unnoticed."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if linux else None  # the GNU library has it
    if trim is not None:
        trim(0)


def _reset_peak(file: Path) -> bool:
    try:
        file.write_text(PEAK_ONLY, encoding="ascii")
    except OSError:
        return False
    return True


def _read_status(what: str) -> int | None:
    """Return a line of the process's status, in bytes."""
    try:
        lines = STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(what + ":")), None)

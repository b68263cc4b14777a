"""What the figures were measured with: versions, cores and memory, and nothing that names a place."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import closeknit

LIBRARIES = ("numpy", "numba", "scipy", "polars", "pyarrow")
WINDOW = 1.0  # seconds; the load average still contains the benchmark before
FEW = 0.25  # cores


def described() -> str:
    """One line about the machine and the libraries."""
    return f"{_cores()} cores, {_memory()}, {platform.system()}, Python {platform.python_version()}, {_versions()}"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "memory unknown"
    return f"{total / 1e9:.1f} GB memory"


def _versions() -> str:
    found = [f"closeknit {closeknit.__version__}"]
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} absent")
    return ", ".join(found)


def busy() -> str | None:
    """A remark where other work is running: figures measured then are too slow."""
    before = _clock_ticks()
    time.sleep(WINDOW)
    ticks = [after - earlier for earlier, after in zip(before, _clock_ticks(), strict=True)]
    used = _cores() * (1 - sum(ticks[3:5]) / max(sum(ticks), 1))  # the fourth and fifth number are idle time
    if not ticks or used < FEW:
        return None
    return f"Other work was running when this began ({used:.1f} of {_cores()} cores): times are too high."


def _clock_ticks() -> list[int]:
    """What the processors did since the start of the machine; empty where the system does not say."""
    try:
        return [int(count) for count in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]]
    except OSError:
        return []

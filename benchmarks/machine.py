"""What the figures were measured with: versions, cores and memory, and nothing that names a place."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import closeknit

LIBRARIES = ("numpy", "numba", "scipy", "polars", "pyarrow")


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
    """A remark where other work was running: figures taken then are too slow."""
    if not hasattr(os, "getloadavg"):
        return None
    load = os.getloadavg()[0]
    if load < 0.5 * _cores():
        return None
    return f"Other work was running when this began (load {load:.1f} on {_cores()} cores): times are too high."

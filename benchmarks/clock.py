"""Times of jobs that take turns, and of jobs in a process of their own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROUNDS = 3
LONG = 20.0  # seconds; a job that takes longer is measured once

Times = dict[str, list[float]]


def timed(job: Callable[[], object]) -> float:
    """Seconds that a job takes."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def in_turns(jobs: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> Times:
    """Seconds of each job, one after the other and again from the first, so that a slow moment hits all of them."""
    times: Times = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            if not times[name] or times[name][0] < LONG:
                times[name].append(timed(job))
    return times


def spread(seconds: list[float]) -> str:
    """Median with least and largest."""
    middle = statistics.median(seconds)
    if len(seconds) == 1:
        return f"{middle:.3g} s (once)"
    return f"{middle:.3g} s ({min(seconds):.3g}..{max(seconds):.3g})"


def child(python: str | Path, script: str, question: object) -> Any:
    """Return the answer of a script in this folder, run in a new process of the given interpreter."""
    command = [str(python), str(Path(__file__).with_name(script))]
    done = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def fresh(question: Mapping[str, Any]) -> Any:
    """What `alone.py` answers in a fresh process of this interpreter."""
    return child(sys.executable, "alone.py", question)

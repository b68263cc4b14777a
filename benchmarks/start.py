"""How long a new user waits: the first call, which compiles, and later ones, each in a process of its own."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import clock
from sections import Section

ROWS = 1_000
COMMAND = [sys.executable, "-m", "closeknit"]
RECIPE = """\
data: patients.csv
schema:
  identifier: [name]
  quasi: {age: numeric, sex: flat, zip: {prefix: {length: 5}}, job: flat, admission: date}
  sensitive: {disease: flat, stay: numeric, charge: numeric}
models: [{k_anonymity: {k: 6}}, {t_closeness: {column: stay, t: 0.3}}]
"""


class Cost(NamedTuple):
    """Of one command: seconds on the clock, and of all cores together."""

    clock: float
    processor: float


def cost(place: Path, cache: Path, *words: str) -> Cost:
    """Run the command in a folder, with the compiled kernels of a folder."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package keeps its bytecode
    subprocess.run([*COMMAND, *words], cwd=place, env=environment, check=True, capture_output=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def run(section: Section, rows: int | None) -> None:
    """An empty cache, then the same cache again."""
    size = rows or ROWS
    with tempfile.TemporaryDirectory() as folder:
        place, cache = Path(folder), Path(folder) / "cache"
        (place / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
        first = cost(place, cache, "demo", "--rows", str(size), "--table", "patients.csv")
        later = {
            f"closeknit demo --rows {size:,}": ["demo", "--rows", str(size)],
            f"closeknit anonymize, {size:,} rows": ["anonymize", "recipe.yaml", "-o", "out", "--force"],
            "closeknit audit of that release": ["audit", "out/release.csv"],
            "closeknit --version": ["--version"],
        }
        for words in later.values():  # compiles what the first call did not need
            cost(place, cache, *words)
        times = {name: [cost(place, cache, *words) for _ in range(5)] for name, words in later.items()}
    aims = {"closeknit --version": "0.15 s", f"closeknit anonymize, {ROWS:,} rows": "1.5 s"}
    lines = [
        (
            f"the first: closeknit demo --rows {size:,}",
            f"{first.clock:.3g} s (once)",
            f"{first.processor:.3g} s",
            "12 s of processors",
        )
    ]
    for name, found in times.items():
        processor = statistics.median(one.processor for one in found)
        lines.append((name, clock.spread([one.clock for one in found]), f"{processor:.3g} s", aims.get(name, "")))
    section.table(["call", "clock", "processors", "aim"], lines)
    section.say("The first call finds an empty cache and compiles what it needs.")

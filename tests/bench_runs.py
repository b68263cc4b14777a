"""`benchmarks/run.py` on a few generated rows, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def bench(page: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), *arguments, "--rows", "300", "--results", str(page)]
    environment = {**os.environ, "CLOSEKNIT_RIVALS": str(page.with_name("absent"))}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

"""One job in a process of its own: how long the imports take, and how much memory a release needs at its peak.

Reads a question from standard input and prints the answer, both as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

START = time.perf_counter()


def peak() -> float:
    """Most megabytes this process held. Linux hands down the parent's peak in `ru_maxrss`, but not in its own status file."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1e3 * 1.024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / 1e6 if sys.platform == "darwin" else used / 1e3 * 1.024


def imports() -> dict[str, float]:
    """Seconds until the package is there, and until `anonymize` can be called."""
    import closeknit

    package = time.perf_counter() - START
    _ = closeknit.anonymize
    return {"package": package, "anonymize": time.perf_counter() - START, "megabytes": peak()}


def release(question: dict) -> dict[str, float]:
    """Memory of the whole way from CSV file to saved folder, `imports` being what the libraries alone take."""
    ready = imports()["megabytes"]
    from closeknit.api import run
    from closeknit.api.recipe import Recipe

    made = run(Recipe.of(question["recipe"]))
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder, "out"), report=False)
    return {"imports": ready, "peak": peak(), "loss": made.loss}


if __name__ == "__main__":
    requested = json.load(sys.stdin)
    print(json.dumps(imports() if requested["job"] == "imports" else release(requested)))

r"""A table out of PostgreSQL and a release back into it, compared with `psql \copy` in the same run."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import clock
from closeknit.core.columns import Columns
from closeknit.datasets import hospital
from closeknit.io.canonical import canonical_blocks
from closeknit.io.database import Database
from closeknit.io.folders import write_whole
from sections import Section

ROWS, LARGE = 1_000_000, 10_000_000
TESTS = Path(__file__).resolve().parents[1] / "tests"
TABLE = "(name text, age bigint, sex text, zip text, job text, admission date, disease text, stay bigint, charge bigint)"
CERTIFICATE = '{"content_sha256": ""}'  # as little as a release needs to be replaced by the next one


def run(section: Section, rows: int | None) -> None:
    """Read and write one generated table, by `psql` and by closeknit in turns."""
    count = rows or ROWS
    section.say(
        "A generated hospital table of nine columns in a PostgreSQL on this machine, without fsync. Out: `\\copy` to a CSV "
        "file; `ck.sql(...)` to the coded table in memory. Back: `\\copy` from a CSV file into a new table; `to_sql`, which "
        "in one transaction writes the table, its certificate and the class of each row, reads all back and compares. Ratio: "
        "medians of the same run. Memory: each call of closeknit in a process of its own, with what Python and the libraries "
        "take; held is the coded table, which is the result of reading and what is written."
    )
    answers: dict[str, list[dict[str, float]]] = {"read": [], "write": []}

    def ask(job: str) -> None:
        answers[job].append(clock.child(sys.executable, "databases.py", {"job": job, "url": url, "file": str(file)}))

    with tempfile.TemporaryDirectory() as folder, postgresql(Path(folder)) as url:
        file = Path(folder, "patients.csv")
        clock.child(sys.executable, "databases.py", {"job": "generate", "rows": count, "file": str(file)})
        psql(url, f"CREATE TABLE patients {TABLE}", f"\\copy patients FROM '{file}' CSV HEADER")
        psql(url, f"CREATE TABLE copied {TABLE}")
        jobs = {
            "psql out": lambda: psql(url, f"\\copy patients TO '{folder}/out.csv' CSV HEADER"),
            "read": lambda: ask("read"),
            "psql back": lambda: psql(url, "TRUNCATE copied", f"\\copy copied FROM '{file}' CSV HEADER"),
            "write": lambda: ask("write"),
        }
        times = clock.in_turns(jobs)
    lines = []
    for what, theirs, ours in (("out", "psql out", "read"), ("back", "psql back", "write")):
        seconds = [answer["seconds"] for answer in answers[ours]]
        ratio = statistics.median(seconds) / statistics.median(times[theirs])
        memory = [f"{max(answer[key] for answer in answers[ours]):,.0f} MB" for key in ("held", "peak")]
        lines.append([what, f"{count:,}", clock.spread(times[theirs]), clock.spread(seconds), f"{ratio:.2f}", *memory])
    section.table(["direction", "rows", "psql \\copy", "closeknit", "ratio", "memory held", "at its peak"], lines)


def run_large(section: Section, rows: int | None) -> None:
    """Ten million rows; every job that takes longer than 20 seconds is measured once."""
    run(section, rows or LARGE)


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """A PostgreSQL of our own, as the tests start it; CLOSEKNIT_BENCH_URL names another one."""
    if given := os.environ.get("CLOSEKNIT_BENCH_URL"):
        yield given
        return
    sys.path.append(str(TESTS))
    from database_servers import start_postgresql

    place = Path(tempfile.mkdtemp(prefix="closeknit-bench-"))
    server = start_postgresql(place)
    try:
        yield server.url()
    finally:
        os.kill(server.guard, signal.SIGTERM)


def answer(question: dict[str, Any]) -> dict[str, float]:
    """One job in a process of its own: its seconds, and the megabytes held with the table and at the peak of the job."""
    if question["job"] == "generate":
        write_whole(question["file"], canonical_blocks(hospital(question["rows"])))
        return {}
    Database(question["url"], query="SELECT * FROM patients LIMIT 10").read()  # loads drivers and compiled code
    if question["job"] == "read":
        start = time.perf_counter()
        table = Database(question["url"], "patients").read()
        return {"seconds": time.perf_counter() - start, "held": memory("VmRSS"), "peak": memory("VmHWM"), "rows": table.rows}
    columns = Database(question["url"], "patients").read()
    classes = Columns.of({"class": [0]}).take(np.zeros(columns.rows, dtype=np.int64))
    private = {"recipe.yaml": "seed: 1\n", "classes.csv": classes}
    held = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak of what follows, not of reading
    start = time.perf_counter()
    Database(question["url"], "release").write(columns, CERTIFICATE, private, replace=True)
    return {"seconds": time.perf_counter() - start, "held": held, "peak": memory("VmHWM")}


def memory(name: str) -> float:
    """Megabytes of this process, as Linux counts them under a name."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024 / 1e6


def psql(url: str, *commands: str) -> None:
    """Run commands of `psql`; the URL is an argument only because the password is that of a server for this run."""
    words = [word for command in commands for word in ("-c", command)]
    subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", url, *words], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))

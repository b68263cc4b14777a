r"""A table out of PostgreSQL and a release back into it, compared with `psql \copy` in the same run."""

from __future__ import annotations

import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
        "medians of the same run."
    )
    columns = hospital(count)
    with tempfile.TemporaryDirectory() as folder, postgresql(Path(folder)) as url:
        file = Path(folder, "patients.csv")
        write_whole(file, canonical_blocks(columns))
        psql(url, f"CREATE TABLE patients {TABLE}", f"\\copy patients FROM '{file}' CSV HEADER")
        psql(url, f"CREATE TABLE copied {TABLE}")
        classes = Columns.of({"class": [0]}).take(np.zeros(count, dtype=np.int64))
        private = {"recipe.yaml": "seed: 1\n", "classes.csv": classes}
        jobs = {
            "psql out": lambda: psql(url, f"\\copy patients TO '{folder}/out.csv' CSV HEADER"),
            "ck.sql": lambda: Database(url, "patients").read(),
            "psql back": lambda: psql(url, "TRUNCATE copied", f"\\copy copied FROM '{file}' CSV HEADER"),
            "to_sql": lambda: Database(url, "release").write(columns, CERTIFICATE, private, replace=True),
        }
        times = clock.in_turns(jobs)
    lines = []
    for what, theirs, ours in (("out", "psql out", "ck.sql"), ("back", "psql back", "to_sql")):
        ratio = statistics.median(times[ours]) / statistics.median(times[theirs])
        lines.append([what, f"{count:,}", clock.spread(times[theirs]), clock.spread(times[ours]), f"{ratio:.2f}"])
    section.table(["direction", "rows", "psql \\copy", "closeknit", "ratio"], lines)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    section.say(f"Peak memory of closeknit, with the generated table and all that is read back: {peak:.1f} GB.")


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


def psql(url: str, *commands: str) -> None:
    """Run commands of `psql`; the URL is an argument only because the password is that of a server for this run."""
    words = [word for command in commands for word in ("-c", command)]
    subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", url, *words], check=True, stdout=subprocess.DEVNULL)

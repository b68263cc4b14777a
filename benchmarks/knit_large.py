"""Knit on more rows: 100,000 of SAL compared with our other methods, and a million and ten in processes of their own.

`python benchmarks/run.py knit_large` runs all; `python benchmarks/knit_large.py 0.1` prints a single t of SAL. With no argument
it is such a process of its own: it reads a question from standard input and prints the answer, both as JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

import clock
import closeknit as ck
import tables
import trials
from alone import peak
from knit import Made, Problem
from sections import Section

TS, ROWS, LARGE, K, LARGE_T = ("0.05", "0.1", "0.2"), 100_000, (1_000_000, 10_000_000), 6, "0.1"


def run(section: Section, rows: int | None) -> None:
    """SAL by t, then the large tables."""
    report(section, rows, TS if rows is None else TS[-1:])
    for large in LARGE if rows is None else [2 * rows]:
        _report_large(section, rows, large)


def report(section: Section, rows: int | None, ts: Sequence[str]) -> None:
    """SAL at these t."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        source = trials.part(tables.sal(place, rows), place / "part.csv", ROWS)
        frame = pl.read_csv(source.path, infer_schema=False)
    section.say(f"{source.remark} Salary ordered, seven quasi columns, k = {K}. Processor seconds of all threads in brackets.")
    methods = {
        "Mondrian": ck.Mondrian(),
        "Stack & Deal": ck.StackAndDeal(),
        "SABRE": ck.Sabre(),
        "Knit, start only": ck.Knit(proposals=0),
        "Knit": ck.Knit(),
    }
    found = []
    for t in ts:
        requested = Problem(t, frame, source.schema, [ck.KAnonymity(K), ck.TCloseness(source.secret, t)])
        small = Problem(t, frame.head(1_000), source.schema, requested.models)
        made = []
        for method in methods.values():
            Made.by(method, small)  # loads compiled loops
            made.append(Made.by(method, requested))
        found.append([t, *(f"{one.release.loss:.4f} ({one.seconds:.1f} s)" for one in made)])
    section.table(["t", *methods], found)


def _report_large(section: Section, rows: int | None, large: int) -> None:
    answer = clock.child(sys.executable, "knit_large.py", {"rows": rows, "large": large})
    section.say(
        f"{answer['rows']:,} rows ({answer['remark']}), t = {LARGE_T}, default budget: loss {answer['loss']:.4f} "
        f"(Mondrian {answer['mondrian']:.4f}), {answer['classes']:,} classes, {answer['processor']:.0f} s of processor time "
        f"over all threads, {answer['wall']:.0f} s on the clock, {answer['peak']:,.0f} MB at the peak, "
        f"{answer['start']:,.0f} MB of it before."
    )


def _answer(rows: int | None, large: int) -> dict[str, Any]:
    """One release, timed after a small one has loaded the compiled loops."""
    with tempfile.TemporaryDirectory() as folder:
        source = tables.sal(Path(folder), rows)
        frame = pl.read_csv(source.path, infer_schema=False)
    times = large // len(frame)
    models = [ck.KAnonymity(K), ck.TCloseness(source.secret, LARGE_T)]
    ck.anonymize(frame.head(2_000), source.schema, models, ck.Knit(proposals=10**6), seed=5)
    frame = pl.concat([frame] * times)
    held, wall, processor = peak(), time.perf_counter(), time.process_time()
    release = ck.anonymize(frame, source.schema, models, ck.Knit(), seed=5)
    took = {"processor": time.process_time() - processor, "wall": time.perf_counter() - wall}
    made, most = release.certificate, peak()
    del release
    gc.collect()
    other = ck.anonymize(frame, source.schema, models, ck.Mondrian(), seed=5)
    whose = "SAL" if rows is None and tables.data_folder() else "a generated table"
    remark = f"each row of {whose} {times} times"
    return {
        "rows": len(frame),
        "remark": remark,
        "loss": made.loss.a,
        "classes": made.classes.count,
        "mondrian": other.loss,
        "peak": most,
        "start": held,
        **took,
    }


def main(ts: Sequence[str]) -> None:
    """Print single lines of SAL."""
    section = Section("Knit on SAL")
    report(section, None, ts)
    print(section.text())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:]:
        main(sys.argv[1:])
    else:
        print(json.dumps(_answer(**json.load(sys.stdin))))

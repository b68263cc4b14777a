"""Knit on more rows: 100,000 of SAL compared with our other methods; a million and ten compared with Mondrian, each run in a
process of its own.

`python benchmarks/run.py knit_large knit_ten_million` runs all; `python benchmarks/knit_large.py 0.1` prints a single t of SAL.
With no argument it is such a process of its own: it reads a question from standard input and prints the answer, both as JSON.
"""

from __future__ import annotations

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
import growth
import tables
import trials
from alone import peak
from knit import Made, Problem
from sections import Section

TS, ROWS, K = ("0.05", "0.1", "0.2"), 100_000, 6
MILLION, TEN_MILLION, WARM_ROWS = 1_000_000, 10_000_000, 2_000
LARGE_T = {"SAL": "0.1", "generated": "0.2"}
METHODS = {"Mondrian": ck.Mondrian(), "Knit": ck.Knit()}


def run(section: Section, rows: int | None) -> None:
    """SAL by t, then a million rows."""
    report(section, rows, TS if rows is None else TS[-1:])
    _report_large(section, rows, MILLION if rows is None else 2 * rows)


def run_ten_million(section: Section, rows: int | None) -> None:
    """The same large tables, ten times as long."""
    _report_large(section, rows, TEN_MILLION if rows is None else 4 * rows)


def report(section: Section, rows: int | None, ts: Sequence[str]) -> None:
    """SAL at these t."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        source = trials.part(tables.sal(place, rows), place / "part.csv", ROWS)
        frame = pl.read_csv(source.path, infer_schema=False)
    section.say(
        f"{source.remark} Salary ordered, seven quasi-identifiers, k = {K}. Processor seconds of all threads in brackets."
    )
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
    """Both tables by both methods, default budget."""
    shape = ", ".join(f"{name} {leaves}" for name, leaves in growth.SHAPE.items())
    section.say(
        f"{large:,} rows, k = {K}, default budget, from the frame to the certified release. SAL: each row of it (or of "
        f"its generated stand-in) as often as needed, t = {LARGE_T['SAL']}. Generated: numeric columns with so many values "
        f"({shape}), t = {LARGE_T['generated']}. Peak: of the whole process; of it before: with the table, before the release."
    )
    lines = []
    for table in LARGE_T:
        for method in METHODS:
            question = {"table": table, "method": method, "rows": rows, "large": large}
            found = clock.child(sys.executable, "knit_large.py", question)
            lines.append(
                [
                    f"{table}, {method}",
                    f"{found['loss']:.4f}",
                    f"{found['classes']:,}",
                    f"{found['wall']:.1f} s",
                    f"{found['processor']:.1f} s",
                    f"{found['peak']:,.0f} MB",
                    f"{found['start']:,.0f} MB",
                ]
            )
    section.table(["", "loss A", "classes", "on the clock", "of all threads", "peak memory", "of it before"], lines)


def _answer(table: str, method: str, rows: int | None, large: int) -> dict[str, Any]:
    """One release, timed after a small one has loaded the compiled loops."""
    if table == "SAL":
        with tempfile.TemporaryDirectory() as folder:
            source = tables.sal(Path(folder), rows)
            once = pl.read_csv(source.path, infer_schema=False)
        schema, secret, few = source.schema, source.secret, once.head(WARM_ROWS)
        whole = pl.concat([once] * -(-large // len(once)), rechunk=True).head(large)
        del once
    else:
        (few, _), (whole, schema), secret = growth.table(WARM_ROWS), growth.table(large), growth.SECRET
    models = [ck.KAnonymity(K), ck.TCloseness(secret, LARGE_T[table])]
    for warm in (ck.Knit(proposals=10**6), METHODS[method]):
        ck.anonymize(few, schema, models, warm, seed=5)
    held, wall, processor = peak(), time.perf_counter(), time.process_time()
    release = ck.anonymize(whole, schema, models, METHODS[method], seed=5)
    took = {"processor": time.process_time() - processor, "wall": time.perf_counter() - wall}
    made = release.certificate
    return {"loss": made.loss.a, "classes": made.classes.count, "peak": peak(), "start": held, **took}


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

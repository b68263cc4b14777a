"""Slicing and Anatomy: all fifteen columns of Adult, SAL from CSV file to saved folder against the floor, and growth."""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import clock
import closeknit as ck
import growth
import tables
from alone import peak
from closeknit.core.method import Method
from sal import Request, head
from sections import Section
from speed import compare_with_floor

L, COLUMNS = 5, 5


def methods(l: int) -> dict[str, Method]:
    """Ways to find buckets."""
    return {
        "strict cuts": ck.Slicing(columns=COLUMNS, l=l),
        "relaxed cuts": ck.Slicing(columns=COLUMNS, l=l, cuts="relaxed"),
        "relaxed cuts, buckets weighed by size": ck.Slicing(columns=COLUMNS, l=l, cuts="relaxed", diverse="size"),
        "random buckets of 100": ck.Slicing(columns=COLUMNS, l=l, cuts="random"),
        "spread buckets of 100": ck.Slicing(columns=COLUMNS, l=l, cuts="spread"),
        "Anatomy": ck.Anatomy(l=l),
    }


def run(section: Section, rows: int | None) -> None:
    """Adult, SAL, growth."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _adult(section, place, rows)
        source = tables.sal(place, rows)
        section.say(f"{source.remark} l = {L}; the default number of column groups.")
        requests = [
            Request("Slicing, strict cuts", [], ck.Slicing(l=L), "a minute"),
            Request("Slicing, relaxed cuts", [], ck.Slicing(l=L, cuts="relaxed"), "a minute"),
            Request("Anatomy", [], ck.Anatomy(l=L), ""),
        ]
        compare_with_floor(section, source, requests, place)
    _growth(section, (rows, 10 * rows) if rows else (100_000, 1_000_000))


def _adult(section: Section, place: Path, rows: int | None) -> None:
    source = tables.adult_all(place, rows)
    l = L if rows is None else 3
    section.say(
        f"{source.remark} All fifteen columns; occupation is the sensitive attribute; {COLUMNS} column groups, l = {l}."
    )
    few = head(source, place / "few.csv")
    lines = []
    for name, method in methods(l).items():
        ck.anonymize(few, source.schema, [], method)
        start = time.perf_counter()
        made = ck.anonymize(source.path, source.schema, [], method).certificate
        took, size = time.perf_counter() - start, made.classes
        lines.append([name, f"{took:.2f} s", f"{size.count:,}", f"{size.smallest:,} to {size.largest:,}", f"{size.mean:.1f}"])
    section.table(["from CSV file to certified release, warm", "time", "buckets", "rows of a bucket", "mean"], lines)


def _growth(section: Section, sizes: tuple[int, ...]) -> None:
    section.say(
        "Generated rows as in the section on growth, l = 5. Time: `anonymize` from columns in memory to the certified release. "
        "Growth: time against that of the tenth of the rows; n log n would be the figure in brackets."
    )
    lines, seconds = [], {}
    for method in ("strict", "relaxed", "anatomy"):
        for size in sizes:
            answer = clock.child(sys.executable, "slicing.py", {"method": method, "rows": size})
            seconds[method, "", size] = answer["seconds"]
            grown = growth.grown(seconds, method, "", size)
            took, memory = f"{answer['seconds']:.2f} s", f"{answer['peak']:,.0f} MB"
            lines.append([method, f"{size:,}", took, grown, memory, f"{answer['buckets']:,}"])
    section.table(["method", "rows", "time", "growth", "peak memory", "buckets"], lines)


def _answer(question: dict[str, Any]) -> dict[str, float]:
    """One release, timed after a small one has loaded the compiled loops."""
    cuts = question["method"]
    method: Method = ck.Anatomy(l=L) if cuts == "anatomy" else ck.Slicing(l=L, cuts=cuts)
    ck.anonymize(*growth.table(min(growth.WARM_ROWS, question["rows"])), [], method, seed=growth.SEED)
    columns, schema = growth.table(question["rows"])
    start = time.perf_counter()
    made = ck.anonymize(columns, schema, [], method, seed=growth.SEED).certificate
    return {"seconds": time.perf_counter() - start, "peak": peak(), "buckets": made.classes.count}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(_answer(json.load(sys.stdin))))

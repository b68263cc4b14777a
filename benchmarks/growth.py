"""SABRE and BUREL on ever more generated rows, each run in a process of its own: time, peak memory, growth against n log n.

Run as a script it is that process: it reads a question from standard input and prints the answer, both as JSON.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from typing import Any

import numpy as np

from alone import peak

SIZES = (100_000, 1_000_000, 10_000_000)
LARGEST = {"plain": 10_000_000, "default": 1_000_000}  # rows
SHAPE = {"age": 78, "sex": 2, "education": 17, "region": 50, "work": 10, "salary": 50}
SECRET, K, T, BETA, SEED, WARM_ROWS = "salary", 6, 0.35, 4, 2**127 + 5, 20_000
PLAIN = {"polish": False, "slack": False}


def run(section: Any, rows: int | None) -> None:
    """Every method with its options on every size."""
    import clock

    sizes = (rows, 10 * rows) if rows else SIZES
    values = ", ".join(f"{name} {leaves}" for name, leaves in SHAPE.items() if name != SECRET)
    section.say(
        f"Generated rows: five numeric quasi-identifiers ({values} values), a numeric sensitive attribute of {SHAPE[SECRET]} "
        f"values, all dependent on one hidden number; k = {K}, SABRE with t = {T}, BUREL with beta = {BETA}, both with the "
        "hilbert fill. Plain: without slack and polish. Time: `anonymize` from columns in memory to the certified release; "
        "memory: the peak of the process, generated columns and release included. Growth: time against that of the tenth of "
        "the rows; n log n would be the figure in brackets."
    )
    lines, before = [], {}
    for method in ("sabre", "burel"):
        for options in ("plain", "default"):
            for size in sizes:
                if size > LARGEST[options]:
                    continue
                answer = clock.child(sys.executable, "growth.py", {"method": method, "options": options, "rows": size})
                before[method, options, size] = answer["seconds"]
                growth = grown(before, method, options, size)
                lines.append(
                    [
                        f"{method}, {options}",
                        f"{size:,}",
                        f"{answer['seconds']:.2f} s",
                        growth,
                        f"{answer['peak']:,.0f} MB",
                        f"{answer['start']:,.0f} MB",
                        f"{answer['loss']:.4f}",
                        f"{answer['classes']:,}",
                    ]
                )
    section.table(["method", "rows", "time", "growth", "peak memory", "of it before", "loss A", "classes"], lines)


def grown(seconds: dict[tuple[str, str, int], float], method: str, options: str, size: int) -> str:
    tenth = seconds.get((method, options, size // 10))
    if tenth is None:
        return ""
    return f"{seconds[method, options, size] / tenth:.1f} ({10 * math.log(size) / math.log(size // 10):.1f})"


def table(rows: int, seed: int = 20_07) -> tuple[Any, Any]:
    """Columns and schema, without any frame or file."""
    import closeknit as ck
    from closeknit.core.columns import Column, Columns

    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=rows).astype(np.float32)
    columns = {}
    for name, leaves in SHAPE.items():
        leaning = 0.6 * hidden + 0.8 * rng.normal(size=rows).astype(np.float32)
        bounds = np.quantile(leaning[:WARM_ROWS], (np.arange(1, leaves) / leaves) ** (1 / 1.7))  # low codes are rarer
        columns[name] = Column(np.arange(leaves), np.searchsorted(bounds, leaning).astype(np.int32))
    kinds = {name: ck.numeric(0, leaves - 1) for name, leaves in SHAPE.items()}
    quasi = {name: kind for name, kind in kinds.items() if name != SECRET}
    return Columns(columns, rows), ck.Schema(quasi=quasi, sensitive={SECRET: kinds[SECRET]})


def _answer(question: dict[str, Any]) -> dict[str, float]:
    """One release, timed after a small one has loaded the compiled loops."""
    import closeknit as ck

    options = PLAIN if question["options"] == "plain" else {}
    if question["method"] == "sabre":
        method, model = ck.Sabre(**options), ck.TCloseness(SECRET, T)
    else:
        method, model = ck.Burel(**options), ck.BetaLikeness(SECRET, BETA)
    models = [ck.KAnonymity(K), model]
    ck.anonymize(*table(min(WARM_ROWS, question["rows"])), models, method, seed=SEED)
    columns, schema = table(question["rows"])
    held, start = peak(), time.perf_counter()
    release = ck.anonymize(columns, schema, models, method, seed=SEED)
    took = time.perf_counter() - start
    made = release.certificate
    return {"seconds": took, "start": held, "peak": peak(), "loss": made.loss.a, "classes": made.classes.count}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(_answer(json.load(sys.stdin))))

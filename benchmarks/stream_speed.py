"""Streams: rows a second of every algorithm, and memory over many rows, each run in a process of its own.

Run as a script it is that process: it reads a question from standard input and prints the answer, both as JSON.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np

import clock
import closeknit as ck
from alone import peak
from closeknit.core.columns import Column, Columns
from closeknit.streams.stream import Stream

ROWS, PUSHED, WARM = 200_000, 40_000, 30_000
LONG = (1_000_000, 10_000_000, 50_000_000)
BLOCK = 100_000
NUMBERS = {
    "age": (17, 90),
    "weight": (0, 1_500_000),
    "schooling": (1, 16),
    "gain": (0, 99_999),
    "loss": (0, 4_356),
    "hours": (1, 99),
}
TREES = {"education": (4, 4), "marital": (3, 2), "job": (4, 4), "country": (6, 7)}  # nodes, and leaves under each
K, DELTA, OMEGA, ADVANCE, T, BETA = 100, 10_000, 20_000, 5_000, 0.35, 2
AIMS = {
    "KnitStream, push_many": 150_000,
    "KnitStream, push": 20_000,
    **{f"KnitStream, declared {name}, k = 100": 150_000 for name in ("t-closeness", "beta-likeness", "delta-disclosure")},
    "Castle, push_many": 200_000,
    "Castle, push": 20_000,
    "SabreWindow, push_many": 200_000,
}


def run(section: Any, rows: int | None) -> None:
    """Speed, then memory."""
    section.say(
        f"Generated rows of 10 quasi-identifiers, six of numbers and four of trees, and a sensitive attribute of eight values. "
        f"KnitStream, Castle and KnnStream: k = {K}, delta = {DELTA:,}; Castle: eta = 50, mu = 100. Windows: "
        f"omega = {OMEGA:,}, advance = {ADVANCE:,}, k = 6, t = {T}, beta = {BETA}. Time: processor time of `push_many` on "
        "an Arrow table, or of `push` on mappings, warm; one process each."
    )
    lines = []
    for name in MAKERS:
        answer = clock.child(sys.executable, "stream_speed.py", {"stream": name, "rows": rows or ROWS})
        aim = f"{AIMS[name]:,}" if name in AIMS else ""
        counted = [f"{answer[what]:,}" for what in ("batches", "suppressed")]
        slowest = f"{1000 * answer['slowest']:.2f} ms" if answer["slowest"] else ""
        lines.append([name, f"{answer['speed']:,.0f}", aim, slowest, f"{answer['loss']:.4f}", *counted])
    head = ["stream", "rows a second", "aim", "99.9 % of the pushes take at most", "loss A", "classes", "suppressed"]
    section.table(head, lines)
    section.say("Memory of `KnitStream` over many rows, generated and pushed in blocks of 100,000: the peak of the process.")
    sizes = (rows, 10 * rows) if rows else LONG
    answers = [clock.child(sys.executable, "stream_speed.py", {"stream": "memory", "rows": size}) for size in sizes]
    table = [[f"{size:,}", f"{a['seconds']:,.1f} s", f"{a['peak']:,.0f} MB"] for size, a in zip(sizes, answers, strict=True)]
    section.table(["rows", "time with generating", "peak memory"], table)


def people(rows: int, seed: int, persons: int | None = None) -> tuple[Columns, ck.Schema]:
    """Skewed columns of the size that those of Adult have."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Column] = {}
    quasi: dict[str, Any] = {}
    for i, (name, (low, high)) in enumerate(NUMBERS.items()):
        numbers = (low + (high - low) * rng.beta(2, 2 + i, rows)).astype(np.int64)
        if name in ("gain", "loss"):
            numbers[rng.random(rows) < 0.9] = low
        values, codes = np.unique(numbers, return_inverse=True)
        columns[name], quasi[name] = Column(values, codes.astype(np.int32)), ck.numeric(low, high)
    for name, (nodes, below) in TREES.items():
        tree = {f"{name} {i}": [f"{name} {i}.{j}" for j in range(below)] for i in range(nodes)}
        leaves = np.array([leaf for part in tree.values() for leaf in part], dtype=object)
        columns[name], quasi[name] = _skewed(leaves, rows, rng), ck.Hierarchy.from_nested(tree)
    columns["wage"] = _skewed(np.arange(8), rows, rng)
    roles: dict[str, Any] = {}
    if persons:
        columns["person"], roles["person"] = (
            Column(np.arange(persons), rng.integers(0, persons, rows).astype(np.int32)),
            "person",
        )
    return Columns(columns, rows), ck.Schema(quasi=quasi, sensitive={"wage": ck.numeric()}, **roles)


def _skewed(values: Any, rows: int, rng: np.random.Generator) -> Column:
    chances = 1 / np.arange(1, len(values) + 1)
    return Column(values, rng.choice(len(values), rows, p=chances / chances.sum()).astype(np.int32))


WAGES = {str(i): round(1 / (i + 1), 3) for i in range(8)}  # the declared reference: shares as `_skewed` draws them
DECLARED = {
    "t-closeness": ck.TCloseness("wage", T, reference=WAGES),
    "beta-likeness": ck.BetaLikeness("wage", BETA, reference=WAGES),
    "delta-disclosure": ck.DeltaDisclosure("wage", 2, reference=WAGES),
}


def _declared(model: Any, k: int) -> Any:
    return lambda schema: ck.KnitStream(schema, k=k, delta=DELTA, models=[model], seed=1)


def _castle(schema: ck.Schema) -> Stream:
    return ck.Castle(schema, k=K, delta=DELTA, seed=1)


def _knit(schema: ck.Schema) -> Stream:
    return ck.KnitStream(schema, k=K, delta=DELTA, seed=1)


MAKERS: dict[str, Any] = {
    "KnitStream, push_many": _knit,
    "KnitStream, push": _knit,
    "KnitStream with persons": _knit,
    "KnitStream, l = 2": lambda schema: ck.KnitStream(schema, k=K, delta=DELTA, l=2, seed=1),
    "KnitStream, k = 10": lambda schema: ck.KnitStream(schema, k=10, delta=DELTA, seed=1),
    **{f"KnitStream, declared {name}, k = {k}": _declared(model, k) for k in (K, 10) for name, model in DECLARED.items()},
    "Castle, push_many": _castle,
    "Castle, push": _castle,
    "Castle with persons": _castle,
    "Castle, l = 2": lambda schema: ck.Castle(schema, k=K, delta=DELTA, l=2, seed=1),
    "KnnStream, push_many": lambda schema: ck.KnnStream(schema, k=K, delta=DELTA, seed=1),
    "SabreWindow, push_many": lambda schema: ck.SabreWindow(
        schema, models=[ck.TCloseness("wage", T)], omega=OMEGA, advance=ADVANCE, k=6, seed=1
    ),
    "BurelWindow, push_many": lambda schema: ck.BurelWindow(
        schema, models=[ck.BetaLikeness("wage", BETA)], omega=OMEGA, advance=ADVANCE, k=6, seed=1
    ),
    "Mondrian in windows": lambda schema: ck.Windowed(
        ck.Mondrian(), schema, models=[ck.TCloseness("wage", T)], omega=OMEGA, advance=ADVANCE, k=6, seed=1
    ),
}


def _answer(question: dict[str, Any]) -> dict[str, float]:
    if question["stream"] == "memory":
        return _long(question["rows"])
    make, rows = MAKERS[question["stream"]], question["rows"]
    columns, schema = people(rows, 1, rows // 5 if "persons" in question["stream"] else None)
    from closeknit.io.parquet import table_from_columns

    table = table_from_columns(columns)
    warm = make(schema)
    warm.push_many(table.slice(0, WARM))
    warm.flush()
    stream = make(schema)
    slowest = 0.0
    if question["stream"].endswith(", push"):
        mappings = table.slice(0, min(PUSHED, rows)).to_pylist()
        times, start = [], time.process_time()
        for row in mappings:
            before = time.perf_counter()
            stream.push(row)
            times.append(time.perf_counter() - before)
        count, slowest = len(mappings), float(np.quantile(times, 0.999))
    else:
        start = time.process_time()
        stream.push_many(table)
        count = rows
    speed = count / (time.process_time() - start)
    stream.flush()
    counters = stream.counters
    said = {"speed": speed, "loss": counters.loss, "batches": counters.batches, "suppressed": counters.suppressed}
    return {**said, "slowest": slowest}


def _long(rows: int) -> dict[str, float]:
    """Many rows through one stream; nothing that left is kept."""
    stream, start = _knit(people(1, 0)[1]), time.process_time()
    for first in range(0, rows, BLOCK):
        stream.push_many(people(min(BLOCK, rows - first), first)[0])
    stream.flush()
    return {"seconds": time.process_time() - start, "peak": peak()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(_answer(json.load(sys.stdin))))

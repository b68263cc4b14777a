"""Prints the way of one call through the package: each module in the order in which the call first enters it.

    python tools/walk.py anonymize        (or: audit, stream, spark)

The number of hops is the number of files to open in order to follow the call. Compiled loops and Spark's workers are not seen.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import closeknit as ck

SOURCE = f"{Path(ck.__file__).parent}/"
MODELS = [ck.KAnonymity(5), ck.TCloseness("disease", 0.3)]


def trace(call: Callable[[], Any]) -> list[tuple[int, str, str]]:
    """For each module that the call enters: the depth of calls inside the package, the module, its first function."""
    hops: dict[str, tuple[int, str, str]] = {}
    depth = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(SOURCE):
            return
        name, function = frame.f_code.co_filename.removeprefix(SOURCE), frame.f_code.co_name
        if event == "call":
            depth += 1
            if name not in hops and name != "__init__.py" and not function.startswith("<"):  # the last: no calls
                hops[name] = (depth, name, function)
        else:
            depth -= 1

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(hops.values())


def calls() -> dict[str, Callable[[], Any]]:
    """What can be followed; tables and streams are prepared here, so that they are not part of the way."""
    table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    short = ck.Schema(quasi={"age": ck.numeric(0, 120), "sex": ck.flat()}, sensitive={"ill": ck.flat()})
    rows = [{"age": 20 + i % 50, "sex": "fm"[i % 2], "ill": "flu"} for i in range(40)]

    def stream() -> None:
        castle = ck.Castle(short, k=3, delta=10, seed=2**100)
        for row in rows:
            castle.push(row)
        castle.flush()
        _ = castle.certificate

    def spark() -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".csv", encoding="utf-8") as file:
            csv.writer(file).writerows([list(table), *cells])
            file.flush()
            ck.anonymize(file.name, schema, MODELS, method, engine="spark", master="local[1]")

    cells, method = list(zip(*(table[name].cells() for name in table), strict=True)), ck.Mondrian()
    release = ck.anonymize(table, schema, MODELS, method)  # also compiles what is not compiled yet
    frame, certificate = release.frame, release.certificate
    stream()
    return {
        "anonymize": lambda: ck.anonymize(table, schema, MODELS, method),
        "audit": lambda: ck.audit(frame, certificate=certificate),
        "stream": stream,
        "spark": spark,
    }


def main(wanted: str) -> None:
    """Print one line per hop, then their number."""
    hops = trace(calls()[wanted])
    for depth, module, function in hops:
        print(f"{'  ' * min(depth - 1, 12)}{module}: {function}")
    print(f"{len(hops)} hops, {len({module.split('/')[0] for _, module, _ in hops})} packages")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "anonymize")

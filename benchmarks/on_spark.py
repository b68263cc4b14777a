"""Generated tables on Spark, each run in a process of its own: time, memory, the floor under it, loss beside one machine.

Run as a script it is that process: it reads a question from standard input and prints the answer, both as JSON.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from alone import peak
from growth import SECRET, SEED, SHAPE, K, T, table

SIZES = (1_000_000, 10_000_000, 100_000_000)
LOCAL = 10_000_000  # rows that one machine is asked for too
TWICE = 1_000_000  # rows that one core is asked for too
PIECE = 5_000_000  # rows of a file of the table
WARM_ROWS = 20_000


def run(section: Any, rows: int | None) -> None:
    """Both ways of scaling that move rows, on every size; then with one core."""
    import clock

    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        section.say("Not measured: pyspark or Java is missing.")
        return
    section.say(
        f"Generated rows like those of the growth of SABRE, in Parquet files; k = {K}, t = {T} on {SECRET}. A session of this "
        "machine, `local[2]` and its usual settings (a driver of 1 GB, which is executor too). Time: `anonymize` and saving "
        "without a page, after a small table has warmed everything. Processor: seconds of all processes in that time. Floor: "
        "Spark alone reads, sorts by all columns and writes the same table. Memory: peaks of the Python process that asks, of "
        "Java, and of all Python workers together."
    )
    lines, sizes = [], (rows,) if rows else SIZES
    for method in ("mondrian", "sabre"):
        for size in sizes:
            for cores in (2, 1) if size == min(sizes[0], TWICE) else (2,):
                asked = {"method": method, "rows": size, "cores": cores, "local": size <= LOCAL and cores == 2}
                lines.append(_line(asked, clock.child(sys.executable, "on_spark.py", asked)))
    section.table(
        ["method", "rows", "cores", "time", "processor", "floor", "floor's share", "asks", "Java", "workers", "loss A",
         "on one machine"],
        lines,
    )  # fmt: skip


def _line(asked: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    local = answer["local"]
    return [
        asked["method"], f"{asked['rows']:,}", str(asked["cores"]), f"{answer['seconds']:.1f} s",
        f"{answer['processor']:.1f} s", f"{answer['floor']:.1f} s", f"{answer['floor'] / answer['seconds']:.0%}",
        f"{answer['asks']:,.0f} MB", f"{answer['java']:,.0f} MB", f"{answer['workers']:,.0f} MB", f"{answer['loss']:.4f}",
        f"{local['loss']:.4f} in {local['seconds']:.1f} s" if local else "",
    ]  # fmt: skip


def written(rows: int, folder: Path) -> Any:
    """The table as Parquet files of a folder, and its schema."""
    from closeknit.doors.files import write_parquet

    folder.mkdir()
    schema = None
    for piece, first in enumerate(range(0, rows, PIECE)):
        columns, schema = table(min(PIECE, rows - first), seed=piece)
        write_parquet(columns, folder / f"part-{piece:05}.parquet")
    return schema


def processes() -> dict[int, tuple[str, float, float]]:
    """This process and all that it has started: name, seconds of processor, peak megabytes."""
    tick, known = os.sysconf("SC_CLK_TCK"), {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat, status = (entry / "stat").read_text(), (entry / "status").read_text()
        except OSError:  # it has ended meanwhile
            continue
        name, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
        most = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
        known[int(entry.name)] = (int(rest[1]), name, (int(rest[11]) + int(rest[12])) / tick, sum(most) * 1.024 / 1e3)
    found, fresh = {}, [os.getpid()]
    while fresh:
        found.update({process: known[process][1:] for process in fresh})
        fresh = [process for process, (parent, *_) in known.items() if parent in fresh]
    return found


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    """One release, timed after a small one; the floor after it."""
    import closeknit as ck
    from closeknit.engines.spark_session import session

    method = {"mondrian": ck.Mondrian(), "sabre": ck.Sabre(fill="sweep", polish=False, slack=False)}[asked["method"]]
    models = [ck.KAnonymity(K), ck.TCloseness(SECRET, T)]
    spark = session(f"local[{asked['cores']}]")
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        for name, rows in (("small", min(WARM_ROWS, asked["rows"])), ("table", asked["rows"])):
            schema = written(rows, home / name)
            before, start = sum(used for _, used, _ in processes().values()), time.perf_counter()
            release = ck.anonymize(home / name, schema, models, method, seed=SEED, engine="spark")
            release.save(home / f"out-{name}", report=False)
            took = time.perf_counter() - start
        ended = processes()
        start = time.perf_counter()
        spark.read.parquet(str(home / "table")).orderBy(*SHAPE).write.parquet(str(home / "sorted"))
        floor = time.perf_counter() - start
        return {
            "seconds": took, "processor": sum(used for _, used, _ in ended.values()) - before, "floor": floor, "asks": peak(),
            "java": sum(most for name, _, most in ended.values() if name == "java"),
            "workers": sum(most for pid, (name, _, most) in ended.items() if name != "java" and pid != os.getpid()),
            "loss": release.loss, "local": _local(home / "table", schema, models, method) if asked["local"] else None,
        }  # fmt: skip


def _local(folder: Path, schema: Any, models: list[Any], method: Any) -> dict[str, float]:
    """The same on one machine."""
    import pyarrow.parquet as pq

    import closeknit as ck

    frame, start = pq.read_table(folder), time.perf_counter()
    release = ck.anonymize(frame, schema, models, method, seed=SEED)
    return {"loss": release.loss, "seconds": time.perf_counter() - start}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(_answer(json.load(sys.stdin))))

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
from threading import Event, Thread
from typing import Any

from growth import SECRET, SEED, SHAPE, K, T, table

SIZES = (1_000_000, 10_000_000, 100_000_000)
LOCAL = 10_000_000  # rows that one machine is asked for too
DRIVER = "4 GB"
PIECE = 5_000_000  # rows of a file of the table
WARM_ROWS = 20_000


def run(section: Any, rows: int | None) -> None:
    """Both ways of scaling that move rows, on every size; then with one core."""
    import clock

    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        section.say("Not measured: pyspark or Java is missing.")
        return
    answers = []
    for asked in questions((rows,) if rows else SIZES):
        answers.append((asked, clock.child(sys.executable, "on_spark.py", asked)))
    tell(section, answers)


def questions(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Both methods on every size with two cores; the smallest also with one."""
    return [
        {"method": method, "rows": size, "cores": cores, "local": size <= LOCAL and cores == 2}
        for method in ("mondrian", "sabre")
        for size in sizes
        for cores in ((2, 1) if size == sizes[0] else (2,))
    ]


def tell(section: Any, answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """What was measured."""
    section.say(
        f"Generated rows like those of the growth of SABRE, in Parquet files of {PIECE:,} rows; k = {K}, t = {T} on {SECRET}. "
        f"Spark on this machine, `local[2]` or `local[1]`, with a driver of {DRIVER}, which is executor too. Measured is "
        "`anonymize` and saving without a page, after a small table has warmed everything. Time passes for others on this "
        "machine too; processor: seconds of all our processes, which is what to compare. Floor: Spark alone reads, sorts by "
        "all columns and writes the same table. On one machine: the same without Spark, from a table in memory, saved too."
    )
    section.table(
        ["method", "rows", "cores", "time", "processor", "Java", "workers", "floor: time", "processor", "of ours",
         "one machine: processor", "we take"],
        [_costs(asked, answer) for asked, answer in answers],
    )  # fmt: skip
    section.say("Peaks of memory: of the Python process that asks, of Java, and of all Python workers together; and the loss.")
    section.table(
        ["method", "rows", "cores", "asks", "Java", "workers", "shards", "loss A", "on one machine"],
        [_peaks(asked, answer) for asked, answer in answers],
    )


def _costs(asked: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    local, floor, used = answer["local"], answer["floor"], answer["used"]
    processor = sum(used.values())
    return [
        asked["method"], f"{asked['rows']:,}", str(asked["cores"]), f"{answer['seconds']:,.0f} s", f"{processor:,.1f} s",
        f"{used['java']:,.1f} s", f"{used['workers']:,.1f} s", f"{floor['seconds']:,.0f} s", f"{floor['processor']:,.1f} s",
        f"{floor['processor'] / processor:.0%}", f"{local['processor']:,.1f} s" if local else "",
        f"{processor / local['processor']:.1f} times" if local else "",
    ]  # fmt: skip


def _peaks(asked: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    peaks = [f"{answer['peaks'][name]:,.0f} MB" for name in ("asks", "java", "workers")]
    there = f"{answer['local']['loss']:.4f}" if answer["local"] else ""
    return [
        asked["method"],
        f"{asked['rows']:,}",
        str(asked["cores"]),
        *peaks,
        answer["shards"],
        f"{answer['loss']:.4f}",
        there,
    ]


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
    """This process and all that it has started: name, seconds of processor (its ended children's too), peak megabytes."""
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
        known[int(entry.name)] = (int(rest[1]), name, sum(map(int, rest[11:15])) / tick, sum(most) * 1.024 / 1e3)
    found, fresh = {}, [os.getpid()]
    while fresh:
        found.update({process: known[process][1:] for process in fresh})
        fresh = [process for process, (parent, *_) in known.items() if parent in fresh]
    return found


def figures(which: int) -> dict[str, float]:
    """Seconds (0) or peak megabytes (1) of the process that asks, of Java, and of all Python workers."""
    kinds = {"asks": 0.0, "java": 0.0, "workers": 0.0}
    for process, (name, *found) in processes().items():
        kinds["asks" if process == os.getpid() else "java" if name == "java" else "workers"] += found[which]
    return kinds


class Peaks(Thread):
    """The largest memory of each kind of process, looked at every other second: workers come and go."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.over = figures(1), Event()

    def run(self) -> None:
        while not self.over.wait(2.0):
            self.most = {name: max(self.most[name], now) for name, now in figures(1).items()}

    def ended(self) -> dict[str, float]:
        self.over.set()
        self.join()
        return self.most


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    """One release, measured after a small one; then the floor."""
    import closeknit as ck
    from closeknit.engines.spark_session import session

    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory {DRIVER.replace(' GB', 'g')} pyspark-shell"
    method = {"mondrian": ck.Mondrian(), "sabre": ck.Sabre(fill="sweep", polish=False, slack=False)}[asked["method"]]
    models = [ck.KAnonymity(K), ck.TCloseness(SECRET, T)]
    spark = session(f"local[{asked['cores']}]")
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        for name, rows in (("small", min(WARM_ROWS, asked["rows"])), ("table", asked["rows"])):
            schema = written(rows, home / name)
            watch = Peaks()
            watch.start()
            before, start = figures(0), time.perf_counter()
            release = ck.anonymize(home / name, schema, models, method, seed=SEED, engine="spark")
            release.save(home / f"out-{name}", report=False)
            took, ended, peaks = time.perf_counter() - start, figures(0), watch.ended()
        notes = release._recipe.get("notes")
        start = time.perf_counter()
        spark.read.parquet(str(home / "table")).orderBy(*SHAPE).write.parquet(str(home / "sorted"))
        floor = {"seconds": time.perf_counter() - start, "processor": sum(figures(0).values()) - sum(ended.values())}
        spark.stop()
        return {
            "seconds": took, "used": {name: ended[name] - before[name] for name in ended}, "peaks": peaks, "floor": floor,
            "shards": notes[0].split()[4] if notes else "", "loss": release.loss,
            "local": _local(home, schema, models, method) if asked["local"] else None,
        }  # fmt: skip


def _local(home: Path, schema: Any, models: list[Any], method: Any) -> dict[str, float]:
    """The same on one machine, warmed too."""
    import pyarrow.parquet as pq

    import closeknit as ck

    for name in ("small", "table"):
        frame, start = pq.read_table(home / name), time.process_time()
        release = ck.anonymize(frame, schema, models, method, seed=SEED)
        release.save(home / f"local-{name}", report=False)
    return {"loss": release.loss, "processor": time.process_time() - start}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(_answer(json.load(sys.stdin))))

"""Generated tables on Spark, each run in a process of its own: time, memory, floor, and loss compared with one machine.

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
FLOOR = "floor"
PIECE = 5_000_000  # rows of a file of the table
WARM_ROWS = 20_000
KINDS = ("asks", "java", "workers")


def run(section: Any, rows: int | None) -> None:
    """Both ways of scaling that move rows, on every size; of one size also with one core."""
    import clock

    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        section.say("Not measured: pyspark or Java is missing.")
        return
    report_answers(
        section,
        [
            (requested, clock.child(sys.executable, "on_spark.py", requested))
            for requested in questions((rows,) if rows else SIZES)
        ],
    )


def questions(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Both methods and Spark alone on every size with two cores; the second also with one, the first being one shard."""
    return [
        {"job": job, "rows": size, "cores": cores, "local": job != FLOOR and size <= LOCAL and cores == 2}
        for job in (FLOOR, "mondrian", "sabre")
        for size in sizes
        for cores in ((2, 1) if size == sizes[:2][-1] else (2,))
    ]


def report_answers(section: Any, answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """What was measured."""
    section.say(
        f"Generated rows like those of the growth of SABRE, in Parquet files of {PIECE:,} rows; k = {K}, t = {T} on {SECRET}. "
        f"Spark on this machine, `local[2]` or `local[1]`, with a driver of {DRIVER}, which is executor too; each line is a "
        "process of its own. Measured is `anonymize` and saving without a page, after a small table has warmed everything. "
        "Time depends on what else the machine does; processor: seconds of all our processes. Floor: Spark alone reads, sorts "
        "by all columns and writes the same table. One machine: the same without Spark, from a table in memory, saved too. "
        "Java compiles itself while it works, and that weighs most where the table is small."
    )
    floors = {(requested["rows"], requested["cores"]): answer for requested, answer in answers if requested["job"] == FLOOR}
    ours = [(requested, answer) for requested, answer in answers if requested["job"] != FLOOR]
    section.table(
        [
            "method",
            "rows",
            "cores",
            "time",
            "processor",
            "Java",
            "workers",
            "floor: time",
            "processor",
            "share of ours",
            "one machine: processor",
            "Spark / one machine",
        ],
        [_costs(requested, answer, floors.get((requested["rows"], requested["cores"]))) for requested, answer in ours],
    )
    section.say("Peaks of memory: of the driver's Python process, of Java, and of all Python workers together; and the loss.")
    section.table(
        ["method", "rows", "cores", "asks", "Java", "workers", "shards", "loss A", "on one machine"],
        [_peaks(requested, answer) for requested, answer in ours],
    )


def _costs(requested: dict[str, Any], answer: dict[str, Any], floor: dict[str, Any] | None) -> list[str]:
    local, used = answer["local"], answer["used"]
    processor, alone = sum(used.values()), sum(floor["used"].values()) if floor else 0.0
    return [
        requested["job"],
        f"{requested['rows']:,}",
        str(requested["cores"]),
        f"{answer['seconds']:,.0f} s",
        f"{processor:,.1f} s",
        f"{used['java']:,.1f} s",
        f"{used['workers']:,.1f} s",
        f"{floor['seconds']:,.0f} s" if floor else "",
        f"{alone:,.1f} s" if floor else "",
        f"{alone / processor:.0%}" if floor else "",
        f"{local['processor']:,.1f} s" if local else "",
        f"{processor / local['processor']:.1f} times" if local else "",
    ]


def _peaks(requested: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    peaks = [f"{answer['peaks'][name]:,.0f} MB" for name in ("asks", "java", "workers")]
    there = f"{answer['local']['loss']:.4f}" if answer["local"] else ""
    return [
        requested["job"],
        f"{requested['rows']:,}",
        str(requested["cores"]),
        *peaks,
        answer["shards"],
        f"{answer['loss']:.4f}",
        there,
    ]


def written(rows: int, folder: Path) -> Any:
    """The table as Parquet files of a folder, and its schema."""
    from closeknit.io.files import write_parquet

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


class Watch(Thread):
    """What the process that asks, Java and all Python workers take, looked at every other second: workers come and go."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.over, self.seen, self.most = Event(), dict[int, tuple[str, float]](), dict.fromkeys(KINDS, 0.0)
        self._look()
        self.before, self.began = self._sums(), time.perf_counter()
        self.start()

    def run(self) -> None:
        while not self.over.wait(2.0):
            self._look()

    def ended(self) -> dict[str, Any]:
        """Seconds since it began, seconds of processor in that time and peak megabytes of each kind of process."""
        took = time.perf_counter() - self.began
        self.over.set()
        self.join()
        self._look()
        used = {kind: seconds - self.before[kind] for kind, seconds in self._sums().items()}
        return {"seconds": took, "used": used, "peaks": self.most}

    def _look(self) -> None:
        now = dict.fromkeys(KINDS, 0.0)
        for process, (name, used, most) in processes().items():
            kind = "asks" if process == os.getpid() else "java" if name == "java" else "workers"
            self.seen[process] = kind, used
            now[kind] += most
        self.most = {kind: max(self.most[kind], now[kind]) for kind in KINDS}

    def _sums(self) -> dict[str, float]:
        """Those that have ended count with what they were last seen with."""
        return {kind: sum(used for own, used in self.seen.values() if own == kind) for kind in KINDS}


def _answer(requested: dict[str, Any]) -> dict[str, Any]:
    """A small table, then the one that is measured."""
    import closeknit as ck
    from closeknit.spark.session import session

    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory {DRIVER.replace(' GB', 'g')} pyspark-shell"
    methods = {"mondrian": ck.Mondrian(), "sabre": ck.Sabre(fill="sweep", polish=False, slack=False)}
    models = [ck.KAnonymity(K), ck.TCloseness(SECRET, T)]
    spark = session(f"local[{requested['cores']}]")
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        for name, rows in (("small", min(WARM_ROWS, requested["rows"])), ("table", requested["rows"])):
            schema = written(rows, home / name)
            watch = Watch()
            if requested["job"] == FLOOR:
                spark.read.parquet(str(home / name)).orderBy(*SHAPE).write.parquet(str(home / f"out-{name}"))
                release = None
            else:
                release = ck.anonymize(home / name, schema, models, methods[requested["job"]], seed=SEED, engine="spark")
                release.save(home / f"out-{name}", report=False)
            found = watch.ended()
        spark.stop()
        if release is not None:
            notes = release._recipe.get("notes")
            found |= {"shards": notes[0].split()[4] if notes else "", "loss": release.loss}
        local = _local(home, schema, models, methods[requested["job"]]) if requested["local"] else None
        return {**found, "local": local}


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

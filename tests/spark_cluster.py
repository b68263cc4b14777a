"""A cluster of Spark's standalone mode on this machine, in processes of its own; run by itself, the work of a driver on it."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import closeknit as ck

KILLED_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
EXECUTOR = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": 1,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.python.daemon.module": "closeknit.spark.daemon",
}
SCHEMA = ck.Schema(
    quasi={"age": ck.numeric(0, 120), "stay": ck.numeric(0, 1000)},
    sensitive={"disease": ck.flat()},
    plain=["tag"],
    allow_unique=["tag"],
)
TYPES = "nr bigint, age bigint, stay bigint, disease string, tag string"
SHARDS = {"by": "age", "shards": [45], "order": "nr"}


def castle() -> ck.Castle:
    return ck.Castle(SCHEMA, k=5, delta=60, seed=2**100 + 1)


class Process:
    """A process and all that it starts; gone at the latest when the tests are."""

    def __init__(self, log: Path, words: list[Any], **env: str) -> None:
        self.log = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen(
                [*map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **env},
                preexec_fn=_killed_with_parent,
            )

    def said(self, pattern: str) -> re.Match[str]:
        """Wait until its log has a line."""
        while (found := re.search(pattern, self.log.read_text(errors="replace"), re.M)) is None:
            assert self.process.poll() is None, f"it has ended:\n{self.log.read_text(errors='replace')[-4000:]}"
            time.sleep(0.05)
        return found

    def kill(self) -> None:
        """At once, and everything that it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _killed_with_parent() -> None:
    ctypes.CDLL(None).prctl(KILLED_WITH_PARENT, signal.SIGKILL)


class Cluster:
    """One master, two workers with one core each."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self.folder, self._started = folder, list[Process]()
        self._jars = Path(pyspark.__file__).parent / "jars" / "*"
        master = self._start("master", "org.apache.spark.deploy.master.Master", "--port", 0)
        self.url = master.said(r"Starting Spark master at (\S+)")[1]
        self.master = master
        self.workers = [self._worker(name) for name in ("one", "two")]

    def _worker(self, name: str) -> Process:
        words = ["--cores", 1, "--memory", "1g", "--work-dir", self.folder / f"work-{name}", self.url]
        return self._start(name, "org.apache.spark.deploy.worker.Worker", *words)

    def _start(self, name: str, kind: str, *words: Any) -> Process:
        process = Process(
            self.folder / f"{name}.log",
            ["java", "-Xmx256m", "-cp", self._jars, kind, "--host", "127.0.0.1", "--webui-port", 0, *words],
            SPARK_HOME=str(self._jars.parents[1]),
            SPARK_SCALA_VERSION="2.13",
            PYTHONPATH=os.pathsep.join(sys.path),
        )
        self._started.append(process)
        return process

    def driver(self, name: str, *words: Any) -> Process:
        """A driver of its own: this file with other words."""
        from conftest import BRIEF_SPARK

        requested = " ".join(f"--conf {key}={value}" for key, value in {**EXECUTOR, **BRIEF_SPARK}.items())
        process = Process(
            self.folder / f"{name}.log",
            [sys.executable, "-u", __file__, self.url, *words],
            PYSPARK_SUBMIT_ARGS=f"{requested} pyspark-shell",
            PYSPARK_PYTHON=sys.executable,
            PYTHONPATH=os.pathsep.join(sys.path),
        )
        self._started.append(process)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._started):
            process.kill()


# What a driver does --------------------------------------------------------------------------------------------------------


def batch(url: str, table: str) -> None:
    """Anonymize, and print the progress."""
    method = ck.Sabre(fill="sweep", polish=False, slack=False)
    release = ck.anonymize(
        table,
        SCHEMA,
        [ck.KAnonymity(5), ck.TCloseness("disease", 0.3)],
        method,
        seed=2**100 + 1,
        engine="spark",
        master=url,
        progress=lambda what, share: print("now", what),
    )
    print("hash", release.certificate.content_sha256)


def stream(url: str, folder: Path, end: bool) -> None:
    """Rows in micro-batches; flushed if requested, else it runs until it is killed."""
    from closeknit.spark.session import session

    spark, home = session(url), folder / "home"
    rows = spark.readStream.schema(TYPES).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    left = ck.stream_on_spark(rows, castle(), home, **SHARDS)  # type: ignore[arg-type]
    writer = left.writeStream.option("checkpointLocation", str(home))
    (writer.trigger(availableNow=True) if end else writer).start(str(folder / "out")).awaitTermination()
    if end:
        found = [*spark.read.parquet(str(folder / "out")).collect(), *ck.flush_on_spark(castle(), home).collect()]
        (folder / "found.json").write_text(json.dumps([row.asDict() for row in found]))
        spark.stop()
    print("done")


if __name__ == "__main__":
    address, place, *what = sys.argv[1:]
    if "batch" in what:
        batch(address, f"{place}/table.parquet")
    stream(address, Path(place), "end" in what)

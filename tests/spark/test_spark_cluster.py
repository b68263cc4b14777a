"""A real cluster: the work of a killed worker is repeated, and a stream resumes after its driver was killed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import closeknit as ck
from closeknit.core.columns import Column, Columns
from closeknit.io.files import write_parquet
from closeknit.spark.stream_operator import Operator
from closeknit.spark.stream_shards import Shards
from spark_cluster import SCHEMA, SHARDS, Cluster, Process, castle

FILES, ROWS = 3, 80


def people(rows: int, first: int = 0) -> Columns:
    table = ck.datasets.hospital(rows, seed=first)
    numbers = np.arange(first, first + rows)
    tags = Column(np.array([f"t{number}" for number in numbers], dtype=object), np.arange(rows, dtype=np.int32))
    shown = {name: table[name] for name in ("age", "stay", "disease")}
    return Columns({"nr": Column(numbers, np.arange(rows, dtype=np.int32)), **shown, "tag": tags}, rows)


def test_a_killed_worker_and_a_killed_driver_change_nothing(java: None, tmp_path: Path) -> None:
    table, inbox = people(300), tmp_path / "in"
    table = Columns({name: table[name] for name in SCHEMA.used}, table.rows)
    write_parquet(table, tmp_path / "table.parquet")
    inbox.mkdir()
    came = [people(ROWS, first) for first in range(0, FILES * ROWS, ROWS)]
    arrive(inbox, 0, came[0])
    with Cluster(tmp_path) as cluster:
        driver = cluster.driver("first", tmp_path, "batch")
        driver.said("^now working")
        for worker in cluster.workers:
            worker.said("Asked to launch executor")
        cluster.workers[0].kill()
        there = driver.said("^hash (.+)$")[1]
        cluster.master.said("Removing worker|Worker .* lost|got disassociated")
        wait_for(tmp_path / "home" / "commits" / "0", driver)
        arrive(inbox, 1, came[1])
        wait_for(tmp_path / "home" / "offsets" / "1", driver)
        driver.kill()  # with a micro-batch that was planned, and is not finished
        arrive(inbox, 2, came[2])
        cluster.driver("second", tmp_path, "end").said("^done")
    method, models = ck.Sabre(fill="sweep", polish=False, slack=False), [ck.KAnonymity(5), ck.TCloseness("disease", 0.3)]
    here = ck.anonymize(table, SCHEMA, models, method, seed=2**100 + 1)
    assert there == here.certificate.content_sha256
    assert sorted(map(repr, json.loads((tmp_path / "found.json").read_text()))) == sorted(map(repr, left_here(came)))


def arrive(inbox: Path, number: int, rows: Columns) -> None:
    """One more file, whole at once."""
    new = inbox.with_name("arriving")
    write_parquet(rows, new)
    os.utime(new, (10**9 + number,) * 2)  # Spark takes them by their age
    new.rename(inbox / f"{number}.parquet")


def wait_for(file: Path, driver: Process) -> None:
    while not file.exists():
        assert driver.process.poll() is None, driver.log.read_text()[-4000:]
        time.sleep(0.01)


def left_here(came: list[Columns]) -> list[dict[str, Any]]:
    """What leaves the same shards when nothing happens to them."""
    shards = Shards.of(SCHEMA, SHARDS["by"], SHARDS["shards"])  # type: ignore[arg-type]
    operator, left = Operator(castle(), castle().secret, shards, {}), list[dict[str, Any]]()
    for part in range(2):
        stream = operator.open_shard(str(part), None)
        for columns in came:
            mine = columns.take(np.flatnonzero(shards.places(columns, operator.secret) == part))
            used = Columns({name: mine[name] for name in SCHEMA.used}, mine.rows)
            left += [row for batch in stream.batches_of(used) for row in _rows(batch)]
        left += stream.flush()
    assert len({row["tag"] for row in left}) == len(left) == FILES * ROWS
    return left


def _rows(columns: Columns) -> list[dict[str, Any]]:
    cells = {name: column.cells() for name, column in columns.items()}
    return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]

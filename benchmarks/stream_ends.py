"""Streams end to end: rows a second from files, PostgreSQL, HTTP and Spark to files and PostgreSQL, with one recipe."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2 as httpx
import numpy as np

from databases import postgresql, psql
from sections import Section
from web import COMMAND, serving

ROWS, REQUEST = 200_000, 1_000
K, DELTA = 50, 5_000
URL = "CLOSEKNIT_BENCH_STREAM"  # the variable that names the database
SCHEMA = {"quasi": {"age": {"numeric": {"lo": 0, "hi": 120}}, "sex": "flat"}, "sensitive": {"ill": "flat"}}
RECIPE = {"schema": SCHEMA, "models": [], "stream": {"k": K, "delta": DELTA, "position": "id"}}


def run(section: Section, rows: int | None) -> None:
    """Each way once; what is published is counted."""
    count = rows or ROWS
    section.say(
        f"{count:,} generated rows of four columns through KnitStream, k = {K}, delta = {DELTA:,}, once each, from start to "
        "end, the start of processes included; checkpoints, certificate and counters as usual. PostgreSQL without fsync on "
        f"this machine. HTTP: one sender, requests of {REQUEST:,} rows. Spark: one shard on this machine."
    )
    lines = []
    with tempfile.TemporaryDirectory() as name, postgresql(Path(name)) as url:
        os.environ[URL] = url
        folder = Path(name)
        write_rows(folder, count)
        psql(url, "CREATE TABLE people (id bigint PRIMARY KEY, age bigint, sex text, ill text)")
        psql(url, f"\\copy people FROM '{folder}/inbox/rows.csv' CSV HEADER")
        for way, act in list_ways(folder):
            start = time.perf_counter()
            published = act()
            seconds = time.perf_counter() - start
            lines.append([way, f"{published:,}", f"{seconds:.1f} s", f"{count / seconds:,.0f}"])
    section.table(["from, to", "rows published", "time", "rows a second"], lines)


def write_rows(folder: Path, count: int) -> None:
    """The rows as NDJSON and as CSV, and the recipe."""
    chance, ills = np.random.default_rng(1), ("flu", "gout", "acne", "HIV")
    ages, codes = chance.integers(18, 90, count).tolist(), chance.integers(0, 8, count).tolist()
    rows = [
        {"id": i, "age": age, "sex": "fm"[code % 2], "ill": ills[code // 2]}
        for i, (age, code) in enumerate(zip(ages, codes, strict=True))
    ]
    (folder / "inbox").mkdir()
    (folder / "rows.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    texts = [",".join(map(str, row.values())) for row in rows]
    (folder / "inbox" / "rows.csv").write_text("\n".join(["id,age,sex,ill", *texts]) + "\n", encoding="utf-8")
    (folder / "recipe.yaml").write_text(json.dumps(RECIPE), encoding="utf-8")  # JSON is YAML


def list_ways(folder: Path) -> Iterator[tuple[str, Callable[[], int]]]:
    """Every way from one end to the other; each returns how many rows were published."""
    file, database = ["-i", folder / "rows.ndjson"], ["-i", f"${{{URL}}}", "--input-table", "people", "--flush"]
    spark = ["--engine", "spark", "--flush", "-i", folder / "inbox", "--input-format", "csv", "-o", folder / "spark"]
    to_file, to_table = ["-o", folder / "out" / "rows.ndjson"], ["-o", f"${{{URL}}}", "--output-table"]
    (folder / "out").mkdir()
    yield "file, file", lambda: run_command(folder, "1", *file, *to_file)
    yield "file, PostgreSQL", lambda: run_command(folder, "2", *file, *to_table, "one")
    yield "PostgreSQL, PostgreSQL", lambda: run_command(folder, "3", *database, *to_table, "two")
    yield "HTTP, batches", lambda: send_rows(folder / "4", folder, "batches", {})
    yield "HTTP, PostgreSQL", lambda: send_rows(folder / "5", folder, "table", {"url": f"${{{URL}}}", "table": "three"})
    yield "files, files on Spark", lambda: run_command(folder, "6", *spark)


def run_command(folder: Path, name: str, *words: object) -> int:
    """`closeknit stream`, with a checkpoint and counters."""
    private = ["--checkpoint", folder / f"ck{name}", "--counters", folder / f"counters{name}.json"]
    command = [*COMMAND, "stream", folder / "recipe.yaml", *private, *words]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    return int(json.loads((folder / f"counters{name}.json").read_text(encoding="utf-8"))["rows_out"])


def send_rows(home: Path, folder: Path, sink: str, output: dict[str, str]) -> int:
    """A stream of `closeknit serve`: one sender, which waits if the queue is full, until the last row is published."""
    home.mkdir()
    recipe = json.dumps({**RECIPE, **({"output": output} if output else {})}).encode()
    lines = (folder / "rows.ndjson").read_bytes().splitlines(keepends=True)
    with serving(home, "--output-database", f"${{{URL}}}") as client:
        answer = client.post("/api/streams", files={"recipe": ("recipe.yaml", recipe)}, data={"sink": sink})
        path = f"/api/streams/{answer.raise_for_status().json()['id']}"
        for first in range(0, len(lines), REQUEST):
            while send(client, path, first, b"".join(lines[first : first + REQUEST])).status_code == 429:
                time.sleep(0.05)
        client.post(f"{path}/close").raise_for_status()
        while (state := client.get(path).json())["state"] != "ended":
            time.sleep(0.05)
        return int(state["published"])


def send(client: httpx.Client, path: str, first: int, body: bytes) -> httpx.Response:
    """One request."""
    return client.post(f"{path}/rows?first={first}", content=body, headers={"content-type": "application/x-ndjson"})

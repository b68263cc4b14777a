"""The service compared with the command line: the same recipe sent to `closeknit serve`, and its response time meanwhile."""

from __future__ import annotations

import json
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx

import clock
import closeknit as ck
import tables
from sal import Request
from sections import Section

K, T = 6, 0.25
PAUSE = 0.02  # seconds between two questions
COMMAND = [sys.executable, "-m", "closeknit"]


def run(section: Section, rows: int | None) -> None:
    """Adult and SAL, each by the command and by the service in turns."""
    section.say(
        f"Mondrian, k = {K}, t = {T}, both pages of the report included. Command: `closeknit anonymize` from start to end. "
        "Service: from the first byte of the upload until the job is done, a process waiting ready. Meanwhile its state is "
        f"requested every {PAUSE * 1000:.0f} ms, and the list of all jobs every tenth time: answers, their median, 99th "
        "percentile and longest."
    )
    lines = []
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as client:
        for name, made in (("Adult", tables.adult), ("SAL", tables.sal)):
            place = Path(folder, name)
            place.mkdir()
            source = made(place, rows)
            section.say(source.remark)
            lines.append([name, f"{source.rows:,}", *_measured(client, source, place)])
    section.table(["table", "rows", "command", "service", "service/command", "answers", "median", "99 %", "longest"], lines)


def _measured(client: httpx.Client, source: tables.Source, place: Path) -> list[str]:
    recipe = Request("", [ck.KAnonymity(K), ck.TCloseness(source.secret, T)], ck.Mondrian(), "").recipe(source)
    file, answers = place / "recipe.yaml", list[float]()
    file.write_text(json.dumps(recipe), encoding="utf-8")  # JSON is YAML

    def command() -> None:
        subprocess.run([*COMMAND, "anonymize", str(file), "-o", str(place / "out"), "--force"], check=True, capture_output=True)

    times = clock.in_turns({"command": command, "service": lambda: _job(client, file, source.path, answers)})
    ratio = statistics.median(times["service"]) / statistics.median(times["command"])
    took = sorted(answers)
    shown = [took[len(took) // 2], took[len(took) * 99 // 100], took[-1]]
    return [
        *(clock.spread(times[way]) for way in ("command", "service")),
        f"{ratio:.2f}",
        f"{len(took):,}",
        *(f"{1000 * seconds:.1f} ms" for seconds in shown),
    ]


def _job(client: httpx.Client, recipe: Path, table: Path, answers: list[float]) -> None:
    """One job, asked after until it is done."""
    with open(recipe, "rb") as requested, open(table, "rb") as rows:
        id = client.post("/api/jobs", files={"recipe": ("recipe.yaml", requested), "table": ("table.csv", rows)}).json()["id"]
    state = "waiting"
    while state in ("waiting", "running"):
        time.sleep(PAUSE)
        start = time.perf_counter()
        state = client.get(f"/api/jobs/{id}").json()["state"]
        answers.append(time.perf_counter() - start)
        if len(answers) % 10 == 0:
            start = time.perf_counter()
            client.get("/api/jobs")
            answers.append(time.perf_counter() - start)
    assert state == "done", client.get(f"/api/jobs/{id}").text


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[httpx.Client]:
    """`closeknit serve` in a process of its own, and one who may ask it."""
    token, tokens = secrets.token_hex(16), folder / "tokens"
    tokens.write_text(f"ann: {token}\n", encoding="utf-8")
    tokens.chmod(0o600)
    words = [*COMMAND, "serve", "--token-file", str(tokens), "--home", str(folder / "jobs"), "--port", "0", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            output: Any = server.stdout
            headers = {"authorization": f"Bearer {token}"}
            with httpx.Client(base_url=output.readline().split(" ")[0], headers=headers, timeout=600) as client:
                yield client
        finally:
            server.terminate()

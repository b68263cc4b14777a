"""A redis-server for tests, and `closeknit stream` in child processes that read from it and write to it."""

from __future__ import annotations

import socket
import subprocess
import time
from itertools import groupby
from pathlib import Path

import pytest

from stream_runs import Run, write_recipe

redis = pytest.importorskip("redis", reason="the client of Redis is not installed: pip install 'closeknit[redis]'")


class Server:
    """A redis-server of our own, which keeps nothing."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        words = ["--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
        self.process = subprocess.Popen(["redis-server", *map(str, words)], stdout=subprocess.DEVNULL)
        self.client = redis.Redis(port=self.port)
        while True:
            try:
                self.client.ping()
                return
            except redis.ConnectionError:
                assert self.process.poll() is None, "redis-server has ended"
                time.sleep(0.02)

    def url(self, key: str, **options: object) -> str:
        return f"redis://127.0.0.1:{self.port}/0/{key}?" + "&".join(f"{name}={value}" for name, value in options.items())

    def people(self, key: str, **options: object) -> str:
        return self.url(key, **{"group": "g", "consumer": "c", "field": "row", "end": "end", "count": 50, **options})

    def pending(self, key: str, group: str = "g") -> int:
        return int(self.client.xpending(key, group)["pending"])

    def batches(self, key: str) -> dict[int, list[str]]:
        """The rows of the output, by the numbers in their ids."""
        entries = self.client.xrange(key)
        for number, found in groupby(entries, key=lambda entry: int(entry[0].partition(b"-")[0])):
            rows = list(found)
            assert [id for id, _ in rows] == [f"{number}-{i}".encode() for i in range(1, len(rows) + 1)]
        return {
            number: [cells[b"row"].decode() for _, cells in found]
            for number, found in groupby(entries, key=lambda entry: int(entry[0].partition(b"-")[0]))
        }


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def started(
    server: Server,
    place: Path,
    output: str,
    die_at: int | None = None,
    input: str = "people",
    recipe: dict[str, object] | None = None,
    **options: object,
) -> Run:
    written = write_recipe(place) if recipe is None else write_recipe(place, stream=recipe)
    words = [
        "stream",
        written,
        "-i",
        server.people(input, **options),
        "-o",
        server.url(output, field="row"),
        "--checkpoint",
        place / "ck",
        "--every",
        100,
        "--rejects",
        place / "rejects",
    ]
    return Run(*words, out=place / "said", die_at=die_at)

"""`closeknit stream` in child processes that die where a test wants it. A server that has everything loaded forks them."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import socket
import sys
from collections.abc import Sequence
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import yaml

from closeknit.api.recipe import Recipe
from closeknit.cli.commands import main
from closeknit.core.columns import Columns
from closeknit.core.kinds import flat, numeric
from closeknit.core.schema import Schema
from closeknit.streams.castle import Castle

LETHAL = [*((os, name) for name in ("write", "fsync", "rename", "ftruncate", "unlink", "open")), (socket.socket, "sendall")]
CONTEXT = multiprocessing.get_context("forkserver")
RECIPE: dict[str, Any] = {
    "schema": {
        "identifier": ["name"],
        "quasi": {"age": {"numeric": {"lo": 0, "hi": 100}}, "sex": "flat"},
        "sensitive": {"ill": "flat"},
    },
    "stream": {"castle": {"k": 4, "delta": 40}},
    "seed": 7,
}
assert Recipe.of(RECIPE).stream


def some_rows(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """People as they come; long names, so that few of them make a block."""
    chance, ills = random.Random(seed), ["flu", "gout", "SARS", None]
    return [
        {"name": f"{i:0300}", "age": chance.randrange(18, 90), "sex": chance.choice("fm"), "ill": chance.choice(ills)}
        for i in range(count)
    ]


def as_ndjson(rows: Sequence[dict[str, Any]]) -> bytes:
    """One object a line."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def write_recipe(folder: Path, **changes: Any) -> Path:
    """The recipe of these tests, with other keys."""
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump({**RECIPE, **changes}), encoding="utf-8")
    return path


def warm() -> None:
    """Load the compiled kernels, so that children need not."""
    schema = Schema(quasi={"age": numeric(0, 100), "sex": flat()}, sensitive={"ill": flat()})
    stream, rows = Castle(schema, k=4, delta=40, seed=1), some_rows(150)
    stream.push_many(Columns.of({name: [row[name] for row in rows] for name in schema.used}))
    stream.flush()


def child(words: Sequence[str], standard: tuple[str | None, str], die_at: int | None, counted: Any) -> None:
    """The command, with its input and output; it kills itself before the `die_at`-th call of the system that leaves a trace."""
    os.dup2(os.open(standard[0] or os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(standard[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 1)
    os.dup2(os.open(standard[1] + ".err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    for owner, name in LETHAL:
        _make_lethal(owner, name, die_at, counted)
    sys.argv = ["closeknit", *words]
    main()


def _make_lethal(owner: Any, name: str, die_at: int | None, counted: Any) -> None:
    usual = getattr(owner, name)

    def call(*args: Any, **options: Any) -> Any:
        counted.value += 1
        if counted.value == die_at:
            if name in ("write", "sendall"):  # torn in the middle
                usual(args[0], bytes(args[1])[: len(args[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return usual(*args, **options)

    setattr(owner, name, call)


@cache
def started_server() -> None:
    """Once: the server from which all children are forked."""
    CONTEXT.set_forkserver_preload(["stream_runs"])
    usual = dict(os.environ)
    os.environ |= {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]), "CLOSEKNIT_WARM": "1"}
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(usual)


class Run:
    """One child. `status` is its exit status, negative for a signal."""

    def __init__(self, *words: object, out: Path, stdin: Path | None = None, die_at: int | None = None) -> None:
        started_server()
        self._counted, self.out = CONTEXT.Value("q", 0), out
        standard = (None if stdin is None else str(stdin), str(out))
        self.process = CONTEXT.Process(target=child, args=([str(word) for word in words], standard, die_at, self._counted))
        self.process.start()

    def wait(self) -> int:
        """Until it has ended."""
        self.process.join()
        assert self.process.exitcode is not None
        return self.process.exitcode

    def send(self, number: int) -> None:
        """A signal."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    @property
    def calls(self) -> int:
        """How often it called the system."""
        return int(self._counted.value)

    @property
    def said(self) -> str:
        """What it wrote to standard error."""
        return Path(f"{self.out}.err").read_text(encoding="utf-8")


if os.environ.get("CLOSEKNIT_WARM") == "1":  # in the server
    warm()

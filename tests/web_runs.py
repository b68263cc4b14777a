"""Servers for tests: the application in this process, or one of its own, and small tables to send it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import yaml
from fastapi import FastAPI
from starlette.testclient import TestClient

from closeknit.web.http_server import NotifyingServer, bind_socket, configure_server
from closeknit.web.server import make_app
from closeknit.web.settings import Settings
from closeknit.web.tokens import digest

TOKENS = {"ann": "ann-" + "a" * 24, "bob": "bob-" + "b" * 24}
ANN, BOB = ({"authorization": f"Bearer {token}"} for token in TOKENS.values())
HERE = "http://127.0.0.1:8000"
ROWS = "age,sex,disease\n30,f,flu\n31,f,gout\n40,m,flu\n44,m,gout\n"
RECIPE: dict[str, Any] = {
    "schema": {"quasi": {"age": "numeric", "sex": "flat"}, "sensitive": {"disease": "flat"}},
    "models": [{"k_anonymity": {"k": 2}}],
}


def team(home: Path, **limits: Any) -> FastAPI:
    """The application for ann and bob; nothing runs until it is entered."""
    settings = Settings(home=home, **{"port": 8000, "spare": False, "idle": 0, "at_once": 1, **limits})
    return make_app(settings, {name: digest(token) for name, token in TOKENS.items()})


@contextmanager
def client_of(app: FastAPI, headers: dict[str, str] | None = None) -> Iterator[TestClient]:
    """A client that speaks for ann; errors of the server are answers, as they would be outside."""
    with TestClient(
        app, HERE, raise_server_exceptions=False, follow_redirects=False, headers=ANN if headers is None else headers
    ) as c:
        yield c


@contextmanager
def answering(home: Path, **limits: Any) -> Iterator[tuple[str, FastAPI]]:
    """The application behind a real socket, in a thread: its address."""
    with bind_socket(Settings(home=home)) as listening:
        app = team(home, port=listening.getsockname()[1], **limits)
        opened = threading.Event()
        server = NotifyingServer(configure_server(app, app.state.settings), opened.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        opened.wait()
        try:
            yield app.state.settings.address, app
        finally:
            server.should_exit = True
            thread.join()


def job_files(recipe: Any = None, table: str | bytes = ROWS, name: str = "people.csv") -> dict[str, Any]:
    """The parts of a job."""
    text = recipe if isinstance(recipe, str | bytes) else yaml.safe_dump(RECIPE if recipe is None else recipe)
    table = table.encode() if isinstance(table, str) else table
    return {
        "recipe": ("recipe.yaml", io.BytesIO(text if isinstance(text, bytes) else text.encode())),
        "table": (name, io.BytesIO(table)),
    }


def over(client: Any, id: str) -> dict[str, Any]:
    """The job when nothing more happens to it."""
    while (job := client.get(f"/api/jobs/{id}").json())["state"] in ("waiting", "running"):
        time.sleep(0.05)
    return dict(job)


class Server:
    """`closeknit serve` in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.home = folder / "jobs"
        tokens = folder / "tokens"
        tokens.write_text("".join(f"{name}: {token}\n" for name, token in TOKENS.items()), encoding="utf-8")
        tokens.chmod(0o600)
        words = ["serve", "--token-file", str(tokens), "--home", str(self.home), "--port", "0", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "closeknit", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split(" ")[0]
        assert self.address.startswith("http"), self.process.stderr and self.process.stderr.read()
        self.port = int(self.address.rpartition(":")[2])

    def client(self, headers: dict[str, str] = ANN) -> httpx.Client:
        return httpx.Client(base_url=self.address, headers=headers, timeout=None)

    def stop(self) -> str:
        """End it as a person would, and give what it complained of."""
        self.process.terminate()
        return self.process.communicate()[1]

    def kill(self) -> None:
        """End it without a chance to tidy up."""
        self.process.kill()
        self.process.communicate()


def raw_files(home: Path) -> list[str]:
    """Every file of a server's folder that has a cell of the table in it."""
    found = []
    for folder, _, names in os.walk(home):
        found += [name for name in names if b"gout" in Path(folder, name).read_bytes()]
    return sorted(found)

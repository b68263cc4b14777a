"""What a stranger, another user or a malicious file could do to the server: each of these once went through."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from closeknit.apps.web import running
from closeknit.apps.web.desk.draft import read_draft
from closeknit.apps.web.desk.table import Limits
from closeknit.apps.web.limits import STRANGER
from closeknit.apps.web.pages import promises
from closeknit.apps.web.work_at_desk import looked
from closeknit.core.errors import BadInput
from web_runs import BOB, HERE, ROWS, answering, client_of, team


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    """A client and the address of a table that was looked at."""
    app = team(tmp_path_factory.mktemp("home"), at_once=0)
    with client_of(app) as client:
        client.headers["origin"] = HERE
        at = client.post("/tables", files={"table": ("people.csv", ROWS.encode())}).headers["location"]
        case = app.state.cases.of("ann", at.rpartition("/")[2])
        found = looked(case, {}, Limits(), lambda what, share: None)  # here: a process of its own takes seconds to start
        (case.folder / "tasks" / "1.result.json").write_text(json.dumps(found), encoding="utf-8")
        app.state.tasks._over(case, app.state.tasks.status(case), "done")
        yield client, at


def never() -> Iterator[bytes]:
    raise AssertionError("nobody should ask for it")
    yield b""


FORM, TEXT = "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"


@pytest.mark.parametrize("kind", [FORM, TEXT])
def test_a_stranger_sends_no_more_than_a_token(tmp_path: Path, kind: str) -> None:
    """The form for the token is open to everybody: a gigabyte in it would stand on the disk, or in memory."""
    with client_of(team(tmp_path / "home", at_once=0), {"origin": HERE}) as client:
        told = {"content-type": kind, "content-length": str(STRANGER + 1)}
        assert client.post("/login", content=never(), headers=told).status_code == 413
        assert (
            client.post("/login", content=iter([b"token=" + b"x" * STRANGER]), headers={"content-type": kind}).status_code
            == 413
        )


@pytest.mark.parametrize("kind", ["application/json", TEXT, ""])
def test_only_files_may_be_large(tmp_path: Path, kind: str) -> None:
    """Everything but the files of a form is held in memory, and JSON takes many times its length there."""
    with client_of(team(tmp_path / "home", at_once=0)) as client:
        told = {"content-type": kind, "content-length": "2000000"}
        assert client.post("/api/jobs/x/attack", content=never(), headers=told).status_code == 413


def test_a_client_that_takes_nothing_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger asks for many answers and reads none: his connection, one of those that all share, is closed."""
    monkeypatch.setattr(running, "PATIENCE_WITH_READERS", 0.3)
    with answering(tmp_path / "home", at_once=0) as (address, _):
        port = int(address.rpartition(":")[2])
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", port))
        line.sendall(f"GET /static/htmx.min.js HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode() * 200)
        time.sleep(1.5)
        line.settimeout(20)
        taken = 0
        with pytest.raises(ConnectionResetError):
            while part := line.recv(1 << 20):
                taken += len(part)
            raise ConnectionResetError if taken < 9_000_000 else AssertionError("all of it came")
        line.close()


def test_a_page_that_takes_long_stands_in_nobodys_way(desk: tuple[Any, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms of any fields are worked on beside the loop in which all others are answered."""
    client, at = desk
    seen = []
    monkeypatch.setattr(promises, "begun", lambda case: seen.append(threading.current_thread()))
    client.post(f"{at}/promises", data={"model": "k_anonymity", "k": "2"})

    async def loop() -> threading.Thread:
        return threading.current_thread()

    assert seen and seen[0] is not client.portal.call(loop)


def test_one_user_cannot_take_every_thread(tmp_path: Path) -> None:
    """More requests of one owner than he has turns wait, and another is answered meanwhile."""
    app = team(tmp_path / "home", at_once=0, turns=2)
    hold, inside = threading.Event(), threading.Semaphore(0)

    @app.get("/api/hold")
    def held() -> None:
        inside.release()
        hold.wait()

    with client_of(app) as client:
        waiting = [threading.Thread(target=client.get, args=["/api/hold"]) for _ in range(4)]
        for each in waiting:
            each.start()
        assert inside.acquire(timeout=20) and inside.acquire(timeout=20)
        assert client.get("/api/jobs", headers=BOB).status_code == 200
        client.portal.call(asyncio.sleep, 0.1)  # type: ignore[union-attr]
        assert not inside.acquire(blocking=False)
        hold.set()
        for each in waiting:
            each.join()


NUMBERS = {
    "sixties": "1" + ":1" * 200_000,  # takes minutes
    "sixties with a point": "1" + ":1" * 400 + ".5",  # larger than any float
    "sixteens": "0x" + "f" * 5000,  # cannot be written in tens
}
SCHEMA = "schema: {quasi: {age: numeric, sex: flat}, sensitive: {disease: flat}}\n"


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_numbers_that_yaml_alone_has_are_refused(number: str) -> None:
    with pytest.raises(BadInput, match="the recipe has a number of"):
        read_draft(f"models: [{{k_anonymity: {{k: {number}}}}}]")


def test_usual_numbers_are_read() -> None:
    assert read_draft("{a: 0x1f, b: 1:30, c: -1.5e+3, d: 1_000, e: .inf}") == {
        "a": 31,
        "b": 90,
        "c": -1500.0,
        "d": 1000,
        "e": math.inf,
    }


@pytest.mark.parametrize("more", [
    "models: [{k_anonymity: {k: 2}}]\nsuppress: 1/3",
    "models: [{k_anonymity: {k: 2}}]\nsuppress: '0.1'",
    "models: [{k_anonymity: {k: 2}}]\nnotes: [{2024-01-31: 1}]",
], ids=["fraction", "text", "day"])  # fmt: skip
def test_a_recipe_that_is_taken_breaks_no_page(desk: tuple[Any, str], more: str) -> None:
    client, at = desk
    taken = client.post(f"{at}/recipe", files={"recipe": ("r.yaml", (SCHEMA + more).encode())})
    assert taken.status_code == 303, taken.text
    assert [client.get(at + page).status_code for page in ("/roles", "/promises", "/methods", "/release")] == [200] * 4


@pytest.mark.parametrize("recipe,sentence", [
    (SCHEMA.replace("numeric", "{intervals: {lo: 0, hi: 100000, width: 1}}") + "models: []", "at most 10,000 intervals"),
    (SCHEMA.replace("numeric", "{tree: {a: [b, c]}, edges: [[0, 1], x]}") + "models: []", "are no pairs"),
    (SCHEMA + 'models: []\nnotes: ["\\ud800"]', "half of a sign"),
], ids=["intervals", "edges", "surrogate"])  # fmt: skip
def test_a_recipe_that_a_page_cannot_bear_is_a_sentence(desk: tuple[Any, str], recipe: str, sentence: str) -> None:
    client, at = desk
    answer = client.post(f"{at}/recipe", files={"recipe": ("r.yaml", recipe.encode())})
    assert answer.status_code == 422 and sentence in answer.text

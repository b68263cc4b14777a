"""What an unknown visitor, another user or a malicious file could do to the server: each of these once went through."""

from __future__ import annotations

import asyncio
import json
import math
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from closeknit.core.errors import BadInput
from closeknit.web import access, http_server, peers
from closeknit.web.body_limits import ANONYMOUS
from closeknit.web.case_tasks import draft_of
from closeknit.web.cases import Case
from closeknit.web.desk.draft import read_draft
from closeknit.web.desk.table_preview import Limits
from closeknit.web.desk.tree_edits import PASSING
from closeknit.web.page_tasks import inspect_table
from closeknit.web.pages import guarantees_step
from closeknit.web.peers import of_another_user
from closeknit.web.worker import without_places
from web_runs import ANN, BOB, HERE, ROWS, answering, client_of, team


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    """A client and the address of a table that was looked at."""
    app = team(tmp_path_factory.mktemp("home"), at_once=0)
    with client_of(app) as client:
        client.headers["origin"] = HERE
        at = client.post("/tables", files={"table": ("people.csv", ROWS.encode())}).headers["location"]
        case = app.state.cases.of("ann", at.rpartition("/")[2])
        found = inspect_table(case, {}, Limits(), lambda what, share: None)  # here: a process of its own takes seconds to start
        (case.folder / "tasks" / "1.result.json").write_text(json.dumps(found), encoding="utf-8")
        app.state.tasks._over(case, app.state.tasks.status(case), "done")
        yield client, at


def never() -> Iterator[bytes]:
    raise AssertionError("it should never be read")
    yield b""


FORM, TEXT = "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"


@pytest.mark.parametrize("kind", [FORM, TEXT])
def test_an_unknown_visitor_sends_no_more_than_a_token(tmp_path: Path, kind: str) -> None:
    """The form for the token is open to everyone: a gigabyte in it would fill the disk, or in memory."""
    with client_of(team(tmp_path / "home", at_once=0), {"origin": HERE}) as client:
        reported = {"content-type": kind, "content-length": str(ANONYMOUS + 1)}
        assert client.post("/login", content=never(), headers=reported).status_code == 413
        assert (
            client.post("/login", content=iter([b"token=" + b"x" * ANONYMOUS]), headers={"content-type": kind}).status_code
            == 413
        )


@pytest.mark.parametrize("kind", ["application/json", TEXT, ""])
def test_only_files_may_be_large(tmp_path: Path, kind: str) -> None:
    """Everything but the files of a form is held in memory, and JSON takes many times its length there."""
    with client_of(team(tmp_path / "home", at_once=0)) as client:
        reported = {"content-type": kind, "content-length": "2000000"}
        assert client.post("/api/jobs/x/attack", content=never(), headers=reported).status_code == 413


def test_a_client_that_takes_nothing_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor requests many answers and reads none: the connection, one of those that all share, is closed."""
    cut_off, lost = threading.Event(), http_server.PatientProtocol.connection_lost
    monkeypatch.setattr(http_server, "PATIENCE_WITH_READERS", 0.3)
    monkeypatch.setattr(http_server.PatientProtocol, "connection_lost", lambda *given: (lost(*given), cut_off.set()))
    with answering(tmp_path / "home", at_once=0) as (address, _):
        port = int(address.rpartition(":")[2])
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", port))
        line.sendall(f"GET /static/htmx.min.js HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode() * 200)
        cut_off.wait()
        taken = 0
        with pytest.raises(ConnectionResetError):
            while part := line.recv(1 << 20):
                taken += len(part)
            raise ConnectionResetError if taken < 9_000_000 else AssertionError("all of it came")
        line.close()


def test_a_page_that_takes_long_stands_in_nobodys_way(desk: tuple[Any, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms of any fields are parsed outside the loop in which all others are answered."""
    client, at = desk
    seen: list[threading.Thread] = []

    def watched(case: Case) -> dict[str, Any]:
        seen.append(threading.current_thread())
        return draft_of(case)

    monkeypatch.setattr(guarantees_step, "draft_of", watched)
    client.post(f"{at}/guarantees", data={"model": "k_anonymity", "k": "2"})

    async def loop() -> threading.Thread:
        return threading.current_thread()

    assert seen and seen[0] is not client.portal.call(loop)


def test_one_user_cannot_take_every_thread(tmp_path: Path) -> None:
    """More requests of one owner than he has turns wait, and another is answered meanwhile."""
    app = team(tmp_path / "home", at_once=0, turns=2)
    hold, inside = threading.Event(), threading.Semaphore(0)
    in_vain = threading.Timer(100, hold.set)  # only a client that is never answered waits for it

    @app.get("/api/hold")
    def held() -> None:
        inside.release()
        hold.wait()

    with client_of(app) as client:
        waiting = [threading.Thread(target=client.get, args=["/api/hold"]) for _ in range(4)]
        for each in (in_vain, *waiting):
            each.start()
        try:
            assert inside.acquire() and inside.acquire()
            assert client.get("/api/jobs", headers=BOB).status_code == 200 and not hold.is_set()
            client.portal.call(asyncio.sleep, 0.1)  # type: ignore[union-attr]
            assert not inside.acquire(blocking=False)
        finally:
            in_vain.cancel()
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


@pytest.mark.parametrize(
    "more",
    [
        "models: [{k_anonymity: {k: 2}}]\nsuppress: 1/3",
        "models: [{k_anonymity: {k: 2}}]\nsuppress: '0.1'",
        "models: [{k_anonymity: {k: 2}}]\nnotes: [{2024-01-31: 1}]",
    ],
    ids=["fraction", "text", "day"],
)
def test_a_recipe_that_is_taken_breaks_no_page(desk: tuple[Any, str], more: str) -> None:
    client, at = desk
    taken = client.post(f"{at}/recipe", files={"recipe": ("r.yaml", (SCHEMA + more).encode())})
    assert taken.status_code == 303, taken.text
    assert [client.get(at + page).status_code for page in ("/roles", "/guarantees", "/methods", "/release")] == [200] * 4


@pytest.mark.parametrize(
    "recipe,sentence",
    [
        (SCHEMA.replace("numeric", "{intervals: {lo: 0, hi: 100000, width: 1}}") + "models: []", "choose at most 10,000"),
        (SCHEMA.replace("numeric", "{tree: {a: [b, c]}, edges: [[0, 1], x]}") + "models: []", "are not pairs"),
        (SCHEMA + 'models: []\nnotes: ["\\ud800"]', "lone surrogate"),
    ],
    ids=["intervals", "edges", "surrogate"],
)
def test_a_recipe_that_a_page_cannot_bear_is_a_sentence(desk: tuple[Any, str], recipe: str, sentence: str) -> None:
    client, at = desk
    answer = client.post(f"{at}/recipe", files={"recipe": ("r.yaml", recipe.encode())})
    assert answer.status_code == 422 and sentence in answer.text


def test_a_code_is_good_for_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands in the command line of a browser: another user of the machine who is faster gets nothing."""
    table = tmp_path / "tcp"
    line = "0: 0100007F:{:04X} 0100007F:1F40 01 00000000:00000000 00:00000000 00000000 {} 0 1"
    table.write_text("head\n" + line.format(50000, os.getuid() + 1) + "\n" + line.format(50001, os.getuid()) + "\n")
    assert of_another_user(50000, 8000, (table,)) and not of_another_user(50001, 8000, (table,))
    app = team(tmp_path / "home", at_once=0)
    code = app.state.logins.code()
    with client_of(app, {}) as client:
        monkeypatch.setattr(access, "of_another_user", lambda *ports: True)
        assert client.get("/enter", params={"code": code}).status_code == 403
        monkeypatch.setattr(access, "of_another_user", lambda *ports: False)
        assert client.get("/enter", params={"code": code}).status_code == 303


def test_a_connection_is_of_whoever_opened_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as line:
        ports = line.getsockname()[1], server.getsockname()[1]
        assert not of_another_user(*ports)
        monkeypatch.setattr(peers, "ROOT", -1)
        monkeypatch.setattr(os, "getuid", lambda: -2)
        assert of_another_user(*ports) or not peers.TABLES[0].exists()


def test_a_sentence_with_half_a_sign_breaks_no_answer(tmp_path: Path) -> None:
    case = Case("0", "ann", "people.csv", ".csv", 0, folder=tmp_path)
    assert without_places("there is no method '\ud800'", case) == "there is no method '?'"


def test_nothing_stays_of_what_is_refused_or_was_cut_off(tmp_path: Path) -> None:
    """A table whose work is refused, and a hierarchy that was being imported when the server was killed."""
    left = tmp_path / "home" / f"{PASSING}x"
    left.mkdir(parents=True)
    app = team(tmp_path / "home", at_once=0, waiting=0)
    assert not left.exists()
    with client_of(app, {**ANN, "origin": HERE}) as client:
        assert client.post("/tables", files={"table": ("people.csv", ROWS.encode())}).status_code == 429
        assert client.post("/tables/built-in").status_code == 429 and list((tmp_path / "home").iterdir()) == []

"""Access: only with a token or a cookie, not from another site, and never to another user's work."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from closeknit.core.errors import BadInput
from closeknit.web import access, pages, peers, rest
from closeknit.web.access import OPEN
from closeknit.web.peers import of_another_user
from closeknit.web.tokens import read_tokens
from web_runs import ANN, BOB, HERE, ROWS, TOKENS, client_of, job_files, team

NO_ONE: dict[str, str] = {}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(team(tmp_path, at_once=0)) as found:  # work waits for ever: nothing here needs a worker
        yield found


def routes() -> list[tuple[str, str]]:
    routers = (access.router, *rest.ROUTERS, *pages.ROUTERS)
    found = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    assert len(found) > 12
    return [(method, route.path) for route in found for method in route.methods or ()]


def all_routes() -> list[tuple[str, str]]:
    more = [("GET", "/api/openapi.json"), ("GET", "/nothing/here"), ("PUT", "/"), ("GET", "/api"), ("GET", "//static/x")]
    return [*routes(), *more]


@pytest.mark.parametrize(
    "given",
    [{}, {"authorization": "Bearer guess"}, {"authorization": "Basic YTpi"}, {"cookie": "closeknit-8000=guess"}],
    ids=["none", "wrong", "basic", "cookie"],
)
def test_every_route_needs_a_token(client: TestClient, given: dict[str, str]) -> None:
    client.headers.pop("authorization")
    for method, path in all_routes():
        answer = client.request(method, path.replace("{id}", "0" * 32), headers={**given, "origin": HERE})
        if path not in OPEN:
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"] == "Bearer" and answer.headers["cache-control"] == "no-store"


def test_routes_that_are_open_are_few_and_disclose_nothing(client: TestClient) -> None:
    client.headers.pop("authorization")
    assert {path for _, path in routes()} >= set(OPEN) and len(OPEN) == 2
    assert client.get("/static/style.css").status_code == 200
    assert client.get("/static/../server.py").status_code in (401, 404)
    assert client.get("/static/%2e%2e/server.py").status_code == 404
    assert client.get("/enter").status_code == client.get("/enter?code=guess").status_code == 401
    assert client.post("/login", data={"token": "guess"}, headers={"origin": HERE}).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:8000.evil.example", "", "127.0.0.1:8000@evil"]
)
def test_other_names_are_refused(client: TestClient, host: str) -> None:
    answer = client.get("/api/jobs", headers={"host": host})
    assert answer.status_code == 403 and "not known by that name" in answer.json()["error"]


@pytest.mark.parametrize("host", ["localhost:8000", "[::1]:8000", "LOCALHOST:8000"])
def test_names_of_this_machine_are_known(client: TestClient, host: str) -> None:
    assert client.get("/api/jobs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "given",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:8000"},
        {"origin": "http://127.0.0.1:8001"},
        {"origin": "http://localhost:8000"},
        {"origin": HERE, "sec-fetch-site": "cross-site"},
        {"origin": HERE, "sec-fetch-site": "same-site"},
    ],
    ids=str,
)
def test_other_sites_are_refused(client: TestClient, given: dict[str, str]) -> None:
    """Also with a good cookie or token: that is what such a site would make a browser send."""
    for method, path in (("POST", "/api/jobs"), ("DELETE", "/api/jobs/0"), ("GET", "/api/jobs"), ("POST", "/login")):
        assert client.request(method, path, headers=given).status_code == 403, (method, path)


def test_a_cookie_alone_changes_nothing(tmp_path: Path) -> None:
    """A form of another site brings the cookie at most; a browser always says where a form comes from."""
    app = team(tmp_path)
    with client_of(app, NO_ONE) as client:
        client.get(f"/enter?code={app.state.logins.code()}")
        assert client.get("/api/jobs").status_code == 200
        assert client.post("/api/jobs", files=job_files()).status_code == 403
        assert client.post("/api/jobs", files=job_files(), headers={"origin": HERE}).status_code == 202
        led = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        assert client.get("/", headers=led).status_code == 200  # a link that is followed
        assert client.get("/", headers={**led, "sec-fetch-dest": "iframe"}).status_code == 403


def test_code_is_good_once_and_for_a_while(tmp_path: Path) -> None:
    app = team(tmp_path)
    code = app.state.logins.code()
    with client_of(app, NO_ONE) as client:
        assert client.get(f"/enter?code={code}", headers={"sec-purpose": "prefetch"}).status_code == 503
        answer = client.get(f"/enter?code={code}")
        assert answer.status_code == 303 and answer.headers["location"] == "/"
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and code not in cookie
        assert client.get("/").status_code == 200
        client.cookies.clear()
        assert client.get(f"/enter?code={code}").status_code == 401
        assert client.get("/").status_code == 401
    late = team(tmp_path, code=-1.0)
    with client_of(late, NO_ONE) as client:
        assert client.get(f"/enter?code={late.state.logins.code()}").status_code == 401


def test_login_with_a_token_and_out_again(tmp_path: Path) -> None:
    with client_of(team(tmp_path, secure=True, at_once=0), NO_ONE) as client:
        client.base_url = HERE.replace("http", "https")
        origin = {"origin": "https://127.0.0.1:8000"}
        answer = client.post("/login", data={"token": TOKENS["bob"]}, headers=origin)
        assert answer.status_code == 303
        assert answer.headers["set-cookie"].startswith("__Host-closeknit=") and "Secure" in answer.headers["set-cookie"]
        assert client.post("/api/jobs", files=job_files(), headers=ANN).status_code == 202
        assert client.get("/").status_code == 200 and "max-age" in client.get("/").headers["strict-transport-security"]
        assert client.get("/api/jobs").json() == [] and len(client.get("/api/jobs", headers=ANN).json()) == 1
        kept = client.cookies["__Host-closeknit"]
        assert client.post("/logout", headers=origin).status_code == 303
        assert client.get("/", headers={"cookie": f"__Host-closeknit={kept}"}).status_code == 401


def test_jobs_are_their_owners(client: TestClient) -> None:
    """Another user gets the same answer as for a job that never existed, by every route."""
    id = client.post("/api/jobs", files=job_files()).json()["id"]
    assert [job["id"] for job in client.get("/api/jobs").json()] == [id]
    assert client.get("/api/jobs", headers=BOB).json() == []
    tried = [(method, path) for method, path in routes() if "{id}" in path]
    assert len(tried) >= 12
    for method, path in tried:
        theirs = client.request(method, path.replace("{id}", id), headers=BOB | {"origin": HERE})
        never = client.request(method, path.replace("{id}", "0" * 32), headers=BOB | {"origin": HERE})
        assert theirs.status_code == never.status_code == 404, (method, path)
        assert theirs.content == never.content
    assert client.get(f"/api/jobs/{id}").status_code == 200


def test_headers_of_every_answer(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = client.app.state.cases  # type: ignore[attr-defined]

    def broken(*_: Any) -> Any:
        raise ValueError(ROWS)

    answers = [client.get(path) for path in ("/", "/api/jobs", "/nothing", "/static/style.css", "/api/openapi.json")]
    answers += [client.get("/", headers={"host": "evil"}), client.post("/api/jobs", headers={"content-length": "9" * 12})]
    monkeypatch.setattr(cases, "list_owned", broken)
    answers += [client.get("/"), client.get("/api/jobs")]
    assert [answer.status_code for answer in answers] == [200, 200, 404, 200, 200, 403, 413, 500, 500]
    for answer in answers:
        policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cache-control"] == ("no-cache" if answer.url.path.startswith("/static") else "no-store")
        assert "server" not in answer.headers
        assert "gout" not in answer.text and "Traceback" not in answer.text


def test_faults_are_logged_without_cells(
    client: TestClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError(f"cannot read {ROWS}")

    monkeypatch.setattr(client.app.state.cases, "list_owned", broken)  # type: ignore[attr-defined]
    assert client.get("/api/jobs?name=gout").json() == {
        "error": "the server failed; this message contains nothing of your table"
    }
    assert "ValueError" in caplog.text and "gout" not in caplog.text


@pytest.mark.parametrize(
    "text,mode,sentence",
    [
        ("ann: " + "a" * 24, 0o640, "other users can read it"),
        ("ann: short", 0o600, "the token of ann is too short"),
        ("ann " + "a" * 24, 0o600, "row 1: this is not a line"),
        ("../x: " + "a" * 24, 0o600, "this is not a line"),
        (f"ann: {'a' * 24}\nann: {'b' * 24}", 0o600, "row 2: this is not a line"),
        (f"ann: {'a' * 24}\nbob: {'a' * 24}", 0o600, "the token of another user"),
        ("# no user\n\n", 0o600, "there is no token in it"),
    ],
)
def test_token_files_that_are_refused(tmp_path: Path, text: str, mode: int, sentence: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    with pytest.raises(BadInput, match=re.escape(sentence)):
        read_tokens(file)


def test_description_stands_behind_the_token(client: TestClient) -> None:
    assert client.get("/api/openapi.json").json()["info"]["title"] == "closeknit"
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404
    assert ANN != BOB


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
        monkeypatch.setattr(os, "getuid", lambda: -2)
        assert of_another_user(*ports, trusted=()) or not peers.TABLES[0].exists()

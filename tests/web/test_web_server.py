"""A real server: its commands, slow clients, an end by force in the middle of a job, and answers while one runs."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from typer.testing import CliRunner

from closeknit.cli import serve
from closeknit.cli.commands import app
from closeknit.core.errors import BadInput
from closeknit.datasets import hospital, hospital_recipe
from closeknit.io.files import write_csv
from closeknit.web import http_server, workspaces
from closeknit.web.settings import Settings
from web_runs import ANN, BOB, TOKENS, Server, answering, client_of, job_files, over, raw_files, team

SLOW = {**hospital_recipe("x.csv"), "method": {"knit": {}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("server"), "--max-upload", "64", "--no-spare")
    yield found
    assert found.stop() == "", "a server that is stopped by a signal complains of nothing"


def table(folder: Path, rows: int) -> bytes:
    write_csv(hospital(rows), folder / "people.csv")
    return (folder / "people.csv").read_bytes()


def sent(server: Server, *parts: bytes) -> bytes:
    """What a client receives that sends these and then waits."""
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        for part in parts:
            line.sendall(part)
        answer = b""
        while part := line.recv(65536):
            answer += part
    return answer


def head(server: Server, *lines: str) -> bytes:
    token = ANN["authorization"]
    return "\r\n".join(
        ["POST /api/jobs HTTP/1.1", f"Host: 127.0.0.1:{server.port}", f"Authorization: {token}", *lines, "", ""]
    ).encode()


def test_upload_over_the_limit_is_refused_before_it_comes(server: Server) -> None:
    answer = sent(server, head(server, "Content-Length: 99000000"))
    assert answer.startswith(b"HTTP/1.1 413") and b"larger than this server accepts" in answer


def test_upload_without_a_length_is_cut_off(server: Server) -> None:
    """A chunked body that never ends: the answer comes at the limit, and the connection is closed."""
    start = head(server, "Transfer-Encoding: chunked", "Content-Type: multipart/form-data; boundary=x")
    first = b'--x\r\nContent-Disposition: form-data; name="table"; filename="a.csv"\r\n\r\n'
    block = b"1" * 1_000_000
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(start + b"%x\r\n%s\r\n" % (len(first), first))
        taken = 0
        try:
            while taken < 200_000_000:
                line.sendall(b"%x\r\n%s\r\n" % (len(block), block))
                taken += len(block)
        except OSError:
            pass
    assert taken < 120_000_000  # the limit, and what the system holds in between
    with server.client() as client:
        assert client.get("/api/jobs").json() == [] and not list(server.home.iterdir())


@pytest.mark.parametrize(
    "head", [b"GARBAGE\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET /" + b"x" * 70_000]
)
def test_broken_requests(server: Server, head: bytes) -> None:
    answer = sent(server, head)
    assert answer[9:12] in (b"400", b"403", b"431") and b"Traceback" not in answer


def test_slow_clients_are_cut_off_and_others_are_answered(tmp_path: Path) -> None:
    """One sends half a head, one half a body; both are closed, and another client is answered meanwhile."""
    with answering(tmp_path / "home", patience=1.0, patience_with_heads=1.0, slowest=1000, at_once=0) as (address, _):
        port = int(address.rpartition(":")[2])
        start = f"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: {ANN['authorization']}\r\n".encode()
        form = b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 5000\r\n\r\n--x\r\n"
        lines = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        for line, half in zip(lines, (start, start + form, b""), strict=True):
            line.sendall(half)
        assert httpx.get(f"{address}/api/jobs", headers=ANN).json() == []
        reported = [line.recv(65536) for line in lines]
        assert reported[0] == reported[2] == b"" and reported[1].startswith(b"HTTP/1.1 408")
        for line in lines:
            line.close()
        assert list((tmp_path / "home").iterdir()) == []


def test_killed_server_leaves_no_raw_table(tmp_path: Path) -> None:
    """Its worker dies with it; the next one finds what was finished, and deletes what was not."""
    server = Server(tmp_path, "--at-once", "1", "--no-spare")
    with server.client() as client:
        done = client.post("/api/jobs", files=job_files(), data={"report": "false"}).json()["id"]
        assert over(client, done)["state"] == "done"
        release = client.get(f"/api/jobs/{done}/release").content
        cut = client.post("/api/jobs", files=job_files(SLOW, table(tmp_path, 30_000))).json()["id"]
        while client.get(f"/api/jobs/{cut}").json()["words"] in ("waiting", "starting"):
            time.sleep(0.02)
    workers = children(server.process.pid)
    assert workers
    server.kill()
    while any(Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2] for pid in workers):
        time.sleep(0.02)
    (tmp_path / "people.csv").unlink()
    assert (server.home / cut / "table.csv").exists()
    again = Server(tmp_path, "--no-spare")
    with again.client() as client:
        assert client.get(f"/api/jobs/{done}/release").content == release
        assert client.get(f"/api/jobs/{cut}").json()["state"] == "interrupted"
        assert sorted(place.name for place in (again.home / cut).iterdir()) == ["case.json", "tasks"]
        assert client.delete(f"/api/jobs/{done}").status_code == 204
    assert raw_files(again.home) == []
    again.stop()


def children(pid: int) -> list[int]:
    found = []
    for tasks in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (tasks / "children").read_text().split()]
    return found


def test_page_on_ones_own_machine(tmp_path: Path) -> None:
    """The address is printed, lets its opener in, and everything is gone when the page ends."""
    words = [sys.executable, "-m", "closeknit", "ui", "--no-browser"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with httpx.Client(follow_redirects=True) as client:
            assert client.get(address.partition("/enter")[0]).status_code == 401
            page = client.get(address)
            assert page.status_code == 200 and "code" not in str(page.url)
            origin = str(page.url).rstrip("/")
            assert client.post(f"{origin}/api/jobs", files=job_files(), headers={"origin": origin}).status_code == 202
        (home,) = (tmp_path / f"closeknit-{os.getuid()}").iterdir()
        assert raw_files(home) and home.stat().st_mode & 0o777 == 0o700
        with pytest.raises(OSError), socket.create_connection((not_loopback(), int(origin.rpartition(":")[2])), timeout=5):
            pass
        process.send_signal(2)
        assert process.wait() == 0 and not home.exists()


def not_loopback() -> str:
    """Another address of this machine; an unused one where it has no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("192.0.2.1", 9))
            return str(line.getsockname()[0])
        except OSError:
            return "127.0.0.2"


def test_answers_do_not_wait_for_the_next_packet(tmp_path: Path) -> None:
    """asyncio sends at once only where the socket says that it speaks TCP."""
    with http_server.bind_socket(Settings(home=tmp_path, port=0)) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_folder_of_a_killed_page_goes_with_the_next_one(tmp_path: Path) -> None:
    with workspaces.open_temporary_workspace(tmp_path) as used:
        left = used.parent / "ui-left"
        left.mkdir(mode=0o700)
        (left / "table.csv").write_text("gout")
        with workspaces.open_temporary_workspace(tmp_path):
            assert not left.exists() and used.exists()
    used.parent.chmod(0o755)
    with pytest.raises(BadInput, match="not private to you"), workspaces.open_temporary_workspace(tmp_path):
        pass


@pytest.mark.parametrize(
    "words,sentence",
    [
        (["--host", "0.0.0.0"], "would be sent to 0.0.0.0 unencrypted"),
        (["--tls-cert", "c.pem"], "a TLS certificate and its key belong together"),
        (["--tls-cert", "c.pem", "--tls-key", "k.pem"], "c.pem: there is no such file"),
        (["--host", "192.0.2.1", "--behind-proxy"], "give it with --name"),
        (["--task-minutes", "0"], "--task-minutes"),
        (["--port", "1", "--host", "192.0.2.1", "--behind-proxy", "--name", "a.example"], "cannot listen on 192.0.2.1, port 1"),
    ],
)
def test_serve_is_refused(tmp_path: Path, words: list[str], sentence: str) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ann: {TOKENS['ann']}\n")
    tokens.chmod(0o600)
    done = CliRunner().invoke(app, ["serve", "--token-file", str(tokens), "--home", str(tmp_path / "home"), *words])
    assert done.exit_code == 2 and sentence in done.output and "Traceback" not in done.output


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "NEEDED", ("no_such_package",))
    done = CliRunner().invoke(app, ["ui", "--no-browser"])
    assert done.exit_code == 2 and "pip install 'closeknit[web]'" in done.output and len(done.output.splitlines()) == 1


def test_one_server_a_folder(tmp_path: Path) -> None:
    with (
        workspaces.open_workspace(tmp_path / "home") as home,
        pytest.raises(BadInput, match="another server uses this folder"),
        workspaces.open_workspace(home),
    ):
        pass
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(BadInput, match="other users can read this folder"), workspaces.open_workspace(tmp_path / "open"):
        pass


@pytest.mark.soak
def test_status_is_reported_while_half_a_million_rows_run(tmp_path: Path) -> None:
    """Whoever asks is answered while the job is on its way, again and again, and sees it go on."""
    server, seen = Server(tmp_path, "--at-once", "1"), list[tuple[str, float]]()
    with server.client() as client:
        id = client.post("/api/jobs", files=job_files(SLOW, table(tmp_path, 500_000))).json()["id"]
        while (job := client.get(f"/api/jobs/{id}").json())["state"] in ("waiting", "running"):
            seen.append((job["words"], job["share"]))
    server.stop()
    assert job["state"] == "done", job["sentence"]
    assert len(seen) > 100 and len(set(seen)) > 10


@pytest.mark.soak
def test_upload_of_more_than_a_gigabyte(tmp_path: Path) -> None:
    """The whole of it is not taken, and others are answered while it comes."""
    server, answered = Server(tmp_path), 0

    def body() -> Iterator[bytes]:
        nonlocal answered
        yield b'--x\r\nContent-Disposition: form-data; name="table"; filename="a.csv"\r\n\r\nage\n'
        for number in range(1200):
            if number % 100 == 0:
                assert other.get("/api/jobs").json() == []
                answered += 1  # and only now the next part is sent
            yield b"1\n" * 524_288

    with server.client() as client, server.client() as other:
        try:
            answer = client.post("/api/jobs", content=body(), headers={"content-type": "multipart/form-data; boundary=x"})
            assert answer.status_code == 413
        except httpx.TransportError:
            pass  # the connection was closed while we were still sending
        assert other.get("/api/jobs").json() == [] and list(server.home.iterdir()) == []
    server.stop()
    assert 10 <= answered <= 12


def test_a_client_that_takes_nothing_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor requests many answers and reads none: the connection, one of those that all share, is closed."""
    cut_off, lost = threading.Event(), http_server.PatientProtocol.connection_lost
    monkeypatch.setattr(http_server.PatientProtocol, "connection_lost", lambda *given: (lost(*given), cut_off.set()))
    with answering(tmp_path / "home", at_once=0, patience_with_readers=0.3) as (address, _):
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

"""Streams over HTTP: no row is lost or doubled, whatever is sent again and whatever is killed; what is too much is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import yaml
from starlette.testclient import TestClient

from closeknit.io import folders
from closeknit.streams.checkpoint_folder import CheckpointFolder
from closeknit.streams.sinks import FileSink
from closeknit.web.live import inbox, inbox_source
from closeknit.web.live.alarms import list_alarms
from closeknit.web.live.batch_log import BatchLog
from closeknit.web.live.inbox_source import InboxSource
from closeknit.web.live.live_stream import LiveStream
from closeknit.web.live.live_streams import LiveStreams
from closeknit.web.live.stream_watch import Sample, StreamWatch
from closeknit.web.live.stream_worker import run_stream, try_stream
from closeknit.web.settings import Settings
from conftest import SOAK
from web_runs import ANN, BOB, HERE, TOKENS, Server, answering, team

SCHEMA = {"quasi": {"age": {"numeric": {"lo": 0, "hi": 120}}, "sex": "flat"}, "sensitive": {"ill": "flat"}}
RECIPE = {"schema": SCHEMA, "models": [], "seed": 7, "stream": {"castle": {"k": 2, "delta": 6}}}
ROWS = [{"age": 20 + 7 * i % 60, "sex": "fm"[i % 2], "ill": ("flu", "gout", "acne")[i % 3]} for i in range(40)]
NDJSON = {"content-type": "application/x-ndjson"}


def new(client: Any, recipe: dict[str, Any] | None = None, **fields: str) -> str:
    """Create a stream and give its path."""
    text = yaml.safe_dump(RECIPE if recipe is None else recipe).encode()
    answer = client.post("/api/streams", files={"recipe": ("recipe.yaml", text)}, data=fields)
    assert answer.status_code == 201, answer.text
    return f"/api/streams/{answer.json()['id']}"


def send(client: Any, path: str, first: int, rows: list[dict[str, Any]], sender: str = "") -> Any:
    return client.post(f"{path}/rows", params={"first": first, "sender": sender}, json=rows)


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def work(stream: LiveStream, every: int = 1000, published: int = 10**6) -> bool:
    """Take everything in the inbox, and save a checkpoint, as the process of the stream does."""
    requests = [place for place in (stream.folder / "inbox").iterdir() if place.name.isdecimal()]
    turns = iter(range(2 * len(requests)))  # a run asks twice for each request whether it should stop
    return run_stream(stream.folder, stream.record.sink, every, published, None, lambda: next(turns, None) is None)


def batches(client: Any, path: str, after: int = 0) -> list[dict[str, Any]]:
    found = client.get(f"{path}/batches", params={"after": after}).json()
    assert found["last"] == (found["batches"][-1]["batch"] if found["batches"] else after)
    return list(found["batches"])


def stream_of(client: Any, path: str) -> LiveStream:
    return client.app.state.streams.of("ann", path.rpartition("/")[2])  # type: ignore[no-any-return]


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    """A server that starts no process: `work` does what they would."""
    app = team(tmp_path / "home", queue=30, queue_bytes=20_000, streams=3, streams_all=4)
    return TestClient(app, HERE, raise_server_exceptions=False, follow_redirects=False, headers=ANN)


def test_rows_arrive_in_every_format_and_are_published_in_classes(client: TestClient) -> None:
    path = new(client, name="ward 3")
    assert client.post(f"{path}/rows?first=0", content=lines(ROWS[:8]), headers=NDJSON).json() == {
        "accepted": 8,
        "repeated": 0,
        "next": 8,
    }
    assert send(client, path, 8, ROWS[8:16]).status_code == 202
    csv = "age,sex,ill\n" + "".join("{age},{sex},{ill}\n".format(**row) for row in ROWS[16:24])
    assert client.post(f"{path}/rows?first=16", content=csv, headers={"content-type": "text/csv"}).json()["next"] == 24
    assert client.get(path).json()["queued"] == 24
    assert client.post(f"{path}/close").status_code == 202
    assert work(stream_of(client, path))
    found = [row for batch in batches(client, path) for row in batch["rows"]]
    assert sorted(row["ill"] for row in found) == sorted(row["ill"] for row in ROWS[:24])
    state = client.get(path).json()
    assert state["published"] == 24 and state["pending"] == state["queued"] == state["queue"] == 0
    assert [each["met"] for each in state["guarantees"]] == [True] and state["delay_most"] <= state["delay_limit"] == 6
    assert client.get(f"{path}/certificate").json()["rows"] == 24


def test_requests_that_are_repeated_double_no_row(client: TestClient) -> None:
    path = new(client)
    for first, end in ((0, 5), (0, 5), (3, 9), (0, 9), (9, 12), (9, 12)):
        assert send(client, path, first, ROWS[first:end]).json()["next"] == max(end, client.get(path).json()["accepted"])
    assert send(client, path, 0, ROWS[:4], sender="other").json() == {"accepted": 4, "repeated": 0, "next": 4}
    assert client.get(f"{path}/senders").json() == {"next": {"": 12, "other": 4}}
    gap = send(client, path, 13, ROWS[13:15])
    assert gap.status_code == 409 and gap.json()["error"] == "the next row is number 12, not 13; send from 12 on"
    other = send(client, path, 9, ROWS[20:23])
    assert other.status_code == 409 and "accepted with other cells" in other.json()["error"]
    work(stream_of(client, path))
    again = TestClient(team(client.app.state.settings.home), HERE, headers=ANN)  # type: ignore[attr-defined]
    assert send(again, path, 9, ROWS[9:12]).json() == {"accepted": 0, "repeated": 3, "next": 12}
    assert again.get(path).json()["accepted"] == 16


def test_full_queue_refuses_with_a_time_to_wait(client: TestClient) -> None:
    path = new(client)
    assert send(client, path, 0, ROWS[:20]).status_code == 202
    full = send(client, path, 20, ROWS[20:35])
    assert full.status_code == 429 and 1 <= int(full.headers["retry-after"]) <= 60 and "queue is full" in full.json()["error"]
    assert [alarm["name"] for alarm in client.get(path).json()["alarms"]] == ["queue full"]
    assert send(client, path, 20, ROWS[20:30]).status_code == 202  # there is room for ten
    assert client.get(path).json()["accepted"] == 30
    assert send(client, path, 30, ROWS[:31]).status_code == 413
    assert client.post(f"{path}/rows?first=30", content=b" " * 2_000_000, headers=NDJSON).status_code == 413
    work(stream_of(client, path))
    assert client.get(path).json()["queue"] == 0
    assert send(client, path, 30, ROWS[20:35]).status_code == 202


@pytest.mark.parametrize(
    ("body", "kind", "sentence"),
    [
        ('{"age": 1, "sex": "f", "ill": "flu"}\n{"age": }\n', "application/x-ndjson", "row 2: it is not JSON"),
        ('[{"age": 1, "sex": "f"}]', "application/json", "row 1: 'ill' is not in the row"),
        ('[{"age": 1, "age": 2, "sex": "f", "ill": "flu"}]', "application/json", "occurs twice"),
        ('[{"age": NaN, "sex": "f", "ill": "flu"}]', "application/json", "row 1: NaN is not a number"),
        ("[1", "application/json", "not JSON"),
        ("age,sex\n1,f\n", "text/csv", "ill"),
        ('{"age": 1, "sex": "f", "ill": "flu", "name": "Ann"}\n', "application/x-ndjson", "'name' has no role"),
    ],
)
def test_a_request_with_a_bad_row_is_refused_as_a_whole(client: TestClient, body: str, kind: str, sentence: str) -> None:
    path = new(client)
    answer = client.post(f"{path}/rows?first=0", content=body, headers={"content-type": kind})
    assert answer.status_code == 400 and sentence in answer.json()["error"]
    assert client.get(path).json()["accepted"] == 0
    assert client.post(f"{path}/rows?first=0", content=body, headers={"content-type": "text/html"}).status_code == 415
    assert client.post(f"{path}/rows", content=body, headers=NDJSON).status_code == 422


@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        ({"schema": SCHEMA, "models": []}, "the recipe has no stream"),
        ({**RECIPE, "stream": {"castel": {"k": 2}}}, "stream 'castel' is unknown"),
        ({**RECIPE, "schema": {"quasi": {"age": "numeric"}}}, "numeric without bounds"),
        ({**RECIPE, "schema": {"quasi": {"age": {"csv": "/etc/passwd"}}}}, "a file of its own"),
    ],
)
def test_a_recipe_that_cannot_run_is_refused(client: TestClient, recipe: Any, sentence: str) -> None:
    answer = client.post("/api/streams", files={"recipe": ("recipe.yaml", yaml.safe_dump(recipe).encode())})
    assert answer.status_code == 400 and sentence in answer.json()["error"]
    assert client.get("/api/streams").json() == []


def test_streams_are_their_owners_and_limited(client: TestClient) -> None:
    paths = [new(client) for _ in range(3)]
    text = yaml.safe_dump(RECIPE).encode()
    assert client.post("/api/streams", files={"recipe": ("r", text)}).status_code == 429
    assert client.post("/api/streams", files={"recipe": ("r", text)}, data={"sink": "x"}).status_code == 400
    assert client.post("/api/streams", files={"recipe": ("r", text)}, headers=BOB).status_code == 201
    assert client.post("/api/streams", files={"recipe": ("r", text)}, headers=BOB).status_code == 429  # four run
    for method, rest in (("GET", ""), ("DELETE", ""), ("POST", "/close"), ("GET", "/batches"), ("GET", "/senders")):
        assert client.request(method, paths[0] + rest, headers=BOB).status_code == 404
    assert client.post(f"{paths[0]}/rows?first=0", json=ROWS, headers=BOB).status_code == 404
    assert len(client.get("/api/streams").json()) == 3
    folder = stream_of(client, paths[0]).folder
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    assert client.delete(paths[0]).status_code == 204 and not folder.exists()
    streams = client.app.state.streams  # type: ignore[attr-defined]
    stream_of(client, paths[1]).touched -= streams.settings.keep + 1
    streams.expire()
    assert [stream["id"] for stream in client.get("/api/streams").json()] == [paths[2].rpartition("/")[2]]


def test_batches_wait_until_they_are_acknowledged(client: TestClient) -> None:
    path = new(client)
    stream = stream_of(client, path)
    send(client, path, 0, ROWS[:15])
    send(client, path, 15, ROWS[15:30])
    work(stream, published=100)  # a few batches fill the space: the second request waits
    first = batches(client, path)
    state = client.get(path).json()
    assert state["queued"] == 15 and "sink full" in [alarm["name"] for alarm in state["alarms"]]
    assert client.delete(f"{path}/batches?through={first[-1]['batch'] + 1}").status_code == 400
    assert client.delete(f"{path}/batches?through={first[-1]['batch']}").status_code == 204
    assert client.get(f"{path}/batches?after=0").status_code == 400
    assert batches(client, path, first[-1]["batch"]) == []
    while client.get(path).json()["queued"]:
        work(stream, published=100)
    second = batches(client, path, first[-1]["batch"])
    assert [batch["batch"] for batch in first + second] == list(range(1, len(first + second) + 1))


def test_rows_are_appended_to_a_file_and_a_broken_one_recovers(client: TestClient) -> None:
    path = new(client, sink="rows.csv")
    stream = stream_of(client, path)
    assert client.get(f"{path}/rows").status_code == client.get(f"{path}/batches").status_code == 409
    send(client, path, 0, ROWS[:20])
    place = stream.folder / "out" / "rows.csv"
    place.mkdir(parents=True)
    failure = try_stream(stream.folder, "rows.csv", 1000, 0, None)
    assert failure is not None and failure["what"] == "sink" and str(stream.folder) not in failure["sentence"]
    (stream.folder / "failed.json").write_text(json.dumps(failure))
    assert [alarm.name for alarm in list_alarms(stream, stream.status)] == ["sink down"]
    assert client.get(path).json()["state"] == "stopped"
    place.rmdir()
    work(stream)
    assert client.get(path).json()["alarms"] == [] and client.get(path).json()["state"] == "running"
    text = client.get(f"{path}/rows").text.splitlines()
    assert text[0] == "age,sex,ill" and len(text) == 1 + client.get(path).json()["published"]


def test_closed_streams_take_no_rows(client: TestClient) -> None:
    path = new(client)
    send(client, path, 0, ROWS[:5])
    client.post(f"{path}/close")
    client.post(f"{path}/close")
    late = send(client, path, 5, ROWS[5:7])
    assert late.status_code == 409 and "closed" in late.json()["error"]
    assert send(client, path, 0, ROWS[:5]).json()["repeated"] == 5
    work(stream_of(client, path))
    again = LiveStreams(client.app.state.settings)  # type: ignore[attr-defined]
    stream = again.of("ann", path.rpartition("/")[2])
    assert stream.ended and stream.inbox.ended and stream.status.count("rows_out") + stream.status.count("suppressed") == 5


def test_live_page_shows_numbers_and_alarms_but_no_row(client: TestClient) -> None:
    client.headers["origin"] = HERE
    recipe = {**RECIPE, "seed": 987_654_321, "stream": {"castle": {"k": 4, "delta": 6}}}
    made = client.post("/streams", files={"recipe": ("r", yaml.safe_dump(recipe).encode())}, data={"name": "<b>ward"})
    assert made.status_code == 303
    page = made.headers["location"]
    assert "The process of the stream is starting" in client.get(page).text
    path = f"/api{page}"
    send(client, path, 0, [{**row, "sex": "divers"} for row in ROWS[:25]])
    stream = stream_of(client, path)
    stream.inbox.heard -= 600
    client.post(f"{page}/close")
    work(stream)
    for address in (page, f"{page}/live"):
        text = client.get(address).text
        shown = [f"<dd>{state:,}" for state in (client.get(path).json()[name] for name in ("published", "suppressed"))]
        assert all(each in text for each in shown) and "k-anonymity, k = 4" in text and ">met<" in text
        assert not any(cell in text for cell in ("divers", "gout", "acne", "987654321"))  # no row, no cell, no seed
    assert 'hx-get="' + page + '/live"' in client.get(page).text and "&lt;b&gt;ward" in client.get(page).text
    listed = client.get("/streams").text
    assert page in listed and "gout" not in listed
    bad = client.post("/streams", files={"recipe": ("r", b"models: []")})
    assert bad.status_code == 422 and 'role="alert"' in bad.text
    assert client.get(page, headers=BOB).status_code == 404
    assert client.post(f"{page}/remove").headers["location"] == "/streams"
    assert client.get(page).status_code == 404


def test_alarms(client: TestClient) -> None:
    path = new(
        client, {**RECIPE, "stream": {"castle": {"k": 5, "delta": 6}}, "models": [{"l_diversity": {"column": "ill", "l": 2}}]}
    )
    stream = stream_of(client, path)
    assert list_alarms(stream, stream.status) == []
    stream.inbox.heard -= 90
    assert [alarm.sentence for alarm in list_alarms(stream, stream.status)] == ["no row has arrived for 90 seconds"]
    send(client, path, 0, [{**row, "ill": "flu"} for row in ROWS[:28]])  # one value: nothing can be published
    work(stream)
    assert [alarm.name for alarm in list_alarms(stream, stream.status)] == ["suppression"]
    samples = [Sample(0.0, 0, 0, 0, 0), Sample(9.0, 100, 80, 80 * 6, 20)]
    near = replace(stream.status, samples=samples, timed=False, longest=6.5)
    assert "delay" in [alarm.name for alarm in list_alarms(stream, near)]
    late = replace(near, timed=True, longest=30.0, counters={"wait_most": 31.5, "broken": 1})
    assert [alarm.name for alarm in list_alarms(stream, late)] == ["not met", "delay"]
    fine = replace(near, timed=True, longest=30.0, counters={"wait_most": 30.2})
    assert list_alarms(stream, fine) == list_alarms(stream, replace(near, longest=7.0, counters={})) == []


class Killed(BaseException):
    """In place of SIGKILL: nothing catches it."""


def publish(folder: Path, sink: str, patch: pytest.MonkeyPatch, kill_at: int | None) -> tuple[str, list[str]]:
    """Send rows in small requests to a stream that is killed once, at this step; what it published, and its steps."""
    steps: list[str] = []

    def counting(act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **options: Any) -> Any:
            for after in (False, True):  # it is killed before or after the act
                steps.append(f"{'after' if after else 'before'} {act.__qualname__}")
                if len(steps) == kill_at:
                    raise Killed
                if not after:
                    found = act(*given, **options)
            return found

        return counted

    settings = Settings(home=folder, queue=12, queue_bytes=4000)
    id = LiveStreams(settings).create("ann", "", yaml.safe_dump(RECIPE), sink).record.id
    with patch.context() as patched:
        for owner, name in (
            (BatchLog, "write"),
            (FileSink, "write"),
            (InboxSource, "read"),
            (InboxSource, "commit"),
            (CheckpointFolder, "save"),
            (StreamWatch, "write"),
            (inbox_source, "write_whole"),
            (inbox, "write_whole"),
            (folders.os, "fsync"),
        ):
            patched.setattr(owner, name, counting(getattr(owner, name)))
        sent = 0
        while True:
            try:
                stream = LiveStreams(settings).of("ann", id)  # a new server
                while sent < len(ROWS):
                    if stream.inbox.waiting[0] > 6:
                        work(stream, every=4)
                    sent = stream.accept("", max(sent - 2, 0), ROWS[max(sent - 2, 0) : sent + 5]).next
                stream.close()
                while not work(stream, every=4):
                    pass
                break
            except Killed:
                kill_at = None
    if sink == "batches":
        return "".join(place.read_text() for place in sorted((stream.folder / "published").glob("*.ndjson"))), steps
    return stream.rows_file.read_text(), steps


@pytest.mark.parametrize("sink", ["batches", "rows.ndjson"])
def test_killed_at_any_step_no_row_is_lost_or_doubled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: str) -> None:
    tmp_path.joinpath("whole").mkdir()
    whole, steps = publish(tmp_path / "whole", sink, monkeypatch, None)
    assert whole.count('"ill"') == len(ROWS) and len(steps) > 100
    kinds = [[at for at, kind in enumerate(steps, 1) if kind == each] for each in dict.fromkeys(steps)]
    assert len(kinds) >= 14
    for kill_at in range(1, len(steps) + 1) if SOAK else [found[len(found) // 2] for found in kinds]:
        folder = tmp_path / str(kill_at)
        folder.mkdir()
        assert publish(folder, sink, monkeypatch, kill_at)[0] == whole, kill_at


def until(client: Any, path: str, name: str, value: object) -> dict[str, Any]:
    while (state := client.get(path).json())[name] != value:
        time.sleep(0.05)
    return dict(state)


def examples() -> dict[str, str]:
    """The examples of docs/web.md, by their language: the last one of each."""
    text = Path("docs/web.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S))


def test_examples_run_and_a_process_that_is_killed_resumes(tmp_path: Path) -> None:
    found = examples()
    (tmp_path / "arrivals.yaml").write_text(found["yaml"], encoding="utf-8")
    (tmp_path / "rows.ndjson").write_text(lines(ROWS), encoding="utf-8")
    with answering(tmp_path / "home") as (address, app), httpx.Client(base_url=address, headers=ANN, timeout=None) as client:
        *shell, close = found["sh"].splitlines()
        assert close.endswith('close"')
        environment = {**os.environ, "TOKEN": TOKENS["ann"], "SERVER": address}
        ran = subprocess.run(["bash", "-ec", "\n".join(shell)], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert f'{{"accepted":{len(ROWS)},"repeated":0,"next":{len(ROWS)}}}' in ran.stdout, ran.stderr
        stream = app.state.streams.list_owned("ann")[0]
        path = f"/api/streams/{stream.record.id}"
        until(client, path, "queued", 0)
        before = batches(client, path)
        os.kill(stream._process.pid, signal.SIGKILL)
        program: dict[str, Any] = {}
        exec(found["python"], program)
        program["send"](f"{address}{path}", TOKENS["ann"], ROWS, size=7)
        program["send"](f"{address}{path}", TOKENS["ann"], ROWS)  # started again: everything is there already
        client.post(f"{path}/close")
        state = until(client, path, "state", "ended")
        after = batches(client, path)
    assert before and after[: len(before)] == before
    assert state["alarms"] == [] and state["published"] == 2 * len(ROWS)
    assert sorted(row["ill"] for batch in after for row in batch["rows"]) == sorted(row["ill"] for row in 2 * ROWS)


@pytest.mark.soak
def test_a_server_that_is_killed_again_and_again_loses_no_row(tmp_path: Path) -> None:
    path, sent = "", 0
    many = [{**ROWS[i % len(ROWS)], "age": 1 + i % 100} for i in range(400)]
    while True:
        server = Server(tmp_path, "--no-spare")
        with server.client() as client:
            path = path or new(client)
            for _ in range(4):
                sent = send(client, path, max(sent - 3, 0), many[max(sent - 3, 0) : sent + 10]).json()["next"]
                time.sleep(0.5)
            if sent == len(many):
                client.post(f"{path}/close")
                state = until(client, path, "state", "ended")
                found = [row for batch in batches(client, path) for row in batch["rows"]]
                server.stop()
                break
        server.kill()
    assert state["published"] + state["suppressed"] == len(many) and len(found) == state["published"]

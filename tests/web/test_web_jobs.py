"""Jobs in processes of their own: the whole way, its end by force, and what a restart finds."""

from __future__ import annotations

import io
import json
import os
import signal
import time
import zipfile
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml
from starlette.testclient import TestClient

from closeknit.api import audit
from closeknit.core.errors import BadInput
from closeknit.datasets import hospital, hospital_recipe
from closeknit.io.files import write_csv
from closeknit.web import tasks as tasks_module
from closeknit.web.cases import Case, CaseNotFound, Cases
from closeknit.web.settings import Settings
from closeknit.web.tasks import CUT_OFF, ENDED, STOPPED, TOO_LONG, Tasks
from closeknit.web.worker import without_places
from web_runs import ROWS, client_of, job_files, over, team

SLOW = {**hospital_recipe("x.csv"), "method": {"knit": {}}, "suppress": 0.0}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A table with which a worker is busy for a while."""
    file = tmp_path_factory.mktemp("large") / "people.csv"
    write_csv(hospital(30_000), file)
    return file.read_bytes()


def begin(client: TestClient, **given: Any) -> str:
    answer = client.post("/api/jobs", files=job_files(**given), data={"report": "false"})
    assert answer.status_code == 202 and answer.headers["location"] == f"/api/jobs/{answer.json()['id']}"
    return str(answer.json()["id"])


def running(client: TestClient, id: str) -> int:
    """The process of a job that has begun to work."""
    while (client.get(f"/api/jobs/{id}").json())["words"] in ("waiting", "starting"):
        time.sleep(0.02)
    (process,) = client.app.state.tasks._running.values()  # type: ignore[attr-defined]
    return int(process.pid)


def test_unknown_keys_are_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    with client_of(team(tmp_path / "home", at_once=0)) as client:
        id = begin(client)
        for place, body, says in (
            ("compare", {"metods": ["knit"]}, "there is no key 'metods'; did you mean 'methods'?"),
            ("attack", {"Runs": 3}, "there is no key 'Runs'; did you mean 'runs'?"),
        ):
            answer = client.post(f"/api/jobs/{id}/{place}", json=body)
            assert (answer.status_code, answer.json()) == (422, {"error": says})
        answer = client.post("/api/jobs", files=job_files(), data={"reprot": "false"})
        assert (answer.status_code, answer.json()) == (422, {"error": "there is no key 'reprot'; did you mean 'report'?"})
        answer = client.post("/api/jobs", files={"table": job_files()["table"]})
        assert (answer.status_code, answer.json()) == (422, {"error": "the field 'recipe' is missing; add it"})
        assert len(client.get("/api/jobs").json()) == 1, "what is refused leaves nothing"


def test_whole_way(tmp_path: Path) -> None:
    """Job, certificate, report, both archives, attack, audit; then nothing is left of it."""
    with client_of(team(tmp_path / "home", idle=1)) as client:
        id = client.post("/api/jobs", files=job_files()).json()["id"]
        assert client.get(f"/api/jobs/{id}/release").status_code == 409
        job = over(client, id)
        assert (job["state"], job["share"], job["released"], job["sentence"]) == ("done", 1.0, True, None)
        certificate = client.get(f"/api/jobs/{id}/certificate").json()
        assert certificate["rows"] == 4
        release = client.get(f"/api/jobs/{id}/release")
        assert release.headers["content-disposition"] == 'attachment; filename="release.csv"'
        report = client.get(f"/api/jobs/{id}/report")
        assert "sandbox" in report.headers["content-security-policy"] and report.headers["cache-control"] == "no-store"
        assert "script-src" not in report.headers["content-security-policy"]
        leaves, stays = (unpacked(client.get(f"/api/jobs/{id}/{kind}").content) for kind in ("release.zip", "private"))
        assert sorted(leaves) == ["certificate.json", "release.csv", "report.html", "report.json"]
        assert sorted(stays) == ["classes.csv", "recipe.yaml", "recoding.json", "report.html", "report.json"]
        assert leaves["release.csv"] == release.content and json.loads(leaves["certificate.json"]) == certificate
        assert yaml.safe_load(stays["recipe.yaml"])["data"] == {"path": "people.csv"}
        assert not any(id.encode() in part for part in [*leaves.values(), *stays.values()]), "names a folder of the server"
        for name, content in leaves.items():
            (tmp_path / name).write_bytes(content)
        assert audit(tmp_path / "release.csv", certificate=tmp_path / "certificate.json").ok

        assert client.get(f"/api/jobs/{id}/attack").status_code == 409
        assert client.post(f"/api/jobs/{id}/attack", json={"runs": 2}).json()["state"] == "waiting"
        assert over(client, id)["state"] == "done" and client.get(f"/api/jobs/{id}/attack").json()["rows"] == 4

        files = {"release": ("release.csv", leaves["release.csv"]), "certificate": ("c.json", leaves["certificate.json"])}
        checked = client.post("/api/audits", files=files).json()["id"]
        assert over(client, checked)["state"] == "done" and client.get(f"/api/jobs/{checked}/audit").json()["ok"] is True
        for each in (id, checked):
            assert client.delete(f"/api/jobs/{each}").status_code == 204
            assert client.get(f"/api/jobs/{each}").status_code == 404
        assert list((tmp_path / "home").iterdir()) == []


def unpacked(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_worker_that_is_killed_is_a_sentence_and_others_go_on(tmp_path: Path, large: bytes) -> None:
    with client_of(team(tmp_path)) as client:
        killed, deleted, next = begin(client, recipe=SLOW, table=large), begin(client, recipe=SLOW, table=large), begin(client)
        os.kill(running(client, killed), signal.SIGKILL)
        job = over(client, killed)
        assert (job["state"], job["sentence"], job["released"]) == ("failed", ENDED, False)
        process = running(client, deleted)
        assert client.delete(f"/api/jobs/{deleted}").status_code == 204
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
        assert not (tmp_path / deleted).exists()
        assert over(client, next)["state"] == "done"


def test_ten_jobs_at_once(tmp_path: Path) -> None:
    """All are taken; some finish, the rest is deleted from the queue; the server answers meanwhile."""
    at_once(tmp_path, 10, 1)


@pytest.mark.soak
def test_two_hundred_jobs_at_once(tmp_path: Path) -> None:
    at_once(tmp_path, 200, 200)


def at_once(home: Path, jobs: int, finished: int) -> None:
    with client_of(team(home, at_once=2 if finished > 1 else 1, cases=jobs, waiting=jobs)) as client:
        ids = [begin(client) for _ in range(jobs)]
        assert len({*ids}) == len(client.get("/api/jobs").json()) == jobs
        for id in ids[:finished]:
            assert over(client, id)["state"] == "done"
        for id in ids[finished:]:
            assert client.delete(f"/api/jobs/{id}").status_code == 204
        assert sorted(job["id"] for job in client.get("/api/jobs").json()) == sorted(ids[:finished])


def test_memory_and_time_are_limited(tmp_path: Path, large: bytes) -> None:
    with client_of(team(tmp_path / "a", memory=200_000_000)) as client:
        id = begin(client, recipe=SLOW, table=large)
        job = over(client, id)
        assert job["state"] == "failed" and "memory" in job["sentence"]
    with client_of(team(tmp_path / "b", longest=0.05)) as client:
        id = begin(client, recipe=SLOW, table=large)
        assert over(client, id)["sentence"] == TOO_LONG.format(minutes=0.05 / 60)


def test_one_user_never_keeps_another_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a slot is free, only those who have nothing running are given it."""
    monkeypatch.setattr(tasks_module, "WorkerProcess", MagicMock())
    cases = Cases(Settings(home=tmp_path, at_once=2, spare=False))
    tasks = Tasks(cases)

    def requested(owner: str) -> str:
        case = cases.new(owner, "a.csv", io.BytesIO(b"x"))
        tasks.start(case, "anonymize")
        return case.id

    first, second = requested("ann"), requested("ann")
    tasks._dispatch()
    assert [id for id, _ in tasks._running] == [first]
    other = requested("bob")
    tasks._dispatch()
    assert [id for id, _ in tasks._running] == [first, other]
    tasks.cancel(cases.by_id(first))
    tasks._dispatch()
    assert [id for id, _ in tasks._running] == [other, second]


def test_restart_keeps_releases_and_no_raw_table(tmp_path: Path, large: bytes) -> None:
    """Finished jobs are found with all their files; a job that was cut off says so, and its table is gone."""
    with client_of(team(tmp_path)) as client:
        done = begin(client)
        assert over(client, done)["state"] == "done"
        open = client.app.state.cases.new("ann", "draft.csv", io.BytesIO(ROWS.encode())).id  # type: ignore[attr-defined]
        cut = begin(client, recipe=SLOW, table=large)
        running(client, cut)
        (tmp_path / cut / ".out.tmp-1").mkdir()
        client.post(f"/api/jobs/{done}/attack")
    broken = tmp_path / ("0" * 32)
    broken.mkdir()
    (broken / "table.csv").write_text(ROWS)
    with client_of(team(tmp_path, at_once=0)) as client:
        jobs = {job["id"]: job for job in client.get("/api/jobs").json()}
        assert set(jobs) == {done, open, cut} and not broken.exists()
        assert (jobs[done]["state"], jobs[done]["sentence"], jobs[done]["released"]) == ("interrupted", STOPPED, True)
        assert client.get(f"/api/jobs/{done}/release").status_code == 200
        assert (jobs[cut]["state"], jobs[cut]["sentence"]) == ("interrupted", CUT_OFF)
        assert client.post(f"/api/jobs/{cut}/compare").status_code == client.get(f"/api/jobs/{cut}/report").status_code == 410
        assert jobs[open]["sentence"] == CUT_OFF
        assert names(tmp_path / open) == ["case.json", "tasks"] and names(tmp_path / cut) == ["1.json", "case.json", "tasks"]


def names(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.rglob("*"))


def test_expired_jobs_go_with_everything(tmp_path: Path) -> None:
    app = team(tmp_path, at_once=0)
    cases, tasks = app.state.cases, app.state.tasks
    old, new, busy = (cases.new("ann", "a.csv", io.BytesIO(b"x")) for _ in range(3))
    Tasks.start(tasks, busy, "anonymize")
    for case in (old, busy):
        case.touched = time.time() - 25 * 3600
    tasks.expire()
    assert {case.id for case in cases.all()} == {new.id, busy.id} and not old.folder.exists()


def test_only_the_newest_tasks_of_a_kind_are_remembered(tmp_path: Path) -> None:
    app = team(tmp_path, at_once=0)
    cases, tasks = app.state.cases, app.state.tasks
    case = cases.new("ann", "a.csv", io.BytesIO(b"x"))
    for _ in range(6):
        task = tasks.start(case, "tree")
        (case.folder / "tasks" / f"{task.number}.result.json").write_text("{}")
        tasks.cancel(case, task.number)
    tasks.start(case, "look")
    assert [(task.number, task.kind) for task in tasks.history(case)] == [
        (3, "tree"),
        (4, "tree"),
        (5, "tree"),
        (6, "tree"),
        (7, "look"),
    ]
    assert len(list((case.folder / "tasks").iterdir())) == 9
    tasks.remove(case)
    with pytest.raises(CaseNotFound):
        tasks.start(case, "tree")


def test_work_continues_after_a_fault_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk must not end the thread that runs everyone's jobs."""
    with client_of(team(tmp_path)) as client:
        tasks = client.app.state.tasks  # type: ignore[attr-defined]
        usual, failing = tasks._save, [True]

        def full(case: Any, task: Any) -> None:
            if failing[0] and task.state == "running":
                failing[0] = False
                raise BadInput("the disk is full")
            usual(case, task)

        monkeypatch.setattr(tasks, "_save", full)
        assert over(client, begin(client, recipe="schema: ["))["state"] == "failed" and not failing[0]


def test_a_sentence_with_half_a_sign_breaks_no_answer(tmp_path: Path) -> None:
    case = Case("0", "ann", "people.csv", ".csv", 0, folder=tmp_path)
    assert without_places("there is no method '\ud800'", case) == "there is no method '?'"

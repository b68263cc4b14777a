"""PostgreSQL in and out: each row once whatever dies, no row lost to a late commit, every refusal as one sentence."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from conftest import SOAK_SEED
from database_servers import PASSWORD, Server, free_port, lower_rights, postgresql_folder
from postgresql_runs import NAMES, PEOPLE, ROWS, Cells, add, counted, refuse_password, started, wait_for_rows, written
from stream_runs import Run, as_ndjson, write_recipe
from tcp_proxy import Proxy

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install -e '.[dev]'")


@pytest.fixture(scope="module")
def client(postgresql: Server) -> Iterator[Any]:
    with psycopg.connect(postgresql.url(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def table(client: Any) -> str:
    """A new table of people that no other test uses."""
    name = f"people_{os.getpid()}_{next(NAMES)}"
    client.execute(f"CREATE TABLE {name} ({PEOPLE})")
    return name


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Cells:
    """What comes of the same rows from a file, in order."""
    place = tmp_path_factory.mktemp("whole")
    (place / "in.ndjson").write_bytes(as_ndjson(ROWS))
    run = Run("stream", write_recipe(place), "-i", place / "in.ndjson", "-o", place / "rows.ndjson", out=place / "said")
    assert run.wait() == 0, run.said
    return [tuple(json.loads(line).values()) for line in (place / "rows.ndjson").read_text(encoding="utf-8").splitlines()]


def test_batches_are_those_of_the_same_rows_in_a_file(
    postgresql: Server, client: Any, expected: Cells, table: str, tmp_path: Path
) -> None:
    add(client, table, ROWS)
    run = started(postgresql.url(), tmp_path, table, "--flush")
    assert run.wait() == 0, run.said
    assert written(client, f"{table}_out") == expected and len(expected) == 700
    assert min(Counter((age, sex) for age, sex, _ in expected).values()) >= 4
    rights = client.execute("SELECT has_schema_privilege('public', 'public_private', 'USAGE')").fetchone()
    assert rights == (False,) and "rows in 700, out 700" in run.said
    refuse_password(run.said, *(file.read_text("latin-1") for file in (tmp_path / "ck").iterdir()))
    run = started(postgresql.url(), tmp_path, table, "--flush")
    assert run.wait() == 0 and "had ended before" in run.said


def kill_again_and_again(url: str, chance: random.Random, place: Path, table: str, kills: int, calls: int) -> int:
    for kill in range(kills):
        at = chance.randrange(1, calls) if kill % 2 else None  # after so many calls of the system, or at any time
        run = started(url, place, table, "--flush", die_at=at)
        if at is None:
            time.sleep(chance.random() * 0.6)
            run.process.kill()
        if (status := run.wait()) == 0:
            return kill
        assert status == -signal.SIGKILL, run.said
    run = started(url, place, table, "--flush")
    assert run.wait() == 0, run.said
    return kills


def kill_runs(server: Server, client: Any, expected: Cells, tmp_path: Path, table: str, kills: int, seed: int) -> None:
    add(client, table, ROWS)
    chance, done = random.Random(seed), 0
    while done < kills:
        place = tmp_path / str(done)
        place.mkdir()
        done += max(kill_again_and_again(server.url(), chance, place, table, min(kills - done, 5), 40), 1)
        assert written(client, f"{table}_out") == expected
        client.execute(f"DROP TABLE {table}_out, {table}_out_certificate")


def test_killed_at_any_instant_each_row_is_there_once(
    postgresql: Server, client: Any, expected: Cells, table: str, tmp_path: Path
) -> None:
    kill_runs(postgresql, client, expected, tmp_path, table, 3, 3)


@pytest.mark.soak
def test_killed_a_hundred_times(postgresql: Server, client: Any, expected: Cells, table: str, tmp_path: Path) -> None:
    kill_runs(postgresql, client, expected, tmp_path, table, 100, SOAK_SEED)


def cut_runs(server: Server, client: Any, expected: Cells, tmp_path: Path, table: str, cuts: int, seed: int) -> None:
    """Both connections lose their bytes somewhere, again and again, also in a commit; the run opens others by itself."""
    add(client, table, ROWS)
    chance, left = random.Random(seed), [cuts]

    def cut() -> int | None:
        left[0] -= 1
        return chance.randrange(2_000, 30_000) if left[0] >= 0 else None

    proxy = Proxy(server.port, cut)
    while True:
        run = started(server.url(port=proxy.port), tmp_path, table, "--flush", "--counters", tmp_path / "counters.json")
        status = run.wait()
        found = written(client, f"{table}_out")
        assert found == expected[: len(found)]
        refuse_password(run.said)
        if status == 0:
            break
        assert status == 2 and "the database refuses" in run.said and "Traceback" not in run.said, run.said  # at its beginning
    assert left[0] < 0 and found == expected
    outages = counted(tmp_path)["outages"] + counted(tmp_path)["input_outages"]
    assert outages > 0 and ("put was down" in run.said), "connections were lost and counted"
    proxy.listener.close()


def test_a_lost_connection_loses_and_doubles_no_row(
    postgresql: Server, client: Any, expected: Cells, table: str, tmp_path: Path
) -> None:
    cut_runs(postgresql, client, expected, tmp_path, table, 6, 5)


@pytest.mark.soak
def test_lost_two_hundred_connections(postgresql: Server, client: Any, expected: Cells, table: str, tmp_path: Path) -> None:
    for trial in range(20):
        (tmp_path / str(trial)).mkdir()
        client.execute(f"TRUNCATE {table} RESTART IDENTITY")
        cut_runs(postgresql, client, expected, tmp_path / str(trial), table, 10, SOAK_SEED + trial)
        client.execute(f"DROP TABLE {table}_out, {table}_out_certificate")


def feed(client: Any, table: str, upset: Callable[[int], None], run: Run, parts: int = 5) -> None:
    """Add the rows part by part, and upset the run after each part, when it has written something new."""
    size = len(ROWS) // parts
    for part in range(parts):
        before = len(written(client, f"{table}_out"))
        add(client, table, ROWS[part * size : (part + 1) * size])
        while run.process.is_alive() and part and len(written(client, f"{table}_out")) == before:
            time.sleep(0.02)
        upset(part)


def test_sessions_that_are_ended_and_a_server_that_is_stopped_are_waited_for(
    postgresql: Server, client: Any, expected: Cells, table: str, tmp_path: Path
) -> None:
    proxy = [Proxy(postgresql.port)]
    url = postgresql.url(port=proxy[0].port)
    run = started(url, tmp_path, table, "--counters", tmp_path / "counters.json")
    end = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'closeknit' AND pid <> pg_backend_pid()"
    )

    def upset(part: int) -> None:
        if part == 2:
            proxy[0].stop()
            time.sleep(1.2)
            proxy[0] = Proxy(postgresql.port, port=proxy[0].port)
        else:
            client.execute(end)

    feed(client, table, upset, run)
    wait_for_rows(client, f"{table}_out", 660, run)
    proxy[0].stop()  # a signal ends waiting for the input
    time.sleep(0.7)
    run.send(signal.SIGTERM)
    assert run.wait() == 2 and "the run stopped after the output was down" in run.said, run.said
    proxy[0] = Proxy(postgresql.port, port=proxy[0].port)
    found = counted(tmp_path)
    assert found["outages"] > 1 and found["input_outages"] > 1 and found["held"] > 0
    assert found["outage_most"] <= found["outage_sum"] and 0 < found["input_outage_most"] <= found["input_outage_sum"]
    run = started(url, tmp_path, table, "--flush")
    assert run.wait() == 0 and written(client, f"{table}_out") == expected, run.said
    proxy[0].stop()


@pytest.mark.soak
def test_a_server_that_is_stopped_and_started_ten_times(expected: Cells, tmp_path: Path) -> None:
    """A server of its own, which is stopped as an administrator does it, and at once, as in a power failure."""
    programs, data = postgresql_folder(), Path(mkdtemp(prefix="closeknit-stopped-"))  # pytest's own folders are for its user
    assert programs is not None
    given = data / "password"
    given.write_text(PASSWORD, encoding="utf-8")
    user: Any = lower_rights(data, "postgres")
    control = [str(programs / "pg_ctl"), "-D", str(data / "data"), "-w", "-s"]
    port = free_port()
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="

    def call(*words: str) -> None:
        subprocess.run([*control, *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **user)

    words = ["-U", "closeknit", "-A", "scram-sha-256", f"--pwfile={given}", "-E", "UTF8", "--locale=C.UTF-8"]
    subprocess.run([programs / "initdb", "-D", data / "data", *words], check=True, stdout=subprocess.DEVNULL, **user)
    call("-o", options, "-l", str(data / "log"), "start")
    url, table = Server("postgresql", port, 0).url("postgres"), "people"
    try:
        with psycopg.connect(url, autocommit=True) as client:
            client.execute(f"CREATE TABLE {table} ({PEOPLE})")
        run = started(url, tmp_path, table, "--counters", tmp_path / "counters.json")
        for part in range(10):
            with psycopg.connect(url, autocommit=True) as client:
                add(client, table, ROWS[70 * part : 70 * (part + 1)])
                wait_for_rows(client, f"{table}_out", 70 * part - 10, run)
            call("-m", "immediate" if part % 2 else "fast", "stop")
            time.sleep(random.Random(SOAK_SEED + part).random())
            call("-o", options, "-l", str(data / "log"), "start")
        with psycopg.connect(url, autocommit=True) as client:
            wait_for_rows(client, f"{table}_out", 660, run)
            run.send(signal.SIGTERM)
            assert run.wait() == 0 and counted(tmp_path)["input_outages"] >= 5, run.said
            run = started(url, tmp_path, table, "--flush")
            assert run.wait() == 0 and written(client, f"{table}_out") == expected, run.said
    finally:
        call("-m", "immediate", "stop")
        shutil.rmtree(data)


def test_rows_arrive_while_it_runs_and_a_signal_saves(
    postgresql: Server, client: Any, expected: Cells, table: str, tmp_path: Path
) -> None:
    run = started(postgresql.url(), tmp_path, table)
    for first in range(0, 300, 100):
        add(client, table, ROWS[first : first + 100])
    while run.process.is_alive() and len(written(client, f"{table}_out")) < 250:
        time.sleep(0.02)
    run.send(signal.SIGTERM)
    assert run.wait() == 0 and "stopped; rows in 300" in run.said, run.said
    add(client, table, ROWS[300:])
    run = started(postgresql.url(), tmp_path, table, "--flush")
    assert run.wait() == 0, run.said
    assert written(client, f"{table}_out") == expected

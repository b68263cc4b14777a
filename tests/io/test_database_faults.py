"""Writers that are killed, cut off, or compete: a release is there with its certificate and private tables, or not at all."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import closeknit as ck
from closeknit.io.database import Database
from conftest import SOAK, SOAK_SEED
from database_servers import Server
from database_writer import ROWS, write
from tcp_proxy import Proxy

pytestmark = pytest.mark.grows


def find_number(url: str, table: str, rows: int = ROWS) -> int | None:
    """The number of the release that is there; None if there is none. Anything between is an error."""
    try:
        number = json.loads(Database(url, table).read_certificate())["number"]
    except ck.BadInput as missing:
        assert "there is no table" in str(missing) or "there is no such file" in str(missing), missing
        with pytest.raises(ck.BadInput, match="there is no"):
            Database(url, table).read()
        return None
    found = Database(url, table).read()
    assert found.rows == rows and set(found["number"].cells()) == {number}
    assert sorted(map(str, found["text"].cells())) == sorted(f"row {i} of {number}" for i in range(rows))
    if url.startswith(("sqlite", "duckdb")):
        private = Path(Database(url).url.partition(":///")[2] + ".private")
        # a writer that is killed leaves a folder of its own, perhaps an empty one, to which no certificate leads
        assert str(number) in {file.read_text(encoding="utf-8") for file in private.glob(f"{table}-*/recipe.yaml")}
    else:
        schema = "public_private" if url.startswith("postgresql") else "closeknit_private"
        assert Database(url, f"{schema}.{table}_recipe").read()["recipe"].cells() == [str(number)]
        assert Database(url, f"{schema}.{table}_classes").read().rows == rows
    return number


def kill_writer(url: str, table: str, wait: float) -> int:
    """Start a process that writes one release after the other, kill it after a while, and return how many it wrote."""
    words = [sys.executable, "-m", "database_writer", url, table]
    path = os.pathsep.join(sys.path)
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(wait)
    child.send_signal(signal.SIGKILL)
    child.wait()
    return len(child.stdout.read().splitlines())


def test_a_killed_writer_leaves_a_whole_release_or_none(database: str) -> None:
    chance = random.Random(SOAK_SEED)
    for trial in range(100 if SOAK else 1):
        table = f"killed_{trial}_{chance.randrange(10**9)}"
        done = kill_writer(database, table, chance.uniform(0, 0.6))
        number = find_number(database, table)
        assert number in ((None, 0) if done == 0 else (done - 1, done))
        write(database, table, 7, replace=True)
        assert find_number(database, table) == 7


KILLED = """
import os, signal, sqlite3, sys
writer = sqlite3.connect(sys.argv[1], isolation_level=None)
writer.execute("PRAGMA cache_size = 1")  # changed pages reach the file before the end
writer.execute("BEGIN IMMEDIATE")
writer.execute(f"DROP TABLE {sys.argv[2]}")
writer.execute("CREATE TABLE other (cell)")
writer.executemany("INSERT INTO other VALUES (?)", [("x" * 1000,)] * 2000)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_release_is_there_although_a_killed_writer_left_its_journal(tmp_path: Path) -> None:
    file = tmp_path / "clinic.db"
    write(f"sqlite:///{file}", "patients", 5)
    subprocess.run([sys.executable, "-c", KILLED, str(file), "patients"], check=False)
    assert Path(f"{file}-journal").stat().st_size > 0
    assert find_number(f"sqlite:///{file}", "patients") == 5


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_lost_connection_leaves_a_whole_release_or_none(kind: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(kind)
    chance, rows = random.Random(SOAK_SEED), 40
    with Proxy(server.port) as proxy:
        write(server.url(port=proxy.port), f"whole_{chance.randrange(10**9)}", 1, rows=rows)
        most = proxy.passed
    table, expected = f"cut_{chance.randrange(10**9)}", None
    for number in range(400 if SOAK else 4):
        cut = chance.randrange(most // 2, most + 500) if number % 4 else chance.randrange(most - 150, most)
        with Proxy(server.port, cut) as proxy:
            try:
                write(server.url(port=proxy.port), table, number, replace=True, rows=rows)
                lost = False
            except ck.BadInput as error:
                assert "refuses" in str(error)
                lost = True
        found = find_number(server.url(), table, rows)
        assert found == number or (lost and found == expected), (cut, most)
        expected = found


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_failure_before_any_statement_leaves_a_whole_release(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, rows, table = request.getfixturevalue(kind).url(), 3, f"stopped_{random.Random(SOAK_SEED).randrange(10**9)}"
    engine = getattr(import_module(f"closeknit.io.databases.{kind}"), kind.capitalize())
    run, statements, last = engine.fetch, 0, 10**9

    def fetch(self: Any, sql: str, *values: str) -> Any:
        nonlocal statements
        statements += 1
        if statements > last:
            raise ConnectionError("the connection is lost")
        return run(self, sql, *values)

    write(url, table, 0, rows=rows)
    monkeypatch.setattr(engine, "fetch", fetch)
    write(url, table, 1, replace=True, rows=rows)
    expected, total = 1, statements
    for last in range(0 if SOAK else total - 5, total):
        statements = 0
        with pytest.raises(ck.BadInput, match="the connection is lost"):
            write(url, table, last + 2, replace=True, rows=rows)
        statements = -(10**9)
        found = find_number(url, table, rows)
        assert found in (expected, last + 2), (last, total)
        expected = found


def test_of_two_writers_of_one_table_one_wins(database: str) -> None:
    table = f"twice_{random.Random(SOAK_SEED).randrange(10**9)}"

    def attempt(number: int) -> int | str:
        try:
            write(database, table, number, rows=200)
        except ck.BadInput as error:
            return str(error)
        return number

    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(attempt, range(4)))
    winners = [number for number in ended if isinstance(number, int)]
    assert len(winners) == 1 and find_number(database, table, 200) == winners[0], ended
    refused = [reason for reason in ended if isinstance(reason, str)]
    assert database.startswith("duckdb") or all("exists already" in reason for reason in refused), refused

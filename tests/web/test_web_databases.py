"""The connection form of the first page: any database for the only user of `ui`, allowed ones on a server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

import closeknit as ck
from closeknit.cli.serve import check_database
from closeknit.core.columns import Columns
from closeknit.io.database import Database
from closeknit.web.live.stream_worker import run_stream
from web_runs import ANN, HERE, client_of, team

TABLE = Columns.of({"age": [30, 31, 40, 44], "disease": ["flu", "gout", "flu", "gout"]})

STREAM = {
    "schema": {"quasi": {"age": {"numeric": {"lo": 0, "hi": 120}}}, "sensitive": {"ill": "flat"}},
    "models": [],
    "stream": {"castle": {"k": 2, "delta": 6}},
}


@pytest.fixture
def clinic(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/clinic.db"
    Database(url, "patients").write(TABLE, "{}", {}, False)
    return Database(url).url


def test_the_page_reads_a_table_or_a_query(clinic: str, tmp_path: Path) -> None:
    with client_of(team(tmp_path / "home", databases=None)) as client:
        assert 'name="url" required' in client.get("/").text
        for asked in ({"table": "patients"}, {"query": "SELECT age FROM patients"}):
            answer = client.post("/tables/database", data={"url": clinic, **asked})
            assert answer.status_code == 303, answer.text
            assert client.get(answer.headers["location"]).status_code == 200
        found = client.get("/").text
        assert "patients.parquet" in found and "query.parquet" in found
        for asked, message in (
            ({"url": clinic, "table": "nothing"}, "there is no table &#39;nothing&#39;"),
            ({"url": clinic, "table": "nothing"}, f'value="{clinic}"'),
            ({"url": "postgresql://ann:S3cret@127.0.0.1:1/y", "table": "x"}, 'value="postgresql://ann@127.0.0.1:1/y"'),
            ({"url": clinic}, "a database needs a table or a query"),
            ({"url": "/etc/passwd", "table": "x"}, "this is not the address of a database"),
            ({"url": "postgresql://ann:S3cret/x@host/y", "table": "x"}, "cannot be read"),
        ):
            answer = client.post("/tables/database", data=asked)
            assert answer.status_code == 422 and message in answer.text and "S3cret" not in answer.text


def test_on_a_server_only_allowed_databases_are_reached(clinic: str, tmp_path: Path) -> None:
    asked = {"url": clinic, "table": "patients"}
    with client_of(team(tmp_path / "closed")) as client:
        assert "Read a table of a database" not in client.get("/").text
        assert "not among those that the operator allows" in client.post("/tables/database", data=asked).text
    with client_of(team(tmp_path / "open", databases=(clinic,), rows=3)) as client:
        assert f"<option>{clinic}</option>" in client.get("/").text
        other = client.post("/tables/database", data={**asked, "url": f"{clinic}2"})
        assert other.status_code == 422 and "not among those" in other.text
        assert "the table has more than 3 rows" in client.post("/tables/database", data=asked).text
    with client_of(team(tmp_path / "more", databases=(clinic,))) as client:
        assert client.post("/tables/database", data=asked).status_code == 303


def test_the_operator_gives_addresses_without_a_password() -> None:
    assert check_database("postgresql://ann:${P}@host/x") == "postgresql://ann:${P}@host/x"
    for address in ("postgresql://ann:secret@host/x", "people.csv"):
        with pytest.raises(ck.BadInput, match="users would see this address of a database, or it is none") as caught:
            check_database(address)
        assert "secret@" not in str(caught.value)


def test_rows_are_published_into_a_table_that_the_operator_allows(
    postgresql: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    psycopg = pytest.importorskip("psycopg")
    monkeypatch.setenv("CLINIC", postgresql.url())
    name, rows = f"http_{os.getpid()}", [{"age": 20 + 7 * i % 60, "ill": ("flu", "gout")[i % 2]} for i in range(40)]
    table = {**STREAM, "output": {"url": "${CLINIC}", "table": name}}
    app = team(tmp_path / "home", outputs=("${CLINIC}",))
    client = TestClient(app, HERE, raise_server_exceptions=False, follow_redirects=False, headers=ANN)

    def refuse(says: str, recipe: dict[str, Any], sink: str) -> None:
        files = {"recipe": ("recipe.yaml", yaml.safe_dump(recipe).encode())}
        answer = client.post("/api/streams", files=files, data={"sink": sink})
        assert answer.status_code == 400 and says in answer.text, answer.text

    refuse("names no table", STREAM, "table")
    refuse("names a table", table, "batches")
    refuse("may not publish into this database", {**STREAM, "output": {"url": "${OTHER}", "table": "x"}}, "table")
    refuse("may not publish into this database", {**STREAM, "output": {"url_file": "/etc/passwd", "table": "x"}}, "table")
    files = {"recipe": ("recipe.yaml", yaml.safe_dump(table).encode())}
    path = f"/api/streams/{client.post('/api/streams', files=files, data={'sink': 'table'}).json()['id']}"
    stream = app.state.streams.of("ann", path.rpartition("/")[2])
    assert client.get(f"{path}/rows").status_code == client.get(f"{path}/batches").status_code == 409
    with psycopg.connect(postgresql.url(), autocommit=True) as connection:
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        for first in range(0, 40, 10):
            answer = client.post(f"{path}/rows", params={"first": first}, json=rows[first : first + 10])
            assert answer.status_code == 202, answer.text
            turns = iter(range(2))
            run_stream(stream.folder, "table", 1000, 10**6, None, lambda turns=turns: next(turns, None) is None)
            connection.execute(end)
        refuse("exists already", table, "table")
        client.post(f"{path}/close")
        assert run_stream(stream.folder, "table", 1000, 10**6, None)
        ills = [ill for (ill,) in connection.execute(f"SELECT ill FROM {name}").fetchall()]
        assert sorted(ills) == sorted(row["ill"] for row in rows)
        (certificate,) = connection.execute(f"SELECT certificate FROM {name}_certificate").fetchone()
        assert json.loads(certificate)["rows"] == 40 and "Download" not in client.get(path.removeprefix("/api")).text

"""The connection form of the first page: any database for the only user of `ui`, allowed ones on a server."""

from __future__ import annotations

from pathlib import Path

import pytest

import closeknit as ck
from closeknit.cli.serve import check_database
from closeknit.core.columns import Columns
from closeknit.io.database import Database
from web_runs import client_of, team

TABLE = Columns.of({"age": [30, 31, 40, 44], "disease": ["flu", "gout", "flu", "gout"]})


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

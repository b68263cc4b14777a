"""Tables of a stream: no row is lost to a late commit or doubled by a lost answer; the certificate; what is refused."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.kinds import numeric
from closeknit.core.schema import Schema
from closeknit.io.database import Database
from closeknit.streams.arrival_order import ArrivalOrder
from closeknit.streams.postgresql_sink import PostgresqlSink
from closeknit.streams.postgresql_source import PostgresqlSource
from closeknit.streams.sinks import SinkDown
from database_servers import Server
from postgresql_runs import (
    CERTIFICATE,
    NAMES,
    PEOPLE,
    ROWS,
    SCHEMA,
    STREAM,
    add,
    refuse_password,
    started,
    wait_for_rows,
    written,
)
from stream_runs import write_recipe

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


# The order of commits --------------------------------------------------------------------------------------------------


def source_of(server: Server, table: str, **options: Any) -> PostgresqlSource:
    return PostgresqlSource(Database(server.url(), table), ArrivalOrder(SCHEMA, position="id"), **options)


def read_ids(source: PostgresqlSource) -> list[int]:
    block = source.read(0.0)
    return [] if block is None else [found.row["id"] for found in block.rows]


def test_a_row_that_is_committed_late_is_read(postgresql: Server, client: Any, table: str) -> None:
    source = source_of(postgresql, table)
    with psycopg.connect(postgresql.url()) as late:
        late.execute(f"INSERT INTO {table} (name, age, sex, ill) VALUES ('late', 30, 'f', 'flu')")
        add(client, table, ROWS[:2])
        assert read_ids(source) == read_ids(source) == [], "a smaller key may still appear"
        with psycopg.connect(postgresql.url()) as later:
            later.execute(f"INSERT INTO {table} (name, age, sex, ill) VALUES ('later', 30, 'f', 'flu')")
            late.commit()
            assert read_ids(source) == [1, 2, 3], "writers that begin later are not waited for"
            assert read_ids(source) == []
            later.rollback()
    add(client, table, ROWS[:1])
    assert read_ids(source) == [5]
    mark, again = source.mark(), source_of(postgresql, table, ends=True)
    again.seek(mark)
    assert again.read(0.0) is None
    for each in (source, again):
        each.close()


def test_a_page_ends_where_the_next_begins(postgresql: Server, client: Any, table: str) -> None:
    add(client, table, ROWS[:10])
    client.execute(f"DELETE FROM {table} WHERE id IN (3, 10)")
    source = source_of(postgresql, table, ends=True, count=4)
    assert [read_ids(source) for _ in range(4)] == [[1, 2, 4, 5], [6, 7, 8, 9], [], []] and source.read(0.0) is None
    source.close()


# Refusals --------------------------------------------------------------------------------------------------------------


def test_keys_by_which_rows_would_be_lost_are_refused(postgresql: Server, client: Any, table: str) -> None:
    def refuse(says: str, columns: str, kind: str = "TABLE", column: str = "id") -> None:
        name = f"bad_{os.getpid()}_{next(NAMES)}"
        body = f"AS SELECT * FROM {table}" if kind == "VIEW" else f"({columns}, name text, age integer, sex text, ill text)"
        client.execute(f"CREATE {kind} {name} {body}")
        with pytest.raises(BadInput, match=says):
            PostgresqlSource(Database(postgresql.url(), name), ArrivalOrder(SCHEMA, position=column))

    not_unique = "not a unique column of whole numbers without NULL"
    refuse(not_unique, "id bigint NOT NULL")
    refuse(not_unique, "id bigint UNIQUE")
    refuse(not_unique, "id text PRIMARY KEY")
    refuse("draws keys out of order", "id bigint GENERATED ALWAYS AS IDENTITY (CACHE 10) PRIMARY KEY")
    refuse("is not a table of this database", "", kind="VIEW")
    refuse("has no column 'nr'", "id bigint PRIMARY KEY", column="nr")
    refuse("column 'shoe': has no role", "id bigint PRIMARY KEY, shoe integer")
    with pytest.raises(BadInput, match="there is no table"):
        source_of(postgresql, "nothing")
    with pytest.raises(BadInput, match="a table has no order without a key"):
        PostgresqlSource(Database(postgresql.url(), table), ArrivalOrder(SCHEMA))
    with pytest.raises(BadInput, match="tables of PostgreSQL only"):
        PostgresqlSource(Database("sqlite:///clinic.db", table), ArrivalOrder(SCHEMA, position="id"))
    with pytest.raises(BadInput, match="a stream needs a table, not a query"):
        PostgresqlSource(Database(postgresql.url(), query="SELECT 1"), ArrivalOrder(SCHEMA, position="id"))


def batch(*ages: str) -> Columns:
    return Columns.of({"age": list(ages), "sex": ["*"] * len(ages), "ill": ["flu"] * len(ages)})


@pytest.fixture
def open_sink(postgresql: Server) -> Iterator[Callable[[str], PostgresqlSink]]:
    """Sinks that are closed at the end."""
    with ExitStack() as stack:
        yield lambda table: stack.enter_context(closing(PostgresqlSink(Database(postgresql.url(), table), SCHEMA)))


def test_other_writers_and_other_batches_are_refused(
    open_sink: Callable[[str], PostgresqlSink], client: Any, table: str
) -> None:
    out = f"{table}_out"
    sink = open_sink(out)
    begin = sink.mark()
    sink.write(1, batch("30", "31"))
    assert not sink.begun, "nothing is there before it is settled"
    sink.settle(lambda: CERTIFICATE, False)
    kept = sink.mark()
    sink.write(2, batch("40"))
    sink.settle(lambda: CERTIFICATE, False)

    def resume(mark: dict[str, Any]) -> PostgresqlSink:
        other = open_sink(out)
        other.seek(mark)
        return other

    other = resume(kept)
    other.write(2, batch("40"))
    other.write(3, batch("50"))
    other.settle(lambda: CERTIFICATE, False)
    assert [age for age, _, _ in written(client, out)] == ["30", "31", "40", "50"]
    sink.write(3, batch("50"))
    with pytest.raises(BadInput, match="another run of this one, writes to"):
        sink.settle(lambda: CERTIFICATE, False)
    changed = resume(begin)
    changed.write(1, batch("30", "32"))
    changed.write(2, batch("40"))
    with pytest.raises(BadInput, match="are not those that"):
        changed.write(3, batch("50"))
    assert [age for age, _, _ in written(client, out)] == ["30", "31", "40", "50"]
    for wrong, says in (
        ({**kept, "stream": "x"}, "another stream writes to"),
        ({**kept, "batch": 9}, "ends with batch 3"),
        ({"path": "rows.csv", "csv": True}, "the checkpoint writes to rows.csv as CSV"),
        ({**kept, "table": "else"}, "table else"),
    ):
        with pytest.raises(BadInput, match=says):
            resume(wrong)
    with pytest.raises(BadInput, match="was not written by a stream"):
        open_sink(table).empty()
    open_sink(out).empty()
    assert not written(client, out)
    client.execute(f"CREATE TABLE public_private.{out}_stream (a integer)")
    changed = open_sink(out)
    changed.write(1, batch("30"))
    with pytest.raises(BadInput, match="is not one of a stream"):
        changed.settle(lambda: CERTIFICATE, False)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("number", [1, 2])
def test_a_commit_whose_answer_is_lost_is_compared_and_not_repeated(
    open_sink: Callable[[str], PostgresqlSink], client: Any, table: str, committed: bool, number: int
) -> None:
    sink = open_sink(f"{table}_out")
    for each in range(1, number):
        sink.write(each, batch("20"))
        sink.settle(lambda: CERTIFICATE, False)
    server = sink._server

    def commit() -> None:
        if committed:
            type(server).commit(server)
        (pid,) = server.fetch("SELECT pg_backend_pid()")[0]
        client.execute("SELECT pg_terminate_backend(%s)", (pid,))
        server.fetch("SELECT pg_sleep(5)")

    sink.write(number, batch("30", "31"))
    server.commit = commit
    with pytest.raises(SinkDown, match="the connection is lost"):
        sink.settle(lambda: CERTIFICATE, False)
    sink.settle(lambda: CERTIFICATE, False)
    assert [age for age, _, _ in written(client, f"{table}_out")] == ["20"] * (number - 1) + ["30", "31"]
    sink.write(number + 1, batch("40"))
    sink.settle(lambda: CERTIFICATE, False)
    assert len(written(client, f"{table}_out")) == number + 2


def test_the_table_has_its_certificate_at_every_instant(
    postgresql: Server, client: Any, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLINIC", postgresql.url())
    run = started(postgresql.url(), tmp_path, table)

    def audit(rows: int) -> None:
        """As a recipient does, who may read the two public tables only."""
        wait_for_rows(client, f"{table}_out", rows, run)
        result = CliRunner().invoke(app, ["audit", "${CLINIC}", "--table", f"{table}_out"])
        assert result.exit_code == 0 and "k-anonymity, k = 4" in result.output, result.output
        found = json.loads(client.execute(f"SELECT certificate FROM {table}_out_certificate").fetchone()[0])
        assert found["rows"] == len(written(client, f"{table}_out"))

    for first in range(0, 600, 300):
        add(client, table, ROWS[first : first + 300])
        audit(first + 250)
    run.send(signal.SIGTERM)
    assert run.wait() == 0, run.said
    add(client, table, ROWS[600:602])
    run = started(postgresql.url(), tmp_path, table, "--flush")
    assert run.wait() == 0, run.said
    audit(600)
    client.execute(f"DELETE FROM {table}_out WHERE ctid = (SELECT min(ctid) FROM {table}_out)")
    assert CliRunner().invoke(app, ["audit", "${CLINIC}", "--table", f"{table}_out"]).exit_code == 1


def test_the_command_refuses_in_one_sentence(
    postgresql: Server, client: Any, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLINIC", postgresql.url())
    recipe = write_recipe(tmp_path, stream=STREAM)

    def refuse(says: str, *words: object) -> None:
        result = CliRunner().invoke(app, ["stream", str(recipe), *map(str, words)])
        assert result.exit_code == 2 and says in result.stderr.splitlines()[-1], result.output
        refuse_password(result.output)

    home = ["--checkpoint", tmp_path / "ck"]
    refuse("noted in a checkpoint", "-i", "${CLINIC}", "--input-table", table)
    refuse("name it with --input-table", "-i", "${CLINIC}", *home)
    refuse("is a table of a database", "-i", "in.csv", "--input-table", table)
    refuse("--flush is for Spark and databases", "-i", "in.csv", "--flush")
    refuse("cannot be sent to a database as CSV", "-i", "in.csv", "-o", "${CLINIC}", "--output-format", "csv", *home)
    refuse(
        f"the table '{table}' is not empty",
        "-i",
        "${CLINIC}",
        "--input-table",
        table,
        "-o",
        "${CLINIC}",
        "--output-table",
        table,
        *home,
    )
    write_recipe(tmp_path, stream=STREAM, output={"url": "${CLINIC}", "table": "x", "shoe": 1})
    refuse("shoe", "-i", "in.csv")
    write_recipe(tmp_path, stream=None, models=[{"k_anonymity": {"k": 2}}], output={"url": "${CLINIC}", "table": "x"})
    refuse("name it with --to instead", "-i", "in.csv")


def test_numbers_are_numbers_whatever_the_batch(postgresql: Server, client: Any, table: str) -> None:
    schema, cells = Schema(quasi={"age": numeric(0, 100)}, sensitive={"cost": numeric()}), [1, 2.5, None]
    sink = PostgresqlSink(Database(postgresql.url(), f"{table}_out"), schema)
    for number, cell in enumerate(cells, 1):
        sink.write(number, Columns.of({"age": ["30"], "cost": [cell]}))
    sink.settle(lambda: CERTIFICATE, False)
    assert [cost for _, cost in written(client, f"{table}_out")] == cells
    with pytest.raises(BadInput, match="too large to be exact"):
        sink.write(4, Columns.of({"age": ["30"], "cost": [2**60]}))
    sink.close()

"""Tables of databases: what is read, what is written, and that a release comes back as it was certified."""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

import closeknit as ck
from closeknit.api.anonymizing import run
from closeknit.api.recipe import Recipe
from closeknit.core.columns import Column, Columns
from closeknit.datasets import hospital, hospital_schema
from closeknit.io.canonical import content_hash
from closeknit.io.database import Database
from closeknit.io.databases.batches_to_columns import Coder, code_batches, fetch_batches
from closeknit.io.databases.table_name import TableName
from closeknit.io.databases.transactional import same_rows
from database_servers import Server, execute

AWKWARD = {
    "select": ["007", "1.50", "1.5", "-0", "+3", " 7 ", "1e3"],
    'Sp ace "q" `b` %s': ["O'Brien", 'say "hi"', "back\\slash", "tab\there", "line\nbreak", "\\N", "NULL"],
    "Größe": ["ü", "日本語", "🙂", "e\u0301", "'; DROP TABLE x; --", "%s %(a)s ${HOME}", "x" * 100_000],
    "whole": [0, -1, 2**53 + 1, 2**63 - 1, -(2**63), 7, None],
    "number": [0.1, 1e15, 1e16, 1e-7, -2.5, 1 / 3, None],
    "flag": [True, False, None, True, False, True, True],
    "none": [None, "a", None, "b", None, "c", None],
}
WRITTEN = '{"content_sha256": ""}'  # what a certificate has in any case


def fresh(name: str = "release") -> str:
    return f"{name}_{secrets.token_hex(4)}"


def write(url: str, table: str, columns: Columns, replace: bool = False, certificate: str = WRITTEN, **options: Any) -> None:
    private = {"recipe.yaml": "seed: 1\n", "classes.csv": Columns.of({"class": [0, None, 1]})}
    Database(url, table, **options).write(columns, certificate, private, replace)


def add_space(url: str) -> str:
    return "concat(certificate, ' ')" if url.startswith("mariadb") else "certificate || ' '"


def awkward() -> Columns:
    days = Column(
        np.array(["1900-02-28", "2024-02-29"], dtype="datetime64[D]"), np.array([0, 1, -1, 1, 0, 1, 1], dtype=np.int32)
    )
    return Columns({**Columns.of(AWKWARD).columns, "day": days}, 7)


def test_awkward_names_and_cells_come_back_as_they_were(database: str) -> None:
    table, columns = f'"Sel ect""{secrets.token_hex(4)}"', awkward()
    write(database, table, columns)
    found = Database(database, table).read()
    assert list(found) == list(columns) and same_rows(found, columns)
    assert content_hash(found) == content_hash(columns)  # the order of insertion, from an empty table of few rows
    assert Database(database, table).read_certificate() == WRITTEN
    part = Database(database, table).read(["day", "none"])
    assert list(part) == ["day", "none"] and part["none"].cells()[:2] == [None, "a"]


def test_only_a_release_is_replaced_and_only_on_request(database: str) -> None:
    table, columns = fresh(), Columns.of({"a": [1, 2]})
    write(database, table, columns)
    with pytest.raises(ck.BadInput, match=f"the table '{table}' exists already; choose another name, or replace it"):
        write(database, table, Columns.of({"a": [3]}))
    assert Database(database, table).read()["a"].cells() == [1, 2]
    write(database, table, Columns.of({"b": ["x"]}), replace=True, certificate=f"{WRITTEN} ")
    assert list(Database(database, table).read()) == ["b"]
    assert Database(database, table).read_certificate() == f"{WRITTEN} "
    foreign = fresh("foreign")
    execute(database, f"CREATE TABLE {foreign} (a INTEGER)", f"INSERT INTO {foreign} VALUES (7)")
    with pytest.raises(ck.BadInput, match="was not written by closeknit; choose another name"):
        write(database, foreign, columns, replace=True)
    assert execute(database, f"SELECT a FROM {foreign}") == [(7,)]


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ("certificate TEXT", ["'No. 7'"]),
        ("certificate TEXT", ["NULL"]),
        ("certificate TEXT", []),
        ("certificate TEXT", [f"'{WRITTEN}'"] * 2),
        ("certificate TEXT, place TEXT", [f"'{WRITTEN}', 'Bonn'"]),
        ("number TEXT", [f"'{WRITTEN}'"]),
    ],
)
def test_a_table_that_is_only_named_like_a_certificate_is_kept(
    columns: str, rows: list[str], release: bool, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/births.db"
    execute(url, f"CREATE TABLE birth_certificate ({columns})")
    execute(url, *(f"INSERT INTO birth_certificate VALUES ({row})" for row in rows))
    if release:
        execute(url, "CREATE TABLE birth (name TEXT)")
    with pytest.raises(ck.BadInput, match="was not written by closeknit; choose another name"):
        Database(url, "birth").check_target(replace=True)
    with pytest.raises(ck.BadInput, match="was not written by closeknit; choose another name"):
        write(url, "birth", Columns.of({"a": [1]}), replace=True)
    assert len(execute(url, "SELECT * FROM birth_certificate")) == len(rows)
    assert len(execute(url, "SELECT * FROM sqlite_master")) == 1 + release


def test_a_release_of_sqlite_is_in_no_schema_that_ends_with_the_connection(tmp_path: Path) -> None:
    url, columns = f"sqlite:///{tmp_path}/clinic.db", Columns.of({"a": [1]})
    for table in ("temp.release", "TEMP.release", "nowhere.release"):
        with pytest.raises(ck.BadInput, match=r"SQLite keeps no table in the schema .*; write 'release' without a schema"):
            Database(url, table).check_target(replace=False)
        with pytest.raises(ck.BadInput, match="SQLite keeps no table in the schema"):
            write(url, table, columns)
    assert not list(tmp_path.iterdir())
    write(url, "main.release", columns)
    assert Database(url, "release").read().rows == 1


def shuffle(url: str, table: str) -> None:
    execute(url, f"CREATE TABLE {table}_x AS SELECT * FROM {table} ORDER BY stay DESC, age, disease")
    execute(url, f"DROP TABLE {table}", f"ALTER TABLE {table}_x RENAME TO {table}")


def test_a_release_is_audited_from_a_table_whose_rows_are_in_any_order(database: str) -> None:
    table = fresh()
    release = ck.anonymize(hospital(60), hospital_schema(), [ck.KAnonymity(5)], "mondrian", seed=2**70)
    release.to_sql(database, table=table)
    shuffle(database, table)
    found = ck.audit(ck.sql(database, table=table))
    assert found.ok and found.rows == 60, found.findings
    execute(database, f"UPDATE {table}_certificate SET certificate = {add_space(database)}")
    execute(database, f"UPDATE {table} SET disease = 'influenza' WHERE stay > 5")
    findings = " ".join(ck.audit(ck.sql(database, table=table)).findings)
    assert "the stored certificate is not written as closeknit writes it" in findings and "content hash" in findings


def test_forms_that_separate_columns_are_sorted_group_by_group(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/clinic.db"
    groups = [["charge", "zip", "age"], ["disease", "sex"], ["job", "admission", "stay"]]
    for table, form in (("bucketized", "bucketized"), ("sliced", ck.sliced(groups))):
        release = ck.anonymize(hospital(100), hospital_schema(), [ck.LDiversity("disease", 3)], form=form, seed=2**70)
        release.to_sql(url, table=table)
        shuffle(url, table)
        assert ck.audit(ck.sql(url, table=table)).ok


def test_names_that_are_wrong_are_refused_with_the_names_there_are(database: str) -> None:
    write(database, "patients_of_2024", Columns.of({"age": [1, 2]}), replace=True)
    for source, message in (
        (Database(database, "Patients_of_2025"), "there is no table 'Patients_of_2025'; did you mean 'patients_of_2024"),
        (Database(database, "nowhere.patients"), "there is no table 'nowhere.patients'"),
        (Database(database, query="SELECT nothing FROM patients_of_2024"), "the database refuses .*nothing"),
        (Database(database, query="DELETE FROM patients_of_2024"), "the database refuses"),
        (Database(database), "a database needs a table or a query"),
        (Database(database, "a", "SELECT 1"), "a database needs a table or a query"),
        (Database(database, "a.b.c"), "is not the name of a table"),
    ):
        with pytest.raises(ck.BadInput, match=message):
            source.read()
    with pytest.raises(ck.BadInput, match="did you mean 'age'"):
        Database(database, "patients_of_2024").read(["Age"])
    with pytest.raises(ck.BadInput, match="there is no certificate with this table"):
        Database(database, query="SELECT 1 AS a").read_certificate()
    with pytest.raises(ck.BadInput, match="there is no table 'Patients_of_2025'; did you mean 'patients_of_2024"):
        Database(database, "Patients_of_2025").read_certificate()
    with pytest.raises(ck.BadInput, match="a release needs a table"):
        Database(database, query="SELECT 1 AS a").write(Columns.of({"a": [1]}), "{}", {}, False)
    assert Database(database, "patients_of_2024").read().rows == 2


def test_a_query_with_a_comment_and_a_semicolon_is_read(database: str) -> None:
    write(database, "few", Columns.of({"age": [1, 2, 3]}), replace=True)
    assert Database(database, query="SELECT age + 1 AS older FROM few WHERE age > 1; ").read()["older"].cells() == [3, 4]
    assert Database(database, query="SELECT age FROM few -- all of them").read().rows == 3
    with pytest.raises(ck.BadInput, match="the table has no rows"):
        Database(database, query="SELECT age FROM few WHERE age > 7").read()


TYPES: dict[str, Sequence[tuple[str, object]]] = {
    "postgresql": (
        ("7::smallint", 7),
        ("12345678901::bigint", 12345678901),
        ("1.50::numeric(10,2)", "1.50"),
        ("12345678901234567890.123456789::numeric", "12345678901234567890.123456789"),
        ("0.1::real", 0.1),
        ("1e15::float8", 1e15),
        ("'NaN'::float8", None),
        ("true", True),
        ("date '2024-02-29'", "2024-02-29"),
        ("timestamp '2024-02-29 00:00'", "2024-02-29"),
        ("timestamp '2024-02-29 01:02:03.5'", "2024-02-29T01:02:03.5"),
        ("timestamptz '2024-02-29 01:02:03+05'", "2024-02-28T20:02:03"),
        ("'ab'::char(4)", "ab"),
        ("''::text", None),
        ("'7e3ab8c1-0000-4000-8000-000000000000'::uuid", "7e3ab8c1-0000-4000-8000-000000000000"),
        ("'{\"a\": 1}'::jsonb", '{"a": 1}'),
        ("time '10:00'", "10:00:00"),
        ("'x'::text", "x"),
        ("NULL::int", None),
        ("ARRAY[1, 2]", "{1,2}"),
    ),
    "duckdb": (
        ("7::tinyint", 7),
        ("1.50::decimal(10,2)", "1.50"),
        ("170141183460469231731687303715884105727::hugeint", "170141183460469231731687303715884105727"),
        ("0.1::float", 0.1),
        ("true", True),
        ("date '2024-02-29'", "2024-02-29"),
        ("timestamptz '2024-02-29 01:02:03+05'", "2024-02-28T20:02:03"),
        ("'a'::enum('a', 'b')", "a"),
        ("interval 1 day", "1 day"),
        ("time '10:00'", "10:00:00"),
        ("NULL", None),
    ),
    "mariadb": (
        ("CAST(7 AS SIGNED)", 7),
        ("CAST(1.50 AS DECIMAL(10, 2))", "1.50"),
        ("CAST(0.1 AS DOUBLE)", 0.1),
        ("CAST('2024-02-29' AS DATE)", "2024-02-29"),
        ("CAST('2024-02-29 01:02:03' AS DATETIME)", "2024-02-29T01:02:03"),
        ("CAST('10:00' AS TIME)", "10:00:00"),
        ("''", None),
        ("'x'", "x"),
        ("NULL", None),
    ),
    "sqlite": (("7", 7), ("0.1", 0.1), ("'007'", "007"), ("''", None), ("NULL", None), ("date('2024-02-29')", "2024-02-29")),
}


@pytest.mark.parametrize("database", list(TYPES), indirect=True)
def test_each_type_is_read_as_what_it_means(database: str) -> None:
    cases = TYPES[database.partition(":")[0]]
    execute(database, "SELECT 1")  # a file that is not there would not be created
    expressions = ", ".join(f"{expression} AS c{i}" for i, (expression, _) in enumerate(cases))
    found = Database(database, query=f"SELECT {expressions}").read()
    for i, (expression, value) in enumerate(cases):
        cell = found[f"c{i}"].cells()[0]
        assert (str(cell) if isinstance(value, str) else cell) == value, expression


@pytest.mark.parametrize("database", list(TYPES), indirect=True)
def test_bytes_are_refused_with_the_column(database: str) -> None:
    execute(database, "SELECT 1")
    kind = database.partition(":")[0]
    cell = {"postgresql": r"'\x00'::bytea", "duckdb": "'a'::blob", "mariadb": "CAST('a' AS BINARY)", "sqlite": "x'00'"}[kind]
    with pytest.raises(ck.BadInput, match="column 'scan': cells of bytes are not supported; leave the column out"):
        Database(database, query=f"SELECT {cell} AS scan").read()


def test_infinite_dates_are_refused(postgresql: Server) -> None:
    for cell in ("'infinity'::date", "'-infinity'::date", "'infinity'::timestamp", "'0044-03-15 BC'::date"):
        with pytest.raises(ck.BadInput, match="column 'day': a date is infinite, or not in the years 1 to 9999"):
            Database(postgresql.url(), query=f"SELECT {cell} AS day").read()


def test_spark_is_not_asked_to_read_a_database(tmp_path: Path) -> None:
    with pytest.raises(ck.BadInput, match="Spark does not read this source; leave the engine out"):
        ck.anonymize(ck.sql(f"sqlite:///{tmp_path}/x.db", "t"), hospital_schema(), [ck.KAnonymity(2)], engine="spark")


def test_cells_of_several_kinds_in_one_column_of_sqlite_are_text() -> None:
    cells = "(NULL, 1), (NULL, 2), (1, 3), (2, 'x'), ('007', NULL), (2.5, 4)"
    found = code_batches(fetch_batches(sqlite3.connect(":memory:").execute(f"VALUES {cells}"), "t", most=2), ["a", "b"], "t")
    assert found["a"].cells() == [None, None, "1", "2", "007", "2.5"] and found["b"].cells() == ["1", "2", "3", "x", None, "4"]


def test_names_that_a_server_would_cut_are_refused(postgresql: Server, mariadb: Server) -> None:
    for url, most in ((postgresql.url(), 63), (mariadb.url(), 64)):
        for table, name in (("t" * (most - 10), "a"), (fresh(), "c" * (most + 1))):
            with pytest.raises(ck.BadInput, match=f"more than {most} bytes"):
                write(url, table, Columns.of({name: [1]}))


def test_a_server_that_changes_cells_is_noticed_and_nothing_is_kept(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = fresh()
    monkeypatch.setattr("closeknit.io.databases.transactional.same_rows", lambda one, other: one.rows == 1)
    with pytest.raises(ck.BadInput, match="returns other cells than were written"):
        write(database, table, Columns.of({"a": [1, 2]}))
    monkeypatch.undo()
    with pytest.raises(ck.BadInput, match="there is no table"):
        Database(database, table).read()
    write(database, table, Columns.of({"a": [1, 2]}))


def test_private_tables_are_in_a_schema_that_no_one_else_may_use(postgresql: Server, mariadb: Server) -> None:
    url, schema = postgresql.url(), fresh("clinic")
    write(url, f"{schema}.release", Columns.of({"a": [1]}))
    assert execute(url, f"SELECT has_schema_privilege('public', '{schema}_private', 'USAGE')") == [(False,)]
    assert Database(url, f"{schema}_private.release_recipe").read()["recipe"].cells() == ["seed: 1\n"]
    assert Database(url, f"{schema}_private.release_classes").read()["class"].cells() == [0, None, 1]
    execute(url, f"GRANT USAGE ON SCHEMA {schema}_private TO PUBLIC")
    with pytest.raises(ck.BadInput, match=f"everyone may use the private schema '{schema}_private'; run REVOKE ALL"):
        write(url, f"{schema}.release", Columns.of({"a": [1]}), replace=True)
    for server in (url, mariadb.url()):
        with pytest.raises(ck.BadInput, match="is that of the release, which is public"):
            write(server, f"{schema}.release", Columns.of({"a": [1]}), private_schema=schema)
    write(mariadb.url(), f"{schema}.release", Columns.of({"a": [1]}), private_schema=f"{schema}_mine")
    assert Database(mariadb.url(), f"{schema}_mine.release_recipe").read().rows == 1


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_private_files_of_a_database_file_are_in_a_private_folder(kind: str, tmp_path: Path) -> None:
    url = f"{kind}:///{tmp_path}/clinic.db"
    for certificate in (WRITTEN, f"{WRITTEN} "):
        write(url, "release", Columns.of({"a": [1]}), replace=True, certificate=certificate)
    (folder,) = (tmp_path / "clinic.db.private").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and sorted(os.listdir(folder)) == ["classes.csv", "recipe.yaml"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    write(url, "release", Columns.of({"a": [1]}), replace=True, private_schema=str(tmp_path / "mine"))
    assert len(list((tmp_path / "mine").iterdir())) == 1


def test_a_recipe_names_a_table_relative_to_itself(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write(f"duckdb:///{tmp_path}/data/clinic.db", "patients", hospital(60))
    recipe = {"schema": hospital_schema().forms(), "models": [{"k_anonymity": {"k": 5}}], "seed": 2**70}
    for data in ({"url": "duckdb:///data/clinic.db", "table": "patients"}, {"url_file": "where", "table": "patients"}):
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"data": data, **recipe}), encoding="utf-8")
        (tmp_path / "where").write_text(f"duckdb:///{tmp_path}/data/clinic.db\n", encoding="utf-8")
        (tmp_path / "where").chmod(0o600)
        release = run(Recipe.read(tmp_path / "recipe.yaml"))
        assert release.certificate.rows == 60 and release._recipe is not None
        again = run(Recipe.of(release._recipe))
        assert again.certificate.content_sha256 == release.certificate.content_sha256


def test_memory_holds_each_distinct_value_about_once() -> None:
    coder = Coder("a", "here", spare=100)
    for i in range(50):
        coder.add(pa.array([f"value {(i * 7 + j) % 60}" for j in range(50)]))
        assert coder.held <= 2 * coder.distinct + 100 + 50 and len(coder.chunks) <= 6
    assert len(coder.finish().dictionary) == 60


def test_times_of_day_in_a_later_batch_count_for_the_column() -> None:
    days = [pa.array([0, 86_400_000_000], pa.timestamp("us")), pa.array([1_000_000, None], pa.timestamp("us"))]
    found = code_batches((pa.record_batch({"t": cells}) for cells in days), ["t"], "here")
    assert found["t"].cells() == ["1970-01-01T00:00:00", "1970-01-02T00:00:00", "1970-01-01T00:00:01", None]


def test_a_table_name_is_read_as_it_is_written() -> None:
    for text in ("a", "a.b", '"a.b"', '"x y"."a""b"', "Schema.Table"):
        assert str(TableName.of(text)) == text
    for text in ("", ".", "a.", ".a", "a.b.c", '"a', 'a"b"', '""'):
        with pytest.raises(ck.BadInput, match="is not the name of a table"):
            TableName.of(text)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([1, 2, None], [None, 2, 1], True),
        ([1, 2, 2], [1, 1, 2], False),
        ([1, 2], [1, 3], False),
        ([None, None], [None, None], True),
        (["a", "b"], ["a", "a"], False),
        (["1", "2"], [2, 1], True),
        ([1.0, 2.5], ["1", "2.5"], True),
        (["a", None], ["a", "b"], False),
    ],
)
def test_rows_are_compared_in_any_order(one: list[object], other: list[object], same: bool) -> None:
    assert same_rows(Columns.of({"a": one}), Columns.of({"a": other})) is same
    assert same_rows(Columns.of({"a": one, "b": one}), Columns.of({"a": other, "b": other})) is same
    assert not same_rows(Columns.of({"a": [1, 2], "b": [3, 4]}), Columns.of({"a": [1, 2], "b": [4, 3]}))


def test_other_databases_are_read_through_sqlalchemy_and_not_written(tmp_path: Path) -> None:
    write(f"sqlite:///{tmp_path}/clinic.db", "patients", Columns.of({"a b": [1, None], "c": ["1.50", "x"]}))
    from closeknit.io.databases.address import Link
    from closeknit.io.databases.alchemy import Alchemy

    with Alchemy(Link.of(f"sqlite:///{tmp_path}/clinic.db"), "here", writes=False) as connection:
        found = connection.read(TableName("patients"), None, "here")
        assert found["a b"].cells() == [1, None] and found["c"].cells() == ["1.50", "x"]
        with pytest.raises(ck.BadInput, match="there is no table 'x'; choose one of: patients, patients_certificate"):
            connection.read(TableName("x"), None, "here")
        with pytest.raises(ck.BadInput, match="cannot be written to this database; save it in a folder"):
            connection.write({}, [], "here")
    with pytest.raises(ck.BadInput, match="there is no driver for mssql://; install the driver"):
        Database("mssql://host/clinic", "patients").read()
    with pytest.raises(ck.BadInput, match=r"there is no driver for nonsense://"):
        Database("nonsense+driver://host/clinic", "patients").read()


def test_a_table_is_written_batch_by_batch(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("closeknit.io.databases.connection.ROWS", 2)
    table = Columns.of({"age": [30, None, 31, 30, 33], "sex": ["f", "m", None, "f", "x"]})
    with Database(database)._connect(writes=True) as connection:
        assert [batch.num_rows for batch in connection.arrange(table)] == [2, 2, 1]
    write(database, "batched", table, replace=True)
    assert sorted(map(str, Database(database, "batched").read()["sex"].cells())) == ["None", "f", "f", "m", "x"]

"""Tables of others in the private schema, and queries that are more than a query."""

from __future__ import annotations

import secrets

import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.io.database import Database
from database_servers import Server, execute


def fresh() -> str:
    return f"release_{secrets.token_hex(4)}"


def write(url: str, table: str, replace: bool = False) -> None:
    private = {"recipe.yaml": "seed: 1\n", "classes.csv": Columns.of({"class": [0, 1]})}
    Database(url, table).write(Columns.of({"a": [1, 2]}), '{"content_sha256": ""}', private, replace)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
@pytest.mark.parametrize("released", [True, False])
def test_a_private_table_of_another_owner_is_kept(kind: str, released: bool, request: pytest.FixtureRequest) -> None:
    url, table = request.getfixturevalue(kind).url(), fresh()
    write(url, fresh())  # creates the private schema
    private = f"{'public_private' if kind == 'postgresql' else 'closeknit_private'}.{table}_recipe"
    if released:
        write(url, table)
        execute(url, f"DROP TABLE {private}")
    execute(url, f"CREATE TABLE {private} (note INT)", f"INSERT INTO {private} VALUES (7)")
    with pytest.raises(ck.BadInput, match=f"the table '{private}' does not belong to a release '{table}'; move or rename it"):
        write(url, table, replace=True)
    assert Database(url, private).read()["note"].cells() == [7]


def test_a_query_for_mariadb_stays_in_its_parentheses(mariadb: Server) -> None:
    for query in (
        "SELECT 1 a) x INTO OUTFILE 'leak.txt' -- ",
        "SELECT 1 a) x INTO @leak # ",
        "SELECT 1 a) x UNION SELECT 2 FROM (SELECT 3",
        "SELECT 1 a INTO @leak",
        "DROP TABLE patients",
        "SELECT 1 a; SELECT 2",
    ):
        with pytest.raises(ck.BadInput, match=r"the database refuses \(.*\(1064|INTO"):
            Database(mariadb.url(), query=query).read()
    assert Database(mariadb.url(), query="SELECT ')' a, '%s' b /* ) */ # )").read().rows == 1

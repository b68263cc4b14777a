"""MariaDB and MySQL, which commit each table that they create: tables are filled under other names, then renamed at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from typing import Any, ClassVar

import pymysql
from pymysql.cursors import SSCursor

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, suggest_name
from closeknit.io.databases.address import Link
from closeknit.io.databases.batches_to_columns import fetch_batches
from closeknit.io.databases.connection import Batches, Connection
from closeknit.io.databases.table_name import TableName
from closeknit.io.databases.transactional import compare_written

PATIENCE = 365 * 24 * 3600  # seconds to wait for another writer of the same table
WHOLE = ("connect_timeout", "read_timeout", "write_timeout", "ssl_verify_identity")  # options that are numbers
SECURE = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_key_password", "ssl_verify_cert")
OPTIONS = (*WHOLE, *SECURE, "charset", "password", "unix_socket", "user")
KNOWN = "information_schema.tables WHERE table_schema"


class Mariadb(Connection):
    """A database of MariaDB or MySQL."""

    name = "MariaDB"
    types: ClassVar = {"i": "BIGINT", "f": "DOUBLE", "M": "DATE"}
    text = "LONGTEXT"
    longest = 64

    def __init__(self, link: Link, place: str, writes: bool) -> None:
        self.place, self.key = place, ""
        refuse_options(link, place)
        options = {name: int(value) if name in WHOLE and value.isdecimal() else value for name, value in link.options.items()}
        password = link.password if link.password is not None else os.environ.get("MYSQL_PWD", "")
        named = {"user": link.user, "password": password, "host": link.host or "localhost", "port": link.port or 3306}
        options = {"charset": "utf8mb4", **{key: v for key, v in named.items() if v}, **options}
        self.connection = pymysql.connect(database=link.path or None, autocommit=writes, **options)
        self.fetch("SET time_zone = '+00:00'")
        if writes:
            self.fetch("SET sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')")
        else:
            self.fetch("START TRANSACTION READ ONLY")

    def close(self) -> None:
        with suppress(pymysql.Error):  # the connection was lost
            self.connection.close()

    def quote(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def fetch(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def describe(self, rows: str) -> dict[str, str]:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {rows} WHERE 1 = 0")
            return {column[0]: self.quote(column[0]) for column in cursor.description or ()}

    def check_query(self, query: str) -> None:
        """Refuse a query that ends the parentheses around it, as `SELECT 1) x INTO OUTFILE ...` does.

        The server parses it alone: a whole statement has no parenthesis too many, and in parentheses only a `SELECT` is one.
        """
        self.fetch("SET @closeknit_query = %s", query)
        self.fetch("PREPARE closeknit_query FROM @closeknit_query")
        self.fetch("DEALLOCATE PREPARE closeknit_query")

    def batches(self, select: str) -> Batches:
        with closing(self.connection.cursor(SSCursor)) as cursor:
            cursor.execute(select)
            yield from fetch_batches(cursor, self.place)

    def find(self, table: TableName) -> bool:
        schema, values = ("DATABASE()", []) if table.schema is None else ("%s", [table.schema])
        return bool(self.fetch(f"SELECT 1 FROM {KNOWN} = {schema} AND table_name = %s", *values, table.table))

    def list_tables(self) -> list[str]:
        return [name for (name,) in self.fetch(f"SELECT table_name FROM {KNOWN} = DATABASE() ORDER BY 1")]

    def place_private(self, table: TableName, schema: str | None) -> TableName | None:
        public = table.schema or self.fetch("SELECT DATABASE()")[0][0]
        if public is None:
            raise BadInput("no database is named", file=self.place, right="name it in the URL, or write database.table")
        private = schema or f"{public}_private"
        if private == public:
            right = "name another one for recipe and classes"
            raise BadInput(f"the database '{private}' is that of the release, which is public", file=self.place, right=right)
        self.key = sha256(f"{public}.{table.table}".encode()).hexdigest()[:16]
        if self.fetch(f"SELECT GET_LOCK(%s, {PATIENCE})", f"closeknit {self.key}") != [(1,)]:
            raise BadInput("another process writes this table", file=self.place, right="wait for it, then try again")
        for name in (public, private):
            if not self.fetch("SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", name):
                self.fetch(f"CREATE DATABASE {self.quote(name)} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        return TableName(table.table, private)

    def write(self, tables: Mapping[TableName, Columns], replaced: Sequence[TableName], place: str) -> None:
        new = {table: TableName(f"closeknit_{self.key}_new_{i}", table.schema) for i, table in enumerate(tables)}
        old = {table: TableName(f"closeknit_{self.key}_old_{i}", table.schema) for i, table in enumerate(replaced)}
        schemas = {table.schema for table in tables}
        of_killed = [TableName(f"closeknit_{self.key}_old_{i}", schema) for i in range(len(tables)) for schema in schemas]
        self._drop([*new.values(), *of_killed])
        try:
            for table, columns in tables.items():
                self.fetch(f"CREATE TABLE {self.render(new[table])} ({self.declare(columns)}) CHARACTER SET utf8mb4")
                self._insert(new[table], columns)
                compare_written(self, new[table], columns, place)
            moves = [*old.items(), *((new[table], table) for table in tables)]
            self.fetch("RENAME TABLE " + ", ".join(f"{self.render(a)} TO {self.render(b)}" for a, b in moves))
        except BaseException:
            with suppress(pymysql.Error):
                self._drop(new.values())
            raise
        self._drop(old.values())

    def _drop(self, tables: Iterable[TableName]) -> None:
        for table in tables:
            self.fetch(f"DROP TABLE IF EXISTS {self.render(table)}")

    def _insert(self, table: TableName, columns: Columns) -> None:
        marks = ", ".join(["%s"] * len(columns))
        self.connection.autocommit(False)
        with self.connection.cursor() as cursor:
            for rows in self.rows_of(columns):
                cursor.executemany(f"INSERT INTO {self.render(table).replace('%', '%%')} VALUES ({marks})", rows)
        self.connection.commit()
        self.connection.autocommit(True)


def refuse_options(link: Link, place: str) -> None:
    """Refuse options of the URL with which the driver would read other files, send them or run statements.

    Args:
        link: where the database is.
        place: where it is, as messages show it.

    >>> refuse_options(Link.of("mariadb://host/clinic?init_command=x"), "mariadb://host/clinic")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: mariadb://host/clinic: the option 'init_command' of the URL is not allowed; ...
    """
    for name in link.options:
        if name not in OPTIONS:
            raise BadInput(f"the option '{name}' of the URL is not allowed", file=place, right=suggest_name(name, OPTIONS))
    if link.options.get("charset", "utf8mb4") != "utf8mb4":
        raise BadInput("the option 'charset' of the URL is not utf8mb4", file=place, right="leave it out")

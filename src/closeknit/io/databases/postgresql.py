"""PostgreSQL through ADBC: rows in and out as Arrow, by COPY in binary."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from adbc_driver_postgresql import StatementOptions, dbapi

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.databases.address import Link
from closeknit.io.databases.batches_to_columns import BINARY, NO_BYTES
from closeknit.io.databases.connection import Batches
from closeknit.io.databases.table_name import TableName
from closeknit.io.databases.transactional import Transactional
from closeknit.io.names import check_names

PLAIN = ("int2", "int4", "int8", "float4", "float8", "bool", "date", "timestamp", "timestamptz", "text", "varchar", "name")
BATCH_BYTES = 4_000_000
TYPE = b"POSTGRESQL:type"  # of a column, in the metadata that the driver adds


class Postgresql(Transactional):
    """A database of PostgreSQL."""

    name = "PostgreSQL"
    types: ClassVar = {"i": "BIGINT", "f": "DOUBLE PRECISION", "b": "BOOLEAN", "M": "DATE"}
    longest = 63

    def __init__(self, link: Link, place: str, writes: bool) -> None:
        self.place = place
        self.connection = dbapi.connect(link.render("postgresql"))
        self.cursor = self.connection.cursor(adbc_stmt_kwargs={StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(BATCH_BYTES)})
        if not writes:
            self.fetch("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def close(self) -> None:
        self.cursor.close()
        self.connection.close()

    def fetch(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        self.cursor.execute(sql, values or None)
        return self.cursor.fetchall() if self.cursor.description else []

    def describe(self, rows: str) -> dict[str, str]:
        self.cursor.execute(f"SELECT * FROM {rows} WHERE 1 = 0")
        fields = list(self.cursor.fetch_record_batch().schema)
        check_names([field.name for field in fields], self.place)
        return {field.name: self._cast(field.name, field.metadata[TYPE].decode()) for field in fields}

    def _cast(self, name: str, kind: str) -> str:
        if kind == "bytea":
            raise BadInput(BINARY, file=self.place, column=name, right=NO_BYTES)
        quoted = self.quote(name)
        return quoted if kind in PLAIN else f"{quoted}::text AS {quoted}"

    def batches(self, select: str) -> Batches:
        self.cursor.execute(select)
        reader = self.cursor.fetch_record_batch()
        with ThreadPoolExecutor(1) as pool:  # the next batch arrives while this one is coded
            coming = pool.submit(next, reader, None)
            while (batch := coming.result()) is not None:
                coming = pool.submit(next, reader, None)
                yield batch

    def find(self, table: TableName) -> bool:
        return self.fetch("SELECT to_regclass($1) IS NOT NULL", self.render(table))[0][0]

    def list_tables(self) -> list[str]:
        rows = self.fetch(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
        )
        return [str(TableName(table, None if schema == "public" else schema)) for schema, table in rows]

    def name_private(self, table: TableName, schema: str | None) -> TableName:
        """The name of a table in the private schema.

        Args:
            table: the table of the release.
            schema: the private schema; by default that of the table with `_private` appended.
        """
        public = table.schema or self.fetch("SELECT current_schema()")[0][0]
        private = schema or f"{public}_private"
        if private == public:
            right = "name another schema for recipe and classes"
            raise BadInput(f"the schema '{private}' is that of the release, which is public", file=self.place, right=right)
        return TableName(table.table, private)

    def place_private(self, table: TableName, schema: str | None) -> TableName | None:
        named = self.name_private(table, schema)
        public, private = table.schema or self.fetch("SELECT current_schema()")[0][0], str(named.schema)
        self.fetch("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"closeknit {public}.{table.table}")
        self._open_schema(public)
        if self._open_schema(private):
            self.fetch(f"REVOKE ALL ON SCHEMA {self.quote(private)} FROM PUBLIC")
        elif self.fetch("SELECT has_schema_privilege('public', $1, 'USAGE')", private)[0][0]:
            right = f"run REVOKE ALL ON SCHEMA {self.quote(private)} FROM PUBLIC, or name another one"
            raise BadInput(f"everyone may use the private schema '{private}'", file=self.place, right=right)
        return named

    def _open_schema(self, name: str) -> bool:
        """Create a schema where there is none, and return whether that was so; another writer may do it at the same time."""
        known = "SELECT 1 FROM pg_namespace WHERE nspname = $1"
        if not self.fetch(known, name):
            self.fetch("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"closeknit {name}")
            if not self.fetch(known, name):
                self.fetch(f"CREATE SCHEMA {self.quote(name)}")
                return True
        return False

    def insert(self, table: TableName, columns: Columns) -> None:
        options = {} if table.schema is None else {"db_schema_name": table.schema}
        self.cursor.adbc_ingest(table.table, self.arrange(columns), mode="append", **options)

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    @contextmanager
    def undo_on_error(self, close: bool = False) -> Iterator[None]:
        """Undo a transaction that fails: its locks would block others for as long as the connection is open.

        Args:
            close: whether the connection is closed, too.
        """
        try:
            yield
        except BaseException:
            with suppress(Exception):  # the connection may be lost, and the first error says why
                self.close() if close else self.rollback()
            raise

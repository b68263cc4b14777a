"""DuckDB, through Arrow and without extensions that are fetched at run time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import duckdb

from closeknit.core.columns import Columns
from closeknit.io.databases.address import Link
from closeknit.io.databases.batches_to_columns import ROWS
from closeknit.io.databases.connection import Batches
from closeknit.io.databases.sqlite import refuse_no_file
from closeknit.io.databases.table_name import TableName
from closeknit.io.databases.transactional import Transactional

# A query reads the tables of its database: no other files, no addresses, no variables of this program.
CLOSED: dict[str, Any] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}


class Duckdb(Transactional):
    """A file of DuckDB."""

    name = "DuckDB"
    types: ClassVar = {"i": "BIGINT", "f": "DOUBLE", "b": "BOOLEAN", "M": "DATE"}

    def __init__(self, link: Link, place: str, writes: bool) -> None:
        self.file, self.place = Path(link.path), place
        refuse_no_file(self.file, place, writes)
        self.connection = duckdb.connect(str(self.file), read_only=not writes, config=CLOSED)
        self.connection.execute("SET TimeZone = 'UTC'")

    def close(self) -> None:
        self.connection.close()

    def fetch(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, values or None).fetchall()

    def describe(self, rows: str) -> dict[str, str]:
        found = self.fetch(f"DESCRIBE SELECT * FROM {rows}")
        plain = ("INTERVAL", "TIME", "TIME WITH TIME ZONE")  # as DuckDB prints them, not as Arrow does
        return {
            name: f"{self.quote(name)}::VARCHAR AS {self.quote(name)}" if kind in plain else self.quote(name)
            for name, kind, *_ in found
        }

    def batches(self, select: str) -> Batches:
        yield from self.connection.sql(select).to_arrow_reader(ROWS)

    def find(self, table: TableName) -> bool:
        schema = "current_schema()" if table.schema is None else "?"
        values = [part for part in (table.schema, table.table) if part is not None]
        return bool(
            self.fetch(
                f"SELECT 1 FROM information_schema.tables WHERE table_schema = {schema} AND lower(table_name) = lower(?)",
                *values,
            )
        )

    def list_tables(self) -> list[str]:
        rows = self.fetch("SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2")
        return [str(TableName(table, None if schema == "main" else schema)) for schema, table in rows]

    def place_private(self, table: TableName, schema: str | None) -> TableName | None:
        self.fetch("BEGIN TRANSACTION")
        if table.schema is not None:
            self.fetch(f"CREATE SCHEMA IF NOT EXISTS {self.quote(table.schema)}")
        return None

    def insert(self, table: TableName, columns: Columns) -> None:
        self.connection.register("closeknit_rows", self.arrange(columns))
        self.fetch(f"INSERT INTO {self.render(table)} SELECT * FROM closeknit_rows")
        self.connection.unregister("closeknit_rows")

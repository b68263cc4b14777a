"""SQLite, through Python's own module."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.databases.address import Link
from closeknit.io.databases.batches_to_columns import fetch_batches
from closeknit.io.databases.connection import Batches
from closeknit.io.databases.table_name import TableName
from closeknit.io.databases.transactional import Transactional

PATIENCE = 60.0  # seconds to wait for another writer


class Sqlite(Transactional):
    """A file of SQLite."""

    name = "SQLite"
    types: ClassVar = {"i": "INTEGER", "f": "REAL"}

    def __init__(self, link: Link, place: str, writes: bool) -> None:
        self.file, self.place = Path(link.path), place
        refuse_no_file(self.file, place, writes)
        self.connection = self._connect("rwc" if writes else "ro")
        if not writes:
            self._undo_killed_writer()

    def _connect(self, mode: str) -> sqlite3.Connection:
        address = f"file:{quote(str(self.file))}?mode={mode}"
        return sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None)

    def _undo_killed_writer(self) -> None:
        """Undo what a killed writer did not commit: SQLite does it when a connection that may write begins to read."""
        try:
            self.list_tables()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_READONLY_ROLLBACK":
                raise
            with closing(self._connect("rw")) as writer:
                writer.execute("SELECT COUNT(*) FROM sqlite_master")

    def close(self) -> None:
        self.connection.close()

    def fetch(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, values).fetchall()

    def describe(self, rows: str) -> dict[str, str]:
        names = [column[0] for column in self.connection.execute(f"SELECT * FROM {rows} WHERE 1 = 0").description]
        return {name: self.quote(name) for name in names}

    def batches(self, select: str) -> Batches:
        yield from fetch_batches(self.connection.execute(select), self.place)

    def find(self, table: TableName) -> bool:
        try:
            return bool(self.fetch(f"PRAGMA {self.quote(table.schema or 'main')}.table_info({self.quote(table.table)})"))
        except sqlite3.OperationalError as error:
            if not str(error).startswith("unknown database"):  # no such schema
                raise
            return False

    def list_tables(self) -> list[str]:
        return [name for (name,) in self.fetch("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")]

    def place_private(self, table: TableName, schema: str | None) -> TableName | None:
        self.fetch("BEGIN IMMEDIATE")
        return None

    def insert(self, table: TableName, columns: Columns) -> None:
        marks = ", ".join("?" * len(columns))
        for rows in self.rows_of(columns):
            self.connection.executemany(f"INSERT INTO {self.render(table)} VALUES ({marks})", rows)


def refuse_no_file(file: Path, place: str, writes: bool) -> None:
    """Refuse a file that is not there: to open it would create it."""
    if not file.exists() and not writes:
        raise BadInput("there is no such file", file=place, right="check the path; three slashes precede a relative one")
    if not file.parent.is_dir():
        raise BadInput(f"the folder {file.parent} does not exist", file=place, right="create it first")

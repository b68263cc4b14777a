"""Every other database that SQLAlchemy speaks, for reading: the rows come from a cursor on the server."""

from __future__ import annotations

from typing import Any

import sqlalchemy
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from closeknit.core.errors import BadInput
from closeknit.io.databases.address import Link
from closeknit.io.databases.batches_to_columns import ROWS, batch_of_rows
from closeknit.io.databases.connection import Batches, Connection
from closeknit.io.databases.table_name import TableName


class Alchemy(Connection):
    """A database behind a dialect of SQLAlchemy."""

    name = "this database"
    writable = False

    def __init__(self, link: Link, place: str, writes: bool) -> None:
        self.place, kind = place, link.scheme.partition("+")[0]
        right = f"install the driver and the SQLAlchemy dialect for {kind}; docs/databases.md lists some"
        try:
            self.engine = sqlalchemy.create_engine(link.render())
        except (NoSuchModuleError, ModuleNotFoundError, ArgumentError):
            raise BadInput(f"there is no driver for {kind}://", file=place, right=right) from None
        self.connection = self.engine.connect().execution_options(stream_results=True)

    def close(self) -> None:
        self.connection.close()
        self.engine.dispose()

    def quote(self, name: str) -> str:
        return self.engine.dialect.identifier_preparer.quote_identifier(name)

    def fetch(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.connection.exec_driver_sql(sql, values or None)]

    def describe(self, rows: str) -> dict[str, str]:
        names = list(self.connection.exec_driver_sql(f"SELECT * FROM {rows} WHERE 1 = 0").keys())
        return {name: self.quote(name) for name in names}

    def batches(self, select: str) -> Batches:
        found = self.connection.exec_driver_sql(select)
        names = list(found.keys())
        while rows := found.fetchmany(ROWS):
            yield batch_of_rows(rows, names, self.place)

    def find(self, table: TableName) -> bool:
        known = sqlalchemy.inspect(self.engine)
        return known.has_table(table.table, schema=table.schema) or table.table in known.get_view_names(schema=table.schema)

    def list_tables(self) -> list[str]:
        known = sqlalchemy.inspect(self.engine)
        return [*known.get_table_names(), *known.get_view_names()]

"""`Connection`: what every engine does: describe and read a query in batches, and write several tables at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput, suggest_name
from closeknit.io.arrow import values_to_arrow
from closeknit.io.buffers import codes_to_arrow
from closeknit.io.canonical import text_column
from closeknit.io.databases.address import Link
from closeknit.io.databases.batches_to_columns import ROWS, code_batches
from closeknit.io.databases.table_name import TableName
from closeknit.io.names import Wanted, check_names, choose_columns

Batches: TypeAlias = Iterator[pa.RecordBatch]


class Connection(ABC):
    """Base class of all engines; a subclass opens the connection in its constructor.

    Args:
        link: where the database is, with its credentials.
        place: where it is, as messages show it.
        writes: whether the connection is going to write.
    """

    name: ClassVar[str]
    types: ClassVar[Mapping[str, str]] = {}  # SQL type by kind of numpy value; everything else is text
    text: ClassVar[str] = "TEXT"
    writable: ClassVar[bool] = True
    longest: ClassVar[int | None] = None  # bytes of a name; longer ones would be cut

    @abstractmethod
    def __init__(self, link: Link, place: str, writes: bool) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """End the connection; what is not committed is gone."""

    @abstractmethod
    def fetch(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its few rows.

        Args:
            sql: the statement, with the placeholders of the engine.
            values: the values of the placeholders.
        """

    @abstractmethod
    def describe(self, rows: str) -> dict[str, str]:
        """The columns of a table, each as the expression that reads it as text, number, boolean or date.

        Args:
            rows: the table in SQL, or a query in parentheses with a name.
        """

    @abstractmethod
    def batches(self, select: str) -> Batches:
        """The rows of a query.

        Args:
            select: the query.
        """

    @abstractmethod
    def find(self, table: TableName) -> bool:
        """Whether there is such a table or view.

        Args:
            table: its name.
        """

    @abstractmethod
    def list_tables(self) -> list[str]:
        """The tables that a user may mean."""

    def quote(self, name: str) -> str:
        """A name in SQL.

        Args:
            name: the exact name.
        """
        return '"' + name.replace('"', '""') + '"'

    def render(self, table: TableName) -> str:
        """The name of a table in SQL.

        Args:
            table: its name.
        """
        return ".".join(self.quote(part) for part in (table.schema, table.table) if part is not None)

    def read(
        self, table: TableName | None, query: str | None, place: str, columns: Wanted = None, most: int | None = None
    ) -> Columns:
        """A table or the result of a query.

        Args:
            table: the table.
            query: the query, if no table is given.
            place: where it is, in messages.
            columns: the columns to read; all if left out.
            most: how many rows are read before the table is refused as too large; None = no limit.
        """
        self.refuse_missing(table, place)
        inner = (query or "").strip().removesuffix(";")
        if table is None:
            self.check_query(inner)
        rows = f"(\n{inner}\n) closeknit_query" if table is None else self.render(table)
        found = self.describe(rows)
        check_names(list(found), place)
        wanted = choose_columns(list(found), columns, place)
        chosen = ", ".join(found[name] for name in wanted)
        return code_batches(self.batches(f"SELECT {chosen} FROM {rows}"), wanted, place, most)

    def refuse_missing(self, table: TableName | None, place: str) -> None:
        """Refuse a table that is not there; the nearest name is suggested.

        Args:
            table: its name; None for a query.
            place: where it is, in messages.
        """
        if table is not None and not self.find(table):
            raise BadInput(f"there is no table '{table}'", file=place, right=suggest_name(table, self.list_tables()))

    def check_query(self, query: str) -> None:
        """Refuse a query that is more than a subquery can be, where the read-only transaction does not.

        Args:
            query: the query of the user.
        """
        return

    def declare(self, columns: Columns) -> str:
        """The columns of a new table in SQL; a type is used only if its cells come back as they are.

        Args:
            columns: the cells.
        """
        return ", ".join(f"{self.quote(name)} {self.type_of(column)}" for name, column in columns.items())

    def type_of(self, column: Column) -> str:
        """The SQL type of a column.

        Args:
            column: the cells.
        """
        return self.types.get(column.values.dtype.kind, self.text) if column.values.dtype != object else self.text

    def arrange(self, columns: Columns) -> pa.RecordBatchReader:
        """The cells in the types of the new table, batch by batch: memory holds the coded table and one batch.

        Args:
            columns: the cells.
        """
        kept = [column if self.type_of(column) != self.text else text_column(column) for column in columns.values()]
        distinct = [values_to_arrow(column.values) for column in kept]
        schema = pa.schema([(name, values.type) for name, values in zip(columns, distinct, strict=True)])

        def cut() -> Batches:
            for start in range(0, columns.rows, ROWS):
                codes = [codes_to_arrow(column.codes[start : start + ROWS]) for column in kept]
                cells = [values.take(places) for values, places in zip(distinct, codes, strict=True)]
                yield pa.RecordBatch.from_arrays(cells, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, cut())

    def rows_of(self, columns: Columns) -> Iterator[Sequence[tuple[Any, ...]]]:
        """The cells as tuples of Python values, in batches.

        Args:
            columns: the cells.
        """
        for batch in self.arrange(columns):
            yield list(zip(*(cells.to_pylist() for cells in batch.columns), strict=True))

    def place_private(self, table: TableName, schema: str | None) -> TableName | None:
        """Begin to write: wait for another writer of the table, and find or create the schema for private tables.

        Args:
            table: the table of the release.
            schema: the private schema; by default that of the table with `_private` appended.

        Returns:
            The release's name in the private schema; None if private files belong into a folder.
        """
        return None

    def write(self, tables: Mapping[TableName, Columns], replaced: Sequence[TableName], place: str) -> None:
        """Write all tables or none, in place of others.

        Args:
            tables: the new tables.
            replaced: tables that are dropped; they exist.
            place: where they are, in messages.
        """
        raise BadInput(f"a release cannot be written to {self.name}", file=place, right="save it in a folder, with -o or save")

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.close()
        else:
            with suppress(Exception):  # the connection may be lost, and the first error says why
                self.close()

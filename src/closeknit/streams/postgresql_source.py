"""A growing table of PostgreSQL as the input of a stream: its rows by increasing key, each once.

A key is drawn before its transaction commits, so a row with a smaller key may appear after one with a larger key. A row is
therefore read only when no transaction can add a smaller key any more: the largest key is noted, then the transactions that
hold the lock of a writer on the table, and rows up to that key are read when all of these transactions have ended. A writer
that begins later draws a larger key. This needs no right but SELECT, and blocks no writer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from datetime import date
from typing import Any

from closeknit.core.errors import BadInput, suggest_name
from closeknit.io.database import Database, explain_errors
from closeknit.io.databases.table_name import TableName
from closeknit.io.ndjson import LARGEST
from closeknit.streams.arrival_order import ArrivalOrder
from closeknit.streams.lines import ArrivedRow
from closeknit.streams.postgresql_connection import StreamConnection
from closeknit.streams.sinks import NEW_FOLDER
from closeknit.streams.sources import Block, Mark, SourceDown, refuse_other_input

POLL = 0.5  # seconds between two looks at a table without new rows
SOON = 0.02  # seconds between two looks at transactions that have not ended
COUNT = 10_000  # rows read at once
WHOLE = ("smallint", "integer", "bigint")
FIND_KEY = """
SELECT c.relkind::text, format_type(a.atttypid, NULL), a.attnotnull, pg_is_in_recovery(), EXISTS (
  SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
  AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)
FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.oid = to_regclass($1)
"""
LIST_COLUMNS = """
SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""
FIND_SEQUENCE = """
SELECT seqcache = 1 AND seqincrement > 0 AND NOT seqcycle FROM pg_sequence
WHERE seqrelid = pg_get_serial_sequence($1, $2)::regclass
"""
LIST_WRITERS = """
SELECT DISTINCT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND relation IN (SELECT to_regclass($1)::oid UNION SELECT relid::oid FROM pg_partition_tree(to_regclass($1)))
"""


class PostgresqlSource:
    """The rows of a table, by increasing key.

    Args:
        database: the table.
        order: the columns of the stream; its position is the key.
        ends: whether the rows that are there are all.
        count: rows read at once.

    >>> from closeknit.core.kinds import numeric
    >>> from closeknit.core.schema import Schema
    >>> order = ArrivalOrder(Schema(quasi={"age": numeric(0, 100)}), position="id")
    >>> PostgresqlSource(Database("postgresql://ann:secret@127.0.0.1:1/clinic", "patients"), order)
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: postgresql://ann@127.0.0.1:1/clinic: the database refuses (...); check address, ...
    """

    def __init__(self, database: Database, order: ArrivalOrder, ends: bool = False, count: int = COUNT) -> None:
        if order.position is None:
            right = "name its column of increasing whole numbers in the recipe: stream: {..., position: id}"
            raise BadInput("a table has no order without a key", file=database.place, right=right)
        self.place, self._address, self._order = database.place, database.address, order
        self._key, self._ends, self._count = order.position, ends, count
        self._at: int | None = None  # the key up to which rows were read
        self._safe: int | None = None  # no row with a key up to this one can appear any more
        self._coming: tuple[int, set[str]] | None = None  # the next such key, and the transactions that must end before
        self._ended = False
        self._link = StreamConnection(database, False, SourceDown, self._prepare)

    def _prepare(self, server: Any, table: TableName) -> None:
        """Check the table with each new connection; what was known of later keys and their writers is read again."""
        self._server, self._table, self._name = server, table, server.render(table)
        if not server.find(table):
            raise BadInput(f"there is no table '{table}'", file=self.place, right=suggest_name(table, server.list_tables()))
        self._check_key()
        self._order.check_header([name for (name,) in server.fetch(LIST_COLUMNS, self._name)])
        time = [self._order.time] if self._order.time else []
        self._columns = list(dict.fromkeys([*self._order.schema.used, self._key, *time]))
        quoted = ", ".join(map(server.quote, self._columns))
        self._cells = ", ".join(server.describe(f"(SELECT {quoted} FROM {self._name}) closeknit_rows").values())
        server.commit()  # ends the first transaction, which sees what was there at its beginning
        server.fetch("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY")
        server.commit()
        self._refuse_shorter(self._at)
        self._safe, self._coming = self._at, None

    def _check_key(self) -> None:
        """Refuse a column by which rows would be lost or read twice."""
        (kind, type_, filled, replica, unique) = self._server.fetch(FIND_KEY, self._name, self._key)[0]
        right = "name a primary key of whole numbers that a sequence draws"
        why = None
        if kind not in ("r", "p"):
            why = f"'{self._table}' is not a table of this database, so its writers cannot be seen"
        elif replica:
            why, right = "this server is a replica, where the order of keys is not that of rows", "read from the primary"
        elif type_ is None:
            why = f"the table '{self._table}' has no column '{self._key}'"
        elif type_ not in WHOLE or not filled or not unique:
            why = f"the column '{self._key}' is not a unique column of whole numbers without NULL"
        elif self._server.fetch(FIND_SEQUENCE, self._name, self._key) == [(False,)]:
            why = f"the sequence of '{self._key}' draws keys out of order"
            right = f"set it to CACHE 1 INCREMENT 1 NO CYCLE with: ALTER SEQUENCE ... (for '{self._key}')"
        if why is not None:
            raise BadInput(why, file=self.place, right=right)

    @explain_errors
    def read(self, wait: float | None) -> Block | None:
        """As `Source`. A signal may wait half a second."""
        if self._ended:
            return None
        with self._link.use():
            if self._at == self._safe:
                self._advance()
            if self._at != self._safe:
                return self._read_rows()
        self._ended = self._ends and self._coming is None
        if self._ended:
            return None
        time.sleep(SOON if self._coming else POLL if wait is None else min(wait, POLL))
        return Block()

    def _advance(self) -> None:
        """Find the largest key, and wait for the transactions that may add a smaller one."""
        if self._coming is None:
            ((newest,),) = self._server.fetch(f"SELECT max({self._server.quote(self._key)}) FROM {self._name}{self._after()}")
            self._coming = None if newest is None else (newest, self._list_writers())
        if self._coming is not None:
            newest, writers = self._coming
            writers &= self._list_writers() if writers else set()
            if not writers:
                self._safe, self._coming = newest, None
        self._server.commit()

    def _list_writers(self) -> set[str]:
        return {writer for (writer,) in self._server.fetch(LIST_WRITERS, self._name)}

    def _read_rows(self) -> Block:
        key = self._server.quote(self._key)
        where = f"{self._after()} AND {key} <= {self._safe} ORDER BY {key} LIMIT {self._count}"
        rows = self._server.fetch(f"SELECT {self._cells} FROM {self._name}{where}")
        self._server.commit()
        place = self._columns.index(self._key)
        self._at = rows[-1][place] if len(rows) == self._count else self._safe
        return Block([ArrivedRow(self._row(cells), cells[place], cells[place]) for cells in rows])

    def _row(self, cells: Sequence[Any]) -> dict[str, Any]:
        return {name: read_cell(cell) for name, cell in zip(self._columns, cells, strict=True)}

    def _after(self) -> str:
        return " WHERE TRUE" if self._at is None else f" WHERE {self._server.quote(self._key)} > {self._at}"

    def mark(self) -> Mark:
        """As `Source`: the last key."""
        return {"path": self.place, "table": str(self._table), "column": self._key, "key": self._at}

    def commit(self) -> None:
        """As `Source`: the table keeps its rows."""

    @explain_errors
    def seek(self, mark: Mark) -> None:
        """As `Source`."""
        refuse_other_input(mark, self.mark(), ("path", "table", "column"))
        with self._link.use():
            self._refuse_shorter(mark["key"])
        self._at = self._safe = mark["key"]

    def _refuse_shorter(self, key: int | None) -> None:
        """Refuse a table without rows that were read from it."""
        ((newest,),) = self._server.fetch(f"SELECT max({self._server.quote(self._key)}) FROM {self._name}")
        self._server.commit()
        if newest is not None and key is not None and newest < key:
            what = f"'{self._table}' ends with the key {newest}, and the checkpoint has read up to {key}"
            raise BadInput(what, file=self.place, right=f"restore the table, {NEW_FOLDER}")

    def close(self) -> None:
        """As `Source`."""
        self._link.close()


def read_cell(value: Any) -> Any:
    """A cell of a database as a stream takes it, in one spelling for equal values.

    Args:
        value: what the driver returns.

    >>> [read_cell(value) for value in (3.0, True, "", date(2026, 1, 31))]
    [3, 'true', None, '2026-01-31']
    """
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST:
        return int(value)
    return value.isoformat() if isinstance(value, date) else value

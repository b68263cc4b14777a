"""A table of PostgreSQL as the output of a stream: each row exactly once, whatever dies.

Rows are added in one transaction with the number of their last batch and a digest of all batches, which are in a private table,
and with the certificate of all rows, which is in a public one: whoever reads the table can audit it. After a restart the stream
repeats the batches since its checkpoint, with the same numbers and rows: those that the table has already are skipped, and
their digest must be the same. Neither numbers nor digests are next to the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from secrets import token_hex
from typing import Any

import numpy as np

from closeknit.core.columns import Column, Columns, concat_columns
from closeknit.core.errors import BadInput
from closeknit.core.kinds import Numeric
from closeknit.core.schema import Schema
from closeknit.io.canonical import canonical_blocks, text_column
from closeknit.io.database import Database, explain_errors
from closeknit.io.databases.table_name import CERTIFICATE, TableName
from closeknit.io.ndjson import LARGEST
from closeknit.streams.postgresql_connection import StreamConnection
from closeknit.streams.sinks import NEW_FOLDER, Mark, SinkDown, describe_mark

WINDOW = "window"
STATE = "_stream"  # appended to the name of the table
STATE_COLUMNS = ["stream", "batch", "digest"]


class PostgresqlSink:
    """Rows added to a table, which the first batch creates.

    Args:
        database: the table.
        schema: roles and kinds of the columns: numeric sensitive attributes are numbers, all other cells are text.

    >>> from closeknit.core.kinds import numeric
    >>> PostgresqlSink(Database("postgresql://ann:secret@127.0.0.1:1/clinic", "out"), Schema(quasi={"age": numeric(0, 100)}))
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: postgresql://ann@127.0.0.1:1/clinic: the database refuses (...); check address, ...
    """

    def __init__(self, database: Database, schema: Schema) -> None:
        self.place, self._database, self._address = database.place, database, database.address
        self._numbers = [name for name, kind in schema.sensitive.items() if isinstance(kind, Numeric)]
        self._stream = token_hex(16)  # of the rows in the table and of the checkpoint
        self._number, self._digest = 0, ""  # of the last batch
        self._there, self._there_digest = 0, ""  # of the last batch in the table
        self._collected: list[Columns] = []
        self._certificate = ""  # the one in the table, if this run has written it
        self._unsure = False  # whether the last transaction may have been committed before its connection was lost
        self._link = StreamConnection(database, True, SinkDown, self._prepare)

    def _prepare(self, server: Any, table: TableName) -> None:
        self._server, self._table, self._name = server, table, server.render(table)
        self._certified = table.with_suffix(CERTIFICATE)
        self._state = server.render(server.name_private(table, self._database.private_schema).with_suffix(STATE))
        server.commit()

    @property
    @explain_errors
    def begun(self) -> bool:
        """Whether the table exists."""
        with self._link.use():
            found: bool = self._server.find(self._table)
            self._server.commit()
            return found

    def write(self, number: int, batch: Columns) -> None:
        """As `Sink`: the rows are in the table after `settle`."""
        text = b"".join(canonical_blocks(batch))
        self._number, self._digest = number, sha256(self._digest.encode() + sha256(text).digest()).hexdigest()
        if number > self._there:
            self._collected.append(self._arrange(batch))
        elif number == self._there and self._digest != self._there_digest:
            what = f"the batches up to {number:,} are not those that '{self._table}' has: the input has changed"
            raise BadInput(what, file=self.place, right=f"restore the input that the checkpoint has read, {NEW_FOLDER}")

    @explain_errors
    def settle(self, certificate: Callable[[], str], saving: bool) -> None:
        """As `BufferedSink`: one transaction for the rows, up to which batch they are, and their certificate.

        If the connection is lost while it is committed, the outcome is unknown. The rows are written again, and that conflicts
        with the state if they are there: the first transaction and this one wait for each other, so one of them fails.
        """
        if self._number < self._there or not (self._collected or (saving and self._there)):
            return  # the table is ahead of a stream that repeats its batches, or there is nothing to write
        text = certificate()
        if not self._collected and text == self._certificate:
            return
        unsure, self._unsure = self._unsure, True
        with self._link.use():
            if not self._write_rows(text):
                self._server.rollback()
                if not unsure or self._read_state() != (self._stream, self._number, self._digest):
                    what = f"another stream, or another run of this one, writes to '{self._table}'"
                    right = "let only one write to it, and choose another table for the other"
                    raise BadInput(what, file=self.place, right=right)
        self._there, self._there_digest, self._collected = self._number, self._digest, []
        self._certificate, self._unsure = text, False

    def _write_rows(self, certificate: str) -> bool:
        """Write what was collected, or return False if the table is not as this run left it."""
        if self._there == 0 and not self._begin_table(concat_columns(self._collected)):
            return False
        known = f"UPDATE {self._state} SET batch = {self._number}, digest = $2 WHERE stream = $1 AND batch = {self._there}"
        if len(self._server.fetch(f"{known} RETURNING batch", self._stream, self._digest)) != 1:
            return False
        if self._collected:
            self._server.insert(self._table, concat_columns(self._collected))
        if not self._server.find(self._certified):  # an earlier version wrote none
            self._server.fetch(f"CREATE TABLE {self._server.render(self._certified)} (certificate TEXT)")
        self._server.fetch(f"DELETE FROM {self._server.render(self._certified)}")
        self._server.fetch(f"INSERT INTO {self._server.render(self._certified)} VALUES ($1)", certificate)
        self._server.commit()
        return True

    def _begin_table(self, rows: Columns) -> bool:
        """Create the tables in the transaction of their first rows; False if there is one already."""
        self._server.place_private(self._table, self._database.private_schema)
        if self._server.find(self._table):
            return False
        if self._server.find(self._certified):
            raise BadInput(f"the table '{self._certified}' exists already", file=self.place, right="choose another name")
        self._drop_state()
        self._server.fetch(f"CREATE TABLE {self._name} ({self._server.declare(rows)})")
        self._server.fetch(f"CREATE TABLE {self._state} (stream TEXT, batch BIGINT, digest TEXT)")
        self._server.fetch(f"INSERT INTO {self._state} VALUES ($1, 0, '')", self._stream)
        return True

    def _drop_state(self) -> None:
        """Drop what a stream whose rows are gone has left; another table of that name is refused."""
        if not self._server.fetch("SELECT to_regclass($1) IS NOT NULL", self._state)[0][0]:
            return
        if list(self._server.describe(self._state)) != STATE_COLUMNS:
            right = "move or rename it, or choose another name or private schema for the output"
            raise BadInput(f"the table {self._state} is not one of a stream", file=self.place, right=right)
        self._server.fetch(f"DROP TABLE {self._state}")

    def _arrange(self, batch: Columns) -> Columns:
        """The cells in types that do not depend on the batch."""
        cells = {}
        for name, column in batch.items():
            if name in self._numbers:
                if any(abs(value) > LARGEST for value in column.values.tolist()):
                    right = "declare it flat, which publishes text"
                    raise BadInput("a number is too large to be exact", column=name, right=right)
                cells[name] = Column(column.values.astype(np.float64), column.codes)
            elif name == WINDOW:
                cells[name] = Column(column.values.astype(np.int64), column.codes)
            else:
                cells[name] = text_column(column)
        return Columns(cells, batch.rows)

    def mark(self) -> Mark:
        """As `Sink`: the number of the last batch in the table, after `settle`."""
        assert not self._collected
        where = {"path": self.place, "table": str(self._table), "stream": self._stream}
        return {**where, "batch": self._number, "digest": self._digest}

    @explain_errors
    def seek(self, mark: Mark) -> None:
        """As `Sink`: nothing is removed, repeated batches are skipped."""
        if (mark.get("path"), mark.get("table")) != (self.place, str(self._table)):
            named = f"{describe_mark(mark)}, table {mark['table']}" if mark.get("table") else describe_mark(mark)
            right = f"name the output of the checkpoint, {NEW_FOLDER}"
            raise BadInput(f"the checkpoint writes to {named}", file=self.place, right=right)
        self._stream, self._number, self._digest = mark["stream"], mark["batch"], mark["digest"]
        with self._link.use():
            found = self._read_state()
        if found is not None and found[0] != self._stream:
            right = f"choose another table, {NEW_FOLDER}"
            raise BadInput(f"another stream writes to '{self._table}'", file=self.place, right=right)
        self._there, self._there_digest = (0, "") if found is None else (int(found[1]), found[2])
        if self._there < mark["batch"]:
            what = f"'{self._table}' ends with batch {self._there:,}, and the checkpoint has written {mark['batch']:,}"
            raise BadInput(what, file=self.place, right=f"restore the tables, {NEW_FOLDER}")

    def _read_state(self) -> tuple[str, int, str] | None:
        """Stream, batch and digest of the table; None if there is no table."""
        if not self._server.find(self._table):
            self._server.commit()
            return None
        rows = self._server.fetch("SELECT to_regclass($1) IS NOT NULL", self._state)
        found = self._server.fetch(f"SELECT stream, batch, digest FROM {self._state}") if rows[0][0] else []
        self._server.commit()
        if len(found) != 1:
            right = "choose another table: only one that a stream of closeknit wrote is continued or replaced"
            raise BadInput(f"the table '{self._table}' was not written by a stream", file=self.place, right=right)
        stream, batch, digest = found[0]
        return stream, batch, digest

    @explain_errors
    def empty(self) -> None:
        """As `Sink`: only a table that a stream wrote is dropped."""
        with self._link.use():
            if self._read_state() is not None:
                for table in (self._name, self._state, f"IF EXISTS {self._server.render(self._certified)}"):
                    self._server.fetch(f"DROP TABLE {table}")
                self._server.commit()

    def close(self) -> None:
        """As `Sink`; collected rows are written again after a restart."""
        self._link.close()

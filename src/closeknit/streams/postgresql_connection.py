"""A connection to PostgreSQL that a stream keeps for a long time, and opens again after it was lost.

A lost connection ends its transaction, committed or not. So what is done with the connection must be such that it can be
repeated: a source reads again, and a sink compares the state that is committed together with its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from closeknit.core.errors import BadInput, CloseknitError
from closeknit.io.database import Database, explain_errors
from closeknit.io.databases.table_name import TableName

# The server ends the session of a client that has vanished, whose locks would make the next session wait.
SETTINGS = {
    "idle_in_transaction_session_timeout": "'1min'",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
RIGHT = "the stream resumes from its checkpoint when the database answers"


Prepare = Callable[[Any, TableName], None]


class StreamConnection:
    """A connection to the database of a table.

    Args:
        database: the table.
        writes: whether the connection is going to write.
        down: what is raised if the connection is lost.
        prepare: called with each new connection and the table.

    >>> from closeknit.streams.sinks import SinkDown
    >>> StreamConnection(Database("postgresql://ann:secret@127.0.0.1:1/clinic", "out"), True, SinkDown, print)
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: postgresql://ann@127.0.0.1:1/clinic: the database refuses (...); check address, ...
    """

    def __init__(self, database: Database, writes: bool, down: type[BadInput], prepare: Prepare) -> None:
        self.place, self._address, self._database = database.place, database.address, database
        self._writes, self._down, self._prepare = writes, down, prepare
        self._server: Any = None
        self._open()

    @explain_errors
    def _open(self) -> None:
        table, server = self._database.open_stream(self._writes)
        with server.undo_on_error(close=True):
            for name, value in SETTINGS.items():
                server.fetch(f"SET {name} = {value}")
            server.commit()
            self._prepare(server, table)
        self._server = server

    @contextmanager
    def use(self) -> Iterator[Any]:
        """The connection, for work that may be repeated: if it is lost, that is raised, and the next call opens another."""
        if self._server is None:
            self._open_again()
        try:
            with self._server.undo_on_error():
                yield self._server
        except MemoryError:
            raise
        except Exception as error:
            if self._answers():
                raise
            self.close()
            lost = self._state_loss(error)
        else:
            return
        raise lost

    def _open_again(self) -> None:
        try:
            self._open()
        except CloseknitError as error:
            if self._reaches():
                raise
            lost = self._state_loss(error)
        else:
            return
        raise lost

    def _reaches(self) -> bool:
        """Whether the database takes a connection at all, so that it is something else that fails."""
        try:
            self._database.open_stream(self._writes)[1].close()
        except Exception:
            return False
        return True

    def _answers(self) -> bool:
        try:
            self._server.fetch("SELECT 1")
            self._server.commit()
        except Exception:
            return False
        return True

    def _state_loss(self, error: Exception) -> BadInput:
        reason = error.what if isinstance(error, BadInput) else f"the connection is lost: {self._address.conceal(str(error))}"
        return self._down(reason.strip().splitlines()[0], file=self.place, right=RIGHT)

    def close(self) -> None:
        """End the connection; what is not committed is gone."""
        if self._server is not None:
            with suppress(Exception):  # it may be lost
                self._server.close()
            self._server = None

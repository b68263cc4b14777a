"""Inputs and outputs of `closeknit stream` that are not files: streams of Redis, and tables of PostgreSQL."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closeknit.core.errors import BadInput, suggest_name

if TYPE_CHECKING:
    from closeknit.core.schema import Schema
    from closeknit.io.database import Database
    from closeknit.streams.arrival_order import ArrivalOrder

CONNECTORS = {"redis": "redis_streams", "rediss": "redis_streams"}  # for addresses scheme://...: files of streams/
KNOWN = (*CONNECTORS, "postgresql")


class Address:
    """`scheme://...`: an address of a connector, a module of streams/ with `source(url)` and `sink(url)`."""

    suffix = ""

    def __init__(self, url: str) -> None:
        self.url, self.scheme = url, url.partition("://")[0].lower()
        if self.scheme not in CONNECTORS:
            raise BadInput(f"there is no connector for {self.scheme}://", right=suggest_name(self.scheme, KNOWN))

    def open_source(self, order: ArrivalOrder, ends: bool) -> Any:
        """Return the source; its module is imported on first use."""
        return self._connector.source(self.url)

    def open_sink(self, schema: Schema) -> Any:
        """Return the sink."""
        return self._connector.sink(self.url)

    @property
    def _connector(self) -> Any:
        return import_module(f"closeknit.streams.{CONNECTORS[self.scheme]}")


class TableAddress(Address):
    """A table of a database."""

    def __init__(self, database: Database) -> None:
        self.database, self.scheme = database, "a database"

    def open_source(self, order: ArrivalOrder, ends: bool) -> Any:
        """Return the source; its driver is imported on first use."""
        from closeknit.streams.postgresql_source import PostgresqlSource

        return PostgresqlSource(self.database, order, ends)

    def open_sink(self, schema: Schema) -> Any:
        """Return the sink."""
        from closeknit.streams.postgresql_sink import PostgresqlSink

        return PostgresqlSink(self.database, schema)


def place_of(named: object, table: str | None, option: str) -> Path | Address:
    """Return a file, or the address of a stream or table.

    Args:
        named: what the user names, or a source of the recipe.
        table: the table of a database, if it is given.
        option: how the table is given.

    >>> place_of("rows.csv", None, "--input-table")
    PosixPath('rows.csv')
    """
    from closeknit.io.database import Database
    from closeknit.io.source import Source

    if isinstance(named, Database):
        return TableAddress(named if table is None else replace(named, table=table))
    text = str(named.place if isinstance(named, Source) else named)
    if Database.serves(text):
        return TableAddress(Database(text, table))
    if table is not None:
        raise BadInput(f"{option} is a table of a database, and {text} is none", right="name a database, or leave it out")
    return Address(text) if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) else Path(text)

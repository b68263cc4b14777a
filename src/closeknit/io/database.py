"""`Database`: a table or query of a database as a source, and a release in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import wraps
from glob import escape
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, Protocol, TypeVar
from urllib.parse import quote

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput, CloseknitError
from closeknit.core.limits import MOST_BYTES
from closeknit.io.canonical import canonical_blocks
from closeknit.io.databases.address import EMBEDDED, REFERENCE, Address
from closeknit.io.databases.table_name import CERTIFICATE, TableName
from closeknit.io.folders import save_private, write_inside
from closeknit.io.names import Wanted
from closeknit.io.source import Source

if TYPE_CHECKING:
    from closeknit.io.databases.connection import Connection

ENGINES = {
    "postgresql": ("postgresql", "Postgresql"),
    "postgres": ("postgresql", "Postgresql"),
    "mysql": ("mariadb", "Mariadb"),
    "mariadb": ("mariadb", "Mariadb"),
    "sqlite": ("sqlite", "Sqlite"),
    "duckdb": ("duckdb", "Duckdb"),
}
OTHERS = ("mssql", "oracle", "snowflake", "bigquery", "redshift", "trino", "clickhouse", "databricks", "cockroachdb")
PATIENCE = {  # seconds after which libpq gives up a server that is gone without a word, and milliseconds
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
P = ParamSpec("P")
R = TypeVar("R")


class Located(Protocol):
    """What talks to a database: its address, and where it is in messages."""

    @property
    def _address(self) -> Address: ...

    @property
    def place(self) -> str: ...


S = TypeVar("S", bound=Located)


def explain_errors(work: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method whose driver's errors become one sentence without credentials; the driver's own error is not chained to it."""

    @wraps(work)
    def call(self: S, *given: P.args, **named: P.kwargs) -> R:
        try:
            return work(self, *given, **named)
        except CloseknitError as error:
            bad: CloseknitError = error
            bad.__context__ = None
        except MemoryError:
            raise
        except Exception as error:  # every driver has its own classes
            reason = " ".join(self._address.conceal(str(error) or type(error).__name__).split())
            bad = BadInput(f"the database refuses ({reason})", file=self.place, right="check address, rights and names")
        raise bad

    return call


@dataclass(frozen=True)
class Database(Source):
    """A table of a database, or the rows of a query.

    Args:
        url: the address: a URL, `${VARIABLE}`, `@file` or `keyring://service/user`. A password in it is kept out of
            everything that is recorded.
        table: the table, as `table` or `schema.table`.
        query: a query instead of a table.
        private_schema: where a release's recipe and classes are written.

    >>> Database("postgresql://ann:secret@host/clinic", "patients")
    Database(url='postgresql://ann@host/clinic', table='patients', query=None, private_schema=None)
    """

    name: ClassVar[str] = "databases"
    schemes: ClassVar[tuple[str, ...]] = (*ENGINES, *OTHERS, "keyring")
    ordered: ClassVar[bool] = False

    url: str
    table: str | None = None
    query: str | None = None
    private_schema: str | None = None

    def __post_init__(self) -> None:
        address = Address.of(self.url)
        object.__setattr__(self, "_address", address)
        object.__setattr__(self, "url", address.given)

    _address: ClassVar[Address]

    @classmethod
    def serves(cls, place: str) -> bool:
        """Whether a path or address is that of a database: by its scheme, `dialect+driver://` included.

        Args:
            place: the path or address.
        """
        scheme, mark, _ = place.partition("://")
        return (bool(mark) and "+" in scheme) or super().serves(place) or bool(REFERENCE.fullmatch(place)) or place[:1] == "@"

    @classmethod
    def locate(cls, place: str, base: Path | None) -> str:
        """An address as a recipe has it: files are relative to the recipe.

        Args:
            place: the path or address.
            base: the folder of the recipe.
        """
        if place.startswith("@"):
            return f"@{(base or Path()) / place[1:]}"
        scheme, mark, path = place.partition(":///")
        return f"{scheme}:///{(base or Path()) / path}" if mark and scheme in EMBEDDED else place

    def form(self) -> dict[str, Any]:
        """The keys of `data` in a recipe, without credentials."""
        url = f"@{Path(self.url[1:]).resolve()}" if self.url.startswith("@") else self.url
        return {"url": url, **{f.name: getattr(self, f.name) for f in fields(self)[1:3] if getattr(self, f.name) is not None}}

    @property
    def holds_password(self) -> bool:
        """Whether the user wrote a password into the address."""
        return self._address.secret is not None

    @explain_errors
    def read(self, columns: Wanted = None, most: int | None = None) -> Columns:
        """The rows, coded batch by batch.

        Args:
            columns: the columns to read, in this order; all if left out.
            most: how many rows are read before the table is refused as too large; None = no limit.
        """
        if (self.table is None) == (self.query is None):
            right = "name one of the two, such as --table clinic.patients (in Python: ck.sql(url, table=...))"
            raise BadInput("a database needs a table or a query", file=self.place, right=right)
        table = None if self.table is None else TableName.of(self.table)
        with self._connect(writes=False) as connection:
            return connection.read(table, self.query, self.place, columns, most)

    @explain_errors
    def read_certificate(self) -> str:
        """The certificate in the table that was written with a release."""
        table = TableName.of(self.table or "").with_suffix(CERTIFICATE) if self.table else None
        with self._connect(writes=False) as connection:
            if table is None or not connection.find(table):
                connection.refuse_missing(TableName.of(self.table) if self.table else None, self.place)
                return super().read_certificate()
            rows = connection.fetch(f"SELECT {connection.quote('certificate')} FROM {connection.render(table)}")
        if len(rows) != 1 or not isinstance(rows[0][0], str) or len(rows[0][0]) > MOST_BYTES:
            raise BadInput(f"the table '{table}' has no certificate in its only row", file=self.place, right="write it again")
        return rows[0][0]

    @explain_errors
    def check_target(self, replace: bool) -> None:
        """Refuse a table that cannot be written in the end, before the work starts.

        Args:
            replace: whether an earlier release in this table is replaced.
        """
        table = self._target()
        link = self._address.open()
        if link.scheme.partition("+")[0] in EMBEDDED and not Path(link.path).exists():
            return
        with self._connect(writes=False) as connection:
            if not connection.writable:
                connection.write({}, [], self.place)
            self._refuse_existing(connection, [each for each in _public_tables(table) if connection.find(each)], table, replace)

    @explain_errors
    def write(self, columns: Columns, certificate: str, private: Mapping[str, Any], replace: bool) -> None:
        """Write a release, its certificate and its private files, all or nothing.

        Args:
            columns: the written cells.
            certificate: the certificate as JSON.
            private: the private files by name: texts, and `Columns` for a table.
            replace: whether an earlier release in this table is replaced.
        """
        table = self._target()
        with self._connect(writes=True) as connection:
            hidden = connection.place_private(table, self.private_schema)
            tables = dict(zip(_public_tables(table), (columns, Columns.of({"certificate": [certificate]})), strict=True))
            tables |= {} if hidden is None else _private_tables(hidden, private)
            self._refuse_long(connection.longest, tables)
            there = [name for name in tables if connection.find(name)]
            self._refuse_existing(connection, there, table, replace)
            self._refuse_foreign(connection, there, tables)
            if hidden is not None:
                connection.write(tables, there, self.place)
            else:
                with self._save_private(table, certificate, private):
                    connection.write(tables, there, self.place)

    def _target(self) -> TableName:
        if self.table is None or self.query is not None:
            right = "name a table and no query, such as --table public.release (in Python: table=...)"
            raise BadInput("a release needs a table", file=self.place, right=right)
        table = TableName.of(self.table)
        kind = self._address.open().scheme.partition("+")[0]
        if kind == "sqlite" and (table.schema or "main").lower() != "main":  # such as temp, which ends with the connection
            right = f"write '{TableName(table.table)}' without a schema"
            raise BadInput(f"SQLite keeps no table in the schema '{table.schema}'", file=self.place, right=right)
        return table

    def describe_written(self) -> list[str]:
        """The tables of a release, the place of its private files, and how to audit it."""
        table = TableName.of(self.table or "")
        link = self._address.open()
        if link.scheme.partition("+")[0] in EMBEDDED:
            private = f"{self.private_schema or f'{link.path}.private'}/  recipe.yaml, classes.csv"
        else:
            schema = self.private_schema or (f"{table.schema}_private" if table.schema else "the private schema")
            private = f"{schema}  {table.table}_recipe, {table.table}_classes"
        return [
            f"{self.place}  {table}, {table.with_suffix(CERTIFICATE)}: public, may be shared",
            f"{private}: private, do not share",
            f"next: closeknit audit '{self.place}' --table '{table}'",
        ]

    @property
    def address(self) -> Address:
        """The address, which hides credentials in messages."""
        return self._address

    def open_stream(self, writes: bool) -> tuple[TableName, Any]:
        """A table of PostgreSQL and an open connection, for a stream that reads or writes it for a long time.

        Args:
            writes: whether the connection is going to write.

        Returns:
            The table and the connection.
        """
        if self._address.open().scheme not in ("postgresql", "postgres"):
            raise BadInput("a stream reads and writes tables of PostgreSQL only", file=self.place, right="use files or Redis")
        if self.table is None or self.query is not None:
            side = "output" if writes else "input"
            right = f"name it with --{side}-table, or in the recipe: {{url: ..., table: schema.name}}"
            raise BadInput("a stream needs a table, not a query", file=self.place, right=right)
        return TableName.of(self.table), self._connect(writes, PATIENCE)

    def _connect(self, writes: bool, options: Mapping[str, str] | None = None) -> Any:
        link = self._address.open()
        link = link if options is None else replace(link, options={**options, **link.options})
        scheme = link.scheme.partition("+")[0]
        module, name = ENGINES.get(scheme, ("alchemy", "Alchemy"))
        try:
            engine = getattr(import_module(f"closeknit.io.databases.{module}"), name)
        except ImportError:
            right = "install it with: pip install 'closeknit[sql]'"
            raise BadInput(f"the driver for {scheme}:// is missing", file=self.place, right=right) from None
        return engine(link, self.place, writes)

    def _refuse_long(self, longest: int | None, tables: Mapping[TableName, Columns]) -> None:
        names = [name for table in tables for name in (table.table, table.schema or "")]
        names += [name for columns in tables.values() for name in columns]
        for name in names:
            if longest is not None and len(name.encode()) > longest:
                what = f"the name '{name}' has more than {longest} bytes, the most that this database allows"
                raise BadInput(what, file=self.place, right="choose a shorter one")

    def _refuse_existing(self, connection: Connection, there: list[TableName], table: TableName, replace: bool) -> None:
        if there and not replace:
            right = "choose another name, or replace it with --replace (in Python: replace=True)"
            raise BadInput(f"the table '{there[0]}' exists already", file=self.place, right=right)
        public = [each for each in _public_tables(table) if each in there]
        if public and not (public[-1] != table and _holds_certificate(connection, public[-1])):
            right = "choose another name: only a release with its certificate is replaced"
            raise BadInput(f"the table '{public[0]}' was not written by closeknit", file=self.place, right=right)

    def _refuse_foreign(self, connection: Connection, there: list[TableName], tables: Mapping[TableName, Columns]) -> None:
        """Refuse to replace a private table that is not one of the release: without a public one, or with other columns."""
        public, *private = list(tables)[:1] + list(tables)[2:]
        for table in private:
            if table in there and (
                public not in there or list(connection.describe(connection.render(table))) != list(tables[table])
            ):
                right = "move or rename it, choose another name for the release, or another private schema"
                raise BadInput(f"the table '{table}' does not belong to a release '{public}'", file=self.place, right=right)

    @contextmanager
    def _save_private(self, table: TableName, certificate: str, private: Mapping[str, Any]) -> Iterator[None]:
        """Private files of an embedded database, in a folder that belongs to this certificate alone; in the end it is alone."""
        link = self._address.open()
        parent = Path(self.private_schema or f"{link.path}.private")
        with suppress(FileExistsError):
            parent.mkdir(mode=0o700)
        folder = parent / f"{quote(str(table), safe=' ')}-{sha256(certificate.encode()).hexdigest()[:12]}"

        def fill(place: Path) -> None:
            for name, content in private.items():
                write_inside(place / name, content.encode() if isinstance(content, str) else canonical_blocks(content))

        known = folder.exists()
        save_private(folder, fill, force=True, ours=set(private).__contains__)
        try:
            yield
        except BaseException:
            if not known:
                rmtree(folder, ignore_errors=True)
            raise
        for other in parent.glob(f"{escape(folder.name[:-12])}{'[0-9a-f]' * 12}"):
            if other != folder:
                rmtree(other, ignore_errors=True)


def _public_tables(table: TableName) -> list[TableName]:
    return [table, table.with_suffix(CERTIFICATE)]


def _holds_certificate(connection: Connection, table: TableName) -> bool:
    """Whether a table is a certificate that closeknit wrote, not another table of that name."""
    name = connection.render(table)
    if list(connection.describe(name)) != ["certificate"]:
        return False
    rows = connection.fetch(f"SELECT {connection.quote('certificate')} FROM {name} LIMIT 2")
    return len(rows) == 1 and isinstance(rows[0][0], str) and '"content_sha256"' in rows[0][0]


def _private_tables(hidden: TableName, private: Mapping[str, Any]) -> dict[TableName, Columns]:
    """The private files as tables; the class of a row comes with its number, because a table has no order."""
    tables = {}
    for file, content in private.items():
        name = Path(file).stem
        if isinstance(content, str):
            tables[hidden.with_suffix(f"_{name}")] = Columns.of({name: [content]})
        else:
            rows = Column(np.arange(1, content.rows + 1), np.arange(content.rows, dtype=np.int32))
            tables[hidden.with_suffix(f"_{name}")] = Columns({"row": rows, **content.columns}, content.rows)
    return tables


def sql(url: str, table: str | None = None, query: str | None = None) -> Database:
    """A table or query of a database, for `anonymize`, `audit`, `suggest`, `attack` and wherever a file is read.

    Args:
        url: the address: a URL, `${VARIABLE}`, `@file` or `keyring://service/user`.
        table: the table, as `table` or `schema.table`.
        query: a query instead of a table.

    >>> sql("postgresql://ann:secret@host/clinic", table="patients").place
    'postgresql://ann@host/clinic'
    """
    return Database(url, table, query)

"""Apache Iceberg tables as sources; a release is one commit whose snapshot carries its certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.coded_batches import columns_from_batches
from closeknit.io.delta import (
    CERTIFICATE_KEY,
    ELSEWHERE,
    FOREIGN,
    describe_certificate,
    first_line,
    refuse_credentials,
    refuse_options,
    whole_version,
)
from closeknit.io.extras import load_extra
from closeknit.io.names import Wanted, check_names, choose_columns
from closeknit.io.parquet import table_from_columns
from closeknit.io.source import Source

ONE_FILE = {"write.target-file-size-bytes": str(1 << 40)}  # the order of rows is certain within one file only


@dataclass(frozen=True)
class IcebergTable(Source):
    """A table of an Iceberg catalogue.

    Args:
        url: `iceberg://NAME` for a catalogue that the configuration of pyiceberg names (its file, or environment variables,
            which also have its credentials), or `iceberg+sqlite:///FILE` for a catalogue in a SQLite file.
        table: the table with its namespace, such as `hospital.patients`.
        version: the id of the snapshot to read; the current one if left out.

    >>> IcebergTable("iceberg://lake", "hospital.patients").form()
    {'url': 'iceberg://lake', 'table': 'hospital.patients'}
    """

    name: ClassVar[str] = "Iceberg table"
    schemes: ClassVar[tuple[str, ...]] = ("iceberg",)

    url: str
    table: str | None = None
    version: int | str | None = None

    def __post_init__(self) -> None:
        refuse_credentials(self.url)
        refuse_options(self.url)
        object.__setattr__(self, "version", whole_version(self.version))

    def read(self, columns: Wanted = None) -> Columns:
        """The table at its snapshot.

        Args:
            columns: the columns to read, in this order; all if left out.
        """
        with self._open() as catalog:
            found = catalog.load_table(self._identifier())
            if self.version is not None and found.snapshot_by_id(self.version) is None:
                raise BadInput(f"there is no snapshot {self.version}", file=self._shown, right="choose one of its snapshots")
            names = [field.name for field in found.schema().fields]
            check_names(names, self._shown)
            chosen = choose_columns(names, columns, self._shown)
            scan = found.scan(selected_fields=tuple(chosen), snapshot_id=self.version)
            return columns_from_batches(scan.to_arrow_batch_reader(), chosen, self._shown)

    def read_certificate(self) -> str:
        """The certificate of the snapshot, or of the newest one before it that has one."""
        with self._open() as catalog:
            found = catalog.load_table(self._identifier())
            snapshot = found.current_snapshot() if self.version is None else found.snapshot_by_id(self.version)
            while snapshot is not None:
                if (stated := _certificate_of(snapshot)) is not None:
                    return stated
                before = snapshot.parent_snapshot_id
                snapshot = None if before is None else found.snapshot_by_id(before)
        return super().read_certificate()

    def write(self, columns: Columns, certificate: str, private: Mapping[str, Any], replace: bool) -> None:
        """Write a release as one commit; the summary of its snapshot has the certificate and its SHA-256.

        Args:
            columns: the written cells.
            certificate: the certificate as JSON.
            private: not written: every reader of a lake sees all of it.
            replace: whether the rows of a table there are replaced; earlier snapshots stay readable, so every one of them must
                be a release.
        """
        rows, stated = table_from_columns(columns), describe_certificate(certificate)
        name = self._identifier()
        with self._open(new=True) as catalog:
            if catalog.table_exists(name):
                if not replace:
                    raise BadInput("there is a table already", file=self._shown, right="choose another name, or replace it")
                table = catalog.load_table(name)
                if not all(_certificate_of(snapshot) for snapshot in table.snapshots()):
                    raise BadInput(FOREIGN, file=self._shown, right=ELSEWHERE)
                table.overwrite(rows, snapshot_properties=stated)
                return
            catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
            with catalog.create_table_transaction(name, schema=rows.schema, properties=ONE_FILE) as commit:
                commit.append(rows, snapshot_properties=stated)

    @property
    def _shown(self) -> str:
        return f"{self.place}, table '{self.table}'" if self.table else self.place

    def _identifier(self) -> str:
        if not self.table or "." not in self.table.strip("."):
            right = "name it with its namespace: table: hospital.patients (--table)"
            raise BadInput("no table is named", file=self.place, right=right)
        return self.table

    @contextmanager
    def _open(self, new: bool = False) -> Iterator[Any]:
        """The catalogue, which may be `new`; what the libraries find wrong becomes a sentence."""
        library, exceptions, database = (
            load_extra(module, "lake", "Iceberg tables", self._shown)
            for module in ("pyiceberg.catalog", "pyiceberg.exceptions", "sqlalchemy.exc")
        )
        scheme, _, where = self.url.partition("://")
        faults = [kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, Exception)]
        try:
            yield _open_file(library, Path(where), new) if scheme.lower() == "iceberg+sqlite" else library.load_catalog(where)
        except exceptions.NoSuchTableError:
            raise BadInput("there is no such table", file=self._shown, right="check its namespace and name") from None
        except (*faults, database.SQLAlchemyError, ValueError, OSError) as error:
            what = f"the Iceberg table cannot be used ({first_line(error)})"
            raise BadInput(what, file=self._shown, right="check the catalogue and the table") from None


def _certificate_of(snapshot: Any) -> str | None:
    stated = snapshot.summary.additional_properties.get(CERTIFICATE_KEY) if snapshot.summary else None
    return None if stated is None else str(stated)


def _open_file(library: Any, file: Path, new: bool) -> Any:
    """A catalogue in a SQLite file; new tables are placed in a folder next to it."""
    if not file.is_file() and not (new and file.parent.is_dir()):
        raise BadInput("there is no such catalogue", file=file, right="check the path of the SQLite file")
    place = file.resolve()
    warehouse = f"file://{place.with_suffix('')}"
    return library.load_catalog("closeknit", type="sql", uri=f"sqlite:///{place}", warehouse=warehouse)

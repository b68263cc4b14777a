"""Delta Lake tables as sources; a release is one commit that carries its certificate."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.params import whole
from closeknit.io.coded_batches import columns_from_batches
from closeknit.io.extras import load_extra
from closeknit.io.names import Wanted, check_names, choose_columns
from closeknit.io.parquet import table_from_columns
from closeknit.io.source import Source

CERTIFICATE_KEY, HASH_KEY = "closeknit.certificate", "closeknit.certificate_sha256"
ONE_FILE = 1 << 40  # bytes: the order of rows is certain within one file only
LOG = "_delta_log"
UPKEEP = ("OPTIMIZE", "VACUUM")  # operations that write no other rows
FOREIGN = "a version of this table was not written by closeknit"
ELSEWHERE = "choose another place: earlier versions stay readable, so only releases are replaced"


@dataclass(frozen=True)
class DeltaTable(Source):
    """A Delta Lake table: a folder with a `_delta_log`, or an address such as `delta+s3://bucket/patients`.

    Args:
        path: the folder, `delta:///folder`, or `delta+` and the address of an object store; its credentials come from the
            environment.
        version: the version to read; the latest if left out.

    >>> DeltaTable("delta:///lake/patients", version=3).location
    '/lake/patients'
    """

    name: ClassVar[str] = "Delta Lake table"
    schemes: ClassVar[tuple[str, ...]] = ("delta",)

    path: str
    version: int | str | None = None

    def __post_init__(self) -> None:
        refuse_credentials(self.path)
        refuse_options(self.path)
        object.__setattr__(self, "version", whole_version(self.version))

    @classmethod
    def serves(cls, place: str) -> bool:
        """Whether this is a Delta table: by its scheme, or a folder with a log.

        Args:
            place: the path or address.
        """
        return super().serves(place) or ("://" not in place and (Path(place) / LOG).is_dir())

    @property
    def location(self) -> str:
        """The address as the library takes it."""
        return self.path.removeprefix("delta+").removeprefix("delta://")

    def read(self, columns: Wanted = None) -> Columns:
        """The table at its version.

        Args:
            columns: the columns to read, in this order; all if left out.
        """
        with self._open() as library:
            data = library.DeltaTable(self.location, version=self.version).to_pyarrow_dataset()
            check_names(data.schema.names, self.place)
            chosen = choose_columns(data.schema.names, columns, self.place)
            return columns_from_batches(data.to_batches(columns=chosen), chosen, self.place)

    def read_certificate(self) -> str:
        """The certificate of the newest commit that has one, up to the version."""
        with self._open() as library:
            commits = library.DeltaTable(self.location, version=self.version).history()
        found = next((commit[CERTIFICATE_KEY] for commit in commits if CERTIFICATE_KEY in commit), None)
        return super().read_certificate() if found is None else str(found)

    def write(self, columns: Columns, certificate: str, private: Mapping[str, Any], replace: bool) -> None:
        """Write a release as one commit, whose metadata has the certificate and its SHA-256.

        Args:
            columns: the written cells.
            certificate: the certificate as JSON.
            private: not written: every reader of a lake sees all of it.
            replace: whether a table there gets the release as its next version; earlier versions stay readable, so every one
                of them must be a release.
        """
        with self._open() as library:
            there = library.DeltaTable.is_deltatable(self.location)
            if there and not replace:
                raise BadInput("there is a table already", file=self.place, right="choose another place, or replace it")
            if there and not _has_only_releases(library.DeltaTable(self.location)):
                raise BadInput(FOREIGN, file=self.place, right=ELSEWHERE)
            library.write_deltalake(
                self.location,
                table_from_columns(columns),
                mode="overwrite" if there else "error",
                schema_mode="overwrite" if there else None,
                target_file_size=ONE_FILE,
                commit_properties=library.CommitProperties(custom_metadata=describe_certificate(certificate)),
            )

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """The library; what it finds wrong becomes a sentence."""
        library = load_extra("deltalake", "lake", "Delta tables", self.place)
        try:
            yield library
        except library.exceptions.TableNotFoundError:
            raise BadInput("there is no Delta table", file=self.place, right="check the path or address") from None
        except (library.exceptions.DeltaError, OSError, ValueError) as error:
            right = "check the version and the files of the table" if self.version is not None else "check the table"
            raise BadInput(f"the Delta table cannot be used ({first_line(error)})", file=self.place, right=right) from None


def _has_only_releases(table: Any) -> bool:
    """Whether every version has a certificate; the history leaves out commits that do not say what they did."""
    commits = table.history()
    kept = [CERTIFICATE_KEY in commit or str(commit.get("operation")).startswith(UPKEEP) for commit in commits]
    return len(kept) == table.version() + 1 and all(kept)


def describe_certificate(certificate: str) -> dict[str, str]:
    """The metadata of a commit: the certificate and its hash.

    >>> describe_certificate("{}")["closeknit.certificate_sha256"][:8]
    '44136fa3'
    """
    return {CERTIFICATE_KEY: certificate, HASH_KEY: hashlib.sha256(certificate.encode()).hexdigest()}


def whole_version(version: int | str | None) -> int | None:
    """The number of a version; digits are taken as a number.

    >>> whole_version("3"), whole_version(None)
    (3, None)
    """
    if isinstance(version, str) and version.isdecimal():
        version = int(version)
    return None if version is None else whole("version", version, least=0)


def refuse_credentials(place: str) -> None:
    """Refuse an address with a password: it would be written into recipes; the message does not repeat it.

    >>> refuse_credentials("s3://key:secret@bucket/people.csv")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: the address has credentials in it; leave them out, and set them in the environment
    """
    scheme, _, rest = place.partition("://")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    container = scheme.lower().removeprefix("delta+") in ("az", "abfs", "abfss") and ":" not in user  # container@account
    if at and not container:
        raise BadInput("the address has credentials in it", right="leave them out, and set them in the environment")


def refuse_options(place: str) -> None:
    """Refuse an address with options, which may be credentials; the message does not repeat them.

    >>> refuse_options("delta+s3://bucket/people?aws_secret_access_key=secret")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: the address has options after '?'; leave them out, and set them in the environment
    """
    if "://" in place and "?" in place:
        raise BadInput("the address has options after '?'", right="leave them out, and set them in the environment")


def first_line(error: BaseException) -> str:
    """The first line of a library's message, for a sentence.

    >>> first_line(ValueError("No such version.\\nAt line 3"))
    'no such version'
    """
    text = (str(error).splitlines() or [type(error).__name__])[0].strip().rstrip(".:")
    return text if text[:2].isupper() else text[:1].lower() + text[1:]

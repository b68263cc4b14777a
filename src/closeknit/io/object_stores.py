"""Files in object stores (`s3://`, `gs://`, `az://`): copied to a private temporary folder, then read as any other file."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.delta import first_line, refuse_credentials
from closeknit.io.names import Wanted
from closeknit.io.source import Source

CERTIFICATE = "certificate.json"
ACCOUNT = "AZURE_STORAGE_ACCOUNT_NAME"
OPTIONS = {"region", "scheme", "endpoint_override", "enable_tls"}  # of an address; others may be credentials
OPTIONS |= {f"{part}_storage_{what}" for part in ("blob", "dfs") for what in ("authority", "scheme")}


@dataclass(frozen=True)
class ObjectFile(Source):
    """A file, or a folder of part files, in an object store. Credentials come from the environment, never from the address.

    Args:
        url: the address, such as `s3://bucket/patients.parquet?region=eu-west-1`; `gs://` and `az://` likewise.

    >>> ObjectFile("s3://bucket/patients.parquet?region=eu-west-1").file_name
    'patients.parquet'
    """

    name: ClassVar[str] = "file in an object store"
    schemes: ClassVar[tuple[str, ...]] = ("s3", "gs", "gcs", "az", "abfs", "abfss")

    url: str

    @property
    def file_name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(unquote(urlsplit(self.url).path)).name

    @property
    def place(self) -> str:
        """The address without its options and without a password, which it must not have."""
        return re.sub("//[^/]*:[^/]*@", "//", self.url.partition("?")[0])

    def form(self) -> dict[str, Any]:
        """The keys of `data` in a recipe: the address with its options, which are no credentials."""
        self._check_address()
        return {"url": self.url}

    def read(self, columns: Wanted = None) -> Columns:
        """The table; a file with a certificate next to it is a release, and read cell by cell as it was written.

        Args:
            columns: the columns to read, in this order; all if left out.
        """
        from closeknit.io.files import read, read_written

        with self._copy() as file:
            if (file.parent / CERTIFICATE).exists() and columns is None:
                return self._rename(read_written, file)
            return self._rename(read, file, columns=columns)

    def read_certificate(self) -> str:
        """The certificate next to the file."""
        with self._copy(table=False) as file:
            found = file.parent / CERTIFICATE
            return found.read_text(encoding="utf-8") if found.exists() else super().read_certificate()

    def _check_address(self) -> None:
        """Refuse an address with credentials or without a file."""
        refuse_credentials(self.url)
        for option, _ in parse_qsl(urlsplit(self.url).query, keep_blank_values=True):
            if option not in OPTIONS:
                right = "leave it out; credentials come from the environment"
                raise BadInput(f"the address has the option '{option}'", right=right)
        if not self.file_name:
            raise BadInput("the address names no file", file=self.place, right="write s3://bucket/folder/file.parquet")

    def _rename(self, read: Any, file: Path, **options: Any) -> Columns:
        """Read the copy; messages have the address instead of its path."""
        try:
            return read(file, **options)  # type: ignore[no-any-return]
        except BadInput as bad:
            raise bad.replace(what=bad.what.replace(str(file), self.place), file=self.place) from None

    @contextmanager
    def _copy(self, table: bool = True) -> Iterator[Path]:
        """A copy of the file or folder, and of the certificate next to it; it exists only as long as it is used.

        `table`: whether the file itself is needed.
        """
        import pyarrow as pa
        from pyarrow import fs

        self._check_address()
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, self.file_name)
            try:
                store, path = open_store(self.url)
                found = store.get_file_info([path, str(PurePosixPath(path).parent / CERTIFICATE)])
                if found[0].type == fs.FileType.NotFound:
                    raise BadInput("there is no such file", file=self.place, right="check the address")
                if found[0].type == fs.FileType.Directory:
                    place.mkdir()
                if table:
                    fs.copy_files(path, str(place), source_filesystem=store)
                if found[1].type == fs.FileType.File:
                    fs.copy_files(found[1].path, str(place.parent / CERTIFICATE), source_filesystem=store)
            except (pa.ArrowException, OSError, ValueError) as error:
                what = f"the object store does not give it ({first_line(error)})"
                raise BadInput(
                    what, file=self.place, right="check the address, and the credentials in the environment"
                ) from None
            yield place


def open_store(address: str) -> tuple[Any, str]:
    """The file system of an address, with the credentials of the environment, and the path in it.

    Args:
        address: the address of a file.
    """
    from pyarrow import fs

    store, path = fs.FileSystem.from_uri(full_address(address))
    return store, str(path)


def full_address(address: str) -> str:
    """The address as pyarrow takes it: `az://container/file` with the storage account of the environment.

    Args:
        address: the address of a file.

    >>> full_address("S3://bucket/people.csv"), full_address("az://data@clinic.dfs.core.windows.net/people.csv")
    ('s3://bucket/people.csv', 'abfss://data@clinic.dfs.core.windows.net/people.csv')
    """
    scheme, _, rest = address.partition("://")
    scheme = scheme.lower()
    if scheme not in ("az", "abfs", "abfss"):
        return f"{scheme}://{rest}"
    container, _, path = rest.partition("/")
    if "@" not in container:
        account = os.environ.get(ACCOUNT)
        if not account:
            right = f"set {ACCOUNT}, or write az://container@account.dfs.core.windows.net/file"
            raise BadInput("the address names no storage account", file=address, right=right)
        container = f"{container}@{account}.dfs.core.windows.net"
    return f"{'abfss' if scheme == 'az' else scheme}://{container}/{path}"

"""A release in an object store: public files only, each complete or absent, the certificate last; private files stay local."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path, PurePosixPath
from shutil import copyfileobj, rmtree
from tempfile import TemporaryDirectory
from typing import Any

from closeknit.core.errors import BadInput
from closeknit.io import object_stores
from closeknit.io.delta import first_line
from closeknit.io.folders import Ours, Writer, save_folder, save_private
from closeknit.io.object_stores import ObjectFile


def is_object_address(place: str | PathLike[str]) -> bool:
    """Whether a folder is one in an object store.

    Args:
        place: the folder of a release.

    >>> is_object_address("s3://bucket/out"), is_object_address("out/")
    (True, False)
    """
    return ObjectFile.serves(os.fspath(place))


class ObjectFolder:
    """A folder in an object store.

    Args:
        address: such as `s3://bucket/out`.
        last: the file that is written last and removed first: a folder with it is complete.

    >>> ObjectFolder("s3://bucket/results/out/?region=eu-west-1", "certificate.json").private.name
    'out.private'
    """

    def __init__(self, address: str, last: str) -> None:
        path, mark, options = address.partition("?")
        self.file, self.last = ObjectFile(path.rstrip("/") + mark + options), last
        self.place = self.file.place

    @property
    def private(self) -> Path:
        """The private folder: in the current folder, because private files are never sent to a store."""
        return Path(f"{self.file.file_name}.private").absolute()

    def check(self, force: bool, ours: Ours) -> None:
        """Refuse a folder that cannot be written in the end, before the work starts.

        Args:
            force: whether an earlier release is replaced.
            ours: whether a file of this name may be one of an earlier release.
        """
        with self._open() as (store, path):
            self._refuse_existing(self._list(store, path), force, ours)
        if os.path.lexists(self.private) and not force:
            right = "remove it, or force it to be replaced"
            raise BadInput("the private folder of the release exists already", file=self.private, right=right)

    def save(self, write_public: Writer, write_private: Writer, force: bool, ours: Ours) -> None:
        """Write the private folder, then the public files; after a failure no certificate is in the store.

        Args:
            write_public: fills a local folder with the public files.
            write_private: fills the private folder.
            force: whether an earlier release is replaced.
            ours: whether a file of this name may be one of an earlier release.
        """
        self.check(force, ours)
        known = self.private.exists()
        with TemporaryDirectory() as work:
            folder = Path(work, "out")
            save_folder(folder, write_public, private=True)
            save_private(self.private, write_private, force, ours)
            try:
                self._put(folder, force, ours)
            except BaseException:
                if not known:
                    rmtree(self.private, ignore_errors=True)
                raise

    def _put(self, folder: Path, force: bool, ours: Ours) -> None:
        names = sorted((str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()), key=self._is_last)
        with self._open() as (store, path):
            there = self._list(store, path)
            self._refuse_existing(there, force, ours)
            for name in sorted(there, key=self._is_last, reverse=True):
                store.delete_file(f"{path}/{name}")
            done: list[str] = []
            try:
                for name in names:
                    done.append(name)
                    self._put_file(store, folder / name, f"{path}/{name}")
            except BaseException:
                for name in reversed(done):
                    with suppress(Exception):  # the store may be gone, and the first error says why
                        store.delete_file(f"{path}/{name}")
                raise

    def _put_file(self, store: Any, file: Path, path: str) -> None:
        """Send a file and read it back; an object appears when it is complete."""
        from pyarrow import fs

        if isinstance(store, fs.SubTreeFileSystem | fs.LocalFileSystem):  # object stores have no folders
            store.create_dir(str(PurePosixPath(path).parent), recursive=True)
        with file.open("rb") as source, store.open_output_stream(path) as target:
            copyfileobj(source, target, 1 << 20)
        with file.open("rb") as source, store.open_input_stream(path) as found:
            while block := source.read(1 << 20):
                if found.read(len(block)) != block:
                    raise OSError(f"it returns other bytes than were written to {file.name}")
            if found.read(1):
                raise OSError(f"it returns other bytes than were written to {file.name}")

    def _is_last(self, name: str) -> tuple[bool, str]:
        return name == self.last, name

    def _list(self, store: Any, path: str) -> list[str]:
        from pyarrow import fs

        found = store.get_file_info([path])[0]
        if found.type == fs.FileType.File:
            raise BadInput("this is not a folder", file=self.place, right="choose another name")
        files = store.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
        return [str(PurePosixPath(file.path).relative_to(path)) for file in files if file.type == fs.FileType.File]

    def _refuse_existing(self, there: list[str], force: bool, ours: Ours) -> None:
        if there and not force:
            right = "choose another folder, or force it to be replaced"
            raise BadInput("the folder exists already", file=self.place, right=right)
        if foreign := sorted(name for name in there if not ours(name)):
            right = "choose another folder: only files that closeknit writes are replaced"
            raise BadInput(f"the folder also contains '{foreign[0]}', which would be deleted", file=self.place, right=right)

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, str]]:
        """The store and the path in it; what the store refuses becomes a sentence."""
        import pyarrow as pa

        self.file.form()  # refuses credentials in the address
        try:
            yield object_stores.open_store(self.file.url)
        except (pa.ArrowException, OSError, ValueError) as error:
            what = f"the object store does not take it ({first_line(error)})"
            raise BadInput(what, file=self.place, right="check the address, and the credentials in the environment") from None

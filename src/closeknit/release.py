"""`Release`: the only thing that can leave: written cells and their certificate; what stays at home is never pickled."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from closeknit.core.certificate import Certificate, ReleaseFile
from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.params import choice
from closeknit.doors.canonical import canonical_blocks, hash_of_blocks
from closeknit.doors.files import sha256_of, write_parquet
from closeknit.doors.folders import save_folders, write_inside, write_whole
from closeknit.doors.frames import to_frame
from closeknit.doors.parquet import table_from_columns

FORMATS = ("csv", "parquet")
OURS = re.compile(
    r"(release|quasi|sensitive|slice_\d+)\.(csv|parquet)|certificate\.json|recipe\.yaml|classes\.csv|report\.html|README\.txt"
)


class Release:
    """Written cells, their certificate, and (private) the class of every input row.

    `columns` are the written cells; `frame` is the same in the library the table came in.
    """

    def __init__(self, columns: Columns, certificate: Certificate, *, partition: NDArray[np.int32] | None = None,
                 recipe: dict[str, Any] | None = None, like: Any = None, format: str = "csv",
                 types: Mapping[str, Any] | None = None, parts: Mapping[str, Columns] | None = None,
                 advice: str | None = None) -> None:  # fmt: skip
        self.columns = columns
        self._text = list(canonical_blocks(columns))  # rendered once: the hash, the file and its hash are all made of it
        self.certificate = certificate.model_copy(update={"content_sha256": hash_of_blocks(iter(self._text))})
        self._partition, self._recipe, self._like = partition, recipe, like
        self._format, self._types = format, types
        self._parts, self._advice = parts or {}, advice

    @property
    def loss(self) -> float:
        """General Loss Metric, variant A, weighted by importance, withheld rows counted as 1."""
        return self.certificate.loss.a

    @property
    def partition(self) -> NDArray[np.int32]:
        """Class of every input row in input order, -1 = withheld. It stays at home."""
        if self._partition is None:
            raise BadInput("this release came without its partition", right="it stays with the process that made it")
        return self._partition

    @functools.cached_property
    def frame(self) -> Any:
        """The release in the library the table came in (an Arrow table where it came from a file)."""
        if self._like is None:
            return table_from_columns(self.columns)
        return to_frame(self.columns, self._like, text=self.certificate.columns["quasi"])

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the canonical CSV text."""
        write_whole(path, self._text)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file; untouched columns keep the types of a Parquet input."""
        write_parquet(self.columns, path, self._types)

    def save(self, folder: str | PathLike[str], format: str | None = None, force: bool = False) -> None:
        """`folder/` with what may leave and `folder.private/` with what may not; each whole or not at all.

        `format` is "csv" or "parquet"; left out, a Parquet table gives a Parquet release and all else CSV.
        """
        format = format or self._format
        choice("format", format, FORMATS)
        public = Path(folder).absolute()
        private = public.with_name(public.name + ".private")
        save_folders(
            public, private, lambda f: self._write_public(f, format), lambda f: self._write_private(f, format), force,
            lambda name: OURS.fullmatch(name) is not None,
        )  # fmt: skip

    def _write_public(self, folder: Path, format: str) -> None:
        listed = []
        for name, columns in {"release": self.columns, **self._parts}.items():
            file = folder / f"{name}.{format}"
            if format == "csv":
                write_inside(file, self._text if columns is self.columns else canonical_blocks(columns))
            else:
                write_parquet(columns, file, self._types)
            listed.append(ReleaseFile(name=file.name, rows=columns.rows, sha256=sha256_of(file)))
        certificate = self.certificate.model_copy(update={"files": tuple(listed)})
        write_inside(folder / "certificate.json", certificate.to_json().encode())
        if self._advice:
            write_inside(folder / "README.txt", self._advice.encode())

    def _write_private(self, folder: Path, format: str) -> None:
        recipe = {**(self._recipe or {}), "output": {"format": format}}
        write_inside(folder / "recipe.yaml", yaml.safe_dump(recipe, sort_keys=False, allow_unicode=True).encode())
        if self._partition is not None:
            count = int(self._partition.max(initial=-1)) + 1
            classes = Columns({"class": Column(np.arange(count), self._partition)}, len(self._partition))
            write_inside(folder / "classes.csv", canonical_blocks(classes))

    def __getstate__(self) -> dict[str, Any]:
        return {
            "columns": self.columns,
            "certificate": self.certificate,
            "_partition": None,
            "_recipe": None,
            "_like": None,
            "_text": self._text,
            "_format": self._format,
            "_types": self._types,
            "_parts": self._parts,
            "_advice": self._advice,
        }

    def __str__(self) -> str:
        return str(self.certificate)

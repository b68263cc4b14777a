"""`LocalRelease`: a release whose rows are in this process. Nothing private is pickled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certificate import Certificate, ReleaseFile
from closeknit.core.columns import Columns
from closeknit.core.formulas import escape, escape_columns
from closeknit.io.canonical import canonical_blocks, content_hash
from closeknit.io.files import sha256_of, write_parquet
from closeknit.io.folders import write_whole
from closeknit.io.frames import to_frame
from closeknit.io.labels import Labels
from closeknit.io.parquet import table_from_columns
from closeknit.io.written_files import write_release_file
from closeknit.release.origin import Origin
from closeknit.release.release import Release
from closeknit.release.release_paths import RELEASE


class LocalRelease(Release):
    """Written cells and their certificate in this process.

    Where formulas are escaped, frame and files have the escaped cells, and so has the content hash. The CSV text is rendered
    when the content hash or a file needs it, and not kept.

    Args:
        columns: the written cells, as the certificate judges them.
        certificate: what is guaranteed; its content hash is computed from the cells.
        partition: the class of every input row in input order, -1 = suppressed; private.
        recipe: how the release was computed, with its seed; private.
        like: a frame of the library that `frame` uses; by default an Arrow table.
        format: the format of the file unless `save` says otherwise, "csv" or "parquet".
        types: Arrow types of untouched columns, for Parquet.
        labels: labels of variables and values, for statistical files.
        parts: further files of the release, by name.
        advice: what a recipient has to know about the files, for `README.txt`.
        origin: the table behind the release; private.
    """

    def __init__(
        self,
        columns: Columns,
        certificate: Certificate,
        *,
        partition: NDArray[np.int32] | None = None,
        recipe: Mapping[str, Any] | None = None,
        like: Any = None,
        format: str = "csv",
        types: Mapping[str, Any] | None = None,
        labels: Labels | None = None,
        parts: Mapping[str, Columns] | None = None,
        advice: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        super().__init__(certificate, recipe, format, partition, origin, advice)
        self._columns, self._like, self._types, self._labels, self._parts = columns, like, types, labels, parts or {}

    @cached_property
    def certificate(self) -> Certificate:  # type: ignore[override]
        """What is guaranteed, what was measured, and the content hash."""
        return self._stated.model_copy(update={"content_sha256": content_hash(self._escape_cells(self._columns))})

    @property
    def columns(self) -> Columns:
        """The written cells, as the certificate judges them."""
        return self._columns

    @cached_property
    def frame(self) -> Any:
        """The release in the library the table came in (an Arrow table where it came from a file or from lists)."""
        cells = self._escape_cells(self._columns)
        labelled = [name for name, column in self._columns.items() if column.values.dtype.kind == "O"]
        text = [name for name in self._stated.columns["quasi"] if name in labelled]
        if self._like is None:
            return table_from_columns(cells)
        return to_frame(cells, self._like, text=[escape(name) for name in text] if self._stated.escape_formulas else text)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the canonical CSV text.

        Args:
            path: the file.
        """
        write_whole(path, canonical_blocks(self._escape_cells(self._columns)))

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file; untouched columns keep the types of a Parquet input.

        Args:
            path: the file.
        """
        write_parquet(self._escape_cells(self._columns), path, self._types)

    def _escape_cells(self, columns: Columns) -> Columns:
        """The cells as a file or frame has them."""
        return escape_columns(columns) if self._stated.escape_formulas else columns

    def _escape_release(self) -> Columns:
        return self._escape_cells(self._columns)

    def _write_release(self, folder: Path, format: str) -> tuple[ReleaseFile, ...]:
        listed = []
        for name, columns in {RELEASE: self._columns, **self._parts}.items():
            file, cells = folder / f"{name}.{format}", self._escape_cells(columns)
            stated = self.certificate.to_json() if name == RELEASE else None
            write_release_file(cells, file, self._types, self._labels, stated)
            listed.append(ReleaseFile(name=file.name, rows=columns.rows, sha256=sha256_of(file)))
        return tuple(listed)

    def __getstate__(self) -> dict[str, Any]:
        private = dict.fromkeys(("_partition", "_recipe", "_like", "_origin"))
        return {name: value for name, value in self.__dict__.items() if name != "frame"} | private

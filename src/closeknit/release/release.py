"""`Release`: the only thing that can leave: written cells and their certificate; what stays at home is never pickled."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from closeknit.core.certificate import Certificate, Document, ReleaseFile
from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.formulas import escape, escape_columns
from closeknit.core.grids import Summarized, Summary
from closeknit.core.params import choice
from closeknit.io.canonical import canonical_blocks, hash_of_blocks
from closeknit.io.files import sha256_of, write_parquet
from closeknit.io.folders import save_folders, write_inside, write_whole
from closeknit.io.frames import to_frame
from closeknit.io.parquet import table_from_columns
from closeknit.release.origin import Origin

if TYPE_CHECKING:
    from closeknit.attacks.finding import Finding
    from closeknit.core.frontier import Frontier
    from closeknit.report.record import PrivateReport, PublicReport

FORMATS = ("csv", "parquet")
OWN_FILES = re.compile(
    r"(release|quasi|sensitive|slice_\d+)\.(csv|parquet)|certificate\.json|recipe\.yaml|classes\.csv|"
    r"report\.(html|json)|README\.txt"
)


class Release(Summarized):
    """Written cells, their certificate, and (private) the class of every input row.

    `columns` are the cells that the certificate judges; `frame` is the same in the library the table came in. Where formulas
    are escaped, frame and files have the escaped cells, and the content hash is taken over these.
    """

    def __init__(
        self,
        columns: Columns,
        certificate: Certificate,
        *,
        partition: NDArray[np.int32] | None = None,
        recipe: dict[str, Any] | None = None,
        like: Any = None,
        format: str = "csv",
        types: Mapping[str, Any] | None = None,
        parts: Mapping[str, Columns] | None = None,
        advice: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.columns, self.certificate = columns, certificate
        # rendered once: the hash, the file and its hash are all made of it
        self._text = list(canonical_blocks(self._escape_cells(columns)))
        self.certificate = certificate.model_copy(update={"content_sha256": hash_of_blocks(iter(self._text))})
        self._partition, self._recipe, self._like = partition, recipe, like
        self._format, self._types = format, types
        self._parts, self._advice, self._origin = parts or {}, advice, origin

    @property
    def loss(self) -> float:
        """General Loss Metric, variant A, weighted by importance, suppressed rows counted as 1."""
        return self.certificate.loss.a

    @property
    def partition(self) -> NDArray[np.int32]:
        """Class of every input row in input order, -1 = suppressed. It stays at home."""
        if self._partition is None:
            raise BadInput("this release came without its partition", right="it stays with the process that made it")
        return self._partition

    @property
    def duplicates(self) -> int | None:
        """Input rows that repeat another one exactly; None where the table is not at hand. It is private."""
        return None if self._origin is None else self._origin.duplicates

    @functools.cached_property
    def frame(self) -> Any:
        """The release in the library the table came in (an Arrow table where it came from a file)."""
        if self._like is None:
            return table_from_columns(self._escape_cells(self.columns))
        text = self.certificate.columns["quasi"]
        if self.certificate.escape_formulas:
            text = [escape(name) for name in text]
        return to_frame(self._escape_cells(self.columns), self._like, text=text)

    def _escape_cells(self, columns: Columns) -> Columns:
        """The cells as a file or frame has them."""
        return escape_columns(columns) if self.certificate.escape_formulas else columns

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the canonical CSV text."""
        write_whole(path, self._text)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file; untouched columns keep the types of a Parquet input."""
        write_parquet(self._escape_cells(self.columns), path, self._types)

    def report(self, private: bool = False, frontier: Frontier | None = None) -> str:
        """A page of HTML: made from release and certificate alone, or (private) one that compares with the original.

        `frontier`: what other settings would cost, for the private page.

        >>> import closeknit as ck
        >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
        >>> release.report().startswith("<!DOCTYPE html>")
        True
        """
        from closeknit.report.page import private_page, public_page

        return private_page(self.private_record(frontier)) if private else public_page(self.public_record())

    def public_record(self) -> PublicReport:
        """What the public page says, as data."""
        from closeknit.release.public import public_report, to_text_release

        return public_report(to_text_release(self))

    def private_record(self, frontier: Frontier | None = None, attacks: Sequence[Finding] | None = None) -> PrivateReport:
        """What the private page says, as data. Without the original what compares with it is left out, and it says so.

        `attacks`: findings of `closeknit.attack`, which may have taken its time and had more than the original.
        """
        from closeknit.release.private import private_report
        from closeknit.release.public import public_report, to_text_release

        texts = to_text_release(self)
        return private_report(texts, public_report(texts), self._origin, self._partition, self._recipe, frontier, attacks)

    def save(
        self,
        folder: str | PathLike[str],
        format: str | None = None,
        force: bool = False,
        report: bool = True,
        frontier: Frontier | None = None,
    ) -> None:
        """`folder/` with what may leave and `folder.private/` with what may not; each whole or not at all.

        `format` is "csv" or "parquet"; left out, a Parquet table gives a Parquet release and all else CSV. With `report` each
        folder gets a page, `report.html`, and what it says as `report.json`.
        """
        format = format or self._format
        choice("format", format, FORMATS)
        public = Path(folder).absolute()
        private = public.with_name(public.name + ".private")
        pages = self._pages(frontier) if report else ({}, {})

        def write_public(place: Path) -> None:
            self._write_public(place, format)
            _write_files(place, pages[0])

        def write_private(place: Path) -> None:
            self._write_private(place, format)
            _write_files(place, pages[1])

        save_folders(public, private, write_public, write_private, force, lambda name: OWN_FILES.fullmatch(name) is not None)

    def _pages(self, frontier: Frontier | None) -> tuple[dict[str, str], dict[str, str]]:
        """Files of the public and of the private report."""
        from closeknit.release.private import private_report
        from closeknit.release.public import public_report, to_text_release
        from closeknit.report.page import private_page, public_page

        texts = to_text_release(self)
        released = public_report(texts)
        home = private_report(texts, released, self._origin, self._partition, self._recipe, frontier)
        return report_files(released, public_page(released)), report_files(home, private_page(home))

    def _write_public(self, folder: Path, format: str) -> None:
        listed = []
        for name, columns in {"release": self.columns, **self._parts}.items():
            file = folder / f"{name}.{format}"
            if format == "csv":
                write_inside(file, self._text if columns is self.columns else canonical_blocks(self._escape_cells(columns)))
            else:
                write_parquet(self._escape_cells(columns), file, self._types)
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
            "_origin": None,
        }

    def summary(self) -> Summary:
        """What its certificate shows; the rows themselves are in `frame`."""
        found = self.certificate.summary()
        return replace(found, title=found.title.replace("Certificate", "Release", 1))

    def __str__(self) -> str:
        return str(self.certificate)


def report_files(record: Document, page: str) -> dict[str, str]:
    """A report as it is saved: the page, and what it says as data.

    >>> [*report_files(Certificate.model_construct(), "<p>")]
    ['report.html', 'report.json']
    """
    return {"report.html": page, "report.json": record.to_json()}


def _write_files(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        write_inside(folder / name, text.encode())

"""`Release`: written cells with their certificate, the only thing that can be saved; wherever its rows are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from closeknit.core.certificate import Certificate, Document, ReleaseFile
from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.grids import Summarized, Summary
from closeknit.core.params import choice
from closeknit.io.canonical import canonical_blocks
from closeknit.io.database import Database
from closeknit.io.folders import save_folders, write_inside
from closeknit.io.object_folders import ObjectFolder, is_object_address
from closeknit.io.source import Source
from closeknit.io.sources import place_of, source_of
from closeknit.release.origin import Origin
from closeknit.release.release_paths import (
    CERTIFICATE,
    CLASSES,
    FORMATS,
    PAGE,
    README,
    RECIPE,
    RECODING,
    REPORT,
    is_own_file,
    private_folder,
)

if TYPE_CHECKING:
    from closeknit.attacks.finding import Finding
    from closeknit.core.frontier import Frontier
    from closeknit.core.loss import LossBound
    from closeknit.release.public import TextRelease
    from closeknit.release.recoding import Recoding
    from closeknit.report.report_records import PrivateReport, PublicReport

MOST_SAVED = 100_000  # classes whose labels are saved for later rows


class Release(Summarized, ABC):
    """Written cells and their certificate; `LocalRelease` has its rows here, `SparkRelease` on Spark.

    Args:
        certificate: what is guaranteed and measured.
        recipe: how the release was computed, with its seed; private.
        format: the format of the file unless `save` says otherwise, "csv" or "parquet".
        partition: the class of every input row in input order, -1 = suppressed; private.
        origin: the table behind the release; private.
        advice: what a recipient has to know about the files, for `README.txt`.
    """

    def __init__(
        self,
        certificate: Certificate,
        recipe: Mapping[str, Any] | None,
        format: str,
        partition: NDArray[np.int32] | None = None,
        origin: Origin | None = None,
        advice: str | None = None,
    ) -> None:
        self._stated, self._recipe, self._format = certificate, recipe, format
        self._partition, self._origin, self._advice = partition, origin, advice

    def name_data(self, path: str | PathLike[str]) -> None:
        """State in the private recipe where the table is, if it was saved after it had been anonymized.

        Args:
            path: the file of the table.
        """
        self._recipe = {**(self._recipe or {}), "data": {"path": str(Path(path).resolve())}}

    @property
    def certificate(self) -> Certificate:
        """What is guaranteed, what was measured, and the content hash."""
        return self._stated

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """The written cells, as the certificate judges them."""

    @property
    @abstractmethod
    def frame(self) -> Any:
        """The release in the library the table came in."""

    @abstractmethod
    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the release as CSV.

        Args:
            path: the file, or on Spark the folder of part files.
        """

    @abstractmethod
    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the release as Parquet.

        Args:
            path: the file, or on Spark the folder of part files.
        """

    def _escape_release(self) -> Columns:
        """The cells as a file has them."""
        return self.columns

    @abstractmethod
    def _write_release(self, folder: Path, format: str) -> tuple[ReleaseFile, ...]:
        """Write the files of the release into a new folder, and list them for the certificate."""

    @property
    def loss(self) -> float:
        """General Loss Metric, variant A, weighted by importance, suppressed rows counted as 1."""
        return self._stated.loss.a

    @property
    def partition(self) -> NDArray[np.int32]:
        """Class of every input row in input order, -1 = suppressed. It is private."""
        if self._partition is None:
            raise BadInput("this release has no partition", right="only the process that computed the release has it")
        return self._partition

    @property
    def recoding(self) -> Recoding:
        """The labels of this release, to write later rows with them (`closeknit.apply`). It is private."""
        from closeknit.release.recoding import Recoding

        if self._origin is None or self._origin.method is None:
            raise BadInput("this release has no recoding", right="only the process that computed the release of a table has it")
        return Recoding.of(self.columns, self.certificate, self._origin)

    @cached_property
    def bound(self) -> LossBound:
        """A lower bound of the loss of every release of the same table under the same guarantees. It is private.

        It is computed when you first ask for it, in a minute at most; `closeknit.bound_loss` takes other times.

        >>> import closeknit as ck
        >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
        >>> 0 < release.bound.loss <= release.loss
        True
        """
        if self._origin is None or self._origin.method is None or "generalized" not in self._stated.form:
            raise BadInput("this release has no bound", right="only the process that computed ranges of a table has it")
        from closeknit.metrics.loss_bound import bound_table

        suppress = float((self._recipe or {}).get("suppress", 0)) > 0
        return bound_table(self._origin.schema.encode(self._origin.columns), self._origin.models, suppress=suppress)

    @property
    def duplicates(self) -> int | None:
        """Input rows that repeat another one exactly; None where the table is not available. It is private."""
        return None if self._origin is None else self._origin.duplicates

    @property
    def persons(self) -> NDArray[np.int64] | None:
        """Persons of each class; None where rows have no persons or the table is not available. It is private."""
        counted = None if self._origin is None else self._origin.classes
        return None if counted is None else counted().persons

    def report(self, private: bool = False, frontier: Frontier | None = None, target: str | None = None) -> str:
        """A page of HTML, from release and certificate alone or (private) compared with the original.

        Args:
            private: whether to compare with the original.
            frontier: what other settings would cost, for the private page.
            target: a column that a classifier trained on the release shall guess, for the private page.

        >>> import closeknit as ck
        >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
        >>> release.report().startswith("<!DOCTYPE html>")
        True
        """
        from closeknit.report.page import private_page, public_page

        return private_page(self.private_record(frontier, target=target)) if private else public_page(self.public_record())

    def public_record(self) -> PublicReport:
        """The content of the public page as data."""
        from closeknit.release.public import public_report, to_text_release

        return public_report(to_text_release(self))

    def private_record(
        self,
        frontier: Frontier | None = None,
        attacks: Sequence[Finding] | None = None,
        target: str | None = None,
        bound: LossBound | None = None,
    ) -> PrivateReport:
        """The content of the private page as data; without the original it lists what is left out.

        Args:
            frontier: what other settings would cost.
            attacks: findings of `closeknit.attack`, which may use more than the original.
            target: a column that a classifier trained on the release shall guess; it needs closeknit[learn].
            bound: what no release loses less than, such as `release.bound`.
        """
        from closeknit.release.public import public_report, to_text_release

        texts = to_text_release(self)
        made = self._private_record(texts, public_report(texts), frontier, attacks, target)
        return made.model_copy(update={"bound": bound})

    def _private_record(self, texts: TextRelease, released: PublicReport, *rest: Any) -> PrivateReport:
        from closeknit.release.private import private_report

        return private_report(texts, released, self._origin, self._partition, self._recipe, *rest)

    def save(
        self,
        folder: str | PathLike[str],
        format: str | None = None,
        force: bool = False,
        report: bool = True,
        frontier: Frontier | None = None,
    ) -> None:
        """Save the public files in `folder/` and the private ones in `folder.private/`; each whole or not at all.

        A folder in an object store (`s3://bucket/out`) gets the public files one after the other, its certificate last; the
        private folder is then `out.private/` in the current folder.

        Args:
            folder: the public folder.
            format: "csv" or "parquet"; by default the format of the table where it was Parquet, else CSV; on Spark Parquet.
            force: whether to replace an earlier release in these folders.
            report: whether each folder gets a page, `report.html`, and its content as `report.json`; on Spark neither does.
            frontier: what other settings would cost, for the private page.
        """
        format = format or self._format
        choice("format", format, FORMATS)
        public = Path(folder).absolute()
        pages = self._pages(frontier) if report else ({}, {})

        def write_public(place: Path) -> None:
            certificate = self.certificate.model_copy(update={"files": self._write_release(place, format)})
            advice = {README: self._advice} if self._advice else {}
            _write_files(place, {CERTIFICATE: certificate.to_json(), **advice, **pages[0]})

        def write_private(place: Path) -> None:
            recipe = {**(self._recipe or {}), "output": {"format": format}}
            _write_files(place, {RECIPE: yaml.safe_dump(recipe, sort_keys=False, allow_unicode=True), **pages[1]})
            if self._partition is not None:
                write_inside(place / CLASSES, canonical_blocks(_class_column(self._partition)))
            with suppress(BadInput):  # not every form has labels that later rows can get
                _write_files(place, {RECODING: self.recoding.to_json()} if self._stated.classes.count <= MOST_SAVED else {})

        if is_object_address(folder):
            ObjectFolder(str(folder), CERTIFICATE).save(write_public, write_private, force, is_own_file)
        else:
            save_folders(public, private_folder(public), write_public, write_private, force, is_own_file)

    def write_to(self, target: Any, replace: bool = False) -> None:
        """Write release, certificate and private files to a registered source, such as a database; all or nothing.

        Args:
            target: the source, or its address.
            replace: whether to replace an earlier release there.
        """
        place = source_of(target)
        if not isinstance(place, Source):
            raise BadInput("a release cannot be written here", file=place_of(target), right="save it in a folder, with save")
        private: dict[str, Any] = {RECIPE: yaml.safe_dump(self._recipe or {}, sort_keys=False, allow_unicode=True)}
        if self._partition is not None:
            private[CLASSES] = _class_column(self._partition)
        place.write(self._escape_release(), self.certificate.to_json(), private, replace)

    def to_sql(self, url: str, table: str, replace: bool = False, private_schema: str | None = None) -> None:
        """Write release, certificate, recipe and classes to a database, all or nothing.

        The certificate goes to `<table>_certificate`; recipe and classes to the private schema, which only you may use, or
        for SQLite and DuckDB to a private folder next to the file.

        Args:
            url: the address, as `ck.sql` takes it.
            table: the table, as `table` or `schema.table`.
            replace: whether to replace an earlier release in this table; any other table is left as it is.
            private_schema: the private schema (MariaDB: database; SQLite and DuckDB: folder); default: named after the
                schema of the table, with `_private` appended.

        >>> import closeknit as ck, tempfile
        >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     release.to_sql(f"sqlite:///{folder}/clinic.db", table="release")
        ...     ck.audit(ck.sql(f"sqlite:///{folder}/clinic.db", table="release")).ok
        True
        """
        self.write_to(Database(url, table, private_schema=private_schema), replace)

    def _pages(self, frontier: Frontier | None) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Files of the public and of the private report."""
        from closeknit.release.public import public_report, to_text_release
        from closeknit.report.page import private_page, public_page

        texts = to_text_release(self)
        released = public_report(texts)
        with ThreadPoolExecutor(1) as other:  # its charts are drawn in a second process, see `report.drawing`
            page = other.submit(public_page, released)
            private = self._private_record(texts, released, frontier)
            return report_files(released, page.result()), report_files(private, private_page(private))

    def summary(self) -> Summary:
        """What its certificate shows; the rows themselves are in `frame`."""
        found = self._stated.summary()
        return replace(found, title=found.title.replace("Certificate", "Release", 1))

    def __str__(self) -> str:
        return str(self._stated)


def report_files(record: Document, page: str) -> dict[str, str]:
    """A report as it is saved: the page, and its content as data.

    Args:
        record: the content.
        page: the page as HTML.

    >>> [*report_files(Certificate.model_construct(), "<p>")]
    ['report.html', 'report.json']
    """
    return {PAGE: page, REPORT: record.to_json()}


def _class_column(partition: NDArray[np.int32]) -> Columns:
    return Columns({"class": Column(np.arange(int(partition.max(initial=-1)) + 1), partition)}, len(partition))


def _write_files(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        write_inside(folder / name, text.encode())

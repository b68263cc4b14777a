"""`SparkRelease`: a release whose rows are on Spark. Executors write the part files; no row is collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn

from closeknit.core.certificate import Certificate, ReleaseFile
from closeknit.core.errors import BadInput
from closeknit.core.params import choice
from closeknit.release.release import Release
from closeknit.release.release_paths import RELEASE


class SparkRelease(Release):
    """Written cells and their certificate on Spark; `frame` is a Spark frame in the order of the release.

    `save` writes part files and no page: the folder must be one that all executors see, and `closeknit report folder/`
    computes the page where the release fits into memory.

    Args:
        frame: the written rows, a Spark frame.
        in_files: gives the frame with one partition for each file; its argument says whether cells are text.
        certificate: what is guaranteed, with the content hash.
        recipe: how the release was computed, with its seed; private.
    """

    def __init__(
        self, frame: Any, in_files: Callable[[bool], Any], certificate: Certificate, recipe: Mapping[str, Any]
    ) -> None:
        super().__init__(certificate, recipe, "parquet")
        self._frame, self._in_files = frame, in_files

    @property
    def frame(self) -> Any:
        """The release as a Spark frame."""
        return self._frame

    @property
    def columns(self) -> NoReturn:
        """The rows are on Spark: there are no columns here."""
        raise BadInput("the rows of this release are on Spark", right="use its frame, or read what save wrote")

    @property
    def partition(self) -> NoReturn:
        """The class of each input row is not kept: rows on Spark have no number."""
        right = "the private recipe.yaml that save writes repeats the release"
        raise BadInput("a release on Spark has no partition", right=right)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write a folder of CSV files, each with a header line.

        Args:
            path: the folder.
        """
        self._write(fspath(path), "csv")

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write a folder of Parquet files.

        Args:
            path: the folder.
        """
        self._write(fspath(path), "parquet")

    def _write(self, path: str, format: str) -> None:
        from closeknit.spark.session import translate_errors

        choice("format", format, ("csv", "parquet"))
        with translate_errors(path):
            frame = self._in_files(format == "csv")  # Spark would write numbers in another spelling than was certified
            writer = frame.write.mode("errorifexists")
            if format == "parquet":
                writer.parquet(path)
                return
            nothing = "" if len(frame.columns) > 1 else '""'  # an empty line is no row
            as_it_is = {"ignoreLeadingWhiteSpace": False, "ignoreTrailingWhiteSpace": False}
            writer.csv(path, header=True, quote='"', escape='"', emptyValue=nothing, nullValue=nothing, **as_it_is)

    def _write_release(self, folder: Path, format: str) -> tuple[ReleaseFile, ...]:
        place = folder / f"{RELEASE}.{format}"
        self._write(str(place), format)
        for mark in [*place.glob(".*.crc"), *place.glob("_SUCCESS")]:
            mark.unlink()
        return (ReleaseFile(name=place.name, rows=self._stated.rows, sha256=""),)

    def _pages(self, frontier: object) -> tuple[Mapping[str, str], Mapping[str, str]]:
        return {}, {}

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a release on Spark cannot be pickled: save it")

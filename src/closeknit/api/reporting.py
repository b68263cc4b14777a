"""Load a release from its folder to compute its reports again: publicly, or privately with recipe and original."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from closeknit.api.recipe import Recipe
from closeknit.api.release_cells import read_certified
from closeknit.core.classes import Classes
from closeknit.core.errors import BadInput
from closeknit.core.table import Partition, Table
from closeknit.io.canonical import content_hash
from closeknit.io.files import read, read_written
from closeknit.io.sources import place_of
from closeknit.release import LocalRelease, Origin, Release
from closeknit.release.release_paths import CLASSES, find_certificate, read_certificate, release_file


def load_release(folder: Any, recipe: str | PathLike[str] | None = None) -> Release:
    """Load a saved release with its certificate.

    Args:
        folder: the public folder, the file (on Spark the folder of part files) next to its certificate, or a `Source`.
        recipe: the private recipe, to read the original too, and the class of each row from `classes.csv` next to it.

    Raises:
        BadInput: release and certificate, or release and recipe, do not belong together.

    >>> import closeknit as ck, tempfile
    >>> release = ck.anonymize(ck.datasets.hospital(60), ck.datasets.hospital_schema(), [ck.KAnonymity(5)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/out", report=False)
    ...     load_release(f"{folder}/out").report() == release.report()
    True
    """
    file = release_file(folder)
    found = find_certificate(file)
    if found is None:
        raise BadInput("this is not a saved release", right="name its folder, or its table in a database")
    certificate = read_certificate(found)
    written, columns = read_certified(file, certificate)
    forms, origin, partition = (None, None, None) if recipe is None else _load_private(Path(recipe))
    release = LocalRelease(columns, certificate, recipe=forms, origin=origin, partition=partition)
    if content_hash(written) != certificate.content_sha256 or columns.rows != certificate.rows:
        what = "its content differs from what its certificate states"
        right = "use the certificate.json that was saved with it; 'closeknit audit' shows what differs"
        raise BadInput(what, file=place_of(file), right=right)
    rows = certificate.rows + certificate.suppressed
    if origin is not None and origin.columns.rows != rows:
        what = f"its table has {origin.columns.rows:,} rows, and the certificate states {rows:,}"
        raise BadInput(what, file=recipe, right="name the recipe of this release, with the table as it was")
    return release


def _load_private(recipe: Path) -> tuple[dict[str, object], Origin, NDArray[np.int32] | None]:
    """The recipe, the original that it names, and the class of each row where it was saved."""
    requested = Recipe.read(recipe)
    columns = read(requested.source, requested.csv, requested.schema.list_needed)
    partition = _classes(recipe.with_name(CLASSES), columns.rows)
    counted = (
        None
        if requested.schema.person is None or partition is None
        else build_person_counter(requested.schema.encode(columns), partition)
    )
    method = None if requested.stream else requested.method
    forms = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    return forms, Origin(columns, requested.schema, tuple(requested.models), method, requested.seed, counted), partition


def build_person_counter(table: Table, partition: NDArray[np.int32]) -> Callable[[], Classes] | None:
    """Counts classes in persons, for the private levels of attested guarantees; None where rows have no persons.

    Args:
        table: the rows.
        partition: the class of each input row.
    """
    return None if table.persons is None else lambda: table.count_classes(Partition.of(partition[table.rows]))


def _classes(file: Path, rows: int) -> NDArray[np.int32] | None:
    """The class of each row as it was saved; suppressed rows have none."""
    if not file.is_file():
        return None
    columns = read_written(file)
    if "class" not in columns or not all(str(value).isdecimal() for value in columns["class"].values.tolist()):
        raise BadInput("does not name the class of each row", file=file, right="use classes.csv as it was saved, or delete it")
    column = columns["class"]
    if len(column) != rows:
        raise BadInput(f"has {len(column):,} rows, and the table {rows:,}", file=file, right="name the recipe of this release")
    number = [int(str(value)) for value in column.values.tolist()]
    if max(number, default=0) >= rows:
        raise BadInput(f"there is no class {max(number):,}", file=file, right="use classes.csv as it was saved, or delete it")
    return np.array([*number, -1], dtype=np.int32)[column.codes]

"""`risk`: the re-identification risk of a table or release; `suda`: its special uniques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from closeknit.api.attacking import load_published
from closeknit.core.columns import Column, Columns
from closeknit.core.covering import list_known_quasi, raw_schema
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.exact import Number
from closeknit.core.params import choice, number
from closeknit.core.population_uniques import check_population
from closeknit.core.reading import find_stars
from closeknit.core.schema import Schema, require_schema
from closeknit.forms.release_reading import reading_of
from closeknit.io.csv import CsvFormat
from closeknit.io.files import read
from closeknit.io.sources import place_of
from closeknit.models.population import refuse_repeated_people
from closeknit.release import Release
from closeknit.release.release_paths import CERTIFICATE, read_certificate, release_file
from closeknit.risks.class_counts import ClassCounts
from closeknit.risks.risk import ROWS_OF_PERSONS, Risk, count_release, measure_risk
from closeknit.risks.sample_weights import parse_weights
from closeknit.risks.suda import MOST, Suda, find_special_uniques

MISSING = ("value", "wildcard")
PER_ROW = str | Sequence[Any] | np.ndarray | None  # the name of a column, or a value for each row


@dataclass(frozen=True)
class Loaded:
    """A table or release, its classes, and the schema of its raw columns."""

    counts: ClassCounts
    raw: Schema
    joined: bool  # whether the cells of a row belong together
    notes: tuple[str, ...] = ()


def risk(
    data: Any,
    schema: Schema | None = None,
    population: Any = None,
    sampling_fraction: Number | None = None,
    weights: PER_ROW = None,
    household: PER_ROW = None,
    *,
    missing: str = "value",
    certificate: Any = None,
    csv: CsvFormat | None = None,
) -> Risk:
    """Measure the re-identification risk of a raw table or of a release.

    Args:
        data: A raw table (frame, path, mapping of columns), a `Release`, or the file or public folder of a release.
        schema: The schema of the raw columns; a release with its certificate needs none.
        population: All people from whom the table was drawn, with their quasi-identifiers, one row each; or their number.
        sampling_fraction: Share of the population that is in the table, where there is no list.
        weights: Sample weights: the name of a column, or a number for each row.
        household: Households: the name of a column, or a value for each row.
        missing: "value": a missing cell is a value of its own; "wildcard": it matches every other, for comparison with
            tools that count so.
        certificate: The certificate of a release, if it is not next to its file.
        csv: Format of CSV files; what it leaves open is detected.

    A release in this process whose rows have persons is counted in persons, unless rows are needed for a population, weights
    or households.

    Returns:
        The risk from the prosecutor, the journalist and the marketer, population uniques, and the risk of single records.

    Raises:
        BadInput: The population does not cover the table, a weight is not positive, or a number is out of range.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(5)])
    >>> ck.risk(table, schema).prosecutor.highest, ck.risk(release).prosecutor.highest
    (1.0, 0.2)
    """
    choice("missing", missing, MISSING)
    found = _load(data, schema, certificate, csv, [name for name in (weights, household) if isinstance(name, str)])
    by_class = missing == "value" and weights is None and household is None and (population is None or _is_number(population))
    if by_class and isinstance(data, Release) and data.persons is not None:
        persons = ClassCounts.of_sizes(data.persons, found.counts.suppressed, "persons")
        found = replace(found, counts=persons, notes=tuple(note for note in found.notes if note != ROWS_OF_PERSONS))
    counts = found.counts.match_missing() if missing == "wildcard" else found.counts
    fraction = None if sampling_fraction is None else number("sampling_fraction", sampling_fraction, above=0, most=1)
    size, covered = None if fraction is None else counts.total / fraction, None
    if _is_number(population):
        size = check_population(str(population), counts.total)
        fraction = counts.total / size if size else None
    elif population is not None:
        people, names = _read_population(population, found, csv)
        covered, size = counts.count_population(people, found.raw, names), Fraction(people.rows)
        fraction = None
    by_row = _column_of(weights, "weights", counts.columns)
    return measure_risk(
        counts,
        covered=covered,
        population=size,
        fraction=fraction,
        weights=None if by_row is None else parse_weights(by_row, weights if isinstance(weights, str) else "weights"),
        household=_check_household(_column_of(household, "household", counts.columns), household),
        notes=found.notes,
    )


def _is_number(population: Any) -> bool:
    return isinstance(population, Real) and not isinstance(population, bool)


def suda(
    data: Any,
    schema: Schema | None = None,
    sampling_fraction: Number | None = None,
    *,
    most: int = MOST,
    certificate: Any = None,
    csv: CsvFormat | None = None,
) -> Suda:
    """Score every row by its minimal sample uniques: how few quasi-identifiers are enough to single it out.

    Args:
        data: A raw table or a release, as for `risk`.
        schema: The schema of the raw columns; a release with its certificate needs none.
        sampling_fraction: Share of the population that is in the table, for DIS and DIS-SUDA.
        most: Largest number of columns of a minimal sample unique.
        certificate: The certificate of a release, if it is not next to its file.
        csv: Format of CSV files; what it leaves open is detected.

    >>> import closeknit as ck
    >>> table = Columns.of({"sex": ["f", "f", "f", "m"], "job": ["cook", "cook", "nurse", "cook"]})
    >>> schema = ck.Schema(quasi={"sex": ck.flat(), "job": ck.flat()})
    >>> ck.suda(table, schema).scores.tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    fraction = None if sampling_fraction is None else number("sampling_fraction", sampling_fraction, above=0, most=1)
    counts = _load(data, schema, certificate, csv, []).counts
    cells = {name: _without_stars(column).coded for name, column in counts.cells.items()}
    return find_special_uniques(cells, counts.columns.rows, most, fraction)


def _load(data: Any, schema: Schema | None, certificate: Any, csv: CsvFormat | None, more: list[str]) -> Loaded:
    """Count a raw table with the columns of its schema and those of `more`, or the written cells of a release."""
    if schema is not None and not _is_release(data, certificate):
        schema = require_schema(schema)
        if not schema.quasi:
            right = "name the columns by which a person could be recognised"
            raise BadInput("no column is quasi, so there are no classes to measure", right=right)
        wanted = [*schema.quasi, *([schema.person] if schema.person else []), *more]
        columns = read(data, csv, lambda names: _choose(wanted, names))
        return Loaded(ClassCounts.of_table(columns, schema), schema, joined=True)
    published = load_published(data, certificate, csv)
    reading = reading_of(published)
    counts, notes = count_release(reading, published.certificate)
    return Loaded(counts, raw_schema(reading, schema), not reading.column_groups, notes)


def _is_release(data: Any, certificate: Any) -> bool:
    """Whether this is a release: an object or folder with a certificate, or a file that the certificate next to it lists."""
    if certificate is not None or isinstance(data, Release):
        return True
    if not isinstance(data, str | PathLike):
        return False
    stated = Path(data).parent / CERTIFICATE
    return release_file(data) != data or (
        stated.is_file() and Path(data).name in [file.name for file in read_certificate(stated).files]
    )


def _choose(wanted: Sequence[str], names: Sequence[str]) -> list[str]:
    for name in wanted:
        if name not in names:
            raise BadInput("is not in the table", column=name, right=suggest_name(name, names))
    return list(dict.fromkeys(wanted))


def _read_population(population: Any, found: Loaded, csv: CsvFormat | None) -> tuple[Columns, list[str]]:
    """The population and the quasi-identifiers that it has; one that lists a person twice is refused."""
    file = place_of(population) or "the population"
    if not found.joined:
        right = "leave the population out, or use a release with generalized cells"
        raise BadInput("the quasi-identifiers are published exactly, so classes cover no one else", right=right)
    raw = found.raw
    persons = [name for name in (*raw.unique, raw.person) if name]
    people = read(population, csv, lambda names: [*list_known_quasi(raw, names), *(name for name in persons if name in names)])
    if people.rows == 0:
        raise BadInput("there are no people in it", file=file, right="give at least one row")
    refuse_repeated_people(people, raw, file)
    return people, list_known_quasi(raw, people)


def _column_of(given: PER_ROW, what: str, columns: Columns) -> Column | None:
    """A column by its name, or from a value for each row."""
    if given is None:
        return None
    if isinstance(given, str):
        if given not in columns:
            raise BadInput(f"is named as {what} and is not in the table", column=given, right=suggest_name(given, columns))
        return columns[given]
    values = list(given)
    if len(values) != columns.rows:
        raise BadInput(f"{what} has {len(values):,} values for {columns.rows:,} rows", right="give one for each row")
    return Columns.of({what: [None if value is None or value != value else value for value in values]})[what]


def _check_household(column: Column | None, given: PER_ROW) -> Column | None:
    if column is not None and (column.codes < 0).any():
        name, row = given if isinstance(given, str) else "household", column.first_row(-1)
        raise BadInput("the household is missing", column=name, row=row, right="give every row a household")
    return column


def _without_stars(column: Column) -> Column:
    """A suppressed cell (`*`) singles no one out."""
    return Column(column.values, np.where(find_stars(column), -1, column.codes).astype(np.int32))

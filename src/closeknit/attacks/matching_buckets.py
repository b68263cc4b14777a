"""Matching buckets: is a person in the table, where groups of exact columns do not line up?

The adversary knows the quasi-identifiers of people and counts, for each of them, the buckets in which every column group has
matching cells. Combinations of cells that no row has match too. The number is the probability that a person of the table
matches more buckets than a person who is not in it (ties as halves): people of a population if one is given, else the
combinations that buckets admit and no row has. 1/2 means no information.

`risk`: 2 * number - 1, at least 0. It is 1 where all quasi-identifiers are in one group: buckets then admit only people of the
table, and whoever matches is in it.

Source: the paper on slicing, sec. 3 and 5.1; `attacks.membership` does the counting. Different from there: sensitive values are
not known, so they are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.covering import people_of
from closeknit.attacks.finding import Finding
from closeknit.attacks.membership import Membership, group_codes, membership
from closeknit.core.columns import Column, Columns, concat_columns
from closeknit.core.covering import Covering, list_known_quasi, raw_schema
from closeknit.core.errors import BadInput
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published, reading_of

UNWRITTEN = "\0"  # a value that no cell of the release covers: it matches no bucket


def matching_buckets(
    published: Published, original: Any, schema: Schema | None = None, population: Any = None, seed: int = 0
) -> Finding:
    """Measure how well buckets separate people of the table from others.

    Args:
        published: A release in column groups.
        original: The original rows as a frame, file or `Columns`.
        schema: Schema of the original rows; None reads it from the certificate as far as possible.
        population: People outside the table to compare with; None compares with combinations that no row has.
        seed: Seed of the sample where there are too many combinations to count.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.LDiversity("disease", 2)], form="multiset")
    >>> people = ck.datasets.hospital(900, seed=5)
    >>> [round(matching_buckets(release, table, schema, others).number, 1) for others in (None, people)]
    [0.5, 1.0]
    """
    reading = reading_of(published)
    if not reading.column_groups:
        right = "choose a form of column groups, or use delta_presence"
        raise BadInput("all cells of a row belong together in this release, so there are no buckets to match", right=right)
    tables = [people_of(each, reading, schema) for each in (original, population) if each is not None]
    raw = raw_schema(reading, schema)
    known = list_known_quasi(raw, reading.columns, *tables)
    together = [group for names in reading.column_groups if (group := [name for name in names if name in known])]
    recoded = concat_columns([recode_people(reading, each, raw, known) for each in tables])
    values, codes = group_codes(reading, recoded, together)
    assert codes is not None
    originals, others = np.split(codes, [tables[0].rows])
    found = membership(reading.class_of, values, originals, None, others if len(tables) > 1 else None, seed)
    return _build_finding(found, len(together), known)


def recode_people(reading: Reading, people: Columns, schema: Schema, names: list[str]) -> Columns:
    """Return these columns of people as the release writes them: the narrowest cell that covers each value.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.prefix()}, sensitive={"wage": ck.flat()})
    >>> reading = ck.bucketized().read(Columns.of({"bucket": [1, 1], "age": ["3*", "41"], "wage": [3, 4]}), schema)
    >>> recode_people(reading, Columns.of({"age": [31, 41, 50]}), schema, ["age"])["age"].cells()
    ['3*', '41', '\\x00']
    """
    return Columns({name: _recode_column(reading.columns, people, schema, name) for name in names}, people.rows)


def _recode_column(written: Columns, people: Columns, schema: Schema, name: str) -> Column:
    covering = Covering.of(written, people, schema, [name])
    over = covering.boxes_over(np.arange(len(covering.points))).tocoo()
    width = (covering.hi - covering.lo)[:, 0].astype(np.int64)
    order = np.lexsort((over.col, width[over.col], over.row))
    box = np.full(len(covering.points), -1, dtype=np.int64)
    points, first = np.unique(over.row[order], return_index=True)
    box[points] = over.col[order][first]
    cell = np.empty(len(covering.lo) + 1, dtype=np.int64)
    cell[covering.box_of], cell[-1] = written[name].codes, -1
    codes: NDArray[np.int64] = cell[box[covering.point_of]]
    unwritten = box[covering.point_of] < 0  # a value that is not written is not a missing one
    values = np.array([*written[name].values.tolist(), UNWRITTEN], dtype=object)
    return Column(values, np.where(unwritten, len(values) - 1, codes).astype(np.int32))


def _build_finding(found: Membership, parts: int, known: list[str]) -> Finding:
    against = found.outsiders if found.outsiders is not None else found.fakes
    exact = not found.fakes.count
    number = 1.0 if exact and against.auc is None else against.auc
    than = "people outside it" if found.outsiders is not None else "combinations that no row has"
    return Finding(
        attack="matching_buckets",
        knows="quasi-identifiers of people who may or may not be in the table",
        measure="probability of separating a person of the table from others (AUC)",
        number=number,
        risk=1.0 if exact else max(0.0, min(1.0, 2 * (number or 0.5) - 1)),
        sentence="Quasi-identifiers are published exactly: whoever matches a bucket is in the table."
        if exact
        else f"A person of the table matches more buckets than {than} with probability {number or 0.5:.3f}; 1/2 means no "
        "information.",
        details={
            "columns": ", ".join(known),
            "groups_of_columns": parts,
            "buckets": found.buckets,
            "originals": found.originals,
            "others": against.count,
            "others_admitted": found.admitted if found.outsiders is not None else against.count,
            "standard_error": against.auc_error,
        },
    )

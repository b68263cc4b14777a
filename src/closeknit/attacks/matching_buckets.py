"""Matching buckets: is somebody in the table, where groups of exact columns do not line up?

The attacker knows the quasi-identifiers of people and counts, for each of them, the buckets in which every group of columns has
cells that fit. Combinations of cells that are nobody's fit too. The number is the probability that somebody of the table fits
into more buckets than somebody who is not in it (ties as halves): people of a population where there is a file of one, and else
the combinations that buckets admit and no row has. 1/2 tells nothing.

`risk`: 2 * number - 1, at least 0. It is 1 where all quasi-identifiers stand in one group: then buckets admit nobody but people
of the table, and whoever fits is in it.

Source: the paper on slicing, sec. 3 and 5.1; see `attacks.membership`, which does the counting. Different from there: secrets
are not known, so they are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.covering import Covering, people_of, raw_schema
from closeknit.attacks.finding import Finding
from closeknit.attacks.membership import Membership, group_codes, membership
from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published, reading_of

UNWRITTEN = "\0"  # stands for values that no cell of the release covers: they fit nowhere


def matching_buckets(
    published: Published, original: Any, schema: Schema | None = None, population: Any = None, seed: int = 0
) -> Finding:
    """How well buckets tell people of the table from others.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.LDiversity("disease", 2)], form="multiset")
    >>> people = ck.datasets.hospital(900, seed=5)
    >>> [round(matching_buckets(release, table, schema, others).number, 1) for others in (None, people)]
    [0.5, 1.0]
    """
    reading = reading_of(published)
    if not reading.column_groups:
        right = "choose a form of column groups, or ask for delta_presence"
        raise BadInput("all cells of a row belong together in this release, so there are no buckets to match", right=right)
    people = people_of(original, reading, schema)
    others = None if population is None else people_of(population, reading, schema)
    raw = raw_schema(reading, schema)
    known = [name for name in raw.quasi if name in people and (others is None or name in others)]
    together = [group for names in reading.column_groups if (group := [name for name in names if name in known])]
    if not together:
        right = "known must be at least one of: " + ", ".join(raw.quasi)
        raise BadInput("none of the quasi-identifiers is known of these people", right=right)
    both = [people, *([others] if others is not None else [])]
    everybody = [recode_people(reading, each, raw, known) for each in both]
    values, codes = group_codes(reading, _stack_rows(everybody, known), together)
    assert codes is not None
    outside = None if others is None else codes[people.rows :]
    found = membership(reading.class_of, values, codes[: people.rows], None, outside, seed)
    return _build_finding(found, len(together), known)


def recode_people(reading: Reading, people: Columns, schema: Schema, names: list[str]) -> Columns:
    """These columns of people as the release writes them: the narrowest cell that covers each value.

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
    nobody = box[covering.point_of] < 0  # a value that is not written is no missing one
    values = np.array([*written[name].values.tolist(), UNWRITTEN], dtype=object)
    return Column(values, np.where(nobody, len(values) - 1, codes).astype(np.int32))


def _stack_rows(tables: list[Columns], names: list[str]) -> Columns:
    """Rows of one table after those of the other; both have the same distinct values."""
    columns = {name: Column(tables[0][name].values, np.concatenate([table[name].codes for table in tables])) for name in names}
    return Columns(columns, sum(table.rows for table in tables))


def _build_finding(found: Membership, parts: int, known: list[str]) -> Finding:
    against = found.outsiders if found.outsiders is not None else found.fakes
    clear = not found.fakes.count
    auc = against.auc
    number = 1.0 if clear and auc is None else auc
    than = "people outside it" if found.outsiders is not None else "combinations that nobody has"
    sentence = (
        "Quasi-identifiers stand in clear: whoever fits into a bucket is in the table."
        if clear
        else f"Somebody of the table fits into more buckets than {than} with probability {number or 0.5:.3f}; 1/2 is nothing."
    )
    return Finding(
        attack="matching_buckets",
        knows="quasi-identifiers of people who may or may not be in the table",
        measure="probability to tell somebody of the table from somebody else (AUC)",
        number=number,
        risk=1.0 if clear else max(0.0, min(1.0, 2 * (number or 0.5) - 1)),
        sentence=sentence,
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

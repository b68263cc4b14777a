"""Row join: two releases of the same people are joined row by row, by the combination of the values that both publish.

Sensitive and plain cells are written exactly. A combination of them that occurs once in each of two releases is one row of
both, and its person lies in the cells of both: fewer people fit these than either release leaves. Guarantees hold for each
release alone; no guarantee of one release bounds what a second one adds.

With the people's quasi-identifiers (the original rows, or a population), the persons left for a joined row are those whom the
cells of both releases cover. From the releases alone the adversary counts rows: a joined row shares both of its classes with
the rows that are joined likewise, and with at most as many others as each class has rows that are not joined.

The number is the share of rows for which one person is left, the right one where that is known. `k` is the size of the smallest
class of the attacked release. `risk`: 1 / (fewest persons left for a row).

Different from `intersection`: that intersects the values of one sensitive attribute that two releases leave for a known
person; here several attributes together identify the row.

Cost: one sort of both releases, and a walk through a tree of the people for each joined row. With a person column, persons are
counted where at most `LISTED` rows are left, and else rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import NotApplicable
from closeknit.attacks.covering import coverings, people_of, schema_of_other
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import format_count
from closeknit.attacks.possible_values import read_secret, true_texts
from closeknit.core.columns import Columns
from closeknit.core.reading import Reading
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published, reading_of
from closeknit.io.canonical import cell_texts
from closeknit.kernels.arrays import Int64
from closeknit.kernels.geometry.overlaps import box_tree, overlapping, overlapping_weight

Texts = NDArray[np.object_]
LISTED = 1000  # rows in both cells that are examined to count persons
ROOM = 1 << 22  # of them at a time


def row_join(one: Published, other: Published, people: Any = None, schema: Schema | None = None) -> Finding:
    """Join the rows of two releases, and count how many persons both leave for each.

    Args:
        one: The release under attack.
        other: Another release of the same people.
        people: The original rows, or a population, as a frame, file or `Columns`; None compares the releases alone.
        schema: Schema of the columns of `people` and of `one`; None reads it from the certificate as far as possible.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat(), "job": ck.flat()})
    >>> table = Columns.of({"age": [30, 31, 32, 33], "ill": ["flu", "gout"] * 2, "job": ["cook", "cook", "dean", "dean"]})
    >>> early = ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Mondrian())
    >>> late = ck.anonymize(table.take(np.array([1, 2])), schema, [ck.KAnonymity(2)], ck.Mondrian())
    >>> found = row_join(early, late, table, schema)
    >>> found.details["joined"], found.details["one_person"], found.details["right"]
    (2, 2, 2)
    """
    readings = [reading_of(one), reading_of(other)]
    if any(reading.column_groups for reading in readings):
        what = "the cells of a row do not belong together in both releases, so no row can be joined"
        raise NotApplicable(what, right="see intersection")
    names = _find_shared(readings)
    joined = _Joined.of(readings, names)
    if people is None:
        return _build_finding(_Remaining(joined.count_in_classes(readings)), readings[0], names)
    known = people_of(people, readings[0], schema, readings[1])
    return _build_finding(_count_persons(joined, readings, names, known, schema), readings[0], names)


def _find_shared(readings: Sequence[Reading]) -> list[str]:
    """Return the columns that both releases publish exactly."""
    of_each = [
        [name for name in (*reading.schema.sensitive, *reading.schema.plain) if name not in reading.retained]
        for reading in readings
    ]
    names = [name for name in of_each[0] if name in of_each[1]]
    if not names:
        what = "the releases have no sensitive or plain column in common that both write exactly, so no row can be joined"
        raise NotApplicable(what, right="give a release of the same people that has one")
    return names


def _texts(reading: Reading, name: str) -> tuple[NDArray[np.int32], list[str]]:
    """Return the code of each written cell (-1: it is not disclosed), and the text of each code."""
    if name in reading.schema.sensitive:
        return read_secret(reading, name)
    column = reading.cells(name)
    texts = [*cell_texts(column), ""]
    return np.where(column.codes < 0, len(texts) - 1, column.codes).astype(np.int32), texts


@dataclass(frozen=True, eq=False)
class _Joined:
    """Pairs of rows, one of each release, whose combination occurs once in both; row i of one is row i of the other."""

    one: Int64
    other: Int64

    @classmethod
    def of(cls, readings: Sequence[Reading], names: Sequence[str]) -> _Joined:
        sizes = [reading.columns.rows for reading in readings]
        known, keys = np.ones(sum(sizes), dtype=bool), []
        for name in names:
            place: dict[str, int] = {}
            parts = []
            for codes, texts in (_texts(reading, name) for reading in readings):
                shared = np.array([place.setdefault(text, len(place)) for text in texts], dtype=np.int64)
                parts.append(np.where(codes < 0, -1, shared[codes]))
            cells = np.concatenate(parts)
            known &= cells >= 0
            keys.append((cells + 1, len(place) + 1))
        group, count = groups(keys, sum(sizes))
        rows = [np.flatnonzero(known[: sizes[0]]), np.flatnonzero(known[sizes[0] :])]
        of_rows = [group[rows[0]], group[sizes[0] + rows[1]]]
        once = np.logical_and(*(np.bincount(of, minlength=count) == 1 for of in of_rows))
        first, second = (row[once[of]][np.argsort(of[once[of]])] for row, of in zip(rows, of_rows, strict=True))
        return cls(first, second)

    def count_in_classes(self, readings: Sequence[Reading]) -> Int64:
        """Count the rows that may lie in both classes of each pair: those joined likewise, and the room left in each class."""
        classes = [reading.class_of[rows] for reading, rows in zip(readings, (self.one, self.other), strict=True)]
        counts = [len(reading.classes) for reading in readings]
        both, pairs = groups(list(zip(classes, counts, strict=True)), len(self.one))
        spare = [
            reading.classes.sizes[of] - np.bincount(of, minlength=count)[of]
            for reading, of, count in zip(readings, classes, counts, strict=True)
        ]
        together: Int64 = np.bincount(both, minlength=pairs)[both] + np.minimum(*spare)
        return together


@dataclass(frozen=True, eq=False)
class _Remaining:
    """How many are left for each joined row, and whether the only one is the right one (None: unknown)."""

    counts: Int64
    right: NDArray[np.bool_] | None = None
    unit: tuple[str, str] = ("row", "rows")


def _count_persons(
    joined: _Joined, readings: Sequence[Reading], names: Sequence[str], people: Columns, schema: Schema | None
) -> _Remaining:
    """Count the persons whom the cells of both releases cover."""
    schemas = [schema, schema_of_other(readings[1], schema)]
    found = [coverings(reading, people, of)[0] for reading, of in zip(readings, schemas, strict=True)]
    boxes = [covering.box_of[rows] for covering, rows in zip(found, (joined.one, joined.other), strict=True)]
    lo = np.hstack([covering.lo[box] for covering, box in zip(found, boxes, strict=True)])
    hi = np.hstack([covering.hi[box] for covering, box in zip(found, boxes, strict=True)])
    points = np.hstack([covering.points[covering.point_of] for covering in found])
    tree = box_tree(points, points, np.ones(people.rows))
    left = overlapping_weight(tree, lo, hi).astype(np.int64)
    counts, right = left.copy(), np.zeros(len(left), dtype=bool)
    person, most = _person_of(people, schema)
    few = np.flatnonzero((left > 0) & (left <= most))
    compared = _compare_texts(joined, readings[0], names, people, schema)
    for block in np.split(few, np.flatnonzero(np.diff(np.cumsum(left[few]) // ROOM)) + 1):
        pair, row = np.repeat(block, left[block]), overlapping(tree, lo[block], hi[block], left[block])
        different = np.unique(pair * (person.max() + 1) + person[row]) // (person.max() + 1)
        counts[block] = np.bincount(different, minlength=len(left))[block]
        same = np.logical_and.reduce([true[row] == written[pair] for true, written in compared])
        right[pair[same]] = True
    return _Remaining(counts, right if compared else None, ("person", "persons"))


def _person_of(people: Columns, schema: Schema | None) -> tuple[Int64, int]:
    """Return the person of each row, and the largest number of rows whose persons are counted: 1 where each row is a person."""
    rows = np.arange(people.rows)
    if schema is None or schema.person is None or schema.person not in people:
        return rows, 1
    codes = people[schema.person].codes.astype(np.int64)
    return np.where(codes < 0, codes.max() + 1 + rows, codes), LISTED


def _compare_texts(
    joined: _Joined, reading: Reading, names: Sequence[str], people: Columns, schema: Schema | None
) -> list[tuple[Texts, Texts]]:
    """Return by column the values of the people and those of the joined rows; none where the people's values are unknown."""
    if any(name not in people for name in names):
        return []
    found = []
    for name in names:
        codes, texts = _texts(reading, name)
        true = np.array(true_texts(people, schema, name), dtype=object)
        found.append((true, np.array(texts, dtype=object)[codes[joined.one]]))
    return found


def _build_finding(left: _Remaining, reading: Reading, names: Sequence[str]) -> Finding:
    rows, joined = reading.columns.rows, len(left.counts)
    k = int(reading.classes.sizes.min(initial=rows))
    single = left.counts == 1
    wrong = single & ~left.right if left.right is not None else np.zeros(joined, dtype=bool)
    counts = left.counts[(left.counts > 0) & ~wrong]
    one, below, fewest = int((counts == 1).sum()), int((counts < k).sum()), int(counts.min()) if len(counts) else 0
    median = float(np.median(counts)) if len(counts) else None
    by, unit = ", ".join(names), left.unit
    knows = "another release of the same people"
    return Finding(
        attack="row_join",
        knows=knows if unit[0] == "row" else f"{knows}, and quasi-identifiers of the people",
        measure=f"share of rows with one {unit[0]} left",
        number=one / rows if rows else None,
        risk=1 / fewest if fewest else 0.0,
        sentence=f"{joined:,} of {format_count(rows, 'row')} can be joined with the other release by {by}; "
        f"{'the classes' if unit[0] == 'row' else 'the cells'} of both then leave at least {fewest:,} {unit[1]} for each, "
        f"{median:,.10g} in the median, fewer than the {k:,} of the smallest class for {format_count(below, 'row')}, and "
        f"exactly one{'' if left.right is None else ', the right one,'} for {one:,}."
        if median is not None
        else f"No row can be joined with the other release by {by}: no combination occurs once in both and fits both cells.",
        details={
            "columns": by,
            "rows": rows,
            "joined": joined,
            "joined_share": joined / rows if rows else None,
            "fewest": fewest,
            "median": median,
            "k": k,
            "below_k": below,
            f"one_{unit[0]}": one,
            "right": None if left.right is None else one,
            "wrong": int(wrong.sum()),
            "no_one_left": int((left.counts == 0).sum()),
        },
    )

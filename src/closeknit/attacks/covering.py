"""Who may stand behind which written row: quasi cells as boxes, and people whose quasi-identifiers are known as points in them.

Every column is coded by the values that the people have, so that a written range, node or mask is a run of codes; a cell that
none of them fits covers nobody. `*` covers everybody, a missing value too. Equal rows are one box and equal people one point,
and boxes are looked up in a tree: nothing here takes rows times people.

Where only groups of columns belong together, there is one covering for each group: cells of another group say nothing of a row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closeknit.attacks.beliefs import NotApplicable
from closeknit.core.cell_ranges import cell_ranges
from closeknit.core.columns import Column, Columns
from closeknit.core.dates import date_of_labels
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.kinds import BadValue, Kind, flat, prefix, texts_of
from closeknit.core.reading import Reading
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.core.tree import STAR
from closeknit.core.written_kinds import Nodes, WrittenNodes
from closeknit.forms.release_reading import Published, reading_of
from closeknit.io.files import read
from closeknit.kernels.geometry.overlaps import BoxTree, box_tree, overlapping, overlapping_weight

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Covering:
    """Boxes of written cells and points of people in the columns `names`.

    >>> from closeknit.core.kinds import numeric
    >>> people = Columns.of({"age": [30, 41, 30, 60]})
    >>> written = Columns.of({"age": ["[30, 45]", "[30, 45]", "41"]})
    >>> found = Covering.of(written, people, Schema(quasi={"age": numeric()}), ["age"])
    >>> found.rows.tolist(), found.people_in_boxes.tolist(), found.rows_over_points().tolist()
    ([2, 1], [3, 1], [2.0, 3.0, 0.0])
    """

    names: tuple[str, ...]
    lo: Int32  # [b, d]
    hi: Int32
    box_of: Int32  # of every written row
    points: Int32  # [p, d]
    point_of: Int32  # of every person
    domains: tuple[Domain, ...]  # of the people's values, by column

    @classmethod
    def of(cls, written: Columns, people: Columns, schema: Schema, names: Sequence[str]) -> Covering:
        """All of `names` are columns of both; `schema` says what the raw ones are."""
        coded = [_encode_column(written[name], people[name], schema, name) for name in names]
        box_of, boxes = groups([(written[name].codes + 1, len(written[name].values) + 1) for name in names], written.rows)
        point_of, points = groups([(codes, domain.size + 1) for codes, domain, _ in coded], people.rows)
        row, person = np.empty(boxes, dtype=np.int64), np.empty(points, dtype=np.int64)
        row[box_of], person[point_of] = np.arange(written.rows), np.arange(people.rows)
        lo = np.column_stack([ends[0][written[name].codes[row]] for name, (_, _, ends) in zip(names, coded, strict=True)])
        hi = np.column_stack([ends[1][written[name].codes[row]] for name, (_, _, ends) in zip(names, coded, strict=True)])
        at = np.column_stack([codes[person] for codes, _, _ in coded])
        return cls(tuple(names), lo, hi, box_of, at, point_of, tuple(domain for _, domain, _ in coded))

    @cached_property
    def rows(self) -> Int64:
        """Written rows of each box."""
        return np.bincount(self.box_of, minlength=len(self.lo))

    @cached_property
    def people(self) -> Int64:
        """People at each point."""
        return np.bincount(self.point_of, minlength=len(self.points))

    @cached_property
    def people_in_boxes(self) -> Int64:
        """People whom each box covers."""
        tree = box_tree(self.points, self.points, self.people.astype(np.float64))
        return overlapping_weight(tree, self.lo, self.hi).astype(np.int64)

    def rows_over_points(self, weights: Reals | None = None) -> Reals:
        """Weight of all boxes that cover each point; left out, a box weighs its rows."""
        given = self.rows.astype(np.float64) if weights is None else weights
        return overlapping_weight(box_tree(self.lo, self.hi, given), self.points, self.points)

    @cached_property
    def _counted(self) -> tuple[BoxTree, Int64]:
        tree = box_tree(self.lo, self.hi, np.ones(len(self.lo)))
        return tree, overlapping_weight(tree, self.points, self.points).astype(np.int64)

    def boxes_over(self, points: Int64 | Int32) -> csr_array:
        """Which boxes cover these points: a 0/1 matrix, [points, boxes]."""
        tree, counts = self._counted
        some, counts = self.points[points], counts[points]
        found = overlapping(tree, some, some, counts)
        starts = np.concatenate([[0], np.cumsum(counts)])
        return csr_array((np.ones(len(found), dtype=np.int32), found, starts), shape=(len(some), len(self.lo)))


def coverings(reading: Reading, people: Columns, schema: Schema | None = None) -> list[Covering]:
    """One for each group of columns that belong together and have quasi-identifiers that are known of the people.

    >>> import closeknit as ck
    >>> from closeknit.forms.release_reading import reading_of
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> (found,) = coverings(reading_of(ck.anonymize(table, schema, [ck.KAnonymity(5)])), table, schema)
    >>> found.names, bool((found.people_in_boxes >= 5).all())
    (('age', 'sex', 'zip', 'job', 'admission'), True)
    """
    raw = raw_schema(reading, schema)
    known = [name for name in raw.quasi if name in reading.columns and name in people]
    if not known:
        right = "known must be at least one of: " + ", ".join(raw.quasi)
        raise BadInput("none of the quasi-identifiers is known of these people", right=right)
    together = reading.column_groups or (tuple(known),)
    groups_of = [[name for name in group if name in known] for group in together]
    return [Covering.of(reading.columns, people, raw, names) for names in groups_of if names]


def covering_of(published: Published, people: Any, schema: Schema | None = None) -> Covering:
    """People under the rows of a release whose cells belong together; where quasi-identifiers stand in clear it is refused.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> int(covering_of(ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.StackAndDeal()), table, schema).people.sum())
    60
    """
    reading = reading_of(published)
    if reading.column_groups:
        right = "ask for matching_buckets, or for record_linkage of a secret"
        raise NotApplicable("quasi-identifiers stand in clear here, and a row of them tells no more than they do", right=right)
    (covering,) = coverings(reading, people_of(people, reading, schema), schema)
    return covering


def people_of(people: Any, reading: Reading, schema: Schema | None = None, other: Reading | None = None) -> Columns:
    """Of a frame, file or `Columns` the columns known of people: those of the schema, of a release and of another one."""
    raw = raw_schema(reading, schema)
    wanted = list(dict.fromkeys([*raw.used, *reading.schema.used, *(() if other is None else other.schema.used)]))
    columns = read(people, None, lambda names: [name for name in wanted if name in names])
    if columns.rows == 0:
        raise BadInput("there are no people in this table", right="give at least one row")
    return columns


def raw_schema(reading: Reading, schema: Schema | None) -> Schema:
    """What the raw columns are: as somebody says it, or else as far as a certificate tells."""
    if schema is not None:
        return schema
    told = {name: _raw_kind(name, kind) for name, kind in reading.schema.quasi.items()}
    return Schema(quasi=told, sensitive=reading.schema.sensitive, plain=reading.schema.plain)


def schema_of_other(reading: Reading, schema: Schema | None) -> Schema:
    """What the raw columns are under another release of the people: as its certificate declares it, else as `schema` says."""
    if schema is None:
        return raw_schema(reading, None)
    quasi = {
        name: (schema.quasi.get(name) or _raw_kind(name, kind)) if isinstance(kind, Nodes) else kind
        for name, kind in reading.schema.quasi.items()
    }
    missing = tuple(dict.fromkeys([*reading.schema.missing, *schema.missing]))
    return schema.model_copy(update={"quasi": quasi, "missing": missing})


def _raw_kind(name: str, kind: Kind) -> Kind:
    """A certificate lists the written nodes of a tree that was made from data: single values, masks or dates."""
    if not isinstance(kind, WrittenNodes | Nodes):
        return kind
    if any(node.endswith(STAR) for node in kind.nodes):
        return prefix()
    if kind.groups:
        with suppress(BadValue):
            dates = date_of_labels(list(kind.nodes))
            dates.losses(list(kind.nodes))
            return dates
        what = "its certificate does not tell which values its nodes stand for"
        raise BadInput(what, column=name, right="give the schema, or the recipe")
    return flat()


def _encode_column(written: Column, people: Column, schema: Schema, name: str) -> tuple[Int32, Domain, tuple[Int32, Int32]]:
    """Codes of the people, their domain, and both ends of every distinct written cell, the missing one last."""
    codes, domain, _ = schema.encode_column(people, name, schema.quasi[name])
    texts = ["" if text in schema.missing else text for text in texts_of(written.values)] + [""]
    return codes, domain, _ends(domain, texts, written, name)


def _ends(domain: Domain, texts: list[str], written: Column, name: str) -> tuple[Int32, Int32]:
    """Runs of codes; 1 to 0 where a cell covers none."""
    fits = _fits(domain, texts)
    lo, hi = np.ones(len(texts), dtype=np.int32), np.zeros(len(texts), dtype=np.int32)
    try:
        low, high = cell_ranges(domain, [text if fit else "" for text, fit in zip(texts, fits, strict=True)])
    except BadValue as bad:
        raise BadInput(bad.what, column=name, row=written.first_row(bad.index), right=bad.right) from None
    told = ~np.isnan(low)
    if domain.counts_leaves:
        lo[told], hi[told] = low[told], high[told]
    elif domain.numbers is not None:
        lo[told] = np.searchsorted(domain.numbers, low[told], "left")
        hi[told] = np.searchsorted(domain.numbers, high[told], "right") - 1
    for special, least in (("", domain.size), (STAR, 0)):
        same = np.array([text == special for text in texts])
        lo[same], hi[same] = least, domain.size
    return lo, hi


def _fits(domain: Domain, texts: list[str]) -> list[bool]:
    """Whether a cell names a value, node or mask of this domain; numbers are all read."""
    if domain.tree is None:
        return [True] * len(texts)
    labels = set(domain.tree.labels)
    heads = [text.rstrip(STAR) for text in texts]
    masks = {head for head, text in zip(heads, texts, strict=True) if head not in ("", text) and text not in labels}
    leaves = sorted(domain.texts)  # what is longer than a head and begins with it stands right behind it
    after = {head: bisect_right(leaves, head) for head in masks}
    begin = {head for head, place in after.items() if place < len(leaves) and leaves[place].startswith(head)}
    return [text in labels or (head in begin and head != text) for head, text in zip(heads, texts, strict=True)]

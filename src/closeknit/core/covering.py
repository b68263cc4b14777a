"""Which people a written row may belong to: quasi cells as boxes, and people with known quasi-identifiers as points in them.

Every column is coded by the values that the people have, so that a written range, node or mask is a run of codes; a cell that
none of them fits covers no one. `*` covers everyone, an empty cell those whose value is missing. Equal rows are one box and
equal people one point, and boxes are looked up in a tree: nothing here takes rows times people.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from closeknit.core.cell_ranges import cell_ranges
from closeknit.core.columns import Column, Columns
from closeknit.core.dates import date_of_labels
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.kinds import BadValue, Kind, flat, prefix, texts_of
from closeknit.core.reading import Reading
from closeknit.core.row_sorting import groups, row_of_each
from closeknit.core.schema import Schema
from closeknit.core.tree import STAR
from closeknit.core.written_kinds import Nodes, WrittenNodes
from closeknit.kernels.arrays import Int32, Int64, Reals
from closeknit.kernels.geometry.overlaps import BoxTree, box_tree, overlapping, overlapping_weight, weigh_boxes

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
        """Build the covering in `names`, columns of both tables; `schema` describes the raw ones."""
        coded = [_encode_column(written[name], people[name], schema, name) for name in names]
        box_of, boxes = groups([written[name].coded for name in names], written.rows)
        point_of, points = groups([(codes, domain.size + 1) for codes, domain, _ in coded], people.rows)
        row, person = row_of_each(box_of, boxes), row_of_each(point_of, points)
        lo = np.column_stack([ends[0][written[name].codes[row]] for name, (_, _, ends) in zip(names, coded, strict=True)])
        hi = np.column_stack([ends[1][written[name].codes[row]] for name, (_, _, ends) in zip(names, coded, strict=True)])
        at = np.column_stack([codes[person] for codes, _, _ in coded])
        return cls(tuple(names), lo, hi, box_of, at, point_of, tuple(domain for _, domain, _ in coded))

    @cached_property
    def rows(self) -> Int64:
        """Number of written rows of each box."""
        return np.bincount(self.box_of, minlength=len(self.lo))

    @cached_property
    def people(self) -> Int64:
        """Number of people at each point."""
        return np.bincount(self.point_of, minlength=len(self.points))

    @cached_property
    def people_in_boxes(self) -> Int64:
        """Number of people whom each box covers; a box of single values is looked up, the others are searched in a tree."""
        single = (self.lo == self.hi).all(axis=1)
        covered = np.empty(len(self.lo), dtype=np.int64)
        covered[single] = self._count_equal(self.lo[single])
        if not single.all():
            covered[~single] = self._count_inside(self.lo[~single], self.hi[~single])
        return covered

    def _count_inside(self, lo: Int32, hi: Int32) -> Reals:
        """Number of people in each box; the tree is built over whichever are fewer, boxes or points."""
        people = self.people.astype(np.float64)
        if len(lo) < len(self.points):
            return weigh_boxes(box_tree(lo, hi, np.ones(len(lo))), self.points, self.points, people)
        return overlapping_weight(box_tree(self.points, self.points, people), lo, hi)

    def _count_equal(self, cells: Int32) -> Int64:
        """Number of people with exactly these codes."""
        rows = np.concatenate([self.points, cells])
        alike, count = groups([(rows[:, j], domain.size + 1) for j, domain in enumerate(self.domains)], len(rows))
        at = np.bincount(alike[: len(self.points)], self.people, minlength=count).astype(np.int64)
        return at[alike[len(self.points) :]]

    def rows_over_points(self, weights: Reals | None = None) -> Reals:
        """Return the weight of all boxes that cover each point; a box weighs its rows unless weights are given."""
        given = self.rows.astype(np.float64) if weights is None else weights
        return overlapping_weight(box_tree(self.lo, self.hi, given), self.points, self.points)

    @cached_property
    def _tree_and_counts(self) -> tuple[BoxTree, Int64]:
        tree = box_tree(self.lo, self.hi, np.ones(len(self.lo)))
        return tree, overlapping_weight(tree, self.points, self.points).astype(np.int64)

    def boxes_over(self, points: Int64 | Int32) -> csr_array:
        """Return the boxes that cover these points as a 0/1 matrix, [points, boxes]."""
        from scipy.sparse import csr_array

        tree, counts = self._tree_and_counts
        some, counts = self.points[points], counts[points]
        found = overlapping(tree, some, some, counts)
        starts = np.concatenate([[0], np.cumsum(counts)])
        return csr_array((np.ones(len(found), dtype=np.int32), found, starts), shape=(len(some), len(self.lo)))


def list_known_quasi(raw: Schema, *tables: Container[str], attacked: str | None = None) -> list[str]:
    """Return the quasi-identifiers that all tables have, except one that is under attack; there must be at least one.

    >>> from closeknit.core.kinds import flat
    >>> list_known_quasi(Schema(quasi={"age": flat(), "sex": flat()}), ["age", "sex"], ["sex"])
    ['sex']
    """
    known = [name for name in raw.quasi if name != attacked and all(name in table for table in tables)]
    if not known:
        right = "give at least one of: " + ", ".join(raw.quasi)
        raise BadInput("none of the quasi-identifiers of these people is known", right=right)
    return known


def raw_schema(reading: Reading, schema: Schema | None) -> Schema:
    """Return the schema of the raw columns: as given, else as far as the certificate declares it."""
    if schema is not None:
        return schema
    quasi = {name: raw_kind(name, kind) for name, kind in reading.schema.quasi.items()}
    return Schema(quasi=quasi, sensitive=reading.schema.sensitive, plain=reading.schema.plain)


def raw_kind(name: str, kind: Kind) -> Kind:
    """Return the raw kind of a column whose certificate lists written nodes: single values, masks or dates."""
    if not isinstance(kind, WrittenNodes | Nodes):
        return kind
    if any(node.endswith(STAR) for node in kind.nodes):
        return prefix()
    if kind.groups:
        with suppress(BadValue):
            dates = date_of_labels(list(kind.nodes))
            dates.losses(list(kind.nodes))
            return dates
        what = "its certificate does not state which values its nodes contain"
        raise BadInput(what, column=name, right="give the schema, or the recipe")
    return flat()


def _encode_column(written: Column, people: Column, schema: Schema, name: str) -> tuple[Int32, Domain, tuple[Int32, Int32]]:
    """Return the codes of the people, their domain, and both ends of every distinct written cell, the missing one last."""
    codes, domain, _ = schema.encode_column(people, name, schema.quasi[name])
    texts = ["" if text in schema.missing else text for text in texts_of(written.values)] + [""]
    return codes, domain, _ends(domain, texts, written, name)


def _ends(domain: Domain, texts: list[str], written: Column, name: str) -> tuple[Int32, Int32]:
    """Return each cell as a run of codes; 1 to 0 where it covers none."""
    fits = _fits(domain, texts)
    lo, hi = np.ones(len(texts), dtype=np.int32), np.zeros(len(texts), dtype=np.int32)
    try:
        low, high = cell_ranges(domain, [text if fit else "" for text, fit in zip(texts, fits, strict=True)])
    except BadValue as bad:
        raise bad.locate(name, written.first_row(bad.index)) from None
    known = ~np.isnan(low)
    if domain.counts_leaves:
        lo[known], hi[known] = low[known], high[known]
    elif domain.numbers is not None:
        lo[known] = np.searchsorted(domain.numbers, low[known], "left")
        hi[known] = np.searchsorted(domain.numbers, high[known], "right") - 1
    for special, least in (("", domain.size), (STAR, 0)):
        same = np.array([text == special for text in texts])
        lo[same], hi[same] = least, domain.size
    return lo, hi


def _fits(domain: Domain, texts: list[str]) -> list[bool]:
    """Return whether each cell names a value, node or mask of this domain; numbers are all read."""
    if domain.tree is None:
        return [True] * len(texts)
    labels = set(domain.tree.labels)
    heads = [text.rstrip(STAR) for text in texts]
    masks = {head for head, text in zip(heads, texts, strict=True) if head not in ("", text) and text not in labels}
    leaves = sorted(domain.texts)  # a text that begins with a head and is longer comes right after it
    after = {head: bisect_right(leaves, head) for head in masks}
    begin = {head for head, place in after.items() if place < len(leaves) and leaves[place].startswith(head)}
    return [text in labels or (head in begin and head != text) for head, text in zip(heads, texts, strict=True)]

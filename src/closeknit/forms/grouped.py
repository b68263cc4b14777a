"""Forms that keep cells exact and break their links: inside a bucket every group of columns stands in an order of its own.

A published table has the number of the bucket first. Buckets stand in the order of their content, and the cells of a column
group in their own sorted order inside the bucket, so there is no permutation to guess and rows do not line up: what is told
of a bucket is, per group, which combinations it has and how often.

Source: the paper on slicing, sec. 3.1, definitions 1 to 3 and 5. Different from the source: sorted, not permuted (a permutation
whose seed is guessed can be undone); a column in two groups is refused, because it would join them again.

Whoever wants to learn a secret sees it in classes of its own: a bucket and, in the group that holds the secret, the cells
beside it that he may know. For a secret that stands alone these are the buckets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import CodedSecret, Secret, join_secrets, parts
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.kinds import texts_of
from closeknit.core.reading import Persons, Reading, list_known_columns, secret_codes, without_markers
from closeknit.core.row_sorting import Coded, groups, row_order
from closeknit.core.schema import Schema
from closeknit.core.table import Form, Partition, Table, WrittenTable
from closeknit.forms.cell_labels import cell_order, class_labels, compact, distinct, label_column, refuse_levels

ColumnGroups = tuple[tuple[str, ...], ...]
Order = NDArray[np.int64]


class Grouped(Form, ABC):
    """What such forms share; each says which columns stand together."""

    name: ClassVar[str]
    number: str  # the column that tells the bucket
    levels: Mapping[str, int | str] | None = None  # of columns that are written coarser (column generalization)

    @abstractmethod
    def column_groups(self, schema: Schema) -> ColumnGroups:
        """The columns that stand together."""

    @property
    def added(self) -> tuple[str, ...]:
        """The number of the bucket."""
        return (self.number,)

    @property
    def advice(self) -> str | None:
        """Nobody should join cells that do not belong together."""
        return (
            f"Rows do not line up: inside a bucket (column '{self.number}') every group of columns is sorted by itself; cells "
            "of one row belong to one person only where their columns stand in one group; certificate.json says which do.\n"
        )

    def notes(self, schema: Schema) -> list[str]:
        """Exact cells show who is there."""
        together = "; ".join(", ".join(group) for group in self.column_groups(schema))
        return [
            f"rows do not line up: inside a bucket only these columns belong together: {together}",
            "quasi-identifiers are not generalized: whoever knows them may see that a person is in the release",
        ]

    def parts(self, columns: Columns, schema: Schema) -> dict[str, Columns]:
        """One file for each group of columns."""
        self.check(schema)
        column_groups = self.column_groups(schema)
        return {
            name: Columns({column: columns[column] for column in (self.number, *group)}, columns.rows)
            for name, group in zip(self.part_names(len(column_groups)), column_groups, strict=True)
        }

    def part_names(self, count: int) -> list[str]:
        """How the files of the groups begin."""
        return [f"slice_{i}" for i in range(1, count + 1)]

    def write(self, table: Table, partition: Partition, seed: int = 0) -> WrittenTable:
        """Buckets in the order of their content, and in each of them every column group sorted by itself."""
        self.check(table.schema)
        refuse_levels(self.levels or {}, table)
        partition = Partition.of(partition.class_of)  # numbers without gaps: an empty bucket is none
        kept = np.flatnonzero(partition.class_of >= 0)
        bucket_of = partition.class_of[kept]
        cells = {name: write_column(table, name, kept, (self.levels or {}).get(name)) for name in table.schema.published}
        column_groups = self.column_groups(table.schema)
        ranks = [groups([cell_order(cells[name][0]) for name in group], len(kept)) for group in column_groups]
        orders = [row_order([(bucket_of, partition.count), rank], len(kept)) for rank in ranks]
        place = _places(bucket_of, partition.count, [rank[order] for (rank, _), order in zip(ranks, orders, strict=True)])
        orders = [order[np.argsort(place[bucket_of[order]], kind="stable")] for order in orders]
        numbers = place[bucket_of[orders[0]]]
        written = {self.number: Column(np.arange(1, partition.count + 1), numbers.astype(np.int32))}
        order_of = {name: order for group, order in zip(column_groups, orders, strict=True) for name in group}
        written |= {name: column.take(order_of[name]) for name, (column, _) in cells.items()}
        return WrittenTable(
            Columns(written, len(kept)), kept[orders[0]], {name: kept[order] for name, order in order_of.items()}
        )

    def read(
        self, columns: Columns, schema: Schema, persons: Persons | None = None, joints: Sequence[tuple[str, ...]] = ()
    ) -> Reading:
        """Buckets by their number, and each secret in the classes in which it is seen."""
        self.check(schema)
        if self.number not in columns:
            raise BadInput("is not in the release", column=self.number, right="it tells which rows are in one bucket")
        column_groups = self.column_groups(schema)
        marked = {name: without_markers(column, schema.missing) for name, column in columns.items()}
        bucket_of, count = groups([_encode_column(marked[self.number])], columns.rows)
        heads = None if persons is None else next(iter(persons.values()))
        buckets = Classes.of(bucket_of, count, {}, heads)
        seen: dict[Secret, Reading] = {}
        secrets: list[Secret] = [*schema.sensitive, *joints]
        for secret in secrets:
            names = parts(secret)
            group = next(group for group in column_groups if names[0] in group)
            if not set(names) <= set(group):
                continue  # nothing joins them
            known = [self.number, *list_known_columns(group, secret, schema)]
            class_of, classes = groups([_encode_column(marked[name]) for name in known], columns.rows)
            coded: list[CodedSecret] = [secret_codes(columns[name], name, schema) for name in names]
            codes = {secret: coded[0] if isinstance(secret, str) else join_secrets(coded)}
            behind = None if persons is None else persons[names[0]]
            seen[secret] = Reading(columns, schema, class_of, Classes.of(class_of, classes, codes, behind), tuple(known))
        return Reading(columns, schema, bucket_of, buckets, (self.number,), column_groups, seen)

    def disorder(self, columns: Columns, schema: Schema) -> list[str]:
        """Groups of columns whose cells are not sorted in their buckets: cells that stand in one row may be of one person."""
        bucket_of, count = groups([_encode_column(columns[self.number])], columns.rows)
        in_turn = row_order([(bucket_of, count)], columns.rows)
        same = np.diff(bucket_of[in_turn]) == 0
        found = []
        for group in self.column_groups(schema):
            rank, _ = groups([cell_order(columns[name]) for name in group], columns.rows)
            if len(wrong := np.flatnonzero(same & (np.diff(rank[in_turn]) < 0))):
                bucket = [*texts_of(columns[self.number].values), ""][columns[self.number].codes[in_turn[wrong[0]]]]
                together = ", ".join(group)
                found.append(f"{self.number} {bucket}: the cells of {together} are not sorted, so rows may line up with others")
        return found

    def list_unsorted(self, columns: Columns, schema: Schema) -> list[str]:
        """Buckets that are not numbered from 1 in the order of their contents, rows that are not in the order of buckets."""
        numbers = columns[self.number]
        bucket_of, _ = cell_order(numbers)
        count = int(bucket_of.max()) + 1
        right = f"{self.number} must count from 1 in the order of what the buckets hold"
        if (np.diff(bucket_of) < 0).any() or sorted(texts_of(numbers.values)) != sorted(map(str, range(1, count + 1))):
            return [f"the buckets are not numbered in their order: {right}"]
        ranks = [groups([cell_order(columns[name]) for name in group], columns.rows)[0] for group in self.column_groups(schema)]
        later = np.diff(_places(bucket_of.astype(np.int32), count, ranks)) > 0
        return [] if later.all() else [f"{self.number} {int(np.argmin(later)) + 2:,} is out of place: {right}"]

    def check(self, schema: Schema) -> None:
        """Every published column in exactly one group, and more than one group."""
        column_groups = self.column_groups(schema)
        if len(column_groups) < 2:
            raise BadInput("all columns stand in one group, which is the table in clear", right="give at least two groups")
        placed: set[str] = set()
        for name in (name for group in column_groups for name in group):
            if name not in schema.published:
                raise BadInput(
                    "stands in a group and is not published", column=name, right=suggest_name(name, schema.published)
                )
            if name in placed:
                what = "stands in two groups: it would join what the groups keep apart"
                raise BadInput(what, column=name, right="put it into one group")
            placed.add(name)
        for name in schema.published:
            if name not in placed:
                role = "plain and " if name in schema.plain else ""
                raise BadInput(f"is {role}in no group of columns", column=name, right="put it into a group or drop it")
        if not isinstance(self.number, str) or not self.number.strip():
            raise BadInput("the number of the bucket has no name", right="name it: number='group'")
        if self.number in schema.published:
            right = "give the number of the bucket another name: number='group'"
            raise BadInput("is a column of the table and the name of the bucket's number", column=self.number, right=right)
        for name in self.levels or {}:
            if name in schema.sensitive:
                raise BadInput("has a level and is sensitive", column=name, right="levels are those of quasi columns alone")


def write_column(table: Table, name: str, rows: Order, level: int | str | None = None) -> tuple[Column, Coded]:
    """A column of these rows as it is written, and codes in the order of what is written."""
    schema = table.schema
    if name in schema.sensitive:
        place = list(schema.sensitive).index(name)
        shown, codes = table.shown[place], table.sensitive[rows, place]
        column = Column(shown, np.where(codes >= len(shown), -1, codes).astype(np.int32))
        return compact(column), (codes, len(shown) + 1)
    if name in schema.plain:
        plain = table.plain[name].take(rows)
        return compact(plain), (plain.codes + 1, len(plain.values) + 1)
    place = list(schema.quasi).index(name)
    domain = table.quasi_domains[place]
    codes, leaf_of = distinct(table.quasi[rows, place].astype(np.int64), domain.size + 1)
    leaves = codes.astype(np.int32)
    labels, label_of = class_labels(domain, leaves, leaves, False, level)
    return label_column(labels, label_of[leaf_of]), (label_of[leaf_of], len(labels))


def encode_known(table: Table, form: Grouped, secret: Secret) -> NDArray[np.int32]:
    """What may be known of every row of a table beside a secret, per group of columns, before anything is written."""
    every = np.arange(len(table))
    codes = []
    for group in form.column_groups(table.schema):
        known = list_known_columns(group, secret, table.schema)
        cells = [write_column(table, name, every, (form.levels or {}).get(name))[1] for name in known]
        codes.append(groups(cells, len(table))[0])
    return np.stack(codes, axis=1)


def _encode_column(column: Column) -> Coded:
    return column.codes + 1, len(column.values) + 1


def _places(bucket_of: NDArray[np.int32], count: int, ranks: list[NDArray[np.int32]]) -> NDArray[np.int64]:
    """The place of each bucket in the order of their contents; `ranks` stand bucket by bucket, sorted inside each.

    Buckets of equal content are interchangeable.
    """
    sizes = np.bincount(bucket_of, minlength=count)
    ends = np.cumsum(sizes)
    contents = [rank.astype(">u4").view("V4") for rank in ranks]  # big-endian: bytes compare as the numbers do
    keys = [tuple(content[a:b].tobytes() for content in contents) for a, b in zip(ends - sizes, ends, strict=True)]
    place = np.empty(count, dtype=np.int64)
    place[sorted(range(count), key=keys.__getitem__)] = np.arange(count)
    return place

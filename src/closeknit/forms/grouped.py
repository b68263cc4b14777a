"""Forms with exact cells and broken links: inside a bucket every group of columns is sorted separately.

The number of the bucket is the first column. Buckets are sorted by their content, and the cells of a column group inside the
bucket by themselves, so there is no permutation to guess and rows do not line up: the release discloses, per bucket and group,
the combinations of values and their counts.

Source: the paper on slicing, sec. 3.1, definitions 1 to 3 and 5. Different from the source: sorted, not permuted (a permutation
whose seed is guessed can be undone); a column in two groups is refused, because it would join them again.

An adversary sees a sensitive attribute in its own equivalence classes: the bucket and the cells of the attribute's group that
the adversary may know. For an attribute that is a group by itself, these are the buckets.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

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


class Grouped(Form):
    """Base class of these forms; a subclass defines the groups of columns."""

    number: str  # name of the column with the number of the bucket
    levels: Mapping[str, int | str] | None = None  # of columns that are written coarser (column generalization)

    @abstractmethod
    def column_groups(self, schema: Schema) -> ColumnGroups:
        """The groups of columns."""

    @property
    def added(self) -> tuple[str, ...]:
        """The number of the bucket."""
        return (self.number,)

    @property
    def advice(self) -> str | None:
        """Cells of one row must not be joined across groups."""
        return (
            f"Rows do not line up: inside a bucket (column '{self.number}') every group of columns is sorted separately; cells "
            "of one row belong to one person only if their columns are in one group; certificate.json lists the groups.\n"
        )

    def notes(self, schema: Schema) -> list[str]:
        """The groups, and that exact cells disclose membership."""
        together = "; ".join(", ".join(group) for group in self.column_groups(schema))
        return [
            f"rows do not line up: inside a bucket only these columns belong together: {together}",
            "quasi-identifiers are not generalized: an adversary who knows them may see that a person is in the release",
        ]

    def parts(self, columns: Columns, schema: Schema) -> dict[str, Columns]:
        """One file per group of columns."""
        self.check(schema)
        column_groups = self.column_groups(schema)
        return {
            name: Columns({column: columns[column] for column in (self.number, *group)}, columns.rows)
            for name, group in zip(self.part_names(len(column_groups)), column_groups, strict=True)
        }

    def part_names(self, count: int) -> list[str]:
        """The beginning of each file's name."""
        return [f"slice_{i}" for i in range(1, count + 1)]

    def write(self, table: Table, partition: Partition, seed: int = 0) -> WrittenTable:
        """Buckets in the order of their content, and in each of them every column group sorted separately."""
        self.check(table.schema)
        refuse_levels(self.levels or {}, table)
        partition = Partition.of(partition.class_of)  # numbers without gaps: no empty buckets
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
        behind = {name: kept[order] for name, order in order_of.items()}
        return WrittenTable(Columns(written, len(kept)), kept[orders[0]], behind)

    def read(
        self, columns: Columns, schema: Schema, persons: Persons | None = None, joints: Sequence[tuple[str, ...]] = ()
    ) -> Reading:
        """Buckets by their number, and each sensitive attribute in the classes in which it is seen."""
        self.check(schema)
        if self.number not in columns:
            raise BadInput("is not in the release", column=self.number, right="add it: it has the number of the bucket")
        column_groups = self.column_groups(schema)
        marked = {name: without_markers(column, schema.missing) for name, column in columns.items()}
        bucket_of, count = groups([marked[self.number].coded], columns.rows)
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
            class_of, classes = groups([marked[name].coded for name in known], columns.rows)
            coded: list[CodedSecret] = [secret_codes(columns[name], name, schema) for name in names]
            codes = {secret: coded[0] if isinstance(secret, str) else join_secrets(coded)}
            behind = None if persons is None else persons[names[0]]
            seen[secret] = Reading(columns, schema, class_of, Classes.of(class_of, classes, codes, behind), tuple(known))
        return Reading(columns, schema, bucket_of, buckets, (self.number,), column_groups, seen)

    def disorder(self, columns: Columns, schema: Schema) -> list[str]:
        """Groups of columns whose cells are not sorted in their buckets: cells of one row may then belong to one person."""
        bucket_of, count = groups([columns[self.number].coded], columns.rows)
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

    def sort_keys(self, columns: Columns, schema: Schema) -> list[str]:
        """The number of the bucket, then group by group: in a bucket each group is sorted, so all of them agree."""
        return [self.number, *(name for group in self.column_groups(schema) for name in group)]

    def list_unsorted(self, columns: Columns, schema: Schema) -> list[str]:
        """Buckets that are not numbered from 1 in the order of their contents, rows that are not in the order of buckets."""
        numbers = columns[self.number]
        bucket_of, _ = cell_order(numbers)
        count = int(bucket_of.max()) + 1
        right = f"{self.number} must count from 1 in the order of the buckets' contents"
        if (np.diff(bucket_of) < 0).any() or sorted(texts_of(numbers.values)) != sorted(map(str, range(1, count + 1))):
            return [f"the buckets are not numbered in their order: {right}"]
        ranks = [groups([cell_order(columns[name]) for name in group], columns.rows)[0] for group in self.column_groups(schema)]
        later = np.diff(_places(bucket_of.astype(np.int32), count, ranks)) > 0
        return [] if later.all() else [f"{self.number} {int(np.argmin(later)) + 2:,} is out of place: {right}"]

    def check(self, schema: Schema) -> None:
        """Every published column in exactly one group, and more than one group."""
        column_groups = self.column_groups(schema)
        if len(column_groups) < 2:
            raise BadInput("all columns are in one group, which is the table itself", right="give at least two groups")
        placed: set[str] = set()
        for name in (name for group in column_groups for name in group):
            if name not in schema.published:
                raise BadInput("is in a group but not published", column=name, right=suggest_name(name, schema.published))
            if name in placed:
                raise BadInput("is in two groups, which would join them", column=name, right="put it into one group")
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
                raise BadInput("has a level and is sensitive", column=name, right="only quasi-identifiers have levels")


def write_column(table: Table, name: str, rows: Order, level: int | str | None = None) -> tuple[Column, Coded]:
    """A column of these rows as it is written, and codes in the order of the written cells."""
    schema = table.schema
    if name in schema.sensitive:
        place = list(schema.sensitive).index(name)
        shown, codes = table.shown[place], table.sensitive[rows, place]
        column = Column(shown, np.where(codes >= len(shown), -1, codes).astype(np.int32))
        return compact(column), (codes, len(shown) + 1)
    if name in schema.plain:
        plain = table.plain[name].take(rows)
        return compact(plain), plain.coded
    place = list(schema.quasi).index(name)
    domain = table.quasi_domains[place]
    codes, leaf_of = distinct(table.quasi[rows, place].astype(np.int64), domain.size + 1)
    leaves = codes.astype(np.int32)
    labels, label_of = class_labels(domain, leaves, leaves, False, level)
    return label_column(labels, label_of[leaf_of]), (label_of[leaf_of], len(labels))


def encode_known(table: Table, form: Grouped, secret: Secret) -> NDArray[np.int32]:
    """The known part of every row of a table per group of columns, given the wanted attribute, before anything is written."""
    every = np.arange(len(table))
    codes = []
    for group in form.column_groups(table.schema):
        known = list_known_columns(group, secret, table.schema)
        cells = [write_column(table, name, every, (form.levels or {}).get(name))[1] for name in known]
        codes.append(groups(cells, len(table))[0])
    return np.stack(codes, axis=1)


def _places(bucket_of: NDArray[np.int32], count: int, ranks: list[NDArray[np.int32]]) -> NDArray[np.int64]:
    """The place of each bucket in the order of their contents; buckets of equal content are interchangeable.

    `ranks` are given bucket by bucket, sorted inside each.
    """
    sizes = np.bincount(bucket_of, minlength=count)
    ends = np.cumsum(sizes)
    contents = [rank.astype(">u4").view("V4") for rank in ranks]  # big-endian: bytes compare as the numbers do
    keys = [tuple(content[a:b].tobytes() for content in contents) for a, b in zip(ends - sizes, ends, strict=True)]
    place = np.empty(count, dtype=np.int64)
    place[sorted(range(count), key=keys.__getitem__)] = np.arange(count)
    return place

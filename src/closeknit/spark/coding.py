"""From a Spark frame to leaf codes: the driver gets histograms, the executors get dictionaries, and no row moves.

Rows are read once and kept in packs, each with its own distinct values. The driver counts these values of every judged column,
the schema binds them as it would a whole table, and integers replace them. The driver holds one entry per distinct value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import CodedSecret, Secret, join_secrets, parts
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput, refuse_empty
from closeknit.core.limits import MOST_COMBINATIONS
from closeknit.core.row_sorting import groups, row_of_each, row_order
from closeknit.core.schema import Schema, sort_values
from closeknit.core.table import Table
from closeknit.io.batches import Block, block_from, cells_in, codes_in, encode_block, numbers_in, read_lists, texts_block
from closeknit.spark.maps import Types, quote_name
from closeknit.spark.packed_frame import PackedFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST = MOST_COMBINATIONS  # distinct values of all columns, or combinations of sensitive values, that the driver holds
NATIVE = {"string": "string", "boolean": "boolean", "date": "date", "timestamp": "date", "timestamp_ntz": "date"}
WHOLE = ("tinyint", "smallint", "int", "bigint")
WHO = "who"  # the person of a row: at first the cell, later a number
ODD = np.uint64(0x9E3779B97F4A7C15)


class ValueCounts(NamedTuple):
    """The distinct values of a column, the rows of each, and the rows without a value."""

    values: NDArray[np.generic]
    counts: NDArray[np.int64]
    none: int

    @property
    def rows(self) -> int:
        """All rows."""
        return int(self.counts.sum()) + self.none


@dataclass(frozen=True, eq=False)
class Combinations:
    """The combinations of codes of several sensitive attributes that occur, in order: each is a leaf of one flat domain.

    >>> flu = Domain(("flu", "gout"))
    >>> both = Combinations.of(np.array([[1, 0], [0, 1]]), np.array([3, 4]), [flu, flu])
    >>> both.domain.texts, both.reference.tolist(), both.place(np.array([[1, 0], [0, 1]])).tolist()
    (('flu; gout', 'gout; flu'), [4, 3, 0], [1, 0])
    """

    codes: NDArray[np.int32]
    reference: NDArray[np.int64]
    domain: Domain

    @classmethod
    def of(cls, codes: NDArray[np.integer], counts: NDArray[np.int64], domains: Sequence[Domain]) -> Combinations:
        """From each combination once, in any order; those with a suppressed part (-1) are not counted."""
        shown = (codes >= 0).all(axis=1)
        leaves, counts = codes[shown].astype(np.int32), counts[shown]
        place, domain = join_secrets([(leaves[:, j], known) for j, known in enumerate(domains)])
        order = np.argsort(place)
        return cls(leaves[order], np.append(counts[order], 0).astype(np.int64), domain)

    def place(self, codes: NDArray[np.integer]) -> NDArray[np.int32]:
        """The combination of each row; -1 if a part of it is suppressed."""
        mine, known = np.zeros(len(codes), dtype=np.int64), np.zeros(len(self.codes), dtype=np.int64)
        for column, theirs in zip(codes.T, self.codes.T, strict=True):
            width = int(theirs.max(initial=0)) + 1
            found, known = np.unique(known * width + theirs, return_inverse=True)
            mine = np.searchsorted(found, mine * width + np.maximum(column, 0))
        return np.where((codes >= 0).all(axis=1), mine, -1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Coding:
    """What an executor knows of the whole table: `head` has its domains and references, and no rows."""

    head: Table
    leaves: Mapping[str, Mapping[Any, int]]  # by column: the leaf of each raw value; None is the missing one
    counts: Mapping[str, NDArray[np.int64]]  # by column: the rows of each leaf, the missing one last
    rows: int
    plain: Mapping[str, str]  # plain columns and their Spark types
    joints: Mapping[tuple[str, ...], Combinations] = field(default_factory=dict)
    tallies: Mapping[Secret, NDArray[np.int64]] = field(default_factory=dict)  # of all rows, counted in persons

    @property
    def names(self) -> list[str]:
        """Columns of coded rows: q0, q1, ... and s0, s1, ..."""
        return [*self.quasi_names, *self.secret_names]

    @property
    def quasi_names(self) -> list[str]:
        """Columns of quasi codes."""
        return [f"q{j}" for j in range(len(self.head.schema.quasi))]

    @property
    def secret_names(self) -> list[str]:
        """Columns of sensitive codes."""
        return [f"s{j}" for j in range(len(self.head.schema.sensitive))]

    @property
    def plain_names(self) -> list[str]:
        """Plain columns: p0, p1, ..., which cannot clash with the others."""
        return [f"p{j}" for j in range(len(self.plain))]

    @property
    def all_names(self) -> list[str]:
        """All columns of coded rows."""
        return [*self.names, *self.plain_names, *self.person_names]

    @property
    def person_names(self) -> list[str]:
        """The column of persons, if the schema has one."""
        return [] if self.head.schema.person is None else [WHO]

    @property
    def place_names(self) -> list[str]:
        """Columns of the codes that cuts use: those of the row, or of its person."""
        return self.quasi_names if self.head.schema.person is None else [f"h{j}" for j in range(len(self.head.schema.quasi))]

    def leaves_of(self, secret: Secret, block: Block) -> NDArray[np.int32]:
        """The leaf of each coded row in a sensitive attribute, or in several as one."""
        names = list(self.head.schema.sensitive)
        codes = codes_in(block, [f"s{names.index(name)}" for name in parts(secret)])
        return codes[:, 0] if isinstance(secret, str) else self.joints[secret].place(codes)

    def own(self, secret: Secret) -> Histogram:
        """The histogram of a sensitive attribute over all rows, as `Table.own`."""
        domain = self.head.secret(secret)[1] if isinstance(secret, str) else self.joints[secret].domain
        reference = self.head.references[secret]
        values = np.flatnonzero(reference).astype(np.int32)
        return Histogram(np.array([0, len(values)]), values, reference[values], reference, domain)

    def one_class(self) -> Classes:
        """All rows as one class."""
        size = np.array([self.rows])
        return Classes(size, size, {secret: self.own(secret) for secret in self.head.references})

    def add_joints(self, coded: PackedFrame, joints: Iterable[tuple[str, ...]]) -> Coding:
        """The same coding, with these sensitive attributes also counted together."""
        names = list(self.head.schema.sensitive)
        domains = {name: self.head.secret(name)[1] for name in names}
        same = {name: (np.arange(domain.size + 1, dtype=np.int32), domain) for name, domain in domains.items()}
        found = {
            joint: find_combinations(coded, [f"s{names.index(name)}" for name in joint], [same[name] for name in joint])
            for joint in joints
        }
        for joint, counted in found.items():
            if counted is None:
                right = "request the guarantee for each of them separately"
                raise BadInput(f"{' and '.join(joint)} have more than {MOST:,} combinations together", right=right)
        known = {joint: counted for joint, counted in found.items() if counted is not None}
        references: dict[Secret, NDArray[np.int64]] = dict(self.head.references)
        references |= {joint: counted.reference for joint, counted in known.items()}
        return replace(self, head=replace(self.head, references=references), joints=known)

    def table(self, block: Block) -> tuple[Table, NDArray[np.int64]]:
        """Some coded rows as a table in canonical order, with the domains and references of all rows; and that order."""
        schema, d = self.head.schema, len(self.head.schema.quasi)
        codes = codes_in(block, self.names)
        cells = cells_in(block, self.plain_names)
        plain = {name: sort_values(cells[place]) for name, place in zip(self.plain, self.plain_names, strict=True)}
        domains = (*self.head.quasi_domains, *self.head.sensitive_domains)
        keys: list[Any] = [(codes[:, j], domain.size + 1) for j, domain in enumerate(domains)]
        keys += [column.coded for column in plain.values()]
        persons = numbers_in(block, WHO).astype(np.int64) if self.person_names else None
        keys += [] if persons is None else [(persons, int(persons.max(initial=0)) + 1)]
        order = row_order(keys, len(codes))
        codes, rows = codes[order], np.arange(len(order))
        names = list(schema.sensitive)
        joints: dict[tuple[str, ...], CodedSecret] = {
            joint: (counted.place(codes[:, [d + names.index(name) for name in joint]]), counted.domain)
            for joint, counted in self.joints.items()
        }
        quasi, sensitive = np.ascontiguousarray(codes[:, :d]), np.ascontiguousarray(codes[:, d:])
        plain = {name: column.take(order) for name, column in plain.items()}
        persons = None if persons is None else persons[order]
        found = replace(self.head, quasi=quasi, sensitive=sensitive, plain=plain, persons=persons, rows=rows, joints=joints)
        return found, order


def find_combinations(packs: PackedFrame, names: Sequence[str], secrets: Sequence[CodedSecret]) -> Combinations | None:
    """The combinations of codes that occur, and their rows; None if they are too many.

    Args:
        packs: coded rows.
        names: columns of codes.
        secrets: for each column the leaf of every code, and the domain of these leaves.
    """
    found = count_combinations(packs, names, MOST)
    if found is None:
        return None
    codes = codes_in(found, names)
    leaves = [leaf_of[codes[:, j]] for j, (leaf_of, _) in enumerate(secrets)]
    return Combinations.of(np.stack(leaves, axis=1), numbers_in(found, "rows"), [domain for _, domain in secrets])


def count_combinations(packs: PackedFrame, names: Sequence[str], most: int) -> Block | None:
    """Codes of several columns that occur together, and their `rows`; None if there are more than `most`."""
    names = list(names)
    counted = sum_counts(packs.each(lambda block: count_codes(block, names)), dict.fromkeys(names, "int"))
    found = counted.limit(most + 1).toArrow()
    return found if found.num_rows <= most else None


def count_codes(block: Block, names: Sequence[str]) -> Block:
    """Codes of several columns that occur together in a block, and their `rows`."""
    codes = codes_in(block, names)
    first = codes.min(axis=0, initial=0)
    sizes = codes.max(axis=0, initial=0).astype(np.int64) - first + 1
    group, count = groups([(codes[:, j] - first[j], int(size)) for j, size in enumerate(sizes)], len(codes))
    one = row_of_each(group, count)
    each = {name: codes[one, j] for j, name in enumerate(names)}
    return block_from({**each, "rows": np.bincount(group, minlength=count).astype(np.int64)})


def hash_codes(codes: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """A number below `count` for each row, the same for equal codes, and evenly distributed.

    >>> hash_codes(np.array([[1, 2], [1, 2]], np.int32), 5).tolist() in [[i, i] for i in range(5)]
    True
    """
    mixed = np.zeros(len(codes), dtype=np.uint64)
    for column in codes.T:
        mixed = (mixed ^ column.astype(np.uint64)) * ODD
        mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(count)).astype(np.int64)


def sum_counts(packs: PackedFrame, types: Types) -> DataFrame:
    """The counts of all packs, added up where these columns are equal."""
    from pyspark.sql import functions as F

    return packs.rows({**types, "rows": "bigint"}).groupBy(*types).agg(F.sum("rows").alias("rows"))


# Values of columns, counted ---------------------------------------------------------------------------------------------------


def count_values(packs: PackedFrame, names: Sequence[str]) -> dict[str, ValueCounts]:
    """The distinct values of each column and their rows."""
    names = list(names)
    found = _count_cells(packs, names)
    few = found.limit(MOST + 1).toArrow()
    if few.num_rows > MOST:
        place, size = max(found.groupBy("place").count().collect(), key=lambda row: row["count"])
        right = f"all columns together may have {MOST:,}: give it a coarser kind (numeric(bins=), a shorter prefix)"
        raise BadInput(f"has {size:,} distinct values", column=names[place], right=right)
    lists, cells = read_lists(few), [{} for _ in names]  # type: tuple[dict[str, list[Any]], list[dict[str | None, int]]]
    for place, cell, rows in zip(lists["place"], lists["cell"], lists["rows"], strict=True):
        cells[place][cell] = rows
    return {name: _read_values(mine) for name, mine in zip(names, cells, strict=True)}


def count_singletons(packs: PackedFrame, names: Sequence[str]) -> dict[str, int]:
    """The number of values of each column that occur in one row only; a missing cell is a value too."""
    from pyspark.sql import functions as F

    names = list(names)
    if not names:
        return {}
    found = _count_cells(packs, names).filter(F.col("rows") == 1).groupBy("place").count().collect()
    return {name: sum(row["count"] for row in found if row["place"] == place) for place, name in enumerate(names)}


def _count_cells(packs: PackedFrame, names: Sequence[str]) -> DataFrame:
    return sum_counts(packs.each(lambda block: _count_block(block, names)), {"place": "int", "cell": "string"})


def _count_block(block: Block, names: Sequence[str]) -> Block:
    columns = cells_in(block, names)
    places: list[int] = []
    cells: list[str | None] = []
    rows: list[int] = []
    for place, name in enumerate(names):
        column = columns[name]
        none = int((column.codes < 0).sum())
        cells += [*_tag_values(column.values), *([None] if none else [])]
        rows += [*column.counts.tolist(), *([none] if none else [])]
        places += [place] * (len(cells) - len(places))
    return texts_block({"place": np.array(places, np.int32), "cell": cells, "rows": np.array(rows, np.int64)})


def _tag_values(values: NDArray[np.generic]) -> list[str]:
    """Values as text with their type: Spark gets the values of all columns as one column."""
    if values.dtype.kind == "M":
        return ["d" + str(day) for day in values.astype("datetime64[D]").astype(np.int64).tolist()]
    return [_tag(value) for value in values.tolist()]


def _tag(value: Any) -> str:
    if isinstance(value, str):
        return "s" + value
    if isinstance(value, bool):
        return f"b{int(value)}"
    return f"i{value}" if isinstance(value, int) else f"f{float(value)!r}"


def _read_values(cells: Mapping[str | None, int]) -> ValueCounts:
    """Sorted by their text: the order of Spark is arbitrary."""
    there = sorted(cell for cell in cells if cell is not None)
    reads: dict[str, Any] = {"s": str, "i": int, "f": float, "b": lambda text: text == "1", "d": int}
    values = [reads[cell[0]](cell[1:]) for cell in there]
    kind: Any = object if not there or there[0][0] == "s" else "datetime64[D]" if there[0][0] == "d" else None
    counts = np.array([cells[cell] for cell in there], dtype=np.int64)
    return ValueCounts(np.array(values, dtype=kind), counts, cells.get(None, 0))


# From values to codes -------------------------------------------------------------------------------------------------------


def read_packs(frame: DataFrame, schema: Schema) -> PackedFrame:
    """The needed columns, as `io` reads them."""
    names = [*schema.quasi, *schema.sensitive, *schema.plain, *([schema.person] if schema.person else [])]
    return PackedFrame.of(frame.select(*map(quote_name, names))).each(lambda block: encode_block(cells_in(block, names)))


def build_coding(read: PackedFrame, schema: Schema, types: Types) -> Coding:
    """Domains, dictionaries and references of all rows; `types`: the Spark types of the columns."""
    kinds = {**schema.quasi, **schema.sensitive}
    if not schema.quasi:
        raise BadInput("the schema has no quasi-identifier", right="name the columns that could identify a person")
    found = count_values(read, list(kinds))
    rows = next(iter(found.values())).rows
    refuse_empty(rows)
    coded, leaves, counts = {}, {}, {}
    for name, column in found.items():
        codes, domain, shown = _bind_column(schema, name, column)
        leaves[name] = {**dict(zip(column.values.tolist(), codes.tolist(), strict=True)), None: domain.size}
        reference = np.bincount(codes, weights=column.counts, minlength=domain.size + 1).astype(np.int64)
        reference[domain.size] += column.none
        coded[name], counts[name] = (domain, shown), reference
    nothing = np.empty((0, len(schema.quasi)), np.int32), np.empty((0, len(schema.sensitive)), np.int32)
    head = Table(
        schema,
        *nothing,
        tuple(coded[name][0] for name in schema.quasi),
        tuple(coded[name][0] for name in schema.sensitive),
        tuple(coded[name][1] for name in schema.sensitive),
        {},
        None,
        np.empty(0, np.int64),
        references={name: counts[name] for name in schema.sensitive},
    )
    return Coding(head, leaves, counts, rows, {name: _plain_type(types[name]) for name in schema.plain})


def _bind_column(schema: Schema, name: str, column: ValueCounts) -> tuple[NDArray[np.int32], Domain, NDArray[np.generic]]:
    kind = schema.quasi.get(name) or schema.sensitive[name]
    try:
        return schema.encode_column(Column(column.values, np.arange(len(column.values), dtype=np.int32)), name, kind)
    except BadInput as bad:
        rows = int(column.counts[bad.row - 1]) if bad.row else 0
        many = f" ({'one row has' if rows == 1 else f'{rows:,} rows have'} it)" if rows else ""
        raise bad.replace(what=bad.what + many, row=None) from None


def _plain_type(kind: str) -> str:
    """The Spark type of a plain column that `io` has read."""
    return "bigint" if kind in WHOLE else NATIVE.get(kind, "double")  # `io` refuses other types


def encode_packs(read: PackedFrame, coding: Coding) -> PackedFrame:
    """The rows as leaf codes, with their plain cells."""
    schema = coding.head.schema
    places = dict(zip(coding.names, [*schema.quasi, *schema.sensitive], strict=True))
    plain = dict(zip(coding.plain_names, schema.plain, strict=True)) | ({WHO: schema.person} if schema.person else {})
    shared = read.share(coding.leaves)

    def look_up_codes(block: Block) -> Block:
        columns = cells_in(block, list(places.values()))
        codes: dict[str, Any] = {place: leaves_in(columns, name, shared.value[name]) for place, name in places.items()}
        return encode_block({**codes, **{place: block.column(name) for place, name in plain.items()}})

    return read.each(look_up_codes)


def leaves_in(columns: Columns, name: str, leaf_of: Mapping[Any, int]) -> NDArray[np.int32]:
    """The leaf of each cell of a column, from its dictionary."""
    column = columns[name]
    leaves = np.array([*(leaf_of[value] for value in column.values.tolist()), leaf_of[None]], dtype=np.int32)
    return leaves[column.codes]

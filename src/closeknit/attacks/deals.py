"""All ways to assign the sensitive values of classes to their members: every table that is consistent with the classes.

Sensitive and plain cells of a row belong together and are dealt together. Two ways differ if some member gets other cells; each
way corresponds to equally many orders of the rows, so all are equally likely. Each member has a *slot* for each combination of
cells in its class: a way fills one slot of every member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import factorial, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.kernels.arrays import Int64

Classes = Sequence[int] | NDArray[np.integer]


def check_attacked(secret: str | None, schema: Schema) -> None:
    """Refuse a column that is no sensitive attribute, and a schema without any."""
    if not schema.sensitive or (secret is not None and secret not in schema.sensitive):
        raise BadInput("is no sensitive attribute to attack", column=secret, right=suggest_name(secret, schema.sensitive))


def check_classes(class_of: Classes, original: Columns) -> Int64:
    """Return the class of each row of a table; as many must be given as there are rows."""
    if len(class_of) != original.rows:
        right = f"give one class for each of the {original.rows:,} rows, as Release.partition does"
        raise BadInput(f"{len(class_of):,} classes do not match the table", right=right)
    return np.asarray(class_of, dtype=np.int64)


def list_moved(schema: Schema) -> tuple[str, ...]:
    """Return the columns whose cells change places, all of a row together: those that are no quasi-identifiers."""
    return tuple(name for name in (*schema.sensitive, *schema.plain) if name not in schema.quasi)


def move_cells(table: Columns, source: Int64, moved: Sequence[str]) -> Columns:
    """Return the table in which row i has the cells of row `source[i]` in the moved columns."""
    return Columns({name: column.take(source) if name in moved else column for name, column in table.items()}, table.rows)


class _Class(NamedTuple):
    """Members of a class, and how many have each combination of cells."""

    members: Int64  # rows of the table
    like: Int64  # a row for each combination
    counts: Int64

    @property
    def ways(self) -> int:
        return factorial(len(self.members)) // prod(map(factorial, self.counts.tolist()))

    def every(self) -> Iterator[list[int]]:
        """Yield each way once: the combination of each member."""
        return _orders(self.counts.tolist(), len(self.members))

    def one(self, rng: np.random.Generator) -> list[int]:
        """Draw a way, all of them equally likely."""
        dealt: list[int] = rng.permutation(np.repeat(np.arange(len(self.counts)), self.counts)).tolist()
        return dealt


def _orders(left: list[int], length: int) -> Iterator[list[int]]:
    if length == 0:
        yield []
    for kind in [kind for kind, count in enumerate(left) if count]:
        left[kind] -= 1
        for rest in _orders(left, length - 1):
            yield [kind, *rest]
        left[kind] += 1


@dataclass(frozen=True, eq=False)
class Deals:
    """Classes of a table whose sensitive values are dealt.

    >>> from closeknit.core.kinds import flat, numeric
    >>> schema = Schema(quasi={"age": numeric()}, sensitive={"ill": flat()})
    >>> table = Columns.of({"age": [30, 31, 32, 60], "ill": ["flu", "gout", "flu", "flu"]})
    >>> deals = Deals.of(table, [0, 0, 0, 1], schema)
    >>> deals.ways, [deals.table(slots)["ill"].cells() for slots in deals.every()][2]
    (3, ['gout', 'flu', 'flu', 'flu'])
    """

    original: Columns
    by_number: Mapping[int, _Class]
    moved: tuple[str, ...]  # columns that are dealt

    @classmethod
    def of(cls, original: Columns, class_of: Classes, schema: Schema, only: Sequence[int] | None = None) -> Deals:
        """Take all classes of a table, or those in `only`; -1 in `class_of` is a suppressed row."""
        class_of, moved = check_classes(class_of, original), list_moved(schema)
        kind_of = groups([original[name].coded for name in moved], original.rows)[0]
        order = np.argsort(class_of, kind="stable")
        numbers, starts = np.unique(class_of[order], return_index=True)
        found = {}
        for number, members in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            if number >= 0:
                _, first, counts = np.unique(kind_of[members], return_index=True, return_counts=True)
                found[number] = _Class(members, members[first], counts)
        return cls(original, found, moved).select(found if only is None else only)

    def select(self, numbers: Iterable[int]) -> Deals:
        """Return the deals of these classes, where the values of all others are known."""
        wanted = sorted({number for number in numbers if number >= 0})
        if not wanted or any(number not in self.by_number for number in wanted):
            raise BadInput("there is no such class", right="name classes of the partition; suppressed rows are in none")
        return replace(self, by_number={number: self.by_number[number] for number in wanted})

    @property
    def classes(self) -> list[_Class]:
        """The classes in the order of their numbers."""
        return list(self.by_number.values())

    @property
    def ways(self) -> int:
        """Number of ways of all classes together."""
        return prod(each.ways for each in self.classes)

    def fewest_first(self, room: int) -> list[tuple[int, int]]:
        """Return number and ways of each class that has several ways and at most `room` slots, the fewest ways first."""
        small = {n: each for n, each in self.by_number.items() if len(each.members) * len(each.like) <= room}
        found = [(number, each.ways) for number, each in small.items()]
        return sorted((pair for pair in found if pair[1] > 1), key=lambda pair: (pair[1], pair[0]))

    @property
    def members(self) -> Int64:
        """Rows of the table whose values are dealt, one class after the other."""
        return np.concatenate([each.members for each in self.classes])

    @property
    def slots(self) -> tuple[Int64, Int64, NDArray[np.float64]]:
        """Of each slot: its member (by place), a row with its cells, and the share of the class that has these cells."""
        sizes = [len(each.members) for each in self.classes]
        member = np.repeat(np.arange(sum(sizes)), np.repeat([len(each.like) for each in self.classes], sizes))
        like = np.concatenate([np.tile(each.like, len(each.members)) for each in self.classes])
        share = np.concatenate([np.tile(each.counts / len(each.members), len(each.members)) for each in self.classes])
        return member, like, share

    def every(self) -> Iterator[Int64]:
        """Yield each way once, as the slots that it fills."""
        for parts in product(*(list(each.every()) for each in self.classes)):
            yield self._fill_slots(parts)

    def draw_ways(self, draws: int, seed: int) -> Iterator[Int64]:
        """Draw some ways, all equally likely each time."""
        rng = np.random.default_rng(seed)
        for _ in range(draws):
            yield self._fill_slots([each.one(rng) for each in self.classes])

    def _fill_slots(self, parts: Sequence[list[int]]) -> Int64:
        width = np.repeat([len(each.like) for each in self.classes], [len(each.members) for each in self.classes])
        first = np.cumsum(width) - width
        return first + np.array([kind for part in parts for kind in part], dtype=np.int64)

    def table(self, slots: Int64) -> Columns:
        """Return the table in which the members have the cells of these slots."""
        source = np.arange(self.original.rows)
        source[self.members] = self.slots[1][slots]
        return move_cells(self.original, source, self.moved)

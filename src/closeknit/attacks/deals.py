"""All ways to deal the secrets of classes to their members: what a table may have been, as far as its classes tell.

Secrets and plain cells of a row belong together and are dealt together. Ways are different if somebody gets other cells; each
of them stands for as many orders of the rows, so all are equally likely. Each member has a *slot* for each combination of
cells in its class: a way fills one slot of every member.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import factorial, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema

Int64 = NDArray[np.int64]
Classes = Sequence[int] | NDArray[np.integer]


class _Class(NamedTuple):
    """Members of a class, and how many have each combination of cells."""

    members: Int64  # rows of the table
    like: Int64  # a row for each combination
    counts: Int64

    @property
    def ways(self) -> int:
        return factorial(len(self.members)) // prod(map(factorial, self.counts.tolist()))

    def every(self) -> Iterator[list[int]]:
        """Each way once: the combination of each member."""
        return _orders(self.counts.tolist(), len(self.members))

    def one(self, rng: np.random.Generator) -> list[int]:
        """A way, all of them equally likely."""
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
    """The classes whose secrets are dealt.

    >>> from closeknit.core.kinds import flat, numeric
    >>> schema = Schema(quasi={"age": numeric()}, sensitive={"ill": flat()})
    >>> table = Columns.of({"age": [30, 31, 32, 60], "ill": ["flu", "gout", "flu", "flu"]})
    >>> deals = Deals.of(table, [0, 0, 0, 1], schema)
    >>> deals.ways, [deals.table(table, slots)["ill"].cells() for slots in deals.every()][2]
    (3, ['gout', 'flu', 'flu', 'flu'])
    """

    numbers: tuple[int, ...]
    classes: tuple[_Class, ...]
    moved: tuple[str, ...]  # columns that are dealt

    @classmethod
    def of(cls, original: Columns, class_of: Classes, schema: Schema, only: Sequence[int] | None = None) -> Deals:
        """All classes of a table, or those in `only`; -1 in `class_of` is a suppressed row."""
        class_of = np.asarray(class_of, dtype=np.int64)
        if len(class_of) != original.rows:
            right = f"give one class for each of the {original.rows:,} rows, as Release.partition does"
            raise BadInput(f"{len(class_of):,} classes do not go with the table", right=right)
        moved = tuple(name for name in (*schema.sensitive, *schema.plain) if name not in schema.quasi)
        cells = [(original[name].codes + 1, len(original[name].values) + 1) for name in moved]
        kind_of = groups(cells, original.rows)[0]
        order = np.argsort(class_of, kind="stable")
        there, starts = np.unique(class_of[order], return_index=True)
        rows = dict(zip(there.tolist(), np.split(order, starts[1:]), strict=True))
        numbers = sorted({number for number in (rows if only is None else only) if number >= 0})
        if not numbers or any(number not in rows for number in numbers):
            raise BadInput("there is no such class", right="name classes of the partition; suppressed rows are in none")
        found = []
        for members in (rows[number] for number in numbers):
            _, first, counts = np.unique(kind_of[members], return_index=True, return_counts=True)
            found.append(_Class(members, members[first], counts))
        return cls(tuple(numbers), tuple(found), moved)

    @property
    def ways(self) -> int:
        """Of all classes together."""
        return prod(each.ways for each in self.classes)

    def fewest_first(self, room: int) -> list[tuple[int, int]]:
        """Number and ways of each class that has more than one way, and at most as many slots as there is room for."""
        small = [
            pair for pair in zip(self.numbers, self.classes, strict=True) if len(pair[1].members) * len(pair[1].like) <= room
        ]
        found = [(number, each.ways) for number, each in small]
        return sorted((pair for pair in found if pair[1] > 1), key=lambda pair: (pair[1], pair[0]))

    @property
    def members(self) -> Int64:
        """Rows of the table whose secrets are dealt, one class after the other."""
        return np.concatenate([each.members for each in self.classes])

    @property
    def slots(self) -> tuple[Int64, Int64, NDArray[np.float64]]:
        """Of each slot: its member (by place), a row with its cells, and the share of the class that has these."""
        sizes = [len(each.members) for each in self.classes]
        member = np.repeat(np.arange(sum(sizes)), np.repeat([len(each.like) for each in self.classes], sizes))
        like = np.concatenate([np.tile(each.like, len(each.members)) for each in self.classes])
        share = np.concatenate([np.tile(each.counts / len(each.members), len(each.members)) for each in self.classes])
        return member, like, share

    def every(self) -> Iterator[Int64]:
        """Each way once, as the slots that it fills."""
        for parts in product(*(list(each.every()) for each in self.classes)):
            yield self._fill_slots(parts)

    def draw_ways(self, draws: int, seed: int) -> Iterator[Int64]:
        """Some ways, all of them equally likely each time."""
        rng = np.random.default_rng(seed)
        for _ in range(draws):
            yield self._fill_slots([each.one(rng) for each in self.classes])

    def _fill_slots(self, parts: Sequence[list[int]]) -> Int64:
        width = np.repeat([len(each.like) for each in self.classes], [len(each.members) for each in self.classes])
        first = np.cumsum(width) - width
        return first + np.array([kind for part in parts for kind in part], dtype=np.int64)

    def table(self, original: Columns, slots: Int64) -> Columns:
        """The table as it would be."""
        source = np.arange(original.rows)
        source[self.members] = self.slots[1][slots]
        dealt = {name: column.take(source) if name in self.moved else column for name, column in original.items()}
        return Columns(dealt, original.rows)

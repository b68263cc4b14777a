"""The pending rows of a window as a static `Table` whose classes are judged against all rows of that window.

The leaves of a numeric column are the numbers that occur; declared trees keep their leaves; texts are in their order. A value
outside its domain counts as missing here, and the stream writes it as `*`. Sensitive attributes are bound to the values of the
whole window, so that the ground distance is that of the window, not of the rows that happen to wait. If a guarantee does not
define a missing sensitive value (an ordered distance), rows without one are not counted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import CodedSecret, Secret, join_secrets
from closeknit.core.kinds import Kind, flat
from closeknit.core.row_sorting import groups, row_order
from closeknit.core.schema import Schema
from closeknit.core.table import Partition, Table
from closeknit.forms.cell_labels import class_labels
from closeknit.kernels.arrays import Flags, Int32
from closeknit.kernels.counting.histograms import count_codes
from closeknit.kernels.geometry.boxes import boxes
from closeknit.kernels.geometry.declared_axes import EQUAL
from closeknit.streams.arrivals import Arrivals, Cells, Coder, Ints


@dataclass(frozen=True, eq=False)
class Waiting:
    """Pending rows as a table (its `rows` are their positions), and which cells are outside their domains."""

    table: Table
    outside: Flags  # [n, d]

    def take(self, rows: Ints) -> Waiting:
        """These rows."""
        return Waiting(self.table.take(rows), self.outside[rows])

    def merge_alike(self, partition: Partition) -> Partition:
        """Classes in the order of their written cells; classes with equal cells are merged."""
        table, count = self.table, partition.count
        lo, hi = boxes(table.quasi, partition.class_of, count)
        keys = []
        for j, domain in enumerate(table.quasi_domains):
            star = np.zeros(count, dtype=bool)
            star[partition.class_of[self.outside[:, j]]] = True
            if domain.tree is not None:
                keys.append(np.where(star, 0, domain.tree.cover(lo[:, j], hi[:, j])))
                continue
            star |= (hi[:, j] == domain.size) & (lo[:, j] < hi[:, j])
            ends = [class_labels(domain, lo[:, j], hi[:, j], True)[1]] if domain.snap else [lo[:, j], hi[:, j]]
            keys += [np.where(star, -1, end) for end in ends]
        into, _ = groups([(key + 1, int(key.max(initial=0)) + 2) for key in keys], count)
        return partition.merge_classes(into)


class WindowTables:
    """Builds the tables of one stream.

    Args:
        schema: roles and kinds of the columns.
        coder: what the numbers of the rows mean.
        joints: sensitive attributes that are also counted together.
        required: sensitive attributes without which a row is not counted.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    >>> coder = Coder(schema, b"secret")
    >>> window = coder.encode(Columns.of({"age": [30, 41, 130], "ill": ["flu", "flu", "gout"]}), first=0)
    >>> tables = WindowTables(schema, coder, (), ())
    >>> waiting = tables.waiting(tables.secrets(window), window.take(np.array([1, 2])), np.array([1, 2]), first=0)
    >>> waiting.table.quasi.tolist(), waiting.outside.tolist(), waiting.table.one_class().histograms["ill"].reference.tolist()
    ([[0], [1]], [[False], [True]], [2, 1, 0])
    """

    def __init__(self, schema: Schema, coder: Coder, joints: Sequence[tuple[str, ...]], required: Collection[str]) -> None:
        self.schema, self.coder, self.joints = schema, coder, joints
        self.required = tuple(required)
        self._numerals: tuple[str, ...] = ()

    def flag_missing(self, rows: Arrivals) -> Flags:
        """Rows that are not counted, because a required value is missing."""
        found = np.zeros(len(rows), dtype=bool)
        for name in self.required:
            found |= np.array([cell is None for cell in rows.cells[name].tolist()], dtype=bool)
        return found

    def secrets(self, window: Arrivals) -> dict[Secret, CodedSecret]:
        """Every sensitive attribute of a whole window, and those counted together; -1 in rows that are not counted."""
        coded: dict[Secret, CodedSecret] = {}
        dropped = self.flag_missing(window)
        for j, (name, kind) in enumerate(self.schema.sensitive.items()):
            codes, domain = secret_codes(kind, window.secrets[:, j], window.cells[name])
            coded[name] = np.where(dropped, -1, codes).astype(np.int32), domain
        return coded | {names: join_secrets([coded[name] for name in names]) for names in self.joints}

    def waiting(self, window: dict[Secret, CodedSecret], rows: Arrivals, positions: Ints, first: int) -> Waiting:
        """The table of these rows in canonical order; `window` is coded from position `first` on."""
        quasi = [self._quasi(rows, j) for j in range(rows.quasi.shape[1])]
        secrets = {name: (codes[positions - first], domain) for name, (codes, domain) in window.items()}
        keys = [(codes, domain.size + 1) for codes, domain in (*quasi, *secrets.values())]
        order = row_order(keys, len(positions))
        alone = [secrets[name] for name in self.schema.sensitive]
        table = Table(
            self.schema,
            _stack_codes([codes for codes, _ in quasi], order),
            _stack_codes([codes for codes, _ in alone], order),
            tuple(domain for _, domain in quasi),
            tuple(domain for _, domain in alone),
            (),
            {},
            None if self.schema.person is None else rows.persons[order],
            positions[order],
            {name: (codes[order], domain) for name, (codes, domain) in secrets.items() if not isinstance(name, str)},
            references={name: count_codes(codes, domain.size + 1) for name, (codes, domain) in window.items()},
        )
        return Waiting(table, (rows.quasi == self.coder.axes.unknown)[order])

    def _quasi(self, rows: Arrivals, j: int) -> CodedSecret:
        """Leaf codes and domain of one quasi-identifier."""
        name, places, missing = list(self.schema.quasi)[j], rows.quasi[:, j], self.coder.axes.missing[j]
        declared = self.coder.domains[name]
        if declared is not None:
            return np.minimum(places, missing).astype(np.int32), declared
        there = places < missing
        found, first, where = np.unique(places[there], return_index=True, return_inverse=True)
        if self.coder.axes.kind[j] == EQUAL:
            texts = rows.cells[name][there][first].tolist()
            rank = np.argsort(np.argsort(np.array([str(text) for text in texts]), kind="stable"))
            domain, where = flat().bind(np.array(self._names(len(found)), dtype=object))[0], rank[where]
        else:
            domain = self.coder.bind_numbers(name, found, self._names(len(found)))
        codes = np.full(len(places), domain.size, dtype=np.int32)
        codes[there] = where
        return codes, domain

    def _names(self, count: int) -> tuple[str, ...]:
        """Names for so many leaves; they are never published."""
        if count > len(self._numerals):
            self._numerals = tuple(f"{i:07}" for i in range(2 * count))
        return self._numerals[:count]


def secret_codes(kind: Kind, digests: Ints, cells: Cells) -> CodedSecret:
    """Leaf codes of sensitive values published as `cells`, over the domain of those that occur."""
    _, first, where = np.unique(digests, return_index=True, return_inverse=True)
    shown = Columns.of({"": cells[first].tolist()})[""]
    domain, leaves = kind.bind(shown.values)
    leaf_of = np.append(leaves, np.int32(domain.size))  # the last entry is the missing one
    return leaf_of[shown.codes][where].astype(np.int32), domain


def _stack_codes(codes: list[Int32], order: NDArray[np.int64]) -> Int32:
    return np.stack([column[order] for column in codes], axis=1) if codes else np.empty((len(order), 0), dtype=np.int32)

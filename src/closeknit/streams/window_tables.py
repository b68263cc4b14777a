"""The rows of a window that still wait, as a static `Table` whose classes are judged against all rows of that window.

Quasi cells come from the arrived positions: numbers that occur are the leaves of a number column, declared trees keep their
leaves, texts stand in their order. What a domain does not know counts as missing here and is written as `*` by the stream.
Secrets are bound to the values of the whole window, so that the ground distance is the window's and never that of the rows
that happen to wait. Where a guarantee has no place for a missing secret (an ordered distance), rows without one count nowhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import CodedSecret, Secret, join_secrets
from closeknit.core.domain import Domain
from closeknit.core.kinds import Kind, flat
from closeknit.core.row_sorting import groups, row_order
from closeknit.core.schema import Schema
from closeknit.core.table import Partition, Table
from closeknit.core.tree import Int32
from closeknit.forms.cell_labels import class_labels
from closeknit.kernels.geometry.boxes import boxes
from closeknit.kernels.geometry.declared_axes import EQUAL
from closeknit.streams.arrivals import Arrivals, Cells, Coder, Ints

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Waiting:
    """Rows that wait, as a table (its `rows` are their positions), and which of their cells no domain knows."""

    table: Table
    strange: Flags  # [n, d]

    def merge_alike(self, partition: Partition) -> Partition:
        """Classes in the order of what is written of them; classes that are written alike are one."""
        table, count = self.table, partition.count
        lo, hi = boxes(table.quasi, partition.class_of, count)
        keys = []
        for j, domain in enumerate(table.quasi_domains):
            star = np.zeros(count, dtype=bool)
            star[partition.class_of[self.strange[:, j]]] = True
            if domain.tree is not None:
                keys.append(np.where(star, 0, domain.tree.cover(lo[:, j], hi[:, j])))
                continue
            star |= (hi[:, j] == domain.size) & (lo[:, j] < hi[:, j])
            ends = [class_labels(domain, lo[:, j], hi[:, j], True)[1]] if domain.snap else [lo[:, j], hi[:, j]]
            keys += [np.where(star, -1, end) for end in ends]
        into, _ = groups([(key + 1, int(key.max(initial=0)) + 2) for key in keys], count)
        return partition.merge_classes(into)


class WindowTables:
    """Makes them for one stream.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    >>> coder = Coder(schema, b"secret")
    >>> window = coder.encode(Columns.of({"age": [30, 41, 130], "ill": ["flu", "flu", "gout"]}), first=0)
    >>> tables = WindowTables(schema, coder, (), ())
    >>> waiting = tables.waiting(tables.secrets(window), window.take(np.array([1, 2])), np.array([1, 2]), first=0)
    >>> waiting.table.quasi.tolist(), waiting.strange.tolist(), waiting.table.one_class().histograms["ill"].reference.tolist()
    ([[0], [1]], [[False], [True]], [2, 1, 0])
    """

    def __init__(self, schema: Schema, coder: Coder, joints: Sequence[tuple[str, ...]], placed: Collection[str]) -> None:
        self.schema, self.coder, self.joints = schema, coder, joints
        self.repartition = tuple(placed)  # secrets of which a missing one has no place in what is asked
        self._numerals: tuple[str, ...] = ()

    def flag_missing(self, rows: Arrivals) -> Flags:
        """Rows that what is asked has no place for."""
        found = np.zeros(len(rows), dtype=bool)
        for name in self.repartition:
            found |= np.array([cell is None for cell in rows.cells[name].tolist()], dtype=bool)
        return found

    def secrets(self, window: Arrivals) -> dict[Secret, CodedSecret]:
        """Every secret of a whole window, and those that are counted as one; -1 in rows that count nowhere."""
        coded: dict[Secret, CodedSecret] = {}
        away = self.flag_missing(window)
        for j, (name, kind) in enumerate(self.schema.sensitive.items()):
            codes, domain = secret_codes(kind, window.secrets[:, j], window.cells[name])
            coded[name] = np.where(away, -1, codes).astype(np.int32), domain
        return coded | {names: join_secrets([coded[name] for name in names]) for names in self.joints}

    def waiting(self, window: dict[Secret, CodedSecret], rows: Arrivals, positions: Ints, first: int) -> Waiting:
        """The table of these rows, in the order of their cells; the window begins at position `first`."""
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
            references={name: _counts(codes, domain) for name, (codes, domain) in window.items()},
        )
        return Waiting(table, (rows.quasi == self.coder.axes.unknown)[order])

    def _quasi(self, rows: Arrivals, j: int) -> CodedSecret:
        """Leaf codes and domain of one quasi column."""
        name, places, missing = list(self.schema.quasi)[j], rows.quasi[:, j], self.coder.axes.missing[j]
        declared = self.coder.domains[name]
        if declared is not None:
            return np.minimum(places, missing).astype(np.int32), declared
        there = places < missing
        found, first, where = np.unique(places[there], return_index=True, return_inverse=True)
        if self.coder.axes.kind[j] == EQUAL:
            texts = rows.cells[name][there][first].tolist()
            rank = np.argsort(np.argsort(np.array([str(text) for text in texts]), kind="stable"))
            domain, where = self._flat(len(found)), rank[where]
        else:
            kind: Any = self.schema.quasi[name]
            step = self.coder.steps.get(name)
            domain = Domain(self._names(len(found)), None, found, kind.bounds, step, snap=step is not None)
        codes = np.full(len(places), domain.size, dtype=np.int32)
        codes[there] = where
        return codes, domain

    def _names(self, count: int) -> tuple[str, ...]:
        """Names of so many leaves: what is written of them, the stream writes."""
        if count > len(self._numerals):
            self._numerals = tuple(f"{i:07}" for i in range(2 * count))
        return self._numerals[:count]

    def _flat(self, count: int) -> Domain:
        """So many values that are equal or not."""
        return flat().bind(np.array(self._names(count), dtype=object))[0]


def secret_codes(kind: Kind, digests: Ints, cells: Cells) -> CodedSecret:
    """Leaf codes of secrets that are shown as `cells`, over the domain of those that occur."""
    _, first, where = np.unique(digests, return_index=True, return_inverse=True)
    shown = Columns.of({"": cells[first].tolist()})[""]
    domain, leaves = kind.bind(shown.values)
    leaf_of = np.append(leaves, np.int32(domain.size))  # the last entry serves the missing one
    return leaf_of[shown.codes][where].astype(np.int32), domain


def _counts(codes: Int32, domain: Domain) -> Ints:
    return np.bincount(codes[codes >= 0], minlength=domain.size + 1)


def _stack_codes(codes: list[Int32], order: NDArray[np.int64]) -> Int32:
    return np.stack([column[order] for column in codes], axis=1) if codes else np.empty((len(order), 0), dtype=np.int32)

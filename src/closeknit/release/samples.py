"""The same people before and after: some rows of one class in the table and in the release.

A release does not say whose rows these are. Here the table and its classes are available: a group of written rows is the class
if it has as many rows, the same sensitive values, and cells that every member fits into.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Columns
from closeknit.core.schema import Schema
from closeknit.core.table import Partition
from closeknit.forms.column_axes import axes_of
from closeknit.forms.release_reading import Published, reading_of
from closeknit.io.canonical import cell_texts

SAMPLE = 6
TRIED = 40  # classes, the smallest first; most fit at once
Rows = NDArray[np.int64]
Ends = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class ClassSample:
    """Rows of the table and of the release, each in its own order, and how many the class has."""

    raw: Rows
    written: Rows
    rows: int


def find_class(table: Columns, schema: Schema, published: Published, partition: NDArray[np.int32]) -> ClassSample | None:
    """A small class in the table and in the release; None where nothing fits, for example where values were perturbed.

    Args:
        table: the original.
        schema: its columns.
        published: the release.
        partition: the class of every row of the table.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.StackAndDeal())
    >>> find_class(table, schema, release, release.partition).rows
    5
    """
    reading, boxes = reading_of(published), _Boxes(table, schema, published)
    names = [name for name in (schema.published if reading.column_groups else schema.sensitive) if name in published.columns]
    raw, written = (_Texts(part, names, schema, bool(reading.column_groups)) for part in (table, published.columns))
    sizes = np.bincount(partition[partition >= 0])
    members_of = Partition(partition, len(sizes)).list_rows()
    rows_of = Partition(reading.class_of, len(reading.classes)).list_rows()
    few = np.argsort(sizes, kind="stable")[:TRIED].tolist()
    alike: dict[tuple[Any, ...], list[int]] = {tuple(raw.of(members_of[label])): [] for label in few}
    for group in np.flatnonzero(np.isin(reading.classes.sizes, sizes[few])).tolist():  # each is read once
        if (cells := tuple(written.of(rows_of[group]))) in alike:
            alike[cells].append(group)
    for label in few:
        members = members_of[label]
        for group in alike[tuple(raw.of(members))]:
            rows = rows_of[group]
            if len(rows) == len(members) and (reading.column_groups or boxes.hold(members, rows[0])):
                return ClassSample(raw.choose_rows(members), written.choose_rows(rows), len(members))
    return None


class _Texts:
    """Cells of some columns as text; `apart` where cells of one row do not belong together."""

    def __init__(self, columns: Columns, names: list[str], schema: Schema, apart: bool) -> None:
        self.apart = apart
        listed = [["" if text in schema.missing else text for text in cell_texts(columns[name])] for name in names]
        self.cells = [
            (np.array([*texts, ""], dtype=object), columns[name].codes) for name, texts in zip(names, listed, strict=True)
        ]

    def of(self, rows: Rows) -> list[tuple[str, ...]]:
        """The cells of these rows, in an order that is the same for the table and the release."""
        columns = [texts[codes[rows]].tolist() for texts, codes in self.cells]
        if self.apart:
            return [tuple(sorted(column)) for column in columns]
        return sorted(zip(*columns, strict=True))

    def choose_rows(self, rows: Rows) -> Rows:
        """A few of them, spread over their cells."""
        columns = [texts[codes[rows]].tolist() for texts, codes in self.cells]
        ordered = sorted(range(len(rows)), key=lambda i: [column[i] for column in columns])
        few = np.unique(np.linspace(0, len(rows) - 1, SAMPLE).round().astype(int))
        return np.sort(rows[np.array(ordered)[few]])


class _Boxes:
    """Where the rows of a table lie, and whether they lie in the cells of a written row; each column is read when needed."""

    def __init__(self, table: Columns, schema: Schema, published: Published) -> None:
        self.table, self.schema, self.written = table, schema, reading_of(published).columns
        self.axes = axes_of(table, schema)
        self.read: dict[str, tuple[Ends, Ends]] = {}

    def hold(self, members: Rows, row: int) -> bool:
        """Whether every member lies in the cells of this row."""
        return all(self._fits(name, members, row) for name in self.schema.quasi)

    def _fits(self, name: str, members: Rows, row: int) -> bool:
        raw, written = self._ends(name)
        low, high = (ends[members] for ends in raw)
        lo, hi = (ends[row] for ends in written)
        first, last = self.axes[name].ends
        anything = np.isnan(lo) or (lo <= first and hi >= last)  # as a cell of a class with missing values is
        return bool(np.all(np.where(np.isnan(low), anything, (lo <= low) & (high <= hi))))

    def _ends(self, name: str) -> tuple[Ends, Ends]:
        """Both ends of each row's cell, in the table and in the release."""
        if name not in self.read:
            axis, column, cells = self.axes[name], self.table[name], self.written[name]
            column = axis.leaf_column(column, self.schema) if axis.leaves else column
            ends = [[end[part.codes] for end in axis.ranges(part)] for part in (column, cells)]
            self.read[name] = ((ends[0][0], ends[0][1]), (ends[1][0], ends[1][1]))
        return self.read[name]

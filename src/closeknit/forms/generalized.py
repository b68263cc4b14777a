"""The form `generalized`: one line per row, quasi-identifiers as ranges and nodes, exact sensitive values.

Each class is written with the tightest range or lowest node that covers it (local recoding). Both ends of a tight range of
whole numbers are true values of rows in the class; `snap=True` writes multiples of the column's step instead. Ranges of
decimals always end at steps (`core/steps.py`). `levels` writes no cell finer than whole nodes of the given level (full-domain
recoding), even if a tighter one covers the class.

Rows without a class are suppressed: "removed", or written as `*` in every quasi-identifier, with their sensitive values
("starred") or with `*` for these, too ("hidden"). Written ones form one more class. `fallbacks` are the forms to use if that
class does not meet a guarantee.

`cells="stars"` suppresses cells instead of generalizing them: a cell is the value that all rows of the class share, or `*`.
With a step the value is a cell of the grid: `*` for different values inside one would distinguish them from equal values.
`cells="bounds"`, "midpoint", "mean", "median" and "sample" write numbers in place of ranges (`number_cells.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.combined_secrets import CodedSecret, Secret, join_secrets
from closeknit.core.errors import BadInput
from closeknit.core.kinds import Numeric
from closeknit.core.params import choice
from closeknit.core.reading import Persons, Reading, secret_codes, without_markers
from closeknit.core.row_sorting import groups, row_order
from closeknit.core.schema import Schema
from closeknit.core.steps import with_steps
from closeknit.core.table import Form, Partition, Table, WrittenTable
from closeknit.forms.cell_labels import (
    CANONICAL,
    cell_order,
    check_levels,
    class_labels,
    compact,
    hide_cells,
    label_column,
    refuse_levels,
    tight_note,
)
from closeknit.forms.drawn_values import draw_values, find_misplaced, sort_for_draws
from closeknit.forms.number_cells import cell_notes, list_added, read_labels, refuse_clashes, replace_labels
from closeknit.kernels.arrays import Int32
from closeknit.kernels.geometry.boxes import boxes

STATISTICS = ("mean", "median")
ONE_NUMBER = ("midpoint", *STATISTICS)  # the range that it replaces cannot be read back
CELLS = ("ranges", "stars", "bounds", *ONE_NUMBER, "sample")
HIDDEN = "the values were drawn, and the classes are not written"
SUPPRESSED = ("removed", "hidden", "starred")  # how suppressed rows are written, from the least disclosure to the most


@dataclass(frozen=True)
class Generalized(Form):
    """Writes and reads generalized cells.

    Args:
        snap: whether ranges of whole numbers end at multiples of the column's step.
        levels: per column, the lowest level to write; `*` is the last one.
        suppressed: how suppressed rows are written: "removed", "hidden" or "starred".
        cells: "ranges" generalizes cells, "stars" suppresses them; the others write numbers in place of ranges.
        bounds: whether drawn values (`cells="sample"`) come with their labels.
    """

    name: ClassVar[str] = "generalized"
    snap: bool = False
    levels: Mapping[str, int | str] | None = None
    suppressed: str = SUPPRESSED[0]
    cells: str = CELLS[0]
    bounds: bool = True

    def __post_init__(self) -> None:
        choice("snap", self.snap, (True, False))
        choice("bounds", self.bounds, (True, False))
        choice("cells", self.cells, CELLS)
        choice("suppressed", self.suppressed, SUPPRESSED)
        object.__setattr__(self, "levels", check_levels(self.levels))
        if self.cells != "sample" and not self.bounds:
            raise BadInput(
                f"bounds=False means nothing with cells='{self.cells}'", right="leave it out, or draw: cells='sample'"
            )
        if self.cells in STATISTICS and self.levels:
            raise BadInput(f"cells='{self.cells}' is finer than levels", right="leave one of them out, or use cells='midpoint'")

    @property
    def merges_classes(self) -> bool:
        """Whether it often writes different classes alike: coarser than the cells of the method, or as numbers."""
        return self.snap or bool(self.levels) or self.cells not in ("ranges", "bounds", "sample")

    @property
    def attested(self) -> tuple[str, ...]:
        """What a recipient cannot recompute: the loss where ranges are not written, all where classes are not."""
        hidden = self.cells == "sample" and not self.bounds
        return ("loss", "classes") if hidden else ("loss",) if self.cells in ONE_NUMBER else ()

    def list_columns(self, schema: Schema) -> list[str]:
        """Columns of the release, in their order."""
        added = list_added(self.cells, self.bounds, schema)
        return [written for name in schema.published for written in added.get(name, [name])]

    def read_labels(self, columns: Columns, schema: Schema) -> Columns:
        """The labels of the written cells."""
        if self.cells in CELLS[:2]:
            return columns
        return read_labels(columns, schema, self.cells, self.bounds)

    def before(self, table: Table, seed: int) -> Table:
        """The table with the step of each column whose ranges must not end at true values."""
        refuse_clashes(list_added(self.cells, self.bounds, table.schema), table.schema)
        sizes = [domain.size + 1 for domain in table.quasi_domains]
        return with_steps(table, lambda j: np.bincount(table.quasi[:, j], minlength=sizes[j]), self.snap)

    def write(self, table: Table, partition: Partition, seed: int = 0) -> WrittenTable:
        """Rows in the canonical order of their written cells: quasi-identifiers, then sensitive values, then plain cells."""
        table = self.before(table, seed)
        self._check(table)
        partition, stars = self._with_stars(partition)
        kept = np.flatnonzero(partition.class_of >= 0)
        class_of = partition.class_of[kept]
        hidden = stars[kept] if self.suppressed == "hidden" else np.zeros(len(kept), dtype=bool)
        lo, hi = boxes(table.quasi, partition.class_of, partition.count)
        if stars.any():  # all leaves and the missing one: the widest label
            lo[-1], hi[-1] = 0, [domain.size for domain in table.quasi_domains]
        labels = self._labels(table, lo, hi)
        # rank classes first, which are few: classes with equal labels are one
        rank, ranks = groups([(of_class, len(texts)) for texts, of_class in labels.values()], partition.count)
        written: dict[str, Column] = {}
        for j, (name, shown) in enumerate(zip(table.schema.sensitive, table.shown, strict=True)):
            codes = table.sensitive[kept, j]
            values = Column(shown, np.where(hidden | (codes >= len(shown)), -1, codes).astype(np.int32))
            written[name] = hide_cells(compact(values), hidden)
        written |= {name: compact(column.take(kept)) for name, column in table.plain.items()}
        order = row_order([(rank[class_of], ranks), *map(cell_order, written.values())], len(kept))
        named = {name: label_column(texts, of_class).take(class_of[order]) for name, (texts, of_class) in labels.items()}
        named |= {name: column.take(order) for name, column in written.items()}
        labelled = WrittenTable(Columns({name: named[name] for name in table.schema.published}, len(kept)), kept[order])
        return labelled if self.cells in CELLS[:2] else self._write_numbers(table, partition, labelled, seed)

    def _write_numbers(self, table: Table, partition: Partition, labelled: WrittenTable, seed: int) -> WrittenTable:
        """The same rows with numbers in place of labels, sorted by what is written."""
        draws = self.cells == "sample"
        shown = sort_for_draws(labelled, table.schema) if draws else labelled
        named = draw_values(table, shown, self.bounds, seed) if draws else replace_labels(table, partition, shown, self.cells)
        names = self.list_columns(table.schema)
        order = row_order([cell_order(named[name]) for name in names], len(labelled.rows))
        columns = Columns({name: compact(named[name]).take(order) for name in names}, len(order))
        return WrittenTable(columns, shown.rows[order], hidden=labelled)

    @property
    def fallbacks(self) -> tuple[Generalized, ...]:
        """The same form, with less and less disclosure of suppressed rows."""
        less = SUPPRESSED[: SUPPRESSED.index(self.suppressed)]
        return tuple(replace(self, suppressed=suppressed) for suppressed in less[::-1])

    def _labels(self, table: Table, lo: Int32, hi: Int32) -> dict[str, tuple[list[str], Int32]]:
        """The labels of each column, and the label of each class; `lo` and `hi` are [classes, columns]."""
        labels = {}
        for j, (name, domain) in enumerate(zip(table.schema.quasi, table.quasi_domains, strict=True)):
            label = partial(class_labels, domain, snap=self.snap, level=(self.levels or {}).get(name))
            low, high = lo[:, j], hi[:, j]
            if self.cells == "stars":
                ends = np.concatenate([low, high])
                lowest, highest = label(ends, ends)[1].reshape(2, -1)
                low, high = (np.where(lowest == highest, low, end).astype(np.int32) for end in (0, domain.size))
            labels[name] = label(low, high)
        return labels

    def _with_stars(self, partition: Partition) -> tuple[Partition, NDArray[np.bool_]]:
        """Suppressed rows that are written as the last class, and which rows these are."""
        stars = (partition.class_of < 0) & (self.suppressed != "removed")
        if not stars.any():
            return partition, stars
        return Partition(np.where(stars, partition.count, partition.class_of).astype(np.int32), partition.count + 1), stars

    def _check(self, table: Table) -> None:
        refuse_levels(self.levels or {}, table)
        for name, domain in zip(table.schema.quasi, table.quasi_domains, strict=True):
            if name in table.schema.sensitive:
                raise BadInput("is quasi and sensitive", column=name, right="in a generalized release a column has one role")
            snap = self.snap or domain.snap
            if snap and domain.tree is None and domain.ends is None and domain.step is None:
                raise BadInput("has no step to snap to", column=name, right="declare numeric(step=...) or leave snap out")

    def notes(self, schema: Schema) -> list[str]:
        """Ranges that disclose true values."""
        return [*map(tight_note, self.tight(schema)), *cell_notes(self.cells, self.bounds, schema)]

    def tight(self, schema: Schema) -> tuple[str, ...]:
        """Columns whose ranges end at true values of rows in the class; ends of bins are declared, a level has none."""
        if self.snap or self.cells in ("stars", *ONE_NUMBER) or "classes" in self.attested:
            return ()
        numbers = {name: kind for name, kind in schema.quasi.items() if isinstance(kind, Numeric) and kind.bins is None}
        return tuple(name for name, kind in numbers.items() if not kind.snap and name not in (self.levels or {}))

    def disorder(self, columns: Columns, schema: Schema) -> list[str]:
        """Drawn values that are not below their labels."""
        return find_misplaced(columns, schema) if self.cells == "sample" and self.bounds else []

    def list_unsorted(self, columns: Columns, schema: Schema) -> list[str]:
        """The first row that is not where its written cells place it."""
        rank, _ = groups([cell_order(column) for column in columns.values()], columns.rows)
        before = np.flatnonzero(np.diff(rank) < 0)
        return [f"row {before[0] + 2:,} is out of place: {CANONICAL}"] if len(before) else []

    def read(
        self, columns: Columns, schema: Schema, persons: Persons | None = None, joints: Sequence[tuple[str, ...]] = ()
    ) -> Reading:
        """Rows with equal written quasi-identifiers are one class."""
        columns = self.read_labels(columns, schema)
        keys = (without_markers(columns[name], schema.missing).coded for name in schema.quasi)  # a copy each: one at a time
        class_of, count = groups(keys, columns.rows)
        secrets: dict[Secret, CodedSecret] = {name: secret_codes(columns[name], name, schema) for name in schema.sensitive}
        secrets |= {names: join_secrets([secrets[name] for name in names]) for names in joints}
        heads = next(iter(persons.values())) if persons else None  # all cells of a row belong to one person
        counter = partial(Classes.of, secrets=secrets, persons=heads)
        classes = counter(class_of, count)
        return Reading(columns, schema, class_of, classes, tuple(schema.quasi), tight=self.tight(schema), count=counter)


def generalized(
    snap: bool = False,
    levels: Mapping[str, int | str] | None = None,
    suppressed: str = SUPPRESSED[0],
    cells: str = CELLS[0],
    bounds: bool = True,
) -> Generalized:
    """The form that writes ranges and nodes.

    Args:
        snap: whether ranges of whole numbers end at multiples of the column's step.
        levels: per column, the lowest level to write; `*` is the last one.
        suppressed: how suppressed rows are written: "removed", "hidden" (`*` in every cell) or "starred" (`*` in
            quasi-identifiers only).
        cells: "ranges" generalizes cells, "stars" suppresses them. "bounds" writes a range of numbers as `age_lo` and
            `age_hi`, "midpoint" as its middle, "mean" and "median" as a statistic of the class; "sample" writes a value
            drawn below the label, and the label next to it.
        bounds: whether drawn values come with their labels; without them the guarantees are attested only.

    >>> generalized(levels={"age": 2})
    Generalized(snap=False, levels={'age': 2}, suppressed='removed', cells='ranges', bounds=True)
    """
    return Generalized(snap, levels, suppressed, cells, bounds)

"""Columns as axes: how an analyst reads a written cell. A row lies anywhere in the range of its cell, uniformly.

A number lies on a line, any other value on the line of its column's leaves, where leaf i occupies the unit from i to i + 1. The
share of a cell inside a range is therefore a ratio of lengths for both; a cell without length (a single number) is in or out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from closeknit.core.cell_ranges import cell_ranges
from closeknit.core.columns import Column, Columns
from closeknit.core.domain import Domain
from closeknit.core.errors import BadValue, refuse_empty
from closeknit.core.loss import list_texts
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema, require_schema
from closeknit.io.files import read
from closeknit.kernels.arrays import Reals


@dataclass(frozen=True, eq=False)
class Axis:
    """One column of the original table.

    Args:
        name: the column.
        domain: its domain.
        missing: missing-value codes.
    """

    name: str
    domain: Domain
    missing: tuple[str, ...] = ()

    @property
    def leaves(self) -> bool:
        """Whether it is a line of leaves, not of numbers."""
        return self.domain.counts_leaves

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the line."""
        low, high = self.domain.span
        return low, high + self.leaves

    def ranges(self, column: Column) -> tuple[Reals, Reals]:
        """Both ends of every distinct cell; NaN for missing-value codes, and at the end for the missing cell.

        >>> from closeknit.core.kinds import numeric
        >>> axis = Axis("age", numeric().bind(np.array([30, 41]))[0], ("?",))
        >>> [ends.tolist() for ends in axis.ranges(Columns.of({"age": ["[30, 35]", "?"]})["age"])]
        [[30.0, nan, nan], [35.0, nan, nan]]
        """
        try:
            lo, hi = cell_ranges(self.domain, list_texts(column, self.missing))
        except BadValue as bad:
            raise bad.locate(self.name, column.first_row(bad.index)) from None
        return lo, hi + self.leaves

    def leaf_column(self, column: Column, schema: Schema) -> Column:
        """Raw values as the names of their leaves."""
        codes, domain, _ = schema.encode_column(column, self.name, kind_of(schema, self.name))
        return Column(np.array(domain.texts, dtype=object), np.where(codes == domain.size, -1, codes).astype(np.int32))


def kind_of(schema: Schema, name: str) -> Any:
    """The kind of a quasi-identifier or sensitive attribute."""
    return schema.quasi.get(name) or schema.sensitive[name]


def axes_of(columns: Columns, schema: Schema) -> dict[str, Axis]:
    """The axis of every quasi-identifier and sensitive attribute of a table.

    >>> from closeknit.core.kinds import flat, numeric
    >>> schema = Schema(quasi={"age": numeric(0, 100)}, sensitive={"wage": flat()})
    >>> axes = axes_of(Columns.of({"age": [30, 41], "wage": ["low", "high"]}), schema)
    >>> {name: axis.ends for name, axis in axes.items()}
    {'age': (0.0, 100.0), 'wage': (0.0, 2.0)}
    """
    names = dict.fromkeys([*schema.quasi, *schema.sensitive])
    return {
        name: Axis(name, schema.encode_column(columns[name], name, kind_of(schema, name))[1], schema.missing) for name in names
    }


def original_columns(table: Any, schema: Schema) -> Columns:
    """The quasi-identifiers and sensitive attributes of a frame, file or `Columns`; no other columns are read."""
    names = dict.fromkeys([*require_schema(schema).quasi, *schema.sensitive])
    columns = read(table, None, list(names))
    refuse_empty(columns.rows)
    return columns


def column_groups(reading: Reading, names: Mapping[str, Any]) -> list[list[str]]:
    """The columns of a release that belong together inside a class, restricted to these.

    If all cells of a row belong together, quasi-identifiers are the same in the whole class, so sensitive attributes may be a
    separate group.
    """
    grouped = reading.column_groups or (tuple(reading.schema.quasi), tuple(reading.schema.sensitive))
    return [kept for group in grouped if (kept := [name for name in group if name in names])]

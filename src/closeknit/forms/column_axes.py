"""Columns as axes: what an analyst takes a written cell for. A cell says that a row lies anywhere in its range, evenly.

A number lies on a line, any other value on the line of its column's leaves, where leaf i takes up the unit from i to i + 1. So
the share of a cell inside a range is a length over a length for both; a cell of no length (a single number) is in or out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.cell_ranges import cell_ranges, counts_leaves, outermost
from closeknit.core.columns import Column, Columns
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.kinds import BadValue, texts_of
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema, require_schema
from closeknit.io.files import read

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Axis:
    """One column of the original table."""

    name: str
    domain: Domain
    missing: tuple[str, ...] = ()

    @property
    def leaves(self) -> bool:
        """Whether it is a line of leaves, not of numbers."""
        return counts_leaves(self.domain)

    @property
    def ends(self) -> tuple[float, float]:
        """Where the line begins and ends."""
        low, high = outermost(self.domain)
        return low, high + self.leaves

    def ranges(self, column: Column) -> tuple[Reals, Reals]:
        """Both ends of every distinct cell; the last entry, and that of every missing marker, is the missing cell (NaN).

        >>> from closeknit.core.kinds import numeric
        >>> axis = Axis("age", numeric().bind(np.array([30, 41]))[0], ("?",))
        >>> [ends.tolist() for ends in axis.ranges(Columns.of({"age": ["[30, 35]", "?"]})["age"])]
        [[30.0, nan, nan], [35.0, nan, nan]]
        """
        texts = ["" if text in self.missing else text for text in texts_of(column.values)]
        try:
            lo, hi = cell_ranges(self.domain, [*texts, ""])
        except BadValue as bad:
            raise BadInput(bad.what, column=self.name, row=column.first_row(bad.index), right=bad.right) from None
        return lo, hi + self.leaves

    def leaf_column(self, column: Column, schema: Schema) -> Column:
        """A column of raw values as the leaves that it has, by their names."""
        codes, domain, _ = schema.encode_column(column, self.name, kind_of(schema, self.name))
        return Column(np.array(domain.texts, dtype=object), np.where(codes == domain.size, -1, codes).astype(np.int32))


def kind_of(schema: Schema, name: str) -> Any:
    """What a quasi or sensitive column is."""
    return schema.quasi.get(name) or schema.sensitive[name]


def axes_of(columns: Columns, schema: Schema) -> dict[str, Axis]:
    """Every quasi and sensitive column of a table.

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
    """The quasi and sensitive columns of a frame, file or `Columns`; no others are read."""
    names = dict.fromkeys([*require_schema(schema).quasi, *schema.sensitive])
    columns = read(table, None, list(names))
    if columns.rows == 0:
        raise BadInput("the table has no rows", right="give at least one row")
    return columns


def column_groups(reading: Reading, names: Mapping[str, Any]) -> list[list[str]]:
    """The columns of a release that belong together inside a class, as far as they are among these.

    Where all cells of a row do, quasi cells are the same in the whole class: secrets may as well stand apart from them.
    """
    grouped = reading.column_groups or (tuple(reading.schema.quasi), tuple(reading.schema.sensitive))
    return [kept for group in grouped if (kept := [name for name in group if name in names])]

"""The form `generalized`: one line per row, quasi cells as ranges and nodes, secrets as they are.

Each class is written with the tightest range or lowest node that covers it (local recoding). Both ends of a tight numeric
range are true values of somebody in the class; `snap=True` writes bounds of the column's step instead. `levels` (column:
level) writes no cell finer than whole nodes of that level (full-domain recoding), though a tighter one would cover the class.

Rows without a class are withheld: "removed", or written as `*` in every quasi column, with their secrets ("starred") or with
`*` for these too ("hidden"). Whoever reads them finds one more class. `fallbacks` are what to write instead where that class
breaks a promise: it must not, and a secret that is not written cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.joint import CodedSecret, Secret, joined
from closeknit.core.kinds import texts_of
from closeknit.core.levels import at_level, top_level
from closeknit.core.order import Coded, groups, row_order
from closeknit.core.params import choice, whole
from closeknit.core.published import Reading, starred
from closeknit.core.schema import Schema
from closeknit.core.table import Partition, Table, Written
from closeknit.core.tree import STAR, Int32
from closeknit.kernels.boxes import boxes

WITHHELD = ("removed", "hidden", "starred")  # what is written of rows without a class, from nothing to their secrets
DENSE = 1 << 20  # possible ranges of a column up to which a table of marks is used


@dataclass(frozen=True)
class Generalized:
    """Writes and reads generalized cells."""

    name: ClassVar[str] = "generalized"
    snap: bool = False
    levels: Mapping[str, int | str] | None = None  # a number, or `*`: the last one
    withheld: str = WITHHELD[0]

    def __post_init__(self) -> None:
        choice("snap", self.snap, (True, False))
        choice("withheld", self.withheld, WITHHELD)
        if self.levels is None:
            return
        if not isinstance(self.levels, Mapping):
            raise BadInput(f"levels={self.levels!r} is not a mapping", right="write the level of each column: levels: {age: 2}")
        for name, level in self.levels.items():
            if level != STAR:
                whole(f"levels: {name}", level, least=0)
        plain = {name: STAR if level == STAR else int(level) for name, level in self.levels.items()}
        object.__setattr__(self, "levels", plain)

    def write(self, table: Table, partition: Partition) -> Written:
        """Rows sorted by their written cells: groups by the order of their labels, then secrets, then plain cells."""
        self._check(table)
        partition, stars = self._with_stars(partition)
        kept = np.flatnonzero(partition.class_of >= 0)
        class_of = partition.class_of[kept]
        hidden = stars[kept] if self.withheld == "hidden" else np.zeros(len(kept), dtype=bool)
        lo, hi = boxes(table.quasi, partition.class_of, partition.count)
        if stars.any():  # every leaf and the missing one: no label is wider
            lo[-1], hi[-1] = 0, [domain.size for domain in table.quasi_domains]
        written: dict[str, Column] = {}
        keys: list[Coded] = []
        for j, (name, domain) in enumerate(zip(table.schema.quasi, table.quasi_domains, strict=True)):
            labels, label_of_class = class_labels(domain, lo[:, j], hi[:, j], self.snap, (self.levels or {}).get(name))
            written[name] = _column(labels, label_of_class[class_of])
            keys.append((label_of_class[class_of], len(labels)))
        for j, (name, shown) in enumerate(zip(table.schema.sensitive, table.shown, strict=True)):
            codes = np.where(hidden, len(shown) + 1, table.sensitive[kept, j])
            written[name] = _hidden(_compact(Column(shown, np.where(codes >= len(shown), -1, codes).astype(np.int32))), hidden)
            keys.append((codes, len(shown) + 2))
        for name, column in table.plain.items():
            written[name] = _compact(column.take(kept))
            keys.append((column.codes[kept] + 1, len(column.values) + 1))
        order = row_order(keys, len(kept))
        named = {name: written[name].take(order) for name in table.schema.published}
        return Written(Columns(named, len(kept)), kept[order])

    @property
    def fallbacks(self) -> tuple[Generalized, ...]:
        """The same form, telling less and less of withheld rows."""
        less = WITHHELD[: WITHHELD.index(self.withheld)]
        return tuple(replace(self, withheld=withheld) for withheld in less[::-1])

    def _with_stars(self, partition: Partition) -> tuple[Partition, NDArray[np.bool_]]:
        """Withheld rows that are written are the last class; and which rows these are."""
        stars = (partition.class_of < 0) & (self.withheld != "removed")
        if not stars.any():
            return partition, stars
        return Partition(np.where(stars, partition.count, partition.class_of).astype(np.int32), partition.count + 1), stars

    def _check(self, table: Table) -> None:
        for name, level in (self.levels or {}).items():
            if name not in table.schema.quasi:
                raise BadInput("has a level and is not quasi", column=name, right="levels are those of quasi columns")
            if not isinstance(level, str) and level > (
                top := top_level(table.quasi_domains[list(table.schema.quasi).index(name)])
            ):
                raise BadInput(f"has no level {level}", column=name, right=f"its levels go from 0 to {top}")
        for name, domain in zip(table.schema.quasi, table.quasi_domains, strict=True):
            if name in table.schema.sensitive:
                raise BadInput("is quasi and sensitive", column=name, right="generalized releases need one role a column")
            if self.snap and domain.tree is None and domain.step is None:
                raise BadInput("has no step to snap to", column=name, right="declare numeric(step=...) or leave snap out")

    def read(self, columns: Columns, schema: Schema, persons: NDArray[np.int64] | None = None,
             joints: Sequence[tuple[str, ...]] = ()) -> Reading:  # fmt: skip
        """The adversary's view: rows with equal written quasi cells are one class. `persons` (private) by written row."""
        cells = {name: _without(columns[name], schema.missing) for name in schema.quasi}
        keys = [(column.codes + 1, len(column.values) + 1) for column in cells.values()]
        class_of, count = groups(keys, columns.rows)
        secrets: dict[Secret, CodedSecret] = {name: _secret(columns[name], name, schema) for name in schema.sensitive}
        secrets |= {names: joined([secrets[name] for name in names]) for names in joints}
        return Reading(columns, schema, class_of, Classes.of(class_of, count, secrets, persons))


def generalized(snap: bool = False, levels: Mapping[str, int | str] | None = None, withheld: str = WITHHELD[0]) -> Generalized:
    """The form that writes ranges and nodes.

    >>> generalized(levels={"age": 2})
    Generalized(snap=False, levels={'age': 2}, withheld='removed')
    """
    return Generalized(snap, levels, withheld)


def class_labels(domain: Domain, lo: Int32, hi: Int32, snap: bool, level: int | str | None = None) -> tuple[list[str], Int32]:
    """Distinct labels in the order of what they say, and the label of each class."""
    width = domain.size + 1
    pairs, pair_of = _distinct(lo.astype(np.int64) * width + hi, width * width)
    cells = domain if level is None else at_level(domain, top_level(domain) if isinstance(level, str) else level)
    per_pair = cells.labels((pairs // width).astype(np.int32), (pairs % width).astype(np.int32), snap)
    found = list(dict.fromkeys(per_pair))
    labels = [found[i] for i in domain.label_order(found)]
    place = {label: i for i, label in enumerate(labels)}
    return labels, np.array([place[label] for label in per_pair], dtype=np.int32)[pair_of]


def _distinct(keys: NDArray[np.int64], limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """As `np.unique` with its inverse; by a table of marks where keys are few enough, which is far faster."""
    if limit > DENSE:
        return np.unique(keys, return_inverse=True)
    place = np.zeros(limit, dtype=np.int64)
    place[keys] = 1
    distinct = np.flatnonzero(place)
    place[distinct] = np.arange(len(distinct))
    return distinct, place[keys]


def _column(labels: list[str], codes: Int32) -> Column:
    """Written labels as a column; the empty label is a missing cell."""
    kept = [i for i, label in enumerate(labels) if label != ""]
    code_of = np.full(len(labels), -1, dtype=np.int32)
    code_of[kept] = np.arange(len(kept))
    return Column(np.array([labels[i] for i in kept], dtype=object), code_of[codes])


def _compact(column: Column) -> Column:
    """Only the values that still occur: a list of values must not tell of rows that are not there."""
    used = np.flatnonzero(column.counts > 0)
    code_of = np.full(len(column.values) + 1, -1, dtype=np.int32)
    code_of[used] = np.arange(len(used))
    values = column.values[used]
    if values.dtype.kind == "O" and len(values) and all(type(value) in (int, float) for value in values.tolist()):
        values = np.array(values.tolist())  # numbers read from text: whole ones where all published ones are
    return Column(values, code_of[column.codes])


def _hidden(column: Column, rows: NDArray[np.bool_]) -> Column:
    """These cells as `*`; the others as text then, because a number and a star have no type in common."""
    if not rows.any():
        return column
    values = np.array([*texts_of(column.values), STAR], dtype=object)
    return Column(values, np.where(rows, len(values) - 1, column.codes).astype(np.int32))


def _without(column: Column, markers: tuple[str, ...]) -> Column:
    """Cells that are declared as missing become empty cells, so that both stand in one class."""
    marked = np.array([str(value) in markers for value in column.values.tolist()] + [True])
    return Column(column.values, np.where(marked[column.codes], -1, column.codes).astype(np.int32))


def _secret(column: Column, name: str, schema: Schema) -> tuple[Int32, Domain]:
    """Leaf codes of a written secret; a withheld one (`*`) is -1 and counts nowhere."""
    stars = starred(column)
    shown = Column(column.values, np.where(stars, -1, column.codes).astype(np.int32))
    codes, domain, _ = schema.coded(shown, name, schema.sensitive[name])
    return np.where(stars, -1, codes).astype(np.int32), domain

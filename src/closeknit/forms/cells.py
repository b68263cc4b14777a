"""Cells that forms write and read: labels of ranges and nodes, lists of values that tell nothing else, the order of cells."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column
from closeknit.core.domain import Domain, read_ranges
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.kinds import texts_of
from closeknit.core.levels import at_level, top_level
from closeknit.core.order import Coded
from closeknit.core.params import whole
from closeknit.core.table import Table
from closeknit.core.tree import STAR, Int32

DENSE = 1 << 20  # possible ranges of a column up to which a table of marks is used


def checked_levels(levels: object) -> dict[str, int | str] | None:
    """Levels of columns as they were asked for.

    >>> checked_levels({"age": 2, "zip": "*"})
    {'age': 2, 'zip': '*'}
    """
    if levels is None:
        return None
    if not isinstance(levels, Mapping):
        raise BadInput(f"levels={levels!r} is not a mapping", right="write the level of each column: levels: {age: 2}")
    return {name: STAR if level == STAR else whole(f"levels: {name}", level, least=0) for name, level in levels.items()}


def refuse_levels(levels: Mapping[str, int | str], table: Table) -> None:
    """Levels that the table's columns do not have."""
    for name, level in levels.items():
        if name not in table.schema.quasi:
            raise BadInput("has a level and is not quasi", column=name, right=suggest_name(name, table.schema.quasi))
        top = top_level(table.quasi_domains[list(table.schema.quasi).index(name)])
        if not isinstance(level, str) and level > top:
            raise BadInput(f"has no level {level}", column=name, right=f"its levels go from 0 to {top}")


def class_labels(domain: Domain, lo: Int32, hi: Int32, snap: bool, level: int | str | None = None) -> tuple[list[str], Int32]:
    """Distinct labels in the order of what they say, and the label of each class."""
    width = domain.size + 1
    pairs, pair_of = distinct(lo.astype(np.int64) * width + hi, width * width)
    cells = domain if level is None else at_level(domain, top_level(domain) if isinstance(level, str) else level)
    per_pair = cells.labels((pairs // width).astype(np.int32), (pairs % width).astype(np.int32), snap)
    found = list(dict.fromkeys(per_pair))
    labels = [found[i] for i in domain.label_order(found)]
    place = {label: i for i, label in enumerate(labels)}
    return labels, np.array([place[label] for label in per_pair], dtype=np.int32)[pair_of]


def distinct(keys: NDArray[np.int64], limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """As `np.unique` with its inverse; by a table of marks where keys are few enough, which is far faster."""
    if limit > DENSE:
        return np.unique(keys, return_inverse=True)
    place = np.zeros(limit, dtype=np.int64)
    place[keys] = 1
    distinct = np.flatnonzero(place)
    place[distinct] = np.arange(len(distinct))
    return distinct, place[keys]


def label_column(labels: list[str], codes: Int32) -> Column:
    """Written labels as a column; the empty label is a missing cell."""
    kept = [i for i, label in enumerate(labels) if label != ""]
    code_of = np.full(len(labels), -1, dtype=np.int32)
    code_of[kept] = np.arange(len(kept))
    return Column(np.array([labels[i] for i in kept], dtype=object), code_of[codes])


def compact(column: Column) -> Column:
    """Only the values that still occur: a list of values must not tell of rows that are not there."""
    used = np.flatnonzero(column.counts > 0)
    code_of = np.full(len(column.values) + 1, -1, dtype=np.int32)
    code_of[used] = np.arange(len(used))
    values = column.values[used]
    if values.dtype.kind == "O" and len(values) and all(type(value) in (int, float) for value in values.tolist()):
        values = np.array(values.tolist())  # numbers read from text: whole ones where all published ones are
    return Column(values, code_of[column.codes])


def hidden_cells(column: Column, rows: NDArray[np.bool_]) -> Column:
    """These cells as `*`; the others as text then, because a number and a star have no type in common."""
    if not rows.any():
        return column
    values = np.array([*texts_of(column.values), STAR], dtype=object)
    return Column(values, np.where(rows, len(values) - 1, column.codes).astype(np.int32))


def cell_order(column: Column) -> Coded:
    """Codes of a column in the order of what is written: numbers and ranges by value, all else as text, missing cells last.

    It needs the written cells alone, so that whoever reads them finds the order in which they have to stand.

    >>> from closeknit.core.columns import Columns
    >>> cell_order(Columns.of({"age": ["10", None, "9", "[9, 12]"]})["age"])[0].tolist()
    [2, 3, 0, 1]
    """
    texts = texts_of(column.values)
    keys: tuple[NDArray[np.float64], ...] = ()
    with suppress(ValueError):  # no numbers
        keys = read_ranges(texts)[::-1]
    place = np.empty(len(texts) + 1, dtype=np.int32)
    place[np.lexsort((np.array(texts, dtype=object), *keys)) if texts else []] = np.arange(len(texts))
    place[-1] = len(texts)
    return place[column.codes], len(texts) + 1

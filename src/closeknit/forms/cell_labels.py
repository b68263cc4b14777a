"""Cells that forms write and read: labels of ranges and nodes, lists of the values that occur, and the order of cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column
from closeknit.core.domain import NUMBER_TEXT, RANGE_TEXT, Domain
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.kinds import texts_of
from closeknit.core.levels import at_level, top_level
from closeknit.core.params import whole
from closeknit.core.row_sorting import Coded
from closeknit.core.table import Table
from closeknit.core.tree import STAR
from closeknit.kernels.arrays import Int32

CANONICAL = "a release is sorted by its written cells, first column first: numbers by value, then texts, missing cells last"
DENSE = 1 << 20  # possible ranges of a column up to which a lookup table is used


def check_levels(levels: object) -> dict[str, int | str] | None:
    """Requested levels of columns.

    >>> check_levels({"age": 2, "zip": "*"})
    {'age': 2, 'zip': '*'}
    """
    if levels is None:
        return None
    if not isinstance(levels, Mapping):
        raise BadInput(f"levels={levels!r} is not a mapping", right="write the level of each column: levels: {age: 2}")
    return {name: STAR if level == STAR else whole(f"levels: {name}", level, least=0) for name, level in levels.items()}


def refuse_levels(levels: Mapping[str, int | str], table: Table) -> None:
    """Refuse levels that the table's columns do not have."""
    for name, level in levels.items():
        if name not in table.schema.quasi:
            raise BadInput("has a level but is not quasi", column=name, right=suggest_name(name, table.schema.quasi))
        top = top_level(table.quasi_domains[list(table.schema.quasi).index(name)])
        if not isinstance(level, str) and level > top:
            raise BadInput(f"has no level {level}", column=name, right=f"its levels are 0 to {top}")


def class_labels(domain: Domain, lo: Int32, hi: Int32, snap: bool, level: int | str | None = None) -> tuple[list[str], Int32]:
    """Distinct labels in canonical order, and the label of each class."""
    width = domain.size + 1
    pairs, pair_of = distinct(lo.astype(np.int64) * width + hi, width * width)
    cells = domain if level is None else at_level(domain, top_level(domain) if isinstance(level, str) else level)
    per_pair = cells.labels((pairs // width).astype(np.int32), (pairs % width).astype(np.int32), snap)
    found = list(dict.fromkeys(per_pair))
    labels = [found[i] for i in text_order(found)]
    place = {label: i for i, label in enumerate(labels)}
    return labels, np.array([place[label] for label in per_pair], dtype=np.int32)[pair_of]


def distinct(keys: NDArray[np.int64], limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """As `np.unique` with its inverse; with a lookup table if keys are small enough, which is far faster."""
    if limit > DENSE:
        return np.unique(keys, return_inverse=True)
    place = np.zeros(limit, dtype=np.int64)
    place[keys] = 1
    distinct = np.flatnonzero(place)
    place[distinct] = np.arange(len(distinct))
    return distinct, place[keys]


def label_column(labels: list[str], codes: Int32) -> Column:
    """Written labels as a column; the empty label is a missing cell."""
    shown = np.array([label != "" for label in labels], dtype=bool)
    code_of = np.where(shown, np.cumsum(shown) - 1, -1).astype(np.int32)
    return Column(np.array(labels, dtype=object)[shown], code_of[codes])


def compact(column: Column) -> Column:
    """Only the values that occur: a list of values must not disclose rows that are not published."""
    column = column.drop_unused()
    values = column.values
    if values.dtype.kind == "O" and len(values) and all(type(value) in (int, float) for value in values.tolist()):
        values = np.array(values.tolist())  # numbers read from text: whole numbers if all published ones are
    return Column(values, column.codes)


def hide_cells(column: Column, rows: NDArray[np.bool_]) -> Column:
    """Write these cells as `*`, and the others as text, because numbers and `*` have no common type."""
    if not rows.any():
        return column
    values = np.array([*texts_of(column.values), STAR], dtype=object)
    return Column(values, np.where(rows, len(values) - 1, column.codes).astype(np.int32))


def tight_note(name: str) -> str:
    """The note of a certificate on a column whose ranges disclose true values.

    >>> tight_note("age")
    "column 'age': both ends of a range are true values of rows in the class"
    """
    return f"column '{name}': both ends of a range are true values of rows in the class"


def cell_key(text: str) -> tuple[float, float, str]:
    """Sort key of a written cell that is not missing, by its text alone: numbers and ranges by value, then all other texts.

    >>> sorted(["flu", "10", "*", "[9, 12]", "9"], key=cell_key)
    ['9', '[9, 12]', '10', '*', 'flu']
    """
    if match := RANGE_TEXT.fullmatch(text):
        return float(match[1]), float(match[2]), text
    value = float(text) if NUMBER_TEXT.fullmatch(text) else math.inf
    return value, value, text


def text_order(texts: Sequence[str]) -> NDArray[np.int64]:
    """Positions of distinct written cells in canonical order; the missing cell, '', is last.

    >>> text_order(["10", "", "9", "[9, 12]"]).tolist()
    [2, 3, 0, 1]
    """
    keys = [(text == "", *cell_key(text)) for text in texts]
    return np.array(sorted(range(len(texts)), key=keys.__getitem__), dtype=np.int64)


def cell_order(column: Column) -> Coded:
    """Codes of a column in the canonical order of its written cells, missing cells last.

    It depends on the written cells alone, so that a recipient can check the order of a release.

    >>> from closeknit.core.columns import Columns
    >>> cell_order(Columns.of({"age": ["10", None, "9", "[9, 12]"]})["age"])[0].tolist()
    [2, 3, 0, 1]
    """
    values = column.values
    exact = values.dtype.kind in "iuf" and bool((np.abs(values.astype(np.float64)) < 2.0**53).all())
    order = np.argsort(values, kind="stable") if exact else text_order(texts_of(values))  # the same order, much faster
    place = np.empty(len(values) + 1, dtype=np.int32)
    place[order] = np.arange(len(values))
    place[-1] = len(values)
    return place[column.codes], len(values) + 1

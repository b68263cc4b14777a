"""Values drawn below the labels of classes, for `generalized(cells="sample")`, and whether written ones are below theirs.

A draw depends on the private seed, the column, the label and the place of the row in the order of what is published next to
it: never on the raw value. Labels with no declared values below them stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.dates import Date
from closeknit.core.domain import NUMBER_TEXT, Domain, read_ranges
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kinds import Kind, Numeric, texts_of
from closeknit.core.perturbation import hash_to_words
from closeknit.core.row_sorting import row_order
from closeknit.core.schema import Schema
from closeknit.core.table import Partition, Table, WrittenTable
from closeknit.core.tree import STAR
from closeknit.forms.cell_labels import cell_order
from closeknit.forms.number_cells import (
    close_ends,
    list_added,
    list_drawn,
    number_column,
    number_columns,
    read_labels,
    write_ends,
)
from closeknit.kernels.arrays import Reals

Words = NDArray[np.uint64]
PARTS = 100  # of a range of decimals without a step, to draw from


def draw_values(table: Table, written: WrittenTable, bounds: bool, seed: int) -> dict[str, Column]:
    """The columns of a release, with a drawn value for each label and the label next to it.

    Args:
        table: the rows.
        written: the rows with labels, as `sort_for_draws` orders them.
        bounds: whether drawn values come with their labels.
        seed: of the draws.
    """
    schema, added = table.schema, list_added("sample", bounds, table.schema)
    found: dict[str, Column] = {}
    for name, labels in written.columns.items():
        if name not in added:
            found[name] = labels
        else:
            domain = table.quasi_domains[list(schema.quasi).index(name)]
            found |= _write_drawn(name, labels, schema.quasi[name], domain, seed, added)
    return found


def sort_for_draws(written: WrittenTable, schema: Schema) -> WrittenTable:
    """The rows in the order of the labels that can be read back: missing numbers read as `*`, so both draw alike.

    Args:
        written: the rows with labels.
        schema: the columns of the table.
    """
    columns = dict(written.columns)
    for name in number_columns(schema):
        labels = columns[name]
        column = Column(np.append(labels.values, STAR).astype(object), labels.codes % (len(labels.values) + 1))
        columns[name] = column.with_texts(texts_of(column.values)).drop_unused()
    order = row_order([cell_order(column) for column in columns.values()], len(written.rows))
    return WrittenTable(Columns(columns, len(order)).take(order), written.rows[order])


def _write_drawn(
    name: str, labels: Column, kind: Kind, domain: Domain, seed: int, added: Mapping[str, Sequence[str]]
) -> dict[str, Column]:
    """A drawn value per row, and the label that it is below."""
    words = draw_words(name, seed, len(labels.codes))
    if isinstance(kind, Numeric):
        drawn, shown = _draw_numbers(labels, kind, domain, words), write_ends(name, labels)
    else:
        drawn, shown = _draw_texts(labels, kind, words), {f"{name}_label": labels}
    return {name: drawn, **(shown if len(added[name]) > 1 else {})}


def draw_words(column: str, seed: int, count: int) -> Words:
    """Random words of a column: SHAKE-256 of its name and the private seed; no value of the table is part of it.

    >>> bool((draw_words("age", 7, 3) == draw_words("age", 8, 3)).any())
    False
    """
    return hash_to_words(["closeknit sample", column, seed], count)


def _draw_numbers(labels: Column, kind: Numeric, domain: Domain, words: Words) -> Column:
    lo, hi = close_ends(labels, kind)
    values = np.full(len(labels.codes), np.nan)
    for label, rows in _rows_by_label(labels):
        if not np.isnan([lo[label], hi[label]]).any():
            grid = _grid(lo[label], hi[label], domain)
            values[rows] = grid[_choose(words[rows], len(grid))]
    return number_column(values)


def _rows_by_label(labels: Column) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each label that occurs, with its rows; missing cells are left out."""
    rows = Partition(labels.codes, len(labels.values)).list_rows()
    for label in np.unique(labels.codes[labels.codes >= 0]).tolist():
        yield label, rows[label]


def _choose(words: Words, count: int) -> NDArray[np.int64]:
    """A number below `count` from each word; 64 bits make the rest of the division negligible."""
    return (words % np.uint64(count)).astype(np.int64)


def _grid(low: float, high: float, domain: Domain) -> Reals:
    """The multiples of the step inside a range; both ends where there are none."""
    first, last = Fraction(str(low)), Fraction(str(high))
    step = Fraction(str(domain.step)) if domain.step is not None else Fraction(1)
    if domain.step is None and (first.denominator, last.denominator) != (1, 1):
        step = (last - first) / PARTS or Fraction(1)
        return np.array([float(first + i * step) for i in range(PARTS + 1)])
    multiples = range(math.ceil(first / step), math.floor(last / step) + 1)
    return np.array([float(i * step) for i in multiples] or [low, high], dtype=np.float64)


def _draw_texts(labels: Column, kind: Kind, words: Words) -> Column:
    drawn = np.full(len(labels.codes), None, dtype=object)
    texts = texts_of(labels.values)
    for label, rows in _rows_by_label(labels):
        first, last = _span_below(kind, texts[label]) or (0, -1)
        for row, chosen in zip(rows.tolist(), _choose(words[rows], max(last - first + 1, 1)).tolist(), strict=True):
            drawn[row] = texts[label] if last < first else _leaf_text(kind, first + chosen)
    return Columns.of({"": drawn.tolist()})[""]


def _span_below(kind: Kind, text: str) -> tuple[int, int] | None:
    """The first and last declared value below a label; None where they are not declared (`*` of dates without bounds)."""
    if isinstance(kind, Date):
        return kind.units_below(text)
    assert isinstance(kind, Hierarchy)
    if text == STAR:
        return 0, kind.tree.size - 1
    node = list(kind.tree.labels).index(text)
    return int(kind.tree.lo[node]), int(kind.tree.hi[node])


def _leaf_text(kind: Kind, place: int) -> str:
    if isinstance(kind, Date):
        return kind.unit_label(place)
    assert isinstance(kind, Hierarchy)
    return kind.tree.leaf_labels[place]


def find_misplaced(columns: Columns, schema: Schema) -> list[str]:
    """Drawn values that are not below their label, one sentence per column.

    Args:
        columns: the written cells, with labels.
        schema: the published columns.

    >>> from closeknit.core.kinds import numeric
    >>> rows = Columns.of({"age": [17], "age_lo": [20], "age_hi": [30]})
    >>> find_misplaced(rows, Schema(quasi={"age": numeric()}))
    ["column 'age', row 1: 17 is not below its label [20, 30]"]
    """
    labels, found = read_labels(columns, schema, "sample", True), []
    for name in list_drawn(schema):
        kind, drawn, label = schema.quasi[name], columns[name], labels[name]
        texts, shown = [*texts_of(drawn.values), ""], [*texts_of(label.values), ""]
        (values, of_rows), first = np.unique(np.stack([drawn.codes, label.codes]), axis=1, return_index=True)
        pairs = zip(values.tolist(), of_rows.tolist(), first.tolist(), strict=True)
        wrong = [row for a, b, row in pairs if not _is_below(kind, texts[a], shown[b])]
        if wrong:
            value, of_row = texts[drawn.codes[min(wrong)]], shown[label.codes[min(wrong)]]
            place = f"column '{name}', row {min(wrong) + 1:,}"
            found.append(f"{place}: {value or 'nothing'} is not below its label {of_row or 'nothing'}")
    return found


def _is_below(kind: Kind, value: str, label: str) -> bool:
    if value in ("", STAR) or label in ("", STAR):
        return label in ("", STAR)
    if isinstance(kind, Numeric):
        (low,), (high,) = read_ranges([label])
        return NUMBER_TEXT.fullmatch(value) is not None and bool(low <= float(value) <= high)
    if isinstance(kind, Date):
        inside, outside = kind.units_below(value), kind.units_below(label)
        return inside is not None and outside is not None and outside[0] <= inside[0] and inside[1] <= outside[1]
    span = _span_below(kind, label)
    assert isinstance(kind, Hierarchy) and span is not None
    return value in kind.tree.leaf_labels[span[0] : span[1] + 1]

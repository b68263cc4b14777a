"""Generalized cells as numbers: ends of a range, its middle, a statistic of the class, or a value drawn below the label.

The labels are written first, as ranges and nodes, and then replaced. What an adversary reads back is judged, so each way says
what it still shows:

- `bounds`: the same as the range, in two columns of numbers. Two missing ends read as `*`.
- `midpoint`: one number per range; less than the range.
- `mean`, `median`: a statistic of all rows of the class, rounded to the step. Classes with equal numbers read as one class.
- `sample`: a value drawn uniformly below the label, by a keyed generator that sees neither the raw value nor its position in
  the class. The labels are written, too, unless `bounds=False`: then nobody can read the classes back.

Source of `mean`: microaggregation (Domingo-Ferrer, Mateo-Sanz 2002). Cost: one pass over the rows per column.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.dates import Date
from closeknit.core.domain import NUMBER_TEXT, Domain, bottom_text, read_ranges, top_text
from closeknit.core.errors import BadInput
from closeknit.core.exact import plain_number
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kinds import Kind, Numeric, texts_of
from closeknit.core.row_sorting import row_order
from closeknit.core.schema import Schema
from closeknit.core.table import Partition, Table, WrittenTable
from closeknit.core.tree import STAR, Int32
from closeknit.forms.cell_labels import cell_order

Reals = NDArray[np.float64]
Words = NDArray[np.uint64]
WHOLE = 2.0**53  # beyond it a float is not every whole number
PARTS = 100  # of a range of decimals without a step, to draw from


def number_columns(schema: Schema) -> list[str]:
    """Quasi-identifiers that are written as numbers."""
    return [name for name, kind in schema.quasi.items() if isinstance(kind, Numeric)]


def drawn_columns(schema: Schema) -> list[str]:
    """Quasi-identifiers whose values below a label are declared: numbers, dates and declared trees.

    A value below the label of any other column would be one that occurs in the table.
    """
    return [name for name, kind in schema.quasi.items() if isinstance(kind, Numeric | Date) or _is_declared(kind)]


def _is_declared(kind: Kind) -> bool:
    return isinstance(kind, Hierarchy) and not kind.from_data


def added_columns(cells: str, bounds: bool, schema: Schema) -> dict[str, list[str]]:
    """The columns that are written for each changed quasi-identifier, in their order.

    >>> from closeknit.core.kinds import numeric
    >>> added_columns("bounds", True, Schema(quasi={"age": numeric()}))
    {'age': ['age_lo', 'age_hi']}
    """
    ends = {name: [f"{name}_lo", f"{name}_hi"] for name in number_columns(schema)}
    if cells == "bounds":
        return ends
    if cells == "sample":
        return {name: [name, *(ends.get(name, [f"{name}_label"]) if bounds else [])] for name in drawn_columns(schema)}
    return {}


def refuse_clashes(written: Mapping[str, Sequence[str]], schema: Schema) -> None:
    """Refuse a column that has the name of one that is added.

    Args:
        written: as `added_columns` returns them.
        schema: the columns of the table.
    """
    names = {*schema.used, *schema.removed}
    for column, added in written.items():
        for name in added:
            if name != column and name in names:
                what = f"is a column of the table and the name of a column that is written for '{column}'"
                raise BadInput(what, column=name, right="rename it, or write ranges: cells='ranges'")


def replace_labels(
    table: Table, partition: Partition, written: WrittenTable, cells: str, bounds: bool, seed: int
) -> dict[str, Column]:
    """The columns of a release, with labels replaced by numbers.

    Args:
        table: the rows.
        partition: their classes.
        written: the rows with labels.
        cells: what replaces a label.
        bounds: whether drawn values come with their labels.
        seed: of the draws.
    """
    schema = table.schema
    added = added_columns(cells, bounds, schema)
    found: dict[str, Column] = {}
    for name, labels in written.columns.items():
        place = list(schema.quasi).index(name) if name in schema.quasi else -1
        if name not in schema.quasi or (cells != "sample" and not isinstance(schema.quasi[name], Numeric)):
            found[name] = labels
        elif cells == "bounds":
            found |= _write_ends(name, labels)
        elif cells == "sample":
            found |= _write_drawn(name, labels, schema.quasi[name], table.quasi_domains[place], seed, added)
        elif cells == "midpoint":
            found[name] = _numbers_of(_middles(labels, schema.quasi[name]), labels.codes)
        else:
            found[name] = _write_statistic(table, partition, written, place, cells)
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


def _label_ends(labels: Column) -> tuple[Reals, Reals]:
    """Both ends of each distinct label, and NaN at the end for the missing one."""
    return read_ranges([*texts_of(labels.values), ""])


def _numbers_of(per_label: Reals, codes: Int32) -> Column:
    """A column of numbers from the number of each label; NaN is a missing cell."""
    return number_column(per_label[codes])


def number_column(numbers: Reals) -> Column:
    """A column of numbers, whole ones as integers where all are; NaN is a missing cell.

    >>> number_column(np.array([30.0, np.nan, 20.0])).cells()
    [30, None, 20]
    """
    known = ~np.isnan(numbers)
    values, places = np.unique(numbers[known], return_inverse=True)
    codes = np.full(len(numbers), -1, dtype=np.int32)
    codes[known] = places
    whole = bool(((values == np.floor(values)) & (np.abs(values) < WHOLE)).all())
    return Column(values.astype(np.int64) if whole else values, codes)


def _write_ends(name: str, labels: Column) -> dict[str, Column]:
    """Lower and upper end; an open end, `*` and a missing cell have none."""
    lo, hi = (np.where(np.isfinite(ends), ends, np.nan) for ends in _label_ends(labels))
    return {f"{name}_lo": _numbers_of(lo, labels.codes), f"{name}_hi": _numbers_of(hi, labels.codes)}


def _closed_ends(labels: Column, kind: Kind) -> tuple[Reals, Reals]:
    """Both ends; an open one at the declared bound, or else where the code begins; `*` from bound to bound, if declared."""
    lo, hi = _label_ends(labels)
    low, high = kind.bounds or (np.nan, np.nan)
    star = np.array([*(text == STAR for text in texts_of(labels.values)), False])
    lo, hi = np.where(star, low, lo), np.where(star, high, hi)
    lo = np.where(np.isneginf(lo), hi if kind.bounds is None else low, lo)
    return lo, np.where(np.isposinf(hi), lo if kind.bounds is None else high, hi)


def _middles(labels: Column, kind: Kind) -> Reals:
    lo, hi = _closed_ends(labels, kind)
    ends = zip(lo.tolist(), hi.tolist(), strict=True)
    return np.array([a if math.isnan(a) else float((Fraction(str(a)) + Fraction(str(b))) / 2) for a, b in ends])


def _write_statistic(table: Table, partition: Partition, written: WrittenTable, place: int, cells: str) -> Column:
    """Mean or median of the coded numbers of each class, rounded to the step; none where a value is missing or suppressed."""
    domain = table.quasi_domains[place]
    assert domain.numbers is not None
    numbers = np.append(domain.numbers, np.nan)[table.quasi[:, place]]
    class_of = partition.class_of
    found = np.full(partition.count + 1, np.nan)  # the last entry is that of suppressed rows
    kept = np.flatnonzero(class_of >= 0)
    order = kept[np.lexsort((numbers[kept], class_of[kept]))]
    ends = np.cumsum(np.bincount(class_of[kept], minlength=partition.count))
    step = Fraction(str(domain.step)) if domain.step is not None else Fraction(1)
    for number, (first, last) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
        rows = numbers[order[first:last]]
        if len(rows) and not np.isnan(rows[-1]):
            found[number] = _round(_statistic(rows, cells), step)
    return number_column(found[class_of[written.rows]])


def _statistic(ascending: Reals, cells: str) -> Fraction:
    if cells == "mean":
        values, counts = np.unique(ascending, return_counts=True)
        each = zip(values.tolist(), counts.tolist(), strict=True)
        return sum((Fraction(str(value)) * count for value, count in each), Fraction(0)) / len(ascending)
    middle = (len(ascending) - 1) // 2, len(ascending) // 2
    return sum((Fraction(str(float(ascending[i]))) for i in middle), Fraction(0)) / 2


def _round(value: Fraction, step: Fraction) -> float:
    """The nearest multiple of the step; of two, the even one."""
    return float(round(value / step) * step)


def _write_drawn(
    name: str, labels: Column, kind: Kind, domain: Domain, seed: int, added: Mapping[str, Sequence[str]]
) -> dict[str, Column]:
    """A drawn value per row, and the label that it is below; the label alone where no values below it are declared."""
    if name not in added:
        return {name: labels}
    words = draw_words(name, seed, len(labels.codes))
    if isinstance(kind, Numeric):
        drawn, shown = _draw_numbers(labels, kind, domain, words), _write_ends(name, labels)
    else:
        drawn, shown = _draw_texts(labels, kind, words), {f"{name}_label": labels}
    return {name: drawn, **(shown if len(added[name]) > 1 else {})}


def draw_words(column: str, seed: int, count: int) -> Words:
    """Random words of a column: SHAKE-256 of its name and the private seed; no value of the table is part of it.

    >>> bool((draw_words("age", 7, 3) == draw_words("age", 8, 3)).any())
    False
    """
    text = json.dumps(["closeknit sample", column, seed])
    return np.frombuffer(hashlib.shake_256(text.encode()).digest(8 * count), dtype="<u8").astype(np.uint64)


def _draw_numbers(labels: Column, kind: Numeric, domain: Domain, words: Words) -> Column:
    lo, hi = _closed_ends(labels, kind)
    values = np.full(len(labels.codes), np.nan)
    for label, rows in _rows_by_label(labels):
        if not np.isnan([lo[label], hi[label]]).any():
            grid = _grid(lo[label], hi[label], domain)
            values[rows] = grid[_choose(words[rows], len(grid))]
    return number_column(values)


def _rows_by_label(labels: Column) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each label that occurs, with its rows; missing cells are left out."""
    order = np.argsort(labels.codes, kind="stable")
    starts = np.searchsorted(labels.codes[order], np.arange(len(labels.values) + 1))
    for label in range(len(labels.values)):
        if starts[label] < starts[label + 1]:
            yield label, order[starts[label] : starts[label + 1]]


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


def read_labels(columns: Columns, schema: Schema, cells: str, bounds: bool) -> Columns:
    """The written cells with the labels that they give: ranges from their ends, nodes from their own columns.

    Args:
        columns: the written cells.
        schema: the published columns.
        cells: what replaced a label.
        bounds: whether drawn values come with their labels.

    >>> from closeknit.core.kinds import numeric
    >>> ends = Columns.of({"age_lo": [20, 90, None], "age_hi": ["35", None, None]})
    >>> read_labels(ends, Schema(quasi={"age": numeric()}), "bounds", True)["age"].cells()
    ['[20, 35]', '90+', '*']
    """
    added = added_columns(cells, bounds, schema)
    found: dict[str, Column] = {}
    for name in schema.published:
        names = added.get(name, [])
        if len(names) < 2:
            found[name] = columns[name]
        else:
            *_, last = names
            found[name] = columns[last] if len(names) == 2 and names[0] == name else _join_ends(columns, names[-2:])
    return Columns(found, columns.rows)


def _join_ends(columns: Columns, names: Sequence[str]) -> Column:
    """The label of each row from both of its ends."""
    ends = [columns[name] for name in names]
    lo, hi = ([*_read_numbers(column, name), math.nan] for column, name in zip(ends, names, strict=True))
    width = len(hi)
    pairs, codes = np.unique((ends[0].codes % len(lo)).astype(np.int64) * width + ends[1].codes % width, return_inverse=True)
    labels = [_join_label(lo[pair // width], hi[pair % width]) for pair in pairs.tolist()]
    return Column(np.array(labels, dtype=object), codes.astype(np.int32)).with_texts(labels)


def _read_numbers(column: Column, name: str) -> list[float]:
    for text in texts_of(column.values):
        if not NUMBER_TEXT.fullmatch(text):
            raise BadInput(f"'{text}' is not a number", column=name, right="write the end of a range, or leave the cell empty")
    return [float(text) for text in texts_of(column.values)]


def _join_label(low: float, high: float) -> str:
    if math.isnan(low):
        return STAR if math.isnan(high) else bottom_text(high)
    if math.isnan(high):
        return top_text(low)
    return plain_number(low) if low == high else f"[{plain_number(low)}, {plain_number(high)}]"


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
    for name in drawn_columns(schema):
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


def cell_notes(cells: str, bounds: bool, schema: Schema) -> list[str]:
    """What was replaced by what, per column; from the published schema alone."""
    numbers = number_columns(schema)
    if cells == "bounds":
        return [f"column '{name}': ranges are written as their ends, in {name}_lo and {name}_hi" for name in numbers]
    if cells == "midpoint":
        return [
            f"column '{name}': a number is the middle of the range of its class, not the value of a row" for name in numbers
        ]
    if cells in ("mean", "median"):
        steps = {name: plain_number(schema.quasi[name].step or 1) for name in numbers}
        return [
            f"column '{name}': a number is the {cells} of its class, rounded to multiples of {steps[name]}" for name in numbers
        ]
    if cells != "sample":
        return []
    where = added_columns(cells, bounds, schema)
    shown = {name: f" ({' and '.join(names[1:])})" if len(names) > 1 else "" for name, names in where.items()}
    return [f"column '{name}': values were drawn below the label of the class{shown[name]}" for name in where]


__all__ = [
    "added_columns",
    "cell_notes",
    "draw_words",
    "find_misplaced",
    "number_column",
    "read_labels",
    "refuse_clashes",
    "replace_labels",
    "sort_for_draws",
]

"""Generalized cells as numbers: ends of a range, its middle, a statistic of the class, or a value drawn below the label.

The labels are written first, as ranges and nodes, and then replaced. What an adversary reads back is judged, so each way says
what it still shows:

- `bounds`: the same as the range, in two columns of numbers. Two missing ends read as `*`.
- `midpoint`: one number per range; less than the range.
- `mean`, `median`: a statistic of all rows of the class, rounded to the step. Classes with equal numbers read as one class.
- `sample`: a value drawn uniformly below the label, by a keyed generator that sees neither the raw value nor its position in
  the class. The labels are written, too, unless `bounds=False`: then no one can read the classes back.

Source of `mean`: microaggregation (Domingo-Ferrer, Mateo-Sanz 2002). Cost: one pass over the rows per column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.dates import Date
from closeknit.core.domain import NUMBER_TEXT, bottom_text, read_ranges, top_text
from closeknit.core.errors import BadInput
from closeknit.core.exact import plain_number
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kinds import Kind, Numeric, texts_of
from closeknit.core.schema import Schema
from closeknit.core.table import Partition, Table, WrittenTable
from closeknit.core.tree import STAR
from closeknit.kernels.arrays import Int32, Reals

WHOLE = 2.0**53  # beyond it a float is not every whole number


def number_columns(schema: Schema) -> list[str]:
    """Quasi-identifiers that are written as numbers."""
    return [name for name, kind in schema.quasi.items() if isinstance(kind, Numeric)]


def list_drawn(schema: Schema) -> list[str]:
    """Quasi-identifiers whose values below a label are declared: numbers, dates and declared trees.

    A value below the label of any other column would be one that occurs in the table.
    """
    return [name for name, kind in schema.quasi.items() if isinstance(kind, Numeric | Date) or _is_declared(kind)]


def _is_declared(kind: Kind) -> bool:
    return isinstance(kind, Hierarchy) and not kind.from_data


def list_added(cells: str, bounds: bool, schema: Schema) -> dict[str, list[str]]:
    """The columns that are written for each changed quasi-identifier, in their order.

    >>> from closeknit.core.kinds import numeric
    >>> list_added("bounds", True, Schema(quasi={"age": numeric()}))
    {'age': ['age_lo', 'age_hi']}
    """
    ends = {name: [f"{name}_lo", f"{name}_hi"] for name in number_columns(schema)}
    if cells == "bounds":
        return ends
    if cells == "sample":
        return {name: [name, *(ends.get(name, [f"{name}_label"]) if bounds else [])] for name in list_drawn(schema)}
    return {}


def refuse_clashes(written: Mapping[str, Sequence[str]], schema: Schema) -> None:
    """Refuse a column that has the name of one that is added.

    Args:
        written: as `list_added` returns them.
        schema: the columns of the table.
    """
    names = {*schema.used, *schema.removed}
    for column, added in written.items():
        for name in added:
            if name != column and name in names:
                what = f"is a column of the table and the name of a column that is written for '{column}'"
                raise BadInput(what, column=name, right="rename it, or write ranges: cells='ranges'")


def replace_labels(table: Table, partition: Partition, written: WrittenTable, cells: str) -> dict[str, Column]:
    """The columns of a release, with labels replaced by numbers.

    Args:
        table: the rows.
        partition: their classes.
        written: the rows with labels.
        cells: what replaces a label; drawn values are in `drawn_values`.
    """
    schema = table.schema
    found: dict[str, Column] = {}
    for name, labels in written.columns.items():
        if not isinstance(schema.quasi.get(name), Numeric):
            found[name] = labels
        elif cells == "bounds":
            found |= write_ends(name, labels)
        elif cells == "midpoint":
            found[name] = _numbers_of(_middles(labels, schema.quasi[name]), labels.codes)
        else:
            found[name] = _write_statistic(table, partition, written, list(schema.quasi).index(name), cells)
    return found


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


def write_ends(name: str, labels: Column) -> dict[str, Column]:
    """Lower and upper end; an open end, `*` and a missing cell have none."""
    lo, hi = (np.where(np.isfinite(ends), ends, np.nan) for ends in _label_ends(labels))
    return {f"{name}_lo": _numbers_of(lo, labels.codes), f"{name}_hi": _numbers_of(hi, labels.codes)}


def close_ends(labels: Column, kind: Kind) -> tuple[Reals, Reals]:
    """Both ends; an open one at the declared bound, or else where the code begins; `*` from bound to bound, if declared."""
    lo, hi = _label_ends(labels)
    low, high = kind.bounds or (np.nan, np.nan)
    star = np.array([*(text == STAR for text in texts_of(labels.values)), False])
    lo, hi = np.where(star, low, lo), np.where(star, high, hi)
    lo = np.where(np.isneginf(lo), hi if kind.bounds is None else low, lo)
    return lo, np.where(np.isposinf(hi), lo if kind.bounds is None else high, hi)


def _middles(labels: Column, kind: Kind) -> Reals:
    lo, hi = close_ends(labels, kind)
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
    added = list_added(cells, bounds, schema)
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
    where = list_added(cells, bounds, schema)
    shown = {name: f" ({' and '.join(names[1:])})" if len(names) > 1 else "" for name, names in where.items()}
    return [f"column '{name}': values were drawn below the label of the class{shown[name]}" for name in where]

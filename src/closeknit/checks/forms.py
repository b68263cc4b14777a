"""Checks of a form: reading undoes writing, and what is written tells of the raw values no more than its cells say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.api.publishing import published, published_schema
from closeknit.checks.broken import need
from closeknit.checks.cells import covers, ends, grouped, raw_text, rows_of
from closeknit.checks.methods import rows_in_order
from closeknit.checks.tables import Case
from closeknit.core.columns import Column, Columns
from closeknit.core.model import Model
from closeknit.core.table import Partition
from closeknit.models import KAnonymity, TCloseness

FormCheck = Callable[[Any, Case], None]
MOVES = 96  # tried per table, spread over its columns


def suits(form: Any, case: Case) -> bool:
    """Whether this form can write the table: snapped ranges need a step."""
    snap = getattr(form, "snap", False)
    return not snap or all(kind.step for kind in case.schema.quasi.values() if kind.name == "numeric")


def some_classes(case: Case) -> NDArray[np.int64]:
    """A class for every input row: neighbours in one column, so that labels of many sizes occur; the last class is withheld."""
    rng = np.random.default_rng(case.columns.rows)
    rows = rng.permutation(case.columns.rows)
    first = rows_of(case.columns, list(case.schema.quasi)[:1])
    rows = rows[np.argsort([str(first[row]) for row in rows], kind="stable")]
    class_of = np.empty(case.columns.rows, dtype=np.int64)
    class_of[rows] = np.arange(case.columns.rows) // 5
    class_of[class_of == class_of.max()] = -1 if class_of.max() > 0 else 0
    return class_of


def promises_of_all(case: Case) -> list[Model]:
    """Promises that every partition keeps, so that a certificate can be made."""
    return [KAnonymity(1), *(TCloseness(name, 1, "equal") for name in case.schema.sensitive)]


def written(form: Any, case: Case, columns: Columns, class_of: NDArray[np.int64]) -> tuple[Columns, str, list[int]]:
    """Release, certificate and the input row behind each written row, for classes of input rows."""
    table = case.schema.encode(columns)
    partition = Partition.of(class_of[table.rows])
    shown, certificate = published(table, partition, promises_of_all(case), form)
    return shown, certificate.to_json(), table.rows[form.write(table, partition).rows].tolist()


def reading_undoes_writing(form: Any, case: Case) -> None:
    """The classes read back are those of equal cells, and no class of the partition is torn."""
    class_of = some_classes(case)
    table = case.schema.encode(case.columns)
    result = form.write(table, Partition.of(class_of[table.rows]))
    reading = form.read(result.columns, published_schema(table.take(result.rows), result.columns))
    seen: dict[int, set[int]] = {}
    for rows in grouped(result.columns, list(case.schema.quasi)).values():
        numbers = set(reading.class_of[rows].tolist())
        need(len(numbers) == 1, "rows with equal cells were read as different classes")
        number = numbers.pop()
        need(number not in seen, "rows with different cells were read as one class")
        seen[number] = set(class_of[table.rows[result.rows[rows]]].tolist())
    need(
        sum(map(len, seen.values())) == len(set(class_of.tolist()) - {-1}),
        "a class of the partition was written with different cells",
    )
    need(reading.classes.sizes.sum() == result.columns.rows == (class_of >= 0).sum(), "rows were lost or written twice")


def cells_hold_raw_values(form: Any, case: Case) -> None:
    """Every written cell covers the raw value behind it."""
    shown, _, origin = written(form, case, case.columns, some_classes(case))
    for name, kind in case.schema.quasi.items():
        raw = [raw_text(cell, case.schema.missing) for cell in case.columns[name].cells()]
        for row, (cell,) in enumerate(rows_of(shown, [name])):
            need(covers(kind, cell, raw[origin[row]]), f"column '{name}': {cell!r} does not hold {raw[origin[row]]!r}")


def order_comes_from_cells(form: Any, case: Case) -> None:
    """Rows are sorted by what is written, whatever the classes are called."""
    class_of = some_classes(case)
    shown, certificate, _ = written(form, case, case.columns, class_of)
    rows_in_order(shown, case)
    renamed = np.random.default_rng(1).permutation(len(class_of))
    again, same, _ = written(form, case, case.columns, np.where(class_of < 0, -1, renamed[class_of]))
    names = case.schema.published
    need(
        rows_of(shown, names) == rows_of(again, names) and certificate == same,
        "the numbers of the classes show in the release",
    )


def withheld_rows_leave_no_trace(form: Any, case: Case) -> None:
    """Without the withheld rows the written cells are the same, and no list of values tells of them."""
    class_of = some_classes(case)
    shown, certificate, _ = written(form, case, case.columns, class_of)
    kept = np.flatnonzero(class_of >= 0)
    alone, same, _ = written(form, case, case.columns.take(kept), class_of[kept])
    names = case.schema.published
    need(rows_of(shown, names) == rows_of(alone, names), "withheld rows show in the written cells")
    need(
        all(shown[name].values.tolist() == alone[name].values.tolist() for name in names),
        "withheld rows show in a list of values",
    )
    told, told_alone = (json.loads(text) for text in (certificate, same))
    for key in ("columns", "promises", "classes", "notes"):
        need(told[key] == told_alone[key], f"withheld rows show in the certificate, under {key}")


def moved_leaf_does_not_show(form: Any, case: Case) -> None:
    """Classes held fixed, one raw value becomes another inside the same published cell: nothing of it is seen."""
    class_of = some_classes(case)
    shown, certificate, origin = written(form, case, case.columns, class_of)
    before = _labels(shown, origin, case)
    names = case.schema.published
    for column in case.schema.quasi:
        for moved in _moves(case, column):
            table = case.schema.encode(moved)
            result = form.write(table, Partition.of(class_of[table.rows]))
            if _labels(result.columns, table.rows[result.rows].tolist(), case) != before:
                continue  # the move left its cell, so it may show
            same_rows = rows_of(result.columns, names) == rows_of(shown, names)
            need(same_rows, f"column '{column}': a raw value shows in the order of the rows")
            same = written(form, case, moved, class_of)[1]
            need(same == certificate, f"column '{column}': a raw value shows in the certificate")


def _labels(shown: Columns, origin: list[int], case: Case) -> dict[int, tuple[str | None, ...]]:
    return dict(zip(origin, rows_of(shown, list(case.schema.quasi)), strict=True))


def _moves(case: Case, name: str) -> Iterator[Columns]:
    """One row takes the value of another, the set of occurring values unchanged."""
    column, rows = case.columns[name], case.columns.rows
    rng = np.random.default_rng(rows)
    for one, other in rng.integers(rows, size=(max(MOVES // len(case.schema.quasi), 1), 2)):
        if column.codes[one] != column.codes[other] and (column.codes == column.codes[one]).sum() > 1:
            codes = column.codes.copy()
            codes[one] = codes[other]
            yield Columns({**case.columns.columns, name: Column(column.values, codes)}, rows)


def snapped_ends_are_nobodys(form: Any, case: Case) -> None:
    """With `snap` both ends are multiples of the step or declared bounds."""
    if not getattr(form, "snap", False):
        return
    shown, _, _ = written(form, case, case.columns, some_classes(case))
    for name, kind in case.schema.quasi.items():
        if kind.name != "numeric":
            continue
        allowed = {Fraction(str(bound)) for bound in (kind.lo, kind.hi) if bound is not None}
        for (cell,) in rows_of(shown, [name]):
            if cell not in (None, "*"):
                low, high = ends(str(cell))
                need(low < high, f"column '{name}': {cell!r} says a true value")
                grid = [end in allowed or (end / Fraction(str(kind.step))).denominator == 1 for end in (low, high)]
                need(all(grid), f"column '{name}': an end of {cell!r} is not on the grid")


CHECKS: tuple[FormCheck, ...] = (
    reading_undoes_writing,
    cells_hold_raw_values,
    order_comes_from_cells,
    withheld_rows_leave_no_trace,
    moved_leaf_does_not_show,
    snapped_ends_are_nobodys,
)

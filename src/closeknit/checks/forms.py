"""Checks of a form: reading inverts writing, and the release discloses no more of the raw values than its cells show."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.api.publishing import build_public_schema, publish_table
from closeknit.checks.failures import require
from closeknit.checks.methods import buckets_are_classes, exchange_cells
from closeknit.checks.naive_cells import Row, covers, ends, group_rows, raw_cells, rows_of, text_of, values_inside
from closeknit.checks.tables import Case, fit_to_form
from closeknit.checks.views import View, naive_labels, view
from closeknit.core.certificate import model_form
from closeknit.core.columns import Columns
from closeknit.core.model import Model
from closeknit.core.params import spec
from closeknit.core.reading import Reading
from closeknit.core.table import Partition, Table, WrittenTable
from closeknit.models import KAnonymity, TCloseness

FormCheck = Callable[[Any, Case], None]
Origins = dict[str, list[int]]  # the input row of each written cell, by column
_WRITTEN: dict[tuple[str, Case], tuple[Columns, str, Origins]] = {}
REPLACED = ("numeric", "duration", "date", "datetime", "tree")  # kinds whose labels a number or a drawn value may replace
MOVES = 32  # tried per table, spread over its columns


def fit_form(form: Any, case: Case) -> tuple[Any, Case] | None:
    """Return the form and the table as they fit each other; None where they do not: snapped ranges need a step.

    Column groups in a parameter set stand for as many groups of the table's columns: these are dealt to them in turn, so that
    sensitive attributes share a group with quasi-identifiers, and plain columns are in some group.
    """
    params = spec(form)
    named = params.get("columns")
    if named and form.name == "sliced":
        if len(case.schema.published) < len(named):
            return None
        dealt = tuple(tuple(case.schema.published[i :: len(named)]) for i in range(len(named)))
        return replace(form, columns=dealt), case
    fit = fit_to_form(form.name, case)
    stepless = [kind for kind in case.schema.quasi.values() if kind.name == "numeric" and not kind.step]
    if fit is None or (form.snap and stepless):
        return None
    secrets = [cell for name in fit.schema.sensitive for (cell,) in rows_of(fit.columns, [name], fit.schema.missing)]
    return None if form.name == "perturbed" and not params.get("missing") and None in secrets else (form, fit)


def some_classes(case: Case) -> NDArray[np.int64]:
    """Return a class for every input row: neighbours in one column, so that labels of many sizes occur.

    The last class is suppressed.
    """
    rows = np.random.default_rng(case.columns.rows).permutation(case.columns.rows)
    first = rows_of(case.columns, list(case.schema.quasi)[:1])
    rows = rows[np.argsort([str(first[row]) for row in rows], kind="stable")]
    class_of = np.empty(case.columns.rows, dtype=np.int64)
    class_of[rows] = np.arange(case.columns.rows) // 5
    class_of[class_of == class_of.max()] = -1 if class_of.max() > 0 else 0
    return class_of


def guarantees_of_all(form: Any, case: Case) -> list[Model]:
    """Return guarantees that every partition meets, so that a certificate can be built."""
    models: list[Model] = [KAnonymity(1), *(TCloseness(name, 1, "equal") for name in case.schema.sensitive)]
    return [model for model in models if form.serves(model)]


def write_release(form: Any, case: Case, columns: Columns, class_of: NDArray[np.int64]) -> tuple[Columns, str, Origins]:
    """Return release, certificate and the input row of each cell of each column, for classes of input rows."""
    table = replace(case.schema.encode(columns), allow_vacuous=True)
    partition = Partition.of(class_of[table.rows])
    shown, certificate = publish_table(table, partition, guarantees_of_all(form, case), form)
    return shown, certificate.to_json(), _origins(form.write(table, partition, 0), table)


def write_once(form: Any, case: Case) -> tuple[Columns, str, Origins]:
    """Return the same for the unchanged table, computed once: the checks of one table follow one another."""
    key = (repr(form), case)  # a form may have levels, and then no hash
    if key not in _WRITTEN:
        _WRITTEN.clear()
        _WRITTEN[key] = write_release(form, case, case.columns, some_classes(case))
    return _WRITTEN[key]


def _origins(result: WrittenTable, table: Table) -> Origins:
    return {name: table.rows[result.rows_of(name)].tolist() for name in table.schema.published}


def reading_undoes_writing(form: Any, case: Case) -> None:
    """The classes read back are those that a recipient finds; no class is split, and no bucket is two classes."""
    class_of = some_classes(case)
    table = case.schema.encode(case.columns)
    result = form.write(table, Partition.of(class_of[table.rows]), 0)
    reading = form.read(result.columns, build_public_schema(table.schema, form.read_labels(result.columns, table.schema)))
    shown = view(result.columns, case.schema, model_form(form))
    origins = _origins(result, table)
    found = shown.classes_of(None)
    _same_classes(reading.class_of, found)
    require(reading.classes.sizes.sum() == result.columns.rows == (class_of >= 0).sum(), "rows were lost or written twice")
    inside = [{int(class_of[origins[group[0]][i]]) for i in rows} for rows in found.values() for group in shown.groups]
    whole = sum(map(len, inside)) == len(shown.groups) * len(set(class_of.tolist()) - {-1})
    require(whole or "classes" in form.attested, "a class of the partition was written with different cells")
    buckets_are_classes(shown, origins, class_of.tolist())
    for secret in case.schema.sensitive:
        _secret_is_read(reading, shown, secret)


def _same_classes(class_of: NDArray[np.int32], found: dict[Row, list[int]]) -> None:
    numbers = [set(class_of[rows].tolist()) for rows in found.values()]
    require(all(len(of_rows) == 1 for of_rows in numbers), "rows with equal cells were read as different classes")
    require(len(set().union(*numbers)) == len(found), "rows with different cells were read as one class")


def _secret_is_read(reading: Reading, shown: View, secret: str) -> None:
    """An attribute is read in its own classes, with the values of each; and in slices, with the known cells of every group."""
    found, own = shown.classes_of(secret), reading.of(secret)
    _same_classes(own.class_of, found)
    cells, histogram = [cell for (cell,) in rows_of(shown.columns, [secret])], own.classes.histograms[secret]
    texts = [*histogram.domain.texts, None]
    for rows in found.values():
        number = int(own.class_of[rows[0]])
        here = slice(histogram.starts[number], histogram.starts[number + 1])
        read = {texts[value]: count for value, count in zip(histogram.values[here], histogram.counts[here], strict=True)}
        require(read == Counter(cells[row] for row in rows), f"column '{secret}': {read} was read of a class")
    if shown.number is None:
        return
    slices = reading.slices(secret)
    require((slices.bucket_of == reading.class_of).all(), f"column '{secret}': its slices have different buckets")
    require(secret in shown.groups[slices.place], f"column '{secret}': its slices put it in a different group")
    _same_classes(slices.secret, group_rows(shown.columns, [secret]))
    for i, group in enumerate(shown.groups):
        known = shown.list_known(group, secret)
        _same_classes(slices.known[:, i], group_rows(shown.columns, known))
        require(known or not slices.known[:, i].any(), f"{group}: it has no known column but a code")


def cells_hold_raw_values(form: Any, case: Case) -> None:
    """Every written cell covers its raw value, and sensitive and plain cells are unchanged."""
    shown, _, origins = write_once(form, case)
    seen = view(shown, case.schema, model_form(form))
    shown, exact = seen.columns, seen.unchanged
    numbers = [name for name, kind in case.schema.quasi.items() if form.attested and kind.name in REPLACED]
    for name in dict.fromkeys([*(name for name in case.schema.quasi if name not in numbers), *exact]):
        raw = raw_cells(case.columns, name, case.schema.missing)
        for row, (cell,) in zip(origins[name], rows_of(shown, [name]), strict=True):
            held = cell == raw[row] if name in exact else covers(case.schema.quasi[name], cell, raw[row])
            require(held, f"column '{name}': {cell!r} does not contain {raw[row]!r}")


def order_comes_from_cells(form: Any, case: Case) -> None:
    """Rows are sorted by their written cells, whatever the numbers of the classes and the order of the input."""
    class_of = some_classes(case)
    shown, certificate, _ = write_once(form, case)
    view(shown, case.schema, model_form(form)).check_order()
    rng = np.random.default_rng(1)
    renamed, moved = rng.permutation(len(class_of)), rng.permutation(len(class_of))
    numbers = np.where(class_of < 0, -1, renamed[class_of])
    for columns, classes in ((case.columns, numbers), (case.columns.take(moved), class_of[moved])):
        again, same, _ = write_release(form, case, columns, classes)
        require(
            rows_of(shown, list(shown)) == rows_of(again, list(shown)) and certificate == same,
            "the numbers of the classes or the order of the input show in the release",
        )


def links_are_broken(form: Any, case: Case) -> None:
    """Exchanging the cells of a column group among rows of one class changes neither release nor certificate."""
    class_of = some_classes(case)
    shown, certificate, _ = write_once(form, case)
    seen = view(shown, case.schema, model_form(form))
    for group in seen.groups if seen.number else ():
        again, same, _ = write_release(form, case, exchange_cells(case.columns, group, class_of), class_of)
        require(rows_of(shown, list(shown)) == rows_of(again, list(shown)), f"{group}: the release shows which row has them")
        require(certificate == same, f"{group}: the certificate shows which row has them")


def suppressed_rows_leave_no_trace(form: Any, case: Case) -> None:
    """Without the suppressed rows the written cells are the same, and no list of values contains theirs."""
    class_of = some_classes(case)
    shown, certificate, _ = write_once(form, case)
    kept = np.flatnonzero(class_of >= 0)
    alone, same, _ = write_release(form, case, case.columns.take(kept), class_of[kept])
    names = list(shown)
    unchanged = names == list(alone) and rows_of(shown, names) == rows_of(alone, names)
    require(unchanged, "suppressed rows show in the written cells")
    listed = [[columns[name].values.tolist() for name in names] for columns in (shown, alone)]
    require(listed[0] == listed[1], "suppressed rows show in a list of values")
    with_rows, without = (json.loads(text) for text in (certificate, same))
    for key in ("columns", "guarantees", "classes", "notes"):
        require(with_rows[key] == without[key], f"suppressed rows show in the certificate, under {key}")


def moved_leaf_is_not_disclosed(form: Any, case: Case) -> None:
    """For fixed classes, another raw value inside the same published cell changes neither release nor certificate.

    It may be a value that no other row has, and the last row with its old value may have given it up.
    """
    if form.attested:
        return  # a statistic of the class or of its label, whose loss is stated: see numbers_are_what_they_claim
    class_of = some_classes(case)
    shown, certificate, origins = write_once(form, case)
    before = _labels(shown, origins, case)
    seen = view(shown, case.schema, model_form(form))
    tries = MOVES if seen.number is None else MOVES // 6  # exact cells show most moves
    columns = list(case.schema.quasi)[:: max(len(case.schema.quasi) // MOVES, 1)]
    if seen.written is not None:  # numbers follow from labels, which are checked with more moves
        tries, columns = MOVES // 4, columns[:2]
    for column in columns:
        for moved in _moves(case, column, tries, before[column]):
            again, changed, places = write_release(form, case, moved, class_of)
            if _labels(again, places, case) != before:
                continue  # the new value is outside the old cell, so it may show
            same_rows = rows_of(again, list(shown)) == rows_of(shown, list(shown))
            require(same_rows, f"column '{column}': a raw value shows in the order of the rows")
            require(changed == certificate, f"column '{column}': a raw value shows in the certificate")


def _labels(shown: Columns, origins: Origins, case: Case) -> dict[str, dict[int, Row]]:
    """Return the written cell of every input row in each quasi-identifier."""
    cells = naive_labels(shown, case.schema)
    return {name: dict(zip(origins[name], rows_of(cells, [name]), strict=True)) for name in case.schema.quasi}


def _moves(case: Case, name: str, tries: int, labels: dict[int, Row]) -> Iterator[Columns]:
    """Yield tables in which one published row takes another value that its written cell covers, present or not."""
    kind, cells, rows = case.schema.quasi[name], case.columns[name].cells(), case.columns.rows
    rng = np.random.default_rng(rows)
    for row in rng.choice(list(labels), size=max(tries // len(case.schema.quasi), 1)).tolist():
        (cell,) = labels[row]
        known = [value for value in [*cells, *values_inside(kind, cell)] if text_of(value) not in (None, *case.schema.missing)]
        others = [value for value in known if value != cells[row] and covers(kind, cell, text_of(value))]
        if others:
            moved = [*cells]
            moved[row] = others[rng.integers(len(others))]
            yield Columns({**case.columns.columns, name: Columns.of({name: moved})[name]}, rows)


def snapped_ends_are_on_grid(form: Any, case: Case) -> None:
    """With `snap` both ends are multiples of the step or declared bounds."""
    if not form.snap:
        return
    shown, _, _ = write_once(form, case)
    for name, kind in case.schema.quasi.items():
        if kind.name != "numeric":
            continue
        allowed = {Fraction(str(bound)) for bound in (kind.lo, kind.hi) if bound is not None}
        for (cell,) in rows_of(shown, [name]):
            if cell not in (None, "*"):
                low, high = ends(str(cell))
                require(low < high, f"column '{name}': {cell!r} discloses a true value")
                grid = [end in allowed or (end / Fraction(str(kind.step))).denominator == 1 for end in (low, high)]
                require(all(grid), f"column '{name}': an end of {cell!r} is not on the grid")


def stars_or_values(form: Any, case: Case) -> None:
    """With `cells="stars"` a cell is `*`, or the single cell that every row of its class would have alone."""
    if spec(form).get("cells") != "stars":
        return
    class_of, table = some_classes(case), case.schema.encode(case.columns)
    alone, together = (
        _labels((result := form.write(table, Partition.of(classes[table.rows]), 0)).columns, _origins(result, table), case)
        for classes in (np.where(class_of < 0, -1, np.arange(len(class_of))), class_of)
    )
    for name in case.schema.quasi:
        for number in set(class_of.tolist()) - {-1}:
            rows = np.flatnonzero(class_of == number).tolist()
            values, cells = ({of[name][row] for row in rows} for of in (alone, together))
            require(cells == (values if len(values) == 1 else {("*",)}), f"column '{name}': {values} is written as {cells}")


def numbers_are_what_they_claim(form: Any, case: Case) -> None:
    """A middle follows from the range, a mean or median from the raw values, and a drawn value is below its label."""
    cells = spec(form).get("cells", "ranges")
    if cells in ("ranges", "stars", "bounds"):
        return
    shown, _, origins = write_once(form, case)
    class_of = some_classes(case)
    labelled, _, places = write_release(replace(form, cells="ranges", bounds=True), case, case.columns, class_of)
    for name, kind in case.schema.quasi.items():
        if kind.name != "numeric":
            continue
        label_of = dict(zip(places[name], (cell or "*" for (cell,) in rows_of(labelled, [name])), strict=True))
        raw = raw_cells(case.columns, name, case.schema.missing)
        for row, (cell,) in zip(origins[name], rows_of(shown, [name]), strict=True):
            members = [raw[i] for i in np.flatnonzero(class_of == class_of[row]).tolist()]
            require(_is_claimed(cells, kind, cell, label_of[row], members), f"column '{name}': {cell} for {label_of[row]}")


def _is_claimed(cells: str, kind: Any, cell: str | None, label: str, members: list[str | None]) -> bool:
    """Return whether a number is what its form claims; `members` are the raw values of the class."""
    if cell is None or label == "*":
        return label == "*"
    low, high = ends(label)
    if cells in ("midpoint", "sample"):
        return Fraction(cell) == (low + high) / 2 if cells == "midpoint" else low <= Fraction(cell) <= high
    values = [Fraction(value) for value in members if value is not None]
    exact = Fraction(statistics.mean(values) if cells == "mean" else statistics.median(values))
    known_step = kind.step or (1 if all(value.denominator == 1 for value in values) else None)  # else it is proposed
    return bool(kind.bins) or known_step is None or abs(Fraction(cell) - exact) <= Fraction(str(known_step)) / 2


CHECKS: tuple[FormCheck, ...] = (
    reading_undoes_writing,
    cells_hold_raw_values,
    order_comes_from_cells,
    links_are_broken,
    suppressed_rows_leave_no_trace,
    moved_leaf_is_not_disclosed,
    snapped_ends_are_on_grid,
    stars_or_values,
    numbers_are_what_they_claim,
)

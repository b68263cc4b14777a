"""Cells of mixed Python types, as a spreadsheet has them, as typed columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from closeknit.core.columns import Column
from closeknit.io.arrow import array_from_column, column_from_arrow
from closeknit.io.batches import cells_in
from closeknit.io.canonical import cell_texts, text_column

EXACT = 2.0**53  # whole floats below it are exact
NUMBERS = frozenset({int, float})


class LooseColumn:
    """One column, read batch by batch: each batch is coded at once, and the kind is decided when all are there.

    Numbers, booleans and dates keep their type if no cell of the column has another one; otherwise every cell is text.

    Args:
        name: of the column, for messages.
        file: the file, for messages.

    >>> column = LooseColumn("age")
    >>> column.add([30.0, "", 31.0])
    >>> column.finish().cells()
    [30, None, 31]
    >>> column.add(["n/a"])
    >>> column.finish().cells()
    ['30', None, '31', 'n/a']
    """

    def __init__(self, name: str, file: object = None) -> None:
        self._name, self._file = name, file
        self._parts: list[tuple[str, pa.Array]] = []  # "number", "bool", "day", "moment" or "text", and the coded cells

    def add(self, cells: Sequence[Any]) -> None:
        """Code one batch; empty text is a missing cell."""
        types = set(map(type, cells))
        if str in types and types != {str}:
            if any(type(cell) is str and cell for cell in cells):
                cells, types = [cell_text(cell) for cell in cells], {str}
            else:
                cells, types = [cell if cell != "" else None for cell in cells], types - {str}
        if types == {str} and not any(cells):
            self._append("nothing", [None] * len(cells), pa.string())
        elif types == {str}:
            self._append("text", cells, pa.string())
        elif types <= NUMBERS:
            self._append("number", cells, pa.float64())
        elif types == {bool}:
            self._append("bool", cells, pa.bool_())
        elif types == {date}:
            self._append("day", cells, pa.date32())
        elif types <= {date, datetime}:
            self._append("moment", [_moment_text(cell) for cell in cells], pa.string())
        else:
            self._append("text", [None if cell is None else cell_text(cell) for cell in cells], pa.string())

    def finish(self) -> Column:
        """The whole column."""
        kinds = {kind for kind, part in self._parts if part.null_count < len(part)}
        parts = [part for _, part in self._parts]
        if len(kinds) > 1:
            parts = [self._as_text(part, kinds) for part in parts]
        elif kinds:
            type = next(part.type for kind, part in self._parts if kind in kinds)
            parts = [part if kind in kinds else pa.nulls(len(part), type) for kind, part in self._parts]
        coded = pa.table({self._name: pa.chunked_array(parts)})
        return shrink_whole(cells_in(coded, [self._name])[self._name])

    def _append(self, kind: str, cells: Sequence[Any], type: pa.DataType) -> None:
        self._parts.append((kind, pa.array(cells, type).dictionary_encode()))

    def _as_text(self, part: pa.Array, kinds: set[str]) -> pa.Array:
        column = column_from_arrow(pa.chunked_array([part]), self._name, self._file)
        if kinds == {"day", "moment"} and column.values.dtype.kind == "M":
            column = column.with_texts([f"{text}T00:00:00" for text in cell_texts(column)])
        return array_from_column(text_column(column)).dictionary_encode()


def shrink_whole(column: Column) -> Column:
    """Floats that are all whole as whole numbers; other columns as they are.

    >>> shrink_whole(Column(np.array([1.0, 3.0]), np.array([1, 0]))).values.tolist()
    [1, 3]
    """
    values = column.values
    if values.dtype.kind == "f" and (np.floor(values) == values).all() and fits_double(values):
        return Column(values.astype(np.int64), column.codes)
    return column


def fits_double(numbers: NDArray[np.generic]) -> bool:
    """Whether a double holds each of these whole numbers exactly.

    >>> fits_double(np.array([2**53 - 1])), fits_double(np.array([2**60]))
    (True, False)
    """
    return bool(np.abs(numbers.astype(np.float64)).max(initial=0) < EXACT)


def cell_text(cell: Any) -> str:
    """The text of one cell: whole numbers without `.0`, booleans as words, dates and times in ISO form, durations in hours.

    >>> [cell_text(cell) for cell in (3.0, True, date(2024, 1, 31), time(8, 30), timedelta(hours=30), "007")]
    ['3', 'true', '2024-01-31', '08:30:00', '30:00:00', '007']
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(np.float64(cell) + 0).removesuffix(".0")
    if isinstance(cell, timedelta):
        return _hours(cell)
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)


def _hours(length: timedelta) -> str:
    seconds = length.days * 86_400 + length.seconds
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _moment_text(cell: date | None) -> str | None:
    """A date as its first moment, in a column where other cells have a time of day."""
    return None if cell is None else datetime.combine(cell, time()).isoformat() if type(cell) is date else cell.isoformat()

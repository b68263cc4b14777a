"""Published classes as rows of cells: many at once, because a label or a sort costs the same for one row as for many."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.table import WrittenTable
from closeknit.core.tree import STAR
from closeknit.forms.cell_labels import label_column
from closeknit.kernels.arrays import Reals
from closeknit.streams.arrivals import EQUAL, Arrivals, Cells, Coder


def write_classes(
    coder: Coder, rows: Arrivals, sizes: Sequence[int], lo: Reals, hi: Reals, windows: Sequence[int | None]
) -> WrittenTable:
    """Classes one below the other, the rows of each in the order of their written cells.

    Args:
        coder: what the numbers of the rows mean.
        rows: the rows, class by class.
        sizes: the number of rows of each class.
        lo: the lower end of the box of each class.
        hi: the upper end.
        windows: the window of each class; None in a stream without windows.

    Returns:
        The written cells, and the place of each row in `rows`.

    >>> from closeknit.core.kinds import flat, numeric
    >>> from closeknit.core.schema import Schema
    >>> coder = Coder(Schema(quasi={"age": numeric(0, 100)}, sensitive={"ill": flat()}), b"secret")
    >>> rows = coder.encode(Columns.of({"age": [30, 40, 50], "ill": ["gout", "flu", "flu"]}), first=0)
    >>> written = write_classes(coder, rows, [2, 1], np.array([[30.0], [50.0]]), np.array([[40.0], [50.0]]), [None, None])
    >>> written.columns["age"].cells(), written.columns["ill"].cells(), written.rows.tolist()
    (['[30, 40]', '[30, 40]', '50'], ['flu', 'gout', 'flu'], [1, 0, 2])
    """
    schema, class_of = coder.schema, np.repeat(np.arange(len(sizes)), sizes)
    shown = {name: encode_cells(rows.cells[name]) for name in (*schema.sensitive, *schema.plain)}
    order = np.lexsort([column.codes for column in reversed(shown.values())] + [class_of])
    cells = {}
    for j, name in enumerate(schema.quasi):
        if coder.axes.kind[j] == EQUAL:
            missing = (lo[:, j] == coder.axes.missing[j]) & (hi[:, j] == coder.axes.missing[j])
            alone = (lo[:, j] == hi[:, j]) & (hi[:, j] < coder.axes.missing[j])
            texts = np.where(missing, "", np.where(alone, _common_texts(rows.cells[name], sizes), STAR)).tolist()
        else:
            texts = coder.labels(j, lo[:, j], hi[:, j])
        code_of = {text: code for code, text in enumerate(dict.fromkeys(texts))}
        codes = np.array([code_of[text] for text in texts], dtype=np.int32)
        cells[name] = label_column(list(code_of), codes[class_of])
    cells |= {name: column.take(order) for name, column in shown.items()}
    if windows and windows[0] is not None:
        numbers, place = np.unique(np.array(windows), return_inverse=True)
        cells["window"] = Column(numbers, place.astype(np.int32)[class_of])
    return WrittenTable(Columns(cells, len(rows)), order)


def encode_cells(cells: Cells) -> Column:
    """Cells as a column whose codes follow the values: numbers by value, then texts; None is a missing cell.

    A stream may see numbers and texts in one column, because each block of rows brings its own type.

    >>> column = encode_cells(np.array([7, None, 3, 7], dtype=object))
    >>> column.values.tolist(), column.codes.tolist()
    ([3, 7], [1, -1, 0, 1])
    """
    listed = cells.tolist()
    seen: dict[Any, int] = {cell: code for code, cell in enumerate(dict.fromkeys(listed))}
    found = np.fromiter(map(seen.__getitem__, listed), np.int32, len(listed))
    values = sorted((value for value in seen if value is not None), key=_sort_key)
    rank = np.full(len(seen), -1, dtype=np.int32)
    rank[[seen[value] for value in values]] = np.arange(len(values))
    text = not values or any(isinstance(value, str) for value in values)
    kind: Any = object if text else "datetime64[D]" if isinstance(values[0], date) else None
    return Column(np.array(values, dtype=kind), rank[found] if len(seen) else found)


def _sort_key(cell: Any) -> tuple[int, Any]:
    return (1, cell) if isinstance(cell, int | float) else (2, str(cell))


def _common_texts(texts: Cells, sizes: Sequence[int]) -> Cells:
    """The text that all rows of a class have; `*` where equal digests stand for different texts."""
    starts = np.cumsum([0, *sizes])[:-1]
    same = np.logical_and.reduceat(texts == np.repeat(texts[starts], sizes), starts)
    return np.where(same, texts[starts], STAR)

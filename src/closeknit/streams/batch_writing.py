"""Classes that leave, as rows of cells: many at once, because a label or an order costs the same for one row as for many."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.table import WrittenTable
from closeknit.core.tree import STAR
from closeknit.streams.arrivals import EQUAL, Arrivals, Cells, Coder, Reals


def write_classes(
    coder: Coder, rows: Arrivals, sizes: Sequence[int], lo: Reals, hi: Reals, windows: Sequence[int | None]
) -> WrittenTable:
    """One class below the other, the rows of each in the order of their written cells; and which row each was.

    >>> from closeknit.core.kinds import flat, numeric
    >>> from closeknit.core.schema import Schema
    >>> coder = Coder(Schema(quasi={"age": numeric(0, 100)}, sensitive={"ill": flat()}), b"secret")
    >>> rows = coder.encode(Columns.of({"age": [30, 40, 50], "ill": ["gout", "flu", "flu"]}), first=0)
    >>> left = write_classes(coder, rows, [2, 1], np.array([[30.0], [50.0]]), np.array([[40.0], [50.0]]), [None, None])
    >>> left.columns["age"].cells(), left.columns["ill"].cells(), left.rows.tolist()
    (['[30, 40]', '[30, 40]', '50'], ['flu', 'gout', 'flu'], [1, 0, 2])
    """
    schema, class_of = coder.schema, np.repeat(np.arange(len(sizes)), sizes)
    shown = {name: encode_cells(rows.cells[name]) for name in (*schema.sensitive, *schema.plain)}
    order = np.lexsort([column.codes for column in reversed(shown.values())] + [class_of])
    cells = {}
    for j, name in enumerate(schema.quasi):
        labels = coder.column_labels(j, name, lo[:, j], hi[:, j])
        if coder.axes.kind[j] == EQUAL:
            labels = _own_texts(labels, rows.cells[name], sizes)
        cells[name] = encode_cells(np.array([label or None for label in labels], dtype=object)).take(class_of)
    cells |= {name: column.take(order) for name, column in shown.items()}
    if windows and windows[0] is not None:
        numbers, codes = np.unique(np.array(windows), return_inverse=True)
        cells["window"] = Column(numbers, codes.astype(np.int32)[class_of])
    return WrittenTable(Columns(cells, len(rows)), order)


def encode_cells(cells: Cells) -> Column:
    """Cells as a column whose codes follow the values: numbers by value, texts by their signs; none is missing.

    >>> column = encode_cells(np.array([7, None, 3, 7], dtype=object))
    >>> column.values.tolist(), column.codes.tolist()
    ([3, 7], [1, -1, 0, 1])
    """
    seen: dict[Any, int] = {}
    found = np.array([seen.setdefault(cell, len(seen)) for cell in cells.tolist()], dtype=np.int32)
    values = sorted((value for value in seen if value is not None), key=_place)
    rank = np.full(len(seen), -1, dtype=np.int32)
    for i, value in enumerate(values):
        rank[seen[value]] = i
    return Column(np.array(values, dtype=_type_of(values)), rank[found] if len(seen) else found)


def _type_of(values: Sequence[Any]) -> Any:
    """What numpy would not find out by itself."""
    if not values or any(isinstance(value, str) for value in values):
        return object
    return "datetime64[D]" if isinstance(values[0], date) else None


def _place(cell: Any) -> tuple[int, Any]:
    return (1, cell) if isinstance(cell, int | float) else (2, str(cell))


def _own_texts(labels: list[str | None], texts: Cells, sizes: Sequence[int]) -> list[str | None]:
    """Of a column without a tree: the text that all rows of a class have, where no label stands for it."""
    end = 0
    own: list[str | None] = []
    for label, size in zip(labels, sizes, strict=True):
        start, end = end, end + size
        found = set(texts[start:end].tolist()) if label is None else set()
        own.append(label if label is not None else str(found.pop()) if len(found) == 1 else STAR)
    return own

"""`Reading`: the written cells as an adversary sees them, grouped anew into classes; every form reads back to one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.schema import Schema
from closeknit.core.tree import STAR


def starred(column: Column) -> NDArray[np.bool_]:
    """The rows whose written cell is `*`.

    >>> starred(Columns.of({"wage": [3, "*", None]})["wage"]).tolist()
    [False, True, False]
    """
    star = np.array([*(str(value) == STAR for value in column.values.tolist()), False])  # the last entry serves code -1
    rows: NDArray[np.bool_] = star[column.codes]
    return rows


@dataclass(frozen=True, eq=False)
class Reading:
    """Written cells and the classes regrouped from them. `schema` holds only what is published."""

    columns: Columns
    schema: Schema
    class_of: NDArray[np.int32]
    classes: Classes

    def cells_of(self, index: int) -> dict[str, str]:
        """The written quasi cells of one class: how a certificate names it."""
        row = int(np.argmax(self.class_of == index))
        cells = {name: self.columns[name].take(np.array([row])).cells()[0] for name in self.schema.quasi}
        return {name: "" if cell is None else str(cell) for name, cell in cells.items()}

"""`Reading`: the written cells as an adversary sees them, grouped anew into classes; every form reads back to one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.schema import Schema


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

"""Information loss: the General Loss Metric, measured on the written cells alone, so that a recipient computes the same.

Variant A is the number of leaves under the node over all leaves, variant B subtracts one from each; both are 0 for a single
value and 1 for `*`. A suppressed row counts 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadValue
from closeknit.core.kinds import Losses, texts_of
from closeknit.core.schema import Schema


@dataclass(frozen=True)
class Loss:
    """Loss of a release.

    Args:
        a: total of variant A, weighted by importance; suppressed rows count 1.
        b: the same for variant B.
        columns: both variants per column.
    """

    a: float
    b: float
    columns: Mapping[str, tuple[float, float]]


def list_texts(column: Column, markers: Collection[str] = ()) -> list[str]:
    """Distinct written cells of a column as text; '' for missing-value codes, and once more at the end for the missing cell."""
    return [*("" if text in markers else text for text in texts_of(column.values)), ""]


def cell_losses(columns: Columns, schema: Schema) -> dict[str, Losses]:
    """Loss of each distinct written cell of each quasi-identifier; the last entry is the missing cell."""
    losses = {}
    for name, kind in schema.quasi.items():
        column = columns[name]
        try:
            losses[name] = kind.losses(list_texts(column, schema.missing))
        except BadValue as bad:
            raise bad.located(name, column.first_row(bad.index)) from None
    return losses


def measure_loss(columns: Columns, schema: Schema, suppressed: int = 0) -> Loss:
    """Loss of written cells.

    Args:
        columns: the written cells.
        schema: the published schema.
        suppressed: number of suppressed rows.

    >>> from closeknit.core.kinds import numeric, flat
    >>> schema = Schema(quasi={"age": numeric(0, 100), "sex": flat()}, importance={"age": 3})
    >>> measure_loss(Columns.of({"age": ["[20, 40]", "[20, 40]"], "sex": ["*", "*"]}), schema).a
    0.4
    """
    losses = cell_losses(columns, schema)
    counts = {name: np.bincount(columns[name].codes + 1, minlength=len(lost)) for name, lost in losses.items()}
    return weigh_losses(losses, {name: np.roll(rows, -1) for name, rows in counts.items()}, schema, columns.rows, suppressed)


def weigh_losses(
    losses: Mapping[str, Losses], counts: Mapping[str, NDArray[np.int64]], schema: Schema, rows: int, suppressed: int = 0
) -> Loss:
    """Loss of counted cells.

    Args:
        losses: per column, the loss of each distinct cell, the missing one last.
        counts: per column, the rows of each distinct cell.
        schema: the published schema.
        rows: number of published rows.
        suppressed: number of suppressed rows.

    >>> from closeknit.core.kinds import flat
    >>> schema = Schema(quasi={"sex": flat()})
    >>> weigh_losses({"sex": np.array([[1.0, 1.0], [0.0, 0.0]])}, {"sex": np.array([3, 1])}, schema, 4).a
    0.75
    """
    per_column: dict[str, tuple[float, float]] = {}
    for name, lost in losses.items():
        a, b = (math.fsum(variant) / max(rows, 1) for variant in (counts[name][:, None] * lost).T)  # in any order of cells
        per_column[name] = (a, b)
    weights = np.array(schema.weights())
    total_a, total_b = (weights / weights.sum()) @ np.array(list(per_column.values())) if per_column else (0.0, 0.0)
    every = rows + suppressed
    if every:
        total_a, total_b = ((x * rows + suppressed) / every for x in (total_a, total_b))
    return Loss(float(total_a), float(total_b), per_column)

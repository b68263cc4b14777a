"""What generalization costs: the General Loss Metric, measured on the written cells alone, so that anybody gets the same.

Variant A counts leaves under the node over all leaves, variant B one less of each; both are 0 for a single value and 1 for `*`.
A suppressed row counts 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.kinds import BadValue, Losses, texts_of
from closeknit.core.schema import Schema


@dataclass(frozen=True)
class Loss:
    """Loss of a release: in total (weighted by importance, suppressed rows as 1) and per column, variants A and B."""

    a: float
    b: float
    columns: Mapping[str, tuple[float, float]]


def list_texts(column: Column, markers: Collection[str] = ()) -> list[str]:
    """Distinct written cells of a column as text, and '' for the missing one at the end and for declared markers."""
    return [*("" if text in markers else text for text in texts_of(column.values)), ""]


def cell_losses(columns: Columns, schema: Schema) -> dict[str, Losses]:
    """Loss of each distinct written cell of each quasi column; the last entry is the missing cell."""
    losses = {}
    for name, kind in schema.quasi.items():
        column = columns[name]
        try:
            losses[name] = kind.losses(list_texts(column, schema.missing))
        except BadValue as bad:
            raise BadInput(bad.what, column=name, row=column.first_row(bad.index), right=bad.right) from None
        except ValueError as bad:
            cell = column.values[bad.args[0]]
            row = column.first_row(bad.args[0])
            right = "write a number, a range like [20, 30], or '*'"
            raise BadInput(f"'{cell}' is neither a number nor a range", column=name, row=row, right=right) from None
    return losses


def measure_loss(columns: Columns, schema: Schema, suppressed: int = 0) -> Loss:
    """Loss of written cells.

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
    """Loss of cells of which is known how many rows have each; the missing one stands last.

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


def class_losses(columns: Columns, schema: Schema, class_of: NDArray[np.int32], count: int) -> NDArray[np.float64]:
    """Variant A of each class: the weighted mean over columns of what its cells cost."""
    _, first = np.unique(class_of, return_index=True)
    weights = np.array(schema.weights()) / sum(schema.weights()) if schema.quasi else np.empty(0)
    total = np.zeros(count)
    for weight, (name, losses) in zip(weights, cell_losses(columns, schema).items(), strict=True):
        total += weight * losses[columns[name].codes[first], 0]
    return total

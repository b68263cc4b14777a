"""Information loss: the General Loss Metric, measured on the written cells alone, so that a recipient computes the same.

Variant A is the number of leaves under the node over all leaves, variant B subtracts one from each; both are 0 for a single
value and 1 for `*`. A suppressed row counts 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadValue
from closeknit.core.kinds import Losses, texts_of
from closeknit.core.record import Record
from closeknit.core.schema import Schema

LossSums = dict[str, tuple[float, float]]  # per quasi-identifier: variants A and B, summed over the published rows


class LossRecord(Record):
    """General Loss Metric of written cells, variants A and B.

    Args:
        a: variant A, weighted by importance; a suppressed row counts 1.
        b: variant B, likewise.
        columns: both variants for each quasi-identifier.
    """

    a: float
    b: float
    columns: LossSums


class LossBound(Record):
    """What no release under the same guarantees loses less than.

    Args:
        loss: The bound: General Loss Metric A, weighted by importance.
        by: The bound that is the largest: "nearest class", "prices of rows", "boxes" or "groups of columns".
        groups: The columns of each group, where groups of columns give it.
        looked: Share of the rows that the bound by the nearest class looks at.
        left_out: Guarantees that the bound does not use.
        unmeasured: Quasi-identifiers that count 0, because a release measures them in the domain of its own cells.
    """

    loss: float
    by: str
    groups: tuple[tuple[str, ...], ...] = ()
    looked: float = 1.0
    left_out: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()

    def gap(self, loss: float) -> float | None:
        """How far a release is above the bound at most, as a share of the bound; None where the bound is 0.

        Args:
            loss: the loss of the release.

        >>> round(LossBound(loss=0.2, by="boxes").gap(0.25), 6)
        0.25
        """
        return loss / self.loss - 1 if self.loss > 0 else None

    def describe(self, loss: float) -> str:
        """The gap in one sentence.

        Args:
            loss: the loss of the release.

        >>> LossBound(loss=0.2, by="boxes").describe(0.25)
        'The loss of 0.2500 is at most 25 % above the best possible: no release under these guarantees loses less than 0.2000.'
        """
        gap = self.gap(loss)
        if gap is None:
            return f"The loss is {loss:.4f}. No bound above 0 was found, so the best possible loss is not known."
        if gap > 1:
            share = f"at most {gap + 1:.2g} times the best possible"
        else:
            share = f"at most {100 * gap:.3g} % above the best possible"
        return f"The loss of {loss:.4f} is {share}: no release under these guarantees loses less than {self.loss:.4f}."

    def remarks(self) -> list[str]:
        """How the bound was computed, and what it does not use.

        >>> LossBound(loss=0.2, by="nearest class", looked=0.5).remarks()
        ['Computed by nearest class. It looks at 50 % of the rows, the others count 0: more seconds may raise it.']
        """
        text = f"Computed by {self.by}{': ' + '; '.join(', '.join(group) for group in self.groups) if self.groups else ''}."
        if self.looked < 1:
            text += f" It looks at {100 * self.looked:.3g} % of the rows, the others count 0: more seconds may raise it."
        if self.unmeasured:
            text += f" These columns count 0, because their domain is not declared: {', '.join(self.unmeasured)}."
        return [text, *(f"The bound does not use this guarantee: {model}." for model in self.left_out)]


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
            raise bad.locate(name, column.first_row(bad.index)) from None
    return losses


def measure_loss(columns: Columns, schema: Schema, suppressed: int = 0) -> LossRecord:
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
    return weigh_losses(sum_losses(columns, schema), schema, columns.rows, suppressed)


def sum_losses(columns: Columns, schema: Schema, counts: Mapping[str, NDArray[np.int64]] | None = None) -> LossSums:
    """Loss of each quasi-identifier, summed over the rows.

    Args:
        columns: the written cells.
        schema: the published columns.
        counts: rows of each distinct cell of a column, the missing one last; without it every cell counts once.

    >>> from closeknit.core.kinds import flat
    >>> cells = Columns.of({"sex": ["*", "f"]})
    >>> sum_losses(cells, Schema(quasi={"sex": flat()}), {"sex": np.array([3, 1, 0])})
    {'sex': (3.0, 3.0)}
    """
    sums: LossSums = {}
    for name, lost in cell_losses(columns, schema).items():
        rows = np.roll(np.bincount(columns[name].codes + 1, minlength=len(lost)), -1) if counts is None else counts[name]
        sums[name] = cast(tuple[float, float], tuple(map(math.fsum, (rows[:, None] * lost).T)))  # in any order of cells
    return sums


def weigh_losses(sums: LossSums, schema: Schema, rows: int, suppressed: int = 0) -> LossRecord:
    """The loss of a release from the sums over its rows.

    Args:
        sums: as `sum_losses` returns them.
        schema: the published columns, with their importance.
        rows: rows that were published.
        suppressed: rows that were not.

    >>> from closeknit.core.kinds import flat
    >>> weigh_losses({"sex": (3.0, 3.0)}, Schema(quasi={"sex": flat()}), rows=4, suppressed=1).a
    0.8
    """
    columns = {name: (a / max(rows, 1), b / max(rows, 1)) for name, (a, b) in sums.items()}
    weights = np.array(schema.weights())
    total = (weights / weights.sum()) @ np.array(list(columns.values())) if columns else np.zeros(2)
    if every := rows + suppressed:
        total = (total * rows + suppressed) / every
    return LossRecord(a=float(total[0]), b=float(total[1]), columns=columns)

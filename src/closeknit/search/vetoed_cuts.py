"""Vetoed cuts: what is known of classes that `refine_partition` returns: no cut that it offers them is allowed.

Which cuts are offered depends on quasi-identifiers alone. A cut through ties divides rows that are equal in every
quasi-identifier by an order that is secret: here their places in that order are numbered, not the rows themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from closeknit.core.geometry import scales
from closeknit.core.method import Veto, Vetoes
from closeknit.core.model import Model, least_rows
from closeknit.core.table import Partition, Table
from closeknit.kernels.cutting.cut_sides import mark
from closeknit.search.refine import Cuts, OpenClasses, offer_cuts


def find_vetoed_cuts(table: Table, partition: Partition, models: Sequence[Model], cuts: Cuts | None = None) -> Vetoes:
    """Find the cuts of each class that were offered and not made, each as its two sides.

    Args:
        table: the rows, sorted by their quasi-identifiers.
        partition: classes that were cut as far as the guarantees allow.
        models: the guarantees.
        cuts: which cuts were offered.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = schema.encode(Columns.of({"age": [30, 30, 40, 40], "ill": ["HIV", "HIV", "flu", "gout"]}))
    >>> whole = Partition(np.zeros(4, dtype=np.int32), 1)
    >>> found = find_vetoed_cuts(table, whole, [ck.KAnonymity(2), ck.LDiversity("ill", 2)], Cuts(relaxed=False))
    >>> [[side.tolist() for side in cut] for cut in found.of_class(0)]
    [[[0, 1], [2, 3]]]
    """
    open_ = OpenClasses.of(table, partition, models)
    at, offered = offer_cuts(open_, scales(table), max(least_rows(models), 1), cuts or Cuts())

    def list_cuts(number: int) -> list[Veto]:
        rows = open_.rows[open_.starts[number] : open_.starts[number + 1]]
        quasi, ends, only = table.quasi[rows], np.array([0, len(rows)]), np.zeros(1, dtype=np.int64)
        found: list[Veto] = []
        for cut in offered[at[number] : at[number + 1]]:
            left = np.zeros(len(rows), dtype=bool)
            mark(quasi, ends, only, cut[None], left)
            found.append((rows[left], rows[~left]))
        return found

    return Vetoes(list_cuts)

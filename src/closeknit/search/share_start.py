"""A start for tables of few different rows: the shares of the linear program over boxes, rounded to whole rows.

There a box has many rows of each kind, so shares of rows are nearly whole rows. The program finds narrow boxes for many rows at
once and a few wide ones for all others, which no cut and no single step finds. It is solved for a part of the room that the
guarantees leave, so that rounding breaks little; classes that still break a guarantee are merged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from closeknit.core.model import Model
from closeknit.core.table import Partition
from closeknit.search.box_program import TooLarge, solve_boxes
from closeknit.search.guards import tighten_guard
from closeknit.search.knit_state import KnitState
from closeknit.search.repair import repair_partition

FEWEST = 200  # rows for each combination of the values of all quasi-identifiers
ENTRIES = 50_000  # of the program: it is solved in half a second
SLACK = 0.97  # share of the room


def start_from_shares(knit_state: KnitState, models: Sequence[Model]) -> Partition | None:
    """Classes that hold what the program gives each box, repaired; None where there are too many boxes.

    >>> import closeknit as ck
    >>> from closeknit.search.guards import guard_of
    >>> table, schema = ck.datasets.hospital(500), ck.datasets.hospital_schema()
    >>> few = ck.Schema(quasi={"sex": schema.quasi["sex"]}, sensitive={"disease": schema.sensitive["disease"]})
    >>> coded = few.encode(table)
    >>> models = [ck.KAnonymity(4)]
    >>> parts = start_from_shares(KnitState.of(coded, guard_of(coded, models).guard, []), models)
    >>> parts.count
    2
    """
    cells = 1
    for column in knit_state.table.quasi.T:
        cells *= len(np.unique(column))
    if cells * FEWEST > len(knit_state.table):
        return None
    try:
        rounded = solve_boxes(knit_state.table, tighten_guard(knit_state.guard, SLACK), most=ENTRIES).round_shares()
    except TooLarge:
        return None
    return repair_partition(knit_state.table, rounded, models)

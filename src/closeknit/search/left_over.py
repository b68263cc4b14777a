"""What a search left over: conditions of a local optimum that are true of these classes, although no budget ensures them.

Three kinds of conditions, each about the loss and the guarantees alone: no cut of a class is allowed; and for two classes, no
row of the first can move to the second, alone or in exchange for a row there, such that the loss falls and both classes meet
every guarantee. They are checked on the table: a class with a cut left over, and two classes with a change left over, state
nothing. Changes of more rows at once are not looked at.

Cost: each member of a class is compared with all other classes, and with the rows of those where the loss could fall.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from closeknit.core.method import Exclusion, Veto, Vetoes
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.kernels.exchange.class_state import state_of
from closeknit.kernels.exchange.knit_guard import is_class_allowed
from closeknit.kernels.exchange.left_over import find_excluded
from closeknit.search.guards import guard_of
from closeknit.search.knit_state import KnitState
from closeknit.search.vetoed_cuts import find_vetoed_cuts


def find_held(table: Table, partition: Partition, models: Sequence[Model]) -> Vetoes:
    """Find the conditions of a local optimum that are true of these classes.

    Args:
        table: the encoded table.
        partition: its classes.
        models: the guarantees.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = schema.encode(Columns.of({"age": [30, 31, 32, 40], "ill": ["flu", "flu", "cold", "gout"]}))
    >>> classes = Partition(np.array([0, 1, 1, 0], dtype=np.int32), 2)
    >>> found = find_held(table, classes, [ck.LDiversity("ill", 2)])
    >>> found.excluded(1).values.tolist()  # who is 31 would have changed places with who is 40, had it been a cold
    [[False, True], [True, False]]
    """
    guarded = guard_of(table, models)
    knit_state = KnitState.of(table, guarded.guard, guarded.unguarded)
    state = state_of(knit_state.costs, guarded.guard, table.quasi, partition.class_of.astype(np.int32), partition.count)
    cuts, kind = find_vetoed_cuts(table, partition, models), knit_state.buckets.of

    def list_cuts(number: int) -> Sequence[Veto]:
        found = cuts.of_class(number)
        return found if all(any(not is_class_allowed(guarded.guard, side) for side in cut) for cut in found) else []

    def exclude(number: int) -> Exclusion:
        kinds = kind[partition.class_of == number]
        own, first, which = np.unique(kinds, return_index=True, return_inverse=True)
        rows = np.flatnonzero(partition.class_of == number)[first].astype(np.int32)
        found = np.zeros((len(kinds), len(own)), dtype=bool)
        held, left_over = find_excluded(knit_state.costs, guarded.guard, state, number, kind, rows, found)
        return Exclusion(found[:, which], held, left_over)

    return Vetoes(list_cuts, others_known=True, excluded=exclude, given=True)

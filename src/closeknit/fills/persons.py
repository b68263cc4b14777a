"""Rows of one person stay together: a method deals persons by one row each, and the others follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from closeknit.core.table import Outcome, Partition, Table


def together(table: Table, run: Callable[[Table], Outcome]) -> Outcome:
    """Run a method on the first row of every person and take the rest of the rows along."""
    assert table.persons is not None
    _, first, person_of = np.unique(table.persons, return_index=True, return_inverse=True)
    heads = np.sort(first)  # back in canonical row order
    outcome = run(table.take(heads))
    class_of_person = np.empty(len(heads), dtype=np.int32)
    class_of_person[person_of[heads]] = outcome.partition.class_of
    return replace(outcome, partition=Partition.of(class_of_person[person_of]))

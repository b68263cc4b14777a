"""Rows of one person stay together: a method deals persons by one row each, and the others follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.combined_secrets import Secret
from closeknit.core.method import Method
from closeknit.core.table import Outcome, Partition, Table


def must_keep_together(table: Table, method: Method) -> bool:
    """Whether rows of one person have to be kept together for a method that does not see to it."""
    return table.persons is not None and table.schema.person_rows == "together" and not method.keeps_persons


def run_by_person(
    table: Table, run: Callable[[Table], Outcome], references: Mapping[Secret, NDArray[np.int64]] | None = None
) -> Outcome:
    """Run a method on the first row of every person and take the rest of the rows along.

    `references`: what these rows are judged against, where the table is a part of a larger one: the first rows of all persons.
    """
    assert table.persons is not None
    _, first, person_of = np.unique(table.persons, return_index=True, return_inverse=True)
    heads = np.sort(first)  # back in canonical row order
    firsts = table.take(heads)
    outcome = run(firsts if references is None else replace(firsts, references=references))
    class_of_person = np.empty(len(heads), dtype=np.int32)
    class_of_person[person_of[heads]] = outcome.partition.class_of
    return replace(outcome, partition=Partition.of(class_of_person[person_of]))

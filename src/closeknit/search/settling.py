"""Settling: classes merged until the written cells meet guarantees that no class can be judged on alone.

A guarantee over some of the quasi-identifiers, about people of a population, or about all class sizes together is judged on
written cells. Merging two classes changes their cells, and with them groups and people of other classes, so it is not enough to
look at the classes that fail: after every round of merges everything is written and judged again. A round merges a quarter of
the failing classes, those that cost least, with their nearest neighbours: this may repair others. There are fewer classes after
each round, so it ends, at the latest with one class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.model import Model, joints
from closeknit.core.table import Form, Partition, Table
from closeknit.search.repair import merge_cheapest, repair_partition


def settle_partition(
    table: Table, partition: Partition, models: Sequence[Model], required: Sequence[Model], form: Form, seed: int
) -> Partition:
    """The partition with as many merges as the guarantees on written cells need.

    Args:
        table: the rows.
        partition: their classes, which meet all other guarantees.
        models: the guarantees.
        required: those that each class has to meet, also where look-alike values count as one.
        form: how classes are written.
        seed: of the form's random choices.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(60))
    >>> single, pairs = Partition(np.arange(60, dtype=np.int32), 60), [ck.KAnonymity(3, over="pairs")]
    >>> settle_partition(table, single, pairs, [], ck.generalized(), 0).count <= 20
    True
    """
    late = [model for model in models if not model.by_class]
    while late and partition.count > 1:
        failing = find_failing(table, partition, late, form, seed)
        if not failing.any():
            break
        partition = repair_partition(table, merge_cheapest(table, partition, failing, -(-int(failing.sum()) // 4)), required)
    return partition


def find_failing(table: Table, partition: Partition, models: Sequence[Model], form: Form, seed: int) -> NDArray[np.bool_]:
    """The classes to merge because some guarantee is not met on the written cells.

    Args:
        table: the rows.
        partition: their classes.
        models: the guarantees that are judged on written cells.
        form: how classes are written.
        seed: of the form's random choices.
    """
    written = form.write(table, partition, seed)
    persons = None if table.persons is None else {name: table.persons[written.rows_of(name)] for name in table.schema.published}
    reading = replace(form.read(written.columns, table.schema, persons, joints(models)), raw=table.schema)
    rows = np.zeros(written.columns.rows, dtype=bool)
    for model in models:
        rows |= model.find_faults(reading)[reading.class_of]
    failing = np.zeros(partition.count, dtype=bool)
    classes = partition.class_of[written.rows[rows]]
    failing[classes[classes >= 0]] = True
    return failing

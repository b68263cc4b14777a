"""Suppression on Spark: a method that works on counted combinations suppresses some of them; the other rows are read again.

Domains, references and written levels are then those of the published rows only, as if the others did not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.method import Method, ignore_progress
from closeknit.core.model import Model
from closeknit.core.row_sorting import groups
from closeknit.core.table import Outcome, Table
from closeknit.io.batches import Block, cells_in, rows_at
from closeknit.spark.coding import Coding, leaves_in
from closeknit.spark.counting import count_table
from closeknit.spark.maps import Work
from closeknit.spark.packed_frame import PackedFrame


def run_with_suppression(
    coding: Coding, coded: PackedFrame, method: Method, models: Sequence[Model], room: int, seed: int
) -> tuple[Table, Outcome]:
    """The counted combinations, and the outcome of a method that may suppress `room` rows of them."""
    table = replace(count_table(coding, coded, models), suppressible=room)
    return table, method.run(table, models, seed, ignore_progress)


def drop_combinations(coding: Coding, suppressed: NDArray[np.int32]) -> Work:
    """A step that drops the rows with these quasi codes as they are read; the coding still has its dictionaries."""
    quasi, sizes = list(coding.head.schema.quasi), [domain.size + 1 for domain in coding.head.quasi_domains]
    leaves = {name: coding.leaves[name] for name in quasi}

    def drop_rows(block: Block) -> Block:
        columns = cells_in(block, quasi)
        codes = np.stack([leaves_in(columns, name, leaves[name]) for name in quasi], axis=1)
        return rows_at(block, np.flatnonzero(~match_rows(codes, suppressed, sizes)))

    return drop_rows


def match_rows(rows: NDArray[np.int32], known: NDArray[np.int32], sizes: list[int]) -> NDArray[np.bool_]:
    """Which rows of codes are among `known`.

    >>> match_rows(np.array([[0, 1], [1, 1]], np.int32), np.array([[1, 1], [1, 0]], np.int32), [2, 2]).tolist()
    [False, True]
    """
    together = np.concatenate([rows, known])
    group, count = groups(list(zip(together.T, sizes, strict=True)), len(together))
    there = np.zeros(count, dtype=bool)
    there[group[len(rows) :]] = True
    return there[group[: len(rows)]]

"""The stack that is dealt: all rows, so that rows with equal sensitive values are together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.row_sorting import groups
from closeknit.core.table import Table
from closeknit.kernels.arrays import Int64


@dataclass(frozen=True, eq=False)
class Stack:
    """Rows in stack order, and the value (or cell of several values) of each, as whole numbers that rise along the stack."""

    rows: Int64
    values: Int64


def build_stack(table: Table, columns: Sequence[str], order: str) -> Stack:
    """By value, several sensitive attributes like words in a dictionary; or by falling frequency.

    Among equally frequent values the higher code comes first, as printed for one sensitive attribute; among equally frequent
    cells of several sensitive attributes the one that is first in the dictionary, as printed there.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
    >>> stack = build_stack(table, ["disease", "stay"], "frequency")
    >>> sorted(stack.rows.tolist()) == list(range(20)), bool((np.diff(stack.values) >= 0).all())
    (True, True)
    """
    codes = number_cells(table, columns)
    codes = stack_places(np.bincount(codes, minlength=1), len(columns) > 1, order)[codes]
    rows = np.argsort(codes, kind="stable")
    return Stack(rows, codes[rows])


def stack_places(counts: Int64, several: bool, order: str) -> Int64:
    """The place of each value in the stack, from how many rows have it.

    >>> stack_places(np.array([1, 5, 5]), False, "frequency").tolist()
    [2, 1, 0]
    """
    place = np.arange(len(counts))
    if order == "frequency":
        ties = place if several else -place
        place = np.empty(len(counts), dtype=np.int64)
        place[np.lexsort((ties, -counts))] = np.arange(len(counts))
    return place


def number_cells(table: Table, columns: Sequence[str]) -> Int64:
    """The cell of each row in these sensitive attributes, numbered in the order of a dictionary; one cell where there are none.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
    >>> number_cells(table, []).tolist() == [0] * 20
    True
    """
    secrets = [table.secret(name) for name in columns]
    return groups([(codes, domain.size + 1) for codes, domain in secrets], len(table))[0].astype(np.int64)


def band_codes(codes: NDArray[np.integer], bands: int) -> Int64:
    """Codes seen through about `bands` runs of neighbouring ones with equally many rows; all of them where there are fewer.

    >>> band_codes(np.array([5, 0, 0, 1, 7, 7]), 2).tolist()
    [1, 0, 0, 0, 1, 1]
    """
    counts = np.bincount(codes, minlength=1)
    middle = np.cumsum(counts) - (counts + 1) // 2
    band: Int64 = middle * bands // max(len(codes), 1)
    return band[codes]

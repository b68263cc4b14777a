"""Memory per row on the way from columns to a certified release: what a step no longer needs is freed before the next one."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

import closeknit as ck
from closeknit.core.columns import Column, Columns

ROWS, WIDTH = 100_000, 8  # WIDTH quasi-identifiers
CODED = 4 * (WIDTH + 1) + 8  # bytes of a coded row: its cells and its place in the input
SCHEMA = ck.Schema(quasi={f"q{j}": ck.numeric() for j in range(WIDTH)}, sensitive={"s": ck.flat()})


@pytest.fixture(scope="module")
def columns() -> Columns:
    """Few values per column, so that tables of values weigh nothing."""
    draw = np.random.default_rng(1)
    codes = {name: draw.integers(0, 8, ROWS, dtype=np.int32) for name in SCHEMA.published}
    return Columns({name: Column(np.arange(8), of_rows) for name, of_rows in codes.items()}, ROWS)


def release(columns: Columns) -> object:
    """A release of some hundred classes."""
    return ck.anonymize(columns, SCHEMA, [ck.KAnonymity(columns.rows // 100)], ck.Mondrian(), seed=2**80)


def peak_per_row(work: Callable[[Columns], object], columns: Columns) -> float:
    """Most bytes per row that are allocated in addition while it works."""
    work(columns.take(np.arange(400)))  # loads modules and compiled loops
    tracemalloc.start()
    try:
        work(columns)
        return tracemalloc.get_traced_memory()[1] / ROWS
    finally:
        tracemalloc.stop()


def test_encoding_holds_at_most_three_coded_tables(columns: Columns) -> None:
    """The codes column by column, and the table in the order of the input and in canonical order."""
    assert peak_per_row(SCHEMA.encode, columns) < 3.2 * CODED


def test_a_release_does_not_hold_the_first_order_of_its_table(columns: Columns) -> None:
    """A coded table and its copy class by class, or the written cells, but no table that was reordered since."""
    assert peak_per_row(release, columns) < 4 * CODED

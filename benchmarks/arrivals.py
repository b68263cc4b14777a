"""What left a stream, row by row, and how well windows of it answer COUNT queries."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import closeknit as ck
from closeknit.core.columns import Column, Columns
from closeknit.metrics import queries, workload_error
from closeknit.metrics.queries import actual_counts
from closeknit.streams.stream import Stream
from closeknit.streams.writing import joined
from dynamic_group import DynamicGroup

LAMBDA = 3


@dataclass(frozen=True)
class Outlet:
    """Written rows with their positions, the loss, and how long it took."""

    columns: Columns
    positions: NDArray[np.int64]
    loss: float
    suppressed: int
    alone: int  # rows that joined a generalization published before
    seconds: float

    @classmethod
    def of(cls, stream: Stream, rows: Columns) -> Outlet:
        """Let all rows come, and end."""
        start = time.perf_counter()
        left = [*stream.blocks_of(rows), *stream.blocks_at_end()]
        took = time.perf_counter() - start
        told, counters = stream.certificate, stream.counters
        if not told.ok or counters.rows_out + counters.suppressed != rows.rows:
            raise AssertionError(f"{stream.name} broke a promise")
        none = np.empty(0, dtype=np.int64)
        positions = np.concatenate([none, *(block.rows for block in left)])
        columns = joined([block.columns for block in left]) if left else rows.take(none)
        return cls(columns, positions, told.loss.a, counters.suppressed, counters.reused, took)


def errors_by_window(outlet: Outlet, rows: Columns, schema: ck.Schema, window: int, theta: float, count: int) -> float:
    """Median relative error of each window of input rows, mean over the windows; suppressed rows are absent."""
    found = []
    for first in range(0, rows.rows - window + 1, window):
        original = rows.take(np.arange(first, first + window))
        mine = np.flatnonzero((outlet.positions >= first) & (outlet.positions < first + window))
        reading = ck.generalized().read(_used(outlet.columns.take(mine)), schema)
        workload = queries(rows, schema, lambda_=min(LAMBDA, len(schema.quasi)), theta=theta, count=count, seed=first)
        error = workload_error(reading, original, workload).median
        found += [] if error is None else [error]
    return statistics.mean(found) if found else float("nan")


def group_errors(groups: DynamicGroup, rows: Columns, schema: ck.Schema, window: int, theta: float, count: int) -> float:
    """The same for pseudo-rows: each carries the secret of the row in whose place it stands."""
    low, high = zip(*(kind.bounds for kind in schema.quasi.values()), strict=True)
    cells = np.array(low) + groups.pseudo_rows() * (np.array(high) - np.array(low))
    made = {name: _numbers(np.clip(cells[:, j], low[j], high[j])) for j, name in enumerate(schema.quasi)}
    pseudo = Columns({**made, **{name: rows[name] for name in schema.sensitive}}, rows.rows)
    found = []
    for first in range(0, rows.rows - window + 1, window):
        there = np.arange(first, first + window)
        workload = queries(rows, schema, lambda_=min(LAMBDA, len(schema.quasi)), theta=theta, count=count, seed=first)
        actual, estimate = (actual_counts(_used(table.take(there)), workload) for table in (rows, pseudo))
        answered = actual > 0
        found.append(float(np.median(np.abs(actual - estimate)[answered] / actual[answered])))
    return statistics.mean(found) if found else float("nan")


def _used(columns: Columns) -> Columns:
    """Without values that no row has."""
    kept = {}
    for name, column in columns.items():
        used = np.flatnonzero(column.counts > 0)
        code_of = np.full(len(column.values) + 1, -1, dtype=np.int32)
        code_of[used] = np.arange(len(used))
        kept[name] = Column(column.values[used], code_of[column.codes])
    return Columns(kept, columns.rows)


def _numbers(cells: NDArray[np.float64]) -> Column:
    values, codes = np.unique(cells, return_inverse=True)
    return Column(values, codes.astype(np.int32))

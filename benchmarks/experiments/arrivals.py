"""What left a stream, row by row, and how well windows of it answer COUNT queries."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import closeknit as ck
from closeknit.core.columns import Column, Columns, concat_columns
from closeknit.metrics import WindowErrors, window_errors
from closeknit.streams.stream import Stream
from experiments.dynamic_group import DynamicGroup


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
        certificate, counters = stream.certificate, stream.counters
        if not certificate.ok or counters.rows_out + counters.suppressed != rows.rows:
            raise AssertionError(f"{stream.name} broke a guarantee")
        none = np.empty(0, dtype=np.int64)
        positions = np.concatenate([none, *(block.rows for block in left)])
        columns = concat_columns([block.columns for block in left]) if left else rows.take(none)
        return cls(columns, positions, certificate.loss.a, counters.suppressed, counters.reused, took)


def errors_by_window(outlet: Outlet, rows: Columns, schema: ck.Schema, window: int, theta: float, count: int) -> float:
    """Error of COUNT queries to windows of what left, NaN where none is answered."""
    return _mean(window_errors(outlet.columns, outlet.positions, rows, schema, window, theta=theta, count=count))


def group_errors(groups: DynamicGroup, rows: Columns, schema: ck.Schema, window: int, theta: float, count: int) -> float:
    """Measure pseudo-rows: each carries the sensitive value of the row that it replaces."""
    low, high = zip(*(kind.bounds for kind in schema.quasi.values()), strict=True)
    cells = np.array(low) + groups.pseudo_rows() * (np.array(high) - np.array(low))
    made = {name: _numbers(np.clip(cells[:, j], low[j], high[j])) for j, name in enumerate(schema.quasi)}
    pseudo = Columns({**made, **{name: rows[name] for name in schema.sensitive}}, rows.rows)
    return _mean(window_errors(pseudo, np.arange(rows.rows), rows, schema, window, theta=theta, count=count))


def _mean(found: WindowErrors) -> float:
    return float("nan") if found.mean is None else found.mean


def _numbers(cells: NDArray[np.float64]) -> Column:
    values, codes = np.unique(cells, return_inverse=True)
    return Column(values, codes.astype(np.int32))

"""COUNT queries on windows of a stream: how well what left answers for the rows that came.

A window of the output is what was published of the same positions of the input; a row that was suppressed is absent from it.
Queries are drawn anew for each window, over the columns of the whole stream. The error of a window is the median over its
queries, that of the stream the mean over its windows.

Source: the thesis on SABRE and BUREL, sec. 5.5 and 6.4. Different from the source: it divides by 0 where no row of a window
answers a query; such queries are left out and counted.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certificate import Record
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.exact import Number
from closeknit.core.params import whole
from closeknit.core.schema import Schema
from closeknit.forms import generalized
from closeknit.forms.cell_labels import compact
from closeknit.forms.column_axes import original_columns
from closeknit.metrics.queries import queries, workload_error


class WindowErrors(Record):
    """Median relative error of each window (None where no query is answered), and their mean."""

    window: int  # rows
    queries: int  # of each window
    skipped: int  # of all windows: no row answers them
    absent: int  # rows of these windows that were not published
    medians: tuple[float | None, ...]
    mean: float | None

    def __str__(self) -> str:
        if self.mean is None:
            return f"No window of {self.window:,} rows answers a query."
        return (
            f"Half of {self.queries:,} COUNT queries to a window of {self.window:,} rows are off by at most {self.mean:.1%} "
            f"(mean of {len(self.medians):,} windows); {self.skipped:,} that no row answers were left out."
        )


def window_errors(
    written: Columns,
    positions: NDArray[np.int64],
    original: Any,
    schema: Schema,
    window: int,
    secret: str | None = None,
    lambda_: int | None = None,
    theta: Number = 0.1,
    count: int = 200,
    seed: int = 0,
) -> WindowErrors:
    """Errors of what left a stream, window by window; rows after the last whole window are not asked for.

    `written` are its cells; `positions` tells which row of `original` (a frame, file or `Columns` in the order in which rows
    came) each of them was. `lambda_` is 3, or all quasi columns where there are fewer.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(400), ck.datasets.hospital_schema()
    >>> exact = window_errors(table, np.arange(400), table, schema, window=100)
    >>> len(exact.medians), exact.mean, exact.absent
    (4, 0.0, 0)
    """
    columns, window = original_columns(original, schema), whole("window", window, least=1)
    if len(positions) != written.rows or (len(positions) and not 0 <= positions.min() <= positions.max() < columns.rows):
        right = "give for each written row which row of the table it was, from 0"
        raise BadInput(f"{len(positions):,} positions are not those of {written.rows:,} written rows", right=right)
    usual = min(3, sum(name != secret for name in schema.quasi))
    first_draw = queries(columns, schema, secret, usual if lambda_ is None else lambda_, theta, count, seed)
    medians, skipped, absent = list[float | None](), 0, 0
    for first in range(0, columns.rows - window + 1, window):
        mine = np.flatnonzero((positions >= first) & (positions < first + window))
        reading = generalized().read(_drop_unused(written.take(mine)), schema)
        found = workload_error(reading, columns.take(np.arange(first, first + window)), first_draw.another(seed + first))
        medians.append(found.median)
        skipped, absent = skipped + found.skipped, absent + window - len(np.unique(positions[mine]))
    told = [median for median in medians if median is not None]
    return WindowErrors(
        window=window,
        queries=count,
        skipped=skipped,
        absent=absent,
        medians=tuple(medians),
        mean=statistics.mean(told) if told else None,
    )


def _drop_unused(columns: Columns) -> Columns:
    """Without values that no row has: each is looked at."""
    return Columns({name: compact(column) for name, column in columns.items()}, columns.rows)

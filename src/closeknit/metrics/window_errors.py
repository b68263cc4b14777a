"""COUNT queries on windows of a stream: how well the published rows answer for the rows that arrived.

A window of the output is what was published for the same positions of the input; a suppressed row is absent from it. Each
window has its own random queries, over the columns of the whole stream. The error of a window is the median over its queries,
that of the stream the mean over its windows.

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
from closeknit.core.limits import MOST_QUERIES
from closeknit.core.params import whole
from closeknit.core.schema import Schema
from closeknit.forms import generalized
from closeknit.forms.cell_labels import compact
from closeknit.forms.column_axes import original_columns
from closeknit.metrics.queries import queries, workload_error


class WindowErrors(Record):
    """Relative errors of COUNT queries to the windows of a stream.

    Args:
        window: Number of rows of a window.
        queries: Number of queries to each window.
        skipped: Number of queries, over all windows, that no row answers.
        absent: Number of rows of these windows that were not published.
        medians: Median relative error of each window; None where no query is answered.
        mean: Mean of the medians; None where no query is answered.
    """

    window: int
    queries: int
    skipped: int
    absent: int
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
    """Measure the query errors of a stream, window by window; rows after the last whole window are ignored.

    Args:
        written: Published cells.
        positions: Row of `original` to which each published row belongs, from 0.
        original: Rows as a frame, file or `Columns`, in the order of arrival.
        schema: Schema of the original rows.
        window: Rows of a window.
        secret: Sensitive attribute of the queries; None takes the first.
        lambda_: Quasi-identifiers per query; None takes 3, or all where there are fewer.
        theta: Expected share of rows that answer a query.
        count: Queries per window.
        seed: Seed of the queries.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(400), ck.datasets.hospital_schema()
    >>> exact = window_errors(table, np.arange(400), table, schema, window=100)
    >>> len(exact.medians), exact.mean, exact.absent
    (4, 0.0, 0)
    """
    window, count = whole("window", window, least=1), whole("count", count, 1, MOST_QUERIES)
    columns = original_columns(original, schema)
    if len(positions) != written.rows or (len(positions) and not 0 <= positions.min() <= positions.max() < columns.rows):
        right = "give for each written row its row in the table, from 0"
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
    answered = [median for median in medians if median is not None]
    return WindowErrors(
        window=window,
        queries=count,
        skipped=skipped,
        absent=absent,
        medians=tuple(medians),
        mean=statistics.mean(answered) if answered else None,
    )


def _drop_unused(columns: Columns) -> Columns:
    """Drop values that no row has, since each would be examined."""
    return Columns({name: compact(column) for name, column in columns.items()}, columns.rows)

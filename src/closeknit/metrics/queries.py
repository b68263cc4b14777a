"""COUNT queries: how far the answers from a release are from those of the original table.

A query counts the rows that have `lambda_` quasi-identifiers and the sensitive attribute in given ranges. Every range is a
share theta^(1 / (lambda_ + 1)) of its column's domain, so that a share theta of the rows answers where columns are uniform
and independent. The same queries are put to the table and to each release.

An analyst who has only the release assumes that a row lies uniformly in its cells. Where groups of columns do not line up
inside a bucket, every combination is equally likely: of n rows, a match in one group and b in another, a * b / n match in both.
Where an attribute is perturbed, the part that its law adds to a count is subtracted: if c of n rows are written with one of r
values, out of the m values of the law, (c - (1 - retain) n r / m) / retain are expected to have one.

Source: the thesis on SABRE and BUREL, ch. 3 and 4 (workload error), and the paper on slicing for the buckets.
Different from the source: a query that no row answers has no relative error; it is left out and counted. Numbers are a line,
not a list of values, so a range begins anywhere.

Cost: once a sort of the rows; for each query words of 64 cells where cells are exact, and an examination of the others.
Distinct cells in a class or bucket are examined, not rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.certificate import Record
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.exact import Number
from closeknit.core.limits import MOST_QUERIES
from closeknit.core.params import number, whole
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema, require_schema
from closeknit.forms.column_axes import Axis, axes_of, column_groups, original_columns
from closeknit.forms.release_reading import Published, reading_of
from closeknit.kernels.arrays import Int32, Reals
from closeknit.kernels.counting.queries import narrow_counts
from closeknit.metrics.query_answers import Group, PerturbedGroup, undo_perturbation


@dataclass(frozen=True, eq=False)
class Workload:
    """Queries over the columns of one table; query i has ranges for `columns[i]` and, last, for the sensitive attribute.

    Args:
        schema: Roles and kinds of the columns.
        quasi: The quasi-identifiers of the table.
        secret: The sensitive attribute.
        columns: Array [queries, lambda_] of places in `quasi`, ascending.
        lo: Array [queries, lambda_ + 1] of the lower ends of the ranges.
        hi: Array of the same shape with the upper ends.
        theta: Expected share of rows that answer a query.
    """

    schema: Schema
    quasi: tuple[Axis, ...]
    secret: Axis
    columns: Int32
    lo: Reals
    hi: Reals
    theta: float

    def __len__(self) -> int:
        return len(self.columns)

    def another(self, seed: int) -> Workload:
        """Return as many queries of the same kind.

        Args:
            seed: Another seed to draw them with.
        """
        return _draw_workload(self.schema, self.quasi, self.secret, self.columns.shape[1], self.theta, len(self), seed)

    def get_ranges(self, i: int) -> dict[str, tuple[float, float]]:
        """Return the range of each column in a query, on the axis of the column.

        Args:
            i: The position of the query.
        """
        axes = [*(self.quasi[j] for j in self.columns[i]), self.secret]
        return {axis.name: (float(a), float(b)) for axis, a, b in zip(axes, self.lo[i], self.hi[i], strict=True)}


class WorkloadError(Record):
    """Relative errors |actual - estimate| / actual over a workload; None where no query has an answer.

    Args:
        queries: Number of queries.
        skipped: Number of queries that no row of the table answers.
        median: The median error.
        lower: The lower quartile.
        upper: The upper quartile.
        mean: The mean error.
    """

    queries: int
    skipped: int
    median: float | None
    lower: float | None
    upper: float | None
    mean: float | None

    def __str__(self) -> str:
        if self.median is None:
            return f"None of {self.queries:,} COUNT queries is answered by a row of the table."
        return (
            f"Half of {self.queries - self.skipped:,} COUNT queries are off by at most {self.median:.1%} (quartiles "
            f"{self.lower:.1%} and {self.upper:.1%}); {self.skipped:,} that no row answers were left out."
        )


def queries(
    table: Any,
    schema: Schema,
    secret: str | None = None,
    lambda_: int = 3,
    theta: Number = 0.1,
    count: int = 10_000,
    seed: int = 0,
) -> Workload:
    """Draw random COUNT queries over a table.

    Args:
        table: Rows as a frame, file or `Columns`.
        schema: Schema of the table.
        secret: Sensitive attribute of the queries; None takes the first.
        lambda_: Quasi-identifiers per query.
        theta: Expected share of rows that answer a query.
        count: Number of queries.
        seed: Seed of the queries.

    >>> import closeknit as ck
    >>> workload = queries(ck.datasets.hospital(100), ck.datasets.hospital_schema(), lambda_=2, count=5)
    >>> len(workload), list(workload.get_ranges(0))
    (5, ['zip', 'job', 'disease'])
    """
    lambda_, count, seed = whole("lambda_", lambda_, 1), whole("count", count, 1, MOST_QUERIES), whole("seed", seed, 0)
    number("theta", theta, above=0, most=1)
    name = choose_secret(schema, secret)
    others = [other for other in schema.quasi if other != name]
    if lambda_ > len(others):
        right = f"there are {len(others)} quasi-identifiers in addition to '{name}'"
        raise BadInput(f"lambda_={lambda_} is too large", right=right)
    axes = axes_of(original_columns(table, schema), schema)
    return _draw_workload(schema, tuple(axes[other] for other in others), axes[name], lambda_, theta, count, seed)


def _draw_workload(
    schema: Schema, quasi: tuple[Axis, ...], secret: Axis, lambda_: int, theta: Number, count: int, seed: int
) -> Workload:
    share = float(number("theta", theta, above=0, most=1)) ** (1 / (lambda_ + 1))
    rng = np.random.default_rng(seed)
    chosen = np.sort(np.argsort(rng.random((count, len(quasi))), axis=1)[:, :lambda_], axis=1).astype(np.int32)
    lo, hi = _draw_ranges([*quasi, secret], np.column_stack([chosen, np.full(count, len(quasi))]), share, rng)
    return Workload(schema, quasi, secret, chosen, lo, hi, float(number("theta", theta)))


def choose_secret(schema: Schema, secret: str | None) -> str:
    """Return the named sensitive attribute, or the first one.

    >>> from closeknit.core.kinds import flat
    >>> choose_secret(Schema(quasi={}, sensitive={"wage": flat(), "ward": flat()}), None)
    'wage'
    """
    if not require_schema(schema).sensitive:
        raise BadInput("the schema has no sensitive column", right="name one in the schema")
    name = next(iter(schema.sensitive)) if secret is None else secret
    if name not in schema.sensitive:
        raise BadInput("is not sensitive", column=name, right=suggest_name(name, schema.sensitive))
    return name


def _draw_ranges(
    axes: Sequence[Axis], chosen: NDArray[np.integer], share: float, rng: np.random.Generator
) -> tuple[Reals, Reals]:
    """Draw both ends of each range: whole leaves, at least one; numbers anywhere."""
    low, high = np.array([axis.ends for axis in axes]).T
    length = (high - low) * share
    leaves = np.array([axis.leaves for axis in axes])
    length = np.where(leaves, np.clip(np.round(length), 1, None), length)
    room = (high - low - length)[chosen]
    at = rng.random(chosen.shape)
    begin = low[chosen] + np.where(leaves[chosen], np.floor(at * (room + 1)), at * room)
    return begin, np.where(room > 0, begin + length[chosen], high[chosen])  # a sum may be rounded to less than the whole


def workload_error(published: Published | Reading, original: Any, workload: Workload) -> WorkloadError:
    """Measure how far answers from a release are from those of the original table.

    Args:
        published: A release, or what its form read.
        original: Original rows as a frame, file or `Columns`.
        workload: Queries from `queries`.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> workload = queries(table, schema, count=200)
    >>> made = (ck.anonymize(table, schema, [ck.KAnonymity(k)], ck.StackAndDeal(), seed=2**100) for k in (1, 5, 20))
    >>> [round(workload_error(release, table, workload).median, 2) for release in made]
    [0.0, 0.18, 0.2]
    """
    actual = actual_counts(original, workload)
    estimate = estimate_counts(published, workload)
    answered = actual > 0
    if not answered.any():
        return WorkloadError(queries=len(workload), skipped=len(workload), median=None, lower=None, upper=None, mean=None)
    errors = np.abs(actual - estimate)[answered] / actual[answered]
    lower, median, upper = np.quantile(errors, [0.25, 0.5, 0.75]).tolist()
    skipped = int((~answered).sum())
    mean = float(errors.mean())
    return WorkloadError(queries=len(workload), skipped=skipped, median=median, lower=lower, upper=upper, mean=mean)


def actual_counts(original: Any, workload: Workload) -> Reals:
    """Return the true answer of every query.

    Args:
        original: Original rows as a frame, file or `Columns`.
        workload: Queries from `queries`.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(100), ck.datasets.hospital_schema()
    >>> actual_counts(table, queries(table, schema, theta=1, count=2)).tolist()
    [100.0, 100.0]
    """
    columns = original_columns(original, workload.schema)
    axes = _axes(workload)
    raw = {name: axis.leaf_column(columns[name], workload.schema) for name, axis in axes.items()}
    everyone = np.zeros(columns.rows, dtype=np.int32)
    cells = Group.of(Columns(raw, columns.rows), list(axes), axes, everyone, 1)
    return _answers([cells], np.array([float(columns.rows)]), workload)


def estimate_counts(published: Published | Reading, workload: Workload) -> Reals:
    """Return the answer of every query as an analyst estimates it from a release.

    Args:
        published: A release, or what its form read.
        workload: Queries from `queries`.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(100), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(5)])
    >>> estimate_counts(release, queries(table, schema, theta=1, count=2)).tolist()
    [100.0, 100.0]
    """
    reading, axes = reading_of(published), _axes(workload)
    for name in axes:
        if name not in reading.columns:
            raise BadInput("is queried but not in the release", column=name, right=suggest_name(name, reading.columns))
    sizes = reading.classes.sizes.astype(np.float64)
    parts = [Group.of(reading.columns, names, axes, reading.class_of, len(sizes)) for names in column_groups(reading, axes)]
    law = reading.retained.get(workload.secret.name)
    found = parts if law is None else [undo_perturbation(part, workload.secret.name, law, sizes) for part in parts]
    return _answers(found, sizes, workload)


def _axes(workload: Workload) -> dict[str, Axis]:
    return {axis.name: axis for axis in (*workload.quasi, workload.secret)}


def _answers(parts: Sequence[Group | PerturbedGroup], sizes: Reals, workload: Workload) -> Reals:
    """Multiply the matching rows of all groups; a group without a range matches in every row."""
    answers = np.zeros(len(workload))
    names = [axis.name for axis in workload.quasi]
    queried = zip(workload.columns.tolist(), workload.lo.tolist(), workload.hi.tolist(), strict=True)
    for i, (columns, lo, hi) in enumerate(queried):
        ranges = dict(zip([*(names[j] for j in columns), workload.secret.name], zip(lo, hi, strict=True), strict=True))
        found = [rows for part in parts if (rows := part.matching(ranges)) is not None]
        for more in found[1:]:
            narrow_counts(found[0], more, sizes)
        answers[i] = found[0].sum()
    return np.maximum(answers, 0.0)

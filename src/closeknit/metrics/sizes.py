"""Sizes and contents of equivalence classes: histogram, discernibility, distinct values, rows outside the majority."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.core import measurement
from closeknit.core.certificate import ClassSizes, Record, WorstClass
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.loss import measure_loss
from closeknit.core.reading import Reading, find_stars
from closeknit.forms.release_reading import Published, reading_of
from closeknit.metrics.queries import choose_secret
from closeknit.metrics.query_answers import combinations
from closeknit.models.l_diversity import LDiversity

SINGLE = 24  # distinct sizes up to which each has a bar of its own


class SizeBar(Record):
    """One bar of the histogram of class sizes.

    Args:
        first: The smallest size.
        last: The largest size.
        classes: The number of classes of these sizes.
        rows: The number of their rows.
    """

    first: int
    last: int
    classes: int
    rows: int


class Sizes(Record):
    """Sizes of the classes (or buckets).

    Args:
        summary: Their number, extremes, mean and discernibility.
        bars: The histogram of the sizes.
    """

    summary: ClassSizes
    bars: tuple[SizeBar, ...]

    def __str__(self) -> str:
        size = self.summary
        return (
            f"{size.count:,} classes of {size.smallest:,} to {size.largest:,} rows, {size.mean:.1f} on average; "
            f"discernibility {size.discernibility:,}"
        )


class Diversity(Record):
    """Distinct values of a sensitive attribute in a class.

    Args:
        secret: The sensitive attribute.
        least: The fewest of a class; None where no class shows any.
        mean: The mean over the classes that show any.
        worst: The class with the fewest.
    """

    secret: str
    least: int | None
    mean: float | None
    worst: WorstClass | None = None

    def __str__(self) -> str:
        if self.mean is None:
            return f"No class shows a value of '{self.secret}'."
        return f"A class has at least {self.least:,} different values of '{self.secret}', {self.mean:.2f} on average."


def class_sizes(published: Published | Reading) -> Sizes:
    """Return the sizes of the classes (of the buckets, where rows do not line up), with one bar per size or per doubling of it.

    Args:
        published: A release, or what its form read.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(103), ck.datasets.hospital_schema()
    >>> sizes = class_sizes(ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.StackAndDeal()))
    >>> [(bar.first, bar.last, bar.classes, bar.rows) for bar in sizes.bars]
    [(5, 5, 17, 85), (6, 6, 3, 18)]
    """
    reading = reading_of(published)
    sizes, counts = np.unique(reading.classes.sizes, return_counts=True)
    ends = sizes
    if len(sizes) > SINGLE:
        doublings = [int(sizes[0])]
        while doublings[-1] * 2 <= sizes[-1]:
            doublings.append(doublings[-1] * 2)
        ends = np.array([*(first - 1 for first in doublings[1:]), int(sizes[-1])])
    place = np.searchsorted(ends, sizes)
    bars = []
    for i, last in enumerate(ends.tolist()):
        here = place == i
        first = last if len(sizes) <= SINGLE else int(sizes[0]) if i == 0 else int(ends[i - 1]) + 1
        bars.append(SizeBar(first=first, last=last, classes=int(counts[here].sum()), rows=int((sizes * counts)[here].sum())))
    return Sizes(summary=measurement.class_sizes(reading), bars=tuple(bars))


def discernibility(published: Published | Reading) -> int:
    """Return the sum of the squared class sizes: pairs of rows that look alike, each row with itself included.

    Args:
        published: A release, or what its form read.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(100), ck.datasets.hospital_schema()
    >>> discernibility(ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.StackAndDeal()))
    500
    """
    return measurement.class_sizes(reading_of(published)).discernibility


def diversity(published: Published | Reading, secret: str | None = None) -> Diversity:
    """Count the distinct values of a sensitive attribute in each class; a missing value counts, a hidden one does not.

    Args:
        published: A release, or what its form read.
        secret: Sensitive attribute; None takes the first.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(100), ck.datasets.hospital_schema()
    >>> diversity(ck.anonymize(table, schema, [ck.KAnonymity(20)], ck.StackAndDeal()), "disease").least
    15
    """
    reading = reading_of(published)
    name = choose_secret(reading.schema, secret)
    seen = reading.of(name)
    levels = LDiversity(name, 1).levels(seen.classes)
    shown = np.isfinite(levels)
    if not shown.any():
        return Diversity(secret=name, least=None, mean=None)
    worst = int(np.argmin(levels))
    cells = WorstClass(cells=seen.cells_of(worst), rows=int(seen.classes.sizes[worst]))
    return Diversity(secret=name, least=int(levels[worst]), mean=float(levels[shown].mean()), worst=cells)


def classification_metric(published: Published | Reading, column: str) -> float:
    """Return the share of rows whose cell is not the most frequent one of their class: the error of guessing by classes.

    Args:
        published: A release, or what its form read.
        column: Any published column as the label; a missing cell is a value, a hidden one (`*`) is not counted.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    >>> releases = [ck.anonymize(table, schema, [ck.KAnonymity(k)], ck.StackAndDeal()) for k in (1, 5, 50)]
    >>> [round(classification_metric(release, "disease"), 2) for release in releases]
    [0.0, 0.8, 0.91]
    """
    reading = reading_of(published)
    if column not in reading.columns:
        raise BadInput("is not in the release", column=column, right=suggest_name(column, reading.columns))
    seen, rows = reading, np.arange(reading.columns.rows)
    if column in reading.schema.sensitive:
        seen, rows = reading.of(column), np.flatnonzero(~find_stars(reading.columns[column]))
    if len(rows) == 0:
        return 0.0
    class_of: NDArray[np.int32] = seen.class_of[rows]
    _, owner, counts = combinations(reading.columns.take(rows), [column], class_of, len(seen.classes))
    most = np.zeros(len(seen.classes))
    np.maximum.at(most, owner, counts)
    return float(1 - most.sum() / len(rows))


def loss_by_column(published: Published | Reading) -> dict[str, float]:
    """Return the General Loss Metric (variant A) of each quasi-identifier over the published rows: 0 is exact, 1 is always `*`.

    Args:
        published: A release, or what its form read.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(100), ck.datasets.hospital_schema()
    >>> loss = loss_by_column(ck.anonymize(table, schema, [ck.KAnonymity(100)]))
    >>> loss["sex"], loss["age"]
    (1.0, 0.9)
    """
    reading = reading_of(published)
    return {name: a for name, (a, _) in measure_loss(reading.columns, reading.schema).columns.items()}

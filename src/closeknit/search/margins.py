"""Margins: how many swaps of sensitive values a class is away from not meeting a guarantee.

The margin of a class is 0 where it does not meet the guarantee, and changes by at most 1 when two rows, one in the class and
one outside, exchange their sensitive values. `SoftStop` needs just that.

| guarantee | margin of a class of s rows |
| --- | --- |
| about the rows alone (k) | without limit |
| earth mover's distance at most t | floor((t - distance) s) + 1 |
| share of a value at most `cap` | floor(cap s) - count + 1; without limit if the parent has at most floor(cap s) such rows |
| share of a value at least `floor` | count - ceil(floor s) + 1 |
| at least `l` values | values - l + 1 |
| any other | 1 |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.look_alikes import FoldedModel
from closeknit.core.model import Model
from closeknit.core.share_limits import Limits
from closeknit.models.t_closeness import TCloseness

Int64 = NDArray[np.int64]
NO_LIMIT = 1 << 62
DENSE = 1 << 22  # counts that are written out at once


def measure_margins(models: Sequence[Model], sides: Classes, parents: Classes, parent_of: Int64) -> Int64:
    """The least margin of each class over all guarantees; 0 where one is not met.

    Args:
        models: the guarantees.
        sides: the classes.
        parents: the classes that were cut into them.
        parent_of: the parent of each class.
    """
    least = np.full(len(sides), NO_LIMIT, dtype=np.int64)
    for model in models:
        judged, above = model, (sides, parents)
        if isinstance(model, FoldedModel):
            folded = [classes.fold_values(model.column) for classes in above]
            judged, above = model.model, (folded[0] or sides, folded[1] or parents)
        least = np.minimum(least, _margins_of(judged, *above, parent_of))
    return least


def _margins_of(model: Model, sides: Classes, parents: Classes, parent_of: Int64) -> Int64:
    if model.column is None:
        return np.where(model.holds(sides), NO_LIMIT, 0)
    histogram = sides.histograms[model.column]
    limits = model.limits(histogram)
    counts_persons = "persons" in model.needs and sides.by_person
    if limits is None or not limits.sufficient or limits.entropy is not None or counts_persons:
        return model.holds(sides).astype(np.int64)
    least = np.full(len(sides), NO_LIMIT, dtype=np.int64)
    if limits.distance is not None:
        least = np.minimum(
            least, _distance_margins(TCloseness(model.column, limits.distance.most, limits.distance.ground), sides)
        )
    if limits.values:
        known = histogram if limits.missing_counts else histogram.drop_missing()
        least = np.minimum(least, np.maximum(np.diff(known.starts) - limits.values + 1, 0))
    caps = _caps(limits, histogram)
    if caps or limits.floors:
        for first in range(0, len(sides), step := max(DENSE // len(histogram.reference), 1)):
            part = np.arange(first, min(first + step, len(sides)))
            above = parents.histograms[model.column]
            least[part] = np.minimum(least[part], _share_margins(caps, limits.floors, histogram, above, part, parent_of[part]))
    return least


def _caps(limits: Limits, histogram: Histogram) -> dict[int, Fraction]:
    """The largest share of each value that occurs."""
    caps, n = dict(limits.caps), int(histogram.reference.sum())
    if limits.growth is not None:
        for code in np.flatnonzero(histogram.reference).tolist():
            cap = limits.growth.cap(Fraction(int(histogram.reference[code]), n))
            caps[code] = min(cap, caps.get(code, cap))
    return caps


def _distance_margins(model: TCloseness, sides: Classes) -> Int64:
    """floor((t - distance) s) + 1, at least 0, in whole numbers of any length."""
    numerators, denominators, large = model.ratios(sides)
    limit, sizes = Fraction(str(model.t)), sides.histograms[model.column].totals
    exact = {int(i): model.exact_level(sides, int(i)) for i in large}
    a, b, found = limit.numerator, limit.denominator, np.empty(len(sides), dtype=np.int64)
    for i, (num, den, s) in enumerate(zip(numerators.tolist(), denominators.tolist(), sizes.tolist(), strict=True)):
        if i in exact:
            num, den = exact[i].numerator, exact[i].denominator
        found[i] = (a * den - b * num) * s // (b * den) + 1
    return np.maximum(found, 0)


def _share_margins(
    caps: Mapping[int, Fraction],
    floors: Mapping[int, Fraction],
    histogram: Histogram,
    above: Histogram,
    part: Int64,
    parent_of: Int64,
) -> Int64:
    """The margins of caps and floors on the shares of single values, for some classes."""
    mine, whole = _dense(histogram.take(part)), _dense(above.take(parent_of))
    least, sizes = np.full(len(part), NO_LIMIT, dtype=np.int64), histogram.totals[part]
    for code, cap in caps.items():
        most = _times(cap, sizes)
        margin = np.where(whole[:, code] <= most, NO_LIMIT, most - mine[:, code] + 1)
        least = np.minimum(least, margin)
    for code, floor in floors.items():
        least = np.minimum(least, mine[:, code] + _times(-floor, sizes) + 1)
    return np.maximum(least, 0)


def _times(share: Fraction, sizes: Int64) -> Int64:
    """floor(share * size) of every class, exactly."""
    a, b = share.numerator, share.denominator
    if abs(a) * int(sizes.max(initial=0)) < NO_LIMIT and b < NO_LIMIT:
        return a * sizes // b
    return np.array([a * s // b for s in sizes.tolist()], dtype=np.int64)


def _dense(histogram: Histogram) -> Int64:
    counts = np.zeros((len(histogram.starts) - 1, len(histogram.reference)), dtype=np.int64)
    counts[histogram.owner, histogram.values] = histogram.counts
    return counts


def tightest_distance(models: Sequence[Model], classes: Classes) -> float | None:
    """The least limit on a distance; None where no guarantee has one.

    Args:
        models: the guarantees.
        classes: the classes, for the reference.
    """
    found = [limits.distance.most for limits in _all_limits(models, classes) if limits is not None and limits.distance]
    return min(map(float, found), default=None)


def expect_margins(models: Sequence[Model], parents: Classes, owner: Int64, rows: Int64) -> NDArray[np.float64] | None:
    """The margin of the smaller side of each cut if it got its share of every value; None if no guarantee but a distance asks.

    Args:
        models: the guarantees.
        parents: the classes to be cut.
        owner: the class of each cut.
        rows: rows of the smaller side of each cut.
    """
    judged = [model for model in models if model.column is not None]
    found, asks = np.full(len(owner), float(NO_LIMIT)), False
    for model, limits in zip(judged, _all_limits(judged, parents), strict=True):
        if limits is not None and limits.distance is not None:
            continue
        asks = True
        assert model.column is not None
        histogram = parents.histograms[model.column]
        caps = _caps(limits, histogram) if limits is not None else {}
        if limits is None or limits.floors or not caps:
            found = np.minimum(found, 1.0)
        dense, sizes = _dense(histogram), histogram.totals[owner]
        for code, cap in caps.items():
            most, whole = _times(cap, rows), dense[owner, code]
            found = np.where(whole <= most, found, np.minimum(found, most - whole * rows / np.maximum(sizes, 1) + 1))
    return found if asks else None


def _all_limits(models: Sequence[Model], classes: Classes) -> list[Limits | None]:
    return [model.limits(classes.histograms[model.column]) for model in models if model.column is not None]

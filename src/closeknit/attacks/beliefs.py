"""`Beliefs`: the posterior distribution of a sensitive attribute for an adversary who knows a person's class.

The values of a class are known but not who has which, so every assignment is equally likely: a value has its share of the class
(counted in persons where the reading knows them, each value once a person). The classes are those in which the attribute is
seen: rows with equal quasi cells, or a bucket and the cells next to the attribute in its column group.

A perturbed attribute is not read off the cells. True values are taken as drawn from the estimated counts of the whole table
(`core.perturbation`) and written by the law; any row of the class may be the person's. With p the estimated shares, w those
written in the class, r = retain and a = (1 - r) / m, Bayes gives
`q_u = p_u (a S + r w_u / z_u)`, `z_v = a + r p_v`, `S = sum_v w_v / z_v`: a part for each written value and the same multiple
of p for all. An adversary who identifies the row itself learns more, up to the bound of `models.posterior_bound`; where nothing
is retained (retain = 0) the release reveals nothing, and all values are equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.perturbation import Law, estimate_counts
from closeknit.core.reading import Reading
from closeknit.core.transition import Transition
from closeknit.kernels.arrays import Int64, Reals

ROUNDED = 1e-12  # a chance that is 1 but for rounding; shares of rows are farther from 1 than that


class NotApplicable(BadInput):
    """An attack does not apply to a column or form, with the reason."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Class `c` has the entries `starts[c]:starts[c+1]`, values ascending. The chance of an entry is
    `weights / totals + rest * prior`; a value without an entry has the second part alone.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"wage": ck.flat()})
    >>> cells = {"sex": ["f", "f", "f", "m"], "wage": ["low", "low", "high", "low"]}
    >>> beliefs = Beliefs.of(ck.generalized().read(Columns.of(cells), schema), "wage")
    >>> beliefs.chances.round(3).tolist(), beliefs.prior.tolist()
    ([0.333, 0.667, 1.0], [0.25, 0.75, 0.0])
    """

    starts: Int64
    values: Int64
    weights: Reals
    totals: Int64  # [classes] rows, or persons, that the weights are shared among
    prior: Reals  # [leaves, the missing one last] shares in the whole release
    rest: Reals  # [classes]
    domain: Domain
    law: Law | None = None

    @classmethod
    def of(cls, reading: Reading, column: str, people: bool = True) -> Beliefs:
        """Compute the beliefs in every class in which this attribute is seen; `people=False` counts rows instead of persons."""
        refuse_unknown(reading, column)
        law, classes = reading.retained.get(column), reading.of(column).classes
        if law is not None:
            if isinstance(law, Transition):
                what = f"'{column}' is perturbed by a matrix: no belief about it changes by more than the factor of its law"
                raise NotApplicable(what, right="see PosteriorBound")
            return _by_law(classes.histograms[column], law)
        histogram = classes.diversity(column) if people else classes.histograms[column]
        starts, values, weights = _entries(histogram)
        totals = count_holders(classes, column) if people else histogram.totals
        return cls(starts, values, weights, totals, _shares(histogram.reference), np.zeros(len(totals)), histogram.domain)

    @property
    def owner(self) -> Int64:
        """Class of each entry."""
        return np.repeat(np.arange(len(self.totals)), np.diff(self.starts))

    @property
    def chances(self) -> Reals:
        """Probability of each entry for a member of its class."""
        owner = self.owner
        chances = self.weights / np.maximum(self.totals, 1)[owner] + self.rest[owner] * self.prior[self.values]
        return np.where(chances > 1 - ROUNDED, 1.0, chances)

    def under(self, set_of: Int64, count: int) -> Beliefs:
        """Return the beliefs about sets of values, counted in rows: leaf i belongs to set `set_of[i]`."""
        cells, place = np.unique(self.owner * count + set_of[self.values], return_inverse=True)
        weights = np.bincount(place, self.weights, minlength=len(cells)).astype(np.float64)
        starts = np.searchsorted(cells, np.arange(len(self.totals) + 1) * count)
        prior = np.bincount(set_of, self.prior, minlength=count).astype(np.float64)
        return replace(self, starts=starts, values=cells % count, weights=weights, prior=prior)

    def rank_values(self) -> tuple[Int64, Int64]:
        """Return the entries by class, likeliest first (the first value among equals), and the rank of each in its class."""
        order = np.lexsort((-self.chances, self.owner))
        return order, np.arange(len(order)) - self.starts[self.owner]

    def add_unseen(self, most: int) -> Beliefs:
        """Add entries for the `most` likeliest values that a class does not show; only perturbed attributes have any."""
        if self.law is None:
            return self
        classes, width = np.arange(len(self.totals)), len(self.prior)
        keys, added = self.owner * width + self.values, []
        lacking = np.where(self.totals > 0, most, 0)
        for value in np.argsort(-self.prior, kind="stable")[: int((self.prior > 0).sum())].tolist():
            open_ = classes[lacking > 0]
            if len(open_) == 0:
                break
            fresh = open_[~_contains(keys, open_ * width + value)]
            lacking[fresh] -= 1
            added.append(fresh * width + value)
        cells = np.concatenate([keys, *added])
        order = np.argsort(cells, kind="stable")
        weights = np.concatenate([self.weights, np.zeros(len(cells) - len(keys))])[order]
        starts = np.searchsorted(cells[order], np.arange(len(self.totals) + 1) * width)
        return replace(self, starts=starts, values=cells[order] % width, weights=weights)

    def peaks(self) -> tuple[Reals, Int64]:
        """Return the largest probability of each class and its value; 0 and -1 where a class shows nothing."""
        whole = self.add_unseen(1)
        order, rank = whole.rank_values()
        first = order[rank == 0]
        peaks, values = np.zeros(len(self.totals)), np.full(len(self.totals), -1)
        peaks[whole.owner[first]], values[whole.owner[first]] = whole.chances[first], whole.values[first]
        return peaks, values


def count_holders(classes: Classes, column: str) -> Int64:
    """Count the persons, or rows, among whom the values of a class are distributed; suppressed values have no holder.

    >>> from closeknit.core.kinds import flat
    >>> domain, codes = flat().bind(np.array(["flu", "SARS"], dtype=object))
    >>> count_holders(Classes.of(np.zeros(2, np.int32), 1, {"disease": (codes, domain)}), "disease").tolist()
    [2]
    """
    totals = classes.diversity(column).totals
    return np.minimum(totals, classes.persons) if column in classes.by_person else totals


def refuse_unknown(reading: Reading, column: str) -> None:
    """Refuse a column that is not a sensitive attribute of the release."""
    if column not in reading.schema.sensitive or column not in reading.columns:
        right = suggest_name(column, reading.schema.sensitive)
        raise BadInput("is no sensitive column of the release", column=column, right=right)


def measure_gain(chances: Reals, prior: Reals) -> Reals:
    """Return the reduction in uncertainty, (q - p) / (1 - p); 0 where there was no uncertainty or it grew.

    >>> measure_gain(np.array([1.0, 0.6, 0.1, 1.0]), np.array([0.5, 0.2, 0.3, 1.0])).round(3).tolist()
    [1.0, 0.5, 0.0, 0.0]
    """
    uncertain = 1 - prior
    gain: Reals = np.where(uncertain > ROUNDED, np.maximum(chances - prior, 0) / np.maximum(uncertain, ROUNDED), 0.0)
    return gain


def _entries(histogram: Histogram) -> tuple[Int64, Int64, Reals]:
    return histogram.starts, histogram.values.astype(np.int64), histogram.counts.astype(np.float64)


def _shares(counts: NDArray[np.generic]) -> Reals:
    given = counts.astype(np.float64)
    return given / max(float(given.sum()), 1.0)


def _by_law(histogram: Histogram, law: Law) -> Beliefs:
    prior = np.zeros(len(histogram.reference))
    if law.retain == 0:
        prior[: law.values] = 1 / law.values
    else:
        prior[: law.values] = _shares(estimate_counts(histogram.reference[: law.values], law.retain).possible)
    starts, values, written = _entries(histogram)
    kept, other = float(law.retain), float(law.chance(False))
    scaled = written / (other + kept * prior[values])  # w_v / z_v, times the rows of the class
    totals = histogram.totals
    rest = other * np.bincount(histogram.owner, scaled, minlength=len(totals)) / np.maximum(totals, 1)
    return Beliefs(starts, values, kept * prior[values] * scaled, totals, prior, rest, histogram.domain, law)


def _contains(ascending: Int64, wanted: Int64) -> NDArray[np.bool_]:
    if len(ascending) == 0:
        return np.zeros(len(wanted), dtype=bool)
    at = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[at] == wanted
    return found

"""Three attackers: the prosecutor, the journalist and the marketer.

- The *prosecutor* looks for one person and knows that this person is in the table: 1 / f, where f people share the record.
- The *journalist* does not know who is in the table and wants to show that anyone can be found: 1 / F, where F people of the
  population match the record. Without a list of the population, 1 / F is estimated from the sampling fraction.
- The *marketer* wants to find many people and accepts errors: the expected share of records that are assigned correctly.

Without population and sampling fraction the journalist and the marketer are at most as successful as the prosecutor: their
numbers are then upper bounds, not estimates.

Thresholds are compared as fractions, and "above" is strict: 1/11 is above 0.09, and 1/3 is above 0.33.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import fsum

import numpy as np

from closeknit.core.exact import Floats, Ints, Number, at_most, sum_products
from closeknit.core.grids import Summarized, Summary
from closeknit.core.params import number
from closeknit.risks.class_counts import ClassCounts
from closeknit.risks.sample_weights import expect_reciprocal

EXACT, ESTIMATE, BOUND = "exact", "estimate", "upper bound"
GOALS = {
    "prosecutor": "looks for one person who is known to be in the table",
    "journalist": "looks for anyone, without knowing who is in the table",
    "marketer": "wants to find as many people as possible",
}


@dataclass(frozen=True, eq=False, repr=False)
class AttackerRisk(Summarized):
    """The risk from an attacker who looks for one person: `highest`, `average` and `share_above`.

    Args:
        name: The attacker.
        status: "exact", "estimate" or "upper bound".
        highest: The largest risk of a person; 0 if nothing is published.
        average: The mean risk.
        people: People of each class.
        among: People among whom one of a class is chosen; None where the risk is estimated.
        levels: Risk of each class.

    >>> sizes = np.array([1, 1, 2, 3, 5])
    >>> found = AttackerRisk.among_people("prosecutor", EXACT, sizes, sizes)
    >>> found.highest, found.average == 5 / 12, found.share_above(0.33) == 7 / 12, found.share_above("1/3") == 4 / 12
    (1.0, True, True, True)
    """

    name: str
    status: str
    highest: float
    average: float
    people: Ints
    among: Ints | None
    levels: Floats

    @classmethod
    def among_people(cls, name: str, status: str, people: Ints, among: Ints, average: float | None = None) -> AttackerRisk:
        """The risk if one of `among` people is chosen at random, by class; its mean unless another average is defined."""
        levels = 1 / among
        average = mean_success(people, among) if average is None else average
        return cls(name, status, float(levels.max(initial=0.0)), average, people, among, levels)

    @classmethod
    def by_estimate(cls, name: str, people: Ints, levels: Floats) -> AttackerRisk:
        """The risk of each class as it was estimated."""
        total = int(people.sum())
        average = sum_products(levels, people) / total if total else 0.0
        return cls(name, ESTIMATE, float(levels.max(initial=0.0)), average, people, None, levels)

    def summary(self) -> Summary:
        """Return highest and average."""
        return Summary(f"{self.name}: highest {self.highest:.4g}, average {self.average:.4g} ({self.status})")

    def share_above(self, threshold: Number) -> float:
        """Share of people whose risk is larger than a threshold, as the number that you write: 0.09 is 9/100.

        Args:
            threshold: A probability; equal risks do not count.
        """
        return float(self.exact_share_above(threshold))

    def exact_share_above(self, threshold: Number) -> Fraction:
        """As `share_above`, as a fraction.

        Args:
            threshold: A probability.
        """
        limit, total = number("threshold", threshold, least=0), int(self.people.sum())
        if total == 0:
            return Fraction(0)
        within = self.levels <= float(limit) if self.among is None else at_most(np.ones_like(self.among), self.among, limit)
        return Fraction(int(self.people[~within].sum()), total)


@dataclass(frozen=True)
class MarketerRisk:
    """The risk from an attacker who wants to find many people.

    Args:
        status: "exact", "estimate" or "upper bound".
        average: Expected share of people who are assigned correctly.
    """

    status: str
    average: float


@dataclass(frozen=True)
class Attackers:
    """The risk from each attacker.

    Args:
        prosecutor: Knows that the person is in the table.
        journalist: Does not know it.
        marketer: Wants to find many.
    """

    prosecutor: AttackerRisk
    journalist: AttackerRisk
    marketer: MarketerRisk


def measure_attackers(counts: ClassCounts, covered: Ints | None = None, fraction: Fraction | None = None) -> Attackers:
    """Measure the risk from each attacker.

    Args:
        counts: The classes.
        covered: People of the population whom each class covers, where a population is given.
        fraction: Share of the population that is in the table, where only this is known.
    """
    people, among = counts.people, counts.among
    prosecutor = AttackerRisk.among_people("prosecutor", EXACT, people, among)
    if covered is not None:
        marketer = mean_success(people, covered)
        average = max(len(covered) / int(covered.sum()) if len(covered) else 0.0, marketer)
        journalist = AttackerRisk.among_people("journalist", EXACT, people, covered, average)
        return Attackers(prosecutor, journalist, MarketerRisk(EXACT, marketer))
    if fraction is None or fraction == 1:
        status = BOUND if fraction is None else EXACT
        journalist = AttackerRisk.among_people("journalist", status, people, among)
        return Attackers(prosecutor, journalist, MarketerRisk(status, prosecutor.average))
    levels = expect_reciprocal(among.astype(np.float64), np.full(len(among), float(fraction)))
    journalist = AttackerRisk.by_estimate("journalist", people, levels)
    return Attackers(prosecutor, journalist, MarketerRisk(ESTIMATE, journalist.average))


def mean_success(people: Ints, among: Ints) -> float:
    """Mean of people / among over all people: the share that is assigned correctly at random.

    >>> mean_success(np.array([1, 1, 2, 3, 5]), np.array([1, 4, 4, 6, 20])) == 5 / 24
    True
    """
    total = int(people.sum())
    if people is among:  # every class gives one success
        return len(people) / total if total else 0.0
    grouped = np.bincount(among, people)
    choices = np.flatnonzero(grouped)
    return fsum((grouped[choices] / choices).tolist()) / total if total else 0.0


def least_class_size(threshold: Number) -> int:
    """The smallest class whose prosecutor risk is not above a threshold.

    Regulators round: 1/11 is above 0.09, so a threshold of 0.09 needs classes of 12, not of 11.

    Args:
        threshold: A probability above 0.

    >>> [least_class_size(t) for t in (0.05, 0.075, 0.09, 0.0909, 0.1, 0.2, 0.33, "1/3")]
    [20, 14, 12, 12, 10, 5, 4, 3]
    """
    limit = number("threshold", threshold, above=0)
    return max(1, -(-limit.denominator // limit.numerator))

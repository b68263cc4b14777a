"""Risk from sample weights: how many people of the population share a record, if only a sample of them is known.

A class has f people in the sample and an estimated number F^ in the population, the sum of the weights. With p = f / F^, the
number F given f is negative binomial, and the risk of a record is r(f, p) = E[1/F | f] (Benedetti and Franconi):

- exact, for p up to 1/2: r_1 = (p/q) ln(1/p), r_f = (p/q) (1/(f-1) - r_{f-1}), q = 1 - p;
- exact, for larger p or f: the series (p/f) (1 + q/(f+1) + 2 q^2/((f+1)(f+2)) + ...), whose terms are all positive;
- `approx`, the default of sdcMicro: exact for f up to 2, else p / (f - q), which is slightly too large.

The members of a household are taken as independent: its risk is 1 - prod(1 - r). That a household is recognised by its
composition is not covered.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from closeknit.core.columns import Column
from closeknit.core.errors import BadInput
from closeknit.core.exact import Floats, Ints, sum_products
from closeknit.core.kinds import texts_of
from closeknit.core.params import choice
from closeknit.core.row_sorting import groups
from closeknit.risks.class_counts import ClassCounts

TERMS = 60  # of the series; each is at most half of the one before, or much smaller
LONG = 30  # from this f on the series needs fewer terms than the recurrence has steps, whatever p is


def individual_risk(frequency: ArrayLike, population_estimate: ArrayLike, kind: str = "exact") -> float | Floats:
    """Risk of a record that `frequency` people of the sample share, and an estimated number of the population.

    Args:
        frequency: People of the sample with the same quasi-identifiers, f; one number or many.
        population_estimate: Estimated people of the population with them: the sum of their sample weights.
        kind: "exact", or "approx" for the approximation of sdcMicro.

    >>> round(individual_risk(1, 45.5), 8), round(individual_risk(3, 108), 8), round(individual_risk(3, 108, "approx"), 8)
    (0.08579129, 0.01355297, 0.01369863)
    """
    choice("kind", kind, ("exact", "approx"))
    f, total = np.broadcast_arrays(np.asarray(frequency, dtype=np.float64), np.asarray(population_estimate, dtype=np.float64))
    if not ((f >= 1) & np.isfinite(f) & (f == np.floor(f))).all():
        raise BadInput("a frequency is not a whole number of at least 1", right="count the rows that share a record")
    if not ((total > 0) & np.isfinite(total)).all():
        raise BadInput("a population estimate is not a positive number", right="give the sum of the sample weights")
    if (f > total).any():
        warnings.warn("a population estimate is smaller than its frequency: the risk is 1 / frequency", stacklevel=2)
    risks = expect_reciprocal(f.ravel(), np.minimum(f / total, 1.0).ravel(), kind == "approx").reshape(f.shape)
    return float(risks) if risks.ndim == 0 else risks


def expect_reciprocal(f: Floats, p: Floats, approximate: bool = False) -> Floats:
    """E[1/F | f] for every f and p; 1/f where p is 1 or more.

    Args:
        f: People in the sample.
        p: Share of the population that is in the sample.
        approximate: Whether to use the approximation of sdcMicro.

    >>> expect_reciprocal(np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.5, 1.0])).round(6).tolist()
    [0.693147, 0.306853, 0.25]
    """
    p = np.minimum(p, 1.0)
    risks = 1 / f
    rest = p < 1
    if approximate:
        many = rest & (f > 2)
        risks[many] = p[many] / (f[many] - 1 + p[many])
        rest &= f <= 2
    short = rest & (p <= 0.5) & (f < LONG)
    risks[short] = _recur(f[short], p[short])
    long = rest & ~short
    risks[long] = _add_series(f[long], p[long])
    return risks


def _recur(f: Floats, p: Floats) -> Floats:
    odds = p / (1 - p)
    risks = odds * np.log(1 / p)
    for size in range(2, int(f.max(initial=1)) + 1):
        risks = np.where(f >= size, odds * (1 / (size - 1) - risks), risks)
    return risks


def _add_series(f: Floats, p: Floats) -> Floats:
    term, total = np.ones(len(f)), np.ones(len(f))
    for k in range(1, TERMS + 1):
        term *= k * (1 - p) / (f + k)
        total += term
    return p / f * total


@dataclass(frozen=True, eq=False)
class RecordRisk:
    """Risk of every record.

    Args:
        of_class: Risk of a record of each class.
        of_row: Risk of each row.
        expected: Expected number of re-identified people.
        above_sample: Classes whose estimated population is smaller than the class itself.
        households: Risk of each row's household, where households are known.
        expected_in_households: Expected number of people whose household is re-identified.
    """

    of_class: Floats
    of_row: Floats
    expected: float
    above_sample: int = 0
    households: Floats | None = None
    expected_in_households: float | None = None


def measure_records(
    counts: ClassCounts,
    covered: Ints | None = None,
    weights: Floats | None = None,
    fraction: float | None = None,
    household: Column | None = None,
) -> RecordRisk:
    """Measure the risk of every record: from weights, else from the population, else 1 / (people of the class).

    Args:
        counts: The classes.
        covered: People of the population whom each class covers, where a list of the population is given.
        weights: Sample weight of each row.
        fraction: Share of the population that is in the table.
        household: Household of each row.
    """
    f = (counts.among if covered is None or weights is not None else covered).astype(np.float64)
    p = np.ones(len(f)) if fraction is None else np.full(len(f), fraction)
    if weights is not None:
        p = f / _sum_weights(counts, weights)
    of_class = expect_reciprocal(f, p)
    of_row = of_class[counts.class_of] if len(f) else np.empty(0)
    found = RecordRisk(of_class, of_row, sum_products(of_class, counts.people), int((p > 1).sum()))
    return found if household is None else _with_households(found, counts, household)


def _sum_weights(counts: ClassCounts, weights: Floats) -> Floats:
    """Estimated population of each class; a person of several rows counts once, with the least weight."""
    class_of: Ints = counts.class_of.astype(np.int64)
    classes = len(counts.people)
    if counts.persons is not None:
        entry, entries = groups([(class_of, classes), (counts.persons, int(counts.persons.max(initial=0)) + 1)], len(class_of))
        least = np.full(entries, np.inf)
        np.minimum.at(least, entry, weights)
        owner = np.empty(entries, dtype=np.int64)
        owner[entry] = class_of
        class_of, weights = owner, least
    sums = np.bincount(class_of, weights, minlength=classes).astype(np.float64)
    return sums if counts.among is counts.people else counts.sum_matching(sums)


def _with_households(found: RecordRisk, counts: ClassCounts, household: Column) -> RecordRisk:
    codes = household.codes.astype(np.int64)
    persons = np.arange(len(codes)) if counts.persons is None else counts.persons
    member, members = groups([(codes, len(household.values)), (persons, int(persons.max(initial=0)) + 1)], len(codes))
    risks, home = np.zeros(members), np.empty(members, dtype=np.int64)
    np.maximum.at(risks, member, found.of_row)  # a person of several rows is found by the riskiest
    home[member] = codes
    with np.errstate(divide="ignore"):
        unfound = np.bincount(home, np.log1p(-risks), minlength=len(household.values))
    of_home = -np.expm1(unfound)
    return RecordRisk(
        found.of_class, found.of_row, found.expected, found.above_sample, of_home[codes], float(of_home[home].sum())
    )


def parse_weights(column: Column, name: str) -> Floats:
    """Sample weight of every row; one that is missing, zero, negative or no number is refused with its row.

    Args:
        column: The column.
        name: Its name, for messages.

    >>> parse_weights(Column(np.array(["2.5", "0"], dtype=object), np.array([0, 1])), "weight")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: column 'weight', row 2: the weight '0' is not positive; give every row a positive weight
    """
    right = "give every row a positive weight"
    if (column.codes < 0).any():
        raise BadInput("the weight is missing", column=name, row=column.first_row(-1), right=right)
    try:
        numbers = column.values.astype(np.float64)
    except ValueError:  # find out which one
        numbers = np.array([_parse_number(text) for text in texts_of(column.values)])
    wrong = np.flatnonzero((column.counts > 0) & ~((numbers > 0) & np.isfinite(numbers)))
    if len(wrong):
        i = int(wrong[0])
        what = "positive" if numbers[i] <= 0 else "a finite number"
        raise BadInput(f"the weight '{column.values[i]}' is not {what}", column=name, row=column.first_row(i), right=right)
    weights: Floats = numbers[column.codes]
    return weights


def _parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")

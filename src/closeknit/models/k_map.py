"""k-map: the cells of every class fit at least `k` people of the population from which the table is drawn.

An adversary who does not know whether a person is in the table (a *journalist*) looks for the row's person in the population;
k-anonymity asks for k people in the table itself, which is stricter. With a `population`, people are counted by cover of the
written cells; the guarantee is then attested, because the population is private. Where only the sampling fraction pi is known,
the number of people is estimated from the rows: if the cells fitted only k people, a sample would contain X of them with X ~
Poisson(pi k), given that X >= 1 because the class is there (`kind="truncated"`) or not (`kind="poisson"`). A class needs k'
rows, the least m with P(X >= m) <= alpha, at most k: so many rows are unlikely if there are only k people. The text states pi,
alpha and k'.

Source: Sweeney's k-map, with the estimators of El Emam and Dankar, *Protecting Privacy Using k-Anonymity*. Different from ARX:
its Poisson variant asks for one row more than its error level needs. Merging adds rows, so the guarantee is monotone.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import expm1
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.covering import Covering
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import Number, decimal, fraction
from closeknit.core.model import Model, Parameter, Verdict
from closeknit.core.params import choice, number, whole
from closeknit.core.reading import Reading
from closeknit.models.k_anonymity import KAnonymity
from closeknit.models.population import WHY, PopulationModel, check_people, count_people, cover_people

KINDS = ("truncated", "poisson")
MOST = 100_000  # people


@dataclass(frozen=True)
class KMap(PopulationModel):
    """At least `k` people of the population fit the cells of every class.

    Args:
        k: The least number of people.
        population: The people from whom the table is drawn, with all quasi-identifiers: a path, a frame or `Columns`.
        fraction: Instead of them, the share of the population that is in the table, above 0 and at most 1.
        alpha: The largest probability of an error of the estimate.
        kind: "truncated" takes into account that a class has at least one row, "poisson" does not.

    >>> KMap(5, fraction=0.1).describe(None)
    'k-map, k = 5, estimated from 10 % of the population (pi = 0.1, alpha = 0.05, truncated: classes of at least 3 rows)'
    """

    name = "k_map"
    parameter = Parameter("k", (2, 3, 5, 10, 20, 50), least=2, whole=True, rank=61)
    monotone = True
    bounds = "size"
    higher_is_safer = True
    column = None

    k: int
    population: Any = None
    fraction: Number | None = None
    alpha: Number = 0.05
    kind: str = KINDS[0]

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=MOST))
        choice("kind", self.kind, KINDS)
        number("alpha", self.alpha, above=0, most=1)
        if (self.fraction is None) == (self.population is None):
            what = f"k_map has {'no population and no fraction' if self.fraction is None else 'a population and a fraction'}"
            raise BadInput(what, right="give population, a file of people, or fraction, the share of them in the table")
        if self.fraction is None:
            object.__setattr__(self, "population", check_people(self.population))
            return
        number("fraction", self.fraction, above=0, most=1)
        if self.least_size == 1:
            what = f"k={self.k}, fraction={self.fraction} and alpha={self.alpha} exclude nothing: one row is enough (k' = 1)"
            raise BadInput(what, right="request a larger k or a smaller alpha, or kind 'truncated'")

    @property
    def needs(self) -> frozenset[str]:
        """Sizes; where people are counted, all written cells."""
        return frozenset({"sizes", "persons", *(() if self.population is None else ("release", "population"))})

    @property
    def stricter(self) -> Model | None:
        """k rows in a class are k people of the population."""
        return None if self.population is None else KAnonymity(self.k)

    @property
    def least_size(self) -> int:
        """k': rows that make it unlikely that only k people fit; 0 where people are counted."""
        if self.fraction is None:
            return 0
        exact = fraction("fraction", self.fraction)
        return estimate_rows(self.k, exact, fraction("alpha", self.alpha), self.kind == "truncated")

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        if self.fraction is None:
            return f"k-map, k = {self.k}{self.people_text}"
        share = f"{float(100 * fraction('fraction', self.fraction or 0)):.6g} %"
        how = f"pi = {self.fraction}, alpha = {self.alpha}, {self.kind}"
        return (
            f"k-map, k = {self.k}, estimated from {share} of the population ({how}: classes of at least {self.least_size} rows)"
        )

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        if self.fraction is None:
            return (
                f"At least {self.k} people of the population look like every row: an adversary who does not know who is in the "
                "table does not learn whose row it is."
            )
        error = f"{float(100 * fraction('alpha', self.alpha)):.3g} %"
        return (
            f"Every {class_word} is so large that it would be unlikely (at most {error}) if only {self.k} people of the "
            "population looked like its rows: who does not know who is in the table does not learn whose row it is."
        )

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """The largest k that the persons of each class are enough for."""
        if self.fraction is None:
            return classes.persons.astype(np.float64)  # at least so many people fit
        persons, place = np.unique(classes.persons, return_inverse=True)
        return np.array([self._reach(many) for many in persons.tolist()], dtype=np.float64)[place]

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each class has at least k' of them, or k where people are counted: so many fit at least."""
        return classes.persons >= (self.least_size or self.k)

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """The largest k that the persons of one class are enough for."""
        return Fraction(self._reach(int(classes.persons[index])))

    def judge_people(self, reading: Reading, covering: Covering, inside: NDArray[np.int64]) -> Verdict:
        """The fewest people of the population whom the cells of a class fit."""
        fewest = int(inside.min())
        return Verdict(fewest >= self.k, float(fewest), "attested", Fraction(fewest), why=WHY)

    def find_faults(self, reading: Reading) -> NDArray[np.bool_]:
        """Classes whose cells fit fewer than k people, or fewer than they have."""
        if self.fraction is not None:
            return super().find_faults(reading)
        return ~self.holds_among(reading.classes, count_people(reading, cover_people(reading, self.population)))

    def holds_among(self, classes: Classes, people: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the cells of each class fit at least k people, and no fewer than the class has."""
        return people >= np.maximum(classes.persons, self.k)

    def _reach(self, persons: int) -> int:
        if self.fraction is None:
            return persons
        exact = fraction("fraction", self.fraction)
        return estimate_people(persons, exact, fraction("alpha", self.alpha), self.kind == "truncated")


@lru_cache(maxsize=1024)
def estimate_people(rows: int, pi: Fraction, alpha: Fraction, truncated: bool) -> int:
    """The largest k whose k' is at most `rows`.

    Args:
        rows: rows of a class.
        pi: the share of the population that is sampled.
        alpha: the largest probability of an error.
        truncated: whether it is known that the class has a row.

    >>> [estimate_people(rows, Fraction(1, 10), Fraction(1, 20), True) for rows in range(5)]
    [0, 1, 2, 5, 12]
    """
    from scipy.special import gammainc

    low, high = rows, MOST if rows else 0  # k' is at most k
    while low < high:  # floats find the place
        middle = (low + high + 1) // 2
        mean = float(pi) * middle
        chance = float(gammainc(max(rows, 1), mean)) / (-expm1(-mean) if truncated else 1.0)
        low, high = (middle, high) if chance <= alpha else (low, middle - 1)
    while low > rows and estimate_rows(low, pi, alpha, truncated) > rows:
        low -= 1
    while rows and low < MOST and estimate_rows(low + 1, pi, alpha, truncated) <= rows:
        low += 1
    return low


@lru_cache(maxsize=1024)
def estimate_rows(k: int, pi: Fraction, alpha: Fraction, truncated: bool) -> int:
    """k': the least m with P(X >= m) <= alpha for X ~ Poisson(pi k), or that given X >= 1; at most k.

    Args:
        k: people of the population.
        pi: the share of them that is sampled.
        alpha: the largest probability of an error.
        truncated: whether X >= 1 is known.

    >>> [estimate_rows(k, Fraction(1, 10), Fraction(1, 20), kind) for k in (5, 11) for kind in (False, True)]
    [3, 3, 4, 4]
    """
    with localcontext() as context:
        context.prec = 60
        mean = decimal(pi * k)
        term = (-mean).exp()
        least = decimal(alpha) * (1 - term if truncated else 1)
        tail, m = Decimal(1), 0  # P(X >= m)
        while m < k and (tail > least or (truncated and m == 0)):
            tail -= term
            m += 1
            term *= mean / m
    return max(m, 1)

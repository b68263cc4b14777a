"""Average risk: an adversary who links rows to known persons is right in at most a share `r` of the cases, on average.

The adversary knows that a person is in the table (a *prosecutor*), finds the class of that person and picks one of its f rows:
the chance to be right is 1/f. The mean over all rows is C/n, the number of classes over the number of rows, and the guarantee
is C/n <= r: every class takes 1 from a budget of r n. Small classes are allowed, even a single row, if others are large enough;
add `KAnonymity` where a floor is wanted. Merging two classes removes one of them, so the guarantee is monotone.

With a `population` the adversary knows people of it, not who is in the table (a *marketer*): a class of f rows whose cells fit
F people gives f/F right matches, and the guarantee is that their sum is at most r n. A merged class fits everyone whom its
parts fit, so it gives no more right matches than both, and F >= f makes this guarantee weaker than the one without a
population. It is judged on written cells and attested, because the population is private.

Source: the strict average risk and the marketer risk of El Emam, *Guide to the De-Identification of Personal Health
Information*. Cost: a count.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.covering import Covering
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import NEAR, Number, at_most
from closeknit.core.model import Model, Parameter, Verdict
from closeknit.core.params import number
from closeknit.core.reading import Reading
from closeknit.models.budget import BudgetModel
from closeknit.models.population import WHY, PopulationModel, check_people, count_people, cover_people

NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class AverageRisk(PopulationModel, BudgetModel):
    """The mean of 1/(rows of the class) over all rows is at most `r`; with a population, of 1/(people who fit the class).

    Args:
        r: The limit, above 0 and below 1.
        population: The people from whom the table is drawn, with all quasi-identifiers: a path, a frame or `Columns`.

    >>> sizes = np.array([1, 1, 2, 3, 5])
    >>> classes = Classes(sizes, sizes, {})
    >>> AverageRisk("5/12").holds_together(classes), AverageRisk(0.41).holds_together(classes)
    (True, False)
    >>> AverageRisk(0.41, 45_222).describe(None)
    'average risk, r = 0.41, in a population of 45,222 people'
    """

    name = "average_risk"
    counts_classes = True
    level_of_none = 0.0
    parameter = Parameter("r", (0.02, 0.05, 0.09, 0.1, 0.2, 0.33), least=0.001, most=0.99, rank=62)

    r: Number
    population: Any = None

    def __post_init__(self) -> None:
        if self.population is not None:
            object.__setattr__(self, "population", check_people(self.population))
        if number("r", self.r, above=0, most=1) == 1:
            raise BadInput("r=1 excludes nothing: it allows a class for every row", right="request an average risk below 1")

    @property
    def budget(self) -> bool:
        """Whether classes spend by their sizes alone, so that methods can count on it."""
        return self.population is None

    @property
    def needs(self) -> frozenset[str]:
        """Sizes of all classes; where people are counted, all written cells."""
        return frozenset({"release", "sizes", "persons", *(() if self.population is None else ("population",))})

    @property
    def stricter(self) -> Model:
        """Without the population: at least as many people fit a class as it has rows."""
        return super().stricter if self.population is None else AverageRisk(self.r)

    @property
    def least_size(self) -> int:
        """Persons from which on a class meets the guarantee by itself; 0 where people are counted."""
        return ceil(1 / self.limit) if self.population is None else 0

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        return f"average risk, r = {self.r}{self.people_text}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        who = "people" if persons else "rows"
        if self.population is not None:
            return (
                "An adversary who links every row to one of the people of the population who look like it is right in at most "
                f"{float(100 * self.limit):.3g} % of the cases, on average. For some people the chance may be higher."
            )
        return (
            f"An adversary who knows that people are in the table and picks one of the {who} that look like each of them is "
            f"right in at most {float(100 * self.limit):.3g} % of the cases, on average. For some people the chance may be "
            "higher."
        )

    def spend(self, classes: Classes) -> NDArray[np.int64]:
        """Every class takes 1."""
        return (classes.persons > 0).astype(np.int64)

    def judge_release(self, reading: Reading, originals: NDArray[np.int32] | None) -> Verdict:
        """The mean share of right matches; nothing published gives none."""
        counted = BudgetModel if self.population is None else PopulationModel
        return counted.judge_release(self, reading, originals)

    def judge_people(self, reading: Reading, covering: Covering, inside: NDArray[np.int64]) -> Verdict:
        """The mean share of right matches of people."""
        persons = reading.classes.persons
        level = fsum((persons / np.maximum(inside, 1)).tolist()) / max(int(persons.sum()), 1)
        return Verdict(self.holds_together_among(reading.classes, inside, False), level, "attested", why=WHY)

    def find_faults(self, reading: Reading) -> NDArray[np.bool_]:
        """Classes that fit fewer people than they have; while too many matches are right, those above their own share."""
        if self.population is None:
            return super().find_faults(reading)
        inside, persons = self._count(reading), reading.classes.persons
        faults = inside < persons
        if not self.holds_together_among(reading.classes, inside, False):
            faults |= ~at_most(np.ones_like(inside), np.maximum(inside, 1), self.limit)
        return faults

    def holds_among(self, classes: Classes, people: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Any class that fits its own people may be part of a release that meets it."""
        return people >= classes.persons

    def holds_together_among(self, classes: Classes, people: NDArray[np.int64], absent: bool) -> bool:
        """Whether the sum of f/F is at most r n; a float decides only if it is not near the limit."""
        if (people < classes.persons).any():
            return False
        total, allowed = fsum((classes.persons / np.maximum(people, 1)).tolist()), self.limit * int(classes.persons.sum())
        if abs(total - float(allowed)) > NEAR * max(1.0, float(allowed)):
            return total < allowed
        rows = np.bincount(people, classes.persons)
        return sum((Fraction(int(rows[many]), int(many)) for many in np.flatnonzero(rows)), Fraction(0)) <= allowed

    def _count(self, reading: Reading) -> NDArray[np.int64]:
        """People whom the cells of each class fit."""
        return count_people(reading, cover_people(reading, self.population)) if len(reading.classes) else NONE

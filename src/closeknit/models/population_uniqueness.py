"""Population uniqueness: at most a share `r` of the `N` people of the population is expected to be unique in it.

A person who is unique in the table on the quasi-identifiers may share them with others in the population. How many people are
unique there is estimated from the class sizes alone (`core.population_uniques`): by Pitman's model if at most a tenth of the
population is in the table, otherwise by the smaller of Zayatz' and the slide negative binomial estimate, and by Zayatz' where
the chosen one has no fit. Anyone who knows N can recompute it.

It is an estimate of an expected number, not a bound: on single samples the estimators differ by a factor of up to 1.6. It is
not monotone: for N = 10, Zayatz' estimate of the sizes 1, 2, 2 is 18/29, and of 1, 4 it is 42/31. So it is judged at the end;
while it is not met, single rows are merged with others. Without single rows it is 0, so next to k >= 2 it excludes nothing: the
certificate notes that. An estimate within 1e-9 of the limit counts as not met.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import NEAR, Number, fraction
from closeknit.core.model import Model, Parameter, Verdict, least_rows
from closeknit.core.params import number, whole
from closeknit.core.population_uniques import PopulationUniques, SizeCounts, check_population, estimate_population_uniques
from closeknit.core.reading import Reading


@dataclass(frozen=True)
class PopulationUniqueness(Model):
    """At most the share `r` of `N` people is expected to be unique in the population.

    Args:
        r: The largest share, at least 0 and below 1.
        N: The number of people in the population from which the table is drawn.

    >>> PopulationUniqueness(0.01, 45_222).describe(None)
    'population uniqueness, r = 0.01, of 45,222 people (estimated)'
    """

    name = "population_uniqueness"
    parameter = Parameter("r", (0, 0.001, 0.01, 0.02, 0.05, 0.1), most=0.99, rank=65)
    needs = frozenset({"release", "sizes", "persons"})
    forms = frozenset({"generalized", "perturbed"})
    column = None
    by_class = False

    r: Number
    N: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "N", whole("N", self.N, least=1))
        if number("r", self.r, least=0, most=1) == 1:
            raise BadInput("r=1 excludes nothing", right="request a share below 1")

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        return f"population uniqueness, r = {self.r}, of {self.N:,} people (estimated)"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        share = f"{float(100 * fraction('r', self.r)):.3g} %"
        return (
            f"At most {share} of the {self.N:,} people of the population are expected to be the only one with their published "
            "quasi-identifiers. This is an estimate from the class sizes."
        )

    def remarks(self, models: Iterable[Model]) -> list[str]:
        """It has no effect where no class may be a single row."""
        return ["it has no effect next to a guarantee that allows no single row"] if least_rows(models) >= 2 else []

    def refuse(self, classes: Classes) -> None:
        """A population that is smaller than the table."""
        check_population(self.N, int(classes.persons.sum()))

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """1 for a single person, who alone may be unique in the population, else 0."""
        return np.where(classes.persons == 1, 1.0, 0.0)

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether a class has several persons."""
        return np.not_equal(classes.persons, 1)

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """1 for a single person."""
        return Fraction(int(classes.persons[index] == 1))

    def holds_together(self, classes: Classes) -> bool:
        """Whether the estimate for these classes is within the limit."""
        return self._meets(self._estimate(classes))

    def level_together(self, classes: Classes) -> float:
        """The estimate for these classes, as a share of the population."""
        return self._estimate(classes).share

    def judge_release(self, reading: Reading, originals: NDArray[np.int32] | None) -> Verdict:
        """The estimate by the rule, as a share of the population."""
        found = self._estimate(reading.classes)
        return Verdict(self._meets(found), found.share, "recomputable")

    def find_faults(self, reading: Reading) -> NDArray[np.bool_]:
        """Single rows, while the estimate is above the limit."""
        return self.levels(reading.classes).astype(bool) & (not self.holds_together(reading.classes))

    def _estimate(self, classes: Classes) -> PopulationUniques:
        return estimate_population_uniques(SizeCounts.of(classes.persons), self.N)

    def _meets(self, found: PopulationUniques) -> bool:
        limit = fraction("r", self.r)
        if found.sample_uniques == found.chosen:  # nothing was estimated
            return Fraction(found.sample_uniques, self.N) <= limit
        return found.share < float(limit) - NEAR

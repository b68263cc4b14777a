"""delta-presence: from the cells of a class, the probability that a person of the population is in the table is limited.

A class of r persons whose cells fit N people of the population reveals that each of them is in the table with the probability
r/N. The guarantee is lo <= r/N <= hi for every class; with lo > 0 also that the cells of some class fit every person: who fits
none is known to be absent. The population is private, so the guarantee is attested.

Source: Nergiz, Atzori, Clifton, *Hiding the Presence of Individuals from Shared Databases*. It is not monotone where cells
overlap: of people aged 1, 2, 2, 3 the classes [1, 2] and [2, 3] hold 2 of 3 each, and merged into [1, 3] 4 of 4. So it is
judged after every merge. With cells that do not overlap (whole levels) the ratio of a merged class lies between those of its
parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.covering import Covering
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import Number, at_most, fraction
from closeknit.core.model import Parameter, Verdict
from closeknit.core.params import number
from closeknit.core.reading import Reading
from closeknit.models.population import WHY, PopulationModel, check_people, count_people, cover_people


@dataclass(frozen=True)
class DeltaPresence(PopulationModel):
    """From every class, a person of the population is in the table with a probability from `lo` to `hi`.

    Args:
        lo: The least probability, at least 0.
        hi: The largest probability; lo = 0 and hi = 1 together are refused, as they exclude nothing.
        population: The people from whom the table is drawn, with all quasi-identifiers: a path, a frame or `Columns`.

    >>> DeltaPresence(0, 0.5, 45_222).describe(None)
    'delta-presence, from 0 to 0.5, in a population of 45,222 people'
    """

    name = "delta_presence"
    parameter = Parameter("hi", (0.05, 0.1, 0.2, 0.33, 0.5, 0.75), least=0.001, most=0.99, rank=64)
    needs = frozenset({"release", "sizes", "persons", "population"})
    needs_file = True
    column = None

    lo: Number
    hi: Number
    population: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "population", check_people(self.population))
        low, high = number("lo", self.lo, least=0, most=1), number("hi", self.hi, above=0, most=1)
        if low > high:
            raise BadInput(f"lo={self.lo} is above hi={self.hi}", right="request lo of at most hi")
        if low == 0 and high == 1:
            raise BadInput("lo=0 and hi=1 exclude nothing", right="request hi below 1, or lo above 0")

    @property
    def requested(self) -> str:
        """The limits as a certificate writes them."""
        return f"from {self.lo} to {self.hi}"

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        return f"delta-presence, {self.requested}{self.people_text}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        low, high = (f"{float(100 * fraction('limit', limit)):.3g} %" for limit in (self.lo, self.hi))
        return (
            "An adversary who knows a person of the population concludes from the release that this person is in the table "
            f"with a chance from {low} to {high}, no less and no more."
        )

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """Classes without their cells fit no one that can be counted: `judge_release` judges them."""
        return np.zeros(len(classes))

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Any class may meet it."""
        return np.ones(len(classes), dtype=bool)

    def judge_people(self, reading: Reading, covering: Covering, inside: NDArray[np.int64]) -> Verdict:
        """The largest ratio of all classes; met where none is outside of the limits and no one is known to be absent."""
        ratios = [Fraction(int(r), int(n)) for r, n in zip(reading.classes.persons, inside, strict=True)]
        outside, absent = not self.holds_among(reading.classes, inside).all(), self._shows_absence(covering)
        why = f"its classes reach from {float(min(ratios)):.4g} to {float(max(ratios)):.4g}; request wider limits"
        if absent:
            why = "some people fit no class, so they are known to be absent; request lo = 0"
        held = not outside and not absent
        return Verdict(held, float(max(ratios)), "attested", max(ratios), why=WHY if held else why)

    def find_faults(self, reading: Reading) -> NDArray[np.bool_]:
        """Classes outside of the limits; all of them where someone is known to be absent."""
        covering = cover_people(reading, self.population)
        faults = ~self.holds_among(reading.classes, count_people(reading, covering))
        return np.ones_like(faults) if self._shows_absence(covering) else faults

    def holds_among(self, classes: Classes, people: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the ratio of each class is within the limits, and its cells fit no fewer people than it has."""
        some = np.maximum(people, 1)
        high = at_most(classes.persons, some, fraction("hi", self.hi))
        low = at_most(-classes.persons, some, -fraction("lo", self.lo))
        return high & low & (people >= classes.persons)

    def holds_together_among(self, classes: Classes, people: NDArray[np.int64], absent: bool) -> bool:
        """Whether the ratios of all classes are within the limits, and with lo > 0 no one is known to be absent."""
        known = absent and fraction("lo", self.lo) > 0
        return not known and super().holds_together_among(classes, people, absent)

    def _shows_absence(self, covering: Covering) -> bool:
        """Whether some person fits no class, which lo > 0 does not allow."""
        return fraction("lo", self.lo) > 0 and bool((covering.rows_over_points() == 0).any())

"""`BudgetModel`: a guarantee on an average over the release: what all classes spend is at most the limit times the persons.

A class by itself meets it where it does not spend more than its own share. If every class does, so does the release, and
methods may ask for that. It is stricter than needed: a class that spends less leaves room for one that spends more. The surplus
of a class is limit times persons less what it spends; the guarantee holds where the surpluses add up to 0 or more.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.exact import at_most, fraction
from closeknit.core.model import Model, Verdict
from closeknit.core.reading import Reading
from closeknit.models.k_anonymity import KAnonymity


class BudgetModel(Model):
    """Base class: a subclass has `spend`, whole numbers that are 0 for an empty class, and a limit below 1."""

    monotone = True
    bounds = "size"
    column = None

    @property
    def budget(self) -> bool:
        """It limits a sum."""
        return True

    @property
    def needs(self) -> frozenset[str]:
        """Sizes of all classes."""
        return frozenset({"release", "sizes", "persons"})

    @property
    def forms(self) -> frozenset[str]:
        """Forms with classes of quasi-identifiers."""
        return frozenset({"generalized", "perturbed"})

    @property
    def stricter(self) -> Model:
        """So many persons in every class that each stays within its own share."""
        return KAnonymity(self.least_size)

    @property
    def limit(self) -> Fraction:
        """The largest share of the persons that may be spent."""
        return fraction(self.limit_field, getattr(self, self.limit_field))

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """What each class spends, as a share of its persons."""
        levels: NDArray[np.float64] = self.spend(classes) / np.maximum(classes.persons, 1)
        return levels

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each class stays within its own share."""
        return at_most(self.spend(classes), np.maximum(classes.persons, 1), self.limit)

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """What one class spends, as a share of its persons."""
        return Fraction(int(self.spend(classes)[index]), max(int(classes.persons[index]), 1))

    def holds_together(self, classes: Classes) -> bool:
        """Whether all classes together stay within the budget."""
        return int(self.spend(classes).sum()) <= self.limit * int(classes.persons.sum())

    def level_together(self, classes: Classes) -> float:
        """What all classes spend, as a share of all persons."""
        return float(self.spend(classes).sum() / max(int(classes.persons.sum()), 1))

    def judge_release(self, reading: Reading, originals: NDArray[np.int32] | None) -> Verdict:
        """What all classes spend, as a share of all persons; nothing published spends nothing."""
        classes = reading.classes
        parts = int(self.spend(classes).sum()), int(classes.persons.sum())
        exact = Fraction(parts[0], max(parts[1], 1))
        return Verdict(exact <= self.limit, float(exact), "recomputable", exact, parts=parts)

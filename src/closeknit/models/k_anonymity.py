"""k-anonymity: every class holds at least `k` persons (rows, where no person column is declared).

Source: the model of Samarati and Sweeney, as in the dissertation on methods to achieve t-closeness, sec. 2.5. Adding
persons to a class never hurts, so the guarantee is monotone. Cost: one comparison per class.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.domain import Domain
from closeknit.core.model import Model, Parameter
from closeknit.core.params import whole
from closeknit.core.subsets import Over, check_over, render_over


@dataclass(frozen=True)
class KAnonymity(Model):
    """At least `k` persons in every class.

    Args:
        k: The least number of persons (rows, where no person column is declared).
        over: Quasi-identifiers in which rows with equal written cells count as one group: names, "pairs" or "triples"; default:
            all of them.

    >>> from closeknit.core.classes import Classes
    >>> KAnonymity(2).holds(Classes.of(np.array([0, 0, 1], dtype=np.int32), 2, {})).tolist()
    [True, False]
    """

    name = "k_anonymity"
    parameter = Parameter("k", (2, 3, 5, 10, 20, 50), least=1, whole=True, rank=60)
    needs = frozenset({"sizes", "persons"})
    monotone = True
    bounds = "size"
    forms = frozenset({"generalized", "perturbed"})
    higher_is_safer = True
    column = None

    k: int
    over: Over = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=1))
        object.__setattr__(self, "over", check_over(self.over))

    @property
    def least_size(self) -> int:
        """Every class has at least `k` rows; over some columns no class by itself has to."""
        return self.k if self.over is None else 0

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        return f"k-anonymity, k = {self.k}{self.over_text}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        who = "people" if persons else "rows"
        columns = render_over(self.over) or "every quasi-identifier"
        known = f"An adversary who knows {columns} of a person still finds at least {self.k} {who} that look the same"
        return f"{known}, and does not learn which one is that person."

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """Persons in each class."""
        return classes.persons.astype(np.float64)

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each class has at least `k` of them."""
        return classes.persons >= self.k

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """Persons in one class."""
        return Fraction(int(classes.persons[index]))

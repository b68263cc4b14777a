"""k-anonymity: every class holds at least `k` persons (rows, where no person column is declared).

Source: the model of Samarati and Sweeney, as in the dissertation on methods to achieve t-closeness, sec. 2.5. Adding
persons to a class never hurts, so the guarantee is monotone. Cost: one comparison a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.domain import Domain
from closeknit.core.params import whole


@dataclass(frozen=True)
class KAnonymity:
    """At least `k` persons in every class.

    >>> from closeknit.core.classes import Classes
    >>> KAnonymity(2).holds(Classes.of(np.array([0, 0, 1], dtype=np.int32), 2, {})).tolist()
    [True, False]
    """

    name: ClassVar[str] = "k_anonymity"
    needs: ClassVar[frozenset[str]] = frozenset({"sizes", "persons"})
    monotone: ClassVar[bool] = True
    family: ClassVar[str] = "size"
    forms: ClassVar[frozenset[str]] = frozenset({"generalized", "perturbed"})
    higher_is_safer: ClassVar[bool] = True

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=1))

    @property
    def least_size(self) -> int:
        """Every class has at least `k` rows."""
        return self.k

    @property
    def column(self) -> str | None:
        """It speaks of rows, not of a secret."""
        return None

    @property
    def requested(self) -> str:
        """The limit in the certificate's words."""
        return f">= {self.k}"

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        return f"k-anonymity, k = {self.k}"

    def refuse(self, classes: Classes) -> None:
        """It has a meaning for every table."""

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """Persons in each class."""
        return classes.persons.astype(np.float64)

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each class has at least `k` of them."""
        return classes.persons >= self.k

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """Persons in one class."""
        return Fraction(int(classes.persons[index]))

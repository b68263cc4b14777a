"""eps-transparency: who knows the algorithm and all quasi-identifiers learns little more from a release than its classes show.

R is the partition with the histogram of sensitive values of each class; what is written is a function of R and the
quasi-identifiers. A method is eps-transparent if for every table, every R and every two persons of one class of R, R is at most
e^eps times as likely as after the two have exchanged their sensitive values. If all assignments of the values inside a class
are equally likely beforehand and all other values are known, the odds of two values of a person stay within e^eps of the ratio
of their counts in the class.

No claim beyond that: beliefs under which the values of persons depend on each other compare tables that are many exchanges
apart; quasi-identifiers, membership, several releases and anyone who has the seed are not covered. `docs/soft_stop.md` has the
proof. It is a property of the method, so nothing in a release shows it: it is attested, and only by a method that has it.

Sources: minimality (Wong et al. 2007) and transparent adversaries (Xiao et al. 2010); the definition and its proof are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.domain import Domain
from closeknit.core.exact import Number
from closeknit.core.model import Model, Parameter, Verdict
from closeknit.core.params import number
from closeknit.core.reading import Reading

WHY = "which method ran, and with which draws, cannot be seen in what was written"


@dataclass(frozen=True)
class Transparency(Model):
    """A release is at most e^eps times as likely as after an exchange of two sensitive values inside a class.

    Args:
        eps: The limit, above 0.

    >>> Transparency(1).describe(None)
    'eps-transparent, eps = 1'
    """

    name = "transparency"
    parameter = Parameter("eps", (0.25, 0.5, 1, 2), least=0.01, most=10, rank=80)
    needs = frozenset({"release"})
    monotone = True
    of_method = True
    forms = frozenset({"generalized"})
    column = None

    eps: Number

    def __post_init__(self) -> None:
        number("eps", self.eps, least=0.01, most=10)

    @property
    def largest_gain(self) -> float:
        """How much more often than by chance an adversary can be right about who of two members has which of two values.

        >>> round(Transparency(1).largest_gain, 4)
        0.2311
        """
        return 1 / (1 + math.exp(-float(Fraction(str(self.eps))))) - 0.5

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        return f"eps-transparent, eps = {self.eps}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        return (
            f"An adversary who knows the algorithm and everyone's quasi-identifiers learns little more about a person than the "
            f"{class_word} shows: exchanging the sensitive values of two members changes the odds of the release at most "
            f"e^{self.eps}-fold."
        )

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """Classes do not show it: the method has it."""
        return np.zeros(len(classes))

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Any class meets it."""
        return np.ones(len(classes), dtype=bool)

    def judge_release(self, reading: Reading, originals: NDArray[np.int32] | None) -> Verdict:
        """Attested: `anonymize` requests it only of a method that has it."""
        return Verdict(True, None, "attested", why=WHY)

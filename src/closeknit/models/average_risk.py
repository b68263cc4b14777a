"""Average risk: an adversary who links rows to known persons is right in at most a share `r` of the cases, on average.

The adversary knows that a person is in the table (a *prosecutor*), finds the class of that person and picks one of its f rows:
the chance to be right is 1/f. The mean over all rows is C/n, the number of classes over the number of rows, and the guarantee
is C/n <= r: every class takes 1 from a budget of r n. Small classes are allowed, even a single row, if others are large enough;
add `KAnonymity` where a floor is wanted. Merging two classes removes one of them, so the guarantee is monotone.

Source: the strict average risk of El Emam, *Guide to the De-Identification of Personal Health Information*. Cost: a count.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import Number
from closeknit.core.model import Parameter
from closeknit.core.params import number
from closeknit.models.budget import BudgetModel


@dataclass(frozen=True)
class AverageRisk(BudgetModel):
    """The mean of 1/(rows of the class) over all rows is at most `r`.

    Args:
        r: The limit, above 0 and below 1.

    >>> sizes = np.array([1, 1, 2, 3, 5])
    >>> classes = Classes(sizes, sizes, {})
    >>> AverageRisk("5/12").holds_together(classes), AverageRisk(0.41).holds_together(classes)
    (True, False)
    """

    name = "average_risk"
    counts_classes = True
    parameter = Parameter("r", (0.02, 0.05, 0.09, 0.1, 0.2, 0.33), least=0.001, most=0.99, rank=62)

    r: Number

    def __post_init__(self) -> None:
        if number("r", self.r, above=0, most=1) == 1:
            raise BadInput("r=1 excludes nothing: it allows a class for every row", right="request an average risk below 1")

    @property
    def least_size(self) -> int:
        """Persons from which on a class meets the guarantee by itself."""
        return ceil(1 / self.limit)

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        return f"average risk, r = {self.r}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        who = "people" if persons else "rows"
        return (
            f"An adversary who knows that people are in the table and picks one of the {who} that look like each of them is "
            f"right in at most {float(100 * self.limit):.3g} % of the cases, on average. For some people the chance may be "
            "higher."
        )

    def spend(self, classes: Classes) -> NDArray[np.int64]:
        """Every class takes 1."""
        return (classes.persons > 0).astype(np.int64)

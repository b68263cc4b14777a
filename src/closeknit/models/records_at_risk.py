"""Records at risk: at most a share of the rows is in a class so small that its re-identification risk is above `t`.

A row in a class of f rows has the risk 1/f (the adversary knows that the person is in the table). The guarantee counts the rows
with 1/f > t, strictly and as fractions: t = 0.09 needs 12 rows, as 1/11 is above it. Merging never puts a row into a smaller
class, so the guarantee is monotone. With share = 0 it is k-anonymity with k = ceil(1/t).

Source: the share of records at risk in ARX and sdcMicro. Cost: one comparison per class.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import Number, fraction
from closeknit.core.model import Parameter
from closeknit.core.params import number
from closeknit.models.budget import BudgetModel


@dataclass(frozen=True)
class RecordsAtRisk(BudgetModel):
    """At most the share `share` of the rows is in a class of fewer than 1/t rows.

    Args:
        t: The risk above which a row is at risk, above 0 and below 1.
        share: The largest share of such rows, at least 0 and below 1.

    >>> sizes = np.array([1, 1, 2, 3, 5])
    >>> classes = Classes(sizes, sizes, {})
    >>> RecordsAtRisk("1/3", "1/3").holds_together(classes), RecordsAtRisk(0.33, "1/3").holds_together(classes)
    (True, False)
    """

    name = "records_at_risk"
    parameter = Parameter("share", (0, 0.01, 0.02, 0.05, 0.1, 0.2), most=0.99, rank=63)

    t: Number
    share: Number

    def __post_init__(self) -> None:
        if number("t", self.t, above=0, most=1) == 1:
            raise BadInput("t=1 excludes nothing: no row has a risk above 1", right="request a threshold below 1")
        if number("share", self.share, least=0, most=1) == 1:
            raise BadInput("share=1 excludes nothing: it allows every row to be at risk", right="request a share below 1")

    @property
    def least_size(self) -> int:
        """Persons from which on the rows of a class are not at risk."""
        return ceil(1 / fraction("t", self.t))

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line, with the class size that the threshold means."""
        return f"records at risk, t = {self.t} (classes of fewer than {self.least_size}), share = {self.share}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        who = "people" if persons else "rows"
        return (
            f"At most {float(100 * self.limit):.3g} % of the {who} look like fewer than {self.least_size} {who}; for others "
            f"an adversary who knows that a person is in the table picks the right one in at most {self.t} of the cases."
        )

    def spend(self, classes: Classes) -> NDArray[np.int64]:
        """Persons at risk."""
        return np.where(classes.persons < self.least_size, classes.persons, 0)

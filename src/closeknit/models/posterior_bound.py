"""Bounded posterior: reading the sensitive value of a row changes no one's odds by more than the factor `gamma`.

Whatever an adversary believes about a person's sensitive value, knowing any other cells of the release and anything beyond it:
after reading the perturbed value the odds of each set of values are at most `gamma` times what they were, and at least that
fraction of them. A belief p becomes at most gamma p / (1 + (gamma - 1) p).

Source: the paper on amplification, sec. 3. The guarantee is that of the law (`core.perturbation`) by which values are replaced
before any method sees them; classes do not matter. Different from the source: values must be declared. Where they are read off
the data every written value belongs to a person: who knows that no other person has it knows whose it is, and no gamma bounds
that. Where a person has several rows each of them shows the same value, and the factors multiply: this is refused. That the law
was followed cannot be seen in what was written, so the guarantee is attested; that the stated law meets it can be checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import Number, fraction
from closeknit.core.model import Model, Parameter, Verdict
from closeknit.core.params import number
from closeknit.core.perturbation import posterior, retention_of
from closeknit.core.reading import Reading
from closeknit.core.transition import Transition

WHY = "that sensitive values were replaced by the stated law cannot be seen in what was written"


@dataclass(frozen=True)
class PosteriorBound(Model):
    """The odds of any sensitive value grow at most `gamma`-fold by what is written.

    Args:
        column: The sensitive attribute.
        gamma: The limit, at least 1.

    >>> PosteriorBound("disease", 7).describe(None)
    'bounded posterior of disease, gamma = 7 (a belief of 10 % becomes at most 43.8 %)'
    """

    name = "posterior_bound"
    parameter = Parameter("gamma", (2, 3, 5, 10, 20), least=1, most=1000, rank=70)
    needs = frozenset({"release"})
    monotone = True
    forms = frozenset({"perturbed"})

    column: str
    gamma: Number

    def __post_init__(self) -> None:
        number("gamma", self.gamma, least=1)

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line, with what it means for a belief."""
        most = float(100 * posterior(Fraction(1, 10), self.gamma))
        return f"bounded posterior of {self.column}, gamma = {self.gamma} (a belief of 10 % becomes at most {most:.3g} %)"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        return (
            f"Some values of ‘{self.column}’ were replaced at random; no one sees which. Reading one changes the odds of "
            f"any belief about it by at most the factor {self.gamma}."
        )

    def refuse(self, classes: Classes) -> None:
        """Values that are read off the data, and persons with several rows."""
        if not classes.histograms[self.column].domain.declared:
            what = "its values are read off the data, so each written value is known to belong to a person"
            raise BadInput(what, column=self.column, right="declare all of them as a hierarchy: tree: [flu, gout, ...]")
        if classes.persons.sum() < classes.sizes.sum():
            what = "a person has several rows, and each of them would disclose the same value"
            raise BadInput(what, column=self.column, right="keep one row of each person")

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """Classes by themselves change no odds: the law does, and `judge_release` judges it."""
        return np.ones(len(classes))

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Any class meets it."""
        return np.ones(len(classes), dtype=bool)

    def judge_release(self, reading: Reading, originals: NDArray[np.int32] | None) -> Verdict:
        """Gamma of the law that the form states; others can see that it is too large, not that it was followed."""
        law = reading.retained.get(self.column)
        if law is None:
            return Verdict(False, None, "recomputable", why="name the column in the form: perturbed(columns=[...])")
        limit = fraction("gamma", self.gamma)
        if law.gamma <= limit:
            return Verdict(True, float(law.gamma), "attested", law.gamma, WHY)
        if isinstance(law, Transition):
            why = "bring the chances of each written value closer together"
            return Verdict(False, float(law.gamma), "recomputable", law.gamma, why)
        most = retention_of(limit, law.values)
        why = f"with {law.values:,} values retain at most {most} (about {float(most):.4g})"
        return Verdict(False, float(law.gamma), "recomputable", law.gamma, why)

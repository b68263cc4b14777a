"""Bounded posterior: reading the secret of a row changes nobody's odds by more than the factor `gamma`.

Whatever somebody believes of a person's secret, knowing any other cells of the release and anything beyond it: after he has
read the perturbed secret the odds of each set of values are at most `gamma` times what they were, and at least that fraction of
them. A belief p becomes at most gamma p / (1 + (gamma - 1) p).

Source: the paper on amplification, sec. 3. The guarantee is that of the law (`core.perturbation`) by which secrets were
replaced before any method saw them; no class matters. Different from the source: values must be declared. Where they are read
off the data a value that is written is somebody's: whoever knows that nobody else has it knows whose it is, and no gamma
bounds that. Where a person has several rows each of them tells of the same secret, and the factors multiply: this is refused.
That the law was followed cannot be seen in what was written, so the guarantee is attested; that the stated law keeps it can.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import Number, fraction
from closeknit.core.model import Verdict
from closeknit.core.params import number
from closeknit.core.perturbation import posterior, retention_of
from closeknit.core.reading import Reading

WHY = "that secrets were replaced by the stated law cannot be seen in what was written"


@dataclass(frozen=True)
class PosteriorBound:
    """Odds of any secret grow at most `gamma`-fold by what is written.

    >>> PosteriorBound("disease", 7).describe(None)
    'bounded posterior of disease, gamma = 7 (a belief of 10 % becomes at most 43.8 %)'
    """

    name: ClassVar[str] = "posterior_bound"
    needs: ClassVar[frozenset[str]] = frozenset({"release"})
    monotone: ClassVar[bool] = True
    family: ClassVar[str] = "posterior"
    least_size: ClassVar[int] = 0
    forms: ClassVar[frozenset[str]] = frozenset({"perturbed"})
    higher_is_safer: ClassVar[bool] = False

    column: str
    gamma: Number

    def __post_init__(self) -> None:
        number("gamma", self.gamma, least=1)

    @property
    def requested(self) -> str:
        """The limit in the certificate's words."""
        return f"<= {self.gamma}"

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line, with what it means for a belief."""
        most = float(100 * posterior(Fraction(1, 10), self.gamma))
        return f"bounded posterior of {self.column}, gamma = {self.gamma} (a belief of 10 % becomes at most {most:.3g} %)"

    def refuse(self, classes: Classes) -> None:
        """Values that are read off the data, and persons with several rows."""
        if not classes.histograms[self.column].domain.declared:
            what = "its values are read off the data, so each that is written is known to be somebody's"
            raise BadInput(what, column=self.column, right="declare all of them as a hierarchy: tree: [flu, gout, ...]")
        if classes.persons.sum() < classes.sizes.sum():
            what = "a person has several rows, and each of them would tell of the same secret"
            raise BadInput(what, column=self.column, right="keep one row of each person")

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """Classes by themselves change no odds: what does is the law, which `judged` looks at."""
        return np.ones(len(classes))

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Any classes will do."""
        return np.ones(len(classes), dtype=bool)

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """Of a class nothing is asked."""
        return None

    def judge_release(self, reading: Reading, originals: NDArray[np.int32] | None) -> Verdict:
        """Gamma of the law that the form states; a stranger can see that it is too large, not that it was followed."""
        law = reading.retained.get(self.column)
        if law is None:
            return Verdict(False, None, "recomputable", why="name the column in the form: perturbed(columns=[...])")
        limit = fraction("gamma", self.gamma)
        if law.gamma <= limit:
            return Verdict(True, float(law.gamma), "attested", law.gamma, WHY)
        most = retention_of(limit, law.values)
        why = f"with {law.values:,} values retain at most {most} (about {float(most):.4g})"
        return Verdict(False, float(law.gamma), "recomputable", law.gamma, why)

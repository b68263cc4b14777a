"""delta-disclosure: no class makes any value of the secret much more or much less frequent: |ln(q/p)| < `delta`.

Source: the thesis on SABRE and BUREL, sec. 4.4.2. Natural logarithm, strict, for every value of the release: a class that
lacks one breaks the guarantee. With p the reference and q the class, the q/p of a merged class lies between those of its
parts, so the guarantee is monotone. Cost: one logarithm an entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.domain import Domain
from closeknit.core.exact import Number, decimal, fraction, log, near
from closeknit.core.params import number
from closeknit.models.per_class import every, largest


@dataclass(frozen=True)
class DeltaDisclosure:
    """|ln(q/p)| < `delta` for every value of the secret in every class.

    >>> from closeknit.core.kinds import flat
    >>> domain, codes = flat().bind(np.array(["flu", "SARS"], dtype=object))
    >>> rows = codes[[0, 1, 1, 0, 0]]
    >>> classes = Classes.of(np.array([0, 0, 0, 1, 1], dtype=np.int32), 2, {"disease": (rows, domain)})
    >>> DeltaDisclosure("disease", 0.6).levels(classes).round(3).tolist()
    [0.588, inf]
    """

    name: ClassVar[str] = "delta_disclosure"
    needs: ClassVar[frozenset[str]] = frozenset({"histograms"})
    monotone: ClassVar[bool] = True
    family: ClassVar[str] = "disclosure"
    least_size: ClassVar[int] = 0
    forms: ClassVar[frozenset[str]] = frozenset({"generalized", "bucketized", "sliced", "multiset", "permuted"})
    higher_is_safer: ClassVar[bool] = False

    column: str
    delta: Number

    def __post_init__(self) -> None:
        number("delta", self.delta, above=0)

    @property
    def requested(self) -> str:
        """The limit in the certificate's words."""
        return f"< {self.delta}"

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        return f"delta-disclosure of {self.column}, delta = {self.delta}"

    def refuse(self, classes: Classes) -> None:
        """It has a meaning for every column."""

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """The largest |ln(q/p)| of each class; infinite where a value is absent, 0 where all secrets are suppressed."""
        histogram = classes.histograms[self.column]
        levels = largest(histogram, _logs(histogram), empty=0.0)
        return np.where(_lacking(histogram), np.inf, levels)

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each class stays below `delta`, with 60 digits where a float is near."""
        histogram = classes.histograms[self.column]
        limit = fraction("delta", self.delta)
        logs = _logs(histogram)
        small = logs < float(limit)
        n, totals, owner = int(histogram.reference.sum()), histogram.totals, histogram.owner
        bound = decimal(limit)
        known: dict[Fraction, bool] = {}
        for e in np.flatnonzero(near(logs, float(limit))):
            expected = int(totals[owner[e]]) * int(histogram.reference[histogram.values[e]])
            ratio = Fraction(n * int(histogram.counts[e]), expected)
            if ratio not in known:
                known[ratio] = log(ratio) < bound and log(1 / ratio) < bound
            small[e] = known[ratio]
        return every(histogram, small) & ~_lacking(histogram)

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """None: a logarithm is no rational (0 for a class like the release)."""
        return Fraction(0) if self.levels(classes)[index] == 0 else None


def _logs(histogram: Histogram) -> NDArray[np.float64]:
    expected = histogram.totals[histogram.owner] * histogram.reference[histogram.values]
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.abs(np.log(histogram.counts * int(histogram.reference.sum()) / expected))
    return logs


def _lacking(histogram: Histogram) -> NDArray[np.bool_]:
    """Classes with a counted secret that lack a value of the release."""
    values = np.diff(histogram.starts)
    return (values > 0) & (values < np.count_nonzero(histogram.reference))

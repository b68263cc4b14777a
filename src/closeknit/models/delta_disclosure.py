"""delta-disclosure: no value is much more or less frequent in a class than in the release: |ln(q/p)| < `delta`.

Source: the thesis on SABRE and BUREL, sec. 4.4.2. Natural logarithm, strict, for every value of the release: a class that
lacks one does not meet the guarantee. With p the reference and q the class, the q/p of a merged class lies between those of its
parts, so the guarantee is monotone. Cost: one logarithm per entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.domain import Domain
from closeknit.core.exact import Number, decimal, fraction, log, near
from closeknit.core.model import Model, Parameter
from closeknit.core.params import number
from closeknit.core.share_limits import Limits, round_safely
from closeknit.core.subsets import Over, check_over
from closeknit.models.declared_reference import check_reference, compare_declared, describe_reference
from closeknit.models.per_class import every, largest

NEVER = 40  # e to this power times any share is above 1: a cap that never binds, and no overflow


@dataclass(frozen=True)
class DeltaDisclosure(Model):
    """|ln(q/p)| < `delta` for every value of the sensitive attribute in every class.

    Args:
        column: The sensitive attribute.
        delta: The limit, above 0.
        over: Quasi-identifiers in which rows with equal written cells count as one group: names, "pairs" or "triples"; default:
            all of them.
        reference: The published distribution to compare with, {value: share}; default: that of all rows.

    >>> from closeknit.core.kinds import flat
    >>> domain, codes = flat().bind(np.array(["flu", "SARS"], dtype=object))
    >>> rows = codes[[0, 1, 1, 0, 0]]
    >>> classes = Classes.of(np.array([0, 0, 0, 1, 1], dtype=np.int32), 2, {"disease": (rows, domain)})
    >>> DeltaDisclosure("disease", 0.6).levels(classes).round(3).tolist()
    [0.588, inf]
    """

    name = "delta_disclosure"
    parameter = Parameter("delta", (0.5, 1, 1.5, 2, 3, 4), least=0.01, most=100, rank=30)
    compares = True
    monotone = True

    column: str
    delta: Number
    over: Over = None
    reference: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", check_over(self.over))
        check_reference(self)
        number("delta", self.delta, above=0)

    @property
    def requested(self) -> str:
        """The limit as a certificate writes it."""
        return f"< {self.delta}"

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        return f"delta-disclosure of {self.column}, delta = {self.delta}{self.over_text}{describe_reference(self.reference)}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        factor = f"{np.exp(float(fraction('delta', self.delta))):.3g}"
        return (
            f"Finding a person's {class_word} makes no value of ‘{self.column}’ more or less likely by a factor of {factor} or "
            "more; no value can be ruled out."
        )

    def limits(self, reference: Histogram) -> Limits | None:
        """A cap and a floor for every value of the release."""
        if self.reference is not None:
            return None
        delta, n = float(fraction("delta", self.delta)), int(reference.reference.sum())
        shares = {int(code): int(reference.reference[code]) / n for code in np.flatnonzero(reference.reference)}
        most, least = float(np.exp(min(delta, NEVER))), float(np.exp(-delta))
        return Limits(
            caps={code: round_safely(most * p, -1) for code, p in shares.items()},
            floors={code: round_safely(least * p, 1) for code, p in shares.items()},
        )

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """The largest |ln(q/p)| of each class; infinite where a value is absent, 0 where no value is shown."""
        histogram, strange = compare_declared(classes, self.column, self.reference)
        levels = largest(histogram, _logs(histogram), empty=0.0)
        return np.where(strange | _lacking(histogram), np.inf, levels)

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each class stays below `delta`, with 60 digits where a float is near."""
        histogram, strange = compare_declared(classes, self.column, self.reference)
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
        return every(histogram, small) & ~_lacking(histogram) & ~strange

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """None: a logarithm is no rational (0 for a class like the release)."""
        return Fraction(0) if self.levels(classes)[index] == 0 else None


def _logs(histogram: Histogram) -> NDArray[np.float64]:
    expected = histogram.totals[histogram.owner] * histogram.reference[histogram.values]
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.abs(np.log(histogram.counts * int(histogram.reference.sum()) / expected))
    return logs


def _lacking(histogram: Histogram) -> NDArray[np.bool_]:
    """Classes with a known value that lack a value of the release."""
    values = np.diff(histogram.starts)
    return (values > 0) & (values < np.count_nonzero(histogram.reference))

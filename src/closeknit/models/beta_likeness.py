"""beta-likeness: no value of a sensitive attribute is much more frequent in a class than in the release.

Source: the thesis on SABRE and BUREL, sec. 4.2 and 4.5. With p the share in the release and q in the class:
- basic: (q - p) / p <= beta wherever q > p;
- enhanced: also q <= p * (1 - ln p), natural logarithm, which keeps very frequent values from becoming certain;
- semantic: the enhanced inequality for the leaf sums of every inner node deeper than `below` (root = depth 0);
- range: the enhanced inequality for every run of neighbouring values with max - min <= `eps`, or, if `relative`,
  (max - min) / min <= `eps`. Single values are runs too.

Semantic likeness does not imply the enhanced one: request both. A level is the largest (q - p) / p, infinite
where the cap is exceeded. In a range the largest ratio is that of a single value, so runs are searched for the cap alone.
Convex in q, hence monotone. Cost: O(r) per class; semantic O(r * depth); range O(r log r), more only near the cap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import NEAR, Number, at_most, decimal, fraction, log
from closeknit.core.model import Model, Parameter
from closeknit.core.params import choice, number, whole
from closeknit.core.share_limits import Growth, Limits
from closeknit.core.subsets import Over, check_over
from closeknit.kernels.counting.runs import find_violations, most_over
from closeknit.models.declared_reference import check_reference, compare_declared, describe_reference
from closeknit.models.value_sets import ValueSets, nodes_below, reach_of, single_values

Bools = NDArray[np.bool_]
KINDS = ("enhanced", "basic", "semantic", "range")


@dataclass(frozen=True)
class BetaLikeness(Model):
    """The share of a value in a class exceeds its share in the release by at most `beta` times the latter.

    Args:
        column: The sensitive attribute.
        beta: The limit, above 0.
        kind: "enhanced", "basic", "semantic" or "range": which values are judged, and whether frequent ones have a cap.
        below: For "semantic": nodes deeper than this are judged.
        eps: For "range": the widest range that is judged.
        relative: For "range": whether `eps` is a share of the least value of the range.
        over: Quasi-identifiers in which rows with equal written cells count as one group: names, "pairs" or "triples"; default:
            all of them.
        reference: The published distribution to compare with, {value: share}; default: that of all rows.

    >>> from closeknit.core.kinds import flat
    >>> domain, codes = flat().bind(np.array(["flu", "SARS", "ulcer", "cough"], dtype=object))
    >>> classes = Classes.of(np.array([0, 0, 1, 1], dtype=np.int32), 2, {"disease": (codes, domain)})
    >>> model = BetaLikeness("disease", 1)
    >>> model.levels(classes).tolist(), model.holds(classes).tolist()
    ([1.0, 1.0], [True, True])
    """

    name = "beta_likeness"
    parameter = Parameter("beta", (0.5, 1, 1.5, 2, 3, 4, 5), least=0.01, most=100, rank=20)
    compares = True
    monotone = True
    bounds = "growth"

    column: str
    beta: Number
    kind: str = "enhanced"
    below: int | None = None
    eps: Number | None = None
    relative: bool = False
    over: Over = None
    reference: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", check_over(self.over))
        check_reference(self)
        number("beta", self.beta, above=0)
        choice("kind", self.kind, KINDS)
        self._belongs("below", self.below, "semantic", "the depth under which nodes are judged (0 = all but the root)")
        self._belongs("eps", self.eps, "range", "the widest range that is judged")
        self._belongs("relative", self.relative or None, "range", None)
        choice("relative", self.relative, (False, True))
        if self.below is not None:
            object.__setattr__(self, "below", whole("below", self.below, least=0))
        if self.eps is not None:
            number("eps", self.eps, least=0)

    def _belongs(self, name: str, value: object, kind: str, needed: str | None) -> None:
        if value is not None and self.kind != kind:
            right = f"leave it out, or request kind '{kind}'"
            raise BadInput(f"{name}={value} has no meaning for {self.kind} likeness", right=right)
        if value is None and self.kind == kind and needed:
            raise BadInput(f"{kind} likeness needs {name}", right=f"give {name}, {needed}")

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        sets = {"semantic": f", nodes below depth {self.below}", "range": f", ranges up to {self.eps}"}
        relative = " of their least value" if self.relative else ""
        limit = f"beta = {self.beta}{sets.get(self.kind, '')}{relative}"
        return f"{self.kind} beta-likeness of {self.column}, {limit}{self.over_text}{describe_reference(self.reference)}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        more = {
            "basic": "",
            "enhanced": ", and values that are frequent anyway by less",
            "semantic": ", and the same holds for every group of related values",
            "range": f", and the same holds for all values within {self.eps} of each other",
        }
        return (
            f"Finding a person's {class_word} makes no value of ‘{self.column}’ more likely by more than "
            f"{100 * float(fraction('beta', self.beta)):.6g} % of what it was before{more[self.kind]}."
        )

    def limits(self, reference: Histogram) -> Limits | None:
        """A bound on the growth of single values: all that basic and enhanced likeness ask, and a part of the others."""
        if self.reference is not None:
            return None
        growth = Growth(fraction("beta", self.beta), bounded=self.kind != "basic")
        return Limits(growth=growth, sufficient=self.kind in ("basic", "enhanced"))

    def refuse(self, classes: Classes) -> None:
        """Semantic likeness needs a tree; ranges need numbers, relative ones positive numbers."""
        self._refuse_kind(compare_declared(classes, self.column, self.reference)[0].domain)

    def _refuse_kind(self, domain: Domain) -> None:
        if self.kind == "semantic" and domain.tree is None:
            what = "semantic likeness is requested for a column without a hierarchy"
            raise BadInput(what, column=self.column, right="request kind 'range', or give the column a Hierarchy")
        if self.kind == "range" and domain.numbers is None:
            what = "range likeness is requested for a column without an order"
            raise BadInput(what, column=self.column, right="request kind 'semantic', or declare the column as numeric()")
        if self.relative and domain.numbers is not None and (domain.numbers <= 0).any():
            what = f"a relative range has no meaning for {domain.texts[0]}, which is not above 0"
            raise BadInput(what, column=self.column, right="leave relative out")

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """The largest (q - p) / p of each class, at least 0; infinite where the cap is exceeded."""
        histogram, strange = compare_declared(classes, self.column, self.reference)
        self._refuse_kind(histogram.domain)
        sets = self._sets(histogram)
        n, totals = int(histogram.reference.sum()), histogram.totals
        expected = totals[sets.owner] * sets.reference
        with np.errstate(divide="ignore"):
            gains = (sets.counts * n - expected) / expected
        levels = np.zeros(len(totals))
        np.maximum.at(levels, sets.owner, gains)
        return np.where(strange | self._exceeds_cap(histogram, sets), np.inf, levels)

    def holds(self, classes: Classes) -> Bools:
        """Whether each class meets the guarantee: rationals, and 60 digits at the cap, where a float is near."""
        histogram, strange = compare_declared(classes, self.column, self.reference)
        self._refuse_kind(histogram.domain)
        if self.kind not in ("enhanced", "basic"):
            return self._holds_exactly(histogram) & ~strange
        over = most_over(histogram.starts, histogram.values, histogram.counts, *self._limits(histogram.reference))
        unclear = np.flatnonzero(np.abs(over) <= 1)
        holds = over < 0
        holds[unclear] = self._holds_exactly(histogram.take(unclear))
        return holds & ~strange

    def _limits(self, reference: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The largest share that each leaf may have in a class, as floats, and how near to it a float does not decide."""
        beta, n = float(fraction("beta", self.beta)), int(reference.sum())
        p = reference / max(n, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            cap = np.where(p > 0, p * (1 - np.log(p)), 0.0) if self.kind == "enhanced" else np.inf
        limits = np.where(reference < n, np.minimum(p * (1 + beta), cap), np.inf)  # p = 1 leaves nothing to exceed
        return limits, NEAR * (1 + max(1.0, beta) * p)

    def _holds_exactly(self, histogram: Histogram) -> Bools:
        sets = self._sets(histogram)
        expected = histogram.totals[sets.owner] * sets.reference
        gain = sets.counts * int(histogram.reference.sum()) - expected
        fair = at_most(gain, np.maximum(expected, 1), fraction("beta", self.beta)) & (expected > 0)
        holds = ~self._exceeds_cap(histogram, sets)
        holds[sets.owner[~fair]] = False
        return holds

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """The level of one class as a rational; None where it is infinite."""
        if not np.isfinite(self.levels(classes)[index]):
            return None
        histogram, _ = compare_declared(classes, self.column, self.reference)
        sets = self._sets(histogram)
        n, total = int(histogram.reference.sum()), int(histogram.totals[index])
        here = sets.owner == index
        pairs = zip(sets.counts[here].tolist(), sets.reference[here].tolist(), strict=True)
        return max([Fraction(0), *(Fraction(count * n, total * weight) - 1 for count, weight in pairs)])

    def idle(self, histogram: Histogram) -> list[str]:
        """Whether beta has no effect because the cap p * (1 - ln p) is stricter for every value."""
        if self.reference is not None:
            return []
        shares = histogram.counts / max(int(histogram.reference.sum()), 1)
        if self.kind != "enhanced" or float(fraction("beta", self.beta)) < -np.log(shares.min(initial=1.0)):
            return []
        return ["beta is at least max(-ln p), so it has no effect: only the cap p (1 - ln p) limits the share of a value"]

    def _sets(self, histogram: Histogram) -> ValueSets:
        if self.kind == "semantic":
            assert self.below is not None
            return nodes_below(histogram, self.below)
        return single_values(histogram)

    def _exceeds_cap(self, histogram: Histogram, sets: ValueSets) -> Bools:
        """Classes in which some set has q > p * (1 - ln p)."""
        n, totals = int(histogram.reference.sum()), histogram.totals
        broken = np.zeros(len(totals), dtype=bool)
        if self.kind == "basic":
            return broken
        if self.kind == "range":
            broken, unclear = self._runs(histogram)
        else:
            p, q = sets.reference / max(n, 1), sets.counts / totals[sets.owner]
            with np.errstate(divide="ignore", invalid="ignore"):
                gap = np.where(p > 0, p * (1 - np.log(p)), 0.0) - q
            part = sets.reference < n  # p = 1 leaves nothing to exceed
            broken[sets.owner[part & (gap < -NEAR)]] = True
            unclear = ValueSets(*(array[part & (np.abs(gap) <= NEAR)] for array in sets))
        known: dict[tuple[Fraction, Fraction], bool] = {}
        for owner, count, weight in zip(*(array.tolist() for array in unclear), strict=True):
            shares = Fraction(weight, n), Fraction(count, int(totals[owner]))
            if shares not in known:
                known[shares] = _above_cap(*shares)
            broken[owner] |= known[shares]
        return broken

    def _runs(self, histogram: Histogram) -> tuple[Bools, ValueSets]:
        assert histogram.domain.numbers is not None and self.eps is not None
        reach = reach_of(histogram.domain.numbers, fraction("eps", self.eps), self.relative)
        values, reference = histogram.values.astype(np.int64), histogram.reference.astype(np.int64)
        broken, unclear = find_violations(histogram.starts, values, histogram.counts, reach, reference, NEAR)
        return broken, ValueSets(unclear[0], unclear[1], unclear[2])


def _above_cap(p: Fraction, q: Fraction) -> bool:
    """q > p * (1 - ln p), that is ln p > 1 - q/p; never equal, for the logarithm of a rational below 1 is irrational."""
    return p == 0 or log(p) > decimal(1 - q / p)

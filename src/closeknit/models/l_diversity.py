"""l-diversity: every class has at least `l` well represented known values of the sensitive attribute.

Sources: the thesis on SABRE and BUREL, sec. 2.1.2; the dissertation on methods to achieve t-closeness, sec. 2.6.1.
With the counts c of the known values of a class in descending order r_1 .. r_m and N their sum:
- distinct: m >= l;
- entropy: -sum p ln p >= ln l, decided as N^N >= l^N * prod c^c;
- recursive: r_1 < c * (r_l + ... + r_m), strictly; fewer than l values fail;
- frequency: r_1 <= N / l.

Different from the source: a missing value neither counts as a value nor stays in N, for five times HIV and one missing value
disclose HIV; a class without any known value discloses none and meets every l. With `missing_is_a_value` a missing value is a
value like any other. The dissertation prints r_1 as the first summand of the recursive tail; it is r_l. Where a
person may have several rows, each value counts once a person, N of `frequency` is the number of persons, and every kind
also asks that l values can be given to l different persons who carry them: one person with l values is not diverse.
All kinds are closed under merging. Cost: one sort of the entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, gcd, prod

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram, Spread
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import Number, at_most, below, fraction, log, near
from closeknit.core.model import Model, Parameter
from closeknit.core.params import choice, number, whole
from closeknit.core.share_limits import Limits
from closeknit.core.subsets import Over, check_over
from closeknit.kernels.arrays import Int64
from closeknit.models.per_class import largest

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
KINDS = ("distinct", "entropy", "recursive", "frequency")


@dataclass(frozen=True)
class LDiversity(Model):
    """At least `l` well represented known values in every class; `kind` says what well represented means.

    Args:
        column: The sensitive attribute.
        l: The least number of values.
        kind: "distinct", "entropy", "recursive" or "frequency".
        c: For "recursive": the limit on the most frequent value.
        missing_is_a_value: Whether a missing value counts as one of the values, and a class that has only missing values as a
            class of one value.
        over: Quasi-identifiers in which rows with equal written cells count as one group: names, "pairs" or "triples"; default:
            all of them.

    >>> from closeknit.core.kinds import flat
    >>> domain, codes = flat().bind(np.array(["flu", "SARS", "ulcer"], dtype=object))
    >>> classes = Classes.of(np.array([0, 0, 0, 1], dtype=np.int32), 2, {"disease": (codes[[0, 0, 1, 2]], domain)})
    >>> LDiversity("disease", 2).levels(classes).tolist()
    [2.0, 1.0]
    >>> LDiversity("disease", 1.5, "frequency").holds(classes).tolist()
    [True, False]
    >>> gaps = Classes.of(np.zeros(2, dtype=np.int32), 1, {"disease": (np.array([0, 3], dtype=np.int32), domain)})
    >>> [LDiversity("disease", 2, missing_is_a_value=value).holds(gaps).tolist() for value in (False, True)]
    [[False], [True]]
    """

    name = "l_diversity"
    parameter = Parameter("l", (2, 3, 4, 5, 6, 8, 10), least=1, rank=40)
    needs = frozenset({"histograms", "persons"})
    monotone = True

    column: str
    l: Number
    kind: str = "distinct"
    c: Number | None = None
    missing_is_a_value: bool = False
    over: Over = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", check_over(self.over))
        choice("kind", self.kind, KINDS)
        choice("missing_is_a_value", self.missing_is_a_value, (False, True))
        if self.kind in ("distinct", "recursive"):
            object.__setattr__(self, "l", whole("l", self.l, least=1))
        else:
            number("l", self.l, least=1)
        if self.kind == "recursive":
            if self.c is None:
                raise BadInput("recursive diversity needs c", right="give c, a number above 0")
            number("c", self.c, above=0)
        elif self.c is not None:
            right = "leave it out, or request kind 'recursive'"
            raise BadInput(f"c={self.c} has no meaning for {self.kind} diversity", right=right)

    @property
    def higher_is_safer(self) -> bool:
        """The recursive ratio is safer when low, all others when high."""
        return self.kind != "recursive"

    @property
    def limit_field(self) -> str:
        """The recursive ratio is compared with `c`."""
        return "c" if self.kind == "recursive" else "l"

    @property
    def merges_persons(self) -> bool:
        """Distinct values matched to persons only grow when classes merge."""
        return self.kind == "distinct"

    @property
    def least_values(self) -> int:
        """Every kind needs at least `l` different values."""
        return ceil(fraction("l", self.l))

    @property
    def requested(self) -> str:
        """The limit as a certificate writes it."""
        return f"< {self.c}" if self.kind == "recursive" else f">= {self.l}"

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        c = f", c = {self.c}" if self.kind == "recursive" else ""
        missing = ", missing is a value" if self.missing_is_a_value else ""
        return f"{self.kind} l-diversity of {self.column}, l = {self.l}{c}{missing}{self.over_text}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        kinds = {
            "distinct": f"has at least {self.l} different values of ‘{self.column}’",
            "entropy": f"mixes the values of ‘{self.column}’ as well as {self.l} equally frequent ones would",
            "recursive": f"has so many values of ‘{self.column}’ that its most frequent one has less than {self.c} times the "
            f"rows of all from number {self.l} on together",
            "frequency": f"gives no value of ‘{self.column}’ more than one in {self.l} of its rows",
        }
        return f"Every {class_word} {kinds[self.kind]}: finding a person's {class_word} does not disclose the value."

    def limits(self, reference: Histogram) -> Limits | None:
        """A number of values, an entropy, or a cap; where values are missing, shares of known values are no shares of rows."""
        gaps, limit = reference.reference[-1] > 0 and not self.missing_is_a_value, fraction("l", self.l)
        if self.kind == "distinct":
            return Limits(values=int(limit), missing_counts=not gaps)
        if gaps or self.kind == "recursive":
            return None
        if self.kind == "entropy":
            return Limits(entropy=limit)
        return Limits(caps={int(code): 1 / limit for code in np.flatnonzero(reference.reference)})

    def levels(self, classes: Classes) -> Floats:
        """What each class measures; a class without a known value discloses none and is as safe as can be."""
        histogram, values, heads = self._spread(classes)
        if self.kind == "recursive":
            first, tail = self._recursive(histogram, values)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(first == 0, 0.0, first / tail)
        levels = values.astype(np.float64)
        if self.kind == "entropy":
            levels = np.minimum(levels, np.exp(_entropies(histogram)))
        elif self.kind == "frequency":
            peaks = largest(histogram, histogram.counts.astype(np.float64), empty=1.0)
            levels = np.minimum(levels, heads / peaks)
        return np.where(histogram.totals == 0, np.inf, levels)

    def holds(self, classes: Classes) -> Bools:
        """Whether each class meets the guarantee, in whole numbers where a float is near."""
        histogram, values, heads = self._spread(classes)
        if self.kind == "recursive":
            assert self.c is not None
            first, tail = self._recursive(histogram, values)
            met: Bools = (first == 0) | ((tail > 0) & below(first, np.maximum(tail, 1), fraction("c", self.c)))
            return met
        limit = fraction("l", self.l)
        diverse = at_most(-values, np.ones_like(values), -limit)
        if self.kind == "entropy":
            diverse &= _entropy_holds(histogram, limit)
        elif self.kind == "frequency":
            peaks = largest(histogram, histogram.counts.astype(np.float64), empty=0.0).astype(np.int64)
            diverse &= at_most(peaks, np.maximum(heads, 1), 1 / limit)
        diverse |= histogram.totals == 0
        return diverse

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """The level of one class as a rational; None for an entropy and where there is no bound."""
        histogram, values, heads = self._spread(classes)
        if self.kind == "recursive":
            first, tail = (int(part[index]) for part in self._recursive(histogram, values))
            return Fraction(first, tail or 1) if tail or not first else None
        if self.kind == "entropy" or histogram.totals[index] == 0:
            return None
        if self.kind == "distinct":
            return Fraction(int(values[index]))
        peak = int(histogram.counts[histogram.entries(index)].max())
        return min(Fraction(int(values[index])), Fraction(int(heads[index]), peak))

    def _spread(self, classes: Classes) -> Spread:
        return classes.spread(self.column, self.missing_is_a_value)

    def _recursive(self, histogram: Histogram, values: Int64) -> tuple[Int64, Int64]:
        """r_1 and r_l + ... + r_m of each class; the tail is 0 where values (or persons for them) are fewer than l."""
        order = np.lexsort((-histogram.counts, histogram.owner))
        counts = histogram.counts[order]
        rank = np.arange(len(counts)) - histogram.starts[histogram.owner]
        tail = histogram.sums(np.where(rank >= int(fraction("l", self.l)) - 1, counts, 0))
        first = histogram.sums(np.where(rank == 0, counts, 0))
        return first, np.where(values >= int(fraction("l", self.l)), tail, 0)


def _entropies(histogram: Histogram) -> Floats:
    shares = histogram.counts / histogram.totals[histogram.owner]
    terms = -shares * np.log(shares)
    return np.bincount(histogram.owner, weights=terms, minlength=len(histogram.starts) - 1).astype(np.float64)


def _entropy_holds(histogram: Histogram, limit: Fraction) -> Bools:
    levels = np.exp(_entropies(histogram))
    holds: Bools = levels >= float(limit)
    known: dict[tuple[int, ...], bool] = {}
    for i in np.flatnonzero(near(levels, float(limit))).tolist():
        counts = tuple(sorted(histogram.counts[histogram.entries(i)].tolist()))
        if counts not in known:
            known[counts] = _entropy_reaches(counts, limit)
        holds[i] = known[counts]
    return holds


def _entropy_reaches(counts: tuple[int, ...], limit: Fraction) -> bool:
    """N^N >= l^N * prod c^c. Counts with a common factor have the same entropy, so it is taken out first."""
    factor = gcd(*counts) or 1
    small = [count // factor for count in counts]
    total = sum(small)
    if total > 10_000:  # 60 digits settle large classes, unless both sides are equal
        gap = _entropy_gap(small, total, limit)
        if abs(gap) > 1e-30:
            return gap > 0
    theirs: int = limit.numerator**total * prod(count**count for count in small)
    return bool((total * limit.denominator) ** total >= theirs)


def _entropy_gap(counts: list[int], total: int, limit: Fraction) -> Decimal:
    """N ln N - N ln l - sum c ln c."""
    logs = {count: log(Fraction(count)) for count in {*counts, total}}
    with localcontext() as context:
        context.prec = 60
        return total * (logs[total] - log(limit)) - sum(count * logs[count] for count in counts)

"""The law of a perturbed sensitive attribute: how it is drawn, how far it can change a belief, and how counts are estimated.

A value is retained with probability `retain`; else it is replaced by one of all `m` values, each equally likely (one of them is
the true value itself). With v written and u true, P(v|u) is `retain + (1 - retain)/m` if v = u and `(1 - retain)/m` if not. The
two differ by the factor gamma = 1 + m retain/(1 - retain), and no written value changes anyone's odds by more (amplification).

Source: the paper on amplification, sec. 3 (gamma) and sec. 2 (estimates of true counts), for the law of uniform replacement.
Different from the source: the bound holds for every prior belief at once (as odds), not for one pair of beliefs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from closeknit.core.errors import BadInput
from closeknit.core.exact import Number
from closeknit.core.params import number, whole
from closeknit.kernels.arrays import Int32

WORDS = 2**64
Floats = NDArray[np.float64]
Words = Callable[[int, int], NDArray[np.uint64]]  # (turn, count) -> uniform words of 64 bits


class DrawnLaw(Protocol):
    """What the draws of a law depend on."""

    @property
    def key(self) -> str:
        """What distinguishes the law."""

    @property
    def values(self) -> int:
        """Number of values."""

    @property
    def uses_values(self) -> bool:
        """Whether a written value depends on the true one."""


@dataclass(frozen=True)
class Law:
    """Uniform replacement.

    Args:
        retain: probability that a value is retained; else it is drawn uniformly from all values.
        values: number of values.

    >>> Law(Fraction(3, 5), 4).gamma
    Fraction(7, 1)
    """

    retain: Fraction
    values: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "retain", retention(self.retain))
        whole("values", self.values, least=1)
        if self.values * self.retain.denominator >= WORDS:
            raise BadInput(f"retain={self.retain} is too fine to be drawn exactly", right="write it with fewer digits")

    @property
    def gamma(self) -> Fraction:
        """The largest ratio of the probabilities with which two true values are written as the same value."""
        return 1 + self.values * self.retain / (1 - self.retain) if self.values > 1 else Fraction(1)

    @property
    def key(self) -> str:
        """What distinguishes the law from others with as many values, as an input of its draws."""
        return str(self.retain)

    @property
    def uses_values(self) -> bool:
        """Whether a written value depends on the true one."""
        return self.retain > 0

    def estimate(self, observed: object) -> Estimates | None:
        """Estimate the true counts from the written ones; None where nothing is retained.

        Args:
            observed: the written count of every value, including 0.
        """
        return estimate_counts(observed, self.retain) if self.uses_values else None

    def chance(self, same: bool) -> Fraction:
        """The probability that a value is written: the true one, or any other one."""
        return self.retain * same + (1 - self.retain) / self.values

    def draw_codes(self, codes: Int32, words: Words) -> Int32:
        """Perturb codes, exactly."""
        outcome = draw_outcomes(self.values * self.retain.denominator, len(codes), words)
        replaced = outcome // np.uint64(self.values) >= np.uint64(self.retain.numerator)
        return np.where(replaced, (outcome % np.uint64(self.values)).astype(np.int32), codes)


def draw_outcomes(outcomes: int, count: int, words: Words) -> NDArray[np.uint64]:
    """So many of the numbers below `outcomes`: one word decides each, and words that would favour a number are drawn again."""
    last = np.uint64(WORDS // outcomes * outcomes - 1)
    drawn, undecided, turn = np.empty(count, dtype=np.uint64), np.arange(count), 0
    while len(undecided):
        word = words(turn, len(undecided))
        drawn[undecided] = word % np.uint64(outcomes)
        undecided, turn = undecided[word > last], turn + 1
    return drawn


def retention(retain: Number) -> Fraction:
    """A probability below 1, as the rational that was written.

    >>> retention(0.6)
    Fraction(3, 5)
    """
    kept = number("retain", retain, least=0, most=1)
    if kept == 1:
        raise BadInput("retain=1 publishes every true value", right="retain must be a number of at least 0 and below 1")
    return kept


def words_of(column: str, law: DrawnLaw, seed: int, secrets: Int32 | None = None) -> Words:
    """The random words of one column: SHAKE-256 of its name, its law, the private seed and the true values.

    An extendable-output function, because an adversary who knows a part of its output, such as values that are known to be
    replaced, cannot compute another part; the state of a statistical generator can be computed from its output. The law is part
    of the input, so that two releases with one seed and different laws are independent. So are the true values: if one of
    them changed and the words did not, a cell that changes would be true in both releases.

    Args:
        column: name of the column.
        law: its law.
        seed: the private seed.
        secrets: codes of the true values.

    >>> one, other = (words_of("disease", Law(Fraction(1, 2), 3), seed)(0, 2) for seed in (7, 8))
    >>> (one == other).tolist()
    [False, False]
    """

    drawn_for = ""
    if secrets is not None and law.uses_values:  # if nothing is retained, nothing may depend on them
        drawn_for = hashlib.sha256(secrets.astype("<i4").tobytes()).hexdigest()

    def words(turn: int, count: int) -> NDArray[np.uint64]:
        return hash_to_words(["closeknit perturbed", column, law.key, law.values, seed, turn, drawn_for], count)

    return words


def hash_to_words(key: object, count: int) -> NDArray[np.uint64]:
    """So many random words from a key that JSON can write."""
    return np.frombuffer(hashlib.shake_256(json.dumps(key).encode()).digest(8 * count), dtype="<u8").astype(np.uint64)


def posterior(prior: Number, gamma: Number) -> Fraction:
    """The largest belief after reading a written value.

    Args:
        prior: the belief before.
        gamma: the bound on the odds.

    >>> posterior(0.1, 7)
    Fraction(7, 16)
    """
    p, g = number("prior", prior, least=0, most=1), number("gamma", gamma, least=1)
    return g * p / (1 + (g - 1) * p)


def retention_for(prior: Number, posterior: Number, values: int) -> Fraction:
    """The largest `retain` with which a belief of `prior` cannot exceed `posterior`.

    Args:
        prior: the belief before.
        posterior: the largest belief after.
        values: number of values of the column.

    >>> retention_for(prior=0.1, posterior=0.4375, values=4)
    Fraction(3, 5)
    """
    p, q = number("prior", prior, above=0, most=1), number("posterior", posterior, above=0, most=1)
    if not p <= q < 1:
        raise BadInput(f"posterior={posterior} is not a bound", right="it must be at least the prior, and below 1")
    return retention_of(q * (1 - p) / (p * (1 - q)), values)


def retention_of(gamma: Number, values: int) -> Fraction:
    """The `retain` that has this gamma.

    >>> retention_of(7, 4)
    Fraction(3, 5)
    """
    g = number("gamma", gamma, least=1)
    return (g - 1) / (g - 1 + whole("values", values, least=1))


class Estimates(NamedTuple):
    """Per value: the estimated true count, its standard error, and the nearest counts that are possible."""

    counts: Floats
    errors: Floats
    possible: Floats


def estimate_counts(observed: object, retain: Number) -> Estimates:
    """Estimate the true counts from the written ones.

    `counts` have no bias and may be negative; `possible` are the nearest counts without negative ones, with the same total.

    Args:
        observed: the written count of every value of the law, including 0.
        retain: the probability of the law.

    >>> estimate_counts([50, 30, 20], 0.5).counts.round(1).tolist()
    [66.7, 26.7, 6.7]
    """
    seen, kept = np.asarray(observed, dtype=np.float64), retention(retain)
    if kept == 0:
        raise BadInput("retain=0 leaves no information about true counts", right="there is nothing to estimate")
    n, law = float(seen.sum()), Law(kept, len(seen))
    same, other = float(law.chance(True)), float(law.chance(False))
    counts = (seen - n * other) / float(kept)
    possible = nearest_possible(counts, n)
    # both rows with the value and rows without it may be written as the value
    variance = possible * same * (1 - same) + (n - possible) * other * (1 - other)
    return Estimates(counts, np.sqrt(np.maximum(variance, 0)) / float(kept), possible)


def nearest_possible(counts: Floats, total: float) -> Floats:
    """The nearest point without negative entries and with this sum: all entries decrease by the same, down to 0.

    Args:
        counts: any numbers.
        total: their sum.
    """
    falling = -np.sort(-counts)
    excess = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    taken = excess[falling > excess]
    return np.maximum(counts - (taken[-1] if len(taken) else 0), 0)

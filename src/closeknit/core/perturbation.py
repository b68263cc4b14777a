"""The law of a perturbed secret, in numbers alone: what it does, what it lets anybody believe, and what it still tells.

A secret is kept with probability `retain`; else it is replaced by one of all `m` values, each as likely as the others (and one
of them is the secret itself). So with v written and u true, P(v|u) is `retain + (1 - retain)/m` where v = u and
`(1 - retain)/m` where not; the two differ by the factor gamma = 1 + m retain/(1 - retain), and no written value can change
anybody's odds by more than that (amplification).

Source: the paper on amplification, sec. 3 (gamma) and sec. 2 (estimates of what was there), for the law of uniform replacement.
Different from the source: the bound is told for every prior belief at once (as odds), not for one pair of beliefs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.errors import BadInput
from closeknit.core.exact import Number
from closeknit.core.params import number, whole
from closeknit.core.tree import Int32

WORDS = 2**64
Floats = NDArray[np.float64]
Words = Callable[[int, int], NDArray[np.uint64]]  # (turn, how many) -> so many even words of 64 bits


@dataclass(frozen=True)
class Law:
    """Keep with probability `retain`, else draw from all `values` alike.

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
        """The largest factor between the chances that two secrets have to be written as one value."""
        return 1 + self.values * self.retain / (1 - self.retain) if self.values > 1 else Fraction(1)

    def chance(self, same: bool) -> Fraction:
        """How likely a value is written: the true one, or any other one."""
        return self.retain * same + (1 - self.retain) / self.values

    def draw_codes(self, codes: Int32, words: Words) -> Int32:
        """Codes after the law, exactly: a word decides all, and the few that would make an outcome likelier are drawn again."""
        outcomes = self.values * self.retain.denominator
        last = np.uint64(WORDS // outcomes * outcomes - 1)
        after, undecided, turn = codes.copy(), np.arange(len(codes)), 0
        while len(undecided):
            word = words(turn, len(undecided))
            outcome = word % np.uint64(outcomes)
            fair = word <= last
            replaced = fair & (outcome // np.uint64(self.values) >= np.uint64(self.retain.numerator))
            after[undecided[replaced]] = (outcome[replaced] % np.uint64(self.values)).astype(np.int32)
            undecided, turn = undecided[~fair], turn + 1
        return after


def retention(retain: Number) -> Fraction:
    """A probability below 1, as it was written.

    >>> retention(0.6)
    Fraction(3, 5)
    """
    kept = number("retain", retain, least=0, most=1)
    if kept == 1:
        raise BadInput("retain=1 keeps every secret", right="retain must be a number of at least 0 and below 1")
    return kept


def words_of(column: str, law: Law, seed: int, secrets: Int32 | None = None) -> Words:
    """The words of one column: what comes out of SHAKE-256 for its name, its law, the private seed and the true secrets.

    An extendable-output function, because whoever has seen any part of its output, such as values that he knows to be replaced,
    cannot tell another part of it; from the output of a statistical generator its state could be computed. The law is part of
    what goes in: two releases under one seed and different laws are then as independent as they have to be. So are the secrets:
    if one of them changed and all words stayed, a cell that changed would surely be true, before and after.

    >>> one, other = (words_of("disease", Law(Fraction(1, 2), 3), seed)(0, 2) for seed in (7, 8))
    >>> (one == other).tolist()
    [False, False]
    """

    drawn_for = ""
    if secrets is not None and law.retain > 0:  # where nothing is kept nothing may depend on them
        drawn_for = hashlib.sha256(secrets.astype("<i4").tobytes()).hexdigest()

    def words(turn: int, count: int) -> NDArray[np.uint64]:
        text = json.dumps(["closeknit perturbed", column, str(law.retain), law.values, seed, turn, drawn_for])
        return np.frombuffer(hashlib.shake_256(text.encode()).digest(8 * count), dtype="<u8").astype(np.uint64)

    return words


def posterior(prior: Number, gamma: Number) -> Fraction:
    """The most that somebody can believe after reading who believed `prior` before.

    >>> posterior(0.1, 7)
    Fraction(7, 16)
    """
    p, g = number("prior", prior, least=0, most=1), number("gamma", gamma, least=1)
    return g * p / (1 + (g - 1) * p)


def retention_for(prior: Number, posterior: Number, values: int) -> Fraction:
    """The largest `retain` under which a belief of `prior` cannot become more than `posterior`, with so many values.

    >>> retention_for(prior=0.1, posterior=0.4375, values=4)
    Fraction(3, 5)
    """
    p, q = number("prior", prior, above=0, most=1), number("posterior", posterior, above=0, most=1)
    if not p <= q < 1:
        raise BadInput(f"posterior={posterior} is no bound", right="it must be at least the prior, and below 1")
    return retention_of(q * (1 - p) / (p * (1 - q)), values)


def retention_of(gamma: Number, values: int) -> Fraction:
    """The `retain` that has this gamma.

    >>> retention_of(7, 4)
    Fraction(3, 5)
    """
    g = number("gamma", gamma, least=1)
    return (g - 1) / (g - 1 + whole("values", values, least=1))


class Estimates(NamedTuple):
    """Of every value: how many rows have it truly, with its standard error, and the nearest counts that are possible."""

    counts: Floats
    errors: Floats
    possible: Floats


def estimate_counts(observed: object, retain: Number) -> Estimates:
    """True counts estimated from those that are written, of all m values, whether or not they occur.

    `counts` have no bias, and may be below 0; `possible` are the nearest counts that are not, with the same total.

    >>> estimate_counts([50, 30, 20], 0.5).counts.round(1).tolist()
    [66.7, 26.7, 6.7]
    """
    seen, kept = np.asarray(observed, dtype=np.float64), retention(retain)
    if kept == 0:
        raise BadInput("retain=0 tells nothing of what was there", right="there is nothing to estimate")
    n, law = float(seen.sum()), Law(kept, len(seen))
    same, other = float(law.chance(True)), float(law.chance(False))
    counts = (seen - n * other) / float(kept)
    possible = _nearest_possible(counts, n)
    # rows with the value are written so or not, and rows without it
    variance = possible * same * (1 - same) + (n - possible) * other * (1 - other)
    return Estimates(counts, np.sqrt(np.maximum(variance, 0)) / float(kept), possible)


def _nearest_possible(counts: Floats, total: float) -> Floats:
    """The nearest point without negative entries and with this sum: all lose the same, and none falls below 0."""
    falling = -np.sort(-counts)
    excess = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    taken = excess[falling > excess]
    return np.maximum(counts - (taken[-1] if len(taken) else 0), 0)

"""Diverse slicing: an adversary who looks up known cells in a sliced release finds no value with a share above 1/l.

Source: the paper on slicing, sec. 2.2 (definition 7). With p(t,s) of `core.disclosure`: p(t,s) <= 1/l for every tuple t of the
table and every value s of the sensitive attribute. `weight` says how the buckets that t fits into are weighed:
- "local": not at all. In every bucket, and there next to each known part of the attribute's column group, no value has more
  than 1/l of the rows. This implies the other two, also for an adversary who learns which bucket t is in, and anyone can
  recompute it;
- "size": by the number of rows expected to look like t, which is what counting all consistent worlds gives;
- "paper": as printed, by the share of such rows in the bucket: safe for buckets of equal size alone.

Different from the source: `local` and `size` are ours; values are the known ones, as in `models.l_diversity`; a share of
exactly 1/l is allowed, as the definition says and the printed algorithm does not. `size` and `paper` are about the tuples of
the original table, which are private: an audit takes every profile that some bucket admits instead, and where these are too
many, or one of them fails, it says "not checkable". Shares of rows say nothing about persons with several rows: where there are
any, all three are judged as `local`, in persons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.disclosure import WEIGHTS, exact_disclosure, keeps_diverse, list_profiles, worst_disclosure
from closeknit.core.domain import Domain
from closeknit.core.exact import Number, fraction
from closeknit.core.model import Model, Parameter, Verdict
from closeknit.core.params import choice, number
from closeknit.core.reading import Reading
from closeknit.core.slices import Slices
from closeknit.models.l_diversity import LDiversity

WORDS = {"local": "each bucket by itself", "size": "buckets weighed by size", "paper": "buckets weighed as printed"}


@dataclass(frozen=True)
class DiverseSlicing(Model):
    """No value of the sensitive attribute has a share above 1/l for any known cells.

    Args:
        column: The sensitive attribute.
        l: The limit: no share is above 1/l.
        weight: How buckets are weighed: "local", "size" or "paper".

    >>> DiverseSlicing("disease", 5).describe(None)
    '5-diverse slicing of disease, each bucket by itself'
    """

    name = "diverse_slicing"
    most_profiles = 1 << 20  # that an audit looks at
    parameter = Parameter("l", (2, 3, 4, 5, 6, 8, 10), least=1, rank=40)
    needs = frozenset({"release", "histograms", "persons"})
    monotone = True
    higher_is_safer = True
    forms = frozenset({"sliced", "bucketized", "multiset", "permuted"})

    column: str
    l: Number
    weight: str = "local"

    def __post_init__(self) -> None:
        number("l", self.l, least=1)
        choice("weight", self.weight, tuple(WORDS))

    @property
    def weighs_buckets(self) -> bool:
        """Whether all buckets that a person may be in are judged together: not with the weight "local"."""
        return self.weight != "local"

    @property
    def least_values(self) -> int:
        """Every bucket needs at least `l` different values."""
        return self._alone.least_values

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line."""
        return f"{self.l}-diverse slicing of {self.column}, {WORDS[self.weight]}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen."""
        return (
            f"An adversary who looks a person up by all other cells finds no value of ‘{self.column}’ with a chance above "
            f"one in {self.l}."
        )

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """What each bucket measures by itself: enough for every weight."""
        return self._alone.levels(classes)

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each bucket meets the guarantee by itself."""
        return self._alone.holds(classes)

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """What one bucket measures by itself, as a rational."""
        return self._alone.exact_level(classes, index)

    def judge_release(self, reading: Reading, originals: NDArray[np.int32] | None) -> Verdict:
        """The guarantee measured on what was written; the data owner measures it over the original tuples."""
        classes = reading.of(self.column).classes
        alone = self._judge_alone(classes)
        if self.weight not in WEIGHTS or self.column in classes.by_person:
            return alone
        if originals is not None:
            if alone.held:  # then for every tuple; an attested level is not published, so no profile has to be looked up
                return Verdict(True, alone.level, "attested", alone.exact, why="it is about the original rows")
            held, level, exact = self._measure_profiles(self._slices(reading), originals)
            return Verdict(held, level, "attested", exact, why="it is about the original rows")
        return alone if alone.held else self._judge_admitted(self._slices(reading))

    @property
    def _alone(self) -> LDiversity:
        return LDiversity(self.column, self.l, "frequency")

    def _slices(self, reading: Reading) -> Slices:
        """The slices with known values only: a missing one is no candidate."""
        slices, missing = reading.slices(self.column), reading.of(self.column).classes.histograms[self.column].domain.size
        return replace(slices, secret=np.where(slices.secret == missing, np.int32(-1), slices.secret))

    def _judge_alone(self, classes: Classes) -> Verdict:
        levels = self.levels(classes)
        if not np.isfinite(levels).any():
            return Verdict(True, None, "recomputable")  # no bucket shows any value
        worst = int(np.argmin(levels))
        return Verdict(bool(self.holds(classes).all()), float(levels[worst]), "recomputable", self.exact_level(classes, worst))

    def _measure_profiles(self, slices: Slices, profiles: NDArray[np.int32]) -> tuple[bool, float | None, Fraction | None]:
        """Whether the guarantee holds for these profiles, and the l of the worst of them."""
        _, worst, value = worst_disclosure(slices, profiles, self.weight)
        if worst < 0:
            return True, None, None
        exact = 1 / exact_disclosure(slices, profiles[worst], self.weight)[value]
        return keeps_diverse(slices, profiles, fraction("l", self.l), self.weight), float(exact), exact

    def _judge_admitted(self, slices: Slices) -> Verdict:
        """For an audit: the worst of all profiles that the buckets admit; the original ones are among them."""
        most = self.most_profiles
        profiles = list_profiles(slices, most)
        if profiles is None:
            why = f"its buckets admit more than {most:,} profiles, and only the original rows show which of them exist"
            return Verdict(False, None, "not checkable", why=why)
        held, level, exact = self._measure_profiles(slices, profiles)
        if held:
            return Verdict(True, level, "recomputable", exact)
        why = "some profile that a bucket admits would fail, and only the original rows show whether it exists"
        return Verdict(False, None, "not checkable", why=why)

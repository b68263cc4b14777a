"""Minimality: a method that generalizes no more than necessary reveals, by what it did, that it was necessary.

The adversary knows the method with all its parameters and its seed, all quasi-identifiers of the table, and the class of each
row. Without the method, a member of a class has a sensitive value with the share of this value in the class: the naive
posterior. With it, every way to assign the values of each class to its members is tried: the method runs on the table of that
way, and ways that do not give exactly the same release are ruled out. The remaining ways give the posterior.

The number is the largest posterior of any person; the details give the naive one of the same person and value, and
1 / (values of the class). `risk`: the number.

Source: the paper on minimality, sec. 3, and the thesis on SABRE and BUREL, ch. 7, which leaves it open.
Different from the source: any method, by running it; it has to be deterministic given its seed, which the adversary is assumed
to know (it is private, and another seed may give another release). Where there are more than `most` ways, `draws` of them are
drawn, all equally likely. By Bayes' rule a posterior is the naive one times P(gives the release | the person has the value) /
P(gives the release), so it is the naive one where every way gives the release. One half of the draws chooses the person and
the value and the other half estimates the posterior, so that it is not the largest of many rough estimates; it comes with a
standard error. If few or none of the drawn ways give the release, the number is None. This does not mean a low risk: the few
remaining ways may reveal much.
`only` names the classes under attack, where the adversary knows the values of all others: a stronger adversary, who faces
fewer ways.

Cost: as many runs of the method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10

import numpy as np

from closeknit.attacks.deals import Classes, Deals, check_attacked
from closeknit.attacks.finding import Detail, Finding
from closeknit.attacks.finding_texts import certainty
from closeknit.core.columns import Columns
from closeknit.core.limits import MOST_DRAWS
from closeknit.core.params import whole
from closeknit.core.schema import Schema
from closeknit.io.canonical import content_hash
from closeknit.kernels.arrays import Int64, Reals

MOST = 200_000
DRAWS = 2_000
LARGE = 10**15  # beyond it only the order of magnitude of a number of ways is printed
KNOWS = "the method and its seed, all quasi-identifiers, and the class of each person"
Rerun = Callable[[Columns], Columns | None]  # the written cells of a release of this table; None if it is refused


def minimality(
    written: Columns,
    rerun: Rerun,
    original: Columns,
    class_of: Classes,
    schema: Schema,
    secret: str | None = None,
    *,
    only: Sequence[int] | None = None,
    most: int = MOST,
    draws: int = DRAWS,
    seed: int = 0,
) -> Finding:
    """Measure the largest posterior of a sensitive value, given that the method that produced `written` can be run again.

    In the example four people of age 40 and two of age 30 share a class, a third of which is HIV. If the two of age 30
    were not both HIV, they would be a class of their own.

    Args:
        written: Published cells.
        rerun: Returns the written cells of a release of a table by the same method, or None if it refuses the table.
        original: The original rows.
        class_of: Class of each original row, -1 for suppressed rows (`Release.partition`).
        schema: Schema of the original rows.
        secret: Sensitive attribute under attack; None takes the first.
        only: Classes under attack, where all values of the other classes are known; None takes all classes.
        most: Largest number of ways that are all tried.
        draws: Number of ways that are drawn where there are more.
        seed: Seed of the draws.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [30, 30, 40, 40, 40, 40], "ill": ["HIV", "HIV", "flu", "gout", "cold", "ulcer"]})
    >>> def rerun(table: Columns) -> Columns:
    ...     return ck.anonymize(table, schema, [ck.LDiversity("ill", 2)], ck.Mondrian("strict"), seed=2**64).columns
    >>> found = minimality(rerun(table), rerun, table, [0] * 6, schema)
    >>> found.number, round(found.details["naive"], 3), found.details["ways"], found.details["that_give_the_release"]
    (1.0, 0.333, 360, 24)
    """
    check_attacked(secret, schema)
    deals = Deals.of(original, class_of, schema, only)
    return try_ways(written, rerun, deals, most=most, draws=draws, seed=seed).finding(secret or next(iter(schema.sensitive)))


def try_ways(written: Columns, rerun: Rerun, deals: Deals, *, most: int, draws: int, seed: int) -> TriedWays:
    """Run the method on every way, or on `draws` of them where there are more than `most`."""
    most, draws = whole("most", most, 1, MOST_DRAWS), whole("draws", draws, 1, MOST_DRAWS)
    ways, goal = deals.ways, content_hash(written)
    drawn = ways > most
    tally = np.zeros((2, 2, len(deals.slots[0])), dtype=np.int64)
    runs = np.zeros((2, 2), dtype=np.int64)
    for number, slots in enumerate(deals.draw_ways(draws, seed) if drawn else deals.every()):
        cells = rerun(deals.table(slots))
        gives = int(cells is not None and content_hash(cells) == goal)
        half = number % 2
        runs[half, : gives + 1] += 1
        tally[half, : gives + 1, slots] += 1
    return TriedWays(deals, ways, drawn, runs, tally)


@dataclass(frozen=True, eq=False)
class TriedWays:
    """Ways that were tried, in two halves: how many, how many give the release, and how often each slot was filled."""

    deals: Deals
    ways: int
    drawn: bool
    runs: Int64  # [half, all or those that give the release]
    tally: Int64  # [half, all or those that give the release, slots]

    @property
    def kept(self) -> int:
        """Number of ways that give the release."""
        return int(self.runs[:, 1].sum())

    def finding(self, secret: str) -> Finding:
        """Return what the ways reveal of one sensitive attribute."""
        if self.kept == 0 or (self.drawn and not self.runs[:, 1].all()):
            few = "none gives" if self.kept == 0 else "hardly any gives"
            more = ": too few to estimate a posterior; try more runs" if self.drawn else ", so this method did not produce it"
            return self._build_finding(secret, None, f"Of {self._tried} to assign the values {few} the release{more}.", {})
        member, like, share = self.deals.slots
        value = self.deals.original[secret].codes[like].astype(np.int64) + 1
        pairs, pair_of = np.unique(np.stack([member, value]), axis=1, return_inverse=True)
        naive: Reals = np.bincount(pair_of.ravel(), share).astype(np.float64)
        filled = np.array([[np.bincount(pair_of.ravel(), slots) for slots in half] for half in self.tally])
        chosen_by, _ = self._posterior(naive, filled, 0)
        posterior, error = self._posterior(naive, filled, 1)
        best = int(np.lexsort((chosen_by - naive, chosen_by))[-1])
        about = "" if error is None else f" (standard error {error[best]:.3f})"
        sentence = (
            f"Of {self._tried} to assign the values {self.kept:,} {'gives' if self.kept == 1 else 'give'} the release; an "
            f"adversary then learns a person's `{secret}` {certainty(float(posterior[best]))}{about}, where the class alone "
            f"reveals it {certainty(float(naive[best]))}."
        )
        details: dict[str, Detail] = {
            "naive": float(naive[best]),
            "largest_naive": float(naive.max()),
            "one_over_l": 1 / int((pairs[0] == pairs[0, best]).sum()),
            "standard_error": None if error is None else float(error[best]),
        }
        return self._build_finding(secret, float(posterior[best]), sentence, details)

    def _posterior(self, naive: Reals, filled: Int64, half: int) -> tuple[Reals, Reals | None]:
        """Return the posterior of every person and value; of drawn ways by one half of them, with a standard error."""
        if not self.drawn:
            return filled[:, 1].sum(axis=0) / self.kept, None
        every, giving = filled[half]
        usual = self.runs[half, 1] / self.runs[half, 0]
        likely = (giving + usual) / (
            every + 1
        )  # one uninformative way more: a value that was never dealt keeps the naive posterior
        return np.minimum(naive * likely / usual, 1.0), naive / usual * np.sqrt(likely * (1 - likely) / (every + 1))

    @property
    def _tried(self) -> str:
        tried = int(self.runs[:, 0].sum())
        return f"{tried:,} of {_large(self.ways)} ways" if self.drawn else f"all {tried:,} ways"

    def _build_finding(self, secret: str, number: float | None, sentence: str, more: dict[str, Detail]) -> Finding:
        details: dict[str, Detail] = {
            "ways": self.ways if self.ways < LARGE else _large(self.ways),
            "tried": int(self.runs[:, 0].sum()),
            "that_give_the_release": self.kept,
            "drawn": int(self.drawn),
        }
        return Finding(
            attack="minimality",
            knows=KNOWS,
            column=secret,
            measure="largest posterior",
            number=number,
            risk=number or 0.0,
            sentence=sentence,
            details=details | more,
        )


def _large(number: int) -> str:
    """Return a whole number, or its order of magnitude."""
    return f"{number:,}" if number < LARGE else f"about 10^{round(log10(number))}"

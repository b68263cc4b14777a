"""Minimality: a method that generalizes no more than it must tells, by what it did, that it had to.

The attacker knows the method with all its parameters and its seed, the quasi-identifiers of everybody in the table, and which
of them stand in which class. Without the method, a member of a class has a secret with the share that this secret has in the
class: the naive posterior. With it, every way to deal the secrets of each class to its members is tried: the method is run on
the table as it would be, and ways that do not give the very same release are ruled out. What is left gives the posterior.

The number is the largest posterior of any person; the naive one of the same person and value, and 1 / (values of the class),
stand in the details. `risk`: the number.

Source: the paper on minimality, sec. 3, and the thesis on SABRE and BUREL, ch. 7, which leaves it open.
Different from the source: any method, by running it; so it has to be deterministic given its seed, which the attacker is taken
to know (it is at home, and the method may draw another way with another one). Where there are more than `most` ways, `draws` of
them are drawn, all being equally likely. By Bayes' rule a posterior is the naive one times P(gives the release | the person has
the value) / P(gives the release), so it is the naive one where every way gives the release. The person and the value are chosen
by one half of the draws and told by the other, so that it is not the largest of many rough guesses; it comes with a standard
error. Few or none of the drawn ways may give the release: then the number is None. That is no comfort: few ways that are left
may tell much.
`only` names the classes whose secrets are wanted, where the attacker knows those of all others: a stronger attacker, for whom
there are fewer ways.

Cost: as many runs of the method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.deals import Classes, Deals
from closeknit.attacks.finding import Detail, Finding
from closeknit.attacks.finding_texts import certainty
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.params import whole
from closeknit.core.schema import Schema
from closeknit.io.canonical import content_hash

MOST = 200_000
DRAWS = 2_000
LARGE = 10**15  # beyond it a number of ways is told roughly
KNOWS = "the method and its seed, all quasi-identifiers, and who is in which class"
Int64 = NDArray[np.int64]
Reals = NDArray[np.float64]
Rerun = Callable[[Columns], Columns | None]  # the written cells of a release of this table; None where it is refused


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
    """The largest posterior of somebody's secret, where the method that made `written` can be run again.

    `class_of` is the class of each row of the original, -1 where it was suppressed: `Release.partition`. Below, four who are 40
    and two who are 30 stand in one class, of which a third is HIV. Had not both who are 30 been HIV, they would have been a
    class of their own.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [30, 30, 40, 40, 40, 40], "ill": ["HIV", "HIV", "flu", "gout", "cold", "ulcer"]})
    >>> def rerun(table: Columns) -> Columns:
    ...     return ck.anonymize(table, schema, [ck.LDiversity("ill", 2)], ck.Mondrian("strict"), seed=2**64).columns
    >>> found = minimality(rerun(table), rerun, table, [0] * 6, schema)
    >>> found.number, round(found.details["naive"], 3), found.details["ways"], found.details["that_give_the_release"]
    (1.0, 0.333, 360, 24)
    """
    if not schema.sensitive or (secret is not None and secret not in schema.sensitive):
        right = suggest_name(secret, schema.sensitive)
        raise BadInput("there is no such secret to be found", column=secret, right=right)
    tried = try_ways(written, rerun, original, class_of, schema, only=only, most=most, draws=draws, seed=seed)
    return tried.finding(original, secret or next(iter(schema.sensitive)))


def try_ways(
    written: Columns,
    rerun: Rerun,
    original: Columns,
    class_of: Classes,
    schema: Schema,
    *,
    only: Sequence[int] | None = None,
    most: int = MOST,
    draws: int = DRAWS,
    seed: int = 0,
) -> TriedWays:
    """The runs, from which something can be told of every secret: arguments as in `minimality`."""
    most, draws = whole("most", most, 1), whole("draws", draws, 1)
    deals = Deals.of(original, class_of, schema, only)
    ways, goal = deals.ways, content_hash(written)
    drawn = ways > most
    tally = np.zeros((2, 2, len(deals.slots[0])), dtype=np.int64)
    runs = np.zeros((2, 2), dtype=np.int64)
    for number, slots in enumerate(deals.draw_ways(draws, seed) if drawn else deals.every()):
        cells = rerun(deals.table(original, slots))
        gives = int(cells is not None and content_hash(cells) == goal)
        half = number % 2
        runs[half, : gives + 1] += 1
        tally[half, : gives + 1, slots] += 1
    return TriedWays(deals, ways, drawn, runs, tally)


@dataclass(frozen=True, eq=False)
class TriedWays:
    """Ways that were tried, in two halves: how many, how many of them give the release, and how often each slot was filled."""

    deals: Deals
    ways: int
    drawn: bool
    runs: Int64  # [half, all or those that give the release]
    tally: Int64  # [half, all or those that give the release, slots]

    @property
    def kept(self) -> int:
        """How many give the release."""
        return int(self.runs[:, 1].sum())

    def finding(self, original: Columns, secret: str) -> Finding:
        """What they tell of one secret."""
        if self.kept == 0 or (self.drawn and not self.runs[:, 1].all()):
            few = "none gives" if self.kept == 0 else "hardly any gives"
            more = ": too few to tell what is left; try more of them" if self.drawn else ", so it is none of this method"
            sentence = f"Of {self._sentence} to deal the secrets {few} the release{more}."
            return self._build_finding(secret, None, sentence, {})
        member, like, share = self.deals.slots
        value = original[secret].codes[like].astype(np.int64) + 1
        pairs, pair_of = np.unique(np.stack([member, value]), axis=1, return_inverse=True)
        naive: Reals = np.bincount(pair_of.ravel(), share).astype(np.float64)
        filled = np.array([[np.bincount(pair_of.ravel(), slots) for slots in half] for half in self.tally])
        chosen_by, _ = self._posterior(naive, filled, 0)
        posterior, error = self._posterior(naive, filled, 1)
        best = int(np.lexsort((chosen_by - naive, chosen_by))[-1])
        values = int((pairs[0] == pairs[0, best]).sum())
        about = "" if error is None else f" (standard error {error[best]:.3f})"
        sentence = (
            f"Of {self._sentence} to deal the secrets {self.kept:,} {'gives' if self.kept == 1 else 'give'} the release; "
            f"somebody's {secret} is then told {certainty(float(posterior[best]))}{about}, where the class alone tells it "
            f"{certainty(float(naive[best]))}."
        )
        details: dict[str, Detail] = {
            "naive": float(naive[best]),
            "largest_naive": float(naive.max()),
            "one_over_l": 1 / values,
            "standard_error": None if error is None else float(error[best]),
        }
        return self._build_finding(secret, float(posterior[best]), sentence, details)

    def _posterior(self, naive: Reals, filled: Int64, half: int) -> tuple[Reals, Reals | None]:
        """Of every person and value; of drawn ways by one half of them, with a standard error."""
        if not self.drawn:
            return filled[:, 1].sum(axis=0) / self.kept, None
        every, giving = filled[half]
        usual = self.runs[half, 1] / self.runs[half, 0]
        likely = (giving + usual) / (
            every + 1
        )  # one more way, that tells nothing: of a value that was never dealt nothing is told
        return np.minimum(naive * likely / usual, 1.0), naive / usual * np.sqrt(likely * (1 - likely) / (every + 1))

    @property
    def _sentence(self) -> str:
        tried = int(self.runs[:, 0].sum())
        return f"{tried:,} of {_large(self.ways)} ways" if self.drawn else f"all {tried:,} ways"

    def _build_finding(self, secret: str, number: float | None, sentence: str, more: dict[str, Detail]) -> Finding:
        ways = self.ways if self.ways < LARGE else _large(self.ways)
        counts = {
            "ways": ways,
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
            details={**counts, **more},
        )


def _large(number: int) -> str:
    """A whole number, or about how many digits it has."""
    return f"{number:,}" if number < LARGE else f"about 10^{round(log10(number))}"

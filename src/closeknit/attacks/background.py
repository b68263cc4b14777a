"""Background knowledge: somebody who can rule out b values of the secret for a person is left with fewer.

The attacker knows the quasi-identifiers of somebody who is in the table, and b values that this person does not have. With r_1
the count of the likeliest value of a class and r_2, r_3, ... those of the others, falling: r_1 / (all - r_2 - ... - r_(b+1)),
the most that b exclusions can make of it. Also the fewest exclusions that make a value certain somewhere. Where the reading
knows persons with several values this is a bound: who has an excluded value may have others too.

Source: the dissertation on methods to achieve t-closeness, ch. 2 (background knowledge attack).
`risk` is the largest posterior after `b` exclusions, 1 unless asked otherwise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import ROUNDED, Beliefs
from closeknit.attacks.finding import Detail, Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_count, not_shown, place
from closeknit.core.params import whole
from closeknit.core.reading import Reading

MOST = 3  # exclusions that the details go up to


def background(reading: Reading, column: str, b: int = 1) -> Finding:
    """How well the secret can be guessed by somebody who can rule out `b` values; 0 to 3 of them in the details.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.flat()})
    >>> cells = Columns.of({"sex": ["f"] * 4, "disease": ["fever", "fever", "heart", "gout"]})
    >>> found = background(ck.generalized().read(cells, schema), "disease")
    >>> round(found.number, 3), found.details["fewest"]
    (0.667, 2)
    """
    b = whole("b", b, 0)
    beliefs = Beliefs.of(reading, column)
    most = max(b, MOST)
    measure, knows = f"largest posterior after {format_count(b, 'exclusion')}", f"{IN_TABLE}, and values that are not theirs"
    if beliefs.totals.sum() == 0:
        return Finding(
            attack="background", knows=knows, column=column, measure=measure, number=None, risk=0, sentence=not_shown(column)
        )
    posteriors, needed = _posteriors(beliefs, most)
    worst = int(np.argmax(posteriors[b]))
    chance, fewest = float(posteriors[b][worst]), int(needed.min())
    details: dict[str, Detail] = {f"b_{i}": float(posteriors[i].max()) for i in range(most + 1)}
    return Finding(
        attack="background",
        knows=knows,
        column=column,
        measure=measure,
        number=chance,
        risk=chance,
        sentence=_sentence(column, b, chance, fewest),
        details={**details, "fewest": fewest, "class": place(reading.of(column), worst)},
    )


def _posteriors(beliefs: Beliefs, most: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Per number of exclusions and class the posterior, and per class with a secret the exclusions that make it 1."""
    whole_ = beliefs.add_unseen(most + 1)
    order, rank = whole_.rank_values()
    owner, chances = whole_.owner[order], whole_.chances[order]
    count = len(beliefs.totals)
    first = np.zeros(count)
    first[owner[rank == 0]] = chances[rank == 0]
    left = np.where(beliefs.totals > 0, 1.0, 0.0) - first  # chance of all other values, or of all other persons
    posteriors = np.zeros((most + 1, count))
    for i in range(most + 1):
        left[owner[rank == i]] -= chances[rank == i] if i else 0.0
        posteriors[i] = first / np.maximum(first + left, ROUNDED)
    posteriors[posteriors > 1 - ROUNDED] = 1.0
    if beliefs.law is not None:  # every value that anybody may have is possible everywhere
        return posteriors, np.array([int((beliefs.prior > 0).sum()) - 1])
    return posteriors, _count_exclusions(owner, rank, whole_.weights[order], beliefs.totals)


def _count_exclusions(
    owner: NDArray[np.int64], rank: NDArray[np.int64], weights: NDArray[np.float64], totals: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The first number of exclusions after which the likeliest value is all that is left, in whole numbers."""
    running = np.cumsum(weights) - (np.cumsum(weights) - weights)[np.flatnonzero(rank == 0)][np.cumsum(rank == 0) - 1]
    enough = running >= totals[owner]
    return rank[enough]


def _sentence(column: str, b: int, chance: float, fewest: int) -> str:
    values = format_count(b, "value")
    if fewest <= b:
        already = "Nothing has to be ruled out" if fewest == 0 else f"Ruling out {format_count(fewest, 'value')} is enough"
        return f"{already} to tell {column} of somebody for sure."
    return (
        f"Whoever can rule out {values} of {column} tells it {certainty(chance)} at worst; to be sure of somebody at least "
        f"{fewest:,} have to be ruled out."
    )

"""Background knowledge: an adversary who rules out b values of the sensitive attribute is left with fewer.

The adversary knows the quasi-identifiers of a person in the table, and b values that this person does not have. With r_1 the
count of the likeliest value of a class and r_2, r_3, ... those of the others in descending order, the posterior is
r_1 / (all - r_2 - ... - r_(b+1)), the largest that b exclusions allow. The details give the fewest exclusions after which a
value is certain in some class. Where persons have several values this is a bound: a person with an excluded value may have
others too.

Source: the dissertation on methods to achieve t-closeness, ch. 2 (background knowledge attack).
`risk` is the largest posterior after `b` exclusions.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.beliefs import ROUNDED, Beliefs
from closeknit.attacks.finding import Detail, Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_count, not_shown, place
from closeknit.core.limits import MOST_EXCLUSIONS
from closeknit.core.params import whole
from closeknit.core.reading import Reading

MOST = 3  # exclusions in the details


def background(reading: Reading, column: str, b: int = 1) -> Finding:
    """Measure how well the value can be guessed after `b` values are ruled out; the details give 0 to 3 exclusions.

    Args:
        reading: The release as its form reads it (`reading_of`).
        column: Sensitive attribute under attack.
        b: Number of values that the adversary rules out.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.flat()})
    >>> cells = Columns.of({"sex": ["f"] * 4, "disease": ["fever", "fever", "heart", "gout"]})
    >>> found = background(ck.generalized().read(cells, schema), "disease")
    >>> round(found.number, 3), found.details["fewest"]
    (0.667, 2)
    """
    b = whole("b", b, 0, MOST_EXCLUSIONS)
    beliefs = Beliefs.of(reading, column)
    most = max(b, MOST)
    finding = partial(
        Finding,
        attack="background",
        knows=f"{IN_TABLE}, and values that the person does not have",
        column=column,
        measure=f"largest posterior after {format_count(b, 'exclusion')}",
    )
    if beliefs.totals.sum() == 0:
        return finding(number=None, risk=0, sentence=not_shown(column))
    posteriors, needed = _posteriors(beliefs, most)
    worst = int(np.argmax(posteriors[b]))
    chance, fewest = float(posteriors[b][worst]), int(needed.min())
    details: dict[str, Detail] = {f"b_{i}": float(posteriors[i].max()) for i in range(most + 1)}
    return finding(
        number=chance,
        risk=chance,
        sentence=_sentence(column, b, chance, fewest),
        details={**details, "fewest": fewest, "class": place(reading.of(column), worst)},
    )


def _posteriors(beliefs: Beliefs, most: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the posterior by number of exclusions and class, and for each class the exclusions that make a value certain."""
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
    if beliefs.law is not None:  # every value is possible in every class
        return posteriors, np.array([int((beliefs.prior > 0).sum()) - 1])
    return posteriors, _count_exclusions(owner, rank, whole_.weights[order], beliefs.totals)


def _count_exclusions(
    owner: NDArray[np.int64], rank: NDArray[np.int64], weights: NDArray[np.float64], totals: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the first number of exclusions that leaves only the likeliest value, computed in whole numbers."""
    running = np.cumsum(weights) - (np.cumsum(weights) - weights)[np.flatnonzero(rank == 0)][np.cumsum(rank == 0) - 1]
    return rank[running >= totals[owner]]


def _sentence(column: str, b: int, chance: float, fewest: int) -> str:
    if fewest == 0:
        return f"A class reveals `{column}` with certainty without ruling out any value."
    if fewest <= b:
        return f"Ruling out {format_count(fewest, 'value')} is enough to learn a person's `{column}` with certainty."
    return (
        f"An adversary who rules out {format_count(b, 'value')} learns a person's `{column}` {certainty(chance)} in the worst "
        f"case; certainty requires ruling out at least {fewest:,}."
    )

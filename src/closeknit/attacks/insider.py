"""Insider: a member of the class removes their own record and learns more about the other members.

The adversary is a member of the class, knows their own rows, and wants the sensitive value of another member. The number is
the largest posterior after one row is removed (one person with all values where the reading knows persons), over every class
with at least two members and every possible own value: r_1 / (n - 1) where the adversary's value is not the likeliest one. For
a perturbed attribute the adversary is assumed to know which written row is their own, which is more than they may know.

Source: the dissertation on methods to achieve t-closeness, ch. 2 (an adversary with limited background knowledge), for the
knowledge that every member of the table has.
`risk` is that posterior: the probability of being right about the most exposed other member.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from closeknit.attacks.beliefs import ROUNDED, Beliefs
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import certainty, percent, place, unit, value_name
from closeknit.core.reading import Reading
from closeknit.kernels.arrays import Int64, Reals

KNOWS = "their own rows in the table, and the quasi-identifiers of another member of the same class"


def insider(reading: Reading, column: str) -> Finding:
    """Measure how well a member of a class learns the sensitive value of another member.

    Args:
        reading: The release as its form reads it (`reading_of`).
        column: Sensitive attribute under attack.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.flat()})
    >>> cells = Columns.of({"sex": ["f", "f"], "disease": ["flu", "gout"]})
    >>> insider(ck.generalized().read(cells, schema), "disease").sentence
    "A member of the class who removes their own record learns another member's `disease` with certainty (without removing
    it: 50 %)."
    """
    beliefs = Beliefs.of(reading, column)
    finding = partial(Finding, attack="insider", knows=KNOWS, column=column, measure="largest posterior without the own rows")
    joint = beliefs.totals > 1
    if not joint.any():
        sentence = f"No two people share a class that shows `{column}`, so no member can learn about another."
        return finding(number=None, risk=0, sentence=sentence)
    chances, entries = _without_own(beliefs) if beliefs.law is None else _by_law(beliefs)
    chances = np.where(joint[entries.owner], chances, 0.0)
    best = int(np.argmax(chances))
    chance, where = float(chances[best]), int(entries.owner[best])
    before = float(entries.chances[joint[entries.owner]].max())
    seen = reading.of(column)
    own, them = ("record", "it") if unit(seen.classes.by_person, column)[0] == "row" else ("records", "them")
    return finding(
        number=chance,
        risk=chance,
        sentence=f"A member of the class who removes their own {own} learns another member's `{column}` {certainty(chance)} "
        f"(without removing {them}: {percent(before)}).",
        details={
            "before": before,
            "value": value_name(beliefs.domain.texts, int(entries.values[best])),
            "class": place(seen, where),
            "size": int(beliefs.totals[where]),
        },
    )


def _without_own(beliefs: Beliefs) -> tuple[Reals, Beliefs]:
    """The adversary's own value is not the likeliest one wherever the class has another."""
    n = beliefs.totals[beliefs.owner]
    return np.where(beliefs.weights == n, 1.0, beliefs.weights / np.maximum(n - 1, 1)), beliefs


def _by_law(beliefs: Beliefs) -> tuple[Reals, Beliefs]:
    """Return (n q_u - P(u|v)) / (n - 1) for the written v that supports u least: the likeliest other value, if there is one."""
    assert beliefs.law is not None
    kept, other = float(beliefs.law.retain), float(beliefs.law.chance(False))
    entries = beliefs.add_unseen(1)
    n, p = entries.totals[entries.owner], entries.prior[entries.values]
    first, second = _likeliest_written(beliefs)
    excluded = np.where(first[entries.owner] == entries.values, second[entries.owner], first[entries.owner])
    alone = excluded < 0  # the whole class is written as this value
    z = other + kept * np.where(alone, p, entries.prior[np.maximum(excluded, 0)])
    own = p * (other + kept * alone) / z
    chances = (n * entries.chances - own) / np.maximum(n - 1, 1)
    return np.where(chances > 1 - ROUNDED, 1.0, np.maximum(chances, 0)), entries


def _likeliest_written(beliefs: Beliefs) -> tuple[Int64, Int64]:
    """Return the two values written in each class that have the largest share in the release; -1 where there are fewer."""
    order = np.lexsort((-beliefs.prior[beliefs.values], beliefs.owner))
    rank = np.arange(len(order)) - beliefs.starts[beliefs.owner]
    found = np.full((2, len(beliefs.totals)), -1)
    for i in (0, 1):
        here = order[rank == i]
        found[i, beliefs.owner[here]] = beliefs.values[here]
    return found[0], found[1]

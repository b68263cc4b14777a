"""Insider: somebody who is in the class himself takes out what is his own, and sees the others with less to hide behind.

The attacker is a member of the class, knows his own rows, and wants the secret of another member. Computed is the largest
posterior after one row is taken out (one person with all values where the reading knows persons), over every class with at
least two and every possible own value: r_1 / (n - 1) where somebody has another value than the likeliest one. Of a perturbed
secret the insider is taken to know which row is his as it was written: more than he need know.

Source: the dissertation on methods to achieve t-closeness, ch. 2 (an attacker with limited background knowledge), for the one
kind of knowledge that everybody in the table has.
`risk` is that posterior: the probability to be right about the worst-off fellow.
"""

from __future__ import annotations

import numpy as np

from closeknit.attacks.beliefs import ROUNDED, Beliefs, Int64, Reals
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import certainty, percent, place, unit, value_name
from closeknit.core.reading import Reading

KNOWS = "being in the table oneself: the own rows, and the quasi-identifiers of somebody in the same class"


def insider(reading: Reading, column: str) -> Finding:
    """How well a member of a class tells the secret of another member.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.flat()})
    >>> cells = Columns.of({"sex": ["f", "f"], "disease": ["flu", "gout"]})
    >>> insider(ck.generalized().read(cells, schema), "disease").sentence
    'Somebody who takes out the own row tells disease of another in the class for sure (not taking it out: 50 %).'
    """
    beliefs = Beliefs.of(reading, column)
    measure = "largest posterior without the own rows"
    joint = beliefs.totals > 1
    if not joint.any():
        sentence = f"No two people share a class that shows {column}, so nobody has a fellow to look at."
        return Finding(attack="insider", knows=KNOWS, column=column, measure=measure, number=None, risk=0, sentence=sentence)
    chances, entries = _without_own(beliefs) if beliefs.law is None else _by_law(beliefs)
    chances = np.where(joint[entries.owner], chances, 0.0)
    best = int(np.argmax(chances))
    chance, where = float(chances[best]), int(entries.owner[best])
    before = float(entries.chances[joint[entries.owner]].max())
    seen = reading.of(column)
    own = "rows" if unit(seen.classes.by_person, column)[0] == "person" else "row"
    sentence = (
        f"Somebody who takes out the own {own} tells {column} of another in the class {certainty(chance)} "
        f"(not taking {'them' if own == 'rows' else 'it'} out: {percent(before)})."
    )
    return Finding(
        attack="insider",
        knows=KNOWS,
        column=column,
        measure=measure,
        number=chance,
        risk=chance,
        sentence=sentence,
        details={
            "before": before,
            "value": value_name(beliefs.domain.texts, int(entries.values[best])),
            "class": place(seen, where),
            "size": int(beliefs.totals[where]),
        },
    )


def _without_own(beliefs: Beliefs) -> tuple[Reals, Beliefs]:
    """The own value is another one where anybody has another one."""
    n = beliefs.totals[beliefs.owner]
    return np.where(beliefs.weights == n, 1.0, beliefs.weights / np.maximum(n - 1, 1)), beliefs


def _by_law(beliefs: Beliefs) -> tuple[Reals, Beliefs]:
    """(n q_u - P(u|v)) / (n - 1) for the written v that says least for u: the likeliest other one, if there is any."""
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
    """Of the values written in each class the two with the largest share in the release; -1 where there are not as many."""
    order = np.lexsort((-beliefs.prior[beliefs.values], beliefs.owner))
    rank = np.arange(len(order)) - beliefs.starts[beliefs.owner]
    found = np.full((2, len(beliefs.totals)), -1)
    for i in (0, 1):
        here = order[rank == i]
        found[i, beliefs.owner[here]] = beliefs.values[here]
    return found[0], found[1]

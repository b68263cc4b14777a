"""Homogeneity: where a class has one value of the secret, or nearly so, everybody in it is known to have it.

The attacker knows the quasi-identifiers of somebody who is in the table, and so the class. Computed is the posterior of the
likeliest value of each class (`attacks.beliefs`): its share of the class, counted in persons where the reading knows them.

Source: the dissertation on methods to achieve t-closeness, ch. 2 (homogeneity attack on k-anonymity).
`risk` is the largest posterior: the probability to be right about the secret of the worst-off person.
"""

from __future__ import annotations

import numpy as np

from closeknit.attacks.beliefs import Beliefs
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_count, not_shown, percent, place, unit, value_name
from closeknit.core.reading import Reading


def homogeneity(reading: Reading, column: str) -> Finding:
    """How well the likeliest value of the own class can be guessed, at worst and on average.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.flat()})
    >>> cells = Columns.of({"sex": ["f", "f", "f", "m"], "disease": ["flu", "flu", "flu", "gout"]})
    >>> print(homogeneity(ck.generalized().read(cells, schema), "disease"))
    1.000  homogeneity of disease: Whoever finds the class of a person tells disease for sure at worst, with probability
    100 % on average; it is plain of 4 rows (100 %).
    """
    beliefs = Beliefs.of(reading, column)
    peaks, values = beliefs.peaks()
    everybody = int(beliefs.totals.sum())
    measure = "largest posterior of a value"
    if everybody == 0:
        return Finding(
            attack="homogeneity",
            knows=IN_TABLE,
            column=column,
            measure=measure,
            number=None,
            risk=0,
            sentence=not_shown(column),
        )
    seen = reading.of(column)
    worst = int(np.argmax(peaks))
    mean = float(peaks @ beliefs.totals / everybody)
    plain = int(beliefs.totals[peaks == 1].sum())
    told = f"it is plain of {format_count(plain, *unit(seen.classes.by_person, column))} ({percent(plain / everybody)})"
    sentence = (
        f"Whoever finds the class of a person tells {column} {certainty(float(peaks[worst]))} at worst, with probability "
        f"{percent(mean)} on average; {told if plain else 'it is plain of nobody'}."
    )
    return Finding(
        attack="homogeneity",
        knows=IN_TABLE,
        column=column,
        measure=measure,
        number=float(peaks[worst]),
        risk=float(peaks[worst]),
        sentence=sentence,
        details={
            "mean": mean,
            "plain": plain,
            "plain_share": plain / everybody,
            "value": value_name(beliefs.domain.texts, int(values[worst])),
            "class": place(seen, worst),
        },
    )

"""Homogeneity: a class with one sensitive value, or nearly so, discloses it for all of its members.

The adversary knows the quasi-identifiers of a person in the table, and so the class. The number is the posterior of the
likeliest value of a class (`attacks.beliefs`): its share of the class, counted in persons where the reading knows them.

Source: the dissertation on methods to achieve t-closeness, ch. 2 (homogeneity attack on k-anonymity).
`risk` is the largest posterior: the probability of being right about the most exposed person.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from closeknit.attacks.beliefs import Beliefs
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_disclosed, not_shown, percent, place, unit, value_name
from closeknit.core.exact import sum_products
from closeknit.core.reading import Reading


def homogeneity(reading: Reading, column: str) -> Finding:
    """Measure how well the likeliest value of the class can be guessed, in the worst case and on average.

    Args:
        reading: The release as its form reads it (`reading_of`).
        column: Sensitive attribute under attack.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"disease": ck.flat()})
    >>> cells = Columns.of({"sex": ["f", "f", "f", "m"], "disease": ["flu", "flu", "flu", "gout"]})
    >>> print(homogeneity(ck.generalized().read(cells, schema), "disease"))
    1.000  homogeneity of disease: An adversary who finds a person's class learns `disease` with certainty in the worst case,
    with probability 100 % on average; the value is fully disclosed for 4 rows (100 %).
    """
    beliefs = Beliefs.of(reading, column)
    peaks, values = beliefs.peaks()
    total = int(beliefs.totals.sum())
    finding = partial(Finding, attack="homogeneity", knows=IN_TABLE, column=column, measure="largest posterior of a value")
    if total == 0:
        return finding(number=None, risk=0, sentence=not_shown(column))
    seen = reading.of(column)
    worst = int(np.argmax(peaks))
    peak, mean = float(peaks[worst]), sum_products(peaks, beliefs.totals) / total
    plain = int(beliefs.totals[peaks == 1].sum())
    return finding(
        number=peak,
        risk=peak,
        sentence=f"An adversary who finds a person's class learns `{column}` {certainty(peak)} in the worst case, "
        f"with probability {percent(mean)} on average; "
        f"{format_disclosed(plain, total, *unit(seen.classes.by_person, column))}.",
        details={
            "mean": mean,
            "plain": plain,
            "plain_share": plain / total,
            "value": value_name(beliefs.domain.texts, int(values[worst])),
            "class": place(seen, worst),
        },
    )

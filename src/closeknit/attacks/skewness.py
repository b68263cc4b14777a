"""Skewness: in some class a value is far more frequent than in the whole table.

The adversary knows the quasi-identifiers of a person in the table, and the distribution of the sensitive attribute in the whole
release. With p the share of a value in the release and q that in the class: the lift q/p, beta = q/p - 1 (as in beta-likeness),
the gain q - p, and the earth mover's distance of the class to the release in the column's own distance (the equal distance
where a missing value has no place in an order). Rows are counted, as the closeness guarantees do. For a perturbed attribute p
is estimated, q follows from the law, and the distance is the equal one (total variation).

Source: the dissertation on methods to achieve t-closeness, ch. 2 (skewness attack on l-diversity).
`risk` is the largest reduction in uncertainty, (q - p) / (1 - p): 0 where a class is like the release, 1 where its value is
certain.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from closeknit.attacks.beliefs import Beliefs, measure_gain
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import IN_TABLE, not_shown, percent, place, times, value_name
from closeknit.core.reading import Reading
from closeknit.models.t_closeness import TCloseness, default_distance

KNOWS = f"{IN_TABLE}, and the distribution of the sensitive attribute in the whole table"


def skewness(reading: Reading, column: str) -> Finding:
    """Measure how much likelier a value becomes once the class of a person is known.

    Args:
        reading: The release as its form reads it (`reading_of`).
        column: Sensitive attribute under attack.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"test": ck.flat()})
    >>> cells = Columns.of({"sex": ["f"] * 2 + ["m"] * 8, "test": ["positive"] + ["negative"] * 9})
    >>> found = skewness(ck.generalized().read(cells, schema), "test")
    >>> found.number, found.sentence
    (5.0, 'In the class where sex = f the value positive of `test` is 5 times as likely as in the whole release: 50 % compared
    with 10 %.')
    """
    beliefs = Beliefs.of(reading, column, people=False)
    finding = partial(Finding, attack="skewness", knows=KNOWS, column=column, measure="largest lift q/p")
    if beliefs.totals.sum() == 0:
        return finding(number=None, risk=0, sentence=not_shown(column))
    q, p = beliefs.chances, beliefs.prior[beliefs.values]
    lifts = np.where(p > 0, q / np.where(p > 0, p, 1), 0.0)
    lift, gain = int(np.argmax(lifts)), int(np.argmax(q - p))
    distances, ground = _distances(beliefs, reading, column)
    far, seen = int(np.argmax(distances)), reading.of(column)
    (value, where), (gain_value, gain_where) = (
        (value_name(beliefs.domain.texts, int(beliefs.values[i])), place(seen, int(beliefs.owner[i]))) for i in (lift, gain)
    )
    return finding(
        number=float(lifts[lift]),
        risk=float(measure_gain(q, p).max()),
        sentence=_sentence(column, value, where, float(q[lift]), float(p[lift])),
        details={
            "beta": float(lifts[lift]) - 1,
            "value": value,
            "class": where,
            "gain": float(q[gain] - p[gain]),
            "gain_value": gain_value,
            "gain_class": gain_where,
            "distance": float(distances[far]),
            "distance_kind": ground,
            "distance_class": place(seen, far),
        },
    )


def _sentence(column: str, value: str, where: str, q: float, p: float) -> str:
    if q <= p * (1 + 1e-9):
        return f"No class makes a value of `{column}` likelier than it is in the whole release."
    return (
        f"In the class where {where} the value {value} of `{column}` is {times(q / p)} as likely as in the whole release: "
        f"{percent(q)} compared with {percent(p)}."
    )


def _distances(beliefs: Beliefs, reading: Reading, column: str) -> tuple[np.ndarray, str]:
    """Return the distance of each class to the whole release, and the name of the ground distance."""
    if beliefs.law is not None:  # a value that is not written is never likelier than before, so gains are in entries alone
        gains = np.maximum(beliefs.chances - beliefs.prior[beliefs.values], 0)
        return np.bincount(beliefs.owner, gains, minlength=len(beliefs.totals)), "equal"
    classes = reading.of(column).classes
    histogram = classes.histograms[column]
    ground = default_distance(histogram.domain)
    if ground == "ordered" and histogram.reference[-1] > 0:
        ground = "equal"
    return TCloseness(column, 1, ground).levels(classes), ground

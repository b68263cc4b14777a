"""Skewness: a class in which a value is far more frequent than in the table, so that its people become suspects.

The attacker knows the quasi-identifiers of somebody who is in the table, and how the secret is spread in the whole release.
With p the share of a value in the release and q that in the class: the lift q/p, beta = q/p - 1 (that of beta-likeness), the
gain q - p, and the earth mover's distance of the class to the release in the column's own distance (equal where a missing
value has no place in an order). Rows are counted, as the guarantees of closeness do. For a perturbed secret p is estimated, q
follows from the law, and the distance is the equal one (total variation).

Source: the dissertation on methods to achieve t-closeness, ch. 2 (skewness attack on l-diversity).
`risk` is the largest share of doubt that goes, (q - p) / (1 - p): 0 where a class is as the release, 1 where it is plain.
"""

from __future__ import annotations

import numpy as np

from closeknit.attacks.beliefs import Beliefs, measure_gain
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import IN_TABLE, not_shown, percent, place, times, value_name
from closeknit.core.reading import Reading
from closeknit.models.t_closeness import TCloseness, default_distance

KNOWS = f"{IN_TABLE}, and how the secret is spread in the whole table"


def skewness(reading: Reading, column: str) -> Finding:
    """How much likelier a value becomes by finding the class of a person.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"sex": ck.flat()}, sensitive={"test": ck.flat()})
    >>> cells = Columns.of({"sex": ["f"] * 2 + ["m"] * 8, "test": ["positive"] + ["negative"] * 9})
    >>> found = skewness(ck.generalized().read(cells, schema), "test")
    >>> found.number, found.sentence
    (5.0, 'In the class where sex = f the value positive of test is 5 times as likely as in the whole release: 50 %, not 10 %.')
    """
    beliefs = Beliefs.of(reading, column, people=False)
    measure = "largest lift q/p"
    if beliefs.totals.sum() == 0:
        return Finding(
            attack="skewness", knows=KNOWS, column=column, measure=measure, number=None, risk=0, sentence=not_shown(column)
        )
    q, p, owner = beliefs.chances, beliefs.prior[beliefs.values], beliefs.owner
    lifts = np.where(p > 0, q / np.where(p > 0, p, 1), 0.0)
    seen, texts = reading.of(column), beliefs.domain.texts
    lift, gain = int(np.argmax(lifts)), int(np.argmax(q - p))
    distances, ground = _distances(beliefs, reading, column)
    far = int(np.argmax(distances))
    return Finding(
        attack="skewness",
        knows=KNOWS,
        column=column,
        measure=measure,
        number=float(lifts[lift]),
        risk=float(measure_gain(q, p).max()),
        sentence=_sentence(
            column, value_name(texts, int(beliefs.values[lift])), place(seen, int(owner[lift])), float(q[lift]), float(p[lift])
        ),
        details={
            "beta": float(lifts[lift]) - 1,
            "value": value_name(texts, int(beliefs.values[lift])),
            "class": place(seen, int(owner[lift])),
            "gain": float(q[gain] - p[gain]),
            "gain_value": value_name(texts, int(beliefs.values[gain])),
            "gain_class": place(seen, int(owner[gain])),
            "distance": float(distances[far]),
            "distance_kind": ground,
            "distance_class": place(seen, far),
        },
    )


def _sentence(column: str, value: str, where: str, q: float, p: float) -> str:
    if q <= p * (1 + 1e-9):
        return f"No class makes any value of {column} likelier than it is in the whole release."
    return (
        f"In the class where {where} the value {value} of {column} is {times(q / p)} as likely as in the whole release: "
        f"{percent(q)}, not {percent(p)}."
    )


def _distances(beliefs: Beliefs, reading: Reading, column: str) -> tuple[np.ndarray, str]:
    """Of every class to the whole release, and which distance it is."""
    if beliefs.law is not None:  # a value that is not written is never likelier than before, so gains are in entries alone
        gains = np.maximum(beliefs.chances - beliefs.prior[beliefs.values], 0)
        return np.bincount(beliefs.owner, gains, minlength=len(beliefs.totals)), "equal"
    classes = reading.of(column).classes
    histogram = classes.histograms[column]
    ground = default_distance(histogram.domain)
    if ground == "ordered" and histogram.reference[-1] > 0:
        ground = "equal"
    return TCloseness(column, 1, ground).levels(classes), ground

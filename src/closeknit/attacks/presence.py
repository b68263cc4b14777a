"""Delta-presence: how surely does a release tell that somebody is in the table, or is not?

The attacker has a list of the whole population, with quasi-identifiers, of which the people in the table are a part. A written
row is equally likely to be that of anybody whom its cells cover. So a person is behind one of the `r` rows of some cells with
probability r / (people whom these cells cover). It is also computed where the list has not all quasi-identifiers: an attacker
uses those it has.

The number is the largest such probability, delta max; the smallest, delta min, and how many people nothing covers stand in the
details. These are known not to be in the table.

`risk`: how much of the doubt is gone. Before, everybody in the list is in the table with probability rows / people. 0 where the
largest is no larger than that, 1 where it is certain of somebody.

Source: the paper on delta-presence, sec. 3.
Different from the source: cells may overlap. Then somebody is in the table unless behind no row of any cells that cover him,
each taken by themselves: 1 - product of (1 - r / people). It is 1 only where some cells have as many rows as people whom they
cover. That a row which can only be one person's is no other's is neglected: who solves the whole puzzle may know more.

Cost: (cells + people) log, by a tree over cells and one over people.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from closeknit.attacks.covering import Covering, coverings, people_of
from closeknit.attacks.finding import Finding, worst_first
from closeknit.attacks.finding_texts import certainty, format_count, percent
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published, reading_of

KNOWS = "quasi-identifiers of everybody in a population of which the table is a part"


def delta_presence(published: Published, population: Any, schema: Schema | None = None) -> Finding:
    """What a release and a population file (or frame) tell of who is in the table.

    `schema` says what the raw columns are; left out, it is taken from the certificate as far as that tells.

    >>> import closeknit as ck
    >>> people = {"age": [30, 34, 35, 60, 61], "ill": ["flu", "gout", "flu", "flu", "gout"]}
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = ck.core.columns.Columns.of(people).take(np.array([0, 1, 3, 4]))
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(2)])
    >>> found = delta_presence(release, ck.core.columns.Columns.of({"age": [*people["age"], 90]}))
    >>> found.number, found.details["delta_min"], found.details["covered_by_nothing"]
    (1.0, 0.0, 2)
    """
    reading = reading_of(published)
    people = people_of(population, reading, schema)
    return worst_first(_build_finding(covering, reading.columns.rows) for covering in coverings(reading, people, schema))[0]


def _build_finding(covering: Covering, rows: int) -> Finding:
    inside, everybody = covering.people_in_boxes, int(covering.people.sum())
    full = covering.rows >= inside  # everybody whom such cells cover is there
    absent = np.log1p(-np.where(full, 0.0, covering.rows / np.maximum(inside, 1)))
    chance = 0.0 - np.expm1(covering.rows_over_points(absent))
    chance[covering.rows_over_points(full.astype(np.float64)) > 0] = 1.0
    prior = min(rows / everybody, 1.0)
    highest, lowest = float(chance.max()), float(chance.min())
    sure = int(covering.people[chance == 1.0].sum())
    nothing = int(covering.people[chance == 0.0].sum())
    risk = 0.0 if prior == 1.0 else max(highest - prior, 0.0) / (1 - prior)
    return Finding(
        attack="delta_presence",
        knows=KNOWS,
        measure="largest probability to be in the table (delta max)",
        number=highest,
        risk=min(risk, 1.0),
        sentence=_sentence(everybody, sure, nothing, prior, highest),
        details={
            "people": everybody,
            "columns": ", ".join(covering.names),
            "before": prior,
            "delta_min": lowest,
            "delta_max": highest,
            "certain": sure,
            "covered_by_nothing": nothing,
            "rows_that_cover_nobody": int(covering.rows[inside == 0].sum()),
        },
    )


def _sentence(everybody: int, sure: int, nothing: int, prior: float, highest: float) -> str:
    if prior == 1.0:
        people = format_count(everybody, "person", "people")
        return f"The list has {people} and the release no fewer rows: it could not tell any more."
    there = f"{_are(sure)} in the table for sure" if sure else f"somebody is in the table {certainty(highest)}"
    return (
        f"Of {format_count(everybody, 'person', 'people')} in the list {there}, and {_are(nothing)} not; before, each was with "
        f"probability {percent(prior)}."
    )


def _are(people: int) -> str:
    return f"{people:,} {'is' if people == 1 else 'are'}"

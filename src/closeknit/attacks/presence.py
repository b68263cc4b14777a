"""Delta-presence: how surely does a release reveal that a person is in the table, or is not?

The adversary has a list of the whole population with quasi-identifiers, from which the table is drawn. A written row is equally
likely to belong to anyone whom its cells cover, so a person belongs to one of the `r` rows of some cells with probability
r / (people whom these cells cover). It is also computed where the list lacks some quasi-identifiers: an adversary uses those
that it has.

The number is the largest such probability, delta max; the details give the smallest, delta min, and the number of people whom
no cells cover. These are known not to be in the table.

`risk`: the reduction in uncertainty. Without the release each person of the list is in the table with probability rows /
people. 0 where the largest probability is no larger than that, 1 where a person is in the table with certainty.

Source: the paper on delta-presence, sec. 3.
Different from the source: cells may overlap. A person is then in the table unless they belong to no row of any cells that cover
them, each taken independently: 1 - product of (1 - r / people). It is 1 only where some cells have as many rows as people whom
they cover. That a row which fits one person alone fits no other is neglected: an adversary who solves the whole assignment
may learn more.

Cost: (cells + people) log, by a tree over cells and one over people.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from closeknit.attacks.covering import coverings, people_of
from closeknit.attacks.finding import Finding, worst_first
from closeknit.attacks.finding_texts import certainty, format_count, percent
from closeknit.core.covering import Covering
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published, reading_of

KNOWS = "quasi-identifiers of the population from which the table is drawn"


def delta_presence(published: Published, population: Any, schema: Schema | None = None) -> Finding:
    """Measure what a release and a population reveal about who is in the table.

    Args:
        published: The release.
        population: People with quasi-identifiers as a frame, file or `Columns`.
        schema: Schema of the population's columns; None reads it from the certificate as far as possible.

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
    inside, total = covering.people_in_boxes, int(covering.people.sum())
    full = covering.rows >= inside  # all whom such cells cover are in the table
    absent = np.log1p(-np.where(full, 0.0, covering.rows / np.maximum(inside, 1)))
    chance = 0.0 - np.expm1(covering.rows_over_points(absent))
    chance[covering.rows_over_points(full.astype(np.float64)) > 0] = 1.0
    prior = min(rows / total, 1.0)
    highest, lowest = float(chance.max()), float(chance.min())
    sure = int(covering.people[chance == 1.0].sum())
    nothing = int(covering.people[chance == 0.0].sum())
    risk = 0.0 if prior == 1.0 else max(highest - prior, 0.0) / (1 - prior)
    return Finding(
        attack="delta_presence",
        knows=KNOWS,
        measure="largest probability of being in the table (delta max)",
        number=highest,
        risk=min(risk, 1.0),
        sentence=_sentence(total, sure, nothing, prior, highest),
        details={
            "people": total,
            "columns": ", ".join(covering.names),
            "before": prior,
            "delta_min": lowest,
            "delta_max": highest,
            "certain": sure,
            "covered_by_nothing": nothing,
            "rows_that_cover_no_one": int(covering.rows[inside == 0].sum()),
        },
    )


def _sentence(total: int, sure: int, nothing: int, prior: float, highest: float) -> str:
    people = format_count(total, "person", "people")
    if prior == 1.0:
        return f"The list has {people} and the release at least as many rows, so it cannot reveal who is in the table."
    there = f"{_are(sure)} certainly in the table" if sure else f"the most exposed is in the table {certainty(highest)}"
    return (
        f"Of {people} in the list, {there}, and {_are(nothing)} certainly not; without the release each is in the table with "
        f"probability {percent(prior)}."
    )


def _are(people: int) -> str:
    return f"{people:,} {'is' if people == 1 else 'are'}"

"""Linkage with a population: whose row is this?

The attacker has a list of the whole population with names and quasi-identifiers, and does not know who is in the table. A
written row may be that of anybody whom its cells cover, so it is put down to the right one with probability 1 / (people whom
its cells cover). This is the risk of a release to a stranger (a *journalist* or *marketer*): it is smaller than that of linkage
inside the table, because more people share the cells than are in it.

The number is the largest probability over all written rows; the mean, and the rows that are expected to be put down right,
stand in the details. Rows whose cells cover nobody in the list are left out and counted: the list is not the whole population
then.

`risk`: the number.
"""

from __future__ import annotations

from typing import Any

from closeknit.attacks.covering import Covering, covering_of
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import format_count
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published

KNOWS = "names and quasi-identifiers of everybody in a population of which the table is a part"


def population_linkage(published: Published, population: Any, schema: Schema | None = None) -> Finding:
    """How well rows can be put down to people of a population file or frame.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> release = ck.anonymize(Columns.of({"age": [30, 40], "ill": ["flu", "gout"]}), schema, [ck.KAnonymity(2)])
    >>> population_linkage(release, Columns.of({"age": [30, 32, 38, 40, 41]})).number
    0.25
    """
    return _build_finding(covering_of(published, population, schema))


def _build_finding(covering: Covering) -> Finding:
    inside = covering.people_in_boxes
    found = inside > 0
    chance = 1 / inside[found]
    rows = int(covering.rows[found].sum())
    right = float((covering.rows[found] * chance).sum())
    worst = float(chance.max(initial=0.0))
    alone = int(covering.rows[inside == 1].sum())
    fewest = int(inside[found].min()) if rows else 0
    return Finding(
        attack="population_linkage",
        knows=KNOWS,
        measure="largest probability to put a row down to the right person",
        number=worst if rows else None,
        risk=worst,
        sentence=f"At least {format_count(fewest, 'person', 'people')} of the population may be behind a row"
        + (f"; for {format_count(alone, 'row')} it is only one" if alone else "")
        + f". Of {format_count(rows, 'row')} {right:,.1f} would be put down to the right person."
        if rows
        else "Nobody of the list fits any row.",
        details={
            "columns": ", ".join(covering.names),
            "rows": rows,
            "mean": right / rows if rows else None,
            "rows_put_down_right": right,
            "rows_of_one_person": alone,
            "rows_that_cover_nobody": int(covering.rows[~found].sum()),
            "fewest_people": fewest,
        },
    )

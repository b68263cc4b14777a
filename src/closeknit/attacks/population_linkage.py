"""Linkage with a population: to whom does a row belong?

The adversary has a list of the whole population with names and quasi-identifiers, and does not know who is in the table. A
written row may belong to anyone whom its cells cover, so it is assigned to the right person with probability
1 / (people whom its cells cover). This is the risk from a recipient without inside knowledge (a *journalist* or *marketer*): it
is smaller than that of linkage inside the table, because more people share the cells than are in it.

The number is the largest probability over all written rows; the details give the mean and the expected number of rows assigned
to the right person. Rows whose cells cover no one in the list are left out and counted: the list is then not the whole
population.

`risk`: the number.
"""

from __future__ import annotations

from typing import Any

from closeknit.attacks.covering import covering_of
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import format_count
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published

KNOWS = "names and quasi-identifiers of the population from which the table is drawn"


def population_linkage(published: Published, population: Any, schema: Schema | None = None) -> Finding:
    """Measure how well rows can be assigned to people of a population.

    Args:
        published: A release whose cells belong together.
        population: People with quasi-identifiers as a frame, file or `Columns`.
        schema: Schema of the population's columns; None reads it from the certificate as far as possible.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> release = ck.anonymize(Columns.of({"age": [30, 40], "ill": ["flu", "gout"]}), schema, [ck.KAnonymity(2)])
    >>> population_linkage(release, Columns.of({"age": [30, 32, 38, 40, 41]})).number
    0.25
    """
    covering = covering_of(published, population, schema)
    inside = covering.people_in_boxes
    found = inside > 0
    chance = 1 / inside[found]
    rows = int(covering.rows[found].sum())
    right = float((covering.rows[found] * chance).sum())
    worst = float(chance.max(initial=0.0))
    alone = int(covering.rows[inside == 1].sum())
    fewest = int(inside[found].min()) if rows else 0
    only = f"; {format_count(alone, 'row matches', 'rows match')} only one" if alone else ""
    return Finding(
        attack="population_linkage",
        knows=KNOWS,
        measure="largest probability of assigning a row to the right person",
        number=worst if rows else None,
        risk=worst,
        sentence=f"Each row matches at least {format_count(fewest, 'person', 'people')} of the population{only}. An adversary "
        f"who assigns a person to each of {format_count(rows, 'row')} is right for {right:,.1f} on average."
        if rows
        else "No person in the list matches a row.",
        details={
            "columns": ", ".join(covering.names),
            "rows": rows,
            "mean": right / rows if rows else None,
            "rows_put_down_right": right,
            "rows_of_one_person": alone,
            "rows_that_cover_no_one": int(covering.rows[~found].sum()),
            "fewest_people": fewest,
        },
    )

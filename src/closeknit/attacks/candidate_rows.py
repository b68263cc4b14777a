"""Candidate rows: how many rows of the release may be those of somebody who is known to be in the table?

The attacker knows the quasi-identifiers of its victim and that the victim is in the table. Classes may overlap: every written
row whose cells cover the victim is a candidate, not only those of the victim's own class. So the right row is picked with
probability 1 / candidates. Only the original rows tell where the victims stand, so it is measured at home.

`risk`: the largest such probability, which is also the number. It is at most 1 / k where k-anonymity is kept; the mean tells
how much overlapping classes help beyond that.

Rows that no written row covers (they were suppressed) are left out and counted.
"""

from __future__ import annotations

from typing import Any

from closeknit.attacks.covering import Covering, covering_of
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_count
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published


def candidate_rows(published: Published, original: Any, schema: Schema | None = None) -> Finding:
    """How many written rows cover each original one.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [30, 40, 50, 60], "ill": ["flu", "gout", "flu", "gout"]})
    >>> found = candidate_rows(ck.anonymize(table, schema, [ck.KAnonymity(2)]), table)
    >>> found.number, found.details["fewest"]
    (0.5, 2)
    """
    return _build_finding(covering_of(published, original, schema))


def _build_finding(covering: Covering) -> Finding:
    covering_rows = covering.rows_over_points()
    found = covering_rows > 0
    people, rows = covering.people[found], covering_rows[found]
    worst = float((1 / rows).max(initial=0.0))
    count = int(people.sum())
    alone = int(people[rows == 1].sum())
    mean = float((people / rows).sum() / count) if count else None
    fewest = int(rows.min()) if count else 0
    return Finding(
        attack="candidate_rows",
        knows=IN_TABLE,
        measure="largest probability to pick the victim's row",
        number=worst if count else None,
        risk=worst,
        sentence=f"For each of {format_count(count, 'row')} of the table there {'is' if fewest == 1 else 'are'} "
        f"{format_count(fewest, 'row')} or more in the release that may be it: at worst the right one is picked "
        f"{certainty(worst)}, {certainty(mean)} on average."
        if mean is not None
        else "No row of the release covers any of the table.",
        details={
            "columns": ", ".join(covering.names),
            "people": count,
            "fewest": fewest,
            "mean": mean,
            "one_candidate": alone,
            "people_whom_nothing_covers": int(covering.people[~found].sum()),
        },
    )

"""Candidate rows: how many rows of the release may belong to a person known to be in the table?

The adversary knows the quasi-identifiers of a person and that the person is in the table. Classes may overlap: every written
row whose cells cover the person is a candidate, not only those of the person's class. The right row is picked with
probability 1 / candidates. The original rows are needed to locate people, so this is measured privately.

`risk`: the largest such probability, which is also the number. It is at most 1 / k where k-anonymity is met; the mean shows how
much overlapping classes help beyond that.

Rows that no written row covers (suppressed rows) are left out and counted.
"""

from __future__ import annotations

from typing import Any

from closeknit.attacks.covering import covering_of
from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import IN_TABLE, certainty, format_count
from closeknit.core.schema import Schema
from closeknit.forms.release_reading import Published


def candidate_rows(published: Published, original: Any, schema: Schema | None = None) -> Finding:
    """Measure how many written rows cover each original one.

    Args:
        published: A release whose cells belong together.
        original: The original rows as a frame, file or `Columns`.
        schema: Schema of the original rows; None reads it from the certificate as far as possible.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [30, 40, 50, 60], "ill": ["flu", "gout", "flu", "gout"]})
    >>> found = candidate_rows(ck.anonymize(table, schema, [ck.KAnonymity(2)]), table)
    >>> found.number, found.details["fewest"]
    (0.5, 2)
    """
    covering = covering_of(published, original, schema)
    covering_rows = covering.rows_over_points()
    found = covering_rows > 0
    people, rows = covering.people[found], covering_rows[found]
    worst = float((1 / rows).max(initial=0.0))
    count = int(people.sum())
    mean = float((people / rows).sum() / count) if count else None
    fewest = int(rows.min()) if count else 0
    return Finding(
        attack="candidate_rows",
        knows=IN_TABLE,
        measure="largest probability of picking the person's row",
        number=worst if count else None,
        risk=worst,
        sentence=f"Each of {format_count(count, 'row')} of the table has at least {format_count(fewest, 'candidate')} in the "
        f"release; in the worst case the right one is picked {certainty(worst)}, {certainty(mean)} on average."
        if mean is not None
        else "No row of the release covers a row of the table.",
        details={
            "columns": ", ".join(covering.names),
            "people": count,
            "fewest": fewest,
            "mean": mean,
            "one_candidate": int(people[rows == 1].sum()),
            "people_whom_nothing_covers": int(covering.people[~found].sum()),
        },
    )

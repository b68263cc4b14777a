"""Time: rows of a stream that leave alone are told from all others by when they leave.

The attacker knows roughly when its victim came, and sees when rows leave. A generalization that was published before may be
used again for a single row. As a class it has k persons, but whoever knows that the victim came after the others had left has
one candidate.

The number is the share of rows that left in a batch of their own, with a generalization that was published before. `risk`: 1
where there is such a row, since its candidate is the only one; 0 where there is none.

Source: the thesis on SABRE and BUREL, ch. 5. Different from the source: there such knowledge is excluded; here it is what an
attacker has who sees a log. Another tell of reuse, that a row which was merged lay in no stored generalization, is not
measured: what was stored at that time is not counted by a stream. Both are gone where nothing is reused, as is usual.
"""

from __future__ import annotations

from typing import Protocol

from closeknit.attacks.finding import Finding
from closeknit.attacks.finding_texts import format_count


class EmittedCounts(Protocol):
    """What a stream counts: its `counters`."""

    rows_out: int
    reused: int


def temporal(counters: EmittedCounts) -> Finding:
    """How many rows of a stream left alone; `counters` as a stream has them.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    >>> table = Columns.of({"age": [30, 31, 70, 30, 31], "ill": ["flu"] * 5})
    >>> found = []
    >>> for reuse in (False, True):
    ...     stream = ck.Castle(schema, k=2, delta=1, reuse=reuse, seed=2**64)
    ...     _ = ck.replay(stream, table)
    ...     found.append(temporal(stream.counters).details["alone"])
    >>> found
    [0, 1]
    """
    alone, rows = counters.reused, counters.rows_out
    share = alone / rows if rows else None
    told = f"{format_count(alone, 'row')} of {rows:,} left alone, with a generalization that was published before"
    end = ": whoever knows that somebody came after that has one candidate." if alone else "."
    return Finding(
        attack="temporal",
        knows="quasi-identifiers of somebody, and roughly when the person came",
        measure="share of rows that left in a batch of one",
        number=share,
        risk=1.0 if alone else 0.0,
        sentence=told + end,
        details={"alone": alone, "rows": rows},
    )

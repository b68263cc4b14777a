"""Time: rows of a stream that are published alone are identified by the time of publication.

The adversary knows roughly when a person's row arrived, and sees when rows are published. An earlier generalization may be
reused for a single row. As a class it has k persons, but an adversary who knows that the row arrived after the others were
published has one candidate.

The number is the share of rows that were published in a batch of their own with an earlier generalization. `risk`: 1 where
there is such a row, since it is the only candidate; 0 where there is none.

Source: the thesis on SABRE and BUREL, ch. 5. Different from the source: the source excludes such knowledge; an adversary who
sees a log has it. Another effect of reuse, that a merged row lay in no stored generalization, is not measured: a stream does
not record what was stored at that time. Neither exists where nothing is reused, which is the default.
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
    """Measure how many rows of a stream were published alone.

    Args:
        counters: The `counters` of a stream.

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
    end = ": an adversary who knows that a row arrived later has one candidate." if alone else "."
    return Finding(
        attack="temporal",
        knows="quasi-identifiers of a person, and roughly when the person's row arrived",
        measure="share of rows that were published in a batch of one",
        number=alone / rows if rows else None,
        risk=1.0 if alone else 0.0,
        sentence=f"{alone:,} of {format_count(rows, 'row')} {'was' if alone == 1 else 'were'} published alone with an earlier "
        f"generalization{end}",
        details={"alone": alone, "rows": rows},
    )

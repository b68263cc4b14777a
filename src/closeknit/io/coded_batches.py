"""Arrow batches as `Columns`: each batch is coded when it arrives, so that memory is bounded by the coded table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from closeknit.core.columns import Columns
from closeknit.core.errors import refuse_empty
from closeknit.io.arrow import column_from_arrow
from closeknit.io.batches import cells_in


def columns_from_batches(batches: Iterable[pa.RecordBatch], names: Sequence[str], place: object) -> Columns:
    """The rows of all batches.

    Args:
        batches: batches with the same columns.
        names: the columns, in this order.
        place: the table in messages.

    >>> batch = pa.record_batch({"age": [30, 31], "sex": ["f", None]})
    >>> columns_from_batches([batch, batch], ["sex"], "people")["sex"].cells()
    ['f', None, 'f', None]
    """
    parts: dict[str, list[pa.Array]] = {name: [] for name in names}
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        for name in names if batch.num_rows else ():
            cells = batch.column(name)
            if pa.types.is_nested(cells.type) or pa.types.is_binary(cells.type):
                column_from_arrow(pa.chunked_array([cells]), name, place)  # refuses it
            parts[name].append(cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode())
    refuse_empty(rows, place)
    return cells_in(pa.table({name: pa.chunked_array(parts[name]) for name in names}), names)

"""Published cells that a reader has to know of: those that a spreadsheet may run, and sensitive values that look alike.

Distinct values of a stream are not kept, so a column is noted once such cells were published, and look-alike values are counted
by the classes that have them. Guarantees hold with them counted as one, and as written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from unicodedata import unidata_version

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import parts
from closeknit.core.folding import first_alike
from closeknit.core.formulas import SIGNS, formula_notes, is_formula
from closeknit.core.kinds import texts_of
from closeknit.core.model import Model

if TYPE_CHECKING:
    from closeknit.streams.stream import Stream

FIRST = ("=", "+", "-", "@", "\t", "\r")  # of a formula


def count_cells(stream: Stream, written: Columns, sizes: Sequence[int]) -> None:
    """Remember the columns of published classes that have formulas, and count the classes that have look-alike values.

    Args:
        stream: the stream.
        written: the cells, class after class.
        sizes: rows of each class.
    """
    formulas = stream.counters.formulas
    for name, column in written.items():
        if name not in formulas and column.values.dtype.kind == "O":
            starts = (text for text in texts_of(column.values) if text.startswith(FIRST))
            if any(is_formula(text) for text in starts):
                formulas.append(name)
                formulas.sort()
    for name in {name for model in stream.models for name in parts(model.column)}:
        column = written[name]
        alike = first_alike(texts_of(column.values)) if column.values.dtype.kind == "O" else None
        if alike is not None:
            counts = [_has_alike(codes[codes >= 0], alike) for codes in np.split(column.codes, np.cumsum(sizes)[:-1])]
            if any(counts):
                stream.counters.alike[name] = stream.counters.alike.get(name, 0) + sum(counts)


def _has_alike(codes: NDArray[np.int32], alike: NDArray[np.int32]) -> bool:
    found = np.unique(codes)
    return len(np.unique(alike[found])) < len(found)


def list_cells(stream: Stream, models: Sequence[Model], formulas: bool = True) -> list[str]:
    """A sentence for each such column.

    Args:
        stream: the stream.
        models: the guarantees whose columns may have look-alike values.
        formulas: whether cells that a spreadsheet may run are listed.

    >>> import closeknit as ck
    >>> schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    >>> stream = ck.Castle(schema, k=2, l=2, delta=2, seed=1)
    >>> _ = [stream.push({"age": 30, "ill": ill}) for ill in ("=1+1", "flu", "Flu", "gout")], stream.flush()
    >>> list_cells(stream, stream.models)[0]
    "column 'ill': some cells begin like a spreadsheet formula (=, +, -, @, tab or carriage return)"
    """
    counters, said = stream.counters, list[str]()
    if formulas:
        said += [f"column '{name}': some cells begin like a spreadsheet formula ({SIGNS})" for name in counters.formulas]
        said += formula_notes(Columns.of({name: [] for name in stream.schema.published}))
        said += ["a spreadsheet that opens the published rows may run them"] if said else []
    guaranteed = {name for model in models for name in parts(model.column)}
    return said + [
        f"column '{name}': in {counters.alike[name]:,} classes some of its values look alike (Unicode {unidata_version}); each "
        "guarantee about it is judged with them counted as one"
        for name in sorted(guaranteed & counters.alike.keys())
    ]

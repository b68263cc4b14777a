"""Batches of rows to `Columns`, one at a time: memory holds the coded table and few batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput, refuse_empty
from closeknit.io.batches import cells_in

EPOCH = date(1970, 1, 1).toordinal()
ROWS = 65_536  # of a batch
SPARE = 1_000_000
FIRST_DAY, LAST_DAY = date.min.toordinal() - EPOCH, date.max.toordinal() - EPOCH
BINARY = "cells of bytes are not supported"
NO_BYTES = "leave the column out, or convert it to text in the query"


class Coder:
    """One column as it arrives: a code per row, and each distinct value about once; `spare` of them may be held twice."""

    def __init__(self, name: str, place: object, spare: int = SPARE) -> None:
        self.name, self.place, self.spare = name, place, spare
        self.chunks: list[pa.Array] = []
        self.held = self.distinct = 0

    def add(self, cells: pa.Array) -> None:
        plain = self._plain(cells)
        if self.chunks and plain.type != self.chunks[0].type.value_type:  # engines with a type per cell, such as SQLite
            if pa.types.is_null(self.chunks[0].type.value_type) or pa.types.is_null(plain.type):
                known = plain.type if pa.types.is_null(self.chunks[0].type.value_type) else self.chunks[0].type.value_type
            else:
                known = pa.string()
            self.chunks = [_recode(chunk, known) for chunk in self.chunks]
            plain = _cast(plain, known)
        coded = plain.dictionary_encode()
        self.chunks.append(coded)
        self.held += len(coded.dictionary)
        if self.held > 2 * self.distinct + self.spare:
            self.chunks = [self._merge()]
            self.held = self.distinct = len(self.chunks[0].dictionary)

    def _merge(self) -> pa.Array:
        return pa.chunked_array(self.chunks).unify_dictionaries().combine_chunks()

    def _plain(self, cells: pa.Array) -> pa.Array:
        if isinstance(cells, pa.ExtensionArray):
            cells = cells.storage
        kind = cells.type
        if pa.types.is_dictionary(kind):
            return self._plain(cells.cast(kind.value_type))
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
            raise BadInput(BINARY, file=self.place, column=self.name, right=NO_BYTES)
        if pa.types.is_decimal(kind):
            return cells.cast(pa.string())  # exact: a float would add noise
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            self._refuse_far(cells)
        return cells

    def _refuse_far(self, cells: pa.Array) -> None:
        """Refuse an infinite date: a driver returns it as some day in the far past."""
        days = cells.cast(pa.date32(), safe=False) if pa.types.is_timestamp(cells.type) else cells
        found = pc.min_max(days.cast(pa.int32())).as_py()
        if found["min"] is not None and not FIRST_DAY <= found["min"] <= found["max"] <= LAST_DAY:
            right = "replace it by NULL or by another date in a query"
            raise BadInput("a date is infinite, or not in the years 1 to 9999", file=self.place, column=self.name, right=right)

    def finish(self) -> pa.Array:
        return self._merge()


def _recode(chunk: pa.DictionaryArray, kind: pa.DataType) -> pa.DictionaryArray:
    if pa.types.is_null(chunk.type.value_type):
        return pa.nulls(len(chunk), kind).dictionary_encode()
    return pa.DictionaryArray.from_arrays(chunk.indices, _cast(chunk.dictionary, kind))


def _cast(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind) and not pa.types.is_null(cells.type):
        return pa.array([None if cell is None else str(cell) for cell in cells.to_pylist()], pa.string())
    return cells.cast(kind)


def code_batches(batches: Iterable[pa.RecordBatch], names: Sequence[str], place: object, most: int | None = None) -> Columns:
    """The rows of all batches.

    Args:
        batches: the batches; each is encoded before the next one is read.
        names: the columns, as they are called from now on.
        place: the table in messages.
        most: how many rows are read before the table is refused as too large; None = no limit.

    >>> batches = [pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [2, None]})]
    >>> code_batches(batches, ["age"], "clinic")["age"].cells()
    [1, 2, 2, None]
    """
    coders = [Coder(name, place) for name in names]
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if most is not None and rows > most:
            raise BadInput(f"the table has more than {most:,} rows", file=place, right="choose fewer in a query")
        for coder, cells in zip(coders, batch.columns if batch.num_rows else (), strict=bool(batch.num_rows)):
            coder.add(cells)
    refuse_empty(rows, place)
    columns: dict[str, Column] = {}
    while coders:
        coder = coders.pop(0)
        columns |= cells_in(pa.table({coder.name: coder.finish()}), [coder.name]).columns
    return Columns(columns, rows)


def batch_of_rows(rows: Sequence[Sequence[Any]], names: Sequence[str], place: object) -> pa.RecordBatch:
    """Rows of Python values as a batch.

    Args:
        rows: the rows.
        names: the columns.
        place: the table in messages.

    >>> batch_of_rows([(1, Decimal("1.50")), (2, None)], ["a", "b"], "clinic").to_pydict()
    {'a': [1, 2], 'b': ['1.50', None]}
    """
    cells = list(zip(*rows, strict=True))
    arrays = [_array(list(column), name, place) for column, name in zip(cells, names, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def fetch_batches(cursor: Any, place: object, most: int = ROWS) -> Iterator[pa.RecordBatch]:
    """The rows of a cursor as batches.

    Args:
        cursor: of any driver, after its query.
        place: the database, for messages.
        most: the rows of a batch.
    """
    names = [column[0] for column in cursor.description or ()]
    while rows := cursor.fetchmany(most):
        yield batch_of_rows(rows, names, place)


def _array(cells: list[Any], name: str, place: object) -> pa.Array:
    kinds = set(map(type, cells)) - {type(None)}
    if kinds & {bytes, bytearray, memoryview}:
        raise BadInput(BINARY, file=place, column=name, right=NO_BYTES)
    if kinds == {datetime}:
        zoned = any(cell.tzinfo is not None for cell in cells if cell is not None)
        return pa.array(cells, pa.timestamp("us", "UTC" if zoned else None))
    if len(kinds) == 1 and kinds <= {int, float, str, bool, date}:
        try:
            return pa.array(cells)
        except (pa.ArrowException, OverflowError):  # a whole number with more than 64 bits
            pass
    if kinds == {Decimal}:
        return pa.array([None if cell is None else format(cell, "f") for cell in cells], pa.string())
    return pa.array([None if cell is None else str(cell) for cell in cells], pa.string()) if kinds else pa.nulls(len(cells))

"""Blocks of rows as an engine hands them over (Arrow tables) to and from arrays: the door of engines that speak Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.doors.arrow import array_from_column, columns_from_arrow
from closeknit.doors.buffers import numbers_from_arrow, numbers_to_arrow
from closeknit.doors.canonical import canonical_blocks

Block: TypeAlias = pa.Table
Batch: TypeAlias = pa.RecordBatch


def block_of(batches: Iterable[Batch]) -> Block | None:
    """Batches as one block; None where no row came.

    >>> block_of([pa.record_batch({"a": [1]}), pa.record_batch({"a": [2]})]).num_rows
    2
    """
    some = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(some) if some else None


def batches_of(block: Block) -> Iterator[Batch]:
    """A block as an engine takes it back.

    >>> [batch.num_rows for batch in batches_of(block_from({"a": np.arange(3)}))]
    [3]
    """
    yield from block.combine_chunks().to_batches()


def numbers_in(block: Block, name: str) -> NDArray[Any]:
    """One column of numbers without gaps.

    >>> numbers_in(block_from({"a": np.arange(3)}), "a").tolist()
    [0, 1, 2]
    """
    chunks = [numbers_from_arrow(chunk) for chunk in block.column(name).chunks]
    return np.concatenate(chunks) if chunks else np.empty(0, dtype=np.int64)


def codes_in(block: Block, names: Sequence[str]) -> NDArray[np.int32]:
    """Columns of codes side by side.

    >>> codes_in(block_from({"a": np.arange(2), "b": np.arange(2)}), ["b", "a"]).shape
    (2, 2)
    """
    codes = np.empty((block.num_rows, len(names)), dtype=np.int32)
    for j, name in enumerate(names):
        codes[:, j] = numbers_in(block, name)
    return codes


def cells_in(block: Block, names: Sequence[str]) -> Columns:
    """Cells of some columns as any door gives them.

    >>> cells_in(pa.table({"a": ["x", ""], "b": [1, 2]}), ["a"])["a"].cells()
    ['x', None]
    """
    return columns_from_arrow(block.select(list(names))) if names else Columns({}, block.num_rows)


def block_from(columns: Mapping[str, Column | NDArray[np.generic] | pa.ChunkedArray | pa.Array]) -> Block:
    """A block of cells, of numbers, or of columns of another block.

    >>> block_from({"a": np.arange(2), "b": Columns.of({"b": ["x", None]})["b"]}).to_pylist()
    [{'a': 0, 'b': 'x'}, {'a': 1, 'b': None}]
    """
    arrays = {
        name: array_from_column(column)
        if isinstance(column, Column)
        else numbers_to_arrow(column)
        if isinstance(column, np.ndarray)
        else column
        for name, column in columns.items()
    }
    return pa.table(arrays)


def taken(block: Block, name: str, rows: NDArray[np.int64]) -> pa.ChunkedArray:
    """The cells of a column at these places, in their order.

    >>> taken(block_from({"a": np.arange(3)}), "a", np.array([2, 0])).to_pylist()
    [2, 0]
    """
    return block.column(name).take(numbers_to_arrow(rows))


def texts_block(columns: Mapping[str, Sequence[str | bytes | None] | NDArray[np.generic]], binary: Sequence[str] = ()) -> Block:
    """A block of few rows: numbers as they are, all else as texts, or as bytes where the column is named as binary.

    >>> texts_block({"cell": ["a", None], "rows": np.array([1, 2])}).num_rows
    2
    """
    return pa.table({
        name: numbers_to_arrow(cells)
        if isinstance(cells, np.ndarray)
        else pa.array(cells, pa.binary() if name in binary else pa.string())
        for name, cells in columns.items()
    })  # fmt: skip


def told(block: Block) -> dict[str, list[Any]]:
    """The few rows of a small block as plain lists.

    >>> told(block_from({"a": np.arange(2)}))
    {'a': [0, 1]}
    """
    lists: dict[str, list[Any]] = block.to_pydict()
    return lists


def canonical_lines(columns: Columns) -> bytes:
    r"""The canonical text of some rows, without its header.

    >>> canonical_lines(Columns.of({"a": [1, None], "b": ["x", "y"]}))
    b'1,x\n,y\n'
    """
    _, *blocks = canonical_blocks(columns)
    return b"".join(blocks)

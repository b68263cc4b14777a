"""Blocks of rows (Arrow tables) to and from arrays, for Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.io.arrow import array_from_column, column_from_arrow, columns_from_arrow
from closeknit.io.buffers import codes_from_arrow, codes_to_arrow, numbers_from_arrow, numbers_to_arrow
from closeknit.io.canonical import canonical_blocks

Block: TypeAlias = pa.Table
Batch: TypeAlias = pa.RecordBatch
Cells: TypeAlias = Column | NDArray[np.generic] | pa.ChunkedArray | pa.Array

BATCH = 65_536  # rows of a batch


def block_of(batches: Iterable[Batch]) -> Block | None:
    """Batches as one block; None if there are no rows.

    >>> block_of([pa.record_batch({"a": [1]}), pa.record_batch({"a": [2]})]).num_rows
    2
    """
    some = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(some) if some else None


def batches_of(block: Block) -> Iterator[Batch]:
    """A block as batches.

    >>> [batch.num_rows for batch in batches_of(block_from({"a": np.arange(3)}))]
    [3]
    """
    yield from block.combine_chunks().to_batches(max_chunksize=BATCH)


def numbers_in(block: Block, name: str) -> NDArray[Any]:
    """One column of numbers without gaps.

    >>> numbers_in(block_from({"a": np.arange(3)}), "a").tolist()
    [0, 1, 2]
    """
    chunks = [numbers_from_arrow(chunk) for chunk in block.column(name).chunks]
    return np.concatenate(chunks) if chunks else np.empty(0, dtype=np.int64)


def codes_in(block: Block, names: Sequence[str]) -> NDArray[np.int32]:
    """Columns of codes as one matrix.

    >>> codes_in(block_from({"a": np.arange(2), "b": np.arange(2)}), ["b", "a"]).shape
    (2, 2)
    """
    codes = np.empty((block.num_rows, len(names)), dtype=np.int32)
    for j, name in enumerate(names):
        codes[:, j] = numbers_in(block, name)
    return codes


def cells_in(block: Block, names: Sequence[str]) -> Columns:
    """Cells of some columns, as read from any source.

    >>> cells_in(pa.table({"a": ["x", ""], "b": [1, 2]}), ["a"])["a"].cells()
    ['x', None]
    >>> cells_in(encode_block({"a": Columns.of({"a": [3, None]})["a"]}), ["a"])["a"].cells()
    [3, None]
    """
    if any(pa.types.is_dictionary(block.schema.field(name).type) for name in names):
        return Columns({name: _cells(block.column(name), name) for name in names}, block.num_rows)
    return columns_from_arrow(block.select(list(names))) if names else Columns({}, block.num_rows)


def _cells(cells: pa.ChunkedArray, name: str) -> Column:
    """A column that is encoded already: only its distinct values are read."""
    if not pa.types.is_dictionary(cells.type):
        return column_from_arrow(cells, name)
    whole = cells.unify_dictionaries().combine_chunks()
    distinct = column_from_arrow(pa.chunked_array([whole.dictionary]), name)
    return Column(distinct.values, np.append(distinct.codes, -1)[codes_from_arrow(whole.indices)]).drop_unused()


def block_from(columns: Mapping[str, Cells]) -> Block:
    """A block of cells, of numbers, or of columns of another block.

    >>> block_from({"a": np.arange(2), "b": Columns.of({"b": ["x", None]})["b"]}).to_pylist()
    [{'a': 0, 'b': 'x'}, {'a': 1, 'b': None}]
    """
    return _build_table(columns, array_from_column)


def encode_block(columns: Mapping[str, Cells]) -> Block:
    """As `block_from`, for internal use: cells remain distinct values and codes, which `cells_in` reads fast.

    >>> encode_block({"b": Columns.of({"b": ["x", None]})["b"]}).to_pylist()
    [{'b': 'x'}, {'b': None}]
    """
    return _build_table(columns, _encode_column)


def _build_table(columns: Mapping[str, Cells], write: Callable[[Column], pa.Array]) -> Block:
    def array(cells: Cells) -> pa.ChunkedArray | pa.Array:
        return (
            write(cells) if isinstance(cells, Column) else numbers_to_arrow(cells) if isinstance(cells, np.ndarray) else cells
        )

    return pa.table({name: array(cells) for name, cells in columns.items()})


def _encode_column(column: Column) -> pa.Array:
    each = Column(column.values, np.arange(len(column.values), dtype=np.int32))
    return pa.DictionaryArray.from_arrays(codes_to_arrow(column.codes), array_from_column(each))


def take_cells(block: Block, name: str, rows: NDArray[np.int64]) -> pa.ChunkedArray:
    """The cells of a column in these rows, in their order.

    >>> take_cells(block_from({"a": np.arange(3)}), "a", np.array([2, 0])).to_pylist()
    [2, 0]
    """
    return block.column(name).take(numbers_to_arrow(rows))


def rows_at(block: Block, rows: NDArray[np.int64]) -> Block:
    """These rows, in their order.

    >>> rows_at(block_from({"a": np.arange(3)}), np.array([2, 0])).to_pydict()
    {'a': [2, 0]}
    """
    return block.take(numbers_to_arrow(rows))


def texts_block(columns: Mapping[str, Sequence[str | bytes | None] | NDArray[np.generic]], binary: Sequence[str] = ()) -> Block:
    """A block of few rows: numbers, texts, or bytes if the column is named in `binary`.

    >>> texts_block({"cell": ["a", None], "rows": np.array([1, 2])}).num_rows
    2
    """
    return pa.table(
        {
            name: numbers_to_arrow(cells)
            if isinstance(cells, np.ndarray)
            else pa.array(cells, pa.binary() if name in binary else pa.string())
            for name, cells in columns.items()
        }
    )


def read_lists(block: Block) -> dict[str, list[Any]]:
    """A small block as plain lists.

    >>> read_lists(block_from({"a": np.arange(2)}))
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

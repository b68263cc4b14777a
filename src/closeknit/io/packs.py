"""Packs: blocks of many rows as bytes in narrow types, each with the number of its place.

Spark then moves and stores one large value instead of many rows with many cells.

>>> batch = batch_of([(1, pack_narrow(pa.table({"age": [30, 31]}))), (0, pack_narrow(pa.table({"age": [30_000]})))])
>>> merge_blocks(blocks_in([batch])).to_pydict()
{'age': [30, 31, 30000]}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from closeknit.io.batches import Batch, Block
from closeknit.io.buffers import numbers_from_arrow, numbers_to_arrow
from closeknit.io.packets import pack_block

TYPES = {"place": "int", "pack": "binary"}  # of a batch of packs
WIDTHS = (pa.int8(), pa.int16(), pa.int32())


def pack_narrow(block: Block) -> bytes:
    """One pack; whole numbers without gaps and codes get narrower types, everything else keeps its type."""
    whole = block.unify_dictionaries().combine_chunks()
    return pack_block(pa.table({name: _narrow(whole.column(name)) for name in whole.column_names}))


def batch_of(packs: Sequence[tuple[int, bytes]]) -> Batch:
    """Packs as a batch, each with its place."""
    places = numbers_to_arrow(np.array([place for place, _ in packs], dtype=np.int32))
    return pa.record_batch({"place": places, "pack": pa.array([pack for _, pack in packs], pa.binary())})


def blocks_in(batches: Iterable[Batch]) -> Iterator[Block]:
    """The rows of each pack."""
    for batch in batches:
        for pack in batch.column("pack"):
            yield pa.ipc.open_stream(pack.as_buffer()).read_all()


def blocks_of(batches: Iterable[Batch], rows: int) -> Iterator[Block]:
    """Batches of plain rows as blocks of at most this many rows, unless a single batch has more.

    >>> [block.num_rows for block in blocks_of([pa.record_batch({"a": [1, 2]})] * 5, 5)]
    [4, 4, 2]
    """
    some: list[Batch] = []
    held = 0
    for batch in batches:
        if some and held + batch.num_rows > rows:
            yield pa.Table.from_batches(some)
            some, held = [], 0
        if batch.num_rows:
            some.append(batch)
            held += batch.num_rows
    if some:
        yield pa.Table.from_batches(some)


def merge_blocks(blocks: Iterable[Block]) -> Block | None:
    """The rows of all blocks; None if there are none.

    >>> cells = [pa.table({"a": pa.array(range(i, i + 100)).dictionary_encode()}) for i in (0, 100)]
    >>> whole = merge_blocks(block for cell in cells for block in blocks_in([batch_of([(0, pack_narrow(cell))])]))
    >>> whole.unify_dictionaries().combine_chunks().num_rows
    200
    """
    some = list(blocks)
    if len(some) < 2:
        return some[0] if some else None
    return pa.table(
        {
            name: _widen_arrays([chunk for block in some for chunk in block.column(name).chunks], name, some[0])
            for name in some[0].column_names
        }
    )


def parts_of(block: Block, group_of: NDArray[np.integer]) -> Iterator[tuple[int, Block]]:
    """The rows of each group that is not empty, with its number.

    >>> [(number, part.to_pydict()) for number, part in parts_of(pa.table({"a": [1, 2, 3]}), np.array([4, 0, 4]))]
    [(0, {'a': [2]}), (4, {'a': [1, 3]})]
    """
    if len(group_of) and group_of.min() == group_of.max():
        yield int(group_of[0]), block
        return
    order = np.argsort(group_of, kind="stable")
    yield from pieces_of(block.take(numbers_to_arrow(order)), group_of[order])


def pieces_of(block: Block, group_of: NDArray[np.integer]) -> Iterator[tuple[int, Block]]:
    """The same if rows of a group are adjacent already."""
    starts = np.flatnonzero(np.diff(group_of, prepend=group_of[:1] - 1)).tolist()
    for start, end in zip(starts, [*starts[1:], len(group_of)], strict=True):
        yield int(group_of[start]), block.slice(start, end - start)


def _narrow(cells: pa.ChunkedArray) -> pa.Array:
    array = cells.combine_chunks() if cells.num_chunks != 1 else cells.chunk(0)
    if pa.types.is_dictionary(array.type):
        return _narrow_dictionary(array)
    if not pa.types.is_signed_integer(array.type) or array.null_count or not len(array):
        return array
    numbers = numbers_from_arrow(array)
    least, most = int(numbers.min()), int(numbers.max())
    fits = [np.dtype(f"i{width}") for width in (1, 2, 4) if -(1 << (8 * width - 1)) <= least and most < 1 << (8 * width - 1)]
    return numbers_to_arrow(numbers.astype(fits[0])) if fits and fits[0].itemsize < numbers.itemsize else array


def _narrow_dictionary(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Only the values that occur, in codes as narrow as these allow."""
    array = array.dictionary_decode().dictionary_encode() if 2 * len(array) < len(array.dictionary) else array
    width = next(kind for kind in WIDTHS if len(array.dictionary) < 1 << (kind.bit_width - 1))
    return pa.DictionaryArray.from_arrays(array.indices.cast(width), array.dictionary)


def _widen_arrays(arrays: list[pa.Array], name: str, block: Block) -> pa.ChunkedArray:
    """Arrays of one column that were packed separately and have different widths."""
    kinds = {array.type for array in arrays}
    if not kinds:
        return block.column(name)
    if all(map(pa.types.is_dictionary, kinds)):  # all values together may exceed the codes of each
        return pa.chunked_array([pa.DictionaryArray.from_arrays(a.indices.cast(pa.int32()), a.dictionary) for a in arrays])
    if len(kinds) == 1:
        return pa.chunked_array(arrays)
    widest = max(kinds, key=lambda kind: kind.bit_width)
    return pa.chunked_array([array.cast(widest) for array in arrays])

"""Sorting all rows of packs: sampled keys decide where partitions begin, each pack is split there, each partition is sorted.

Rows are ordered by words (codes in as few 64-bit numbers as possible), then by plain cells, missing ones last. There may be
more equal rows than a partition should hold. So they are salted: the place of a row in a run of equal rows of a pack, from 0
to 1, is the last part of its key, and a partition may begin inside the run. Where partitions begin does not change the
result.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column
from closeknit.core.kinds import texts_of
from closeknit.core.row_sorting import Coded, row_order
from closeknit.forms.cell_labels import cell_key, cell_order
from closeknit.io.batches import Block, cells_in, read_lists, rows_at, texts_block
from closeknit.io.packs import pieces_of
from closeknit.spark.packed_frame import PackedFrame

KEYS = 64  # sampled keys per partition
GOLDEN = 0.6180339887498949  # its multiples are evenly spread, whatever their number

Words = Callable[[Block], list[NDArray[np.uint64]]]
Key = tuple[Any, ...]


def sort_packs(packs: PackedFrame, words_of: Words, plain: Sequence[str], rows: int, count: int) -> PackedFrame:
    """All `rows` of the packs, sorted over `count` partitions."""
    bounds = _bounds(packs, words_of, plain, rows, count) if count > 1 else []

    def split_block(block: Block) -> Iterator[tuple[int, Block]]:
        if not bounds:
            return iter([(0, block)])
        known = _BlockOrder(block, words_of(block), plain)
        ends = [bisect_left(range(len(known)), bound, key=known.key) for bound in bounds]
        return pieces_of(rows_at(block, known.order), np.searchsorted(ends, np.arange(len(known)), side="right"))

    def sort_block(block: Block) -> Block:
        return rows_at(block, _BlockOrder(block, words_of(block), plain).order)

    return packs.repartition_parts(split_block, count).each(sort_block)


class _BlockOrder:
    """The order of a block, and the key of each row in it."""

    def __init__(self, block: Block, words: list[NDArray[np.uint64]], plain: Sequence[str]) -> None:
        self.words, self.plain = words, list(cells_in(block, plain).values())
        self.columns: list[Coded] = [(word, 1 << 64) for word in words]
        self.columns += map(cell_order, self.plain)
        self.order = row_order(self.columns, block.num_rows)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first row of each run of equal rows."""
        fresh = np.zeros(len(self.order), dtype=bool)
        fresh[:1] = True
        for column, _ in self.columns:
            fresh[1:] |= np.diff(column[self.order]) != 0
        return np.flatnonzero(fresh)

    def __len__(self) -> int:
        return len(self.order)

    def key(self, place: int) -> Key:
        """The key of the row at a place in the order."""
        run = int(np.searchsorted(self.starts, place, side="right")) - 1
        start, end = int(self.starts[run]), int(np.append(self.starts[run + 1 : run + 2], len(self))[0])
        return _key(self.words, self.plain, int(self.order[place]), (place - start) / (end - start))


def _key(words: list[NDArray[np.uint64]], plain: Sequence[Column], row: int, salt: float) -> Key:
    cells = (texts_of(column.values[column.codes[row : row + 1]]) if column.codes[row] >= 0 else [] for column in plain)
    return (*(int(word[row]) for word in words), *((0, cell_key(cell[0])) if cell else (1,) for cell in cells), salt)


def _bounds(packs: PackedFrame, words_of: Words, plain: Sequence[str], rows: int, count: int) -> list[Key]:
    """The first key of every partition but the first, chosen by an executor from sampled keys of all packs."""

    def draw_keys(block: Block) -> Block:
        wanted = min(-(-KEYS * count * block.num_rows // rows), block.num_rows)
        few = rows_at(block, np.linspace(0, block.num_rows - 1, wanted).astype(np.int64))
        words, cells = words_of(few), list(cells_in(few, plain).values())
        keys = [_key(words, cells, row, (row + 1) * GOLDEN % 1) for row in range(wanted)]
        return texts_block({"keys": [pickle.dumps(keys)]}, ("keys",))

    def choose_bounds(block: Block) -> Block:
        keys = sorted(key for part in read_lists(block)["keys"] for key in pickle.loads(part))
        return texts_block({"keys": [pickle.dumps([keys[len(keys) * i // count] for i in range(1, count)])]}, ("keys",))

    found = packs.each(draw_keys).repartition_parts(lambda block: [(0, block)], 1).each(choose_bounds).rows({"keys": "binary"})
    (bounds,) = read_lists(found.toArrow())["keys"]
    keys: list[Key] = pickle.loads(bounds)
    return keys

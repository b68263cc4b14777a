"""The places of sorted rows, and the content hash of a release in several partitions.

The sizes of persisted partitions are known, so each executor knows the place of its rows in the release, and blocks of the
content hash begin and end where they do in a file. A block inside one partition is hashed there; of a block across several
partitions only the text moves. The driver gets one digest per block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from closeknit.core.columns import NO_CELLS, Columns
from closeknit.io.batches import Block, block_from, canonical_lines, numbers_in, read_lists, texts_block
from closeknit.io.canonical import BLOCK_ROWS, canonical_blocks, digest, hash_of_digests
from closeknit.spark.maps import partition_number
from closeknit.spark.packed_frame import PackedFrame


def offsets(packs: PackedFrame, name: str | None = None) -> dict[tuple[int, ...], int]:
    """The rows before each partition of persisted packs; with `name`, for each number of that column, by partition and
    number.
    """

    def count_rows(block: Block) -> Block:
        numbers, rows = np.unique(numbers_in(block, name) if name else np.zeros(block.num_rows, np.int64), return_counts=True)
        parts = np.full(len(rows), partition_number(), dtype=np.int64)
        return block_from({"part": parts, "number": numbers.astype(np.int64), "rows": rows.astype(np.int64)})

    found = read_lists(packs.each(count_rows).rows({"part": "bigint", "number": "bigint", "rows": "bigint"}).toArrow())
    before: dict[tuple[int, ...], int] = {}
    running: dict[int, int] = {}
    for part, number, rows in sorted(zip(found["part"], found["number"], found["rows"], strict=True)):
        before.setdefault((part, number) if name else (part,), running.get(number, 0))
        running[number] = running.get(number, 0) + rows
    return before


def content_hash_of(
    packs: PackedFrame, columns_of: Callable[[Block], Columns], names: list[str], places: Mapping[tuple[int, ...], int]
) -> str:
    """The content hash of persisted packs in the order of their partitions.

    Args:
        packs: the rows.
        columns_of: returns the cells of a block.
        names: the columns.
        places: the `offsets` of the packs.
    """
    before = packs.share(places)

    def pieces(block: Block) -> Block:
        return _pieces(columns_of(block), before.value[(partition_number(),)])

    count = len(places)
    split = packs.whole().each(pieces).repartition(lambda block: numbers_in(block, "block") % count, count)
    lists = read_lists(split.each(_join_pieces).rows({"block": "bigint", "whole": "binary"}).toArrow())
    digests: dict[Any, Any] = dict(zip(lists["block"], lists["whole"], strict=True))
    (header,) = canonical_blocks(Columns(dict.fromkeys(names, NO_CELLS), 0))
    return hash_of_digests([digest(header), *(digests[block] for block in sorted(digests))])


def _pieces(columns: Columns, first: int) -> Block:
    """Digests of the complete blocks in these rows, and the text of those that may continue in other partitions."""
    last = first + columns.rows
    cuts = [first, *range((first // BLOCK_ROWS + 1) * BLOCK_ROWS, last, BLOCK_ROWS), last]
    blocks, wholes, texts = [], [], []
    for start, end in pairwise(cuts):
        text = canonical_lines(columns.take(np.arange(start - first, end - first)))
        whole = end - start == BLOCK_ROWS
        blocks.append(start // BLOCK_ROWS)
        wholes.append(digest(text) if whole else None)
        texts.append(None if whole else text)
    numbers = {"block": np.array(blocks, np.int64), "first": np.array(cuts[:-1], np.int64)}
    return texts_block({**numbers, "whole": wholes, "text": texts}, ("whole", "text"))


def _join_pieces(pieces: Block) -> Block:
    """The digest of each block, whole or in pieces."""
    lists, digests = read_lists(pieces), dict[int, Any]()
    for block, parts in groupby(sorted(range(pieces.num_rows), key=lists["first"].__getitem__), key=lists["block"].__getitem__):
        some = list(parts)
        digests[block] = lists["whole"][some[0]] or digest(b"".join(lists["text"][i] for i in some))
    return texts_block({"block": np.array(list(digests), np.int64), "whole": list(digests.values())}, ("whole",))

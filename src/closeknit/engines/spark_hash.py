"""Where sorted rows stand, and the content hash of a release that is spread over partitions.

Partitions of a persisted frame have known sizes, so each row's place in the whole is known where it lies, and blocks of the
content hash begin and end where they do in a file. Blocks inside one partition are hashed there; of those that lie across two
or more only their text moves; what comes to the driver is a digest a block.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.doors.batches import Block, canonical_lines, numbers_in, texts_block, told
from closeknit.doors.canonical import BLOCK_ROWS, canonical_blocks, digest, hash_of_digests
from closeknit.engines.spark_maps import each_group, each_partition, place_of_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def offsets(frame: DataFrame, *names: str) -> dict[tuple[Any, ...], int]:
    """Rows before each partition of a persisted frame; with names: of these with equal cells, by partition and cells."""
    from pyspark.sql import functions as F

    counted = frame.groupBy(F.spark_partition_id().alias("part"), *names).count().collect()
    before: dict[tuple[Any, ...], int] = {}
    running: dict[tuple[Any, ...], int] = {}
    for row in sorted(counted, key=lambda row: row["part"]):
        cells = tuple(row[name] for name in names)
        before[(row["part"], *cells)] = running.get(cells, 0)
        running[cells] = running.get(cells, 0) + row["count"]
    return before


def content_hash_of(frame: DataFrame, columns_of: Callable[[Block], Columns], names: list[str],
                    places: dict[tuple[Any, ...], int]) -> str:  # fmt: skip
    """The content hash of a persisted frame in the order of its partitions.

    `columns_of` shows the cells of a block; `places` are the frame's `offsets`.
    """
    before = frame.sparkSession.sparkContext.broadcast(places)

    def pieces(block: Block) -> Block:
        return _pieces(columns_of(block), before.value[(place_of_partition(),)])

    types = {"block": "bigint", "first": "bigint", "whole": "binary", "text": "binary"}
    split = each_partition(frame, pieces, types)
    found = each_group(split, "block", BLOCK_ROWS * len(places), _joined, {"block": "bigint", "whole": "binary"})
    lists = told(found.toArrow())
    digests: dict[Any, Any] = dict(zip(lists["block"], lists["whole"], strict=True))
    nothing = Column(np.empty(0, dtype=object), np.empty(0, dtype=np.int32))
    (header,) = canonical_blocks(Columns(dict.fromkeys(names, nothing), 0))
    return hash_of_digests([digest(header), *(digests[block] for block in sorted(digests))])


def _pieces(columns: Columns, first: int) -> Block:
    """Digests of the blocks that lie in these rows wholly, the text of those that may go on elsewhere."""
    last = first + columns.rows
    cuts = [first, *range((first // BLOCK_ROWS + 1) * BLOCK_ROWS, last, BLOCK_ROWS), last]
    blocks, wholes, texts = [], [], []
    for start, end in pairwise(cuts):
        text = canonical_lines(columns.take(np.arange(start - first, end - first)))
        whole = end - start == BLOCK_ROWS
        blocks.append(start // BLOCK_ROWS)
        wholes.append(digest(text) if whole else None)
        texts.append(None if whole else text)
    firsts = np.array(cuts[:-1], dtype=np.int64)
    return texts_block(
        {"block": np.array(blocks, np.int64), "first": firsts, "whole": wholes, "text": texts}, ("whole", "text")
    )


def _joined(pieces: Block) -> Block:
    """The digest of one block, whole or in pieces."""
    lists = told(pieces)
    order = np.argsort(numbers_in(pieces, "first"))
    whole: Any = lists["whole"][0] or digest(b"".join(lists["text"][i] for i in order))  # type: ignore[misc]
    return texts_block({"block": numbers_in(pieces, "block")[:1], "whole": [whole]}, ("whole",))

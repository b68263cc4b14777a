"""Rows on Spark in packs: a row of Spark is a block of many of ours, so that Spark moves and keeps few and large things.

Spark takes longer to turn rows into Arrow and back than compiled loops take to work on them. So a table's rows cross once when
they are read and once when they are shown; in between a pack is bytes to Spark, and what sorts, counts or parts its rows is our
own code. Steps that follow each other are done in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from closeknit.io.batches import Batch, Block, batches_of
from closeknit.io.packs import TYPES, batch_of, blocks_in, blocks_of, merge_blocks, pack_narrow, parts_of
from closeknit.spark.maps import MANY, Types, Work, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Source = Literal["rows", "packs", "partitions"]  # plain rows; each pack by itself; all packs of a partition as one block
Splitter = Callable[[Block], Iterable[tuple[int, Block]]]


@dataclass(frozen=True, eq=False)
class PackedFrame:
    """A frame, and what is done to its blocks before anything else sees them."""

    frame: DataFrame
    source: Source
    steps: tuple[Work, ...] = ()

    @classmethod
    def of(cls, frame: DataFrame) -> PackedFrame:
        """Plain rows, to be packed."""
        return cls(frame, "rows")

    def each(self, work: Work) -> PackedFrame:
        """With this done to every block."""
        return replace(self, steps=(*self.steps, work))

    def persist(self) -> PackedFrame:
        """Kept by Spark as soon as it has been asked for.

        Spark takes what it keeps for every frame that is made in the same way, also after a run that failed, and when the file
        has become another one meanwhile. So this is made in a way of its own.
        """
        own = uuid4().hex

        def whole(block: Block, own: str = own) -> list[tuple[int, Block]]:
            return [(0, block)]

        return PackedFrame(self._pack(whole).persist(), "packs")

    def unpersist(self) -> None:
        """Kept no longer."""
        self.frame.unpersist()

    def whole(self) -> PackedFrame:
        """The same packs, all of a partition as one block."""
        assert not self.steps, "what was done to each pack is not done to all of them together"
        return replace(self, source="partitions")

    def repartition(self, places_of: Callable[[Block], NDArray[np.integer]], places: int) -> PackedFrame:
        """Rows moved to the partitions with these numbers, which are less than `places`."""
        return self.repartition_parts(lambda block: parts_of(block, places_of(block)), places)

    def repartition_parts(self, parts: Splitter, places: int) -> PackedFrame:
        """The same, where parts of a block come with the numbers of their partitions."""
        return PackedFrame(self._pack(parts).repartitionById(places, "place"), "partitions")

    def rows(self, types: Types) -> DataFrame:
        """As plain rows of Spark."""
        source, steps = self.source, self.steps

        def map_batches(batches: Iterable[Batch]) -> Iterator[Batch]:
            for block in _apply_steps(source, steps, batches):
                yield from batches_of(block)

        return self.frame.mapInArrow(map_batches, ddl(types))

    def _pack(self, parts: Splitter) -> DataFrame:
        source, steps = self.source, self.steps

        def map_batches(batches: Iterable[Batch]) -> Iterator[Batch]:
            for block in _apply_steps(source, steps, batches):
                for start in range(0, block.num_rows, MANY):
                    for place, part in parts(block.slice(start, MANY)):
                        yield batch_of([(place, pack_narrow(part))])

        return self.frame.mapInArrow(map_batches, ddl(TYPES))


def _apply_steps(source: Source, steps: tuple[Work, ...], batches: Iterable[Batch]) -> Iterator[Block]:
    blocks: Iterable[Block | None] = blocks_of(batches, MANY) if source == "rows" else blocks_in(batches)
    for found in [merge_blocks(blocks_in(batches))] if source == "partitions" else blocks:
        block = found
        for step in steps:
            block = None if block is None else step(block)
        if block is not None and block.num_rows:
            yield block

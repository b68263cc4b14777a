"""Rows on Spark in packs: a row of Spark holds a block of many rows, so that Spark moves and stores few large objects.

Converting rows to Arrow and back takes Spark longer than compiled loops take to process them. So the rows of a table are
converted once when they are read and once when they are returned; in between a pack is bytes to Spark, and our own code sorts,
counts and splits its rows. Consecutive steps run in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from closeknit.io.batches import Batch, Block, batches_of
from closeknit.io.packs import TYPES, batch_of, blocks_in, blocks_of, merge_blocks, pack_narrow, parts_of
from closeknit.spark.maps import MANY, Types, Work, ddl

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

T = TypeVar("T")
Source = Literal["rows", "packs", "partitions"]  # plain rows; each pack by itself; all packs of a partition as one block
Splitter = Callable[[Block], Iterable[tuple[int, Block]]]


@dataclass(frozen=True, eq=False)
class PackedFrame:
    """A frame, and the steps that are applied to its blocks when it is read."""

    frame: DataFrame
    source: Source
    steps: tuple[Work, ...] = ()

    @classmethod
    def of(cls, frame: DataFrame) -> PackedFrame:
        """Plain rows, to be packed."""
        return cls(frame, "rows")

    def share(self, value: T) -> Broadcast[T]:
        """A value for the steps: sent to each executor once, and found there as `value`."""
        return self.frame.sparkSession.sparkContext.broadcast(value)

    def each(self, work: Work) -> PackedFrame:
        """The same frame with one more step for every block."""
        return replace(self, steps=(*self.steps, work))

    def persist(self) -> PackedFrame:
        """Let Spark store the packs when they are first computed.

        Spark reuses stored data for every frame with an equal plan, also after a failed run, and if the file has changed since.
        So the plan gets a unique part.
        """
        own = uuid4().hex

        def whole(block: Block, own: str = own) -> list[tuple[int, Block]]:
            return [(0, block)]

        return PackedFrame(self._pack(whole).persist(), "packs")

    def unpersist(self) -> None:
        """Let Spark drop the stored packs."""
        self.frame.unpersist()

    def whole(self) -> PackedFrame:
        """The same packs, all of a partition as one block."""
        assert not self.steps, "steps apply to single packs"
        return replace(self, source="partitions")

    def repartition(self, places_of: Callable[[Block], NDArray[np.integer]], places: int) -> PackedFrame:
        """Move rows to the partitions with these numbers, below `places`."""
        return self.repartition_parts(lambda block: parts_of(block, places_of(block)), places)

    def repartition_parts(self, parts: Splitter, places: int) -> PackedFrame:
        """As `repartition`, for parts of a block with the numbers of their partitions."""
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

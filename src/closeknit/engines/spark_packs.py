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

from closeknit.doors.batches import Batch, Block, batches_of
from closeknit.doors.packs import TYPES, batch_of, blocks_in, blocks_of, merged, packed, parts_of
from closeknit.engines.spark_maps import MANY, Types, Work, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Source = Literal["rows", "packs", "partitions"]  # plain rows; each pack by itself; all packs of a partition as one block
Parted = Callable[[Block], Iterable[tuple[int, Block]]]


@dataclass(frozen=True, eq=False)
class Packs:
    """A frame, and what is done to its blocks before anything else sees them."""

    frame: DataFrame
    source: Source
    steps: tuple[Work, ...] = ()

    @classmethod
    def of(cls, frame: DataFrame) -> Packs:
        """Plain rows, to be packed."""
        return cls(frame, "rows")

    def each(self, work: Work) -> Packs:
        """With this done to every block."""
        return replace(self, steps=(*self.steps, work))

    def kept(self) -> Packs:
        """Kept by Spark as soon as it has been asked for, for nobody else.

        Spark would give what it keeps to whoever asks the same of the same path, though other rows may stand there by then.
        """
        own = uuid4().hex  # in the pickled function, so that no other is the same

        def alone(block: Block) -> list[tuple[int, Block]]:
            return [(0, block)] if own else []

        return Packs(self._packed(alone).persist(), "packs")

    def forgotten(self) -> None:
        """Kept no longer."""
        self.frame.unpersist()

    def whole(self) -> Packs:
        """The same packs, all of a partition as one block."""
        assert not self.steps, "what was done to each pack is not done to all of them together"
        return replace(self, source="partitions")

    def placed(self, places_of: Callable[[Block], NDArray[np.integer]], places: int) -> Packs:
        """Rows moved to the partitions with these numbers, which are less than `places`."""
        return self.parted(lambda block: parts_of(block, places_of(block)), places)

    def parted(self, parts: Parted, places: int) -> Packs:
        """The same, where parts of a block come with the numbers of their partitions."""
        return Packs(self._packed(parts).repartitionById(places, "place"), "partitions")

    def rows(self, types: Types) -> DataFrame:
        """As plain rows of Spark."""
        source, steps = self.source, self.steps

        def mapped(batches: Iterable[Batch]) -> Iterator[Batch]:
            for block in _done(source, steps, batches):
                yield from batches_of(block)

        return self.frame.mapInArrow(mapped, ddl(types))

    def _packed(self, parts: Parted) -> DataFrame:
        source, steps = self.source, self.steps

        def mapped(batches: Iterable[Batch]) -> Iterator[Batch]:
            for block in _done(source, steps, batches):
                for start in range(0, block.num_rows, MANY):
                    for place, part in parts(block.slice(start, MANY)):
                        yield batch_of([(place, packed(part))])

        return self.frame.mapInArrow(mapped, ddl(TYPES))


def _done(source: Source, steps: tuple[Work, ...], batches: Iterable[Batch]) -> Iterator[Block]:
    blocks: Iterable[Block | None] = blocks_of(batches, MANY) if source == "rows" else blocks_in(batches)
    for found in [merged(blocks_in(batches))] if source == "partitions" else blocks:
        block = found
        for step in steps:
            block = None if block is None else step(block)
        if block is not None and block.num_rows:
            yield block

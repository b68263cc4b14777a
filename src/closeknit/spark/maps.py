"""Plain rows of Spark in batches, and the names and types that Spark needs.

`work` takes a block (an Arrow table) and returns one, or None; `types` are the Spark types of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from closeknit.io.batches import Batch, Block, batches_of, block_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Work = Callable[[Block], Block | None]
Types = dict[str, str]

FEW = 20_000  # rows that are worth a separate task
MANY = 1_000_000  # the most rows of a partition, unless they must stay together


def each_batch(frame: DataFrame, work: Work, types: Types) -> DataFrame:
    """Apply `work` to batches as they arrive: for work on single rows, or counts that are added up later."""

    def map_batches(batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in batches:
            block = block_of([batch])
            done = None if block is None else work(block)
            if done is not None:
                yield from batches_of(done)

    return frame.mapInArrow(map_batches, ddl(types))


def partitions(frame: DataFrame, rows: int) -> int:
    """The number of partitions for so many rows: one per core if there is enough work, more if there are many rows."""
    cores = frame.sparkSession.sparkContext.defaultParallelism
    return max(min(cores, rows // FEW), -(-rows // MANY), 1)


def ddl(types: Types) -> str:
    """Names and types as Spark's DDL.

    >>> ddl({"age": "int", "a`b": "string"})
    '`age` int, `a``b` string'
    """
    return ", ".join(f"{quote_name(name)} {kind}" for name, kind in types.items())


def quote_name(name: str) -> str:
    """A column's name, quoted for Spark.

    >>> quote_name("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def partition_number() -> int:
    """The number of the current partition; executors only."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context.partitionId()

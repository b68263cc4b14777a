"""Plain rows of Spark that meet our code batch by batch, and what both sides have to know of each other.

`work` takes a block (an Arrow table) and gives one back, or None; `types` are its columns in Spark's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from closeknit.io.batches import Batch, Block, batches_of, block_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Work = Callable[[Block], Block | None]
Types = dict[str, str]

FEW = 20_000  # rows that are worth a task of their own
MANY = 1_000_000  # rows of a partition at most, where nothing holds them together


def each_batch(frame: DataFrame, work: Work, types: Types) -> DataFrame:
    """Rows in batches as they come: for what concerns each row alone, or is added up later."""

    def map_batches(batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in batches:
            yield from _apply(work, [batch])

    return frame.mapInArrow(map_batches, ddl(types))


def partitions(frame: DataFrame, rows: int) -> int:
    """How many partitions so many rows are worth: one for each core while there is work for it, more where there are many."""
    cores = frame.sparkSession.sparkContext.defaultParallelism
    return max(min(cores, rows // FEW), -(-rows // MANY), 1)


def ddl(types: Types) -> str:
    """Names and types as Spark reads them.

    >>> ddl({"age": "int", "a`b": "string"})
    '`age` int, `a``b` string'
    """
    return ", ".join(f"{quote_name(name)} {kind}" for name, kind in types.items())


def quote_name(name: str) -> str:
    """A column's name as it must be written, whichever signs it has.

    >>> quote_name("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def partition_number() -> int:
    """The number of the partition that is worked on; executors only."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def _apply(work: Work, batches: Iterable[Batch]) -> Iterator[Batch]:
    block = block_of(batches)
    done = None if block is None else work(block)
    if done is not None:
        yield from batches_of(done)

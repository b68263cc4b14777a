"""The three ways in which blocks of rows meet compiled code on executors: batch by batch, a partition or a group at once.

`work` takes a block (an Arrow table) and gives one back, or None; `types` are its columns in Spark's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from closeknit.doors.batches import Batch, Block, batches_of, block_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Work = Callable[[Block], Block | None]
Types = dict[str, str]

FEW = 20_000  # rows that are worth a task of their own
MANY = 1_000_000  # rows of a partition at most, where nothing holds them together


def each_batch(frame: DataFrame, work: Work, types: Types) -> DataFrame:
    """Rows in batches as they come: for what concerns each row alone, or is added up later."""

    def mapped(batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in batches:
            yield from _done(work, [batch])

    return frame.mapInArrow(mapped, ddl(types))


def each_in_turn(frame: DataFrame, begin: Callable[[], Work], types: Types) -> DataFrame:
    """Batches of a partition one after the other; `begin` gives the work of one partition, which may remember what it saw."""

    def mapped(batches: Iterable[Batch]) -> Iterator[Batch]:
        work = begin()
        for batch in batches:
            yield from _done(work, [batch])

    return frame.mapInArrow(mapped, ddl(types))


def each_partition(frame: DataFrame, work: Work, types: Types) -> DataFrame:
    """All rows of a partition at once."""

    def mapped(batches: Iterable[Batch]) -> Iterator[Batch]:
        yield from _done(work, batches)

    return frame.mapInArrow(mapped, ddl(types))


def each_group(frame: DataFrame, by: str, rows: int, work: Work, types: Types) -> DataFrame:
    """All rows with the same number in a column at once, wherever they were; `rows`: of the whole frame, about."""

    def mapped(block: Block) -> Block:
        done = work(block)
        assert done is not None, "a group that came has rows"
        return done

    return frame.repartition(partitions(frame, rows), by).groupBy(by).applyInArrow(mapped, ddl(types))


def in_order_of(frame: DataFrame, names: Sequence[str], rows: int) -> DataFrame:
    """All rows sorted by these columns.

    Rows that are equal in all of them may be more than a partition should hold: these are parted by where they lay.
    """
    from pyspark.sql import functions as F

    salted = frame.withColumn("salt", F.spark_partition_id())
    by = [*names, "salt"]
    return salted.repartitionByRange(partitions(frame, rows), *by).sortWithinPartitions(*by).drop("salt")


def partitions(frame: DataFrame, rows: int) -> int:
    """How many partitions so many rows are worth: one for each core while there is work for it, more where there are many."""
    cores = frame.sparkSession.sparkContext.defaultParallelism
    return max(min(cores, rows // FEW), -(-rows // MANY), 1)


def ddl(types: Types) -> str:
    """Names and types as Spark reads them.

    >>> ddl({"age": "int", "a`b": "string"})
    '`age` int, `a``b` string'
    """
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in types.items())


def quoted(name: str) -> str:
    """A column's name as it must be written, whichever signs it has.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def place_of_partition() -> int:
    """The number of the partition that is worked on; executors only."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def _done(work: Work, batches: Iterable[Batch]) -> Iterator[Batch]:
    block = block_of(batches)
    done = None if block is None else work(block)
    if done is not None:
        yield from batches_of(done)

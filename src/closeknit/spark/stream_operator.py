"""Streams as a stateful operator of Structured Streaming: each shard of the rows is a stream whose state Spark keeps.

Rows are packed into blocks of their shard. `applyInPandasWithState` gives each shard the blocks of a micro-batch and the state
after the previous one (the bytes of a checkpoint), and published classes are unpacked into cells; pandas carries bytes only. We
use this operator because it needs neither RocksDB nor protobuf, because a delay needs only one timer per shard, and because
Spark logs the time of a micro-batch: a repeated one has the same rows, state and clock, and the secret in the checkpoint yields
the same choices.

The rows of a shard in one micro-batch have no reproducible order. They are sorted by the columns named for it, and equal rows
by an order that the secret draws from their content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns, concat_columns
from closeknit.core.row_sorting import row_order
from closeknit.core.schema import sort_values
from closeknit.io.batches import Block, block_from, cells_in, numbers_in
from closeknit.io.packets import bytes_in, cast_to, frame_of_bytes, pack_block, unpack_blocks
from closeknit.spark.maps import ddl, each_batch
from closeknit.spark.stream_shards import PACKETS, TIME, Shards
from closeknit.streams.checkpoint import load_state, save_state, set_secret
from closeknit.streams.delayed_stream import TICK
from closeknit.streams.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHARD = "shard"  # published with the window number: windows of different shards are different windows
EMITTED = {"left": "binary"}


@dataclass(frozen=True, eq=False)
class Operator:
    """What an executor needs to process any shard."""

    stream: Stream  # in its initial state
    secret: bytes
    shards: Shards
    types: dict[str, str]  # Spark types of the published columns
    orders: Sequence[str] = ()  # columns by which the rows of a micro-batch are sorted
    event_time: bool = False  # whether rows have a time
    shown: Any = field(default=None)  # the Arrow schema of these types

    def apply(self, frame: DataFrame, late: float) -> DataFrame:
        """A streaming frame of the published rows.

        Args:
            frame: the used columns, and those for order, shard and time.
            late: how many seconds before the latest row of an earlier micro-batch a row is still accepted, if rows have a time.
        """
        from pyspark.sql import functions as F

        packets = each_batch(frame, lambda block: self.shards.packets(block, self.secret, self.event_time), PACKETS)
        timeout = "ProcessingTimeTimeout" if self.stream.timed else "NoTimeout"
        if self.event_time:
            kept = f"{round(1000 * (late + 1))} milliseconds"  # packets have whole seconds, and Spark drops rows at the limit
            packets = packets.withColumn("second", F.timestamp_seconds("second")).withWatermark("second", kept)
            timeout = "EventTimeTimeout"
        left = packets.groupBy("shard").applyInPandasWithState(self.step, ddl(EMITTED), "held binary", "append", timeout)
        return self.unpack_cells(left)

    def unpack_cells(self, left: DataFrame) -> DataFrame:
        """The cells of published classes."""
        return each_batch(left, lambda block: unpack_blocks(block.column("left").to_pylist()), self.types)

    def step(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """Process one shard in one micro-batch: its rows arrive, or its timer expires."""
        stream = self.open_shard(str(key[0]), state.get[0] if state.exists else None)
        now = self._now(state)
        if state.hasTimedOut:
            left = list(stream.batches_due(now))
        else:
            left = list(self._take_rows(stream, unpack_blocks(bytes_in(frames, "rows")), now))
        state.update((save_state(stream),))
        self._set_timer(stream, state, now)
        if left:
            yield frame_of_bytes("left", [self.pack_cells(left, str(key[0]))])

    def open_shard(self, shard: str, held: bytes | None) -> Stream:
        """The stream of a shard, new or resumed from its state."""
        stream = deepcopy(self.stream, {id(self.stream.schema): self.stream.schema})
        if stream.timed:
            stream.clock = TICK
        if held is not None:
            load_state(stream, bytes(held))
        else:
            own = self.secret if self.shards.single else sha256(self.secret + b"shard" + shard.encode()).digest()
            set_secret(stream, own)
        return stream

    def pack_cells(self, left: Sequence[Columns], shard: str) -> bytes:
        """The published cells of a shard, packed with the types of all shards: a column of missing cells has no type."""
        written = concat_columns(left)
        shards = (
            {SHARD: Column(np.array([shard], dtype=object), np.zeros(written.rows, np.int32))} if SHARD in self.types else {}
        )
        return pack_block(cast_to(block_from({**written, **shards}), self.shown))

    def _take_rows(self, stream: Stream, block: Block, now: float) -> Iterator[Columns]:
        """Add rows to the stream, each after a tick with its time if rows have one."""
        times = numbers_in(block, TIME).astype(np.float64) if self.event_time else np.full(block.num_rows, now)
        rows = self._order(stream, block, times)
        columns, times = cells_in(block, stream.schema.used).take(rows), times[rows]
        if not stream.timed:
            yield from (written.columns for written in stream.blocks_of(columns))
            return
        yield from stream.batches_due(max(now, 0.0))
        starts = np.flatnonzero(np.append(True, times[1:] != times[:-1])).tolist()
        for start, end in zip(starts, [*starts[1:], len(times)], strict=True):
            yield from stream.batches_due(float(times[start]))
            yield from (written.columns for written in stream.blocks_of(columns.take(np.arange(start, end))))

    def _order(self, stream: Stream, block: Block, times: NDArray[np.float64]) -> NDArray[np.int64]:
        """The order of the rows of a micro-batch, whatever Spark's partitions."""
        used = cells_in(block, stream.schema.used)
        same = row_order([_key(column) for column in used.values()], used.rows)  # equal rows are interchangeable
        drawn = same[stream.choice("arrival", stream.position).permutation(len(same))]
        keys = [(np.unique(times, return_inverse=True)[1].astype(np.int32), len(times))]
        keys += [_key(column) for column in cells_in(block, list(self.orders)).values()]
        return drawn[row_order([(codes[drawn], size) for codes, size in keys], len(drawn))]

    def _now(self, state: Any) -> float:
        """Seconds: Spark's watermark if rows have a time, else the time that Spark logged for this micro-batch."""
        now = state.getCurrentWatermarkMs() if self.event_time else state.getCurrentProcessingTimeMs()
        return float(now) / 1000

    def _set_timer(self, stream: Stream, state: Any, now: float) -> None:
        """Set the timer of the shard to the time when its next row is due."""
        if (due := stream.due) is None:
            return
        if self.event_time:
            state.setTimeoutTimestamp(max(ceil(due * 1000), int(now * 1000) + 1, 1))
        else:
            state.setTimeoutDuration(max(ceil((due - now) * 1000), 1))


def _key(column: Column) -> tuple[NDArray[np.int32], int]:
    ordered = sort_values(column)
    return np.where(ordered.codes < 0, len(ordered.values), ordered.codes).astype(np.int32), len(ordered.values) + 1

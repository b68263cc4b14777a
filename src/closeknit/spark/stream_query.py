"""A stream on Spark: beginning or resuming it, its counters so far, and flushing it.

Flushing is a batch job over the state after the last micro-batch: Spark has no call for the end of a stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from closeknit.core.errors import BadInput, suggest_name
from closeknit.io.batches import Block, texts_block
from closeknit.spark.maps import Types, ddl, each_batch, quote_name
from closeknit.spark.session import translate_errors
from closeknit.spark.stream_checkpoint import CheckpointLocation
from closeknit.spark.stream_operator import EMITTED, SHARD, Operator
from closeknit.spark.stream_shards import BY, TIME, Shards
from closeknit.streams.counters import Counters
from closeknit.streams.packing import from_bytes, to_bytes
from closeknit.streams.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WHOLE = ("tinyint", "smallint", "int", "bigint")
REAL = ("float", "double", "decimal")


class RowOrder(NamedTuple):
    """How the rows of a micro-batch are ordered."""

    columns: Sequence[str]  # by which they are sorted
    time: str | None  # the column with a row's time
    late: float  # how many seconds late a row may be


def begin_stream(
    frame: DataFrame,
    stream: Stream,
    location: CheckpointLocation,
    shards: Shards,
    order: RowOrder,
    kept: Mapping[str, str] | None = None,
) -> DataFrame:
    """Begin a stream, or resume it.

    Args:
        frame: the arriving rows.
        stream: the stream in its initial state.
        location: its checkpoint location.
        shards: how rows are distributed.
        order: the order and the time of rows.
        kept: what else the checkpoint must have, such as the names of input and output.

    Returns:
        A streaming frame of the published rows.
    """
    stream.rules.refuse_run_rules("a query of Spark")
    orders, time, late = order
    _check_columns(frame, stream, shards, orders, time)
    types = _types(frame, stream, shards)
    options = {"by": shards.by, "shards": shards.parts, "order": list(orders), "time": time, "types": types, **(kept or {})}
    secret = location.secret_of(stream, options)
    places = [f"__order{i}" for i in range(len(orders))]
    operator = Operator(stream, secret, shards, types, places, time is not None, _arrow(types))
    chosen = [_column(name).alias(name) for name in stream.schema.used]
    chosen += [_sortable(frame, name).alias(place) for name, place in zip(orders, places, strict=True)]
    chosen += [_column(str(shards.by)).cast("string").alias(BY)] if shards.by_value else []
    chosen += [] if time is None else [_seconds(frame, time).alias(TIME)]
    return operator.apply(frame.select(*chosen), late)


def flush_stream(stream: Stream, location: CheckpointLocation) -> DataFrame:
    """End a stream: the rows of every shard that can still be published; no query can resume from here afterwards."""
    operator = _load_operator(stream, location)
    location.end()

    def flush_block(block: Block) -> Block | None:
        parts = []
        for shard, held in _shards_in(block):
            left = list(operator.open_shard(shard, held).blocks_at_end())
            parts += [operator.pack_cells([each.columns for each in left], shard)] if left else []
        return texts_block({"left": parts}, binary=["left"]) if parts else None

    return operator.unpack_cells(each_batch(_read_states(location), flush_block, EMITTED))


def sum_counters(stream: Stream, location: CheckpointLocation) -> Stream:
    """A stream without rows that has the summed counters of all shards, after the last micro-batch or the end."""
    operator, ended = _load_operator(stream, location), location.ended

    def read_counters(block: Block) -> Block:
        found = []
        for shard, held in _shards_in(block):
            one = operator.open_shard(shard, held)
            if ended:
                list(one.blocks_at_end())
            found.append(to_bytes(asdict(one.counters)))
        return texts_block({"left": found}, binary=["left"])

    whole = copy(stream)
    whole.counters = Counters()
    with translate_errors(location.location):
        for row in each_batch(_read_states(location), read_counters, EMITTED).collect():
            whole.counters.add(Counters(**from_bytes(bytes(row["left"]))))
    return whole


def _load_operator(stream: Stream, location: CheckpointLocation) -> Operator:
    kept = location.load(stream)
    shards = Shards(stream.schema, kept["by"], kept["shards"])
    return Operator(stream, kept["secret"], shards, kept["types"], (), kept["time"] is not None, _arrow(kept["types"]))


def _read_states(location: CheckpointLocation) -> DataFrame:
    """The state of every shard after the last finished micro-batch."""
    with translate_errors(location.location):
        frame = location.spark.read.format("statestore").load(location.location)
        return frame.selectExpr("key.shard AS shard", "value.groupState.held AS held")


def _shards_in(block: Block) -> Iterator[tuple[str, bytes]]:
    yield from zip(block.column("shard").to_pylist(), block.column("held").to_pylist(), strict=True)


def _check_columns(frame: DataFrame, stream: Stream, shards: Shards, orders: Sequence[str], time: str | None) -> None:
    schema = stream.schema
    other = [name for name in (*orders, time, shards.by) if name is not None]
    for name in other:
        if name not in frame.columns:
            raise BadInput("is not in the frame", column=name, right=suggest_name(name, frame.columns))
    roles = {*schema.removed, *schema.used}
    schema.list_needed([name for name in frame.columns if name in roles or name not in other])
    if time is not None and not stream.timed:
        raise BadInput("is the time of a row, and the delay is counted in rows", column=time, right="leave time out")
    if time is not None and not frame.schema[time].dataType.simpleString().startswith(("timestamp", *WHOLE, *REAL)):
        raise BadInput("is not a column of times", column=time, right="make it a timestamp, or seconds: to_timestamp(seen)")
    if stream.scope is not None and shards.by_value and shards.by not in schema.plain:
        right = "make it plain, or cut a quasi-identifier instead: by='age', shards=8"
        raise BadInput("distinguishes windows of different shards and is not published", column=shards.by, right=right)


def _types(frame: DataFrame, stream: Stream, shards: Shards) -> Types:
    """Spark types of the published columns: generalized cells are text; sensitive and plain cells keep theirs."""
    given = {name: frame.schema[name].dataType.simpleString() for name in stream.schema.used}
    types = dict.fromkeys(stream.schema.quasi, "string")
    for name, kind in stream.schema.sensitive.items():
        number = "bigint" if given[name] in WHOLE else "double"
        types[name] = number if kind.name == "numeric" else "date" if given[name] == "date" else "string"
    types |= {name: "double" if given[name].startswith("decimal") else given[name] for name in stream.schema.plain}
    if stream.scope is None:
        return types
    return types | {"window": "bigint"} | ({} if shards.single or shards.by_value else {SHARD: "string"})


def _arrow(types: Types) -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    shown = StructType.fromDDL(ddl(types))
    assert isinstance(shown, StructType)
    return to_arrow_schema(shown)


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(quote_name(name))


def _sortable(frame: DataFrame, name: str) -> Column:
    """Times as microseconds, or as text if they have no zone: in a table, dates have no time of day."""
    from pyspark.sql import functions as F

    kind = frame.schema[name].dataType.simpleString()
    if kind == "timestamp_ntz":
        return _column(name).cast("string")
    return F.unix_micros(_column(name)) if kind == "timestamp" else _column(name)


def _seconds(frame: DataFrame, name: str) -> Column:
    kind = frame.schema[name].dataType.simpleString()
    return (_column(name).cast("timestamp") if kind == "timestamp_ntz" else _column(name)).cast("double")

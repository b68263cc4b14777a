"""A stream on Spark from what was asked for: how it begins or goes on, what it has counted so far, and how it ends.

An end is a batch job over the state that the last micro-batch left: Spark has no call for "no row will come".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from closeknit.core.errors import BadInput, suggest_name
from closeknit.doors.batches import Block, texts_block
from closeknit.engines.spark_maps import Types, ddl, each_batch, quoted
from closeknit.engines.spark_session import sentences
from closeknit.engines.spark_stream_home import Home
from closeknit.engines.spark_stream_shards import BY, TIME, Shards
from closeknit.engines.spark_streams import LEFT, SHARD, Operator
from closeknit.streams.counters import Counters
from closeknit.streams.packing import from_bytes, to_bytes
from closeknit.streams.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WHOLE = ("tinyint", "smallint", "int", "bigint")
REAL = ("float", "double", "decimal")


def begun(frame: DataFrame, stream: Stream, home: Home, shards: Shards, orders: Sequence[str], time: str | None,
          late: float) -> DataFrame:  # fmt: skip
    """A streaming frame of what leaves; the stream begins at `home`, or goes on from there."""
    _check_columns(frame, stream, shards, orders, time)
    types = _types(frame, stream, shards)
    told = {"by": shards.by, "shards": shards.parts, "order": list(orders), "time": time, "types": types}
    secret = home.secret_of(stream, told)
    places = [f"__order{i}" for i in range(len(orders))]
    operator = Operator(stream, secret, shards, types, places, time is not None, _arrow(types))
    chosen = [_column(name).alias(name) for name in stream.schema.used]
    chosen += [_sortable(frame, name).alias(place) for name, place in zip(orders, places, strict=True)]
    chosen += [_column(str(shards.by)).cast("string").alias(BY)] if shards.told else []
    chosen += [] if time is None else [_seconds(frame, time).alias(TIME)]
    return operator.streamed(frame.select(*chosen), late)


def rest(stream: Stream, home: Home) -> DataFrame:
    """What may still leave of every shard, once no row will come; no query goes on from here afterwards."""
    operator = _kept_operator(stream, home)
    home.end()

    def flushed(block: Block) -> Block | None:
        parts = []
        for shard, held in _shards_in(block):
            left = list(operator.begun(shard, held).blocks_at_end())
            parts += [operator.cells([each.columns for each in left], shard)] if left else []
        return texts_block({"left": parts}, binary=["left"]) if parts else None

    return operator.unpacked(each_batch(_states(home), flushed, LEFT))


def counted(stream: Stream, home: Home) -> Stream:
    """A stream with the counters of all shards together, as of the last micro-batch or the end; it holds no row."""
    operator, ended = _kept_operator(stream, home), home.ended

    def counters(block: Block) -> Block:
        found = []
        for shard, held in _shards_in(block):
            one = operator.begun(shard, held)
            if ended:
                list(one.blocks_at_end())
            found.append(to_bytes(asdict(one.counters)))
        return texts_block({"left": found}, binary=["left"])

    whole = copy(stream)
    whole.counters = Counters()
    with sentences(home.location):
        for row in each_batch(_states(home), counters, LEFT).collect():
            whole.counters.add(Counters(**from_bytes(bytes(row["left"]))))
    return whole


def _kept_operator(stream: Stream, home: Home) -> Operator:
    kept = home.kept(stream)
    shards = Shards(stream.schema, kept["by"], kept["shards"])
    return Operator(stream, kept["secret"], shards, kept["types"], (), kept["time"] is not None, _arrow(kept["types"]))


def _states(home: Home) -> DataFrame:
    """What the last finished micro-batch has left of every shard."""
    with sentences(home.location):
        frame = home.spark.read.format("statestore").load(home.location)
        return frame.selectExpr("key.shard AS shard", "value.groupState.held AS held")


def _shards_in(block: Block) -> Iterator[tuple[str, bytes]]:
    yield from zip(block.column("shard").to_pylist(), block.column("held").to_pylist(), strict=True)


def _check_columns(frame: DataFrame, stream: Stream, shards: Shards, orders: Sequence[str], time: str | None) -> None:
    schema = stream.schema
    beside = [name for name in (*orders, time, shards.by) if name is not None]
    for name in beside:
        if name not in frame.columns:
            raise BadInput("is not in the frame", column=name, right=suggest_name(name, frame.columns))
    roles = {*schema.removed, *schema.used}
    schema.needed([name for name in frame.columns if name in roles or name not in beside])
    if time is not None and not stream.timed:
        raise BadInput("the delay is counted in rows, and a column tells the time", column=time, right="leave time out")
    if time is not None and not frame.schema[time].dataType.simpleString().startswith(("timestamp", *WHOLE, *REAL)):
        raise BadInput("is no column of times", column=time, right="make it a timestamp, or seconds: to_timestamp(seen)")
    if stream.scope is not None and shards.told and shards.by not in schema.plain:
        right = "make it plain, or cut a quasi column instead: by='age', shards=8"
        raise BadInput("tells windows of different shards apart and is not published", column=shards.by, right=right)


def _types(frame: DataFrame, stream: Stream, shards: Shards) -> Types:
    """Of the published columns: generalized cells are text; secrets and plain cells stay as they are."""
    came = {name: frame.schema[name].dataType.simpleString() for name in stream.schema.used}
    types = dict.fromkeys(stream.schema.quasi, "string")
    for name, kind in stream.schema.sensitive.items():
        number = "bigint" if came[name] in WHOLE else "double"
        types[name] = number if kind.name == "numeric" else "date" if came[name] == "date" else "string"
    types |= {name: "double" if came[name].startswith("decimal") else came[name] for name in stream.schema.plain}
    if stream.scope is None:
        return types
    return types | {"window": "bigint"} | ({} if shards.single or shards.told else {SHARD: "string"})


def _arrow(types: Types) -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    shown = StructType.fromDDL(ddl(types))
    assert isinstance(shown, StructType)
    return to_arrow_schema(shown)


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(quoted(name))


def _sortable(frame: DataFrame, name: str) -> Column:
    """Times by their microseconds, or by their text where they have no zone: a table of people knows days only."""
    from pyspark.sql import functions as F

    kind = frame.schema[name].dataType.simpleString()
    if kind == "timestamp_ntz":
        return _column(name).cast("string")
    return F.unix_micros(_column(name)) if kind == "timestamp" else _column(name)


def _seconds(frame: DataFrame, name: str) -> Column:
    kind = frame.schema[name].dataType.simpleString()
    return (_column(name).cast("timestamp") if kind == "timestamp_ntz" else _column(name)).cast("double")

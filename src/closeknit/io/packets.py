"""Blocks of rows as bytes, which Spark stores and moves without knowing their columns.

>>> parts = [pack_block(pa.table({"age": ages})) for ages in ([30, 70], [31])]
>>> [unpack_blocks([part]).to_pydict() for part in parts], unpack_blocks(parts).num_rows
([{'age': [30, 70]}, {'age': [31]}], 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from closeknit.io.batches import Block


def pack_block(block: Block) -> bytes:
    """One block as bytes."""
    memory = pa.BufferOutputStream()
    with pa.ipc.new_stream(memory, block.schema) as stream:
        stream.write_table(block)
    content: bytes = memory.getvalue().to_pybytes()
    return content


def unpack_blocks(parts: Iterable[bytes]) -> Block:
    """The rows of one or more blocks with the same columns."""
    return pa.concat_tables([pa.ipc.open_stream(part).read_all() for part in parts])


def cast_to(block: Block, types: Any) -> Block:
    """The same cells in these types, an Arrow schema.

    >>> cast_to(pa.table({"age": [30]}), pa.schema({"age": pa.float64()})).to_pydict()
    {'age': [30.0]}
    """
    return block.select(types.names).cast(types)


def bytes_in(frames: Iterable[Any], name: str) -> list[bytes]:
    """A column of bytes in pandas frames.

    >>> import pandas
    >>> bytes_in([pandas.DataFrame({"a": [b"x", b"y"]})], "a")
    [b'x', b'y']
    """
    return [bytes(cell) for frame in frames for cell in frame[name]]


def frame_of_bytes(name: str, parts: Sequence[bytes]) -> Any:
    """Bytes as a pandas frame, for engines that accept nothing else.

    >>> frame_of_bytes("a", [b"x"]).shape
    (1, 1)
    """
    import pandas

    return pandas.DataFrame({name: pandas.Series(list(parts), dtype=object)})

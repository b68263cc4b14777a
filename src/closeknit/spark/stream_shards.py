"""The shard of each row of a stream, and rows packed for it.

Each shard is a stream and meets every guarantee separately. So an adversary who knows the shard of a published row (the name of
a part file may reveal it) still faces a whole class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.kinds import Numeric
from closeknit.core.params import whole
from closeknit.core.schema import Schema
from closeknit.io.batches import Block, cells_in, numbers_in, texts_block
from closeknit.io.packets import pack_block
from closeknit.io.packs import parts_of
from closeknit.streams.arrivals import EQUAL, MANTISSA, Coder

BY, TIME = "__by", "__time"  # columns that Spark adds: the value of the shard if it is not a quasi-identifier, and seconds
PACKETS = {"shard": "string", "second": "bigint", "rows": "binary"}
MOST = 100_000  # shards


@dataclass(frozen=True, eq=False)
class Shards:
    """How the rows of a stream are distributed.

    Args:
        schema: roles and kinds of the columns. by: a quasi-identifier whose declared domain is split, or another column, each
        value of which is a shard; None for one shard. parts: the number of parts of the domain, or the numbers at which it is
        split.

    >>> from closeknit.core.kinds import numeric
    >>> shards = Shards.of(Schema(quasi={"age": numeric(0, 100)}), "age", 4)
    >>> shards.places(Columns.of({"age": [3, 25, 99, 100, None, 700]}), b"secret").tolist()
    [0, 1, 3, 3, 0, 0]
    """

    schema: Schema
    by: str | None = None
    parts: int | tuple[float, ...] = 1

    @classmethod
    def of(cls, schema: Schema, by: str | None, shards: int | Sequence[float]) -> Shards:
        """Check a request; `shards` is `parts`."""
        parts = whole("shards", shards, 1, MOST) if isinstance(shards, int) else _cuts(schema, by, shards)
        if by is None and parts != 1:
            right = "name a quasi-identifier whose domain is split, or a column whose values are the shards: by='age'"
            raise BadInput(f"shards={shards} needs a column to split", right=right)
        if by is not None and by not in schema.quasi and parts != 1:
            raise BadInput("is not a quasi-identifier, so each of its values is a shard", column=by, right="leave shards out")
        return cls(schema, by, parts)

    @property
    def single(self) -> bool:
        """Whether there is only one shard."""
        return self.by is None or (self.by in self.schema.quasi and self.parts == 1)

    @property
    def by_value(self) -> bool:
        """Whether each value of a column is a shard."""
        return self.by is not None and self.by not in self.schema.quasi

    def places(self, columns: Columns, secret: bytes) -> NDArray[np.int64]:
        """The part of each row; cells that are missing or outside the domain are in the first."""
        assert self.by is not None
        kind = self.schema.quasi[self.by]
        coder = Coder(Schema(quasi={self.by: kind}, missing=self.schema.missing), secret)
        at = coder.encode(Columns({self.by: columns[self.by]}, columns.rows), 0).quasi[:, 0]
        known = at < coder.axes.missing[0]
        if isinstance(self.parts, tuple):
            return np.where(known, np.searchsorted(self.parts, at, side="right"), 0)
        domain = coder.domains[self.by]
        low, span = (0.0, float(1 << MANTISSA)) if coder.axes.kind[0] == EQUAL else (0.0, 0.0)
        if domain is not None:
            span = float(domain.size)
        elif not span:
            low, span = kind.bounds[0], coder.axes.span[0]  # type: ignore[attr-defined]
        share = (np.where(known, at, low) - low) / span
        return np.clip(np.floor(share * self.parts), 0, self.parts - 1).astype(np.int64)

    def packets(self, block: Block, secret: bytes, timed: bool) -> Block:
        """The rows of a block, grouped by shard and, if rows have a time, by second."""
        names, place = ["0"], np.zeros(block.num_rows, dtype=np.int64)
        if self.by_value:
            names, place = _values(cells_in(block, [BY])[BY])
        elif not self.single:
            place = self.places(cells_in(block, [str(self.by)]), secret)
            names = [str(part) for part in range(int(place.max()) + 1)]
        second = np.floor(_seconds(block)).astype(np.int64) if timed else np.zeros(block.num_rows, dtype=np.int64)
        groups, group_of = np.unique(np.stack([place, second]), axis=1, return_inverse=True)
        rows = block.drop_columns([BY]) if self.by_value else block
        parts = [pack_block(part.combine_chunks()) for _, part in parts_of(rows, group_of.ravel())]
        packed = {"shard": [names[i] for i in groups[0].tolist()], "second": groups[1], "rows": parts}
        return texts_block(packed, binary=["rows"])


def _cuts(schema: Schema, by: str | None, cuts: Sequence[float]) -> tuple[float, ...]:
    kind = None if by is None else schema.quasi.get(by)
    if not isinstance(kind, Numeric) or kind.bins:
        raise BadInput(
            "numbers to split at need a quasi-identifier of numbers", column=by, right="name it: by='age', shards=[30, 60]"
        )
    found = tuple(float(cut) for cut in cuts)
    if not found or list(found) != sorted(set(found)) or not np.isfinite(found).all():
        raise BadInput(f"shards={list(cuts)} cannot split the column", column=by, right="give increasing numbers")
    return found


def _values(column: Column) -> tuple[list[str], NDArray[np.int64]]:
    """Values as the names of shards; missing cells are a shard, too."""
    names = ["=" + str(value) for value in column.values.tolist()]
    return [*names, ""], np.where(column.codes < 0, len(names), column.codes).astype(np.int64)


def _seconds(block: Block) -> NDArray[np.float64]:
    if block.column(TIME).null_count:
        raise BadInput("a row has no time", right="filter such rows first: frame.where('seen is not null')")
    return numbers_in(block, TIME).astype(np.float64)

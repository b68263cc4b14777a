"""Which shard of a stream a row belongs to, and rows on their way there: packed, a block for each shard.

A shard is a stream of its own. It keeps every guarantee by itself, so whoever knows of a published row from which shard it came
(the name of a part file may tell) still faces a whole class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.params import whole
from closeknit.core.schema import Schema
from closeknit.io.batches import Block, cells_in, numbers_in, texts_block
from closeknit.io.packets import pack_groups
from closeknit.streams.arrivals import EQUAL, MANTISSA, Coder

BY, TIME = "__by", "__time"  # columns that Spark adds: what tells the shard where that is no quasi column, and seconds
PACKETS = {"shard": "string", "second": "bigint", "rows": "binary"}
MOST = 100_000  # shards


@dataclass(frozen=True, eq=False)
class Shards:
    """Parts of the declared domain of a quasi column, or one for each value of another column, or a single one.

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
        """As it was asked for, or a sentence."""
        parts = whole("shards", shards, 1, MOST) if isinstance(shards, int) else _cuts(schema, by, shards)
        if by is None and parts != 1:
            right = "name a quasi column whose domain is cut, or a column whose values are the shards: by='age'"
            raise BadInput(f"shards={shards} says not what is cut", right=right)
        if by is not None and by not in schema.quasi and parts != 1:
            raise BadInput("is no quasi column, so each of its values is a shard", column=by, right="leave shards out")
        return cls(schema, by, parts)

    @property
    def single(self) -> bool:
        """Whether there is one shard only."""
        return self.by is None or (self.by in self.schema.quasi and self.parts == 1)

    @property
    def by_value(self) -> bool:
        """Whether a shard is a value that the frame tells."""
        return self.by is not None and self.by not in self.schema.quasi

    def places(self, columns: Columns, secret: bytes) -> NDArray[np.int64]:
        """The number of the part for each row; cells that are missing or outside the domain count to the first."""
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
        """The rows of a block, apart by their shards and, where rows tell the time, by their second."""
        names, place = ["0"], np.zeros(block.num_rows, dtype=np.int64)
        if self.by_value:
            names, place = _values(cells_in(block, [BY])[BY])
        elif not self.single:
            place = self.places(cells_in(block, [str(self.by)]), secret)
            names = [str(part) for part in range(int(place.max()) + 1)]
        second = np.floor(_seconds(block)).astype(np.int64) if timed else np.zeros(block.num_rows, dtype=np.int64)
        groups, group_of = np.unique(np.stack([place, second]), axis=1, return_inverse=True)
        rows = block.drop_columns([BY]) if self.by_value else block
        parts = pack_groups(rows, group_of.ravel(), groups.shape[1])
        return texts_block(
            {"shard": [names[i] for i in groups[0].tolist()], "second": groups[1], "rows": parts}, binary=["rows"]
        )


def _cuts(schema: Schema, by: str | None, cuts: Sequence[float]) -> tuple[float, ...]:
    kind: Any = None if by is None else schema.quasi.get(by)
    if kind is None or kind.name != "numeric" or getattr(kind, "bins", None):
        raise BadInput("places to cut at need a quasi column of numbers", column=by, right="name it: by='age', shards=[30, 60]")
    found = tuple(float(cut) for cut in cuts)
    if not found or list(found) != sorted(set(found)) or not np.isfinite(found).all():
        raise BadInput(f"shards={list(cuts)} are no places to cut at", column=by, right="give increasing numbers")
    return found


def _values(column: Column) -> tuple[list[str], NDArray[np.int64]]:
    """Values as the names of shards; what is missing is a shard of its own."""
    names = ["=" + str(value) for value in column.values.tolist()]
    return [*names, ""], np.where(column.codes < 0, len(names), column.codes).astype(np.int64)


def _seconds(block: Block) -> NDArray[np.float64]:
    if block.column(TIME).null_count:
        raise BadInput("a row has no time", right="leave such rows out before: frame.where('seen is not null')")
    return numbers_in(block, TIME).astype(np.float64)

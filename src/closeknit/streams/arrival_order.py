"""Which arriving rows are accepted: those with all columns that are neither late nor repeated."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.schema import Schema
from closeknit.io.ndjson import BadLine
from closeknit.streams.lines import SHOWN, ArrivedRow, RejectedLine


@dataclass
class ArrivalOrder:
    """The order of an input, and how far it has been read.

    Args:
        schema: roles and kinds of the columns.
        position: the column with a row's position; None if there is none.
        time: the column with a row's time; None if there is none.
        last: position and time of the last accepted row.

    >>> from closeknit.core.kinds import numeric
    >>> order = ArrivalOrder(Schema(quasi={"age": numeric(0, 100)}), position="nr")
    >>> rows = [ArrivedRow({"age": 30, "nr": nr}, line, 0) for line, nr in enumerate([5, 7, 7, 6, 8], start=1)]
    >>> good, bad = order.check_rows(rows)
    >>> [found.row["nr"] for found in good], bad[0].line, bad[0].why
    ([5, 7, 8], 3, 'position 7 is late or repeated: the last one is 7')
    """

    schema: Schema
    position: str | None = None
    time: str | None = None
    last: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._order_columns = [name for name in (self.position, self.time) if name is not None]
        self._needed = list(dict.fromkeys([*self.schema.used, *self._order_columns]))
        self._roles = {*self.schema.removed, *self.schema.used}

    def check_header(self, names: Sequence[str]) -> None:
        """Refuse a header without the columns of this stream."""
        for name in self._order_columns:
            if name not in names:
                raise BadInput("is not in the header", column=name, right=suggest_name(name, names))
        self.schema.list_needed([name for name in names if name not in self._order_columns or name in self._roles])

    def check_rows(self, rows: Iterable[ArrivedRow]) -> tuple[list[ArrivedRow], list[RejectedLine]]:
        """Accepted rows, and rejected ones."""
        good, bad = [], []
        for found in rows:
            try:
                self._check(found.row)
            except BadLine as why:
                bad.append(RejectedLine(found.line, str(why), json.dumps(found.row, ensure_ascii=False)[:SHOWN]))
            else:
                good.append(found)
        return good, bad

    def time_of(self, row: Mapping[str, Any]) -> float:
        """The time of a row in seconds, from a number or an ISO text (UTC unless it names a zone)."""
        assert self.time is not None
        return _seconds(row[self.time])

    def _check(self, row: Mapping[str, Any]) -> None:
        for name in self._needed:
            if name not in row:
                raise BadLine(f"'{name}' is not in the row")
        if len(row) > len(self._needed):
            for name in row:
                if name not in self._roles and name not in self._order_columns:
                    raise BadLine(f"'{name}' has no role in the schema")
        if self.schema.person is not None and row[self.schema.person] is None:
            raise BadLine(f"'{self.schema.person}' is empty: a row without a person cannot be counted")
        self._check_order(row)

    def _check_order(self, row: Mapping[str, Any]) -> None:
        here: dict[str, Any] = {}
        if self.position is not None:
            here["position"] = number = _whole(row[self.position])
            if number is None:
                raise BadLine(f"position {row[self.position]!r} is not a whole number")
            if "position" in self.last and number <= self.last["position"]:
                raise BadLine(f"position {number} is late or repeated: the last one is {self.last['position']}")
        if self.time is not None:
            here["time"] = now = _seconds(row[self.time])
            if not math.isfinite(now):
                raise BadLine(f"time {row[self.time]!r} is neither seconds nor an ISO time")
            if now < self.last.get("time", now):
                raise BadLine(f"time {row[self.time]!r} is late: a later row has arrived already")
        self.last |= here


def cells_of(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Columns:
    """Rows as columns; the type of each cell is kept, whatever the types of the others.

    >>> cells_of([{"age": 30, "sex": "f"}, {"age": 30.5, "sex": None}], ["age"])["age"].cells()
    [30, 30.5]
    """
    columns = {}
    for name in names:
        seen: dict[Any, int] = {}
        codes = [-1 if (cell := row[name]) is None else seen.setdefault(cell, len(seen)) for row in rows]
        values = np.empty(len(seen), dtype=object)
        values[:] = list(seen)
        columns[name] = Column(values, np.array(codes, dtype=np.int32))
    return Columns(columns, len(rows))


def _whole(cell: Any) -> int | None:
    try:
        return int(text) if (text := str(cell)).lstrip("-").isdecimal() else None
    except ValueError:
        return None


def _seconds(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        pass
    try:
        when = datetime.fromisoformat(str(cell))
    except ValueError:
        return math.nan
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()

"""Which arriving rows are accepted: those with all columns that are neither late nor repeated.

A row that repeats a key is a correction. It is refused even while the first version waits: whoever reads both versions could
subtract one class from the other, and replacing a waiting row would change classes that are already formed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import numpy as np

from closeknit.core.columns import Column, Columns, array_cells
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.schema import Schema
from closeknit.io.ndjson import BadLine
from closeknit.streams.arrivals import value_text
from closeknit.streams.counters import Counters
from closeknit.streams.input_rules import ACCEPT, InputRules, parse_seconds
from closeknit.streams.lines import SHOWN, ArrivedRow, RejectedLine


@dataclass
class ArrivalOrder:
    """The order of an input, and how far it has been read.

    Args:
        schema: roles and kinds of the columns.
        position: the column with a row's position; None if there is none.
        time: the column with a row's time; None if there is none.
        last: position and time of the last accepted row.
        rules: for rows that do not arrive as declared.
        counters: where these are counted.

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
    rules: InputRules = field(default_factory=InputRules)
    counters: Counters = field(default_factory=Counters)

    def __post_init__(self) -> None:
        self.known: dict[int, None] = {}  # digests of keys, oldest first
        self.set_rules(self.rules, self.counters)

    def set_rules(self, rules: InputRules, counters: Counters) -> None:
        """Follow these rules from now on.

        Args:
            rules: for rows that do not arrive as declared.
            counters: where these are counted.
        """
        self.rules, self.counters = rules, counters
        self._order_columns = [name for name in (self.position, self.time, self.rules.key) if name is not None]
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
                late = self._check(found.row)
            except OutOfOrder as why:
                bad.append(_reject(found, str(why), why.counter))
            except BadLine as why:
                bad.append(_reject(found, str(why)))
            else:
                good.append(found._replace(row={**found.row, str(self.time): self.last["time"]}) if late else found)
        return good, bad

    def time_of(self, row: Mapping[str, Any]) -> float:
        """The time of a row in seconds, from a number or an ISO text (UTC unless it names a zone)."""
        assert self.time is not None
        return _seconds(row[self.time])

    def check_keys(
        self, rows: Sequence[ArrivedRow], digest: Callable[[str], int]
    ) -> tuple[list[ArrivedRow], list[int], list[RejectedLine]]:
        """Rows whose key has not arrived before, which is remembered from now on.

        Args:
            rows: the rows.
            digest: a number that stands for a key.

        Returns:
            The accepted rows, the digests of their keys, and the rejected rows.
        """
        if (name := self.rules.key) is None:
            return list(rows), [], []
        good, keys, bad = [], [], []
        for found in rows:
            key = digest(f"key={value_text(found.row[name])}")
            if key in self.known:
                bad.append(
                    _reject(found, f"'{name}' repeats a key: a correction of an earlier row is not published", "repeated")
                )
                continue
            self.known[key] = None
            good.append(found)
            keys.append(key)
        return good, keys, bad

    def trim_keys(self) -> None:
        """Forget the oldest keys if there are too many."""
        for key in list(islice(self.known, max(len(self.known) - self.rules.remember, 0))):
            del self.known[key]

    def _check(self, row: Mapping[str, Any]) -> bool:
        """Refuse a row, or return whether it is late."""
        for name in self._needed:
            if name not in row:
                raise BadLine(f"'{name}' is not in the row")
        if len(row) > len(self._needed):
            for name in row:
                if name not in self._roles and name not in self._order_columns:
                    raise BadLine(f"'{name}' has no role in the schema")
        if self.schema.person is not None and row[self.schema.person] is None:
            raise BadLine(f"'{self.schema.person}' is empty: a row without a person cannot be counted")
        if self.rules.key is not None and row[self.rules.key] is None:
            raise BadLine(f"'{self.rules.key}' is empty: a row without a key cannot be compared")
        return self._check_order(row)

    def _check_order(self, row: Mapping[str, Any]) -> bool:
        here: dict[str, Any] = {}
        late = False
        if self.position is not None:
            here["position"] = number = _whole(row[self.position])
            if number is None:
                raise BadLine(f"position {row[self.position]!r} is not a whole number")
            if "position" in self.last and number <= self.last["position"]:
                raise OutOfOrder("repeated", f"position {number} is late or repeated: the last one is {self.last['position']}")
        if self.time is not None:
            here["time"] = now = _seconds(row[self.time])
            if not math.isfinite(now):
                raise BadLine(f"time {row[self.time]!r} is neither seconds nor an ISO time")
            if now < self.last.get("time", now):
                if self.rules.late != ACCEPT:
                    raise OutOfOrder("late", f"time {row[self.time]!r} is late: a later row has arrived already")
                here["time"], late = self.last["time"], True
                self.counters.late += 1
            self._check_jump(row, now)
        self.last |= here
        return late

    def _check_jump(self, row: Mapping[str, Any], now: float) -> None:
        """Refuse a row far ahead of the last one, unless the row before it was as far ahead."""
        ahead = self.last.pop("ahead", None)
        if self.rules.jump is None or "time" not in self.last:
            return
        jump = parse_seconds("jump", self.rules.jump)
        if now - self.last["time"] > jump and (ahead is None or abs(now - ahead) > jump):
            self.last["ahead"] = now
            what = (
                f"time {row[str(self.time)]!r} is more than {self.rules.jump} after the last row, and no second row confirms it"
            )
            raise OutOfOrder("early", what)


class OutOfOrder(BadLine):
    """A row that is late, early or repeated; `counter` names its counter."""

    def __init__(self, counter: str, why: str) -> None:
        self.counter = counter
        super().__init__(why)


def _reject(found: ArrivedRow, why: str, counter: str = "") -> RejectedLine:
    return RejectedLine(found.line, why, json.dumps(found.row, ensure_ascii=False)[:SHOWN], counter)


def cells_of(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Columns:
    """Rows as columns; the type of each cell is kept, whatever the types of the others.

    >>> cells_of([{"age": 30, "sex": "f"}, {"age": 30.5, "sex": None}], ["age"])["age"].cells()
    [30, 30.5]
    """
    columns = {}
    for name in names:
        seen: dict[Any, int] = {}
        codes = [-1 if (cell := row[name]) is None else seen.setdefault(cell, len(seen)) for row in rows]
        columns[name] = Column(array_cells(list(seen)), np.array(codes, dtype=np.int32))
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

"""What a stream of classes guarantees, checked from its output in plain Python: shared by the tests of Castle and KnnStream."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from math import inf
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import closeknit as ck
from closeknit.streams.delayed_stream import DelayedStream

CITIES = {"south": ["Rome", "Bari"], "north": ["Oslo", "Bergen", "Turku"]}
LEAVES = {"*": None, **CITIES, **{city: [city] for cities in CITIES.values() for city in cities}}
QUASI = ("age", "city", "sex")
NAMES = (*QUASI, "ill", "name")
Raw = dict[str, Any]


def schema(persons: bool = True) -> ck.Schema:
    roles: dict[str, Any] = {"person": "name"} if persons else {"identifier": ["name"]}
    tree = ck.Hierarchy.from_nested(CITIES)
    quasi = {"age": ck.numeric(0, 100), "city": tree, "sex": ck.flat()}
    return ck.Schema(quasi=quasi, sensitive={"ill": ck.flat()}, missing=["?"], **roles)


@st.composite
def raw_rows(draw: st.DrawFn, most: int = 60) -> list[Raw]:
    """Persons repeat, some come often; columns may be constant; values may be missing, unknown or out of range."""
    ages = draw(st.sampled_from([[40], list(range(0, 101, 5)), [20, 21, 22, 80, 81], [*range(30, 60), None, 130]]))
    cities = draw(st.sampled_from([["Rome"], ["Rome", "Bari", "Oslo"], ["Rome", "Oslo", "Turku", "Paris", None, "?"]]))
    sexes = draw(st.sampled_from([["f"], ["f", "m"], ["f", "m", None]]))
    ills = draw(st.sampled_from([["flu", "gout"], ["flu", "flu", "flu", "gout", "SARS"], list("abcdefgh"), ["flu", None]]))
    people = draw(st.sampled_from([2, 5, 12, 60]))
    cell = st.tuples(*(st.sampled_from(column) for column in (ages, cities, sexes, ills)), st.integers(0, people - 1))
    rows = draw(st.lists(cell, min_size=1, max_size=most))
    skewed = draw(st.booleans())
    return [dict(zip(NAMES, (*row, f"P{who // 3 if skewed else who}"), strict=True)) for *row, who in rows]


class Watched:
    """A stream with a log of which row was published when; every guarantee is checked after every call."""

    def __init__(self, stream: DelayedStream, alone: bool = False, persons: bool = True, distinct: int = 1) -> None:
        self.stream, self.alone, self.persons, self.distinct = stream, alone, persons, distinct
        self.raw: list[Raw] = []
        self.came: list[float] = []
        self.gone: dict[int, str] = {}
        self.batches: list[list[int]] = []
        self.published: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        self.out: list[Raw] = []
        leave, suppress = stream._emit, stream._suppress

        def leaving(classes: Any) -> Any:
            left = leave(classes)
            self.batches += [one.positions.tolist() for one in left]
            return left

        def suppressing(positions: Any) -> None:
            for position in positions.tolist():
                self._once(position, "suppressed")
            suppress(positions)

        stream._emit, stream._suppress = leaving, suppressing  # type: ignore[method-assign]

    def push(self, row: Raw, now: float | None = None) -> None:
        self.raw.append(row)
        self.came.append(len(self.raw) - 1 if now is None else now)
        self._check(self.stream.push(row), self.came[-1])

    def tick(self, now: float) -> None:
        self._check(self.stream.tick(now), now)

    def flush(self) -> None:
        self._check(self.stream.flush(), float("-inf"))
        assert sorted(self.gone) == list(range(len(self.raw)))
        counters = self.stream.counters
        suppressed = sum(how == "suppressed" for how in self.gone.values())
        assert (counters.suppressed, counters.rows_out) == (suppressed, len(self.out))
        assert counters.pending == len(self.stream.pending) == 0

    def _once(self, position: int, how: str) -> None:
        assert position not in self.gone, "a row left twice"
        self.gone[position] = how

    def _check(self, rows: list[Raw], now: float) -> None:
        self.out += rows
        for batch in self.batches:
            mine, rows = rows[: len(batch)], rows[len(batch) :]
            self._check_batch(batch, mine)
        assert rows == []
        self.batches.clear()
        waiting = [p for p in range(len(self.raw)) if p not in self.gone]
        assert all(self.came[p] + self.stream.delta > now for p in waiting), "a row is late"
        assert len(self.stream.pending) == len(waiting)

    def _check_batch(self, batch: list[int], rows: list[Raw]) -> None:
        for position in batch:
            self._once(position, "left")
        assert all(set(row) == {*QUASI, "ill"} for row in rows)
        label = tuple(rows[0][name] for name in QUASI)
        assert all(tuple(row[name] for name in QUASI) == label for row in rows)
        for position in batch:
            for name, cell in zip(QUASI, label, strict=True):
                assert covers(name, cell, self.raw[position][name]), (cell, self.raw[position])
        shown = [row["ill"] for row in rows]
        assert shown == sorted((self.raw[position]["ill"] for position in batch), key=lambda ill: (ill is not None, ill))
        self.published[label] += batch
        for positions in (self.published[label],) if self.alone else (self.published[label], batch):
            assert self._heads(positions) >= self.stream.k
            assert self._diversity(positions) >= self.distinct

    def _who(self, position: int) -> Any:
        return self.raw[position]["name"] if self.persons else position

    def _heads(self, positions: list[int]) -> int:
        return len({self._who(position) for position in positions})

    def _diversity(self, positions: list[int]) -> float:
        """Over known values; missing ones alone disclose none."""
        carriers = defaultdict(set)
        for position in positions:
            carriers[self.raw[position]["ill"]].add(self._who(position))
        carriers.pop(None, None)
        return matching(carriers) if carriers else inf


def matching(carriers: dict[Any, set[Any]]) -> int:
    """The most values that can be given to different persons who carry them."""
    given: dict[Any, Any] = {}

    def give(value: Any, tried: set[Any]) -> bool:
        for person in carriers[value] - tried:
            tried.add(person)
            if person not in given or give(given[person], tried):
                given[person] = value
                return True
        return False

    return sum(give(value, set()) for value in carriers)


def covers(name: str, cell: str | None, raw: Any) -> bool:
    raw = None if raw == "?" else raw
    if cell == "*":
        return True
    if cell is None:
        return raw is None
    if name == "city":
        return raw in (LEAVES[cell] or ())
    if name == "sex":
        return raw == cell
    ends = [float(number) for number in re.findall(r"[\d.]+", cell)]
    return raw is not None and 0 <= raw <= 100 and ends[0] <= raw <= ends[-1]


def table(rows: list[Raw]) -> pa.Table:
    types = {"age": pa.int64()}
    return pa.table({name: pa.array([row[name] for row in rows], types.get(name, pa.string())) for name in NAMES})


def same_in_blocks(make: Any, rows: list[Raw], cuts: list[int]) -> None:
    """`push_many` of any blocks gives what pushing one by one gives, in the same order, with the same counters."""
    one, many = make(), make()
    alone = [row for raw in rows for row in one.push(raw)]
    ends = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    blocks = [many.push_many(table(rows[a:b])) for a, b in pairwise(ends)]
    assert [row for block in blocks for row in block.to_pylist()] == alone
    assert one.counters.record() == many.counters.record()
    assert one.flush() == many.flush()
    assert one.counters.record() == many.counters.record()


def bursts_and_silence(watched: Watched, rows: list[Raw], gaps: list[float], now: list[float], data: st.DataObject) -> None:
    """Rows with gaps of seconds between them, ticks inside some of the long ones; a delay of ten seconds is over at the end."""
    for row, gap in zip(rows, gaps, strict=False):
        if gap > 1 and data.draw(st.booleans()):
            watched.tick(now[0] + gap / 2)
        now[0] += gap
        watched.push(row, now[0])
    watched.tick(now[0] + 10)
    assert len(watched.stream.pending) == 0
    watched.flush()

"""Small streams for the checks: edge cases and generated rows of fictitious people.

Most rows carry a unique plain `tag`, so that a check identifies a published row without asking the stream.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from closeknit.core.dates import date
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kinds import flat, numeric
from closeknit.core.schema import Schema

CITIES = {"south": {"Rome": None, "Bari": None}, "north": {"Oslo": None, "Bergen": None, "Turku": None}}
ILLS = ("flu", "gout", "SARS", "ulcer")
DISEASES = {"lungs": {"flu": None, "SARS": None}, "elsewhere": {"gout": None, "ulcer": None}}
KINDS: dict[str, Any] = {
    "age": numeric(0, 100),
    "city": Hierarchy.from_nested(CITIES),
    "sex": flat(),
    "born": date(["month", "year"], lo="2000-01-01", hi="2003-12-31"),
}
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class StreamCase:
    """Rows in the order of arrival, the time of arrival of each (for delays in seconds), and their schema."""

    name: str
    rows: tuple[Row, ...]
    schema: Schema
    seconds: tuple[float, ...]

    @property
    def tagged(self) -> bool:
        """Whether each row can be identified by its tag."""
        return "tag" in self.schema.plain

    def keep_values(self, values: Collection[str]) -> StreamCase:
        """The rows whose sensitive value a declared reference has; any other value stops the stream.

        Args:
            values: the declared values.
        """
        kept = [i for i, row in enumerate(self.rows) if row["ill"] in values]
        return replace(self, rows=tuple(self.rows[i] for i in kept), seconds=tuple(self.seconds[i] for i in kept))


def some_rows(rng: np.random.Generator, count: int, people: int = 1000, **columns: list[Any]) -> list[Row]:
    """Generate rows with all kinds of columns; `columns` gives other values to draw from."""
    usual: dict[str, list[Any]] = {
        "age": list(range(18, 90)),
        "city": ["Rome", "Bari", "Oslo", "Bergen", "Turku"],
        "sex": ["f", "m"],
        "born": [f"200{year}-0{month}" for year in range(4) for month in (1, 4, 9)],
        "ill": ["flu", "flu", *ILLS],
    }
    drawn = {name: [values[i] for i in rng.integers(len(values), size=count)] for name, values in {**usual, **columns}.items()}
    who = rng.integers(people, size=count)
    return [
        {
            **{name: cells[i] for name, cells in drawn.items()},
            "tag": f"t{int(rng.integers(10**9)):09}",
            "name": f"Person-{who[i]:04}",
        }
        for i in range(count)
    ]


def stream_case(
    name: str,
    rows: list[Row],
    quasi: tuple[str, ...] = ("age", "city"),
    persons: bool = False,
    tagged: bool = True,
    tree: bool = False,
) -> StreamCase:
    """Build a case from these columns of the rows. Rows arrive in bursts: several at once, then none for a while."""
    roles: dict[str, Any] = {"person": "name"} if persons else {"identifier": ["name"], "rows_are_persons": True}
    roles |= {"plain": ["tag"], "allow_unique": ["tag"]} if tagged else {}
    secret: dict[str, Any] = {"ill": Hierarchy.from_nested(DISEASES) if tree else flat()}
    schema = Schema(quasi={column: KINDS[column] for column in quasi}, sensitive=secret, missing=["?"], **roles)
    kept = [{column: row[column] for column in (*schema.used, *schema.identifier)} for row in rows]
    seconds = tuple(float(10 * (i // 7) + (40 if i >= len(rows) // 2 else 0)) for i in range(len(rows)))
    return StreamCase(name, tuple(kept), schema, seconds)


def edge_streams() -> list[StreamCase]:
    """Return one stream for each edge case."""
    rng = np.random.default_rng(17)
    every = ("age", "city", "sex", "born")
    strange: dict[str, list[Any]] = {"age": [20, 30, 40, None, 130, -1], "city": ["Rome", "Oslo", "Paris", None, "?"]}
    strange["sex"] = ["f", "m", None]
    plague = [*ILLS, "plague", None]
    skewed = some_rows(rng, 60, people=4) + some_rows(rng, 10, people=300)
    return [
        stream_case("every kind", some_rows(rng, 70), every),
        stream_case("persons repeat", some_rows(rng, 70, people=15), every[:3], persons=True),
        stream_case("few persons arrive often", skewed, persons=True),
        stream_case("unknown, out of range, missing", some_rows(rng, 70, 1000, **strange), every),
        stream_case("missing secrets", some_rows(rng, 50, ill=["flu", "gout", None, "?"]), ("age", "sex")),
        stream_case("unknown secrets", some_rows(rng, 50, ill=plague), ("age", "sex"), tree=True),
        stream_case("constant columns", some_rows(rng, 40, age=[40], city=["Rome"], sex=["f"]), every[:3]),
        stream_case("one secret", some_rows(rng, 40, ill=["flu"])),
        stream_case("one row", some_rows(rng, 1)),
        stream_case("one person", some_rows(rng, 40, people=1), persons=True),
        stream_case("without tags", some_rows(rng, 70, people=30), every[:3], persons=True, tagged=False),
    ]


def random_streams(count: int, seed: int = 0) -> list[StreamCase]:
    """Generate streams: any columns, with or without persons, gaps and unknown values; distributions may change over time."""
    return [_random_stream(f"random stream {i}", np.random.default_rng([7, seed, i])) for i in range(count)]


def _random_stream(name: str, rng: np.random.Generator) -> StreamCase:
    quasi = tuple(rng.choice(list(KINDS), int(rng.integers(1, 5)), replace=False).tolist())
    people = int(rng.choice([3, 10, 40, 1000]))
    rows: list[Row] = []
    for _ in range(int(rng.integers(1, 4))):
        columns: dict[str, list[Any]] = {}
        if rng.random() < 0.4:
            columns["age"] = [int(rng.integers(0, 100)), 50, None, 101]
        if rng.random() < 0.4:
            columns["city"] = ["Rome", "Oslo", "Atlantis"]
        if rng.random() < 0.4:
            columns["ill"] = [ILLS[int(rng.integers(4))], "gout", None, "plague"][: int(rng.integers(1, 5))]
        rows += some_rows(rng, int(rng.integers(1, 60)), people, **columns)
    return stream_case(
        name, rows, quasi, persons=bool(rng.random() < 0.5), tagged=bool(rng.random() < 0.8), tree=bool(rng.random() < 0.3)
    )

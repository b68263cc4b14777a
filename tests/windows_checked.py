"""What a stream in windows must have done, by plain code of its own: shared by the tests of windows."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.streams.sabre_window import SabreWindow
from closeknit.streams.windowed import Windowed

JOBS = {"office": {"clerk": None, "lawyer": None}, "craft": {"smith": None, "cook": None, "baker": None}}
ILLS = {"lung": {"flu": None, "asthma": None}, "skin": {"burn": None, "eczema": None}, "gout": None}
Row = dict[str, Any]


def schema_of(secret: Any, person: bool = False, rows: str = "together") -> ck.Schema:
    quasi = {"age": ck.numeric(0, 100), "job": ck.Hierarchy.from_nested({"any": JOBS}), "sex": ck.flat()}
    extra: Row = {"person": "who", "person_rows": rows} if person else {}
    return ck.Schema(quasi=quasi, sensitive={"secret": secret}, plain=["id"], allow_unique=["id"], missing=["?"], **extra)


TREE = ck.Hierarchy.from_nested({"ill": ILLS})


# Plain judges -------------------------------------------------------------------------------------------------------------


def ordered(q: Counter[Any], p: Counter[Any]) -> Fraction:
    values, moved, carried = sorted(p), Fraction(0), Fraction(0)
    for value in values[:-1]:
        carried += Fraction(q[value], q.total()) - Fraction(p[value], p.total())
        moved += abs(carried)
    return moved / max(len(values) - 1, 1)


def equal(q: Counter[Any], p: Counter[Any]) -> Fraction:
    return sum((abs(Fraction(q[v], q.total()) - Fraction(p[v], p.total())) for v in p), Fraction(0)) / 2


def hierarchical(q: Counter[Any], p: Counter[Any]) -> Fraction:
    """Height of the tree is 2; a missing value is a leaf under its root."""
    groups = {leaf: group for group, under in ILLS.items() for leaf in (under or ())}
    moved, tops = Fraction(0), defaultdict(Fraction)
    for group in {*groups.values(), "gout", None}:
        leaves = [v for v in p if groups.get(v, v) == group]
        extra = [Fraction(q[v], q.total()) - Fraction(p[v], p.total()) for v in leaves]
        more, less = sum(x for x in extra if x > 0), -sum(x for x in extra if x < 0)
        moved += Fraction(min(more, less), 2)
        tops[group] = Fraction(more - less)
    return moved + sum((x for x in tops.values() if x > 0), Fraction(0))


def gain_is_kept(q: Counter[Any], p: Counter[Any], beta: float) -> bool:
    """Enhanced likeness; the limits of these tests are nowhere near a logarithm."""
    for value, count in q.items():
        there = p[value] / p.total()
        if count / q.total() > there * (1 + min(beta, -math.log(there))) + 1e-12:
            return False
    return True


def covers(cell: str, raw: Any, column: str) -> bool:
    """Whether a written cell says something true of the raw one."""
    if cell == "*":
        return True
    if raw in (None, "?"):
        return cell in (None, "")
    if column == "age":
        ends = [float(x) for x in cell.strip("[]").split(",")] if cell.startswith("[") else [float(cell)] * 2
        return 0 <= float(raw) <= 100 and ends[0] <= float(raw) <= ends[1]
    if column == "job":
        return cell == raw or cell == "any" or raw in JOBS.get(cell, {})
    return cell == str(raw)


@dataclass
class Run:
    """What a stream did with its rows: each published row with the number of rows that had come."""

    rows: Sequence[Row]
    left: list[tuple[int, Row]]
    stream: Windowed

    @classmethod
    def of(cls, stream: Windowed, rows: Sequence[Row], at_once: int = 1) -> Run:
        left: list[tuple[int, Row]] = []
        for i in range(0, len(rows), at_once):
            came = rows[i : i + at_once]
            out = stream.push(came[0]) if at_once == 1 else table_rows(stream.push_many(as_columns(came, stream.schema)))
            left += [(i + len(came), row) for row in out]
        return cls(rows, left + [(-1, out) for out in stream.flush()], stream)

    def span(self, window: int) -> tuple[int, int]:
        """Positions of a window: of the last rows where it is the last one and does not begin where others do."""
        n, omega, advance = len(self.rows), self.stream.omega, self.stream.advance
        cut = max(0, n - omega)
        return (cut, n) if window == -(-cut // advance) else (window * advance, window * advance + omega)

    def check(
        self, holds: Callable[[Counter[Any], Counter[Any]], bool], k: int = 1, placed: bool = False, person: bool = False
    ) -> None:
        """`placed`: rows without a secret count nowhere and never leave."""
        rows, omega, advance = self.rows, self.stream.omega, self.stream.advance
        ids = [out["id"] for _, out in self.left]
        assert len(set(ids)) == len(ids)
        counters = self.stream.counters
        assert (counters.rows_in, counters.rows_out, counters.pending) == (len(rows), len(ids), 0)
        assert counters.suppressed == len(rows) - len(ids)
        classes: dict[Any, list[int]] = defaultdict(list)
        references: dict[int, Counter[Any]] = {}
        for arrived, out in self.left:
            assert set(out) == {"age", "job", "sex", "secret", "id", "window"}
            i, raw = out["id"], rows[out["id"]]
            assert arrived == -1 or arrived <= i // advance * advance + omega + advance
            assert all(covers(out[name], raw[name], name) for name in ("age", "job", "sex"))
            assert out["secret"] == shown(raw["secret"])
            assert not (placed and out["secret"] is None)
            classes[out["window"], out["age"], out["job"], out["sex"]].append(i)
        for (window, *_), members in classes.items():
            first, end = self.span(window)
            assert all(first <= i < end for i in members)
            if window not in references:
                references[window] = Counter(shown(rows[i]["secret"]) for i in range(first, end))
            if placed:
                del references[window][None]
            assert holds(Counter(shown(rows[i]["secret"]) for i in members), references[window])
            assert len({rows[i]["who"] if person else i for i in members}) >= k

    def expired(self) -> set[int]:
        """Positions that had to leave before the stream ended, and did not."""
        due = max(0, len(self.rows) - self.stream.omega)
        return set(range(due)) - {out["id"] for _, out in self.left}


def shown(secret: Any) -> Any:
    """What is published of a secret: a strange one like a missing one."""
    return None if secret in (None, "?", "martian", 1000) else secret


# Streams ------------------------------------------------------------------------------------------------------------------


@st.composite
def streams(draw: st.DrawFn, secrets: Sequence[Any], person: bool = False) -> tuple[list[Row], int, int]:
    """Rows, omega and advance: skewed, with missing and unknown cells, in windows of every shape."""
    advance = draw(st.sampled_from([1, 2, 3, 5, 8]))
    omega = advance * draw(st.integers(1, 5))
    n = draw(st.integers(0, 70))
    seed, strange, drift = draw(st.integers(0, 10**6)), draw(st.sampled_from([0, 0.1])), draw(st.booleans())
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        mean = 3 * i // max(n, 1) if drift else 1
        secret = secrets[min(int(abs(rng.gauss(mean, 1.2))), len(secrets) - 1)]
        row = {
            "age": rng.choice([None, 130, "x"]) if rng.random() < strange else rng.choice([3, 17, 17.5, 40, 99]),
            "job": "diver" if rng.random() < strange else rng.choice(["clerk", "lawyer", "smith", "cook", "baker", "?"]),
            "sex": rng.choice(["f", "m", "f", None]),
            "secret": secret,
            "id": i,
        }
        rows.append(row | ({"who": f"p{rng.randrange(1 + n // 3)}"} if person else {}))
    return rows, omega, advance


NUMBERS = [10, 20, 20.5, 40, 70]
NAMES = ["flu", "asthma", "burn", "gout", None, "martian"]
METHODS: dict[str, Callable[..., Windowed]] = {
    "sabre": SabreWindow,
    "sabre, searching": lambda *a, **p: SabreWindow(*a, fill="knn", slack=True, polish=True, **p),
    "mondrian": lambda *a, **p: Windowed(ck.Mondrian(), *a, **p),
    "incognito": lambda *a, **p: Windowed(ck.Incognito(), *a, **p),
    "stack and deal": lambda *a, **p: Windowed(ck.StackAndDeal(), *a, **p),
}


def as_columns(rows: Iterable[Row], schema: ck.Schema) -> Columns:
    rows = list(rows)
    return Columns.of({name: [row[name] for row in rows] for name in schema.used})


def table_rows(columns: Columns) -> list[Row]:
    cells = {name: column.cells() for name, column in columns.items()}
    return [{name: column[i] for name, column in cells.items()} for i in range(columns.rows)]

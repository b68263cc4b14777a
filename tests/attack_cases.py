"""Small releases of every form with what is seen of their secrets, read off the written cells: for the tests of attacks."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.reading import Reading
from closeknit.core.table import Partition

TREE = {"lungs": {"flu": None, "asthma": None}, "belly": {"ulcer": None, "gout": None}}
DISEASES = ["flu", "asthma", "ulcer", "gout"]
WAGES = ck.numeric(-5, 20)
QUASI = {"age": ck.numeric(), "sex": ck.flat()}


@dataclass
class Case:
    """A release, and what is seen of each secret, from its written cells: class -> secrets of its rows."""

    reading: Reading
    seen: dict[str, dict[tuple[Any, ...], list[Any]]]
    rows: list[dict[str, Any]]


def case(form: Any, cells: dict[str, list[Any]], class_of: list[int], sensitive: dict[str, Any], known_by: Any = None) -> Case:
    """`known_by`: per secret the columns that identify its class; none: the quasi columns."""
    schema = ck.Schema(quasi=QUASI, sensitive=sensitive)
    table = schema.encode(Columns.of({name: cells[name] for name in schema.published}))
    written = form.write(table, Partition.of(np.array(class_of, dtype=np.int32)[table.rows]), 5).columns
    named = {name: written[name].cells() for name in written}
    rows = [dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True)]
    seen: dict[str, dict[tuple[Any, ...], list[Any]]] = {}
    for secret in sensitive:
        known = tuple(QUASI) if known_by is None else known_by[secret]
        found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
        for row in rows:
            if row[secret] != "*":
                value = int(row[secret]) if secret == "wage" and row[secret] is not None else row[secret]
                found[tuple(row[name] for name in known)].append(value)
        seen[secret] = found
    return Case(form.read(written, schema), seen, rows)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Every form that writes secrets as they are."""
    n = draw(st.integers(1, 6))

    def some(values: list[Any]) -> list[Any]:
        return draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))

    wages = [0, 1, 2, 4, 10, 20]
    cells = {
        "age": some([20, 21, 25, None]),
        "sex": some(["f", "m", None]),
        "disease": some([*DISEASES, None]),
        "wage": some(wages + [None] * draw(st.integers(0, 1))),
    }
    class_of = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    both = {"disease": ck.Hierarchy(TREE), "wage": WAGES}
    kind = draw(st.sampled_from(["generalized", "starred", "hidden", "bucketized", "multiset", "sliced", "permuted"]))
    bucket = {"disease": ("bucket",), "wage": ("bucket",)}
    if kind in ("starred", "hidden"):
        class_of = [-1 if c == 2 else c for c in class_of]
        return case(ck.generalized(suppressed=kind), cells, class_of, both)
    if kind == "generalized":
        return case(ck.generalized(), cells, class_of, both)
    if kind == "permuted":
        return case(ck.permuted(), cells, class_of, {"wage": WAGES}, bucket)
    if kind == "sliced":
        form = ck.sliced([["age", "wage"], ["sex", "disease"]])
        return case(form, cells, class_of, both, {"disease": ("bucket", "sex"), "wage": ("bucket", "age")})
    return case(getattr(ck, kind)(), cells, class_of, both, bucket)


def believed(secrets: list[Any]) -> dict[Any, Fraction]:
    """Over all ways to hand the secrets of a class out to its people: what the first of them has."""
    first = Counter(way[0] for way in permutations(secrets))
    return {value: Fraction(count, sum(first.values())) for value, count in first.items()}


def shown(value: Any) -> str:
    return "missing" if value is None else str(value)


def all_of(classes: dict[tuple[Any, ...], list[Any]]) -> list[Any]:
    return [value for secrets in classes.values() for value in secrets]


def rerun_of(schema: ck.Schema, models: list[Any], method: Any) -> Any:
    """The method as an attacker runs it again: the cells that it writes, or None where it refuses."""

    def rerun(table: Columns) -> Columns | None:
        try:
            return ck.anonymize(table, schema, models, method, seed=2**64).columns
        except ck.CloseknitError:
            return None

    return rerun

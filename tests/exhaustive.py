"""A slow Incognito, made of dictionaries and rationals: every vector of levels, judged from its cells by the oracle."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import closeknit as ck
from closeknit.checks.oracle import oracle_holds
from closeknit.checks.tables import JOB, ODD
from closeknit.core.columns import Columns
from closeknit.core.model import Model
from closeknit.core.table import Table

Row = dict[str, Any]
DISEASE = {"respiratory": ["flu", "asthma"], "digestive": ["ulcer"]}


def height(below: Any) -> int:
    return 1 + max(height(child) for child in below.values()) if below else 0


@dataclass(frozen=True)
class Axis:
    """A quasi column: its kind, raw values to draw from, the cell of a value at each level, and what a cell costs.

    `cost(cell, level, published values)`; `*` and missing cells are not asked for.
    """

    kind: Any
    values: Sequence[Any]
    top: int
    cell: Callable[[Any, int], str]
    cost: Callable[[str, int, list[Any]], Fraction]

    def written(self, value: Any, level: int) -> str | None:
        if level == self.top:
            return "*"
        return None if value is None else self.cell(value, level)

    def loss(self, value: Any, level: int, published: list[Any]) -> Fraction:
        cell = self.written(value, level)
        if cell is None or cell == "*":
            return Fraction(cell == "*")
        return self.cost(cell, level, published)


def tree_axis(nested: dict[str, Any]) -> Axis:
    """A declared tree: at level i a leaf stands at its highest ancestor of height i at most."""
    ways: dict[str, list[tuple[str, int]]] = {}

    def walk(below: dict[str, Any], way: list[tuple[str, int]]) -> None:
        for label, child in below.items():
            here = [*way, (label, height(child))]
            if child:
                walk(child, here)
            else:
                ways[label] = here

    (only,) = nested.values() if len(nested) == 1 else (None,)
    walk(nested, [])
    top = height(only) if only else height(nested)

    def cell(value: str, level: int) -> str:
        return next(label for label, high in ways[value] if high <= level)

    def cost(label: str, level: int, published: list[Any]) -> Fraction:
        under = {leaf for leaf, way in ways.items() if cell(leaf, level) == label}
        return Fraction(len(under), len(ways)) if len(under) > 1 else Fraction(0)

    return Axis(ck.Hierarchy.from_nested(nested), list(ways), top, cell, cost)


def masked(value: str, level: int) -> str:
    return value[: 3 - level] + "*" * level


def tens(value: int, level: int) -> str:
    return str(value) if level == 0 else f"[{value // 10 * 10}, {value // 10 * 10 + 10}]"


def width(bounds: tuple[int, int] | None) -> Callable[[str, int, list[Any]], Fraction]:
    def cost(label: str, level: int, published: list[Any]) -> Fraction:
        if level == 0:
            return Fraction(0)
        cells = [value // 10 * 10 for value in published if value is not None]
        low, high = bounds or (min(cells), max(cells) + 10)
        return Fraction(10, high - low)

    return cost


AXES = {
    "job": tree_axis(JOB),
    "odd": tree_axis(ODD),
    "zip": Axis(ck.prefix(3), ["470", "471", "480", "120"], 3, masked, lambda cell, *_: Fraction(cell.count("*"), 3)),
    "sex": Axis(ck.flat(), ["f", "m"], 1, lambda value, level: value, lambda *_: Fraction(0)),
    "age": Axis(ck.numeric(), [21, 25, 38], 1, lambda value, level: str(value), lambda *_: Fraction(0)),
    "visits": Axis(ck.numeric(0, 50, step=10), [1, 5, 12, 39], 2, tens, width((0, 50))),
    "weight": Axis(ck.numeric(step=10), [55, 58, 61, 93], 2, tens, width(None)),
}
SECRETS: dict[str, tuple[Any, list[Any]]] = {
    "disease": (ck.Hierarchy.from_nested(DISEASE), ["flu", "asthma", "ulcer"]),
    "wage": (ck.numeric(), [10, 20, 40]),
    "blood": (ck.flat(), ["A", "B", None]),
}


def holds(model: Model, rows: list[Row], every: list[Row]) -> bool:
    """The oracle's decision on some rows together with all published ones."""
    if isinstance(model, Narrow):
        return len(rows) <= model.most
    params = {key: value for key, value in vars(model).items() if key not in ("column", "distance") and value is not None}
    if model.column is None:
        return oracle_holds(model.name, [None] * len(rows), [], **params)
    assert isinstance(model.column, str)
    here, there = ([row[model.column] for row in some] for some in (rows, every))
    if model.name == "t_closeness" and model.column == "wage":
        params["ground"] = sorted(set(there))
    elif model.name == "t_closeness" and getattr(model, "distance", None) is None:
        params["ground"] = {name: dict.fromkeys(leaves) for name, leaves in DISEASE.items()}
    return oracle_holds(model.name, here, there, **params)


@dataclass(frozen=True)
class Found:
    loss: Fraction
    vector: tuple[int, ...]
    suppressed: frozenset[int]


def exhaustive(rows: list[Row], axes: dict[str, Axis], models: Sequence[Model], room: int, weights: list[int]) -> Found | None:
    """Every vector of the lattice, judged from its cells."""
    found = []
    for vector in itertools.product(*(range(axis.top + 1) for axis in axes.values())):
        published = left(rows, axes, vector, models)
        if published and len(rows) - len(published) <= room:
            lost = Fraction(len(rows) - len(published))
            for (name, axis), level, weight in zip(axes.items(), vector, weights, strict=True):
                shown = [rows[i][name] for i in published]
                lost += sum((axis.loss(value, level, shown) for value in shown), Fraction(0)) * Fraction(weight, sum(weights))
            found.append(Found(lost / len(rows), vector, frozenset(range(len(rows))) - published))
    return min(found, key=lambda one: (one.loss, one.vector), default=None)


def left(rows: list[Row], axes: dict[str, Axis], vector: Sequence[int], models: Sequence[Model]) -> set[int]:
    """The rows that are left when groups that break a guarantee are suppressed until none does."""
    groups: dict[Any, list[int]] = {}
    for i, row in enumerate(rows):
        cells = tuple(axis.written(row[name], level) for (name, axis), level in zip(axes.items(), vector, strict=True))
        groups.setdefault(cells, []).append(i)
    while True:
        every = [rows[i] for members in groups.values() for i in members]
        broken = [
            cells
            for cells, members in groups.items()
            if not all(holds(model, [rows[i] for i in members], every) for model in models)
        ]
        if not broken:
            return {i for members in groups.values() for i in members}
        groups = {cells: members for cells, members in groups.items() if cells not in broken}


def encoded(rows: list[Row], axes: dict[str, Axis], weights: list[int], secrets: Sequence[str], room: int = 0) -> Table:
    schema = ck.Schema(
        quasi={name: axis.kind for name, axis in axes.items()},
        sensitive={name: SECRETS[name][0] for name in secrets},
        importance=dict(zip(axes, weights, strict=True)),
    )
    names = [*axes, *secrets]
    return replace(schema.encode(Columns.of({name: [row[name] for row in rows] for name in names})), suppressible=room)


@dataclass(frozen=True)
class Narrow(Model):
    """A guarantee that is not monotone: a class has at most so many rows."""

    name = "narrow"
    needs = frozenset({"sizes"})
    column = None
    most: int

    def describe(self, domain: Any) -> str:
        return f"at most {self.most} rows"

    def holds(self, classes: Any) -> Any:
        return classes.sizes <= self.most

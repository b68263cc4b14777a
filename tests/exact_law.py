"""The exact law of SoftStop on tiny tables: every outcome of every test is tried, and probabilities are added per partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from math import exp, expm1, log
from typing import Any

import numpy as np

from closeknit.core.coins import Coins
from closeknit.core.columns import Columns
from closeknit.core.method import ignore_progress
from closeknit.core.model import Model, joints
from closeknit.core.schema import Schema
from closeknit.core.table import Table
from closeknit.methods import SoftStop

Partition = frozenset[frozenset[int]]
Law = dict[Partition, float]


class ScriptedCoins(Coins):
    """Coins that fall as written, and after that always stop; keeps what was tested."""

    def __init__(self, script: Sequence[bool]) -> None:
        super().__init__(b"")
        self.script, self.tested = script, []  # type: ignore[var-annotated]

    def stops(self, x: Fraction, label: str) -> bool:
        if x == 0:
            return True
        place = len(self.tested)
        fallen = self.script[place] if place < len(self.script) else True
        self.tested.append((fallen, x))
        return fallen


class HardCoins(ScriptedCoins):
    """The control without chance: a class is cut whenever it may be."""

    def stops(self, x: Fraction, label: str) -> bool:
        return x == 0


def law_of(method: SoftStop, columns: dict[str, list[Any]], schema: Schema, models: Sequence[Model], coins: type) -> Law:
    """Probability of each partition of the input rows; ties of quasi-identifiers in every order."""
    table = schema.encode(Columns.of(columns)).join_secrets(joints(models))
    orders = list(_tie_orders(table))
    law: Law = defaultdict(float)
    for order in orders:
        ordered, scripts = table.take(order), [()]
        while scripts:
            drawn = coins(script := scripts.pop())
            partition = method.cut_table(ordered, models, drawn, ignore_progress)
            chance = 1.0
            for fallen, x in drawn.tested:
                chance *= exp(-x) if fallen else -expm1(-x)
            classes = frozenset(
                frozenset(ordered.rows[partition.class_of == label].tolist()) for label in range(partition.count)
            )
            law[classes] += chance / len(orders)
            tested = [fallen for fallen, _ in drawn.tested]
            scripts += [(*tested[:place], False) for place in range(len(script), len(tested))]
    return law


def _tie_orders(table: Table) -> Iterator[np.ndarray]:
    """The orders of the rows in which the quasi-identifiers ascend."""
    _, group = np.unique(table.quasi, axis=0, return_inverse=True)
    ties = [list(permutations(np.flatnonzero(group == g))) for g in range(group.max() + 1)]
    for chosen in product(*ties):
        yield np.concatenate([np.array(part, dtype=np.int64) for part in chosen])


def worst_log_ratio(
    method: SoftStop,
    columns: dict[str, list[Any]],
    schema: Schema,
    models: Sequence[Model],
    units: Sequence[Sequence[int]] | None = None,
    coins: type = ScriptedCoins,
) -> float:
    """The largest |ln| of the ratio of the probabilities of a partition before and after an exchange inside a class.

    All assignments of the sensitive rows to the units are compared. A unit is a row, or the rows of a person.
    """
    secrets = list(schema.sensitive)
    units = units or [[row] for row in range(len(columns[secrets[0]]))]
    values = [tuple(tuple(columns[name][row] for row in unit) for name in secrets) for unit in units]
    laws: dict[tuple[Any, ...], Law] = {}
    for assigned in set(permutations(values)):
        if any(len(one[0]) != len(unit) for one, unit in zip(assigned, units, strict=True)):
            continue  # only persons with equally many rows can be exchanged
        cells = {name: list(column) for name, column in columns.items()}
        for unit, vector in zip(units, assigned, strict=True):
            for name, column in zip(secrets, vector, strict=True):
                for row, value in zip(unit, column, strict=True):
                    cells[name][row] = value
        laws[assigned] = law_of(method, cells, schema, models, coins)
        assert abs(sum(laws[assigned].values()) - 1) < 1e-9
    worst = 0.0
    for assigned, law in laws.items():
        for partition, chance in law.items():
            for i, j in _pairs(partition, units):
                other = list(assigned)
                other[i], other[j] = other[j], other[i]
                there = laws[tuple(other)].get(partition, 0.0) if tuple(other) in laws else chance
                worst = max(
                    worst, abs(log(there / chance)) if there > 0 and chance > 0 else float("inf") if there != chance else 0
                )
    return worst


def _pairs(partition: Partition, units: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    for rows in partition:
        inside = [place for place, unit in enumerate(units) if unit[0] in rows]
        yield from ((i, j) for i in inside for j in inside if i < j)

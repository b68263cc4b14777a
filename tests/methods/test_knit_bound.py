"""No partition is below the bound, none of a tiny table is below the best one, and Knit is near to both."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.core.geometry import scales
from closeknit.core.method import ignore_progress
from closeknit.core.model import Model
from closeknit.core.table import Partition, Table
from closeknit.search.repair import find_broken_classes
from conftest import examples

REQUESTED: list[list[Model]] = [
    [ck.KAnonymity(3)],
    [ck.KAnonymity(2), ck.TCloseness("disease", 0.4)],
    [ck.KAnonymity(2), ck.TCloseness("stay", 0.2)],
    [ck.KAnonymity(2), ck.BetaLikeness("disease", 2)],
    [ck.LDiversity("disease", 2, "frequency"), ck.LDiversity("disease", 3)],
    [ck.KAnonymity(2), ck.DeltaDisclosure("stay", 2.5)],
    [ck.KAnonymity(2), ck.TCloseness("disease", 0.5), ck.TCloseness("stay", 0.3)],
]


@pytest.fixture
def bound(benchmark: Callable[[str], Any]) -> Any:
    return benchmark("knit_bound")


@pytest.fixture
def best(benchmark: Callable[[str], Any]) -> Any:
    return benchmark("knit_best")


def hospital(rows: int, seed: int, quasi: Sequence[str] = ("age", "sex", "job")) -> Table:
    whole = ck.datasets.hospital_schema()
    schema = ck.Schema(quasi={name: whole.quasi[name] for name in quasi}, sensitive=whole.sensitive)
    frame = ck.datasets.hospital(rows, seed=seed)
    return schema.encode(frame)


def partitions(rows: list[int]) -> Iterator[list[list[int]]]:
    """Every way to part the rows into sets."""
    if not rows:
        yield []
        return
    first, rest = rows[0], rows[1:]
    for size in range(len(rest) + 1):
        for others in itertools.combinations(rest, size):
            for more in partitions([row for row in rest if row not in others]):
                yield [[first, *others], *more]


def least(best: Any, table: Table, models: Sequence[Model]) -> float:
    """The least loss over all partitions, each judged by the models themselves."""
    sets = [list(s) for size in range(1, len(table) + 1) for s in itertools.combinations(range(len(table)), size)]
    holds = {}
    for members in sets:
        class_of = np.full(len(table), -1, dtype=np.int32)
        class_of[members] = 0
        broken = find_broken_classes(replaced(table), Partition(class_of, 1), models)
        holds[tuple(members)] = not broken.any()
    lost = [1.0]
    for parts in partitions(list(range(len(table)))):
        if all(holds[tuple(part)] for part in parts):
            class_of = np.empty(len(table), dtype=np.int32)
            for c, part in enumerate(parts):
                class_of[part] = c
            lost.append(best.loss_of(table, Partition(class_of, len(parts))))
    return min(lost)


def replaced(table: Table) -> Table:
    """The table with its whole as what classes are judged against, also where some rows are left out."""
    whole = {name: histogram.reference for name, histogram in table.one_class().histograms.items()}
    return replace(table, references=whole)


@pytest.mark.parametrize("number", range(len(REQUESTED)))
def test_the_best_partition_is_the_best_of_all(best: Any, number: int) -> None:
    table, models = hospital(7, seed=number), REQUESTED[number]
    found = best.optimum(table, models)
    assert not find_broken_classes(table, found, models).any()
    assert best.loss_of(table, found) == pytest.approx(least(best, table, models))


def test_no_partition_is_below_the_bound(bound: Any, best: Any) -> None:
    shares = []
    for seed in range(examples(14)):
        table, models = hospital(9 + seed % 4, seed), REQUESTED[seed % len(REQUESTED)]
        measured, below = best.loss_of(table, best.optimum(table, models)), bound.lower_bound(table, models)
        assert below <= measured + 1e-6
        shares.append(below / measured)
    assert np.mean(shares) > 0.85, "it says something"


def test_boxes_are_all_that_classes_can_have(bound: Any, best: Any) -> None:
    table = hospital(8, 3)
    guard, geometry = best.guarded(table, [ck.KAnonymity(1)]), scales(table)
    kinds, _ = bound.Kinds.of(table, guard)
    found = {tuple(inside.tolist()) for inside in bound.boxes(kinds, geometry, 2)}
    wanted = set()
    for size in range(2, len(table) + 1):
        for rows in itertools.combinations(table.quasi, size):
            ends = zip(np.min(rows, axis=0).tolist(), np.max(rows, axis=0).tolist(), strict=True)
            low, high = np.array([bound.span(geometry, j, a, b) for j, (a, b) in enumerate(ends)]).T
            wanted.add(tuple(((kinds.quasi >= low) & (kinds.quasi <= high)).all(axis=1).tolist()))
    assert found == wanted


def test_least_sizes_are_those_of_the_smallest_allowed_sets(bound: Any, best: Any) -> None:
    table = hospital(8, 5)
    for models in REQUESTED[1:4]:
        guard = best.guarded(table, models)
        there = np.bincount(guard.node[:, 0], minlength=len(guard.parent))
        least_of: dict[int, int] = {}
        for size in range(1, 9):
            for rows in map(list, itertools.combinations(range(8), size)):
                class_of = np.full(8, -1, dtype=np.int32)
                class_of[rows] = 0
                if not find_broken_classes(replaced(table), Partition(class_of, 1), models).any():
                    for node in guard.node[rows, 0].tolist():
                        least_of.setdefault(node, size)
        for node in np.unique(guard.node[:, 0]).tolist():
            assert bound.least_size(guard, 0, there, node, 8) == least_of.get(node, 9)


def test_parts_of_the_columns_are_below_all_of_them(bound: Any) -> None:
    table, models = hospital(12, 1), REQUESTED[1]
    whole, parts = bound.lower_bound(table, models), bound.by_parts(table, models, [["job"], ["sex", "age"]])
    assert 0 < parts <= whole + 1e-6


def test_rounded_shares_are_a_partition_near_the_bound(bound: Any, best: Any) -> None:
    table, models = hospital(200, 2, ("sex", "job")), [ck.KAnonymity(3), ck.TCloseness("disease", 0.3)]
    found = bound.relaxed(table, models)
    made = found.rounded()
    assert len(made.class_of) == 200 and made.class_of.min() == 0
    assert best.loss_of(table, made) == pytest.approx(found.loss, rel=0.1)
    knit = ck.Knit(proposals=32 * 200 * 14).run(table, models, 1, ignore_progress).partition
    again = bound.relaxed(table, models, knit)
    assert found.loss - 1e-6 <= again.loss <= best.loss_of(table, knit) + 1e-6


def test_knit_is_near_the_best_partition(best: Any) -> None:
    over = []
    for seed in range(examples(6)):
        table, models = hospital(12, seed, ("age", "sex", "zip", "job")), REQUESTED[seed % len(REQUESTED)]
        made = ck.Knit().run(table, models, seed, ignore_progress).partition
        over.append(best.loss_of(table, made) / best.loss_of(table, best.optimum(table, models)) - 1)
    assert min(over) > -1e-9 and np.mean(over) < 0.02

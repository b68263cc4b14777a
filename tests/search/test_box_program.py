"""The linear program over boxes: its boxes, its least sizes, its rounded shares, and what any prices prove."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import closeknit as ck
from bound_cases import REQUESTED, hospital, replaced
from closeknit.core.geometry import scales
from closeknit.core.method import ignore_progress
from closeknit.core.table import Partition
from closeknit.kernels.counting.least_classes import least_size
from closeknit.search.box_program import Kinds, Program, TooLarge, list_boxes, solve_boxes, span
from closeknit.search.guards import guard_of
from closeknit.search.repair import find_broken_classes


def test_boxes_are_all_that_classes_can_have(best: Any) -> None:
    table = hospital(8, 3)
    guard, geometry = best.guarded(table, [ck.KAnonymity(1)]), scales(table)
    kinds, _ = Kinds.of(table, guard)
    found = {tuple(inside.tolist()) for inside in list_boxes(kinds, geometry, 2)}
    wanted = set()
    for size in range(2, len(table) + 1):
        for rows in itertools.combinations(table.quasi, size):
            ends = zip(np.min(rows, axis=0).tolist(), np.max(rows, axis=0).tolist(), strict=True)
            low, high = np.array([span(geometry, j, a, b) for j, (a, b) in enumerate(ends)]).T
            wanted.add(tuple(((kinds.quasi >= low) & (kinds.quasi <= high)).all(axis=1).tolist()))
    assert found == wanted


def test_least_sizes_are_those_of_the_smallest_allowed_sets(best: Any) -> None:
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
            assert least_size(guard, 0, there, node, 8) == least_of.get(node, 9)


def test_rounded_shares_are_a_partition_near_the_bound(best: Any) -> None:
    table, models = hospital(200, 2, ("sex", "job")), [ck.KAnonymity(3), ck.TCloseness("disease", 0.3)]
    found = solve_boxes(table, best.guarded(table, models))
    made = found.round_shares()
    assert len(made.class_of) == 200 and made.class_of.min() == 0
    assert best.loss_of(table, made) == pytest.approx(found.loss, rel=0.1)
    knit = ck.Knit(proposals=32 * 200 * 14).run(table, models, 1, ignore_progress).partition
    again = solve_boxes(table, best.guarded(table, models), knit)
    assert found.loss - 1e-6 <= again.loss <= best.loss_of(table, knit) + 1e-6


def test_prices_of_any_kind_give_a_valid_bound() -> None:
    table = hospital(30, 2, ("sex", "job"))
    guard = guard_of(table, [ck.KAnonymity(4)]).guard
    with pytest.raises(TooLarge):
        solve_boxes(table, guard, most=3)
    program = Program(100)
    x, y = program.add_variables([5.0, 5.0], cost=1.0)
    program.add_condition(False, [x, y], [-1.0, -2.0], limit=-4.0)  # x + 2 y >= 4, so the least cost is 2
    matrices = {False: csr_array([[-1.0, -2.0]]), True: csr_array((0, 2))}
    for price in np.linspace(-3, 0, 31):
        assert program._prove(matrices, {False: np.array([price]), True: np.zeros(0)}) <= 2

"""The rival of CASTLE: groups of k to 2k - 1 near rows, and pseudo-rows that keep their means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def groups_of(benchmark: Callable[[str], Any]) -> Callable[[int, int, int], Any]:
    DynamicGroup = benchmark("experiments.dynamic_group").DynamicGroup

    def made(rows: int, k: int, history: int) -> Any:
        cells = np.random.default_rng(rows).random((rows, 3))
        groups = DynamicGroup(k, history)
        groups.take(cells)
        return groups, cells

    return made


@pytest.mark.parametrize(("rows", "k", "history"), [(500, 5, 100), (500, 20, 500), (63, 10, 20), (9, 10, 8), (40, 1, 4)])
def test_every_row_is_in_one_group_of_at_least_k(groups_of: Any, rows: int, k: int, history: int) -> None:
    groups, _ = groups_of(rows, k, history)
    assert sorted(i for group in groups.members for i in group) == list(range(rows))
    sizes = [len(group) for group in groups.members]
    assert max(sizes) < 2 * k or k == 1 or rows <= history, "a group of 2k is cut"
    assert min(sizes) >= min(k, rows)
    assert np.bincount(groups.class_of()).tolist() == sizes


def test_boxes_lose_less_with_smaller_groups(groups_of: Any) -> None:
    losses = [groups_of(800, k, 200)[0].loss() for k in (2, 10, 50)]
    assert 0 < losses[0] < losses[1] < losses[2] < 1


def test_pseudo_rows_keep_means_and_are_nobodys(groups_of: Any) -> None:
    groups, cells = groups_of(2000, 25, 400)
    made = groups.pseudo_rows()
    assert made.shape == cells.shape and made.min() >= 0 and made.max() <= 1
    assert not (made == cells).all(axis=1).any()
    assert np.abs(made.mean(axis=0) - cells.mean(axis=0)).max() < 0.02
    assert np.abs(np.cov(made.T) - np.cov(cells.T)).max() < 0.01

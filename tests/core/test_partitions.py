"""Random partitions of the benchmarks are what they are called, and the least distance of a class of few rows is the least."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import linprog

CODES = np.repeat(np.arange(6), (167, 153, 127, 103, 91, 89)).astype(np.int32)


@pytest.fixture
def partitions(benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark("partitions")


@pytest.fixture
def printed_sizes(benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark("printed_sizes")


def canonical(class_of: np.ndarray) -> tuple[int, ...]:
    names: dict[int, int] = {}
    return tuple(names.setdefault(c, len(names)) for c in class_of.tolist())


@pytest.mark.parametrize(("name", "most", "count"), [("sizes_k", 3, 105), ("sizes_free", 7, 162)])
def test_every_partition_is_equally_likely(partitions: ModuleType, name: str, most: int, count: int) -> None:
    """Of seven rows into classes of two or three, and into classes of at least two."""
    every = {
        key
        for class_of in itertools.product(range(3), repeat=7)
        if (sizes := Counter(class_of).values())
        and min(sizes) >= 2
        and max(sizes) <= most
        and (key := canonical(np.array(class_of)))
    }
    rng, each = np.random.default_rng(7), 30
    seen = Counter(canonical(getattr(partitions, name)(7, 2, rng)) for _ in range(each * count))
    assert len(every) == count and set(seen) == every
    chi = sum((n - each) ** 2 / each for n in seen.values())
    assert chi < count + 5 * (2 * count) ** 0.5


@pytest.mark.parametrize("k", [5, 11])
def test_groups_have_the_properties_of_their_name(partitions: ModuleType, k: int) -> None:
    rng = np.random.default_rng(k)
    groups = {
        "A": (partitions.neither(CODES, k, rng), False, range(2, 100)),
        "B": (partitions.sizes_only(CODES, k, rng), True, range(2, 100)),
        "C": (partitions.both(CODES, k, rng), True, [0, 1]),
        "D": (partitions.values_only(CODES, k, rng), False, [1]),
        "D, number of classes first": (partitions.values_only_count_first(CODES, k, rng), False, [1]),
        "Rand1": (partitions.values_within(CODES, k, 2, rng), None, [2]),
        "Rand2": (partitions.values_within(CODES, k, 3, rng), None, [3]),
    }
    for name, (drawn, even, widths) in groups.items():
        first, second = next(drawn), next(drawn)
        assert canonical(first) != canonical(second), name
        for class_of in (first, second):
            assert len(class_of) == len(CODES) and np.bincount(class_of).min() >= k, name
            assert partitions.width(class_of, CODES) in widths, name
            assert even is None or (partitions.uneven(class_of) <= 1) == even, name


def moved(counts: tuple[int, ...], shares: np.ndarray, ground: np.ndarray) -> float:
    """Earth mover's distance as the transport problem that it is."""
    m, size = len(shares), sum(counts)
    rows = [np.kron(np.eye(m)[i], np.ones(m)) for i in range(m)] + [np.kron(np.ones(m), np.eye(m)[i]) for i in range(m)]
    return float(linprog(ground.ravel(), A_eq=np.array(rows), b_eq=[*(c / size for c in counts), *shares]).fun)


@pytest.mark.parametrize("size", [2, 4])
def test_least_distance_of_few_rows_is_that_of_the_best_rows(printed_sizes: ModuleType, size: int) -> None:
    shares = np.array([0.31, 0.07, 0.22, 0.4])
    group = np.array([0, 0, 1, 1])
    tree = np.where(group[:, None] == group, 0.5, 1.0) * (1 - np.eye(4))
    line = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) / 3
    every = [c for c in itertools.product(range(size + 1), repeat=4) if sum(c) == size]
    assert printed_sizes.least_in_tree([shares[:2], shares[2:]], size) == pytest.approx(
        min(moved(c, shares, tree) for c in every)
    )
    flat = 1 - np.eye(4)
    assert printed_sizes.least_in_tree([shares], size, 1.0) == pytest.approx(min(moved(c, shares, flat) for c in every))
    assert printed_sizes.least_ordered(shares, size) == pytest.approx(min(moved(c, shares, line) for c in every))


def test_printed_tables_have_75_cells_and_23_that_no_partition_has(printed_sizes: ModuleType) -> None:
    cells = list(printed_sizes.cells())
    assert len(cells) == 75
    assert all(cell.k <= cell.least <= cell.mean <= cell.largest for cell in cells)
    assert sum(cell.least == cell.largest and 45_222 % cell.least > 0 for cell in cells) == 23

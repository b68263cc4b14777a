"""Earth mover's distances against a transportation solver and against themselves in other arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog
from test_models import Drawn, tables, trees

from closeknit.checks.oracle import transport
from closeknit.core.classes import Classes, Histogram
from closeknit.core.domain import Domain
from closeknit.core.kinds import numeric
from closeknit.core.tree import Tree
from closeknit.models import TCloseness, t_closeness
from conftest import examples


def paths(tree: dict[str, Any], above: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """Leaf -> the names from the top down to it."""
    found: dict[str, tuple[str, ...]] = {}
    for name, below in tree.items():
        found |= paths(below, (*above, name)) if below else {name: (*above, name)}
    return found


def ground_matrix(tree: dict[str, Any]) -> NDArray[np.float64]:
    """Height of the lowest common ancestor over the height of the root, the missing leaf last and right under the root."""
    way = paths(tree)
    top = "" if len(tree) > 1 or None in tree.values() else next(iter(tree))
    height: dict[str, int] = {}
    for path in way.values():
        for i, name in enumerate(("", *path)):
            height[name] = max(height.get(name, 0), len(path) - i)
    height[""] = height[top]
    leaves = [*way.values(), ()]

    def apart(a: tuple[str, ...], b: tuple[str, ...]) -> float:
        shared = [x for x, y in zip(a, b, strict=False) if x == y]
        return height[shared[-1] if shared else ""] / height[""]

    return np.array([[0.0 if a is b else apart(a, b) for b in leaves] for a in leaves])


def solved(p: NDArray[np.float64], q: NDArray[np.float64], ground: NDArray[np.float64]) -> float:
    """The transportation problem as a linear program."""
    m = len(p)
    rows, columns = np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))
    result = linprog(ground.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([p, q]), method="highs")
    assert result.success
    return float(result.fun)


def assert_solved(drawn: Drawn, distance: str, ground: NDArray[np.float64]) -> None:
    histogram = drawn.classes.histograms["secret"]
    levels = TCloseness("secret", 1, distance).levels(drawn.classes)
    for c in range(len(drawn.classes)):
        here = slice(histogram.starts[c], histogram.starts[c + 1])
        counts = np.zeros(len(histogram.reference))
        counts[histogram.values[here]] = histogram.counts[here]
        if counts.sum():
            keep = histogram.reference > 0
            p, q = histogram.reference[keep] / histogram.reference.sum(), counts[keep] / counts.sum()
            assert levels[c] == pytest.approx(solved(p, q, ground[np.ix_(keep, keep)]), abs=1e-9)


@settings(max_examples=examples(60))
@given(tables())
def test_hierarchical_distance_solves_the_transportation_problem(drawn: Drawn) -> None:
    assert drawn.tree is not None
    assert_solved(drawn, "hierarchical", ground_matrix(drawn.tree))


@settings(max_examples=examples(30))
@given(tables())
def test_equal_distance_solves_the_transportation_problem(drawn: Drawn) -> None:
    size = len(drawn.classes.histograms["secret"].reference)
    assert_solved(drawn, "equal", 1.0 - np.eye(size))


@settings(max_examples=examples(60))
@given(tables("numbers", missing=False))
def test_ordered_distance_solves_the_transportation_problem(drawn: Drawn) -> None:
    present = drawn.classes.histograms["secret"].reference > 0
    rank = np.cumsum(present) - 1
    assert_solved(drawn, "ordered", np.abs(rank[:, None] - rank[None, :]) / max(int(present.sum()) - 1, 1))


@settings(max_examples=examples(30))
@given(st.lists(st.integers(0, 4), min_size=2, max_size=4), st.lists(st.integers(0, 4), min_size=2, max_size=4))
def test_the_oracles_own_solver_agrees_with_a_linear_program(p: list[int], q: list[int]) -> None:
    p, q = [1, *p], [*q, 1]
    shares = [{i: Fraction(c, sum(x)) for i, c in enumerate(x)} for x in (p, q)]
    exact = transport(shares[0], shares[1], lambda u, v: Fraction(int((u * 3 + v * 5) % 7)))
    m = max(len(p), len(q))
    ground = np.array([[(u * 3 + v * 5) % 7 for v in range(m)] for u in range(m)], dtype=float)
    padded = [np.array([*x, *[0] * (m - len(x))]) / sum(x) for x in (p, q)]
    assert float(exact) == pytest.approx(solved(padded[0], padded[1], ground), abs=1e-9)


@given(tables(), st.sampled_from(["hierarchical", "equal"]))
def test_classes_too_large_for_64_bits_come_out_the_same(drawn: Drawn, distance: str) -> None:
    model = TCloseness("secret", "1/3", distance)
    usual = model.levels(drawn.classes), model.holds(drawn.classes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(t_closeness, "ROOM", 0)
        assert np.allclose(model.levels(drawn.classes), usual[0], rtol=0, atol=1e-15)
        assert (model.holds(drawn.classes) == usual[1]).all()


def huge(counts: list[list[int]], domain: Domain) -> Classes:
    """Classes with counts that no table in memory could have."""
    table = np.array(counts, dtype=np.int64)
    owner, values = np.nonzero(table)
    starts = np.searchsorted(owner, np.arange(len(table) + 1)).astype(np.int64)
    reference = np.append(table.sum(axis=0), np.zeros(domain.size + 1 - table.shape[1], dtype=np.int64))
    histogram = Histogram(starts, values.astype(np.int32), table[owner, values], reference, domain)
    return Classes(table.sum(axis=1), table.sum(axis=1), {"secret": histogram})


@pytest.mark.parametrize("distance", ["ordered", "equal"])
def test_counts_whose_products_exceed_64_bits(distance: str) -> None:
    small, large = ([[scale * 3, scale * 1, 0], [scale * 1, scale * 1, scale * 4]] for scale in (1, 10**12))
    domain, _ = numeric().bind(np.array([1, 2, 3]))
    model = TCloseness("secret", 1, distance)
    assert model.levels(huge(large, domain)).tolist() == model.levels(huge(small, domain)).tolist()
    level = model.exact_level(huge(small, domain), 0)
    at, under = TCloseness("secret", str(level), distance), TCloseness("secret", str(level - Fraction(1, 10**30)), distance)
    assert at.holds(huge(large, domain))[0] and not under.holds(huge(large, domain))[0]


@given(trees(), st.data())
def test_unused_leaves_do_not_move_a_hierarchical_distance_and_heights_do(tree: dict[str, Any], data: st.DataObject) -> None:
    """A single-child node costs nothing itself but raises all heights above it."""
    leaves = list(paths(tree))
    counts = [[data.draw(st.integers(0, 3)) for _ in leaves] for _ in range(2)]
    counts[0][0] += 1
    plain, taller = Tree.of({"*": {"all": tree}}), Tree.of({"*": {"all": tree, "lone": {"x": None}}})
    model = TCloseness("secret", 1, "hierarchical")
    levels = [model.levels(huge(counts, Domain(tuple(t.leaf_labels), t))) for t in (plain, taller)]
    assert np.allclose(levels[0], levels[1])


def test_many_values_and_many_classes_at_once() -> None:
    rng = np.random.default_rng(7)
    domain, _ = numeric().bind(np.arange(100_000))
    codes = rng.integers(0, 100_000, 160_000).astype(np.int32)
    class_of = (np.arange(160_000) // 2).astype(np.int32)
    classes = Classes.of(class_of, 80_000, {"secret": (codes, domain)})
    model = TCloseness("secret", 0.3)
    levels = model.levels(classes)
    for i in (0, 40_000, 79_999):
        assert levels[i] == pytest.approx(float(model.exact_level(classes, i)), rel=1e-12)

"""Groups of like secrets: the embedding they are made in, the adjustment of k, both groupings, and drawing without loss."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, minimize

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.embedding import embed_codes, leaf_points
from closeknit.core.tree import Tree
from closeknit.kernels.clustering.balanced_clusters import assign_points, exchange_points
from closeknit.kernels.clustering.fuzzy_memberships import memberships, square_distances
from closeknit.plans.fcm import choose_variant, fcm_groups, fuzzy
from closeknit.plans.groups import Cells, adjust_k, pca_groups, plan_draws, principal
from conftest import examples

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "streams.json").read_text())


def made(points: Any, rows: Any) -> Cells:
    """Cells of given points and weights."""
    rows = np.asarray(rows, dtype=np.int64)
    return Cells(np.repeat(np.arange(len(rows), dtype=np.int32), rows), np.asarray(points, dtype=np.float64), rows)


@st.composite
def some_cells(draw: Any) -> tuple[Cells, int]:
    """Cells with ties, heavy ones and constant axes, and a number of groups."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    axes = draw(st.integers(0, 4))
    m = draw(st.integers(1, 30)) if axes else 1
    points = rng.integers(0, 4, (m, axes)).astype(float) if draw(st.booleans()) else rng.normal(size=(m, axes))
    points = np.unique(points, axis=0)
    rows = rng.integers(1, draw(st.sampled_from([2, 9, 300])), len(points))
    return made(points, rows), draw(st.integers(1, min(int(rows.sum()), 24)))


# Where secrets lie -------------------------------------------------------------------------------------------------------


def random_tree(rng: np.random.Generator, name: str = "n", depth: int = 0) -> dict[str, Any]:
    """Nested branches of unequal depth."""
    children = {f"{name}.{i}": None for i in range(int(rng.integers(1, 4)))}
    return {child: random_tree(rng, child, depth + 1) if depth < 4 and rng.random() < 0.45 else None for child in children}


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=examples(60))
def test_trees_are_embedded_without_error(seed: int, named: bool) -> None:
    nested = random_tree(np.random.default_rng(seed))
    kind = ck.Hierarchy.from_nested({"all": nested} if named else nested)
    domain, _ = kind.bind(np.array([], dtype=object))
    tree: Tree | None = domain.tree
    assert tree is not None
    points = leaf_points(domain)
    for a in range(tree.size + 1):
        for b in range(tree.size + 1):
            above = tree.cover([min(a, b)], [max(a, b)])[0]
            expected = 0.0 if a == b else float(tree.height[above] / tree.height[0])
            assert abs(np.linalg.norm(points[a] - points[b]) - expected) < 1e-12


def test_numbers_lie_by_value_and_missing_is_far_from_all() -> None:
    domain, codes = ck.numeric(0, 10).bind(np.array([0, 1, 10]))
    points = leaf_points(domain)
    assert np.allclose(points[:3, 0], [0, 0.1, 1]) and (points[:3, 1] == 0).all()
    away = np.linalg.norm(points[:3] - points[3], axis=1)
    assert away.min() > 0.86 and away.max() <= 1 + 1e-12
    assert embed_codes(codes[:, None], [domain])[0].shape == (3, 1)  # no value is missing: no axis for it


def coded(cells: dict[str, list[Any]], **kinds: Any) -> Any:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive=kinds)
    return schema.encode(Columns.of({"age": list(range(len(next(iter(cells.values()))))), **cells}))


def test_every_secret_has_the_same_say() -> None:
    rng = np.random.default_rng(1)
    table = coded(
        {"job": rng.choice(list("abcdefgh"), 400).tolist(), "school": rng.integers(1, 17, 400).tolist()},
        job=ck.flat(),
        school=ck.numeric(),
    )
    cells = Cells.of(table, ["job", "school"])
    everyone = cells.points[cells.of_row]
    assert np.allclose([everyone[:, :-1].var(axis=0).sum(), everyone[:, -1].var()], 1)
    assert Cells.of(table, ["school"]).points.shape == (16, 1)


def test_one_hot_columns_leave_the_tree_no_say() -> None:
    """A number from 1 to 16 next to columns of zeros and ones is the first component; scaled it is not."""
    rng = np.random.default_rng(2)
    table = coded(
        {"job": rng.choice(list("abcdefghijklmn"), 2000).tolist(), "school": rng.integers(1, 17, 2000).tolist()},
        job=ck.flat(),
        school=ck.numeric(),
    )
    school = table.secret("school")[0]

    def explained_share(cells: Cells) -> float:
        return abs(float(np.corrcoef(principal(cells)[cells.of_row, 0], school)[0, 1]))

    assert explained_share(Cells.of(table, ["job", "school"], "one-hot", False)) > 0.999
    some = {"job": ["a", "b"] * 50, "school": [1, 16] * 35 + [16, 1] * 15}
    table = coded(some, job=ck.flat(), school=ck.numeric())
    school = table.secret("school")[0]
    assert explained_share(Cells.of(table, ["job", "school"], "one-hot", False)) > 0.999
    assert explained_share(Cells.of(table, ["job", "school"])) < 0.9  # half of it is the job now


# k' ----------------------------------------------------------------------------------------------------------------------


def test_adjusted_k_leaves_fewer_rows_over_than_there_are_classes() -> None:
    """For every n < 200."""
    for n in range(1, 200):
        for k in range(1, n + 1):
            more = adjust_k(n, k)
            assert more >= k and n // more == n // k and n % more < n // k
    assert adjust_k(19, 10) == 19


def test_adjusted_k_of_too_few_rows_is_refused() -> None:
    with pytest.raises(ck.Unsatisfiable, match="7-anonymity"):
        adjust_k(6, 7)


# The first principal component -------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32))
@settings(max_examples=examples(40))
def test_scores_are_those_of_the_singular_vectors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = made(rng.normal(size=(12, 3)) * [3, 1, 0.3], rng.integers(1, 20, 12))
    centred = cells.points[cells.of_row] - cells.points[cells.of_row].mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    for i in range(2):
        loading = axes[i] * np.sign(axes[i][np.argmax(np.abs(axes[i]))])
        farthest = np.abs(centred @ axes[:2].T).max()
        assert np.allclose(principal(cells)[cells.of_row, i], centred @ loading / farthest, atol=1e-6)


@pytest.mark.parametrize("rows", [[1, 1, 1, 1], [7, 7, 7, 7]])
def test_tied_directions_are_settled_by_rule(rows: list[int]) -> None:
    """The corners of a square have no first component: noise must not choose one."""
    corners = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    still = principal(made(corners, rows))
    assert (np.abs(still) == 1).all() and len(np.unique(still, axis=0)) == 4
    for seed in range(20):
        noise = 1e-14 * np.random.default_rng(seed).normal(size=corners.shape)
        assert (principal(made(corners + noise, rows)) == still).all()


def test_a_plane_tied_in_three_directions() -> None:
    """Equal shares of four values: their simplex has no direction of its own."""
    simplex = np.eye(4)
    scores = [principal(made(simplex + 1e-14 * np.random.default_rng(s).normal(size=(4, 4)), [5] * 4)) for s in range(10)]
    assert all((score == scores[0]).all() for score in scores)
    assert len(np.unique(scores[0][:, 0])) == 2 and len(np.unique(scores[0], axis=0)) == 3


@given(some_cells())
@settings(max_examples=examples(60))
def test_runs(drawn: tuple[Cells, int]) -> None:
    cells, c = drawn
    n = len(cells.of_row)
    sizes = np.bincount(pca_groups(cells, c), minlength=c)
    expected = np.full(c, n // c)
    expected[(c - 1) // 2] += n % c
    assert sizes.tolist() == expected.tolist()
    score, group = principal(cells)[cells.of_row, 0], pca_groups(cells, c)
    highest = [score[group == g].max() for g in range(c)]
    lowest = [score[group == g].min() for g in range(c)]
    assert all(highest[g] <= lowest[g + 1] for g in range(c - 1))


def test_rows_of_one_cell_are_spread_over_their_groups() -> None:
    """Cut by row number, the first group would hold the youngest."""
    group = pca_groups(made(np.zeros((1, 0)), [64]), 4)
    for g in range(4):
        assert np.diff(np.flatnonzero(group == g)).max() <= 8


# Equi-sized fuzzy c-means ------------------------------------------------------------------------------------------------


@given(some_cells())
@settings(max_examples=examples(40))
def test_memberships_share_everything_evenly(drawn: tuple[Cells, int]) -> None:
    cells, c = drawn
    n = len(cells.of_row)
    u, _, objective = fuzzy(cells, c)
    assert (u >= 0).all()
    assert np.allclose(u.sum(axis=1), 1, atol=1e-8)
    assert np.allclose(cells.rows @ u, n / c, rtol=1e-4)  # squared distances of one point may differ ten million times
    assert all(after <= before for before, after in pairwise(objective))


@pytest.mark.parametrize("seed", range(4))
def test_memberships_are_the_best_ones(seed: int) -> None:
    """Against a general solver of the same problem."""
    rng = np.random.default_rng(seed)
    d, weights, c = rng.uniform(0.1, 4, (5, 3)), rng.integers(1, 6, 5), 3
    u = memberships(d, weights)
    limits = [
        {"type": "eq", "fun": lambda x: x.reshape(5, c).sum(axis=1) - 1},
        {"type": "eq", "fun": lambda x: (weights @ x.reshape(5, c) - weights.sum() / c)[1:]},
    ]
    cost = weights[:, None] * d
    best = minimize(
        lambda x: (cost * x.reshape(5, c) ** 2).sum(),
        np.full(5 * c, 1 / c),
        jac=lambda x: (2 * cost * x.reshape(5, c)).ravel(),
        bounds=[(0, 1)] * (5 * c),
        constraints=limits,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert best.success and abs(best.fun - (cost * u * u).sum()) < 1e-7


def test_without_prices_a_membership_may_be_negative() -> None:
    """The linear system alone, pairs at zero not left out, has a negative solution here: the case is not empty."""
    points = np.array([[0.0], [0.1], [0.2], [10.0]])
    d = square_distances(points, np.array([[0.0], [10.0]]), 1e-6)
    u = memberships(d, np.array([1, 1, 1, 5]))
    a = 0.5 / d
    weights = np.array([1, 1, 1, 5])
    share = a / a.sum(axis=1, keepdims=True)
    matrix = np.diag(weights @ a) - (weights[:, None] * share).T @ a
    price = np.linalg.lstsq(matrix, 4 - weights @ share, rcond=None)[0]
    plain = a * ((1 - a @ price) / a.sum(axis=1))[:, None] + a * price
    assert plain.min() < 0 <= u.min()


def test_rows_with_equal_secrets_count_as_often() -> None:
    """A cell of weight w is the same as w rows."""
    rng = np.random.default_rng(3)
    points, rows = rng.normal(size=(6, 2)), rng.integers(1, 5, 6)
    d = square_distances(points, points[:3], 0.01)
    alone = memberships(np.repeat(d, rows, axis=0), np.ones(rows.sum(), dtype=np.int64))
    assert np.allclose(np.repeat(memberships(d, rows), rows, axis=0), alone, atol=1e-8)


@given(some_cells(), st.sampled_from(["fuzzy", "balanced"]))
@settings(max_examples=examples(60))
def test_groups_have_one_size(drawn: tuple[Cells, int], grouping: str) -> None:
    cells, c = drawn
    sizes = np.bincount(fcm_groups(cells, c, grouping), minlength=c)
    assert sizes.sum() == len(cells.of_row) and sizes.max() - sizes.min() <= 1


@given(st.integers(0, 2**32))
@settings(max_examples=examples(40))
def test_exchanges_come_near_the_best_assignment(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, centres = rng.normal(size=(18, 2)), rng.normal(size=(3, 2))
    room, ones = np.full(3, 6), np.ones(18, dtype=np.int64)
    d = ((points[:, None] - centres) ** 2).sum(axis=2)
    held = np.zeros((18, 3), dtype=np.int64)
    point, centre, amount = assign_points(points, ones, centres, room)
    held[point, centre] = amount
    better = exchange_points(points, centres, held, 20)
    assert (better.sum(axis=0) == room).all() and (better.sum(axis=1) == 1).all()
    seats = np.repeat(d, 6, axis=1)
    best = seats[linear_sum_assignment(seats)].sum()
    first, last = (held * d).sum(), (better * d).sum()
    assert best - 1e-6 <= last <= first + 1e-6
    for i in range(18):
        for j in range(18):
            here, there = int(better[i].argmax()), int(better[j].argmax())
            assert d[i, here] + d[j, there] <= d[i, there] + d[j, here] + 1e-8


def test_fuzzy_is_chosen_where_it_is_affordable() -> None:
    cells = made(np.arange(100.0)[:, None], [3] * 100)
    assert choose_variant(cells, 5) == "fuzzy"
    work = 100 * 25 - 1
    assert choose_variant(cells, 5, "auto", work) == "balanced" and choose_variant(cells, 4, "auto", work) == "fuzzy"
    assert choose_variant(cells, 5, "fuzzy") == "fuzzy" and choose_variant(cells, 4, "balanced") == "balanced"
    assert (fcm_groups(cells, 5) == fcm_groups(cells, 5, "fuzzy")).all()


# Drawing -----------------------------------------------------------------------------------------------------------------


def printed(sizes: list[int]) -> tuple[list[int], list[int]]:
    """Class sizes and rows left over as the source draws: one row of each group, one more while it is larger than the first."""
    left, classes = list(sizes), []
    while left and left[0] > 0:
        taken = [1 if g == 0 else min(left[g], 2 if left[g] > left[0] else 1) for g in range(len(left))]
        left = [rows - take for rows, take in zip(left, taken, strict=True)]
        classes.append(sum(taken))
    return classes, left


@pytest.mark.parametrize("sizes", list(GOLDEN["msa_gec_leftover"]))
def test_drawing_loses_no_row(sizes: str) -> None:
    """What the source leaves over, by the golden examples, is placed here."""
    rows = [int(size) for size in sizes.split(",")]
    classes, left = GOLDEN["msa_gec_leftover"][sizes]
    assert printed(rows) == (classes, left)
    plan = plan_draws(np.repeat(np.arange(len(rows), dtype=np.int32), rows), np.arange(sum(rows), dtype=np.int32))
    assert plan.allotments.sum() == sum(rows) and (plan.class_sizes >= len([r for r in rows if r])).all()
    assert len(plan.allotments) == min(r for r in rows if r)


def test_the_smallest_group_gives_the_number_of_classes() -> None:
    """Two groups of an odd table, the larger one first; the source would draw a third class from an empty group."""
    group = pca_groups(made(np.arange(5.0)[:, None], [1] * 5), 2)
    assert np.bincount(group).tolist() == [3, 2] and len(printed([3, 2])[0]) == 3
    plan = plan_draws(group, np.arange(5, dtype=np.int32))
    assert plan.class_sizes.tolist() == [3, 2] and (plan.allotments > 0).all()


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any), st.integers(1, 30))
@settings(max_examples=examples(100))
def test_every_class_draws_from_every_group(sizes: list[int], k: int) -> None:
    group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    plan = plan_draws(group, np.arange(len(group), dtype=np.int32), k)
    plan.check(np.ones(len(group), dtype=np.int64))
    there = [size for size in sizes if size]
    assert len(plan.sizes) == len(there) and (plan.allotments > 0).all()
    assert len(plan.allotments) == min(min(there), max(1, len(group) // k))
    assert np.ptp(plan.class_sizes) <= 1 and (plan.class_sizes.min() >= k or len(plan.allotments) == 1)
    assert (np.ptp(plan.allotments, axis=0) <= 1).all()


def test_groups_of_one_cell_are_one_bucket_with_several_seats() -> None:
    group, cell = np.repeat([0, 1, 2], 4).astype(np.int32), np.array([0] * 8 + [1] * 4, dtype=np.int32)
    plan = plan_draws(group, cell)
    assert plan.sizes.tolist() == [8, 4] and plan.allotments.tolist() == [[2, 1]] * 4
    mixed = plan_draws(group, np.array([0] * 7 + [2] + [1] * 4, dtype=np.int32))
    assert mixed.sizes.tolist() == [4, 4, 4]

"""Hilbert keys, small assignments and boxes against definitions written out plainly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment

from closeknit.kernels.cutting.knit_cuts import Scratch, _sides
from closeknit.kernels.dealing.assignment import assign
from closeknit.kernels.geometry.boxes import Scales, box_losses, boxes, partition_loss, positions, range_loss
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys
from closeknit.kernels.geometry.ranges import costs, range_cost
from kernel_inputs import flat_scales


@pytest.mark.parametrize(("d", "bits"), [(1, 5), (2, 1), (2, 4), (3, 3), (4, 2), (6, 2), (10, 1)])
def test_hilbert_visits_every_cell_once_and_steps_to_a_neighbour(d: int, bits: int) -> None:
    cells = np.array(list(itertools.product(range(1 << bits), repeat=d)))
    keys = hilbert_keys((cells + 0.5) / (1 << bits), bits)
    assert sorted(keys.tolist()) == list(range(len(cells)))
    assert (np.abs(np.diff(cells[np.argsort(keys)], axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("d", [1, 3, 7, 64])
def test_hilbert_keys_fill_64_bits_and_take_the_ends_of_the_cube(d: int) -> None:
    corners = np.array(list(itertools.islice(itertools.product((0.0, 1.0), repeat=d), 64)))
    assert len(set(hilbert_keys(corners).tolist())) == len(corners)
    assert int(hilbert_keys(corners).max()) < 1 << (d * min(16, 64 // d))


def test_hilbert_uses_the_first_64_of_more_dimensions() -> None:
    points = np.random.default_rng(0).random((20, 70))
    assert (hilbert_keys(points) == hilbert_keys(points[:, :64].copy())).all()
    assert hilbert_keys(np.zeros((3, 0))).tolist() == [0, 0, 0]


def least_cost(cost: np.ndarray) -> float:
    return float(cost[linear_sum_assignment(cost)].sum())


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from(["real", "ties", "constant", "negative"]))
def test_assignment_is_a_permutation_of_least_cost(n: int, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    cost = {
        "real": rng.random((n, n)),
        "ties": rng.integers(0, 3, (n, n)) / 7,
        "constant": np.full((n, n), 0.3),
        "negative": rng.normal(size=(n, n)),
    }[kind]
    columns = assign(cost)
    assert sorted(columns.tolist()) == list(range(n))
    assert cost[np.arange(n), columns].sum() == pytest.approx(least_cost(cost), abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_assignment_avoids_forbidden_pairs_where_it_can(n: int, seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    forbidden = rng.random((n, n)) < share
    forbidden[np.arange(n), rng.permutation(n)] = False
    cost = np.where(forbidden, 1e4, rng.integers(0, 9, (n, n)) / 9)
    columns = assign(cost)
    assert not forbidden[np.arange(n), columns].any()
    assert cost[np.arange(n), columns].sum() == pytest.approx(least_cost(cost), abs=1e-8)


def test_assignment_of_window_size_and_of_nothing() -> None:
    rng = np.random.default_rng(1)
    for cost in (rng.random((64, 64)), rng.integers(0, 4, (64, 64)) / 4):
        assert cost[np.arange(64), assign(cost)].sum() == pytest.approx(least_cost(cost))
    assert assign(np.zeros((0, 0))).tolist() == []


def jobs_and_ages() -> Scales:
    """A number with uneven steps, and the tree *(A(a, b), B(c, d, e), f) with a missing leaf under the root.

    Nodes: 0 root, 1 A, 2 a, 3 b, 4 B, 5 c, 6 d, 7 e, 8 f, 9 missing.
    """
    return Scales(
        numeric=np.array([True, False]),
        size=np.array([3, 6]),
        leaf_start=np.array([0, 4]),
        position=np.array([0.0, 0.1, 1.0, 1.0, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.0]),
        leaf_node=np.array([-1, -1, -1, -1, 2, 3, 5, 6, 7, 8, 9], np.int32),
        node_parent=np.array([-1, 0, 1, 1, 0, 4, 4, 4, 0, 0], np.int32),
        node_lo=np.array([0, 0, 0, 1, 2, 2, 3, 4, 5, 6], np.int32),
        node_hi=np.array([6, 1, 0, 1, 4, 2, 3, 4, 5, 6], np.int32),
        node_loss=np.array([1, 2 / 6, 0, 0, 3 / 6, 0, 0, 0, 0, 0]),
        weight=np.array([0.25, 0.75]),
    )


@pytest.mark.parametrize(
    ("column", "lo", "hi", "loss"),
    [
        (0, 0, 0, 0),
        (0, 0, 1, 0.1),
        (0, 1, 2, 0.9),
        (0, 0, 2, 1),
        (0, 3, 3, 0),
        (0, 1, 3, 1),
        (1, 1, 1, 0),
        (1, 0, 1, 2 / 6),
        (1, 1, 2, 1),
        (1, 2, 3, 0.5),
        (1, 3, 4, 0.5),
        (1, 5, 5, 0),
        (1, 6, 6, 0),
        (1, 5, 6, 1),
    ],
)
def test_range_loss_by_hand(column: int, lo: int, hi: int, loss: float) -> None:
    assert range_loss(jobs_and_ages(), column, lo, hi) == pytest.approx(loss)


def test_box_losses_are_weighted_and_positions_are_looked_up() -> None:
    scales = jobs_and_ages()
    lo, hi = np.array([[0, 2], [1, 1]], np.int32), np.array([[1, 4], [1, 2]], np.int32)
    assert box_losses(scales, lo, hi) == pytest.approx([0.25 * 0.1 + 0.75 * 0.5, 0.75])
    assert positions(scales, lo).tolist() == [[0.0, 0.4], [0.1, 0.2]]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_partition_loss_is_the_mean_over_rows(data: st.DataObject) -> None:
    n, e = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 5))
    quasi = np.stack([data.draw(arrays(np.int32, n, elements=st.integers(0, size))) for size in (3, 6)], axis=1)
    class_of = data.draw(arrays(np.int32, n, elements=st.integers(-1, e - 1)))
    scales, expected = jobs_and_ages(), 0.0
    lo, hi = boxes(quasi, class_of, e)
    for c in range(e):
        rows = quasi[class_of == c]
        if len(rows) == 0:
            assert (lo[c] > hi[c]).all()
            continue
        assert (lo[c] == rows.min(axis=0)).all()
        assert (hi[c] == rows.max(axis=0)).all()
        for j in range(2):
            expected += len(rows) / n * scales.weight[j] * range_loss(scales, j, rows[:, j].min(), rows[:, j].max())
    assert partition_loss(scales, quasi, class_of, e) == pytest.approx(expected)


@pytest.mark.parametrize("numeric", [True, False])
def test_flat_scales_have_one_missing_leaf_per_column(numeric: bool) -> None:
    scales = flat_scales([4, 1, 2], numeric)
    for j, size in enumerate([4, 1, 2]):
        assert range_loss(scales, j, size, size) == 0
        assert range_loss(scales, j, 0, size) == 1
        assert range_loss(scales, j, 0, size - 1) == (size > 1)


@pytest.mark.parametrize(("late", "end"), [(0, 20), (0, 24), (1, 20), (1, 24)])
def test_sides_of_a_cut_are_measured_to_their_last_row(late: int, end: int) -> None:
    """The loss of a cut stops reading rows once both sides have the ends of the class; one end is in the last row here."""
    s, price, none, codes = 300, costs(flat_scales([50])), np.empty(0, np.int64), np.empty((1, 0), np.int32)
    side, quasi = (np.arange(s, dtype=np.int32) // 2) % 2, np.where(np.arange(s) % 2, 20, 24).astype(np.int32)[:, None]
    quasi[side == late] = 44 - end
    side[-1], quasi[-1] = late, end
    ends = np.array([20], np.int32), np.array([24], np.int32)
    room = Scratch(np.arange(s), side, side, none, none, none, none, none, codes, codes, none, *ends)
    assert _sides(price, quasi, s, int(side.sum()), 0, room) == pytest.approx(s * range_cost(price, 0, 20, 24))

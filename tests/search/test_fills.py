"""Fills respect a plan exactly, repeat by their seed, and take the rows they say they take."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeknit.core.errors import BadInput
from closeknit.fills import REGISTRY, fill_named
from closeknit.fills.fill import Fill
from closeknit.fills.hilbert import Hilbert
from closeknit.fills.knn import Knn
from closeknit.fills.sweep import Sweep
from closeknit.kernels.dealing.seeding import ORDERS
from closeknit.kernels.geometry.boxes import Scales, box_losses, boxes, partition_loss, positions
from closeknit.kernels.geometry.hilbert_curve import hilbert_keys, hilbert_words
from closeknit.kernels.geometry.sorted_buckets import curve, sort_buckets
from kernel_inputs import flat_scales

FILLS: list[Fill] = [
    Sweep(),
    *[Hilbert(seeds) for seeds in ORDERS],
    *[Knn(seeds, distance) for seeds in ORDERS for distance in ("loss", "euclid")],
]
SIZES = [30, 2, 300, 12]


def names(fill: Fill) -> str:
    return " ".join([fill.name, *map(str, dataclasses.astuple(fill))])  # type: ignore[call-overload]


def table(n: int, b: int, seed: int, numeric: bool = True, sizes: list[int] = SIZES) -> tuple[np.ndarray, Scales, np.ndarray]:
    """Codes that go along with the bucket, so that buckets are spread differently; some cells missing."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)
    bucket = np.clip(np.round(hidden + rng.normal(size=n) + b / 2), 0, b - 1).astype(np.int32)
    place = 1 / (1 + np.exp(-(hidden[:, None] * rng.normal(size=len(sizes)) + rng.normal(size=(n, len(sizes))))))
    quasi = np.minimum(place * sizes, np.array(sizes) - 1).astype(np.int32)
    for j, size in enumerate(sizes[:1]):
        quasi[rng.random(n) < 0.02, j] = size
    return quasi, flat_scales(sizes, numeric), bucket


def halved(bucket: np.ndarray, b: int, k: int) -> np.ndarray:
    """Bucket sizes halved again and again down to classes of about k rows."""
    todo, plan = [np.bincount(bucket, minlength=b).astype(np.int64)], []
    while todo:
        sizes = todo.pop()
        half = (sizes + 1) // 2
        if (sizes - half).sum() >= k:
            todo += [sizes - half, half]
        else:
            plan.append(sizes)
    return np.array(plan)


def run(fill: Fill, quasi: np.ndarray, scales: Scales, bucket: np.ndarray, plan: np.ndarray, seed: int = 0) -> np.ndarray:
    return fill.fill(quasi, scales, positions(scales, quasi), bucket, plan, seed)


def counts_of(class_of: np.ndarray, bucket: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    counts = np.zeros(shape, np.int64)
    np.add.at(counts, (class_of, bucket), 1)
    return counts


@st.composite
def plans(draw: st.DrawFn) -> np.ndarray:
    """Any allotments: empty classes, empty buckets, more buckets than rows, nothing at all."""
    e, b = draw(st.integers(1, 6)), draw(st.integers(1, 9))
    cells = st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 20]), min_size=e * b, max_size=e * b)
    return np.array(draw(cells), np.int64).reshape(e, b)


@pytest.mark.parametrize("fill", FILLS, ids=names)
@settings(max_examples=40)
@given(plan=plans(), seed=st.integers(0, 2**63), d=st.integers(0, 3), numeric=st.booleans())
def test_allotments_are_respected(fill: Fill, plan: np.ndarray, seed: int, d: int, numeric: bool) -> None:
    rng = np.random.default_rng(seed)
    bucket = rng.permutation(np.repeat(np.arange(plan.shape[1], dtype=np.int32), plan.sum(axis=0)))
    sizes = [3, 40, 300][:d]
    quasi = rng.integers(0, np.array(sizes, np.int64) + 1, size=(len(bucket), d)).astype(np.int32)
    class_of = run(fill, quasi, flat_scales(sizes, numeric) if d else flat_scales([1]), bucket, plan, seed)
    assert class_of.dtype == np.int32
    assert (counts_of(class_of, bucket, plan.shape) == plan).all()


@pytest.mark.parametrize("fill", FILLS, ids=names)
def test_seed_repeats(fill: Fill) -> None:
    quasi, scales, bucket = table(600, 4, 1)
    plan = halved(bucket, 4, 8)
    one, same, other = (run(fill, quasi, scales, bucket, plan, seed) for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any() == (getattr(fill, "seeds", "hilbert") == "random")


def test_keys_at_hand_change_nothing() -> None:
    quasi, scales, bucket = table(300, 3, 2)
    plan, points = halved(bucket, 3, 6), positions(scales, quasi)
    for fill in FILLS:
        found = fill.fill(quasi, scales, points, bucket, plan, 5, curve(points))
        assert (found == run(fill, quasi, scales, bucket, plan, 5)).all()


def test_sweep_needs_one_bucket_at_a_time() -> None:
    quasi, scales, bucket = table(500, 5, 3)
    plan = halved(bucket, 5, 10)
    whole = run(Sweep(), quasi, scales, bucket, plan)
    for i in range(5):
        mine = bucket == i
        alone = run(Sweep(), quasi[mine], scales, np.zeros(mine.sum(), np.int32), plan[:, [i]])
        assert (alone == whole[mine]).all()


def test_sweep_takes_runs_of_the_curve() -> None:
    quasi, scales, bucket = table(500, 5, 3)
    class_of = run(Sweep(), quasi, scales, bucket, halved(bucket, 5, 10))
    shelf = sort_buckets(curve(positions(scales, quasi)), bucket, 5)
    for i in range(5):
        assert (np.diff(class_of[shelf.rows[shelf.start[i] : shelf.start[i + 1]]]) >= 0).all()


def test_seeds_along_the_curve_are_the_sweep() -> None:
    quasi, scales, bucket = table(800, 4, 4)
    plan = halved(bucket, 4, 7)
    one, two = run(Sweep(), quasi, scales, bucket, plan), run(Hilbert("hilbert"), quasi, scales, bucket, plan)
    keys = curve(positions(scales, quasi))[:, 0]  # equal keys may stand in any order
    assert sorted(zip(keys, bucket, one, strict=True)) == sorted(zip(keys, bucket, two, strict=True))


@pytest.mark.parametrize("words", [1, 2])
def test_hilbert_takes_nearest_keys(words: int) -> None:
    """One class after the other: no free row is nearer to some row of the class (its seed) than those it took."""
    sizes = [1000] * (2 if words == 1 else 9)
    quasi, scales, bucket = table(150, 3, 5, sizes=sizes)
    plan, points = halved(bucket, 3, 12), positions(scales, quasi)
    words_of = curve(points)
    assert words_of.shape[1] == words
    keys = [int("".join(f"{int(w):064b}" for w in row), 2) for row in words_of]
    ways = [[abs(a - b) for b in keys] for a in keys]
    class_of = run(Hilbert(), quasi, scales, bucket, plan, 1)
    for c in range(len(plan)):
        assert any(took_nearest(class_of, bucket, c, ways[seed]) for seed in np.flatnonzero(class_of == c))


def took_nearest(class_of: np.ndarray, bucket: np.ndarray, c: int, way: list) -> bool:
    """Whether class c took from each bucket the rows with the shortest ways among those of later classes."""
    for i in set(bucket[class_of == c]):
        taken = [way[r] for r in np.flatnonzero((class_of == c) & (bucket == i))]
        left = [way[r] for r in np.flatnonzero((class_of > c) & (bucket == i))]
        if left and max(taken) > min(left):
            return False
    return True


@pytest.mark.parametrize("seeds", ORDERS)
@pytest.mark.parametrize("numeric", [True, False])
def test_knn_takes_nearest_rows(seeds: str, numeric: bool) -> None:
    quasi, scales, bucket = table(400, 3, 6, numeric)
    plan, points = halved(bucket, 3, 12), positions(scales, quasi)
    class_of = run(Knn(seeds, "euclid"), quasi, scales, bucket, plan, 1)
    ways = ((points[:, None] - points[None]) ** 2).sum(axis=2).round(12)
    for c in range(len(plan)):
        assert any(took_nearest(class_of, bucket, c, list(ways[seed])) for seed in np.flatnonzero(class_of == c))


def test_knn_first_row_is_the_cheapest() -> None:
    """With two rows a class, from one bucket: the second is the free row whose box with the seed loses least."""
    quasi, scales, _ = table(300, 1, 7, numeric=False)
    class_of = run(Knn(), quasi, scales, np.zeros(300, np.int32), np.full((150, 1), 2), 1)
    for c in range(150):
        pair = np.flatnonzero(class_of == c)
        later = np.flatnonzero(class_of > c)
        least = [cost(scales, quasi[a], quasi[[*later, b]]) for a, b in (pair, pair[::-1])]
        assert any(costs[-1] <= costs.min() + 1e-12 for costs in least)


def cost(scales: Scales, seed: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Loss of a box of two, which decides twice: as the box and as the way to the seed."""
    return box_losses(scales, np.minimum(seed, rows), np.maximum(seed, rows))


def test_farthest_begins_outside() -> None:
    quasi, scales, bucket = table(300, 3, 8)
    points = positions(scales, quasi)
    way = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    for fill in (Knn("farthest"), Knn("farthest", "euclid"), Hilbert("farthest")):
        class_of = run(fill, quasi, scales, bucket, halved(bucket, 3, 10))
        assert way[class_of == 0].max() == pytest.approx(way.max())


def losses(fill: Fill, seed: int) -> tuple[float, float]:
    """Loss of all rows, and that of the last twentieth of the classes over the mean class."""
    quasi, scales, bucket = table(6000, 6, seed)
    plan = halved(bucket, 6, 10)
    class_of = run(fill, quasi, scales, bucket, plan, seed)
    each = box_losses(scales, *boxes(quasi, class_of, len(plan)))
    return partition_loss(scales, quasi, class_of, len(plan)), each[-len(plan) // 20 :].mean() / each.mean()


@pytest.mark.parametrize("fill", [Sweep(), Hilbert("farthest"), Knn("farthest"), Knn("farthest", "euclid")], ids=names)
def test_no_scattered_leftovers(fill: Fill) -> None:
    assert max(losses(fill, seed)[1] for seed in (1, 2)) < 1.5


@pytest.mark.parametrize("default", [Knn(), Hilbert()], ids=names)
def test_default_seeds_lose_least(default: Knn | Hilbert) -> None:
    """Random seeds leave the worst to the last classes, and yet lose less in all than any other order."""
    for seed in (1, 2):
        loss, last = losses(default, seed)
        assert loss < min(losses(dataclasses.replace(default, seeds=order), seed)[0] for order in ("hilbert", "farthest"))
        assert last < 3.5


def test_fills_by_loss() -> None:
    knn, printed, hilbert, sweep = (losses(fill, 3)[0] for fill in (Knn(), Knn(distance="euclid"), Hilbert(), Sweep()))
    assert knn < printed < hilbert < sweep


def test_two_words_refine_one() -> None:
    points = np.random.default_rng(9).random((500, 8))
    words = hilbert_words(points)
    along = np.lexsort(words.T[::-1])
    assert (np.diff(hilbert_keys(points)[along].astype(object)) >= 0).all()  # type: ignore[arg-type]
    assert len(np.unique(words, axis=0)) == 500


def test_names() -> None:
    assert list(REGISTRY) == ["knn", "hilbert", "sweep"]
    assert fill_named("knn") == Knn()
    for wrong in (lambda: Knn(seeds="far"), lambda: Knn(distance="city"), lambda: Hilbert(seeds="no"), lambda: fill_named("x")):
        with pytest.raises(BadInput, match="is unknown; choose"):
            wrong()

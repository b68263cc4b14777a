"""Polish keeps the plan, never loses more than before, and depends on nothing but its seed."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeknit.core.errors import BadInput
from closeknit.kernels.dealing import sweeps
from closeknit.kernels.geometry.boxes import Scales, partition_loss
from closeknit.search.polish import Polish
from kernel_inputs import flat_scales

SIZES = [30, 2, 300, 12]


def table(n: int, b: int, e: int, seed: int, numeric: bool = True) -> tuple[np.ndarray, Scales, np.ndarray, np.ndarray]:
    """Codes, buckets and classes at random; some classes may be empty."""
    rng = np.random.default_rng(seed)
    quasi = rng.integers(0, np.array(SIZES) + 1, size=(n, len(SIZES))).astype(np.int32)
    bucket, class_of = (rng.integers(most, size=n).astype(np.int32) for most in (b, e))
    return quasi, flat_scales(SIZES, numeric), bucket, class_of


def counts_of(class_of: np.ndarray, bucket: np.ndarray) -> np.ndarray:
    counts = np.zeros((200, 20), np.int64)
    np.add.at(counts, (class_of, bucket), 1)
    return counts


@settings(max_examples=80)
@given(
    n=st.integers(0, 300),
    b=st.integers(1, 12),
    e=st.integers(1, 120),
    seed=st.integers(0, 2**63),
    numeric=st.booleans(),
    passes=st.integers(0, 3),
)
def test_plan_is_kept_and_loss_never_rises(n: int, b: int, e: int, seed: int, numeric: bool, passes: int) -> None:
    quasi, scales, bucket, class_of = table(n, b, e, seed, numeric)
    given_classes = class_of.copy()
    polished = Polish(proposals=passes * n * sweeps.WIDTH).polish(quasi, scales, bucket, class_of, seed)
    assert (class_of == given_classes).all()
    assert (counts_of(polished, bucket) == counts_of(class_of, bucket)).all()
    before, after = (partition_loss(scales, quasi, found, e) for found in (class_of, polished))
    assert after <= before + 1e-12


def test_much_is_gained() -> None:
    quasi, scales, bucket, class_of = table(2000, 4, 200, 1)
    polished = Polish().polish(quasi, scales, bucket, class_of, 1)
    assert partition_loss(scales, quasi, polished, 200) < 0.8 * partition_loss(scales, quasi, class_of, 200)


def test_last_pass_goes_by_loss_alone() -> None:
    """One pass on its own has no pull, so each of its exchanges lowers the loss: from any start it must."""
    for seed in range(10):
        quasi, scales, bucket, class_of = table(400, 3, 40, seed)
        polished = Polish(proposals=400 * sweeps.WIDTH).polish(quasi, scales, bucket, class_of, seed)
        assert partition_loss(scales, quasi, polished, 40) < partition_loss(scales, quasi, class_of, 40)


def test_one_window_of_pairs_is_solved_exactly() -> None:
    """Two buckets, one row of each a class: the best of all matchings, found by trying them."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        quasi = rng.integers(0, np.array(SIZES), size=(10, len(SIZES))).astype(np.int32)
        scales, bucket = flat_scales(SIZES), np.repeat([0, 1], 5).astype(np.int32)
        start = np.tile(np.arange(5), 2).astype(np.int32)
        matchings = (np.array([*range(5), *other], np.int32) for other in permutations(range(5)))
        best = min(partition_loss(scales, quasi, matching, 5) for matching in matchings)
        polished = Polish(proposals=10 * sweeps.WIDTH).polish(quasi, scales, bucket, start, seed)
        assert partition_loss(scales, quasi, polished, 5) == pytest.approx(best)


def test_seed_repeats_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    quasi, scales, bucket, class_of = table(3000, 5, 190, 2)
    found = []
    for threads in (1, 2, 3, 7):
        monkeypatch.setattr(sweeps.config, "NUMBA_NUM_THREADS", threads)
        found.append(Polish(proposals=4 * 3000 * sweeps.WIDTH).polish(quasi, scales, bucket, class_of, 9))
    assert all((other == found[0]).all() for other in found)
    assert (Polish().polish(quasi, scales, bucket, class_of, 10) != found[0]).any()


def test_budget_counts_proposals(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    monkeypatch.setattr(sweeps, "one_sweep", lambda *args: done.append(1))
    quasi, scales, bucket, class_of = table(100, 2, 10, 3)
    for budget, passes in ((0, 0), (3199, 0), (3200, 1), (10_000, 3), (None, 32)):
        done.clear()
        Polish(proposals=budget).polish(quasi, scales, bucket, class_of, 1)
        assert len(done) == passes


def test_bad_budget_is_named() -> None:
    with pytest.raises(BadInput, match="proposals=-1 is too small"):
        Polish(proposals=-1)

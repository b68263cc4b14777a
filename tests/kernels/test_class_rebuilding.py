"""Steps of Knit that change three or more classes, on one column of numbers with k alone."""

from __future__ import annotations

import numpy as np
import pytest

from closeknit.kernels.exchange.class_state import state_of
from closeknit.kernels.exchange.knit_exchange import sweep
from closeknit.kernels.exchange.knit_guard import Buckets
from closeknit.kernels.geometry.ranges import costs
from kernel_inputs import flat_scales, one_cap


@pytest.mark.parametrize(
    ("codes", "classes", "rebuild", "expected"),
    [
        # row 2 goes to the class of the eights and nines, and a spare row of the zeros comes for it
        ([0, 0, 9, 9, 8, 0, 0, 0], [0, 0, 0, 1, 1, 2, 2, 2], True, [2, 3, 3]),
        # all rows of the wide class have a place elsewhere
        ([0, 9, 0, 0, 9, 9], [0, 0, 1, 1, 2, 2], True, [3, 3]),
        ([0, 9, 0, 0, 9, 9], [0, 0, 1, 1, 2, 2], False, [2, 2, 2]),
        # row 1 begins a class with spare rows of the nines, which are too many to be joined
        ([0, 0, 8, *[9] * 30], [0, 0, 0, *[1] * 30], True, [2, 2, 29]),
    ],
)
def test_classes_end_narrower(codes: list[int], classes: list[int], rebuild: bool, expected: list[int]) -> None:
    n, count = len(codes), max(classes) + 1
    rows, quasi = np.arange(n, dtype=np.int32), np.array(codes, np.int32)[:, None]
    guard, price = one_cap(np.zeros(n, np.int32), 2), costs(flat_scales([10]))
    guard = guard._replace(cap_den=np.ones_like(guard.cap_den))
    state = state_of(price, guard, quasi, np.array(classes, np.int32), count + 2)
    before = float(state.size @ state.loss)
    buckets = Buckets(np.zeros(n, np.int32), np.zeros(1, np.int32))
    sweep(price, guard, buckets, state, rows, rows, np.zeros(count + 2, np.int32), 0, 8, 0.0, False, 1, rebuild)
    fresh = state_of(price, guard, quasi, state.class_of, count + 2)
    assert sorted(state.size[state.size > 0].tolist()) == expected
    assert (float(state.size @ state.loss) < before) == (expected != [2, 2, 2])
    assert (fresh.ends == state.ends).all() and (fresh.under == state.under).all() and (fresh.loss == state.loss).all()

"""Limits of models as whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

import closeknit as ck
from closeknit.kernels.exchange.knit_guard import count_leaf, count_row, sum_leaves
from closeknit.search.guards import guard_of


@pytest.mark.parametrize("delta", [12, 20, 50, 1000, 10**6])
def test_a_limit_that_cannot_bind_is_no_limit(delta: int) -> None:
    """A cap of e^50 has no place in 64 bits; it is above every share, and only the floor is left."""
    columns, schema, model = ck.datasets.hospital(60), ck.datasets.hospital_schema(), ck.DeltaDisclosure("disease", delta)
    table = schema.encode(columns)
    guard = guard_of(table, [model]).guard
    assert (guard.cap_num >= guard.cap_den).all() and (len(table) * guard.cap_num > 0).all()
    assert (guard.low_num[1:] > 0).all(), "a class that lacks a value does not meet the guarantee"
    assert ck.anonymize(columns, schema, [ck.KAnonymity(2), model], ck.Knit(proposals=20_000)).certificate.ok


def test_counts_summed_once_are_those_added_row_by_row() -> None:
    table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(80))
    models = [ck.TCloseness(name, 0.3) for name in ("disease", "stay", "charge")]
    guard = guard_of(table, models).guard
    one, other = np.zeros((2, 2, len(guard.parent)), np.int32)
    rng = np.random.default_rng(3)
    for row, by in zip(rng.integers(0, 80, 40).tolist(), rng.integers(1, 5, 40).tolist(), strict=True):
        count_row(guard, one, 1, row, by)
        count_leaf(guard, other, 1, row, by)
    sum_leaves(guard, other, 1)
    assert one[1].any() and (one == other).all()

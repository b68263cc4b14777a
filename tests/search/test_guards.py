"""Limits of models as whole numbers."""

from __future__ import annotations

import pytest

import closeknit as ck
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

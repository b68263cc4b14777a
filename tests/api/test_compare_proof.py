"""Comparisons against a known algorithm: what is proved bounds what few draws leave open."""

from __future__ import annotations

import math
import warnings

import pytest

import closeknit as ck


def test_a_proof_bounds_the_gain_that_few_pairs_leave_open() -> None:
    table = ck.datasets.hospital(60)
    quasi = {"age": ck.numeric(0, 100), "sex": ck.flat()}
    unused = ["job", "admission", "ward", "stay", "charge", "zip"]
    schema = ck.Schema(identifier=["name"], quasi=quasi, sensitive={"disease": ck.flat()}, drop=unused)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a comparison publishes nothing, so nothing is said about attesting it
        found = ck.compare(
            table, schema, [ck.KAnonymity(4)], ["soft_stop", "mondrian"], against="known-algorithm", runs=20, seed=2**90
        )
    rows = {row.name: row.known_algorithm for row in found.methods}
    assert rows["soft_stop"] and rows["mondrian"] and rows["mondrian"].proved is None
    assert rows["soft_stop"].proved == pytest.approx(math.e / (1 + math.e) - 0.5)
    assert rows["soft_stop"].high > rows["soft_stop"].proved == rows["soft_stop"].level
    assert rows["mondrian"].level == rows["mondrian"].high and "-0.23 proved" in str(found)

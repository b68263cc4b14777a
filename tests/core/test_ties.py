"""Rows with equal quasi-identifiers: which of them share a class is decided by the seed, never by what else they hold."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.row_sorting import tie_order
from closeknit.methods import REGISTRY
from conftest import SOAK

SCHEMA = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()})
AGES = [31] * 12 + [30] * 3 + [32] * 3
SORTED = ["cancer"] * 6 + ["flu"] * 6 + ["cancer", "flu", "gout"] * 2
SEEDS = 2000 if SOAK else 40
FALSE_ALARM = 1e-6  # probability that a sound method fails one of these tests

BLIND = [name for name, method in REGISTRY.items() if getattr(method, "blind", False)]


def share_of_equal_pairs(method: Any, diseases: list[str], seed: int) -> float | None:
    """Of the pairs of 31-year-olds that share a class, how many share the disease; None where classes hold all of them."""
    table = Columns.of({"age": AGES, "disease": diseases})
    class_of = ck.anonymize(table, SCHEMA, [ck.KAnonymity(6)], method, seed=seed).partition
    pairs = [(a, b) for a, b in combinations(range(12), 2) if class_of[a] == class_of[b]]
    return None if len(pairs) == 66 else float(np.mean([diseases[a] == diseases[b] for a, b in pairs]))


@pytest.mark.grows
@pytest.mark.parametrize("name", BLIND)
@pytest.mark.parametrize("diseases", [SORTED, ["cancer", "flu"] * 9], ids=["sorted", "replaced"])
def test_equal_rows_share_classes_whatever_their_sensitive_values(name: str, diseases: list[str]) -> None:
    """Every pair of equal rows is equally likely to share a class: a mean over seeds, with Hoeffding's bound on its error."""
    shares = [share_of_equal_pairs(REGISTRY[name](), diseases, 2**80 + seed) for seed in range(SEEDS)]
    split = [share for share in shares if share is not None]
    if not split:
        assert name in ("mondrian", "incognito", "fixed_levels"), "these never split equal rows"
        return
    expected = np.mean([diseases[a] == diseases[b] for a, b in combinations(range(12), 2)])
    assert abs(np.mean(split) - expected) < math.sqrt(math.log(2 / FALSE_ALARM) / (2 * len(split)))


@pytest.mark.grows
def test_every_order_of_equal_rows_is_equally_likely() -> None:
    rounds = 60_000 if SOAK else 3000
    orders = [tuple(tie_order([(np.zeros(3, np.int32), 1)], 3, seed)) for seed in range(rounds)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert max(abs(count / rounds - 1 / 6) for count in counts) < math.sqrt(math.log(12 / FALSE_ALARM) / (2 * rounds))


def test_rows_stay_in_the_order_of_their_quasi_identifiers() -> None:
    rng = np.random.default_rng(3)
    codes = np.sort(rng.integers(0, 40, 500)).astype(np.int32)
    order = tie_order([(codes, 40)], 500, seed=7)
    assert sorted(order) == list(range(500)) and (codes[order] == codes).all()

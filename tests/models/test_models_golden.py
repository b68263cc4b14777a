"""Worked examples of the sources with their right results (`golden/static.json`), as far as models and distances go."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from closeknit.core.classes import Classes, Histogram
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kinds import flat, numeric
from closeknit.models import BetaLikeness, DeltaDisclosure, LDiversity, TCloseness

GOLDEN = {case["id"]: case for case in json.loads((Path(__file__).parents[1] / "golden" / "static.json").read_text())}


def counts_of(shares: list[str]) -> np.ndarray:
    """The smallest whole numbers in these proportions."""
    fractions = [Fraction(share) for share in shares]
    scale = math.lcm(*(f.denominator for f in fractions))
    return np.array([int(f * scale) for f in fractions], dtype=np.int64)


def one_class(p: np.ndarray, q: np.ndarray, domain: Domain) -> Classes:
    """A class with the counts `q` and a reference with the counts `p`."""
    values = np.flatnonzero(q).astype(np.int32)
    reference = np.append(p, 0)
    histogram = Histogram(np.array([0, len(values)]), values, q[values], reference, domain)
    return Classes(np.array([q.sum()]), np.array([q.sum()]), {"secret": histogram})


def numbers(m: int) -> Domain:
    return numeric(0, m, bins=m).bind(np.zeros(0))[0]


def values(m: int) -> Domain:
    return flat().bind(np.array([f"v{i:02}" for i in range(m)], dtype=object))[0]


def tree_of(node: Any) -> dict[str, Any]:
    if isinstance(node, str):
        return {node: None}
    return {node["name"]: {name: below for child in node["children"] for name, below in tree_of(child).items()}}


def golden_tree(case: dict[str, Any]) -> Domain:
    return Hierarchy.from_nested(tree_of(case["tree"])).bind(np.zeros(0, dtype=object))[0]


def distance(p: list[str], q: list[str], domain: Domain, ground: str) -> Fraction:
    classes = one_class(counts_of(p), counts_of(q), domain)
    model = TCloseness("secret", 1, ground)
    level = model.exact_level(classes, 0)
    assert model.levels(classes)[0] == pytest.approx(float(level), rel=1e-14)
    return level


@pytest.mark.parametrize("name", ["000-2.6.4-PQ", "000-2.6.4-QR", "000-2.6.4-PR"])
def test_ordered_distance(name: str) -> None:
    case = GOLDEN[name]
    assert distance(case["p"], case["q"], numbers(3), "ordered") == Fraction(case["expected"])
    assert Fraction(case["expected"]) != Fraction(case["printed_formula_gives"])


@pytest.mark.parametrize(
    ("name", "result"), [("004-Ex3.1", "expected"), ("004-Ex3.2", "expected"), ("004-Ex3.3", "emd"), ("004-Ex3.6", "emd")]
)
def test_hierarchical_distance(name: str, result: str) -> None:
    case = GOLDEN[name]
    assert distance(case["p"], case["q"], golden_tree(case), "hierarchical") == Fraction(case[result])


def test_equal_distance() -> None:
    for p, q, expected in GOLDEN["004-4.1-EMD"]["pairs"]:
        assert distance(p, q, values(2), "equal") == Fraction(expected)


def test_salaries_are_compared_in_the_order_of_value_not_of_frequency() -> None:
    case = GOLDEN["000-T3.2"]
    by_value = np.argsort(case["values"])
    counts = np.array(case["counts_frequency_stack"])
    model = TCloseness("secret", "19/1125")
    for order, key in ((by_value, "emd_value_order"), (np.arange(10), "emd_frequency_order")):
        for row, expected in zip(counts, case[key], strict=True):
            classes = one_class(np.array(case["freq"])[order], row[order], numbers(10))
            assert model.exact_level(classes, 0) == Fraction(expected)
            assert model.holds(classes)[0]
    worst = one_class(np.array(case["freq"])[by_value], counts[0][by_value], numbers(10))
    assert not TCloseness("secret", 0.009778).holds(worst)[0]


def test_figure_of_two_secrets() -> None:
    case = GOLDEN["000-4.1"]
    table, chosen = np.array(case["M"]), np.array(case["E"])
    for axis, key in ((1, "emd_rows"), (0, "emd_cols")):
        p, q = table.sum(axis=axis), chosen.sum(axis=axis)
        assert TCloseness("secret", 1).exact_level(one_class(p, q, numbers(len(p))), 0) == Fraction(case[key])


@pytest.mark.parametrize("k", ["7", "8", "9", "10"])
def test_fewest_values_of_a_dealt_class(k: str) -> None:
    case = GOLDEN["001-k9"]
    codes = np.repeat(np.arange(6, dtype=np.int32), case["freq"])
    e = len(codes) // int(k)
    assert e == case["e"][k]
    classes = Classes.of((np.arange(len(codes)) % e).astype(np.int32), e, {"secret": (codes, values(6))})
    fewest = case["min_distinct"][k]
    assert LDiversity("secret", 6).levels(classes).min() == fewest
    assert LDiversity("secret", fewest).holds(classes).all()
    assert not LDiversity("secret", fewest + 1).holds(classes).all()


def test_two_values_at_their_cap_break_it_together() -> None:
    case = GOLDEN["004-L4.3"]
    domain = Hierarchy.from_nested({"pair": ["a", "b"], "rest": ["c"]}).bind(np.zeros(0, dtype=object))[0]
    below, above = (int(case["q_max"] * 10**6) + step for step in (-1, 2))
    p = np.array([10, 10, 80])
    enhanced, semantic = BetaLikeness("secret", 100), BetaLikeness("secret", 100, "semantic", below=0)
    for count, kept in ((below, True), (above, False)):
        classes = one_class(p, np.array([count, count, 10**6 - 2 * count]), domain)
        assert bool(enhanced.holds(classes)[0]) is kept
        assert 2 * count / 10**6 > case["f_2p"] and not semantic.holds(classes)[0]
    limit = int(case["f_2p"] * 10**6)
    for count, kept in ((limit - 1, True), (limit + 2, False)):
        assert bool(semantic.holds(one_class(p, np.array([count, 0, 10**6 - count]), domain))[0]) is kept


def test_three_of_six_equal_values_reach_a_beta_of_one() -> None:
    case = GOLDEN["004-Ex4.1"]
    classes = one_class(counts_of(case["p"]), np.array([1, 0, 1, 0, 1, 0]), values(6))
    model = BetaLikeness("secret", case["beta"])
    assert model.exact_level(classes, 0) == Fraction(case["real_beta"])
    assert model.holds(classes)[0] and not BetaLikeness("secret", 0.99999999999).holds(classes)[0]


def test_caps_of_the_second_example() -> None:
    case = GOLDEN["004-Ex4.2"]
    p = np.array(list(case["freq"].values()))
    model = BetaLikeness("secret", case["beta"])
    for i, cap in enumerate(case["f"]):
        for count, kept in ((int(cap * 10**5) - 1, True), (int(cap * 10**5) + 2, False)):
            q = (p * (10**5 - count) / (p.sum() - p[i])).astype(np.int64)
            q[i] = 0
            q[i] = count * q.sum() // (10**5 - count)
            assert bool(model.holds(one_class(p, q, values(6)))[0]) is kept


def test_a_delta_of_zero_is_refused_and_a_constant_secret_has_level_zero() -> None:
    assert "delta = 0" in GOLDEN["CE-delta0"]["verdict"]
    with pytest.raises(BadInput, match="delta=0"):
        DeltaDisclosure("secret", 0)
    whole = one_class(np.array([7]), np.array([7]), values(1))
    assert DeltaDisclosure("secret", 1e-12).holds(whole)[0]
    assert DeltaDisclosure("secret", 1).levels(whole)[0] == 0

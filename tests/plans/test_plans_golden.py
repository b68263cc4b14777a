"""Worked examples of the sources about SABRE's and BUREL's plans, with their right results, and the errata that touch them."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_models_golden import counts_of, golden_tree, numbers, values

from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kinds import flat, numeric
from closeknit.plans import Plan, burel_plan, halve, sabre_plan
from closeknit.plans.burel_buckets import LikenessTest, dp_partition, likeness_limit
from closeknit.plans.sabre_buckets import bucketize, measure_spread
from closeknit.plans.sabre_sizes import ClosenessTest

GOLDEN = {case["id"]: case for case in json.loads((Path(__file__).parents[1] / "golden" / "static.json").read_text())}
TWO_BUCKETS = [np.array([0, 1, 2]), np.array([3, 4, 5])]


def with_missing(counts: Any, missing: int = 0) -> np.ndarray:
    return np.append(np.asarray(counts, dtype=np.int64), missing)


def tree(nested: Any) -> Domain:
    return Hierarchy.from_nested(nested).bind(np.zeros(0, dtype=object))[0]


def names(domain: Domain, buckets: list[np.ndarray]) -> list[list[str]]:
    return [[domain.texts[code] for code in codes] for codes in buckets]


def test_bounds_of_the_two_branches() -> None:
    case = GOLDEN["004-Ex3.3"]
    counts, domain = with_missing(counts_of(case["p"])), golden_tree(case)
    for bucket, name in zip(TWO_BUCKETS, ("b1", "b2"), strict=True):
        assert measure_spread(counts, domain, "hierarchical", [bucket]) == Fraction(case[name])
        assert measure_spread(counts, domain, "hierarchical", [bucket], "printed") == Fraction(case[name])


@pytest.mark.parametrize("bound", ["exact", "printed"])
def test_buckets_in_a_tree(bound: str) -> None:
    case = GOLDEN["004-Ex3.4"]
    counts, domain = with_missing(counts_of(case["p"])), golden_tree(case)
    root = [np.arange(6)]
    assert measure_spread(counts, domain, "hierarchical", root) == Fraction(case["root_tight_bound"])
    assert measure_spread(counts, domain, "hierarchical", root, "printed") == Fraction(case["root_printed_bound"])
    buckets = bucketize(counts, domain, "hierarchical", Fraction(case["t"]), bound)
    assert names(domain, buckets) == case["buckets"]
    assert measure_spread(counts, domain, "hierarchical", buckets, bound) == Fraction(case["U"])


@pytest.mark.parametrize(
    ("nested", "counts", "printed", "exact"),
    [
        ({"A": ["a1", "a2"], "B": ["b1", "b2"]}, [1, 49, 25, 25], "99/100", "149/200"),
        ({"A": ["a1", "a2"], "b": None}, [1, 90, 9], "99/100", "91/100"),
    ],
)
def test_the_printed_bound_is_not_tight(nested: Any, counts: list[int], printed: str, exact: str) -> None:
    domain, root = tree(nested), [np.arange(len(counts))]
    assert measure_spread(with_missing(counts), domain, "hierarchical", root, "printed") == Fraction(printed)
    assert measure_spread(with_missing(counts), domain, "hierarchical", root) == Fraction(exact)


def test_buckets_on_a_line() -> None:
    case = GOLDEN["004-Ex3.5"]
    counts, domain = with_missing(counts_of(case["p"])), numbers(4)
    assert measure_spread(counts, domain, "ordered", [np.arange(4)]) == Fraction(case["root"])
    sums = [measure_spread(counts, domain, "ordered", [np.arange(cut), np.arange(cut, 4)]) for cut in (1, 2, 3)]
    assert sums == [Fraction(each) for each in case["split_sums"]]
    buckets = bucketize(counts, domain, "ordered", Fraction(case["t"]))
    assert [codes.tolist() for codes in buckets] == case["buckets"]
    assert measure_spread(counts, domain, "ordered", buckets) == Fraction(case["U"])


def closeness_test(case: dict[str, Any], t: str = "1", bound: str = "exact") -> ClosenessTest:
    counts = with_missing(counts_of(case["p"]))
    test = ClosenessTest(counts, golden_tree(case), "hierarchical", TWO_BUCKETS, Fraction(t), bound)
    assert test.sizes.tolist() == case["sizes"]
    return test


def test_distance_over_buckets() -> None:
    case = GOLDEN["004-Ex3.6"]
    test = closeness_test(case)
    assert test.d(np.array(case["a"])) == Fraction(case["D"])
    assert test.u == Fraction(case["U"])
    assert Fraction(case["emd"]) <= test.worst_case(np.array(case["a"])) <= Fraction(case["D"]) + Fraction(case["U"])


def test_sizes_of_the_example() -> None:
    case = GOLDEN["004-Ex3.7"]
    printed, exact = (closeness_test(case, case["t"], bound) for bound in ("printed", "exact"))
    for text, d in case["D"].items():
        assert printed.d(np.array(json.loads(f"[{text}]"))) == Fraction(d)
    for text, worst in case["worst_case"].items():
        assert exact.worst_case(np.array(json.loads(f"[{text}]"))) == Fraction(worst)
    assert halve(printed.sizes, 1, printed.allows).tolist() == case["leaves"]
    assert halve(printed.sizes, 3, printed.allows).tolist() == case["leaves_k3"]
    assert halve(exact.sizes, 1, exact.allows).tolist() == case["leaves_exact_worst_case"]


def test_whole_plans_of_the_example() -> None:
    case = GOLDEN["004-Ex3.7"]
    counts, domain = with_missing(counts_of(case["p"])), golden_tree(case)
    printed = sabre_plan(counts, domain, "hierarchical", case["t"], 1, "printed")
    exact = sabre_plan(counts, domain, "hierarchical", case["t"], 1)
    assert printed.allotments.tolist() == case["leaves"]
    assert exact.allotments.tolist() == case["leaves_exact_worst_case"]
    assert exact.bucket_of.tolist() == [0, 0, 0, 1, 1, 1, -1]


def test_smallest_class_in_proportion() -> None:
    case = GOLDEN["004-3.4.2"]
    n, bucket, size = case["n"], case["bucket"], case["size"]
    counts = with_missing([bucket, n - bucket])
    test = ClosenessTest(counts, numbers(2), "ordered", [np.array([0]), np.array([1])], Fraction(0))
    fair = np.array([bucket * size // n, size - bucket * size // n])
    assert test.d(fair) == 0 and test.allows(fair)
    for s in range(1, size):
        near = bucket * s // n
        assert not any(test.d(np.array([a, s - a])) == 0 for a in (near, near + 1) if a <= s)


def test_six_equal_values_make_three_buckets() -> None:
    case = GOLDEN["004-Ex4.1"]
    counts = with_missing(counts_of(case["p"]))
    assert len(dp_partition(counts, Fraction(case["beta"]))) == case["buckets_le"]
    just_below = Fraction(case["beta"]) - Fraction(1, 10**30)  # what the printed `<` would see
    assert len(dp_partition(counts, just_below)) == case["buckets_strict"]
    assert burel_plan(counts, values(6), case["beta"]).allotments.tolist() == [[1, 1, 1]] * 2


def test_plan_of_the_second_example() -> None:
    case = GOLDEN["004-Ex4.2"]
    diseases = list(case["freq"])
    counts, n = with_missing(list(case["freq"].values())), sum(case["freq"].values())
    beta = Fraction(case["beta"])
    limits = [likeness_limit(Fraction(int(c), n), beta) for c in counts[:-1]]
    assert limits == pytest.approx(case["f"], abs=1.2e-5)  # .449341 is written as .44933 there
    buckets = dp_partition(counts, beta)
    assert [[diseases[code] for code in codes] for codes in buckets] == case["buckets"]
    plan = burel_plan(counts, values(6), beta)
    assert plan.sizes.tolist() == case["sizes"] and plan.allotments.tolist() == case["leaves_floor"]
    test = LikenessTest(counts, buckets, beta)
    assert halve(plan.sizes, 1, test.allows, "ceil").tolist() == case["leaves_round_up"]


def test_two_values_at_their_limit_are_above_the_limit_of_their_pair() -> None:
    case = GOLDEN["004-L4.3"]
    p, beta = Fraction(case["p"]), Fraction(100)
    assert likeness_limit(p, beta) == pytest.approx(case["q_max"], abs=1e-6)
    assert 2 * likeness_limit(p, beta) == pytest.approx(case["two_q"], abs=1e-6)
    assert likeness_limit(2 * p, beta) == pytest.approx(case["f_2p"], abs=1e-6)
    assert likeness_limit(Fraction(str(case["p_limit"])), beta) == pytest.approx(0.5, abs=1e-5)
    for hundredths in range(1, 51):
        p = Fraction(hundredths, 100)
        assert 2 * likeness_limit(p, beta) > likeness_limit(2 * p, beta)


def test_runs_of_frequency_are_not_always_fewest() -> None:
    counts = with_missing([10, 11, 11, 11, 13, 28])
    assert counts.sum() == 84
    assert len(dp_partition(counts, Fraction(3))) == 4
    best = [np.array([0, 4]), np.array([1, 2, 3]), np.array([5])]
    test = LikenessTest(counts, best, Fraction(3))
    assert test.allows(np.array([23, 33, 28]))


def test_a_prime_size_does_not_force_one_class() -> None:
    """Sizes 3 and 6 have three exactly fair classes: what counts is the greatest common divisor."""
    buckets, counts = [np.array([0]), np.array([1])], with_missing([3, 6])
    plan = Plan.of(buckets, counts, np.array([[1, 2]] * 3))
    test = ClosenessTest(counts, numbers(2), "ordered", buckets, Fraction(0))
    assert all(test.allows(a) for a in plan.allotments) and not test.allows(np.array([1, 3]))


def test_a_tie_with_a_single_leaf_loses_no_rows() -> None:
    domain = tree({"X": {"Y": {"a": None, "b": None}}, "c": None})
    counts = with_missing([3, 2, 4])
    for t in (Fraction(0), Fraction(1, 100), Fraction(1, 5), Fraction(1, 3)):
        for bound in ("exact", "printed"):
            buckets = bucketize(counts, domain, "hierarchical", t, bound)
            assert sorted(np.concatenate(buckets).tolist()) == [0, 1, 2]
            assert measure_spread(counts, domain, "hierarchical", buckets, bound) <= t


@pytest.mark.parametrize("distance", ["ordered", "equal"])
def test_zero_ends_with_single_values(distance: str) -> None:
    domain = numeric().bind(np.array([1, 2, 5, 9]))[0]
    plan = sabre_plan(with_missing([4, 8, 2, 6]), domain, distance, 0)
    assert plan.bucket_of.tolist() == [0, 1, 2, 3, -1]
    assert plan.allotments.tolist() == [[2, 4, 1, 3]] * 2


def test_equality_stops_the_splitting() -> None:
    counts, domain = with_missing([2, 3, 3, 2]), numbers(4)
    assert len(bucketize(counts, domain, "ordered", Fraction(1, 2))) == 1  # U = 1/2 exactly
    assert len(bucketize(counts, domain, "ordered", Fraction(1, 2) - Fraction(1, 10**30))) == 2
    assert len(bucketize(counts, domain, "ordered", Fraction(1, 5))) == 2


def test_one_value_and_no_value() -> None:
    domain = numeric().bind(np.array([7]))[0]
    for distance in ("ordered", "equal"):
        plan = sabre_plan(with_missing([8]), domain, distance, 0, k=2)
        assert plan.allotments.tolist() == [[2]] * 4
        no_one = sabre_plan(with_missing([0]), domain, distance, 0, k=2)
        assert no_one.allotments.shape == (0, 0) and no_one.bucket_of.tolist() == [-1, -1]
    assert burel_plan(with_missing([8]), domain, 1, k=3).allotments.tolist() == [[4], [4]]
    assert burel_plan(with_missing([0]), domain, 1).allotments.shape == (0, 0)


def test_more_buckets_than_rows_are_one_class() -> None:
    """Leaves without rows are no buckets; with a row each, nothing can be halved."""
    plan = sabre_plan(with_missing([1, 0, 1, 1, 0]), numbers(5), "ordered", 0)
    assert plan.bucket_of.tolist() == [0, -1, 1, 2, -1, -1] and plan.allotments.tolist() == [[1, 1, 1]]


def test_k_stops_the_halving() -> None:
    counts, domain = with_missing([50, 50]), numbers(2)
    for k, sizes in ((1, 1), (25, 25), (26, 50), (51, 100), (100, 100)):
        plan = sabre_plan(counts, domain, "ordered", 1, k)
        assert set(plan.class_sizes.tolist()) == {sizes}
    with pytest.raises(Unsatisfiable, match="ask for k of at most 100"):
        sabre_plan(counts, domain, "ordered", 1, 101)
    with pytest.raises(Unsatisfiable):
        burel_plan(counts, domain, 1, 101)


def test_missing_values_are_a_leaf_at_distance_one() -> None:
    domain = tree({"root": {"A": ["a", "b"], "B": ["c"]}})
    counts = with_missing([1, 1, 1], 1)
    buckets = bucketize(counts, domain, "hierarchical", Fraction(1, 4))
    assert [codes.tolist() for codes in buckets] == [[0, 1], [2], [3]]
    assert measure_spread(counts, domain, "hierarchical", [np.array([0, 1, 2]), np.array([3])]) == Fraction(1, 2)
    with pytest.raises(BadInput, match="missing"):
        sabre_plan(with_missing([1, 1], 1), numbers(2), "ordered", "0.1")


def test_bad_parameters_are_named() -> None:
    domain, counts = flat().bind(np.array(["a", "b"], dtype=object))[0], with_missing([2, 2])
    with pytest.raises(BadInput, match="t=-1"):
        sabre_plan(counts, domain, "equal", -1)
    with pytest.raises(BadInput, match="distance"):
        sabre_plan(counts, domain, "euclid", 1)
    with pytest.raises(BadInput, match="bound"):
        sabre_plan(counts, domain, "equal", 1, bound="tight")
    with pytest.raises(BadInput, match="hierarchy"):
        sabre_plan(counts, numbers(2), "hierarchical", 1)
    with pytest.raises(BadInput, match="beta=0"):
        burel_plan(counts, domain, 0)
    with pytest.raises(BadInput, match="kind"):
        burel_plan(counts, domain, 1, kind="range")
    with pytest.raises(BadInput, match="k=0"):
        burel_plan(counts, domain, 1, k=0)


@pytest.mark.parametrize(
    ("bucket_of", "sizes", "allotments", "fault"),
    [
        ([0, 1], [2, 2], [[1, 2], [1, 1]], "every row once"),
        ([0, 1], [2, 2], [[2, 2], [0, 0]], "no row"),
        ([0, 1], [2, 2], [[3, 1], [-1, 1]], "negative"),
        ([0, 2], [2, 2], [[2, 2]], "does not exist"),
        ([0, 0], [2, 2], [[2, 2]], "no value"),
        ([0, 1], [2, 2], [[2, 2, 0]], "one column per bucket"),
        ([0, 1], [2, 3], [[2, 3]], "sum of its values"),
        ([0, -1], [2], [[2]], "has no bucket"),
    ],
)
def test_a_broken_plan_is_found(bucket_of: list[int], sizes: list[int], allotments: Any, fault: str) -> None:
    plan = Plan(np.array(bucket_of, dtype=np.int32), np.array(sizes), np.array(allotments))
    with pytest.raises(ValueError, match=fault):
        plan.check(np.array([2, 2]))


def test_ten_million_rows_have_few_different_allotments() -> None:
    sizes = np.array([4_000_001, 3_333_333, 2_666_666])
    requested: list[bytes] = []

    def allows(a: np.ndarray) -> bool:
        requested.append(a.tobytes())
        return True

    allotments = halve(sizes, 10, allows)
    assert allotments.sum(axis=0).tolist() == sizes.tolist() and allotments.sum(axis=1).min() >= 10
    assert len(requested) == len(set(requested)) <= (len(sizes) + 1) * math.ceil(math.log2(sizes.max()))
    assert len(allotments) >= 500_000

"""The law of perturbed secrets: its bound by enumeration, its draws exactly, and estimates of what was there."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.checks.oracle import amplification
from closeknit.core.perturbation import Law, estimate_counts, posterior, retention_for, retention_of, words_of
from conftest import examples

SEED = 2**100 + 9
LAWS = [Law(retain, m) for retain in (Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)) for m in (1, 2, 3, 4)]


def chances(law: Law) -> dict[Any, dict[Any, Fraction]]:
    return {u: {v: law.chance(u == v) for v in range(law.values)} for u in range(law.values)}


# The law -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_gamma_is_the_largest_factor_of_the_law(law: Law) -> None:
    table = chances(law)
    assert all(sum(row.values()) == 1 for row in table.values())
    assert law.gamma == amplification(table)


@pytest.mark.parametrize("law", [law for law in LAWS if law.values > 1], ids=str)
def test_no_prior_belief_grows_beyond_the_bound(law: Law) -> None:
    """Every prior on a grid of tenths and all but certain ones, every set of secrets, every written value."""
    grid = [p for p in itertools.product(range(11), repeat=law.values) if sum(p) == 10] if law.values <= 3 else []
    priors = [[Fraction(part, 10) for part in p] for p in grid]
    hair = Fraction(1, 10**9)
    for u, v in itertools.permutations(range(law.values), 2):
        priors += [[{u: p, v: 1 - p}.get(w, Fraction(0)) for w in range(law.values)] for p in (hair, 1 - hair, Fraction(1, 3))]
    sets = [s for size in range(1, law.values) for s in itertools.combinations(range(law.values), size)]
    closest = Fraction(0)
    for prior, written, secret in itertools.product(priors, range(law.values), sets):
        seen = [share * law.chance(u == written) for u, share in enumerate(prior)]
        before, after = sum(prior[u] for u in secret), sum(seen[u] for u in secret) / sum(seen)
        assert after <= posterior(before, law.gamma)
        assert 1 - after <= posterior(1 - before, law.gamma)  # nor can a belief fall further
        if 0 < before < 1:
            closest = max(closest, after / (1 - after) / (before / (1 - before)))
    assert closest == law.gamma, "the bound is reached, so no smaller one would do"


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_words_give_the_law_exactly(law: Law) -> None:
    """Every outcome once: each written value comes out as often as its chance says."""
    outcomes = law.values * law.retain.denominator
    for true in range(law.values):
        after = law.draw_codes(np.full(outcomes, true, dtype=np.int32), lambda turn, count: np.arange(count, dtype=np.uint64))
        assert {v: Fraction(count, outcomes) for v, count in Counter(after.tolist()).items()} == {
            v: law.chance(true == v) for v in range(law.values) if law.chance(true == v)
        }


def test_words_that_would_favour_an_outcome_are_drawn_again() -> None:
    law, requested = Law(Fraction(1, 3), 5), []
    last = 2**64 // 15 * 15 - 1

    def words(turn: int, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        requested.append((turn, count))
        return np.array([[14, last, last + 1], [7]][turn], dtype=np.uint64)

    assert law.draw_codes(np.zeros(3, dtype=np.int32), words).tolist() == [4, 4, 2]
    assert requested == [(0, 3), (1, 1)]


def test_words_are_those_of_column_law_and_seed() -> None:
    law = Law(Fraction(1, 2), 3)
    one = words_of("a", law, 7)(0, 500)
    assert (one == words_of("a", law, 7)(0, 500)).all()
    others = [
        words_of("b", law, 7),
        words_of("a", law, 8),
        words_of("a", Law(Fraction(1, 2), 4), 7),
        words_of("a", Law(Fraction(1, 3), 3), 7),
    ]
    assert all(not (one == other(0, 500)).any() for other in others) and not (one == words_of("a", law, 7)(1, 500)).any()


def test_as_many_are_kept_as_the_law_says() -> None:
    n, law = 200_000, Law(Fraction(3, 5), 10)
    true = np.arange(n, dtype=np.int32) % 10
    after = law.draw_codes(true, words_of("disease", law, SEED))
    moves = np.bincount((after - true) % 10, minlength=10)
    for step, count in enumerate(moves.tolist()):
        chance = float(law.chance(step == 0))
        assert abs(count - n * chance) < 5 * np.sqrt(n * chance * (1 - chance)), step


@pytest.mark.parametrize("retain", [1, 1.0, 1.5, -0.1, "much", float("nan"), True])
def test_what_is_no_probability_of_keeping_is_refused(retain: Any) -> None:
    with pytest.raises(ck.BadInput, match="retain"):
        ck.perturbed(retain)


def test_a_probability_too_fine_to_be_drawn_is_refused() -> None:
    with pytest.raises(ck.BadInput, match="fewer digits"):
        Law(Fraction(1, 2**62), 5)


@given(st.integers(1, 98), st.integers(0, 99), st.integers(2, 50))
@settings(max_examples=examples(50))
def test_retention_for_a_belief_is_the_largest(percent: int, share: int, values: int) -> None:
    prior = Fraction(percent, 100)
    believed = prior + (1 - prior) * Fraction(share, 100)
    retain = retention_for(prior, believed, values)
    assert posterior(prior, Law(retain, values).gamma) == believed
    assert retention_of(Law(retain, values).gamma, values) == retain


@pytest.mark.parametrize(("prior", "most"), [(0.3, 0.2), (0.1, 1), (0, 0.5)])
def test_beliefs_that_nothing_bounds_are_refused(prior: float, most: float) -> None:
    with pytest.raises(ck.BadInput, match="prior"):
        retention_for(prior, most, 4)


# Estimates ---------------------------------------------------------------------------------------------------------------


def test_estimates_have_no_bias_and_know_their_error() -> None:
    """Over fixed seeds: the mean is the truth within five of its errors, and the errors are as large as stated."""
    truth, law, rounds = np.array([700, 200, 90, 10, 0]), Law(Fraction(2, 5), 5), 300
    true = np.repeat(np.arange(5, dtype=np.int32), truth)
    found = [
        estimate_counts(np.bincount(law.draw_codes(true, words_of("x", law, seed)), minlength=5), "2/5")
        for seed in range(rounds)
    ]
    counts, errors = np.stack([f.counts for f in found]), np.stack([f.errors for f in found])
    spread = counts.std(axis=0, ddof=1)
    assert (np.abs(counts.mean(axis=0) - truth) < 5 * spread / np.sqrt(rounds)).all()
    assert np.allclose(spread, errors.mean(axis=0), rtol=0.2)


def test_the_mean_of_what_is_written_gives_the_truth_back() -> None:
    truth, law = [Fraction(70), Fraction(30), Fraction(0)], Law(Fraction(1, 4), 3)
    mean = [sum(n * law.chance(u == v) for u, n in enumerate(truth)) for v in range(3)]
    assert estimate_counts([float(x) for x in mean], 0.25).counts == pytest.approx([70, 30, 0])


@given(st.lists(st.integers(0, 60), min_size=2, max_size=4).filter(any), st.sampled_from(["1/10", "1/2", "9/10"]))
@settings(max_examples=examples(60))
def test_possible_counts_are_the_nearest(observed: list[int], retain: str) -> None:
    found, n = estimate_counts(observed, retain), sum(observed)
    assert found.counts.sum() == pytest.approx(n) and found.possible.sum() == pytest.approx(n)
    assert (found.possible >= 0).all()
    ours = ((found.possible - found.counts) ** 2).sum()
    shares = [p for p in itertools.product(range(9), repeat=len(observed)) if sum(p) == 8]
    assert all(ours <= ((np.array(p) * n / 8 - found.counts) ** 2).sum() + 1e-6 for p in shares)


def test_nothing_is_estimated_where_nothing_is_kept() -> None:
    with pytest.raises(ck.BadInput, match="retain=0"):
        estimate_counts([3, 4], 0)

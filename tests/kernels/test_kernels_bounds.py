"""The a-priori bounds of dealing against every class that could come out of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dealing_bounds import rounds_bound, rounds_certificate, super_round_certificate


def distance(table: list[int], part: list[int]) -> Fraction:
    """Ordered earth mover's distance, written out."""
    n, s, m = sum(table), sum(part), len(table)
    gaps = [abs(Fraction(sum(part[:i]), s) - Fraction(sum(table[:i]), n)) for i in range(1, m)]
    return sum(gaps, Fraction(0)) / max(m - 1, 1)


def possible_classes(n: int, e: int, g: int) -> Iterator[list[int]]:
    """Every set of stack positions that one class may hold."""
    blocks = [range(a, min(n, a + g * e)) for a in range(0, n, g * e)]
    for s in {n // e, -(-n // e)}:
        seats = [g] * (n // (g * e))
        seats += [s - sum(seats)] * (len(blocks) - len(seats))
        for taken in itertools.product(*map(itertools.combinations, blocks, seats)):
            yield list(itertools.chain(*taken))


@pytest.mark.parametrize("n", range(1, 14))
def test_rounds_bound_is_the_largest_deviation_of_any_prefix(n: int) -> None:
    for e in range(1, n + 1):
        worst = max(
            abs(Fraction(sum(z < f for z in held), len(held)) - Fraction(f, n))
            for held in possible_classes(n, e, 1)
            for f in range(n + 1)
        )
        assert rounds_bound(n, e) == worst < Fraction(2, n // e + 1)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(lambda f: 0 < sum(f) < 10), st.data())
def test_certificates_are_above_every_possible_class(freqs: list[int], data: st.DataObject) -> None:
    n = sum(freqs)
    e, g = data.draw(st.integers(1, n)), data.draw(st.integers(1, 4))
    stack = np.repeat(np.arange(len(freqs)), freqs)
    measured = max(
        distance(freqs, np.bincount(stack[held], minlength=len(freqs)).tolist()) for held in possible_classes(n, e, g)
    )
    assert measured <= super_round_certificate(freqs, e, g)
    assert rounds_certificate(freqs, e) <= rounds_bound(n, e)


def test_certificate_is_reached_where_there_is_one_cut() -> None:
    for e, g in ((2, 1), (3, 1), (2, 2), (3, 2)):
        low = [sum(z < 4 for z in held) for held in possible_classes(9, e, g)]
        sizes = [len(held) for held in possible_classes(9, e, g)]
        measured = max(distance([4, 5], [c, s - c]) for c, s in zip(low, sizes, strict=True))
        assert measured == super_round_certificate([4, 5], e, g)


def test_edges() -> None:
    assert rounds_bound(0, 1) == rounds_certificate([], 1) == rounds_certificate([7], 3) == 0
    assert rounds_certificate([3, 0, 4, 0], 1) == 0
    assert super_round_certificate([1, 1], 1, 5) == 0


def test_more_freedom_is_never_certified_closer() -> None:
    rng = np.random.default_rng(3)
    freqs = rng.integers(0, 40, 12)
    n, k = int(freqs.sum()), 8
    levels = [super_round_certificate(freqs, n // k, g) for g in (1, 2, 4, 8)]
    assert levels == sorted(levels)

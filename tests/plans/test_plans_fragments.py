"""Fragments of several secrets: worked examples and errata of the source, bounds against every conforming class, and sizes."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeknit.core.classes import Classes, Histogram
from closeknit.core.domain import Domain
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kinds import flat, numeric
from closeknit.models import TCloseness
from closeknit.plans.fragment_sizes import SIZINGS, fragment_plan, gcd_classes
from closeknit.plans.fragments import Fragments, Space, find_fragmentation, refine_fragments
from conftest import examples

GOLDEN = {case["id"]: case for case in json.loads((Path(__file__).parents[1] / "golden" / "static.json").read_text())}
KINDS = ("printed", "grouped", "cuts", "best")
LIMITS = st.sampled_from(["0", "1/50", "1/10", "1/5", "1/4", "1/3", "1/2", "3/4", "1"]).map(Fraction)
TREE = Hierarchy.from_nested({"A": ["v0", "v1"], "B": {"C": ["v2", "v3"], "v4": None}})
ONE = Fraction(1)


class Secrets:
    """A table of several secrets: the codes of its rows, with domains and distances."""

    def __init__(self, columns: list[Any], distances: list[str]) -> None:
        self.distances = distances
        self.codes: list[np.ndarray] = []
        self.domains: list[Domain] = []
        for values, distance in zip(columns, distances, strict=True):
            kind: Any = {"ordered": numeric(), "equal": flat(), "hierarchical": TREE}[distance]
            named = np.asarray(values) if distance == "ordered" else np.array([f"v{v}" for v in values], dtype=object)
            domain, codes = kind.bind(named)
            self.codes.append(codes)
            self.domains.append(domain)
        self.n = len(self.codes[0])
        everyone = np.zeros(self.n, dtype=np.int32)
        histograms = [Histogram.of(everyone, 1, codes, domain) for codes, domain in zip(self.codes, self.domains, strict=True)]
        self.space = Space.of(list(zip(self.codes, histograms, distances, strict=True)))

    @classmethod
    def of_matrix(cls, matrix: Any, distance: str = "ordered") -> Secrets:
        counts = np.asarray(matrix)
        places = np.nonzero(counts)
        return cls([np.repeat(place, counts[places]) for place in places], [distance] * counts.ndim)

    def classes(self, class_of: Any) -> Classes:
        pairs = {str(i): both for i, both in enumerate(zip(self.codes, self.domains, strict=True))}
        return Classes.of(np.asarray(class_of, dtype=np.int32), int(max(class_of)) + 1, pairs)

    def worst(self, i: int, cells: np.ndarray) -> Fraction:
        """The exact distance in secret i of a class with these numbers of rows of each cell."""
        axis, domain = self.space.axes[i], self.domains[i]
        dense = np.zeros(domain.size + 1, dtype=np.int64)
        np.add.at(dense, axis.codes[self.space.cells[:, i]], cells)
        values = np.flatnonzero(dense).astype(np.int32)
        reference = np.bincount(self.codes[i], minlength=domain.size + 1)
        histogram = Histogram(np.array([0, len(values)]), values, dense[values], reference, domain)
        classes = Classes(np.array([cells.sum()]), np.array([cells.sum()]), {"x": histogram})
        return TCloseness("x", 1, self.distances[i]).exact_level(classes, 0)

    def fragments(self, fragment_of: Any) -> Fragments:
        return Fragments(self.space, np.asarray(fragment_of, dtype=np.int32))


def corners(fragments: Fragments, a: np.ndarray) -> Iterator[np.ndarray]:
    """Classes in which each fragment shows one cell only: where a convex distance is largest."""
    cells = [np.flatnonzero(fragments.fragment_of == f) for f in range(len(a))]
    for picks in itertools.product(*cells):
        counts = np.zeros(len(fragments.fragment_of), dtype=np.int64)
        counts[list(picks)] = a
        yield counts


@st.composite
def secrets(draw: st.DrawFn, most: int = 4, rows: int = 12, several: tuple[int, int] = (1, 3), lines: bool = False) -> Secrets:
    s, n = draw(st.integers(*several)), draw(st.integers(1, rows))
    distances = [draw(st.sampled_from(["ordered"] if lines else ["ordered", "equal", "hierarchical"])) for _ in range(s)]
    return Secrets([draw(st.lists(st.integers(0, most), min_size=n, max_size=n)) for _ in range(s)], distances)


def split_at_random(draw: st.DrawFn, made: Secrets, most: int = 4) -> Fragments:
    """Some guillotine cuts."""
    fragment_of = np.zeros(len(made.space.counts), dtype=np.int32)
    for _ in range(draw(st.integers(0, most))):
        f, d, v = draw(st.integers(0, 9)) % (fragment_of.max() + 1), draw(st.integers(0, 9)), draw(st.integers(0, 4))
        above = (fragment_of == f) & (made.space.cells[:, d % len(made.distances)] > v)
        if above.any() and not above[fragment_of == f].all():
            fragment_of[above] = fragment_of.max() + 1
    return made.fragments(fragment_of)


# Worked examples and errata -----------------------------------------------------------------------------------------------


def test_figure_4_1_is_no_class_of_its_table() -> None:
    case = GOLDEN["000-4.1"]
    table, sample = np.array(case["M"]), np.array(case["E"])
    assert bool((sample <= table).all()) == case["E_fits_in_M"]
    assert sample[3, 1] == 8 and table[3, 1] == 0
    for name, box in (("conforms_1_3__1_2", np.s_[0:3, 0:2]), ("conforms_3_4__2_3", np.s_[2:4, 1:3])):
        shares = [Fraction(int(m[box].sum()), int(m.sum())) for m in (table, sample)]
        assert shares == [Fraction(x) for x in case[name]]
    made = Secrets.of_matrix(table + (table == 0))  # so that every cell of the sample has a place
    for i, name in enumerate(("emd_rows", "emd_cols")):
        p, q = (m.sum(axis=1 - i).astype(object) for m in (table, sample))
        apart = np.abs(np.cumsum(p * int(sample.sum()) - q * int(table.sum()))[:-1]).sum()
        assert Fraction(int(apart), int(table.sum() * sample.sum()) * (len(p) - 1)) == Fraction(case[name])
        assert made.space.axes[i].unit == 2 * (len(p) - 1)  # distances are over m - 1 of the whole domain


def test_figure_4_6_a_split_raises_the_printed_bound_only() -> None:
    case = GOLDEN["000-4.6"]
    made = Secrets.of_matrix(case["M"])
    top, split = made.fragments([0, 0, 0, 0]), made.fragments(made.space.cells[:, 1])
    for fragments, printed, grouped in ((top, "top", "grouped_top"), (split, "A", "grouped_A")):
        assert [fragments.distance_bound(i, "printed") for i in (0, 1)] == [Fraction(x) for x in case[printed]]
        assert [fragments.distance_bound(i, "grouped") for i in (0, 1)] == [Fraction(x) for x in case[grouped]]
    assert (
        split.distance_bound(0, "printed")
        > top.distance_bound(0, "printed")
        == split.distance_bound(0, "grouped")
        == split.distance_bound(0, "cuts")
    )
    limits = [Fraction(1, 2), Fraction(0)]
    assert find_fragmentation(made.space, limits).fragment_of.tolist() == split.fragment_of.tolist()
    assert len(find_fragmentation(made.space, limits, "printed").sizes) > 2  # pays for the artefact with more fragments


def test_figure_4_8() -> None:
    case = GOLDEN["000-4.8"]
    sizes = np.array(case["sizes"])
    q = gcd_classes(sizes)
    assert q == case["q"] and sizes.sum() // q == case["r"] and (sizes // q).tolist() == case["per_class"]


def test_quotas_are_shares_of_fragments() -> None:
    """Erratum: r * |F| rows, as printed, are more rows than there are; r * |F| / n is meant."""
    case = GOLDEN["000-4.8"]
    sizes, r = np.array(case["sizes"]), case["r"]
    assert (r * sizes > sizes).all()
    assert [Fraction(r * int(size), int(sizes.sum())) for size in sizes] == case["per_class"]
    made = Secrets([np.repeat(np.arange(4), sizes)], ["ordered"])
    plan = fragment_plan(made.fragments([0, 1, 2, 3]), [Fraction(0)], 1, "gcd")
    assert plan.allotments.tolist() == [case["per_class"]] * case["q"]


def test_loose_limits_never_give_classes_below_k() -> None:
    case = GOLDEN["CE-gcd-1"]
    made = Secrets.of_matrix(GOLDEN["000-4.1"]["M"])
    limits = [Fraction(x) for x in case["t"]]
    fragments = find_fragmentation(made.space, limits)
    assert fragments.sizes.tolist() == [case["n"]]
    assert gcd_classes(fragments.sizes) == case["classes"]  # as printed: classes of one row
    for sizing in SIZINGS:
        sizes = fragment_plan(fragments, limits, 7, sizing).class_sizes
        assert sizes.min() >= 7 and len(sizes) > 30


@pytest.mark.parametrize("seed", range(5))
def test_the_greatest_common_divisor_is_one_class_and_dealing_is_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = Secrets([rng.integers(0, 10, 1025), rng.integers(0, 10, 1025)], ["ordered", "ordered"])
    limits = [Fraction("0.2")] * 2
    fragments = find_fragmentation(made.space, [limit / 2 for limit in limits])
    assert math.gcd(*fragments.sizes.tolist()) == 1
    assert len(fragment_plan(fragments, limits, 8, "gcd").allotments) == 1
    assert len(fragment_plan(fragments, limits, 8, "deal").allotments) > 10
    assert len(fragment_plan(fragments, limits, 8, "halve").allotments) > 10


def test_only_the_secret_above_its_limit_is_cut() -> None:
    """Erratum: the second case of the strategy asks for the excess of the second secret, not of the first."""
    made = Secrets.of_matrix(np.ones((4, 4), dtype=int))
    fragments = find_fragmentation(made.space, [ONE, Fraction(1, 5)])
    lo, hi = fragments.boxes
    assert (lo[:, 0] == 0).all() and (hi[:, 0] == 3).all() and len(fragments.sizes) > 1


def test_at_the_end_every_cell_is_a_fragment_and_bounds_are_zero() -> None:
    """As many splits as cells, less one (the source says m + n of them once, and m * n elsewhere)."""
    made = Secrets.of_matrix(np.arange(1, 13).reshape(3, 4))
    for bound in ("best", "printed"):
        fragments = find_fragmentation(made.space, [Fraction(0)] * 2, bound)
        assert len(fragments.sizes) == 12 and fragments.met
        assert {fragments.distance_bound(i, kind) for i in (0, 1) for kind in KINDS} == {Fraction(0)}


# The search ---------------------------------------------------------------------------------------------------------------


def naive_search(made: Secrets, limits: list[Fraction], kind: str) -> list[list[int]]:
    """The specification, word by word, in rationals: each fragmentation as a list of lists of cells."""
    cells = made.space.cells
    fragments = [list(range(len(cells)))]

    def bounds(parts: list[list[int]]) -> list[Fraction]:
        fragment_of = np.zeros(len(cells), dtype=np.int32)
        for f, part in enumerate(parts):
            fragment_of[part] = f
        return [made.fragments(fragment_of).distance_bound(i, kind) for i in range(len(limits))]

    while any(bound > limit for bound, limit in zip(bounds(fragments), limits, strict=True)):
        found = []
        for f, part in enumerate(fragments):
            for d in range(len(limits)):
                for v in sorted({int(cells[c, d]) for c in part})[:-1]:
                    below, above = [c for c in part if cells[c, d] <= v], [c for c in part if cells[c, d] > v]
                    parts = [*fragments[:f], below, *fragments[f + 1 :], above]
                    after = bounds(parts)
                    excess = sum(max(b - t, Fraction(0)) for b, t in zip(after, limits, strict=True))
                    found.append(((excess, sum(after), f, d, v), parts))
        fragments = min(found)[1]
    return sorted(fragments)


@settings(max_examples=examples(80))
@given(secrets(), st.lists(LIMITS, min_size=3, max_size=3), st.sampled_from(["best", "printed"]))
def test_fragments_are_those_of_the_specification(made: Secrets, limits: list[Fraction], bound: str) -> None:
    limits = limits[: len(made.distances)]
    fragments = find_fragmentation(made.space, limits, bound)
    got = [np.flatnonzero(fragments.fragment_of == f).tolist() for f in range(len(fragments.sizes))]
    assert sorted(got) == naive_search(made, limits, bound)
    assert fragments.met and all(fragments.distance_bound(i, bound) <= t for i, t in enumerate(limits))
    assert fragments.sizes.sum() == made.n and (fragments.sizes > 0).all()
    lo, hi = fragments.boxes
    for f, cell in itertools.product(range(len(got)), range(len(made.space.cells))):
        inside = bool(((lo[f] <= made.space.cells[cell]) & (made.space.cells[cell] <= hi[f])).all())
        assert inside == (fragments.fragment_of[cell] == f)  # boxes do not overlap


def test_a_search_that_resumes_only_splits() -> None:
    rng = np.random.default_rng(3)
    made = Secrets([rng.integers(0, 9, 300), rng.integers(0, 9, 300)], ["ordered", "equal"])
    several = list(refine_fragments(made.space, [[Fraction(x)] * 2 for x in ("1/2", "1/4", "1/8")]))
    assert several[0].fragment_of.tolist() == find_fragmentation(made.space, [Fraction(1, 2)] * 2).fragment_of.tolist()
    for coarse, fine in itertools.pairwise(several):
        assert len(coarse.sizes) < len(fine.sizes)
        pairs = {(int(a), int(b)) for a, b in zip(fine.fragment_of, coarse.fragment_of, strict=True)}
        assert len(pairs) == len(fine.sizes)  # each fine fragment lies in one coarse one
        assert sorted(pairs) == sorted(pairs, key=lambda pair: (pair[1], pair[0]))  # and parts stand side by side


def test_a_search_that_reaches_its_limit_says_so() -> None:
    made = Secrets.of_matrix(np.ones((6, 6), dtype=int))
    fragments = find_fragmentation(made.space, [Fraction(0)] * 2, most=10)
    assert not fragments.met and len(fragments.sizes) == 10 and fragments.sizes.sum() == 36


def test_many_combinations_are_held_sparsely() -> None:
    rng = np.random.default_rng(1)
    n = 20_000
    made = Secrets([rng.integers(0, 10**6, n), rng.integers(0, 10**6, n), rng.integers(0, 5, n)], ["ordered"] * 3)
    assert len(made.space.counts) == n
    fragments = find_fragmentation(made.space, [Fraction("0.3")] * 3)
    assert fragments.met and 2 < len(fragments.sizes) < 64
    assert all(fragments.distance_bound(i) <= Fraction("0.3") for i in range(3))


# Bounds -------------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(150))
@given(secrets(rows=7), st.data())
def test_no_conforming_class_passes_a_bound(made: Secrets, data: st.DataObject) -> None:
    """A class with exactly the fragments' shares, filled in every way in which a fragment shows one cell only."""
    fragments = split_at_random(data.draw, made)
    for i in range(len(made.distances)):
        worst = max(made.worst(i, cells) for cells in itertools.islice(corners(fragments, fragments.sizes), 2000))
        assert worst <= fragments.distance_bound(i, "grouped") <= fragments.distance_bound(i, "printed")
        assert worst <= fragments.distance_bound(i, "cuts")
        assert fragments.distance_bound(i) == min(fragments.distance_bound(i, "grouped"), fragments.distance_bound(i, "cuts"))


@settings(max_examples=examples(60))
@given(secrets(rows=12, several=(1, 1), lines=True))
def test_the_bound_of_one_interval_is_reached(made: Secrets) -> None:
    whole = made.fragments(np.zeros(len(made.space.counts)))
    worst = max(made.worst(0, cells) for cells in corners(whole, whole.sizes))
    assert {whole.distance_bound(0, kind) for kind in ("printed", "grouped")} == {worst}
    assert whole.distance_bound(0, "cuts") >= worst


@settings(max_examples=examples(150))
@given(secrets(rows=14), st.data())
def test_a_split_never_raises_the_bound_per_cut(made: Secrets, data: st.DataObject) -> None:
    fragments = split_at_random(data.draw, made)
    before = [fragments.distance_bound(i, "cuts") for i in range(len(made.distances))]
    for f, d, v in itertools.product(range(len(fragments.sizes)), range(len(made.distances)), range(5)):
        above = (fragments.fragment_of == f) & (made.space.cells[:, d] > v)
        if above.any() and not above[fragments.fragment_of == f].all():
            after = made.fragments(np.where(above, len(fragments.sizes), fragments.fragment_of))
            assert all(after.distance_bound(i, "cuts") <= bound for i, bound in enumerate(before))

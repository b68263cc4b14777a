"""Buckets that are diverse together: kept sums against counting again, decisions against a naive search, and refusals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.disclosure import exact_disclosure, keeps_diverse, matching_buckets, most_alike, worst_disclosure
from closeknit.core.errors import BadInput, Unsatisfiable
from closeknit.core.geometry import scales
from closeknit.core.kinds import flat, numeric
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema
from closeknit.core.slices import Slices
from closeknit.core.table import Partition, Table
from closeknit.kernels.cutting.cut_offers import offers
from closeknit.kernels.cutting.cut_sides import mark
from closeknit.kernels.slicing.diverse_cuts import CutState, Rule, _recompute_mass, holders
from closeknit.models.diverse_slicing import DiverseSlicing
from closeknit.models.k_anonymity import KAnonymity
from closeknit.search import diverse_cuts
from closeknit.search.diverse_cuts import Requested, diverse_partition
from closeknit.search.refine import Cuts, refine_partition
from conftest import examples

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "streams.json").read_text())


class Sliceable:
    """A table of numbers with a secret, and what is known of its rows by the groups of its columns."""

    def __init__(
        self,
        quasi: Sequence[Sequence[int]],
        secret: Sequence[Any],
        column_groups: Sequence[Sequence[int]],
        attached: Sequence[int] = (),
        coarse: int = 1,
    ):
        names = [f"q{j}" for j in range(len(quasi[0]))]
        cells = {name: [row[j] for row in quasi] for j, name in enumerate(names)} | {"s": list(secret)}
        schema = Schema(quasi={name: numeric() for name in names}, sensitive={"s": flat()})
        self.table: Table = schema.encode(Columns.of(cells))
        self.secret, _ = self.table.secret("s")
        self.geometry, self.place = scales(self.table), len(column_groups)
        codes = self.table.quasi // coarse
        known = [groups([(codes[:, j], 1 << 20) for j in group], len(codes))[0] for group in (*column_groups, attached)]
        self.known = np.stack(known, axis=1)
        self.whole = self.slices(np.zeros(len(codes)))

    def cut(self, l: Fraction, weight: str, relaxed: bool, least: int) -> Partition:
        return diverse_partition(self.table, self.whole, Requested(l, weight, relaxed, least))

    def slices(self, bucket_of: np.ndarray) -> Slices:
        return Slices(bucket_of.astype(np.int32), self.known, self.place, self.secret)


@st.composite
def tables(draw: st.DrawFn) -> Sliceable:
    """Up to 24 rows with many ties; groups of columns, the last one perhaps with the secret; sometimes written coarser."""
    n, d = draw(st.integers(1, 24)), draw(st.integers(1, 3))
    quasi = draw(st.lists(st.tuples(*[st.integers(0, 3)] * d), min_size=n, max_size=n))
    secret = draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    divided = draw(st.integers(0, d - 1))
    ways = [[list(range(d))], [[j] for j in range(d)], [list(range(divided + 1)), list(range(divided + 1, d))]]
    attached = draw(st.sampled_from([[], [], [d - 1]]))
    return Sliceable(quasi, list(secret), draw(st.sampled_from(ways)), attached, draw(st.sampled_from([1, 1, 2])))


LIMITS = st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(7, 4)])
WEIGHTS = st.sampled_from(["size", "paper"])


def naive(given_: Sliceable, l: Fraction, weight: str, relaxed: bool, least: int) -> np.ndarray | None:
    """Line by line as in the source, everything counted again for each cut; None where the root is refused."""
    bucket_of = np.zeros(len(given_.table), np.int64)
    if not keeps_diverse(given_.slices(bucket_of), given_.known, l, weight):
        return None
    queue, number = [0], 0
    while queue:
        bucket = queue.pop(0)
        rows = np.flatnonzero(bucket_of == bucket)
        quasi, starts = np.ascontiguousarray(given_.table.quasi[rows]), np.array([0, len(rows)])
        _, cuts = offers(given_.geometry, quasi, starts, least, relaxed, False, False)
        for cut in cuts:
            left = np.zeros(len(rows), dtype=bool)
            mark(quasi, starts, np.array([0]), cut[None, :], left)
            tried = bucket_of.copy()
            tried[rows] = np.where(left, number + 1, number + 2)
            gapless = np.unique(tried, return_inverse=True)[1]
            if keeps_diverse(given_.slices(gapless), given_.known, l, weight):
                bucket_of, queue, number = tried, [*queue, number + 1, number + 2], number + 2
                break
    return bucket_of


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """The same rows stand together."""
    return len(set(zip(one.tolist(), other.tolist(), strict=True))) == len(set(one.tolist())) == len(set(other.tolist()))


@given(tables(), LIMITS, WEIGHTS, st.booleans(), st.integers(1, 3))
@settings(max_examples=examples(150))
def test_every_decision_is_that_of_the_full_test(t: Sliceable, l: Fraction, weight: str, relaxed: bool, least: int) -> None:
    wanted = naive(t, l, weight, relaxed, least)
    if wanted is None:
        with pytest.raises(Unsatisfiable, match="as one bucket reaches"):
            t.cut(l, weight, relaxed, least)
    else:
        assert same(t.cut(l, weight, relaxed, least).class_of, wanted)


def states(t: Sliceable, l: Fraction, weight: str, relaxed: bool, least: int) -> Any:
    """What is kept after each bucket, and the rows it is kept of."""
    rows = diverse_cuts._rows(t.table.quasi, t.whole)
    rule = Rule(float(1 / l), most_alike(len(t.table), l), weight == "size", least, relaxed)
    for standing, _ in diverse_cuts._cut_buckets(rows, rule, t.geometry, t.secret, Requested(l, weight, relaxed, least), 1):
        yield rows, rule, standing


def buckets_of(standing: CutState) -> np.ndarray:
    return diverse_cuts._partition(standing).class_of


@given(tables(), LIMITS, WEIGHTS, st.booleans())
@settings(max_examples=examples(60))
def test_kept_sums_are_those_counted_again_after_every_step(t: Sliceable, l: Fraction, weight: str, relaxed: bool) -> None:
    try:
        for rows, _, standing in states(t, l, weight, relaxed, 1):
            bucket_of = buckets_of(standing)
            slices = Slices(bucket_of, rows.known, t.place, t.secret)
            assert standing.matches.tolist() == matching_buckets(slices, rows.profiles).tolist()
            for q, profile in enumerate(rows.profiles):
                mine = standing.mass[rows.starts[q] : rows.starts[q + 1]]
                exact = exact_disclosure(slices, profile, weight)
                shares = [float(exact.get(int(s), 0)) for s in np.unique(t.secret[rows.known[:, t.place] == profile[t.place]])]
                assert np.allclose(mine / standing.total[q], shares, rtol=0, atol=1e-12)
                assert standing.top[q] >= mine.max() and np.isclose(standing.total[q], mine.sum(), rtol=1e-12)
                bad = [b for b in holders(standing, q) if _fails(slices, standing, rows, int(b), int(profile[t.place]), l)]
                assert standing.failing[q] == len(bad)
    except Unsatisfiable:
        assert naive(t, l, weight, relaxed, 1) is None


def _fails(slices: Slices, standing: CutState, rows: Any, bucket: int, part: int, l: Fraction) -> bool:
    here = standing.order[standing.first[bucket] : standing.last[bucket]]
    counts = np.bincount(slices.secret[here[rows.known[here, slices.place] == part]])
    return Fraction(int(counts.max()), int(counts.sum())) > 1 / l


@given(tables(), WEIGHTS)
@settings(max_examples=examples(40))
def test_summing_again_changes_nothing_but_rounding(t: Sliceable, weight: str) -> None:
    *_, (rows, rule, standing) = states(t, Fraction(1), weight, True, 1)
    mass, total = standing.mass.copy(), standing.total.copy()
    for q in range(len(rows.profiles)):
        _recompute_mass(rows, rule, standing, q)
    assert np.allclose(mass, standing.mass, rtol=1e-12, atol=1e-14) and np.allclose(total, standing.total, rtol=1e-12)


def generated(n: int, seed: int = 5, **more: Any) -> Sliceable:
    rng = np.random.default_rng(seed)
    quasi = np.stack([rng.integers(0, 40, n), rng.integers(0, 5, n), rng.integers(0, 2, n), rng.geometric(0.4, n)], axis=1)
    secret = (quasi[:, 1] + rng.integers(0, 5, n)) % 7
    return Sliceable(quasi.tolist(), [f"v{s}" for s in secret], more.pop("column_groups", [[0, 1], [2, 3]]), **more)


@pytest.mark.parametrize("weight", ["size", "paper"])
@pytest.mark.parametrize("relaxed", [False, True])
def test_the_release_is_diverse_and_buckets_are_large_enough(weight: str, relaxed: bool) -> None:
    t, l = generated(1500), Fraction(3)
    cut = t.cut(l, weight, relaxed, 4)
    assert np.bincount(cut.class_of).min() >= 4 and cut.count > 50
    assert keeps_diverse(t.slices(cut.class_of), t.known, l, weight)
    if relaxed:
        assert matching_buckets(t.slices(cut.class_of), t.known).max() > 1
        assert cut.count > t.cut(l, weight, False, 4).count


def test_strict_cuts_leave_every_tuple_one_bucket() -> None:
    """So both weights are the test of each bucket by itself, and the buckets those of Mondrian under it."""
    t, l = generated(1500), Fraction(3)
    cut = t.cut(l, "size", False, 4)
    assert matching_buckets(t.slices(cut.class_of), t.known).tolist() == [1] * len(t.table)
    whole = Partition(np.zeros(len(t.table), np.int32), 1)
    models = [KAnonymity(4), DiverseSlicing("s", 3)]
    alone = refine_partition(t.table, whole, models, t.geometry, Cuts(relaxed=False, best=False, try_all=False))
    assert same(cut.class_of, alone.class_of) and same(cut.class_of, t.cut(l, "paper", False, 4).class_of)


@given(tables(), LIMITS, WEIGHTS)
@settings(max_examples=examples(40))
def test_strict_cuts_of_exact_columns_are_local(t: Sliceable, l: Fraction, weight: str) -> None:
    exact = Sliceable(t.table.quasi.tolist(), t.secret.tolist(), [[j] for j in range(t.table.quasi.shape[1])])
    if not keeps_diverse(exact.slices(np.zeros(len(exact.table))), exact.known, l, weight):
        return
    cut = exact.cut(l, weight, False, 1)
    assert set(matching_buckets(exact.slices(cut.class_of), exact.known).tolist()) == {1}
    counted: Classes = exact.table.count_classes(cut)
    assert DiverseSlicing("s", l).holds(counted).all()


# The source and its counterexamples ----------------------------------------------------------------------------------------


def test_table_1_is_cut_as_printed() -> None:
    """Shares of exactly 1/2 are allowed for l = 2: the printed test would refuse its own table, and cut nothing."""
    records = GOLDEN["slicing_table1"]["records"]
    quasi = [(age, "FM".index(sex), zip_) for age, sex, zip_, _ in records]
    t = Sliceable(quasi, [record[-1] for record in records], [[0, 1]], attached=[2])
    cut = t.cut(Fraction(2), "size", False, 4)
    buckets = {frozenset(t.table.rows[cut.class_of == b].tolist()) for b in range(cut.count)}
    assert buckets == {frozenset(bucket) for bucket in GOLDEN["slicing_table1"]["buckets"]}
    assert worst_disclosure(t.slices(cut.class_of), t.known, "size")[0] == 0.5


def test_four_rows_of_one_disease_are_refused() -> None:
    t = Sliceable([(1,), (2,), (3,), (4,)], ["hiv"] * 4, [[0]])
    for weight in ("size", "paper"):
        with pytest.raises(Unsatisfiable, match="2-diverse slicing cannot be met: the whole table as one bucket reaches 1;"):
            t.cut(Fraction(2), weight, True, 1)


def test_a_unique_value_next_to_the_secret_is_refused() -> None:
    records = GOLDEN["slicing_counterexample_unique_qi_with_s"]["records"]
    t = Sliceable([row[:2] for row in records], [row[2] for row in records], [[0]], attached=[1])
    with pytest.raises(Unsatisfiable, match="reaches 1;"):
        t.cut(Fraction(2), "size", False, 2)


def test_printed_weights_end_in_buckets_that_disclose_too_much() -> None:
    """As printed, small buckets weigh as much as large ones: the cuts end where b has 11/21 for someone, not 1/2 at most."""
    t = Sliceable([(0,)] * 7 + [(1,), (1,), (2,)], list("abbbbcccca"), [[0]])
    reported = {weight: t.slices(t.cut(Fraction(2), weight, True, 1).class_of) for weight in ("paper", "size")}
    assert keeps_diverse(reported["paper"], t.known, Fraction(2), "paper")
    assert not keeps_diverse(reported["paper"], t.known, Fraction(2), "size")
    assert worst_disclosure(reported["paper"], t.known, "size")[0] == pytest.approx(11 / 21)
    assert keeps_diverse(reported["size"], t.known, Fraction(2), "size")


# Ways that are rarely gone ----------------------------------------------------------------------------------------------------


def test_rationals_decide_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two buckets with 3/4 and 1/4 of one value are worth 1/2 together, which a float cannot distinguish from a little more."""
    requested: list[bool] = []
    decide = diverse_cuts._allows_cut

    def counted(*parts: Any) -> bool:
        requested.append(decide(*parts))
        return requested[-1]

    monkeypatch.setattr(diverse_cuts, "_allows_cut", counted)
    t = Sliceable([(x,) for x in range(8)], list("aaababbb"), [[0]], coarse=8)  # all rows look the same
    assert t.cut(Fraction(2), "size", False, 4).count == 2
    assert requested == [True]
    t = Sliceable([(x,) for x in range(8)], list("aabbbbaa"), [[0]], coarse=8)
    assert t.cut(Fraction(2), "size", False, 2).count == 4
    with pytest.raises(Unsatisfiable):
        t.cut(Fraction(2) + Fraction(1, 10**15), "size", False, 4)


def test_a_cut_just_beyond_the_limit_is_refused_by_rationals() -> None:
    """Halves of 3 and 5 rows whose printed weights differ: the release is 1/2 + 1/30 by them, and 1/2 by size."""
    t = Sliceable([(x,) for x in range(8)], list("aababbab"), [[0]], coarse=8)
    for weight in ("size", "paper"):
        wanted = naive(t, Fraction(2), weight, True, 3)
        assert wanted is not None and same(t.cut(Fraction(2), weight, True, 3).class_of, wanted)


def test_a_value_elsewhere_grows_when_a_bucket_no_longer_fits() -> None:
    """(0, 0) has a with 6/14 while it fits into the bucket of b and c; cut in two, that fits no more, and a would have 6/10."""
    rows = [(0, 0, 0)] * 5 + [(1, 0, 0)] * 5 + [(3, 0, 1)] * 8 + [(3, 1, 0)] * 8
    t = Sliceable(rows, list("aaabc" * 2 + "bc" * 8), [[1], [2]])
    cut = t.cut(Fraction(2), "size", False, 5)
    assert sorted(np.bincount(cut.class_of).tolist()) == [5, 5, 16]
    assert sorted(np.bincount(t.cut(Fraction(5, 3), "size", False, 5).class_of).tolist()) == [5, 5, 8, 8]


def test_what_rounding_leaves_behind_is_cleared_away() -> None:
    """Twelve zeros fit best into a bucket that is then cut so that they fit there no more: what is left is far smaller."""
    rare = [(0,) * 12] + [(1,) * 12] * 9
    rows = [(side, *row) for side in (0, 1) for row in rare] + [(3, *[0] * 6, *[1] * 6)] * 10 + [(3, *[1] * 6, *[0] * 6)] * 11
    t = Sliceable(rows, list("abcabcacba" + "babcabccab" + "abc" * 7), [[j] for j in range(1, 13)])
    *_, (kept, _, standing) = states(t, Fraction(1), "size", False, 10)
    q = int(np.flatnonzero((kept.profiles == kept.profiles.min(axis=0)).all(axis=1))[0])
    assert np.bincount(buckets_of(standing)).tolist() == [10, 10, 10, 11]
    assert standing.total[q] == pytest.approx(2 * 10 / 10**12, rel=1e-12)  # was 0.005: nine digits were lost
    assert np.allclose(standing.mass[kept.starts[q] : kept.starts[q + 1]], [7e-12, 7e-12, 6e-12], rtol=1e-12, atol=0)


def test_many_buckets_for_few_profiles() -> None:
    """More buckets than there was room for at first; every profile fits into very many."""
    t = generated(1200, column_groups=[[2]])
    cut = t.cut(Fraction(2), "size", True, 2)
    fits = matching_buckets(t.slices(cut.class_of), t.known)
    assert cut.count > 300 and fits.min() > 100
    assert keeps_diverse(t.slices(cut.class_of), t.known, Fraction(2), "size")


def test_progress_is_reported_and_pauses_change_nothing() -> None:
    t, reported = generated(400), []
    cut = t.cut(Fraction(2), "size", True, 2)
    requested = Requested(Fraction(2), "size", True, 2)
    again = diverse_partition(t.table, t.whole, requested, lambda *x: reported.append(x), pause=7)
    assert (again.class_of == cut.class_of).all()
    assert len(reported) > 10 and reported[-1][1] == pytest.approx(0.8) and all(0.2 <= share <= 0.8 for _, share in reported)


def test_too_many_values_to_weigh_are_named() -> None:
    t = generated(100)
    with pytest.raises(BadInput, match="too many to weigh buckets; request the test of each bucket by itself"):
        diverse_cuts._rows(t.table.quasi, t.whole, most=10)


@pytest.mark.soak
@pytest.mark.parametrize("weight", ["size", "paper"])
def test_a_large_release_is_diverse(weight: str) -> None:
    t = generated(100_000, seed=11)
    cut = t.cut(Fraction(4), weight, True, 4)
    assert keeps_diverse(t.slices(cut.class_of), t.known, Fraction(4), weight)

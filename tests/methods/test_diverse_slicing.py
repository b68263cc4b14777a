"""Diverse slicing: p(t,s) of the source's tables, against the counting of all worlds, and who can check the guarantee."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from closeknit.checks.worlds import posterior, worlds
from closeknit.core.columns import Columns
from closeknit.core.disclosure import (
    exact_disclosure,
    keeps_diverse,
    list_profiles,
    matching_buckets,
    most_alike,
    worst_disclosure,
)
from closeknit.core.kinds import flat
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.core.slices import Slices
from closeknit.core.table import Partition, Table
from closeknit.forms.sliced import Sliced
from closeknit.models.diverse_slicing import DiverseSlicing
from conftest import examples

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "streams.json").read_text())
TABLE_1 = GOLDEN["slicing_table1"]
NAMES = ("Age", "Sex", "Zipcode", "Disease")
GROUPS = {
    "1c": (("Age", "Sex", "Zipcode"), ("Disease",)),
    "1e": (("Age",), ("Sex",), ("Zipcode",), ("Disease",)),
    "1f": (("Age", "Sex"), ("Zipcode", "Disease")),
}


class Example:
    """Records in buckets, sliced: as `Slices`, and as lists for the counting of worlds. The last attribute is the secret."""

    def __init__(self, names: Sequence[str], records: Sequence[Sequence[Any]], columns: Any, buckets: Sequence[Sequence[int]]):
        at = {name: i for i, name in enumerate(names)}
        self.place = next(i for i, group in enumerate(columns) if names[-1] in group)
        self.values = sorted({record[-1] for record in records})
        profiles = [tuple(tuple(r[at[n]] for n in group if n != names[-1]) for group in columns) for r in records]
        self.profiles = profiles
        self.codes = [sorted({profile[i] for profile in profiles}) for i in range(len(columns))]
        known = [[codes.index(part) for codes, part in zip(self.codes, profile, strict=True)] for profile in profiles]
        self.known = np.array(known, np.int32)
        self.order = np.array([row for bucket in buckets for row in bucket])
        bucket_of = np.repeat(np.arange(len(buckets)), [len(bucket) for bucket in buckets]).astype(np.int32)
        secret = np.array([self.values.index(record[-1]) for record in records], np.int32)
        self.slices = Slices(bucket_of, self.known[self.order], self.place, secret[self.order])
        self.buckets = [
            [
                [(profiles[r][i], records[r][-1]) if i == self.place else profiles[r][i] for r in rows]
                for i in range(len(columns))
            ]
            for rows in buckets
        ]

    def shares(self, row: int, weight: str) -> dict[Any, Fraction]:
        found = exact_disclosure(self.slices, self.known[row], weight)
        return {self.values[value]: share for value, share in found.items()}

    def worlds(self, row: int) -> dict[Any, Fraction]:
        return posterior(self.buckets, self.place, self.profiles[row])

    def worst(self, weight: str) -> Fraction:
        level, row, value = worst_disclosure(self.slices, self.known, weight)
        exact = exact_disclosure(self.slices, self.known[row], weight)[value]
        assert level == pytest.approx(float(exact), abs=1e-12)
        assert exact == max(max(self.shares(r, weight).values()) for r in range(len(self.known)))
        return exact


def fractions(shares: dict[str, str]) -> dict[str, Fraction]:
    return {value: Fraction(share) for value, share in shares.items()}


def table_1(which: str) -> Example:
    return Example(NAMES, TABLE_1["records"], GROUPS[which], TABLE_1["buckets"])


# The source's tables and the counterexamples ----------------------------------------------------------------------------------


def test_table_1f_tuple_by_tuple() -> None:
    reported, golden = table_1("1f"), TABLE_1["1f"]
    for row, shares in enumerate(golden["p_ts"]):
        assert reported.shares(row, "size") == reported.shares(row, "paper") == reported.worlds(row) == fractions(shares)
    assert reported.shares(0, "size") == fractions(golden["D_t1_B1"])  # p(t_1, B_1) = 1, so p(t_1, s) is D(t_1, B_1)
    assert [reported.worlds(0)] * 2 == [fractions(shares) for shares in TABLE_1["worlds_t1"]]


def test_table_1f_shares_in_buckets() -> None:
    """f_1 = 1/4 and f_2 = 1/2 of t_1 in its bucket: of all ways to put it together, 1/8 of the rows look like t_1."""
    reported, golden = table_1("1f"), TABLE_1["1f"]
    known, sizes = reported.slices.known, reported.slices.sizes
    for bucket, (f1, f2) in enumerate([("f1_t1_B1", "f2_t1_B1"), ("f1_t1_B2", "f2_t1_B2")]):
        here = known[reported.slices.bucket_of == bucket]
        shares = [Fraction(int((here[:, i] == reported.known[0, i]).sum()), int(sizes[bucket])) for i in range(2)]
        assert shares == [Fraction(golden[f1]), Fraction(golden[f2])]
    every = [row for rows in worlds(reported.buckets[0]) for row in rows]
    like = [row for row in every if (row[0], row[1][0]) == reported.profiles[0]]
    assert Fraction(len(like), len(every)) == Fraction(golden["f_t1_B1"])
    assert matching_buckets(reported.slices, reported.known).tolist() == [1] * 8
    assert [i for i, p in enumerate(golden["p_t1_B"]) if p != "0"] == golden["matching_buckets_t1"]


@pytest.mark.parametrize("which", GROUPS)
def test_worst_of_table_1(which: str) -> None:
    """p = 1/2 exactly: 2-diverse by definition, although the printed test refuses it (`>=` against `>`), and no more."""
    reported = table_1(which)
    for weight in ("size", "paper"):
        assert reported.worst(weight) == Fraction(TABLE_1[which]["worst"])
        assert keeps_diverse(reported.slices, reported.known, Fraction(2), weight)
        assert not keeps_diverse(reported.slices, reported.known, Fraction(2) + Fraction(1, 10**15), weight)


def test_printed_weights_accept_what_all_worlds_refuse() -> None:
    golden = GOLDEN["slicing_counterexample_weights"]
    reported = Example(("A", "B", "S"), golden["records"], golden["columns"], golden["partition"])
    assert reported.worst("paper") == Fraction(golden["worst_paper"]) == Fraction(1, 2)
    assert reported.worst("size") == Fraction(golden["worst_size"]) == Fraction(3, 5)
    assert keeps_diverse(reported.slices, reported.known, Fraction(golden["l"]), "paper")
    assert not keeps_diverse(reported.slices, reported.known, Fraction(golden["l"]), "size")
    assert reported.worlds(0) == reported.shares(0, "size") == fractions(golden["worlds"][0])
    assert reported.worlds(0) != reported.shares(0, "paper")


@pytest.mark.parametrize("buckets", [[[0, 1, 2, 3]], [[0, 1], [2, 3]], [[0, 3], [1, 2]]])
def test_a_unique_value_next_to_the_secret_discloses_it(buckets: list[list[int]]) -> None:
    golden = GOLDEN["slicing_counterexample_unique_qi_with_s"]
    reported = Example(("A", "Z", "S"), golden["records"], [["A"], ["Z", "S"]], buckets)
    assert reported.worst("size") == reported.worst("paper") == Fraction(golden["worst"]) == 1


def test_columns_of_the_clustering_disclose_everything() -> None:
    """Correlation puts age, zip code and disease together: everyone's disease is then disclosed."""
    columns = list(TABLE_1["pam2"]["columns"].values())
    reported = Example(NAMES, TABLE_1["records"], columns, [list(range(8))])
    assert reported.worst("size") == Fraction(TABLE_1["pam2"]["worst_with_these_columns_one_bucket"])


# Generated releases --------------------------------------------------------------------------------------------------------


@st.composite
def releases(draw: st.DrawFn, equal: bool = False) -> Slices:
    """Tiny ones: up to three buckets of up to three rows, up to three column groups."""
    size = draw(st.integers(1, 3))
    sizes = [size] * draw(st.integers(1, 3)) if equal else draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    n, width = sum(sizes), draw(st.integers(1, 3))
    cells = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    known = np.array([draw(cells) for _ in range(width)], np.int32).T.copy()
    secret = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), np.int32)
    bucket_of = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    return Slices(bucket_of, known, draw(st.integers(0, width - 1)), secret)


def counted(slices: Slices, profile: Sequence[int]) -> dict[int, Fraction]:
    """The posterior by all worlds."""
    buckets = []
    for bucket in range(len(slices.sizes)):
        rows = np.flatnonzero(slices.bucket_of == bucket)
        cells = [slices.known[rows, i].tolist() for i in range(slices.known.shape[1])]
        cells[slices.place] = list(zip(cells[slices.place], slices.secret[rows].tolist(), strict=True))
        buckets.append(cells)
    return {int(value): share for value, share in posterior(buckets, slices.place, tuple(profile)).items()}


def worst_counted(slices: Slices, weight: str) -> Fraction:
    return max(max(exact_disclosure(slices, profile, weight).values()) for profile in slices.known)


def alone(slices: Slices) -> Fraction:
    """The largest share of a value in a bucket, given one known part."""
    cells = zip(slices.bucket_of.tolist(), slices.known[:, slices.place].tolist(), slices.secret.tolist(), strict=True)
    seen: dict[tuple[int, int], list[int]] = {}
    for bucket, part, value in cells:
        seen.setdefault((bucket, part), []).append(value)
    return max(Fraction(max(map(values.count, values)), len(values)) for values in seen.values())


@given(releases())
@settings(max_examples=examples(60))
def test_size_is_the_counting_of_all_worlds(slices: Slices) -> None:
    """For every tuple, and for every other profile that might be looked up."""
    for profile in product((0, 1), repeat=slices.known.shape[1]):
        found = exact_disclosure(slices, np.array(profile, np.int32), "size")
        assert found == counted(slices, profile)
        assert sum(found.values()) == (1 if found else 0)


@given(releases(equal=True))
@settings(max_examples=examples(40))
def test_printed_weights_are_right_for_equal_buckets(slices: Slices) -> None:
    for profile in slices.known:
        assert exact_disclosure(slices, profile, "paper") == counted(slices, profile.tolist())


@given(releases(), st.sampled_from(["size", "paper"]), st.sampled_from([0, 1, -1]))
@settings(max_examples=examples(100))
def test_decisions_are_exact(slices: Slices, weight: str, off: int) -> None:
    """Also a quadrillionth from the limit, where a float says the same of both."""
    worst = worst_counted(slices, weight)
    level, row, value = worst_disclosure(slices, slices.known, weight)
    assert abs(level - float(worst)) < 1e-12
    assert exact_disclosure(slices, slices.known[row], weight)[value] == worst
    assert keeps_diverse(slices, slices.known, 1 / worst + Fraction(off, 10**15), weight) is (off <= 0)


@given(releases(), st.sampled_from(["size", "paper"]))
@settings(max_examples=examples(100))
def test_each_bucket_by_itself_is_enough(slices: Slices, weight: str) -> None:
    assert worst_counted(slices, weight) <= alone(slices)
    assert keeps_diverse(slices, slices.known, 1 / alone(slices), weight)


@given(releases(), st.data())
@settings(max_examples=examples(60))
def test_a_union_of_diverse_buckets_is_diverse(slices: Slices, data: st.DataObject) -> None:
    into = data.draw(st.lists(st.integers(0, 1), min_size=len(slices.sizes), max_size=len(slices.sizes)))
    merged = np.array(into)[slices.bucket_of]
    joined = replace(slices, bucket_of=np.unique(merged, return_inverse=True)[1].astype(np.int32))
    assert alone(joined) <= alone(slices)


@given(releases(), st.sampled_from(["size", "paper"]), st.randoms(use_true_random=False))
@settings(max_examples=examples(40))
def test_numbers_of_buckets_and_order_inside_disclose_nothing(slices: Slices, weight: str, random: Any) -> None:
    """p(t,B) needs the sum over all buckets first; a single pass through them would depend on their order."""
    names = list(range(len(slices.sizes)))
    random.shuffle(names)
    order = list(range(len(slices.secret)))
    random.shuffle(order)
    other = Slices(np.array(names, np.int32)[slices.bucket_of][order], slices.known[order], slices.place, slices.secret[order])
    for profile in slices.known:
        assert exact_disclosure(slices, profile, weight) == exact_disclosure(other, profile, weight)
    assert worst_disclosure(slices, slices.known, weight)[0] == pytest.approx(
        worst_disclosure(other, other.known, weight)[0], abs=1e-12
    )


@given(releases())
@settings(max_examples=examples(60))
def test_admitted_profiles_are_those_that_fit_somewhere(slices: Slices) -> None:
    profiles = list_profiles(slices, 1000)
    assert profiles is not None
    every = np.array(list(product((0, 1), repeat=slices.known.shape[1])), np.int32)
    fitting = every[matching_buckets(slices, every) > 0]
    assert sorted(profiles.tolist()) == fitting.tolist()
    assert list_profiles(slices, 0) is None


@given(releases(), st.integers(0, 8))
@settings(max_examples=examples(40))
def test_suppressed_secrets_are_no_candidates(slices: Slices, row: int) -> None:
    """They count in the size of the bucket and for nothing else; each bucket by itself is still enough."""
    assume(row < len(slices.secret))
    secret = slices.secret.copy()
    secret[row] = -1
    some = replace(slices, secret=secret)
    for profile in some.known:
        shares = exact_disclosure(some, profile, "size")
        assert -1 not in shares and sum(shares.values()) == (1 if shares else 0)
    none = replace(slices, secret=np.full_like(secret, -1))
    assert worst_disclosure(none, none.known, "size") == (0.0, -1, -1)
    assert keeps_diverse(none, none.known, Fraction(99), "size")


def test_what_does_not_occur_fits_nowhere() -> None:
    reported = table_1("1f")
    assert exact_disclosure(reported.slices, np.array([99, 0], np.int32), "size") == {}
    assert worst_disclosure(reported.slices, np.array([[99, 0]], np.int32), "size") == (0.0, -1, -1)


def test_products_that_vanish_in_a_float_are_left_to_rationals() -> None:
    """Seventy groups of values that are all different: 5000^-69 is no float, and still p(t,s) is computed."""
    n, width = 5000, 70
    known = np.repeat(np.arange(n, dtype=np.int32)[:, None], width, axis=1)
    known[:, 0] = 0
    bucket_of = (np.arange(n) >= n - 1).astype(np.int32)
    known[-1] = known[0]  # the first row fits into both buckets; in the second it is certain
    slices = Slices(bucket_of, known, 0, (np.arange(n) % 5).astype(np.int32))
    level, row, value = worst_disclosure(slices, known[:1], "size")
    exact = exact_disclosure(slices, known[0], "size")
    assert (row, value) == (0, 4) and level == float(max(exact.values())) and 1 - exact[4] < Fraction(1, 10**200)
    assert not keeps_diverse(slices, known[:1], Fraction(1) + Fraction(1, 10**30), "size")
    assert keeps_diverse(slices, known[:1], Fraction(1), "size")


def test_most_alike_is_exact_for_long_fractions() -> None:
    l = Fraction(10**30 + 1, 10**30)
    assert most_alike(3, l).tolist() == [0, 0, 1, 2]
    assert most_alike(6, Fraction(3)).tolist() == [0, 0, 0, 1, 1, 1, 2]


# The model: who can check --------------------------------------------------------------------------------------------------


def written(records: Sequence[Sequence[Any]], names: Sequence[str], columns: Any, buckets: Any) -> tuple[Reading, np.ndarray]:
    """A release in the form `sliced`, read back, and what is known of the original rows, in the codes of the reading."""
    schema = Schema(quasi={name: flat() for name in names[:-1]}, sensitive={names[-1]: flat()})
    cells = {name: [str(record[i]) for record in records] for i, name in enumerate(names)}
    table: Table = schema.encode(Columns.of(cells))
    bucket_of = np.empty(len(records), np.int32)
    for number, rows in enumerate(buckets):
        bucket_of[list(rows)] = number
    form = Sliced(columns)
    reading = form.read(form.write(table, Partition.of(bucket_of[table.rows])).columns, schema)
    slices, reported = reading.slices(names[-1]), []
    for record in records:
        parts = []
        for i, group in enumerate(columns):
            same = np.ones(len(records), dtype=bool)
            for name in (name for name in group if name != names[-1]):
                same &= np.array([str(cell) for cell in reading.columns[name].cells()]) == str(record[names.index(name)])
            parts.append(slices.known[np.argmax(same), i])
        reported.append(parts)
    return reading, np.array(reported, np.int32)


def weights_example() -> tuple[Reading, np.ndarray]:
    golden = GOLDEN["slicing_counterexample_weights"]
    return written(golden["records"], ("A", "B", "S"), golden["columns"], golden["partition"])


def test_local_is_recomputable() -> None:
    reading, originals = written(TABLE_1["records"], NAMES, GROUPS["1f"], TABLE_1["buckets"])
    model = DiverseSlicing("Disease", 2)
    for known in (originals, None):
        found = model.judge_release(reading, known)
        assert (found.held, found.level, found.exact, found.status) == (True, 2.0, Fraction(2), "recomputable")
    assert not DiverseSlicing("Disease", "2.0000000001").judge_release(reading, None).held
    assert model.holds(reading.of("Disease").classes).all() and model.requested == ">= 2"


def test_weighed_is_attested_by_the_data_owner() -> None:
    reading, originals = weights_example()
    paper = DiverseSlicing("S", 2, "paper").judge_release(reading, originals)
    assert (paper.held, paper.exact, paper.status) == (True, Fraction(2), "attested")
    size = DiverseSlicing("S", 2, "size").judge_release(reading, originals)
    assert (size.held, size.exact, size.status) == (False, Fraction(5, 3), "attested")
    assert DiverseSlicing("S", "5/3", "size").judge_release(reading, originals).held
    assert not DiverseSlicing("S", 2).judge_release(reading, originals).held  # the release is the table in clear


def test_a_recipient_bounds_what_they_can() -> None:
    """Each bucket by itself, else over all profiles that the buckets admit, else nothing is said."""
    reading, _ = written(TABLE_1["records"], NAMES, GROUPS["1f"], TABLE_1["buckets"])
    found = DiverseSlicing("Disease", 2, "size").judge_release(reading, None)
    assert (found.held, found.level, found.status) == (True, 2.0, "recomputable")
    reading, _ = weights_example()
    found = DiverseSlicing("S", "5/3", "size").judge_release(reading, None)
    assert (found.held, found.exact, found.status) == (True, Fraction(5, 3), "recomputable")
    found = DiverseSlicing("S", 2, "size").judge_release(reading, None)
    assert (found.held, found.level, found.status) == (False, None, "not checkable")
    assert found.why and "exists" in found.why


def test_profiles_that_no_one_has_can_mislead_an_adversary() -> None:
    """(0, 1) fits into the last bucket alone, where it would be certain; no row is (0, 1), so the guarantee is met."""
    records = [(0, 0, "a"), (0, 0, "b"), (1, 1, "a"), (1, 1, "b"), (0, 0, "a"), (1, 1, "a")]
    reading, originals = written(records, ("A", "B", "S"), (("A",), ("B",), ("S",)), [[0, 1], [2, 3], [4, 5]])
    for weight in ("size", "paper"):
        model = DiverseSlicing("S", "10/9", weight)
        owner, recipient = model.judge_release(reading, originals), model.judge_release(reading, None)
        assert owner.held and owner.status == "attested"
        assert not recipient.held and recipient.status == "not checkable"


class OneProfile(DiverseSlicing):
    """An audit that looks at one profile only."""

    most_profiles = 1


def test_too_many_profiles_are_not_counted() -> None:
    reading, _ = written(TABLE_1["records"], NAMES, GROUPS["1f"], TABLE_1["buckets"])
    assert OneProfile("Disease", 2, "size").judge_release(reading, None).held  # nor need they be: each bucket is enough
    reading, originals = weights_example()
    found = OneProfile("S", "5/3", "size").judge_release(reading, None)
    assert (found.held, found.status) == (False, "not checkable") and found.why and "more than 1 profiles" in found.why
    assert OneProfile("S", "5/3", "size").judge_release(reading, originals).held

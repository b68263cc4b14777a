"""Which attributes stand together in a sliced release: discretization, correlation, medoids, the columns of a table."""

from __future__ import annotations

import csv
import gzip
import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.domain import Domain
from closeknit.core.table import Table
from closeknit.plans import attribute_partition as partition
from closeknit.plans.attribute_partition import attribute_partition, best_medoids, build_medoids, choose_columns
from closeknit.plans.correlation import HOW, correlations, discretize, has_too_many, kmeans, mean_square_contingency
from conftest import examples

Phi2 = np.ndarray[Any, np.dtype[np.float64]]


def numbers(values: Sequence[float]) -> tuple[np.ndarray[Any, np.dtype[np.int32]], Domain]:
    """Codes and domain of a numeric column; None is missing."""
    known = sorted({value for value in values if value is not None})
    domain = Domain(tuple(map(str, known)), numbers=np.array(known, dtype=np.float64))
    return np.array([len(known) if v is None else known.index(v) for v in values], dtype=np.int32), domain


def naive_phi2(a: Sequence[int], b: Sequence[int], corrected: bool) -> Fraction:
    """The definition with fractions, over all pairs of observed values, also of those that never meet."""
    n, of_a, of_b, both = len(a), Counter(a), Counter(b), Counter(zip(a, b, strict=True))
    if min(len(of_a), len(of_b)) < 2:
        return Fraction(0)
    x = Fraction(0)
    for i, j in itertools.product(of_a, of_b):
        expected = Fraction(of_a[i] * of_b[j], n * n)
        x += (Fraction(both[i, j], n) - expected) ** 2 / expected
    if not corrected:
        return x / (min(len(of_a), len(of_b)) - 1)
    da, db = (d - Fraction((d - 1) ** 2, n - 1) for d in (len(of_a), len(of_b)))
    x = max(Fraction(0), x - Fraction((len(of_a) - 1) * (len(of_b) - 1), n - 1))
    return x / (min(da, db) - 1) if min(da, db) > 1 else Fraction(0)


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), min_size=1, max_size=30), st.booleans())
def test_phi2_is_its_definition(pairs: list[tuple[int, int]], corrected: bool) -> None:
    a, b = (np.array(column, dtype=np.int32) for column in zip(*pairs, strict=True))
    found = mean_square_contingency(a, b, corrected)
    assert found == pytest.approx(float(naive_phi2(a.tolist(), b.tolist(), corrected)), abs=1e-12)
    assert found == mean_square_contingency(b, a, corrected), "not even the last digit may depend on the order"
    assert 0 <= found <= 1


def test_a_large_sparse_table_of_pairs_gives_the_same() -> None:
    rng = np.random.default_rng(5)
    a = rng.integers(0, 400, 3000).astype(np.int32)
    b = np.where(rng.random(3000) < 0.5, a % 300, rng.integers(0, 300, 3000)).astype(np.int32)
    sparse = mean_square_contingency(a, b)
    assert sparse == pytest.approx(float(naive_phi2(a.tolist(), b.tolist(), True)))
    assert sparse == mean_square_contingency(a, b, few=1 << 20)


def test_chance_is_taken_off() -> None:
    rng = np.random.default_rng(1)
    row_number, secret = np.arange(1000, dtype=np.int32), rng.integers(0, 5, 1000).astype(np.int32)
    assert mean_square_contingency(row_number, secret, corrected=False) == pytest.approx(1)
    assert mean_square_contingency(row_number, secret) == 0
    many = rng.integers(0, 300, 1000).astype(np.int32)
    assert mean_square_contingency(many, secret, corrected=False) > 0.25
    assert mean_square_contingency(many, secret) < 0.03
    assert mean_square_contingency(secret, (secret + 1) % 5) == pytest.approx(1), "what is no chance stays"


def test_one_value_says_nothing_and_too_many_begin_above_a_tenth() -> None:
    constant, other = np.zeros(4, dtype=np.int32), np.arange(4, dtype=np.int32)
    assert correlations([constant, other, constant]).tolist() == np.eye(3).tolist()
    assert mean_square_contingency(constant[:1], other[:1]) == 0
    assert not has_too_many(np.arange(100, dtype=np.int32) % 10) and has_too_many(np.arange(109, dtype=np.int32) % 11)


@settings(max_examples=examples(100))
@given(st.lists(st.none() | st.integers(-1000, 1000), min_size=1, max_size=80), st.integers(2, 12), st.sampled_from(HOW))
def test_bins_keep_the_order_and_equal_values_together(values: list[Any], bins: int, how: str) -> None:
    codes, domain = numbers(values)
    found = discretize(codes, domain, bins, how)
    assert sorted(set(found.tolist())) == list(range(found.max() + 1)), "bins are numbered without gaps"
    known = codes < domain.size
    order = np.argsort(codes[known], kind="stable")
    assert (np.diff(found[known][order]) >= 0).all()
    assert len(set(zip(codes.tolist(), found.tolist(), strict=True))) == len(set(codes.tolist()))
    assert len(set(found[known].tolist())) <= max(bins, 0 if domain.size > bins else domain.size)
    assert not set(found[known].tolist()) & set(found[~known].tolist()), "missing is a value of its own"
    if domain.size <= bins:
        assert len(set(found.tolist())) == len(set(codes.tolist())), "few values stay as they are"


def test_what_has_no_order_stays_as_it_is() -> None:
    codes = np.arange(50, dtype=np.int32)
    for domain in (Domain(tuple(map(str, range(50)))), ck.flat().bind(np.array([f"{i:02}" for i in range(50)]))[0]):
        assert [discretize(codes, domain, 10, how).tolist() for how in HOW] == [codes.tolist()] * 3


def test_bins_of_equal_rows_and_of_equal_width() -> None:
    rng = np.random.default_rng(2)
    codes, domain = numbers(np.exp(rng.normal(size=1000)).tolist())
    assert np.bincount(discretize(codes, domain, 10, "frequency")).tolist() == [100] * 10
    widths = np.bincount(discretize(codes, domain, 10, "width"))
    assert widths[0] > 500, "equal width fails on skew"
    assert discretize(*numbers([0] * 4 + [1] * 5 + [2]), 2).tolist() == [0] * 4 + [1] * 6, "where its middle row is"
    assert [discretize(*numbers([0, 1, 100]), 3, how).tolist() for how in HOW] == [[0, 1, 2]] * 3, "as many values as bins"
    assert discretize(*numbers([0, 1, 2.5, 4.9, 5, 9.99, 10, None]), 2, "width").tolist() == [0, 0, 0, 0, 1, 1, 1, 2]


def test_unknown_ways_and_bins_are_refused() -> None:
    for bins, how, sentence in ((2, "depth", "how='depth' is unknown"), (1, "width", "bins=1 is too small")):
        with pytest.raises(ck.BadInput, match=sentence):
            discretize(*numbers([1, 2, 3]), bins, how)


def means(values: Sequence[float], counts: Sequence[int], bins: Sequence[int]) -> list[float]:
    """Exact mean of each bin."""
    rows, sums = Counter[int](), dict.fromkeys(sorted(bins), Fraction(0))
    for value, count, b in zip(values, counts, bins, strict=True):
        rows[b] += count
        sums[b] += Fraction(value) * count
    return [float(total / rows[b]) for b, total in sums.items()]


def spread(values: Sequence[float], counts: Sequence[int], bins: Sequence[int]) -> float:
    centres = means(values, counts, bins)
    return sum(n * (x - centres[b]) ** 2 for x, n, b in zip(values, counts, bins, strict=True))


def best_spread(values: Sequence[float], counts: Sequence[int], k: int) -> float:
    """Of all ways to cut the sorted values into k runs."""
    cuts = itertools.combinations(range(1, len(values)), k - 1)
    return min(spread(values, counts, np.searchsorted(cut, range(len(values)), side="right").tolist()) for cut in cuts)


weighted = st.dictionaries(st.integers(-100, 100), st.integers(1, 9), min_size=1, max_size=9)


@settings(max_examples=examples(100))
@given(weighted, st.integers(1, 6))
def test_kmeans_ends_where_nothing_moves(found: dict[int, int], k: int) -> None:
    values, counts = sorted(found), [found[value] for value in sorted(found)]
    bins = kmeans(np.array(values, dtype=np.float64), np.array(counts), k).tolist()
    assert bins == sorted(bins)
    assert set(bins) == set(range(min(k, len(values)))), "no bin is empty; fewer values than bins have one each"
    centres = means(values, counts, bins)
    for value, b in zip(values, bins, strict=True):
        assert abs(value - centres[b]) <= min(abs(value - c) for c in centres) + 1e-9, "cut at the midpoints of the centres"
    assert spread(values, counts, bins) >= best_spread(values, counts, min(k, len(values))) - 1e-9


def test_kmeans_is_mostly_the_best() -> None:
    rng, best = np.random.default_rng(6), 0
    for _ in range(60):
        values, counts = np.sort(rng.choice(200, 10, replace=False)) ** 2.0, rng.integers(1, 20, 10)
        bins = kmeans(values, counts, 4).tolist()
        best += spread(values, counts, bins) <= best_spread(values, counts, 4) * (1 + 1e-9)
    assert best >= 40


def test_kmeans_finds_clear_clusters_and_iterates_until_nothing_moves() -> None:
    rng = np.random.default_rng(3)
    middles, sizes = [0.0, 30, 100, 1000], [900, 5, 60, 3]
    values = np.concatenate([middle + rng.random(size) for middle, size in zip(middles, sizes, strict=True)])
    assert discretize(*numbers(values.tolist()), 4, "kmeans").tolist() == np.repeat(range(4), sizes).tolist()
    skewed, ones = np.sort(np.exp(rng.normal(size=500))), np.ones(500, dtype=np.int64)
    bins = kmeans(skewed, ones, 10)
    centres = np.array(means(skewed.tolist(), ones.tolist(), bins.tolist()))
    assert (np.searchsorted((centres[1:] + centres[:-1]) / 2, skewed) == bins).all()


def test_the_largest_numbers_are_numbers() -> None:
    codes, domain = numbers([-1e300, -0.9e300, 0, 1, 1e300])
    assert discretize(codes, domain, 3, "kmeans").tolist() == [0, 0, 1, 1, 2]
    assert discretize(codes, domain, 2, "width").tolist() == [0, 0, 1, 1, 1]
    assert discretize(*numbers([-1e300, 0, 1, 2, 1e300]), 4, "kmeans").max() == 3, "not even then is a bin empty"


NAMES = ["Age", "Sex", "Zipcode", "Disease"]
TABLE_1 = [
    (22, "M", 47906, "Dyspepsia"),
    (22, "F", 47906, "Flu"),
    (33, "F", 47905, "Flu"),
    (52, "F", 47905, "Bronchitis"),
    (54, "M", 47302, "Flu"),
    (60, "M", 47302, "Dyspepsia"),
    (60, "M", 47304, "Dyspepsia"),
    (64, "F", 47304, "Gastritis"),
]


def test_age_and_zip_code_are_attached_to_the_disease_as_printed_and_not_here() -> None:
    columns = [np.unique(column, return_inverse=True)[1] for column in zip(*TABLE_1, strict=True)]
    assert attribute_partition(NAMES, correlations(columns, corrected=False), 2) == [["Age", "Zipcode", "Disease"], ["Sex"]]
    quasi = {"Age": ck.numeric(), "Sex": ck.flat(), "Zipcode": ck.flat()}
    cells = {name: [str(row[i]) for row in TABLE_1] for i, name in enumerate(NAMES)}
    table = ck.Schema(quasi=quasi, sensitive={"Disease": ck.flat()}).encode(Columns.of(cells))
    for count in (None, 2, 3, 4):
        assert choose_columns(table, count)[-1] == ["Disease"]
    with pytest.raises(ck.BadInput, match=r"it must be at most 0: the others .* have more values than a tenth"):
        choose_columns(table, 2, attached=1)


@st.composite
def correlated(draw: st.DrawFn, most: int = 7) -> Phi2:
    """A symmetric matrix with many ties."""
    d = draw(st.integers(1, most))
    cells = draw(st.lists(st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]), min_size=d * d, max_size=d * d))
    half = np.triu(np.array(cells).reshape(d, d), 1)
    return half + half.T + np.eye(d)


def distance(phi2: Phi2) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.rint((1 - phi2) * 100).astype(np.int64)


def price(d: np.ndarray[Any, np.dtype[np.int64]], medoids: Sequence[int]) -> int:
    return sum(min(int(d[i, m]) for m in medoids) for i in range(len(d)))


@settings(max_examples=examples(100))
@given(correlated(), st.data())
def test_best_medoids_are_the_first_of_the_cheapest(phi2: Phi2, data: st.DataObject) -> None:
    d, count = distance(phi2), data.draw(st.integers(1, len(phi2)))
    naive = min(itertools.combinations(range(len(d)), count), key=lambda medoids: price(d, medoids))
    assert best_medoids(d, count).tolist() == list(naive)


@settings(max_examples=examples(100))
@given(correlated(), st.data())
def test_built_medoids_cannot_be_bettered_by_one_exchange(phi2: Phi2, data: st.DataObject) -> None:
    d, count = distance(phi2), data.draw(st.integers(1, len(phi2)))
    found = build_medoids(d, count).tolist()
    assert sorted(set(found)) == found and len(found) == count
    assert (measured := price(d, found)) >= price(d, best_medoids(d, count).tolist())
    others = [m for m in range(len(d)) if m not in found]
    assert all(measured <= price(d, [*found[:i], other, *found[i + 1 :]]) for i in range(count) for other in others)


def test_built_medoids_are_mostly_the_best() -> None:
    equal = 0
    for seed in range(60):
        half = np.triu(np.random.default_rng(seed).random((9, 9)) ** 3, 1)
        d, count = distance(half + half.T + np.eye(9)), 2 + seed % 6
        equal += price(d, build_medoids(d, count).tolist()) == price(d, best_medoids(d, count).tolist())
    assert equal >= 50


@settings(max_examples=examples(80))
@given(correlated(), st.booleans(), st.data())
def test_columns_do_not_depend_on_the_order_of_attributes(phi2: Phi2, built: bool, data: st.DataObject) -> None:
    names = [f"a{i}" for i in range(len(phi2))]
    count = data.draw(st.integers(1, len(phi2)))
    order = data.draw(st.permutations(range(len(phi2))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "WORK", 0 if built else partition.WORK)
        found = attribute_partition(names, phi2, count)
        moved = attribute_partition([names[i] for i in order], phi2[np.ix_(order, order)], count)
    assert {frozenset(column) for column in found} == {frozenset(column) for column in moved}
    assert sorted(itertools.chain(*found)) == names and len(found) == count and all(found)
    place = {name: i for i, name in enumerate(names[i] for i in order)}
    assert [[place[name] for name in column] for column in moved] == sorted(sorted(place[n] for n in c) for c in moved)


def test_few_attributes_by_all_sets_of_medoids_and_many_by_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(partition, "build_medoids", lambda *_: pytest.fail("few enough to try all"))
        assert [len(attribute_partition([*"abcdefghijklmno"], np.eye(15), c)) for c in range(1, 16)] == [*range(1, 16)]
    rng = np.random.default_rng(8)
    hidden = rng.integers(0, 4, (8, 2000))
    columns = [np.where(rng.random(2000) < 0.1, rng.integers(0, 4, 2000), hidden[i % 8]).astype(np.int32) for i in range(48)]
    monkeypatch.setattr(partition, "best_medoids", lambda *_: pytest.fail("too many sets of medoids to try them all"))
    found = attribute_partition([f"a{i:02}" for i in range(48)], correlations(columns), 8)
    assert found == [[f"a{i:02}" for i in range(first, 48, 8)] for first in range(8)]


def test_more_columns_than_attributes_are_refused() -> None:
    with pytest.raises(ck.BadInput, match="3 columns cannot be made of 2 attributes; ask for at most 2"):
        attribute_partition(["a", "b"], np.eye(2), 3)
    with pytest.raises(ck.BadInput, match="how='depth' is unknown"):
        choose_columns(made("ab", "ab"), how="depth")


def made(quasi: str, sensitive: str, seed: int = 0, rows: int = 300) -> Table:
    """Columns a..f in pairs that say much of each other (ab, cd, ef), a number r of its own, i that identifies rows."""
    rng = np.random.default_rng(seed)
    cells: dict[str, Any] = {}
    for pair in ("ab", "cd", "ef"):
        value = rng.integers(0, 6, rows)
        cells[pair[0]] = value
        cells[pair[1]] = np.where(rng.random(rows) < 0.2, rng.integers(0, 6, rows), value)
    cells |= {"r": rng.normal(size=rows).round(1), "i": rng.permutation(rows)}
    names = dict.fromkeys(quasi + sensitive)
    kinds = {name: ck.numeric() if name in "ri" else ck.flat() for name in names}
    schema = ck.Schema(quasi={n: kinds[n] for n in quasi}, sensitive={n: kinds[n] for n in sensitive})
    return schema.encode(Columns.of({name: cells[name].tolist() for name in names}))


@pytest.mark.parametrize("how", HOW)
def test_pairs_find_each_other(how: str) -> None:
    assert choose_columns(made("abcdr", "ef"), 4, 0, how) == [["a", "b"], ["c", "d"], ["r"], ["e", "f"]]
    assert choose_columns(made("rdcba", "e"), 4, 0, how) == [["r"], ["d", "c"], ["b", "a"], ["e"]]


def test_attached_takes_the_most_correlated_but_nothing_like_an_id() -> None:
    table = made("abcdfri", "e")
    assert choose_columns(table, 4, attached=1)[-1] == ["f", "e"]
    for attached in range(1, 6):
        last = choose_columns(table, attached=attached)[-1]
        assert last[-1] == "e" and len(last) == attached + 1 and not {"i", "r"} & set(last)
    with pytest.raises(ck.BadInput, match="attached=6 quasi-identifiers cannot join 'e'; it must be at most 5"):
        choose_columns(table, 2, attached=6)


def test_what_is_quasi_and_sensitive_stands_alone() -> None:
    assert choose_columns(made("abcdf", "be"), 5) == [["a"], ["b"], ["c", "d"], ["f"], ["e"]]
    assert choose_columns(made("abcd", "ab"), 3) == [["a"], ["b"], ["c", "d"]]
    assert choose_columns(made("ab", "ab")) == [["a"], ["b"]]
    with pytest.raises(ck.BadInput, match="attached must be 0"):
        choose_columns(made("abcd", "ab"), 3, attached=1)


def test_default_number_of_columns() -> None:
    for quasi, sensitive, expected in (
        ("a", "e", 2),
        ("ab", "e", 3),
        ("abcd", "e", 3),
        ("abcdr", "ef", 4),
        ("ab", "", 2),
        ("abcdr", "", 3),
        ("abcd", "af", 4),
        ("", "ef", 1),
    ):
        assert len(choose_columns(made(quasi, sensitive))) == expected, (quasi, sensitive)


@pytest.mark.parametrize(
    ("quasi", "sensitive", "count", "attached", "sentence"),
    [
        ("abcd", "e", 1, 0, "one column is the table in clear; columns must be at least 2"),
        ("abcd", "e", 0, 0, "columns=0 is too small"),
        ("abcd", "e", "two", 0, "columns='two' is not a whole number"),
        ("abcd", "e", 6, 0, "columns=6 is more than this table can be given; it must lie between 2 and 5"),
        ("abcd", "e", 5, 1, "columns=5 is more than this table can be given; it must lie between 2 and 4"),
        ("abcd", "bce", 3, 0, "columns=3 is less than this table can be given; it must lie between 4 and 5"),
        ("ab", "ab", 3, 0, "columns=3 is more than this table can be given; it must be 2"),
        ("a", "", None, 0, "all attributes would be in one column"),
        ("a", "e", 2, 1, "all attributes would be in one column, .*; at least one quasi-identifier must be in another column"),
        ("", "e", 2, 0, "all attributes would be in one column"),
        ("abcd", "e", 3, -1, "attached=-1 is too small"),
    ],
)
def test_what_cannot_be_is_refused(quasi: str, sensitive: str, count: Any, attached: int, sentence: str) -> None:
    with pytest.raises(ck.BadInput, match=sentence):
        choose_columns(made(quasi, sensitive), count, attached)


@settings(max_examples=examples(20))
@given(st.permutations("abcdr"), st.data(), st.integers(0, 3), st.sampled_from(HOW))
def test_order_of_the_schema_does_not_change_columns(order: list[str], data: st.DataObject, attached: int, how: str) -> None:
    count = data.draw(st.integers(2, 6 - attached))
    found = choose_columns(made("".join(order), "e"), count, attached, how)
    usual = choose_columns(made("abcdr", "e"), count, attached, how)
    assert {frozenset(column) for column in found} == {frozenset(column) for column in usual}
    assert sorted(itertools.chain(*found)) == sorted("abcdre") and len(found) == count


NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


@pytest.fixture(scope="module")
def adult(data_folder: Path) -> dict[str, list[Any]]:
    with gzip.open(data_folder / "adult" / "adult.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if "?" not in row.values()]
    assert len(rows) == 45_222
    return {name: [int(row[name]) if name in NUMERIC else row[name] for row in rows] for name in rows[0]}


def encoded(adult: dict[str, list[Any]], quasi: Sequence[str], sensitive: Sequence[str]) -> Table:
    kinds = {name: ck.numeric() if name in NUMERIC else ck.flat() for name in adult}
    schema = ck.Schema(quasi={n: kinds[n] for n in quasi}, sensitive={n: kinds[n] for n in sensitive})
    return schema.encode(Columns.of({name: adult[name] for name in [*quasi, *sensitive]}))


@pytest.mark.parametrize("how", HOW)
def test_printed_columns_of_occ_7(how: str, adult: dict[str, list[Any]]) -> None:
    quasi = ["age", "workclass", "education", "marital-status", "race", "sex"]
    found = choose_columns(encoded(adult, quasi, ["occupation"]), 5, 0, how)
    assert found == [["age", "marital-status", "sex"], ["workclass"], ["education"], ["race"], ["occupation"]]


@pytest.mark.parametrize("how", ["width", "kmeans"])
def test_three_of_the_five_printed_columns_of_occ_15(how: str, adult: dict[str, list[Any]]) -> None:
    found = choose_columns(encoded(adult, list(adult), []), 5, 0, how)
    for column in (["marital-status", "occupation", "relationship", "sex"], ["race", "native-country"], ["fnlwgt"]):
        assert column in found
    assert ["education", "education-num"] in found, "printed next to the salary, though one says all of the other"
    assert len(choose_columns(encoded(adult, [n for n in adult if n != "occupation"], ["occupation"]))) == 5

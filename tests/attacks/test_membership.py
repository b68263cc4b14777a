"""Membership: fakes, matching buckets and what they disclose, against dictionaries and sets; and buckets that spread values."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import closeknit as ck
from closeknit.attacks import Membership, membership, membership_of
from closeknit.core.columns import Columns
from closeknit.core.table import Partition
from closeknit.fills import spreading
from closeknit.fills.spreading import spread_buckets
from closeknit.kernels.slicing.fakes import WORD, fitting, index_buckets
from conftest import examples

Int32 = NDArray[np.int32]
TABLE_1 = json.loads((Path(__file__).parents[1] / "golden" / "streams.json").read_text())["slicing_table1"]
COLUMNS = {
    "1c": [["Age", "Sex", "Zipcode"], ["Disease"]],
    "1e": [["Age"], ["Sex"], ["Zipcode"], ["Disease"]],
    "1f": [["Age", "Sex"], ["Zipcode", "Disease"]],
}


# The paper's table -------------------------------------------------------------------------------------------------------


def coded(columns: list[list[str]], hidden: str | None = None) -> Int32:
    """The rows of Table 1 as one code for each column group, without the hidden attribute."""
    codes = []
    for column in columns:
        at = [TABLE_1["attributes"].index(name) for name in column if name != hidden]
        cells = [tuple(record[i] for i in at) for record in TABLE_1["records"]]
        known = {cell: code for code, cell in enumerate(sorted(set(cells)))}
        codes.append([known[cell] for cell in cells])
    return np.array(codes, np.int32).T.copy()


def table_1(form: str, **more: Any) -> Membership:
    bucket_of = np.zeros(8, np.int32)
    bucket_of[TABLE_1["buckets"][1]] = 1
    values, known = coded(COLUMNS[form]), coded(COLUMNS[form], "Disease")
    written = values.copy()  # no row lines up with another: the columns of each bucket stand in an order of their own
    for rows, j in itertools.product(TABLE_1["buckets"], range(values.shape[1])):
        turned = np.roll(rows, j)
        written[rows, j], known[rows, j] = written[turned, j], known[turned, j]
    return membership(bucket_of, written, values, known, **more)


@pytest.mark.parametrize("form", list(COLUMNS))
def test_fakes_of_table_1(form: str) -> None:
    found = table_1(form)
    assert found.fakes.count == TABLE_1[form]["fake_tuples"] and found.fakes.error is None
    assert found.bound == TABLE_1[form]["fake_upper_bound"]
    assert found.quasi is not None and found.quasi.count == TABLE_1["fake_qi"][form]


def test_an_upper_bound_is_not_a_count() -> None:
    """The source's k^c - k forgets equal values inside a bucket and tuples that two buckets share."""
    found = table_1("1f")
    assert (found.fakes.count, found.bound) == (20, 24)
    assert found.matches.few == TABLE_1["1f"]["membership"]["original"]["<=10"] == found.originals
    assert found.fakes.matches.few == TABLE_1["1f"]["membership"]["fake"]["<=10"]
    assert found.fakes.auc_exact == TABLE_1["1f"]["membership_auc"] and found.fakes.auc == 0.5


def test_bucketization_hides_no_quasi_identifiers_and_says_so() -> None:
    assert "quasi-identifiers are published exactly" in str(table_1("1c"))
    assert "clear" not in str(table_1("1f"))


def released(form: str, outside: list[list[Any]] | None = None, last: int = 1) -> Membership:
    """Table 1 as the form writes it, read as a recipient reads it, and attacked with what the data owner knows."""

    def columns(records: list[list[Any]]) -> Columns:
        return Columns.of({name: [record[i] for record in records] for i, name in enumerate(TABLE_1["attributes"])})

    kinds = {"Age": ck.numeric(), "Sex": ck.flat(), "Zipcode": ck.flat()}
    schema = ck.Schema(quasi=kinds, sensitive={"Disease": ck.flat()})
    table = schema.encode(columns(TABLE_1["records"]))
    bucket_of = np.zeros(8, np.int32)
    bucket_of[TABLE_1["buckets"][1]] = last
    shape = ck.sliced(COLUMNS[form])
    written = shape.write(table, Partition.of(bucket_of[table.rows]))
    people = None if outside is None else columns(outside)
    return membership_of(shape.read(written.columns, schema), written, "Disease", people)


@pytest.mark.parametrize("form", list(COLUMNS))
def test_a_written_release_is_attacked_as_its_arrays_are(form: str) -> None:
    assert released(form) == table_1(form)


def test_suppressed_rows_are_no_originals_of_a_release() -> None:
    found = released("1f", last=-1)
    assert (found.buckets, found.originals, found.fakes.count) == (1, 4, 12)


def test_people_outside_are_found_by_their_cells() -> None:
    """One as in a row, one that the first bucket admits, one from two buckets, one with a value that no row has."""
    outside = [[22, "M", 47906, "Dyspepsia"], [22, "M", 47906, "Flu"], [22, "M", 47302, "Flu"], [99, "M", 47906, "Flu"]]
    found = released("1f", outside)
    assert found.outsiders is not None and (found.outsiders.count, found.admitted) == (3, 1)
    assert found.outsiders.auc_exact == "5/6" and "3 tuples of people outside the table 1 are admitted" in str(found)


def test_a_release_whose_cells_belong_together_has_no_fakes() -> None:
    case = Columns.of({"age": [1, 2], "wage": [3, 4]})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"wage": ck.numeric()})
    written = ck.generalized().write(schema.encode(case), Partition.of([0, 0]), 0)
    with pytest.raises(ck.BadInput, match="it has no fakes; choose a form of column groups"):
        membership_of(ck.generalized().read(written.columns, schema), written, "wage")


# Against sets ------------------------------------------------------------------------------------------------------------


@st.composite
def sliced(draw: st.DrawFn) -> tuple[Int32, Int32, Int32, Int32]:
    """Buckets, values, known parts of the values, and tuples of people outside."""
    rows, c = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    cell, bucket = st.integers(0, draw(st.integers(0, 4))), st.integers(0, draw(st.integers(0, 5)))
    tuples = st.lists(st.tuples(*[cell] * c), min_size=rows, max_size=rows)
    bucket_of = draw(st.lists(bucket, min_size=rows, max_size=rows))
    values, outside = np.array(draw(tuples), np.int32), np.array(draw(tuples), np.int32)
    return np.array(bucket_of, np.int32), values, values // 2, outside


def naive(bucket_of: Int32, values: Int32) -> Counter[tuple[int, ...]]:
    """Each admitted tuple and its buckets."""
    fits: Counter[tuple[int, ...]] = Counter()
    for bucket in set(bucket_of.tolist()):
        inside = values[bucket_of == bucket].tolist()
        fits.update(itertools.product(*(set(column) for column in zip(*inside, strict=True))))
    return fits


def distinguish(some: list[int], others: list[int]) -> Fraction:
    wins = sum(Fraction((a > b) * 2 + (a == b), 2) for a in some for b in others)
    return wins / (len(some) * len(others))


@given(sliced())
@settings(max_examples=examples(150))
def test_counts_are_those_of_sets(case: tuple[Int32, Int32, Int32, Int32]) -> None:
    bucket_of, values, known, outside = case
    found = membership(bucket_of, values, values, known, outside)
    fits, originals = naive(bucket_of, values), set(map(tuple, values.tolist()))
    fakes = [count for cells, count in fits.items() if cells not in originals]
    assert (found.fakes.count, found.originals) == (len(fakes), len(originals))
    assert found.bound >= found.fakes.count
    assert found.quasi is not None
    assert found.quasi.count == len(naive(bucket_of, known).keys() - set(map(tuple, known.tolist())))
    here = [fits[cells] for cells in originals]
    assert found.fakes.auc_exact == (str(distinguish(here, fakes)) if fakes else None)
    away = set(map(tuple, outside.tolist())) - originals
    assert found.outsiders is not None and found.outsiders.count == len(away)
    assert found.admitted == sum(cells in fits for cells in away)
    assert found.outsiders.auc_exact == (str(distinguish(here, [fits[cells] for cells in away])) if away else None)


def generated(rows: int, sizes: list[int], buckets: int, seed: int = 0) -> tuple[Int32, Int32]:
    """Skewed columns in random buckets: some values everywhere, some once."""
    rng = np.random.default_rng(seed)
    values = np.column_stack([size * rng.random(rows) ** 2 for size in sizes]).astype(np.int32)
    return rng.integers(0, buckets, rows).astype(np.int32), values


@pytest.mark.parametrize("buckets", [1, WORD - 1, WORD, 5 * WORD + 3])
def test_lists_and_bits_find_the_same_buckets(buckets: int) -> None:
    bucket_of, values = generated(1_500, [4, 30, 900], buckets)
    shelves = index_buckets(bucket_of, values, values.max(axis=0).astype(np.int64) + 1)
    if buckets > 1:
        assert (shelves.line >= 0).any() and (shelves.line < 0).any(), "both ways are gone"
    rng = np.random.default_rng(1)
    tuples = np.column_stack([rng.choice(column, 400) for column in values.T])
    held = [set(zip(bucket_of.tolist(), column.tolist(), strict=True)) for column in values.T]
    counted = [sum(all((b, v) in held[j] for j, v in enumerate(row)) for b in range(buckets)) for row in tuples.tolist()]
    assert fitting(shelves, tuples).tolist() == counted
    assert max(counted) > min(counted) or buckets == 1


def test_many_matching_buckets_are_classed_as_the_paper_does() -> None:
    """Bucket b holds the values up to b in one column and all in the other, so tuples fit into 1 to 25 buckets."""
    pairs = [(b, value, b % 2) for b in range(25) for value in range(b + 1)] + [(b, 0, 1 - b % 2) for b in range(25)]
    bucket_of, *columns = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    found = membership(bucket_of, np.column_stack(columns), np.array([[0, 0], [24, 0]], np.int32))
    assert (found.matches.few, found.matches.some, found.matches.many) == (1, 0, 1)
    parts = found.fakes.matches  # of 50 admitted tuples those of value v fit into 25 - v buckets
    assert (parts.few, parts.some, parts.many) == (19, 20, 9)


def test_a_suppressed_row_admits_nothing() -> None:
    values = np.array([[0, 0], [1, 1]], np.int32)
    found = membership(np.zeros(2, np.int32), values, np.array([[0, 0], [1, 1], [7, 9]], np.int32), values)
    assert (found.originals, found.fakes.count) == (3, 2)
    assert found.fakes.auc_exact == "1/3", "it fits nowhere, the others as often as a fake"


# Estimates ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "sizes", "buckets"),
    [(2_000, [40, 12, 5], 20), (1_000, [600, 600], 50), (400, [4, 4, 4, 4, 4], 40), (3_000, [2_000, 7, 7], 300)],
)
@pytest.mark.parametrize("seed", range(4))
def test_estimates_lie_within_their_error(rows: int, sizes: list[int], buckets: int, seed: int) -> None:
    bucket_of, values = generated(rows, sizes, buckets, seed)
    exact = membership(bucket_of, values, values)
    near = membership(bucket_of, values, values, seed=seed, most=0, draws=20_000)
    assert near.matches == exact.matches and near.fakes.auc_exact is None
    assert near.fakes.error is not None and near.fakes.auc_error is not None and near.fakes.auc is not None
    assert 0 < near.fakes.error < 0.05 * exact.fakes.count
    assert abs(near.fakes.count - exact.fakes.count) <= 5 * near.fakes.error
    assert 0 < near.fakes.auc_error < 0.05
    assert abs(near.fakes.auc - float(Fraction(exact.fakes.auc_exact or 0))) <= 5 * near.fakes.auc_error
    assert near.fakes.matches.few == pytest.approx(exact.fakes.matches.few, rel=0.2, abs=100)


def test_the_error_is_the_spread_of_the_estimates() -> None:
    bucket_of, values = generated(1_000, [40, 12, 5], 20)
    runs = [membership(bucket_of, values, values, seed=seed, most=0, draws=500).fakes for seed in range(200)]
    counts, errors = np.array([run.count for run in runs]), np.array([run.error for run in runs])
    aucs, auc_errors = np.array([run.auc for run in runs]), np.array([run.auc_error for run in runs])
    assert 0.8 < counts.std() / errors.mean() < 1.25
    assert 0.8 < aucs.std() / auc_errors.mean() < 1.25
    exact = membership(bucket_of, values, values).fakes
    assert abs(counts.mean() - exact.count) < 4 * errors.mean() / np.sqrt(len(runs)), "no bias"


def test_products_beyond_any_integer_are_estimated() -> None:
    """Thirty column groups of fifty values: 50^30 tuples, and an estimate that repeats with its seed."""
    values = np.tile(np.arange(50, dtype=np.int32)[:, None], (1, 30))
    found = membership(np.zeros(50, np.int32), values, values, draws=100)
    assert found.fakes.count == pytest.approx(50.0**30) and found.bound == 50**30 - 50
    assert found == membership(np.zeros(50, np.int32), values, values, draws=100)


# Refused -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bucket_of", "values", "originals"),
    [
        (np.zeros(2), np.zeros((3, 1)), np.zeros((1, 1))),
        (np.zeros(0), np.zeros((0, 2)), np.zeros((1, 2))),
        (np.zeros(3), np.zeros((3, 2)), np.zeros((1, 1))),
        (np.zeros(3), np.zeros((3, 2)), np.zeros((0, 2))),
    ],
)
def test_arrays_that_do_not_go_together_are_refused(bucket_of: Any, values: Any, originals: Any) -> None:
    with pytest.raises(ck.BadInput, match="give"):
        membership(bucket_of.astype(np.int32), values.astype(np.int32), originals.astype(np.int32))


def test_nothing_but_originals_is_said_plainly() -> None:
    values = np.array([[0, 0], [1, 1]], np.int32)
    found = membership(np.array([0, 1], np.int32), values, values)
    assert found.fakes.count == 0 and found.fakes.auc is None
    assert "whoever matches one is in the table" in str(found)


# Buckets that spread values ------------------------------------------------------------------------------------------------


def random_buckets(rows: int, size: int) -> Int32:
    return (np.random.default_rng(3).permutation(rows) % (rows // size)).astype(np.int32)


@pytest.mark.parametrize("size", [5, 40, 100])
def test_fakes_fit_into_more_buckets_than_with_random_ones(size: int) -> None:
    _, values = generated(3_000, [60, 12, 200], 1)
    spread, chance = (
        membership(b, values, values).fakes for b in (spread_buckets(values, size, 1), random_buckets(3_000, size))
    )
    assert spread.matches.many + spread.matches.some > 1.1 * (chance.matches.many + chance.matches.some)
    assert spread.count > 0.9 * chance.count


@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 3))
@settings(max_examples=examples(40))
def test_spread_buckets_are_of_one_size(rows: int, size: int, seed: int) -> None:
    _, values = generated(rows, [3, 8], 1, seed)
    bucket_of = spread_buckets(values, size, seed)
    counts = np.bincount(bucket_of)
    assert counts.sum() == rows and counts.max() - counts.min() <= 1
    assert counts.min() >= min(size, rows)
    assert bucket_of.tolist() == spread_buckets(values, size, seed).tolist()


def test_a_value_stands_in_as_many_buckets_as_it_can() -> None:
    """One column group alone can always be spread whole: in each bucket at most one row more than in another."""
    _, values = generated(2_000, [300], 1)
    count = np.zeros((40, 300), np.int64)
    np.add.at(count, (spread_buckets(values, 50, 0), values[:, 0]), 1)
    assert (count.max(axis=0) - count.min(axis=0)).max() <= 1


def test_pools_bound_the_memory_and_change_little(monkeypatch: pytest.MonkeyPatch) -> None:
    _, values = generated(4_000, [60, 12, 200], 1)
    whole = membership(spread_buckets(values, 20, 1), values, values).fakes
    held, most = spreading.count_values, []
    monkeypatch.setattr(spreading, "count_values", lambda *given: most.append(given[2] * given[3]) or held(*given))
    pooled = membership(spread_buckets(values, 20, 1, cells=5_000), values, values).fakes
    assert len(most) > 1 and max(most) <= 5_000
    assert pooled.matches.many > 0.9 * whole.matches.many

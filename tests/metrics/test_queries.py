"""COUNT workloads: estimates equal a naive count in every form, exact releases have no error, empty queries are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.cell_ranges import cell_ranges
from closeknit.core.columns import Columns
from closeknit.core.kinds import BadValue
from closeknit.core.reading import Reading
from closeknit.core.table import Form, Partition
from closeknit.kernels.counting import queries as kernel
from closeknit.metrics import actual_counts, estimate_counts, queries, workload_error
from conftest import examples

JOBS = {"office": {"clerk": None, "lawyer": None}, "field": {"land": {"farmer": None, "herder": None}, "sailor": None}}
JOB_LEAVES = ["clerk", "lawyer", "farmer", "herder", "sailor"]
JOB_NODES = [["clerk", "lawyer"], ["farmer", "herder"], ["farmer", "herder", "sailor"], JOB_LEAVES]
WARDS = ["a", "b", "c"]
HEIGHT_CELLS = [(0, 4), (4, 8), (8, 10)]  # of the step
SCHEMA = ck.Schema(
    quasi={"age": ck.numeric(), "job": ck.Hierarchy(JOBS), "height": ck.numeric(0, 10, step=4)},
    sensitive={"ward": ck.Hierarchy(dict.fromkeys(WARDS)), "wage": ck.numeric()},
)
FORMS: dict[str, tuple[Form, list[list[str]]]] = {
    "generalized": (ck.generalized(), []),
    "bucketized": (ck.bucketized(), [["age", "job", "height"], ["ward", "wage"]]),
    "multiset": (ck.multiset(), [["age"], ["job"], ["height"], ["ward"], ["wage"]]),
    "sliced": (ck.sliced([["age", "ward"], ["job", "height", "wage"]]), [["age", "ward"], ["job", "height", "wage"]]),
}
Row = dict[str, Any]
Ranges = Mapping[str, tuple[float, float]]


def cells() -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries(
        {
            "age": st.sampled_from([None, 20, 25, 31, 40]),
            "job": st.sampled_from([None, *JOB_LEAVES]),
            "height": st.sampled_from([0, 2.5, 10]),
            "ward": st.sampled_from(WARDS),
            "wage": st.sampled_from([1, 5, 6, 100]),
            "class": st.integers(0, 2),
        }
    )


def columns_of(rows: Sequence[Row], names: Sequence[str] = tuple(SCHEMA.published)) -> Columns:
    return Columns.of({name: [row[name] for row in rows] for name in names})


def written(form: Form, rows: Sequence[Row], schema: ck.Schema = SCHEMA) -> Reading:
    """What a form writes of the rows' own classes, read back."""
    table = schema.encode(columns_of(rows, schema.published))
    partition = Partition.of([rows[i]["class"] for i in table.rows])
    return form.read(form.write(table, partition, 0).columns, schema)


def share(values: set[Any], everything: Sequence[Any], a: Fraction, b: Fraction, leaves: Sequence[str] | None) -> Fraction:
    """How much of the cell that covers these values lies in a range; the naive way."""
    if values == {None}:
        return Fraction(0)
    if leaves is not None:
        nodes = [[leaf] for leaf in leaves] + (JOB_NODES if leaves == JOB_LEAVES else [list(leaves)])
        cover = list(leaves) if None in values else min((n for n in nodes if values <= set(n)), key=len)
        return Fraction(sum(a <= leaves.index(leaf) and leaves.index(leaf) + 1 <= b for leaf in cover), len(cover))
    numbers = [Fraction(x) for x in (everything if None in values else values) if x is not None]
    lo, hi = min(numbers), max(numbers)
    if lo == hi:
        return Fraction(int(a <= lo <= b))
    return max(min(hi, b) - max(lo, a), Fraction(0)) / (hi - lo)


LEAVES = {"job": JOB_LEAVES, "ward": WARDS}


def naive(rows: Sequence[Row], requested: Ranges, column_groups: Sequence[Sequence[str]], snap: bool = False) -> Fraction:
    """The estimate from raw rows and their classes, without any written cell; `snap`: ranges of heights end at steps."""
    everything = {name: [row[name] for row in rows] for name in SCHEMA.published}
    everything["height"] = [0, 10]  # declared
    total = Fraction(0)

    def inside(name: str, values: set[Any]) -> Fraction:
        a, b = (Fraction(end) for end in requested[name])
        return share(values, everything[name], a, b, LEAVES.get(name))

    for number in {row["class"] for row in rows}:
        members = [row for row in rows if row["class"] == number]
        if column_groups:
            matches = [
                sum(
                    prod((inside(name, {row[name]}) for name in group if name in requested), start=Fraction(1))
                    for row in members
                )
                for group in column_groups
            ]
            total += prod(matches, start=Fraction(1)) / len(members) ** (len(column_groups) - 1)
        else:
            boxes = {name: {row[name] for row in members} for name in requested if name in SCHEMA.quasi}
            if snap and "height" in boxes:
                boxes["height"] = {end for x in boxes["height"] for end in [cell for cell in HEIGHT_CELLS if cell[0] <= x][-1]}
            covered = prod((inside(name, values) for name, values in boxes.items()), start=Fraction(1))
            secrets = [name for name in requested if name in SCHEMA.sensitive]
            total += covered * sum(prod(inside(name, {row[name]}) for name in secrets) for row in members)
    return total


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=examples(40))
@given(
    rows=st.lists(cells(), min_size=1, max_size=9),
    lambda_=st.integers(1, 3),
    secret=st.sampled_from(["ward", "wage"]),
    theta=st.sampled_from([0.05, 0.3, 0.7, 1]),
    seed=st.integers(0, 99),
)
def test_estimates_equal_a_naive_count(name: str, rows: list[Row], lambda_: int, secret: str, theta: float, seed: int) -> None:
    form, column_groups = FORMS[name]
    workload = queries(columns_of(rows), SCHEMA, secret, lambda_, theta, count=6, seed=seed)
    estimates = estimate_counts(written(form, rows), workload)
    decimals = any(row["height"] == 2.5 for row in rows)
    expected = [float(naive(rows, workload.get_ranges(i), column_groups, decimals)) for i in range(6)]
    assert estimates.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=examples(40))
@given(rows=st.lists(cells(), min_size=1, max_size=9), theta=st.sampled_from([0.05, 0.3, 1]), seed=st.integers(0, 99))
def test_actual_counts_are_those_of_the_rows(rows: list[Row], theta: float, seed: int) -> None:
    workload = queries(columns_of(rows), SCHEMA, theta=theta, count=6, seed=seed)
    alone = [{**row, "class": i} for i, row in enumerate(rows)]
    expected = [int(naive(alone, workload.get_ranges(i), [])) for i in range(6)]
    assert actual_counts(columns_of(rows), workload).tolist() == expected


@settings(max_examples=examples(20))
@given(rows=st.lists(cells(), min_size=1, max_size=12), seed=st.integers(0, 99))
def test_classes_of_one_row_have_no_error(rows: list[Row], seed: int) -> None:
    alone = [{**row, "height": int(row["height"]), "class": i} for i, row in enumerate(rows)]  # decimals are never exact
    workload = queries(columns_of(alone), SCHEMA, theta=0.5, count=20, seed=seed)
    for form, _ in FORMS.values():
        found = workload_error(written(form, alone), columns_of(alone), workload)
        assert found.queries == 20 and (found.skipped == 20 or found.upper == found.mean == 0)


def test_levels_are_spread_over_their_leaves() -> None:
    rows = [{"age": 20, "job": job, "height": 0, "ward": "a", "wage": 1, "class": 0} for job in ("farmer", "sailor", "clerk")]
    form = ck.sliced([["age", "job"], ["height", "ward", "wage"]], levels={"job": 1})
    workload = queries(columns_of(rows), SCHEMA, lambda_=2, theta=0.2, count=400)
    estimates = estimate_counts(written(form, rows), workload)
    expected = []
    for i in range(len(workload)):
        requested = dict(workload.get_ranges(i))
        a, b = requested.pop("job", (0.0, 5.0))
        # at level 1 farmer is `land` (leaves 2 and 3), clerk is `office` (0 and 1), sailor stays (4)
        jobs = sum(max(min(b, hi) - max(a, lo), 0) / (hi - lo) for lo, hi in ((2, 4), (0, 2), (4, 5)))
        rest = float(naive(rows, requested, [["age", "height", "ward", "wage"]])) / 3
        expected.append(jobs * rest)
    assert estimates.tolist() == pytest.approx(expected)
    assert len({round(x, 6) for x in expected}) > 2


def test_permuted_is_read_by_its_buckets() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"wage": ck.numeric(0, 100)})
    rows = [{"age": a, "wage": w, "class": 0} for a, w in ((10, 90), (90, 10))]
    workload = queries(columns_of(rows, ["age", "wage"]), schema, lambda_=1, theta=0.25, count=300, seed=1)
    estimates = estimate_counts(written(ck.permuted(), rows, schema), workload)
    for i, estimate in enumerate(estimates.tolist()):
        (a, b), (c, d) = workload.get_ranges(i).values()
        assert estimate == sum(a <= x <= b for x in (10, 90)) * sum(c <= x <= d for x in (10, 90)) / 2


def test_a_perturbed_secret_is_counted_by_its_law() -> None:
    wards = ["a", "b", "c", "d"]
    schema = ck.Schema(quasi={"age": ck.numeric(0, 10)}, sensitive={"ward": ck.Hierarchy(dict.fromkeys(wards))})
    rng = np.random.default_rng(8)
    rows = [
        {"age": int(x), "ward": wards[w], "class": int(x) // 5}
        for x, w in zip(rng.integers(0, 10, 60), rng.choice(4, 60, p=[0.7, 0.1, 0.1, 0.1]), strict=True)
    ]
    reading = written(ck.perturbed(0.25), rows, schema)
    table = columns_of(rows, ["age", "ward"])
    workload = queries(table, schema, lambda_=1, theta=0.25, count=60)
    cells = list(zip(reading.columns["age"].cells(), reading.columns["ward"].cells(), strict=True))
    for i, estimate in enumerate(estimate_counts(reading, workload).tolist()):
        (a, b), (c, d) = workload.get_ranges(i).values()
        expected = 0.0
        for box in {box for box, _ in cells}:
            lo, hi = (float(end) for end in str(box).strip("[]").split(","))
            secrets = [wards.index(str(ward)) for other, ward in cells if other == box]
            true = (sum(c <= w < d for w in secrets) - 0.75 * len(secrets) * (d - c) / 4) / 0.25
            expected += max(min(b, hi) - max(a, lo), 0) / (hi - lo) * true
        assert estimate == pytest.approx(max(expected, 0.0))


def test_estimates_of_a_perturbed_secret_have_no_bias() -> None:
    rows = [{"age": 5, "ward": "a", "class": 0}] * 400 + [{"age": 5, "ward": "b", "class": 0}] * 100
    schema = ck.Schema(quasi={"age": ck.numeric(0, 10)}, sensitive={"ward": ck.Hierarchy(dict.fromkeys("abcd"))})
    workload = queries(columns_of(rows, ["age", "ward"]), schema, lambda_=1, theta=0.0625, count=60)
    first = next(
        i
        for i in range(60)
        if workload.get_ranges(i)["ward"] == (0, 1)
        and workload.get_ranges(i)["age"][0] <= 5 <= workload.get_ranges(i)["age"][1]
    )
    table = schema.encode(columns_of(rows, ["age", "ward"]))
    everyone = Partition(np.zeros(500, dtype=np.int32), 1)
    found = []
    for seed in range(200):
        columns = ck.perturbed(0.5).write(table, everyone, seed).columns
        found.append(estimate_counts(ck.perturbed(0.5).read(columns, schema), workload)[first])
    assert 390 < np.mean(found) < 410 and np.std(found) > 5


def test_suppressed_and_starred_rows() -> None:
    schema = ck.Schema(quasi={"zip": ck.prefix()}, sensitive={"ward": ck.flat()})
    table = Columns.of({"zip": ["111", "112", "12345"], "ward": ["a", "b", "a"]})
    coded = schema.encode(table)
    partition = Partition(np.array([0, 0, -1], dtype=np.int32), 1)
    workload = queries(table, schema, lambda_=1, theta=1, count=1)
    for suppressed, seen in (("removed", 2.0), ("starred", 3.0), ("hidden", 3.0)):
        form = ck.generalized(suppressed=suppressed)
        reading = form.read(form.write(coded, partition, 0).columns, schema)
        assert estimate_counts(reading, workload).tolist() == [seen]
    half = queries(table, schema, lambda_=1, theta=0.0625, count=200)  # one code and one ward of each
    form = ck.generalized(suppressed="hidden")
    reading = form.read(form.write(coded, partition, 0).columns, schema)
    for i, estimate in enumerate(estimate_counts(reading, half).tolist()):
        code, (a, b) = half.get_ranges(i)["zip"][0], half.get_ranges(i)["ward"]
        first = (b - a) / 2 if code < 2 else 0  # 11*** with one of each ward
        assert estimate == pytest.approx(first + (b - a) / 3 / 2)


def test_masks_of_another_length_are_understood() -> None:
    """Without a suppressed long code masks are shorter than those of the whole table."""
    table = Columns.of({"zip": ["1112", "1113", "1212", "1213", "123456"], "ward": list("ababa")})
    schema = ck.Schema(quasi={"zip": ck.prefix()}, sensitive={"ward": ck.flat()})
    domain = schema.encode(table).quasi_domains[0]
    lo, hi = cell_ranges(domain, ["111*", "12**", "1***", "111***"])
    assert lo.tolist() == [0, 2, 0, 0] and hi.tolist() == [1, 4, 4, 1]
    with pytest.raises(BadValue, match="neither a value nor a node"):
        cell_ranges(domain, ["2***"])


def test_cells_are_read_back_as_they_were_written() -> None:
    for kind, values in (
        (ck.numeric(0, 60, bins=4), [3, 20, 59]),
        (ck.numeric(), [1.5, 2, 7]),
        (ck.date(), ["2024-01-02", "2024-03-17", "2031-05-01"]),
        (ck.Hierarchy.intervals(lo=0, hi=40, width=5), [1, 12, 39]),
        (ck.flat(), ["x", "y", "z"]),
        (ck.prefix(), ["4", "47", "471"]),
    ):
        domain, _ = kind.bind(np.array(values, dtype=object if isinstance(values[0], str) else None))
        ends = np.arange(domain.size)
        a, b = np.array([(x, y) for x in ends for y in ends if x <= y], dtype=np.int32).T
        lo, hi = cell_ranges(domain, domain.labels(a, b))
        if domain.tree is None and domain.ends is None:
            assert domain.numbers is not None
            a, b = domain.numbers[a], domain.numbers[b]
        assert (lo <= a).all() and (hi >= b).all()
        assert (lo[a == b] == a[a == b]).all() and (hi[a == b] == b[a == b]).all()


def test_same_queries_for_every_release_and_row_order() -> None:
    table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    turned = table.take(np.arange(200)[::-1])
    one, same, other = (queries(t, schema, count=50, seed=seed) for t, seed in ((table, 3), (turned, 3), (table, 4)))
    assert (one.lo == same.lo).all() and (one.hi == same.hi).all() and (one.columns == same.columns).all()
    assert not (one.lo == other.lo).all()
    release = ck.anonymize(table, schema, [ck.KAnonymity(5)], seed=2**70)
    assert workload_error(release, table, one) == workload_error(release, turned, same)


def test_ranges_have_the_asked_length() -> None:
    table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    workload = queries(table, schema, "disease", lambda_=3, theta=0.0001, count=300)  # every range a tenth
    lengths: dict[str, set[float]] = {}
    for i in range(300):
        for name, (a, b) in workload.get_ranges(i).items():
            lengths.setdefault(name, set()).add(round(b - a, 9))
    assert lengths["disease"] == {2} and lengths["age"] == {10} and lengths["sex"] == {1}
    ages = np.array([workload.get_ranges(i)["age"] for i in range(300) if "age" in workload.get_ranges(i)])
    assert ages.min() >= 0 and ages.max() <= 100 and 30 < ages.mean() < 70


def test_queries_without_an_answer_are_left_out_and_counted() -> None:
    rows = [{"age": 20, "job": "clerk", "height": 5, "ward": "a", "wage": 1, "class": 0}] * 3
    table = columns_of(rows)
    workload = queries(table, SCHEMA, theta=0.1, count=200)
    answered = int((actual_counts(table, workload) > 0).sum())
    found = workload_error(written(ck.generalized(), rows), table, workload)
    assert 0 < answered < 200 and found.skipped == 200 - answered and found.median == 0
    no_one = Columns.of({name: [None if name in ("age", "job", "height") else rows[0][name]] for name in SCHEMA.published})
    none = workload_error(written(ck.generalized(), rows), no_one, workload)
    assert none.median is None and none.skipped == 200 and "None of 200" in str(none)


def test_error_falls_where_classes_are_smaller() -> None:
    table, schema = ck.datasets.hospital(2000), ck.datasets.hospital_schema()
    workload = queries(table, schema, count=300)
    medians = [
        workload_error(ck.anonymize(table, schema, [ck.KAnonymity(k)], ck.Mondrian()), table, workload).median
        for k in (2, 20, 400)
    ]
    assert medians == sorted(medians) and medians[0] < medians[2]


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"theta": 0}, "theta"),
        ({"theta": 1.5}, "theta"),
        ({"theta": "many"}, "theta"),
        ({"lambda_": 0}, "lambda_"),
        ({"lambda_": 4}, "there are 3 quasi-identifiers"),
        ({"lambda_": 1.5}, "lambda_"),
        ({"count": 0}, "count"),
        ({"seed": -1}, "seed"),
        ({"secret": "age"}, "column 'age': is not sensitive"),
        ({"secret": "height"}, "is not sensitive; choose one of: ward, wage"),
    ],
)
def test_wrong_parameters_are_named(wrong: dict[str, Any], says: str) -> None:
    rows = [{"age": 20, "job": "clerk", "height": 0, "ward": "a", "wage": 1}]
    with pytest.raises(ck.BadInput, match=says):
        queries(columns_of(rows), SCHEMA, **wrong)


def test_what_is_no_release_is_refused() -> None:
    table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    workload = queries(table, schema, count=3)
    with pytest.raises(ck.BadInput, match="is no release"):
        workload_error(table, table, workload)  # type: ignore[arg-type]
    fewer = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": schema.sensitive["disease"]})
    part = Columns({name: table[name] for name in ("age", "disease")}, table.rows)
    with pytest.raises(ck.BadInput, match="is queried but not in the release"):
        workload_error(ck.anonymize(part, fewer, [ck.KAnonymity(5)]), table, workload)
    with pytest.raises(ck.BadInput, match="no sensitive column"):
        queries(part, ck.Schema(quasi={"age": ck.numeric()}))


def test_bits_of_many_cells() -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 8, 1000).astype(np.int32)
    below = kernel.below(codes, 7)
    for v in range(8):
        bits = np.unpackbits(below[v].view(np.uint8), bitorder="little")[:1000]
        assert (bits == ((codes < v) & (codes < 7))).all()
    left, weights, bucket_of = kernel.every(1000), rng.random(1000), rng.integers(0, 9, 1000).astype(np.int32)
    lo, hi = np.array([0, 4, 5, 0, 6, np.nan, 3, 9]), np.array([4, 6, 9, 4.5, 6, np.nan, 11, 9.5])
    cells = kernel.CellRanges(codes, lo, hi)
    shares, weighed = np.array([0, 0.5, 0.75, 0, 1, 0, 0.375, 0]), np.zeros(1000)  # of a cell between 5 and 8
    kernel.weigh(left, weights, cells, 5.0, 8.0, weighed)
    expected = np.bincount(bucket_of, weights * shares[codes], 9)
    assert np.allclose(kernel.sums(left, weighed, bucket_of, 9), expected)


@pytest.mark.parametrize("form", ["generalized", "bucketized", "multiset"])
@pytest.mark.parametrize("rows", [20_000, pytest.param(500_000, marks=pytest.mark.soak)])
def test_many_rows_and_values(form: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns with too many values for bits give the same answers one by one."""
    rng = np.random.default_rng(11)
    table = Columns.of(
        {"x": rng.random(rows).tolist(), "y": rng.integers(0, 50, rows).tolist(), "s": rng.random(rows).tolist()}
    )
    schema = ck.Schema(quasi={"x": ck.numeric(0, 1), "y": ck.numeric()}, sensitive={"s": ck.numeric(0, 1)})
    coded = schema.encode(table)
    partition = Partition.of(coded.quasi[:, 0] // 7)
    made = ck.generalized() if form == "generalized" else ck.bucketized() if form == "bucketized" else ck.multiset()
    reading = made.read(made.write(coded, partition, 0).columns, schema)
    workload = queries(table, schema, lambda_=2, count=40)
    bits = estimate_counts(reading, workload)
    monkeypatch.setattr("closeknit.metrics.query_answers.WIDE", 0)
    assert np.allclose(estimate_counts(reading, workload), bits, rtol=1e-12)
    actual = actual_counts(table, workload)
    allowed = 0.25 if form == "generalized" else 0.02  # seven rows do not fill the range from the least to the largest
    assert np.abs(bits - actual).mean() < allowed * actual.mean()

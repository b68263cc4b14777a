"""KL-divergence over the lattice: equal to dictionaries and rationals in every form, 0 for exact ones, lost rows reported."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_queries import FORMS, JOB_LEAVES, JOB_NODES, SCHEMA, WARDS, Row, columns_of, written
from test_queries import cells as any_cells

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.kinds import numeric
from closeknit.core.table import Partition
from closeknit.forms.column_axes import Axis, axes_of
from closeknit.forms.release_reading import reading_of
from closeknit.kernels.counting.cubes import SortedPoints, StackedParts, spread
from closeknit.metrics import Workload, actual_counts, cubes, estimate_counts, kl_divergence
from closeknit.metrics.lattice import Cube
from conftest import examples

LEAVES = {"job": JOB_LEAVES, "ward": WARDS}


def cells() -> st.SearchStrategy[Row]:
    """Rows with whole heights: ranges of decimals end at steps, and the naive way knows tight ranges only."""
    return any_cells().map(lambda row: {**row, "height": round(row["height"])})


def part(name: str, everything: Sequence[Row], values: set[Any], value: Any) -> Fraction:
    """How much of the cell that covers these values is one value; the naive way."""
    if values == {None}:
        return Fraction(0)
    if name in LEAVES:
        leaves = LEAVES[name]
        nodes = [[leaf] for leaf in leaves] + (JOB_NODES if name == "job" else [leaves])
        cover = leaves if None in values else min((n for n in nodes if values <= set(n)), key=len)
        return Fraction(value in cover, len(cover))
    there = {Fraction(row[name]) for row in everything if row[name] is not None}
    ends = there if None in values else {Fraction(x) for x in values}
    lo, hi = (Fraction(0), Fraction(10)) if name == "height" and None in values else (min(ends), max(ends))
    whole = all(x.denominator == 1 for x in there)
    width = hi - lo + 1 if whole else sum(lo <= x <= hi for x in there)
    return Fraction(lo <= Fraction(value) <= hi) / width


def naive(rows: Sequence[Row], names: Sequence[str], column_groups: Sequence[Sequence[str]]) -> tuple[float, float]:
    """KL of one group-by, and the share of rows where nothing is expected, from raw rows and their classes."""
    cells = Counter(tuple(row[name] for name in names) for row in rows if all(row[name] is not None for name in names))
    kl, lost = 0.0, 0.0
    for cell, alpha in cells.items():
        value, beta = dict(zip(names, cell, strict=True)), Fraction(0)
        for number in {row["class"] for row in rows if row["class"] >= 0}:
            members = [row for row in rows if row["class"] == number]
            grouped = column_groups or [list(SCHEMA.quasi), list(SCHEMA.sensitive)]
            found = Fraction(len(members))
            for group in grouped:
                requested = [name for name in group if name in names]
                boxes = [
                    {
                        name: {r[name] for r in members} if name in SCHEMA.quasi and not column_groups else {row[name]}
                        for name in requested
                    }
                    for row in members
                ]
                found *= sum(prod((part(n, rows, box[n], value[n]) for n in requested), start=Fraction(1)) for box in boxes)
                found /= len(members)
            beta += found
        if beta:
            kl += alpha / len(rows) * math.log(Fraction(alpha) / beta)
        else:
            lost += alpha / len(rows)
    return kl, lost


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=examples(30))
@given(
    rows=st.lists(cells(), min_size=1, max_size=9),
    level=st.integers(1, 3),
    secret=st.sampled_from(["ward", "wage"]),
    crowded=st.booleans(),
    searched=st.booleans(),
)
def test_it_equals_a_naive_count(name: str, rows: list[Row], level: int, secret: str, crowded: bool, searched: bool) -> None:
    form, column_groups = FORMS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cubes, "FEW", 0 if crowded else 1024)  # every group of columns is asked by itself
        patch.setattr(cubes, "ROOM", 0 if searched else 1 << 24)  # keys are searched for
        found = kl_divergence(written(form, rows), columns_of(rows), SCHEMA, level, secret)
    assert [one.columns for one in found.group_bys] == list(combinations(SCHEMA.quasi, level))
    for one in found.group_bys:
        assert (one.kl, one.lost) == pytest.approx(naive(rows, (*one.columns, secret), column_groups), abs=1e-9)
    assert found.kl == pytest.approx(sum(one.kl for one in found.group_bys))


@settings(max_examples=examples(30))
@given(rows=st.lists(cells(), min_size=2, max_size=9), secret=st.sampled_from(["ward", "wage"]))
def test_rows_that_were_removed_are_reported(rows: list[Row], secret: str) -> None:
    rows = [{**row, "class": row["class"] - 1} for row in rows]  # class 0 becomes none
    if all(row["class"] < 0 for row in rows):
        rows[0]["class"] = 0
    for form, column_groups in (FORMS["generalized"], FORMS["bucketized"]):
        reading = removed(form, rows)
        found = kl_divergence(reading, columns_of(rows), SCHEMA, 2, secret)
        expected = [naive(rows, (*one.columns, secret), column_groups) for one in found.group_bys]
        assert np.array([(one.kl, one.lost) for one in found.group_bys]) == pytest.approx(np.array(expected), abs=1e-9)
        assert found.lost == pytest.approx(sum(lost for _, lost in expected) / len(expected))


def removed(form: Any, rows: Sequence[Row]) -> Any:
    table = SCHEMA.encode(columns_of(rows))
    partition = Partition.of([rows[i]["class"] for i in table.rows])
    return form.read(form.write(table, partition, 0).columns, SCHEMA)


@settings(max_examples=examples(20))
@given(rows=st.lists(cells(), min_size=1, max_size=12))
def test_classes_of_one_row_disclose_everything(rows: list[Row]) -> None:
    alone = [{**row, "class": i} for i, row in enumerate(rows)]
    for form, _ in FORMS.values():
        assert kl_divergence(written(form, alone), columns_of(rows), SCHEMA).kl == pytest.approx(0, abs=1e-12)


def test_a_perturbed_secret_is_counted_by_its_law() -> None:
    wards = ["a", "b", "c", "d"]
    schema = ck.Schema(quasi={"age": ck.numeric(0, 10)}, sensitive={"ward": ck.Hierarchy(dict.fromkeys(wards))})
    rng = np.random.default_rng(8)
    rows = [
        {"age": int(x), "ward": wards[w], "class": int(x) // 5}
        for x, w in zip(rng.integers(0, 10, 60), rng.choice(4, 60, p=[0.7, 0.1, 0.1, 0.1]), strict=True)
    ]
    reading = written(ck.perturbed(0.25), rows, schema)
    found = kl_divergence(reading, columns_of(rows, ["age", "ward"]), schema, level=1)
    kept = list(zip(reading.columns["age"].cells(), reading.columns["ward"].cells(), strict=True))
    expected, lost = 0.0, Fraction(0)
    for (age, ward), alpha in Counter((row["age"], row["ward"]) for row in rows).items():
        beta = Fraction(0)
        for box in {box for box, _ in kept}:
            lo, hi = (int(end) for end in str(box).strip("[]").split(","))
            inside = [w for other, w in kept if other == box]
            true = (inside.count(ward) - Fraction(3, 4) * len(inside) / 4) / Fraction(1, 4)
            beta += Fraction(lo <= age <= hi, hi - lo + 1) * true
        if beta > 0:
            expected += alpha / 60 * math.log(alpha / beta)
        else:
            lost += Fraction(alpha, 60)
    assert 0 < lost < 1
    assert (found.kl, found.lost) == pytest.approx((expected, float(lost)))
    with pytest.raises(ck.BadInput, match="replaced in every row"):
        kl_divergence(written(ck.perturbed(0), rows, schema), columns_of(rows, ["age", "ward"]), schema, level=1)


def test_a_hidden_secret_may_be_any() -> None:
    schema = ck.Schema(quasi={"zip": ck.flat()}, sensitive={"ward": ck.flat()})
    table = Columns.of({"zip": ["x", "x", "y"], "ward": ["a", "b", "a"]})
    form = ck.generalized(suppressed="hidden")
    partition = Partition(np.array([0, 0, -1], dtype=np.int32), 1)
    reading = form.read(form.write(schema.encode(table), partition, 0).columns, schema)
    found = kl_divergence(reading, table, schema, level=1)
    # the hidden row lies in each of the four cells with a quarter
    assert found.kl == pytest.approx(2 / 3 * math.log(1 / 1.25) + 1 / 3 * math.log(1 / 0.25))


def test_levels_are_spread_over_their_leaves() -> None:
    rows = [{"age": 20, "job": job, "height": 0, "ward": "a", "wage": 1, "class": 0} for job in ("farmer", "sailor", "clerk")]
    form = ck.sliced([["age", "job"], ["height", "ward", "wage"]], levels={"job": 1})
    found = kl_divergence(written(form, rows), columns_of(rows), SCHEMA, level=1)
    # at level 1 farmer is one of the two leaves of `land`, clerk one of the two of `office`, sailor stays
    assert [one.kl for one in found.group_bys] == pytest.approx([0, 2 / 3 * math.log(2), 0])


def test_permuted_is_read_by_its_buckets() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"wage": ck.numeric(0, 100)})
    rows = [{"age": a, "wage": w, "class": 0} for a, w in ((10, 90), (90, 10))]
    found = kl_divergence(written(ck.permuted(), rows, schema), columns_of(rows, ["age", "wage"]), schema, level=1)
    assert found.kl == pytest.approx(math.log(2))


@pytest.mark.parametrize("form", ["generalized", "bucketized", "multiset"])
def test_cells_are_queries_for_single_values(form: str) -> None:
    """Columns of leaves only: a cell of the lattice is a COUNT query, which other code answers."""
    whole = ck.datasets.hospital_schema()
    schema = ck.Schema(
        quasi={name: whole.quasi[name] for name in ("sex", "zip", "job")}, sensitive={"disease": whole.sensitive["disease"]}
    )
    table = ck.datasets.hospital(400)
    table = Columns({name: table[name] for name in schema.published}, table.rows)
    release = ck.anonymize(table, schema, [ck.LDiversity("disease", 2)], ck.Mondrian(), form=form)
    axes = axes_of(table, schema)
    values = {name: cubes.Values(axis) for name, axis in axes.items()}
    places = {name: values[name].places(table[name], schema) for name in ("zip", "job", "disease")}
    points = cubes.Points.of(places, {name: values[name].size for name in places})
    lo = np.column_stack([points.places[name] for name in places]).astype(np.float64)
    chosen = np.tile(np.array([1, 2], dtype=np.int32), (len(points), 1))
    workload = Workload(schema, tuple(axes[name] for name in schema.quasi), axes["disease"], chosen, lo, lo + 1, 0.1)
    found = Cube(reading_of(release), values, "disease").estimate_rows(points)
    assert len(points) > 200 and points.counts.sum() == 400
    assert found == pytest.approx(estimate_counts(release, workload))
    assert points.counts.tolist() == actual_counts(table, workload).tolist()


def test_steps_and_whole_numbers_are_grids() -> None:
    for kind, numbers, cell, width in (
        (numeric(0, 100, step=10), [0, 20, 100], "[0, 20]", 3),
        (numeric(0, 100), [0, 20, 100], "[0, 20]", 21),
        (numeric(0, 1, step=0.1), [0.1, 0.3, 0.7], "[0.1, 0.7]", 7),
        (numeric(0, 1), [0.1, 0.3, 0.7], "[0.1, 0.6]", 2),
    ):
        values = cubes.Values(Axis("x", kind.bind(np.array(numbers))[0]))
        assert values.boxes(Columns.of({"x": [cell]})["x"])[2][0] == width


def test_wrong_questions_are_named() -> None:
    rows = [{"age": 20, "job": "clerk", "height": 0, "ward": "a", "wage": 1, "class": 0}]
    reading = written(ck.generalized(), rows)
    with pytest.raises(ck.BadInput, match="level=4 is too large; the release has 3 quasi-identifiers"):
        kl_divergence(reading, columns_of(rows), SCHEMA, level=4)
    with pytest.raises(ck.BadInput, match="is not sensitive"):
        kl_divergence(reading, columns_of(rows), SCHEMA, secret="age")


@settings(max_examples=examples(60))
@given(st.data())
def test_boxes_are_added_up_at_their_points(data: st.DataObject) -> None:
    """Two outer columns and a last one, against a loop over all boxes and points."""
    sizes = {"a": 5, "b": 9, "c": 12}
    place = st.tuples(*(st.integers(0, size - 1) for size in sizes.values()))
    there = sorted(data.draw(st.sets(place, min_size=1, max_size=30)))
    boxes = data.draw(st.lists(st.tuples(place, place, st.integers(1, 9)), min_size=1, max_size=12))
    lo, hi = np.array([b[0] for b in boxes], dtype=np.int32), np.array([b[1] for b in boxes], dtype=np.int32)
    points = cubes.Points({n: np.array([p[d] for p in there]) for d, n in enumerate(sizes)}, sizes, np.ones(len(there)))
    weights = np.array([float(b[2]) for b in boxes])
    parts = cubes.Parts(tuple(sizes), np.array([0, len(boxes)]), lo, hi, weights)
    expected = [sum(w for a, b, w in boxes if all(x <= y <= z for x, y, z in zip(a, p, b, strict=True))) for p in there]
    assert points.estimate_rows([parts], np.ones(1)).tolist() == expected


def test_no_pass_without_points() -> None:
    none = np.zeros(0, dtype=np.int64)
    box = np.zeros((1, 1), dtype=np.int32)
    points = SortedPoints(none, np.zeros(0, dtype=np.int32), none, none)
    parts = StackedParts(np.array([[0, 1]]), box, box, np.ones(1), np.zeros(1, dtype=np.int64))
    assert len(spread(points, parts, np.ones(1), np.zeros(1, dtype=np.int64))) == 0

"""Measures of a release alone equal counts with dictionaries and rationals; windows of streams are asked like tables."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_queries import FORMS, Row, cells, written

import closeknit as ck
from closeknit.checks.oracle import oracle_level
from closeknit.core.classes import Histogram
from closeknit.core.columns import Columns
from closeknit.core.kinds import flat
from closeknit.core.reading import Reading
from closeknit.core.table import Partition
from closeknit.metrics import (
    Measures,
    class_distances,
    class_sizes,
    classification_metric,
    discernibility,
    distances_by_class,
    diversity,
    measure_levels,
    measures,
    queries,
    window_errors,
    workload_error,
)
from closeknit.metrics.distances import divergences
from conftest import examples

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "static.json").read_text(encoding="utf-8"))


def seen(reading: Reading, secret: str) -> dict[tuple[Any, ...], list[Any]]:
    """The values of a secret by the cells that an adversary knows a class by."""
    view = reading.of(secret)
    found: dict[tuple[Any, ...], list[Any]] = {}
    known = zip(*(view.columns[name].cells() for name in view.named_by), strict=True)
    for cells_, value in zip(known, view.columns[secret].cells(), strict=True):
        found.setdefault(cells_, []).append(value)
    return found


def level(found: Any) -> float:
    return math.inf if found.measured is None else found.measured


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=examples(15))
@given(rows=st.lists(cells(), min_size=1, max_size=9), secret=st.sampled_from(["ward", "wage"]))
def test_levels_are_those_of_the_worst_class(name: str, rows: list[Row], secret: str) -> None:
    reading = written(FORMS[name][0], rows)
    classes, everyone = seen(reading, secret).values(), [row[secret] for row in rows]
    found = measure_levels(reading).secrets[secret]
    order = sorted(set(everyone))
    grounds = {"ward": {"equal": None, "hierarchical": None}, "wage": {"ordered": order, "equal": None}}[secret]
    assert set(found.t) == set(grounds) and found.distance == ("hierarchical" if secret == "ward" else "ordered")
    for distance, ground in grounds.items():
        worst = max(oracle_level("t_closeness", values, everyone, t=1, ground=ground) for values in classes)
        assert found.t[distance].exact == str(worst)
    for kind, reported in (("basic", found.beta_basic), ("enhanced", found.beta_enhanced)):
        worst = max(float(oracle_level("beta_likeness", values, everyone, beta=1, kind=kind)) for values in classes)
        assert level(reported) == pytest.approx(worst)
    worst = max(float(oracle_level("delta_disclosure", values, everyone, delta=1)) for values in classes)
    assert level(found.delta) == pytest.approx(worst)
    for kind, reported in (("distinct", found.l_distinct), ("entropy", found.l_entropy), ("frequency", found.l_frequency)):
        least = min(float(oracle_level("l_diversity", values, everyone, l=1, kind=kind)) for values in classes)
        assert level(reported) == pytest.approx(least)
    k = measure_levels(reading).k
    assert (k is None) == (name != "generalized")
    if k is not None and k.worst is not None:
        assert k.measured == k.worst.rows == min(map(len, classes))


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=examples(15))
@given(rows=st.lists(cells(), min_size=1, max_size=9), secret=st.sampled_from(["ward", "wage"]))
def test_distances_are_those_of_their_definitions(name: str, rows: list[Row], secret: str) -> None:
    reading = written(FORMS[name][0], rows)
    shares = {value: Fraction(count, len(rows)) for value, count in Counter(row[secret] for row in rows).items()}
    naive: dict[str, list[float]] = {"kl": [], "gain": [], "js": [], "variation": []}
    sizes = []
    for values in seen(reading, secret).values():
        own = {value: Fraction(values.count(value), len(values)) for value in shares}
        mean = {value: (shares[value] + own[value]) / 2 for value in shares}
        naive["kl"].append(math.inf if 0 in own.values() else bits(shares, own))
        naive["gain"].append(bits(own, shares))
        naive["js"].append((bits(shares, mean) + bits(own, mean)) / 2)
        naive["variation"].append(float(sum(abs(shares[v] - own[v]) for v in shares) / 2))
        sizes.append(len(values))
    arrays, reported = distances_by_class(reading, secret), class_distances(reading, secret)
    for what, levels in naive.items():
        assert sorted(arrays[what].tolist()) == pytest.approx(sorted(levels), abs=1e-9)
        spread = getattr(reported, what)
        assert (math.inf if spread.worst is None else spread.worst) == pytest.approx(max(levels), abs=1e-9)
        by_row = sorted(x for x, size in zip(levels, sizes, strict=True) for _ in range(size))
        mean_ = statistics.fmean(by_row)
        assert (math.inf if spread.mean is None else spread.mean) == pytest.approx(mean_, abs=1e-9)
        middle = by_row[(len(by_row) - 1) // 2]
        assert (math.inf if spread.median is None else spread.median) == pytest.approx(middle, abs=1e-9)
        assert spread.unlimited == pytest.approx(sum(map(math.isinf, by_row)) / len(by_row))
    assert reported.t is not None and reported.t.worst == pytest.approx(level(measure_levels(reading).secrets[secret].own_t))


def bits(p: dict[Any, Fraction], q: dict[Any, Fraction]) -> float:
    return sum(float(p[value]) * math.log2(p[value] / q[value]) for value in p if p[value])


def test_printed_divergences_are_to_base_two() -> None:
    (cases,) = (example["cases"] for example in _examples(GOLDEN) if example.get("fn") == "kl_js")
    domain, _ = flat().bind(np.array(["a", "b"], dtype=object))
    for p, q, kl, js in cases:
        counts = [round(share * 1000) for share in q]
        codes = np.repeat(np.array([0, 1], dtype=np.int32), counts)
        reference = np.array([*(round(share * 1000) for share in p), 0])
        histogram = Histogram.of(np.zeros(len(codes), dtype=np.int32), 1, codes, domain, reference)
        found = divergences(histogram)
        assert (found["kl"][0], found["js"][0]) == pytest.approx((kl, js), abs=5e-5)


def _examples(golden: Any) -> list[dict[str, Any]]:
    found = [golden] if isinstance(golden, dict) else []
    below = golden.values() if isinstance(golden, dict) else golden if isinstance(golden, list) else ()
    return found + [example for part in below for example in _examples(part)]


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=examples(15))
@given(rows=st.lists(cells(), min_size=1, max_size=9), secret=st.sampled_from(["ward", "wage"]))
def test_sizes_and_majorities(name: str, rows: list[Row], secret: str) -> None:
    reading = written(FORMS[name][0], rows)
    classes = list(seen(reading, secret).values())
    outside = sum(len(values) - max(Counter(values).values()) for values in classes)
    assert classification_metric(reading, secret) == pytest.approx(outside / len(rows))
    found = diversity(reading, secret)
    assert found.least == min(len(set(values)) for values in classes)
    assert found.mean == pytest.approx(statistics.fmean(len(set(values)) for values in classes))
    sizes = Counter(reading.class_of.tolist()).values()
    assert discernibility(reading) == sum(size * size for size in sizes)
    bars = class_sizes(reading).bars
    assert {bar.first: (bar.last, bar.classes, bar.rows) for bar in bars} == {
        size: (size, count, size * count) for size, count in Counter(sizes).items()
    }


def test_many_sizes_stand_in_doublings() -> None:
    sizes = [*range(3, 40), 200]
    schema = ck.Schema(quasi={"id": ck.flat()}, sensitive={"ward": ck.flat()})
    table = Columns.of({"id": [f"g{size}" for size in sizes for _ in range(size)], "ward": ["a"] * sum(sizes)})
    bars = class_sizes(ck.generalized().read(table, schema)).bars
    assert [(bar.first, bar.last) for bar in bars] == [(3, 5), (6, 11), (12, 23), (24, 47), (48, 95), (96, 191), (192, 200)]
    for bar in bars:
        inside = [size for size in sizes if bar.first <= size <= bar.last]
        assert (bar.classes, bar.rows) == (len(inside), sum(inside))


def test_plain_columns_may_be_labels_and_unknown_ones_not() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ward": ck.flat()}, plain=["label"])
    table = Columns.of({"age": [1, 1, 1, 2], "ward": ["a", "b", "c", "d"], "label": ["x", "x", None, "y"]})
    reading = ck.generalized().read(table, schema)
    assert classification_metric(reading, "label") == 0.25
    with pytest.raises(ck.BadInput, match="is not in the release"):
        classification_metric(reading, "nothing")
    with pytest.raises(ck.BadInput, match="is not sensitive"):
        diversity(reading, "age")


def test_hidden_secrets_count_nowhere() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ward": ck.flat()})
    table = Columns.of({"age": [1, 1, 2, 2], "ward": ["a", "b", "a", "a"]})
    form = ck.generalized(suppressed="hidden")
    partition = Partition(np.array([0, 0, -1, -1], dtype=np.int32), 1)
    reading = form.read(form.write(schema.encode(table), partition, 0).columns, schema)
    assert classification_metric(reading, "ward") == 0.5
    assert diversity(reading, "ward").mean == 2
    assert class_distances(reading, "ward").variation.worst == 0
    (everyone,) = (
        form.read(form.write(schema.encode(table), p, 0).columns, schema)
        for p in [Partition(np.full(4, -1, dtype=np.int32), 0)]
    )
    assert diversity(everyone, "ward").mean is None and classification_metric(everyone, "ward") == 0
    assert measure_levels(everyone).secrets["ward"].l_distinct.measured is None


def test_a_perturbed_secret_is_measured_by_its_law() -> None:
    table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    form = ck.perturbed("1/2", ["disease"])
    release = ck.anonymize(table, schema, [ck.KAnonymity(5)], form=form)
    found = measures(release)
    law = form.laws(schema)["disease"]
    assert found.levels.secrets["disease"].gamma == float(law.gamma)
    assert found.levels.secrets["disease"].l_distinct is None and not found.levels.secrets["disease"].t
    assert "disease" not in found.distances and "disease" not in found.diversity and "stay" in found.distances
    with pytest.raises(ck.BadInput, match="is perturbed"):
        class_distances(release, "disease")


def test_measures_are_one_record_for_machines_and_people() -> None:
    table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    for form in ("generalized", "bucketized", "multiset"):
        release = ck.anonymize(table, schema, [ck.LDiversity("disease", 2, "frequency")], ck.Mondrian(), form=form)
        found = measures(release)
        assert Measures.model_validate_json(found.model_dump_json()) == found
        assert found.joint == release.certificate.joint and found.loss == release.loss
        assert found.sizes.summary.model_dump(exclude={"average_ratio"}) == release.certificate.classes.model_dump(
            exclude={"average_ratio"}
        )
        assert found.levels.secrets["disease"].l_frequency.measured >= 2
        assert found.loss_by_column == {name: a for name, (a, _) in release.certificate.loss.columns.items()}
        text = str(found)
        assert all(name in text for name in schema.sensitive) and "discernibility" in text


def test_what_left_a_stream_is_asked_by_windows() -> None:
    table, schema = ck.datasets.hospital(600), stream_schema()
    stream = ck.Castle(schema, k=5, delta=60, seed=2**100)
    blocks = [*stream.blocks_of(columns_named(table, schema)), *stream.blocks_at_end()]
    positions = np.concatenate([block.rows for block in blocks])
    cells_ = {name: [cell for block in blocks for cell in block.columns[name].cells()] for name in schema.published}
    left = Columns.of(cells_)
    found = window_errors(left, positions, table, schema, 150, count=40)
    assert len(found.medians) == 4 and found.queries == 40 and found.absent == 600 - len(positions)
    for i, median in enumerate(found.medians):
        mine = np.flatnonzero(positions // 150 == i)
        part = Columns.of({name: [cells_[name][j] for j in mine] for name in schema.published})
        workload = queries(table, schema, count=40, seed=150 * i)
        assert (
            median == workload_error(ck.generalized().read(part, schema), table.take(np.arange(150) + 150 * i), workload).median
        )
    assert found.mean == pytest.approx(statistics.fmean(found.medians))
    assert "4 windows" in str(found)


def test_suppressed_rows_are_absent_from_their_window() -> None:
    table, schema = ck.datasets.hospital(200), stream_schema()
    rows = np.arange(100)
    found = window_errors(table.take(rows), rows, table, schema, 100, theta=0.5, count=30)
    assert found.medians == (0.0, 1.0) and found.mean == 0.5 and found.absent == 100
    assert window_errors(table, np.arange(200), table, schema, 201).mean is None
    for positions in (rows[:99], rows + 101):
        with pytest.raises(ck.BadInput, match="are not those of"):
            window_errors(table.take(rows), positions, table, schema, 100)


def test_replayed_streams_are_measured_like_releases() -> None:
    table, schema = ck.datasets.hospital(300), stream_schema()
    for stream in (ck.Castle(schema, k=5, delta=60, seed=2**100), windows(schema)):
        release = ck.replay(stream, columns_named(table, schema))
        assert workload_error(release, table, queries(table, schema, count=50)).median is not None
        assert measures(release).rows == release.columns.rows


def windows(schema: ck.Schema) -> Any:
    return ck.SabreWindow(schema, [ck.TCloseness("disease", 0.6)], omega=100, advance=50, seed=2**100)


def stream_schema() -> ck.Schema:
    whole = ck.datasets.hospital_schema()
    kinds = {"age": ck.numeric(0, 120), "sex": whole.quasi["sex"], "job": whole.quasi["job"]}
    return ck.Schema(quasi=kinds, sensitive={"disease": whole.sensitive["disease"]})


def columns_named(table: Columns, schema: ck.Schema) -> Columns:
    return Columns({name: table[name] for name in schema.published}, table.rows)

"""KnnStream keeps the guarantees of Castle, by the same checker, and takes near rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.streams.knn_stream import KnnStream
from conftest import examples
from streams_checked import Watched, bursts_and_silence, raw_rows, same_in_blocks, schema

quiet = pytest.mark.filterwarnings("ignore:with delta")
slow = settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
DIVERSE = st.sampled_from([None, 2, 3])


@quiet
@slow
@given(raw_rows(), st.integers(1, 6), st.integers(1, 25), st.booleans(), DIVERSE)
def test_every_guarantee_at_every_instant(rows: list[Any], k: int, delta: int, persons: bool, l: Any) -> None:
    stream = KnnStream(schema(persons), k, delta, l, seed=3)
    watched = Watched(stream, persons=persons, distinct=l or 1)
    for row in rows:
        watched.push(row)
    watched.flush()
    assert stream.counters.delay_most <= delta


@quiet
@slow
@given(raw_rows(), st.lists(st.sampled_from([0, 0, 0, 0.5, 2, 31]), min_size=60, max_size=60), st.data())
def test_seconds_with_bursts_and_silence(rows: list[Any], gaps: list[float], data: st.DataObject) -> None:
    now = [1000.0]
    stream = KnnStream(schema(), 2, "10s", seed=3, clock=lambda: now[0])
    watched = Watched(stream)
    bursts_and_silence(watched, rows, gaps, now, data)


@quiet
@slow
@given(raw_rows(), st.integers(1, 4), st.integers(1, 25), st.booleans(), DIVERSE, st.lists(st.integers(0, 99)))
def test_blocks_do_not_matter(rows: list[Any], k: int, delta: int, persons: bool, l: Any, cuts: list[int]) -> None:
    same_in_blocks(lambda: KnnStream(schema(persons), k, delta, l, seed=5), rows, cuts)


def test_blocks_do_not_matter_in_seconds() -> None:
    rows = [{"age": i * 7 % 100, "city": "Rome", "sex": "f", "ill": "flu", "name": str(i % 30)} for i in range(300)]

    def make() -> KnnStream:
        times = iter(np.cumsum(np.arange(10_000) % 4).tolist())
        return KnnStream(schema(), 3, "9s", seed=5, clock=lambda: next(times))

    same_in_blocks(make, rows, [10, 11, 200])


def test_time_may_come_from_ticks_alone() -> None:
    stream = KnnStream(schema(), 2, "10s", seed=5, clock="tick")
    stream.tick(100)
    for name in "AB":
        assert stream.push({"age": 30, "city": "Rome", "sex": "f", "ill": "flu", "name": name}) == []
    assert stream.tick(109.9) == [] and len(stream.tick(110)) == 2
    assert stream.counters.wait_most == 10


def test_the_nearest_leave_together_and_the_end_takes_all() -> None:
    ages = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    stream = KnnStream(ages, k=2, delta=4, seed=1)
    out = [stream.push({"age": age, "ill": "flu"}) for age in (30, 80, 31, 50, 90, 81, 51)]
    assert [[row["age"] for row in rows] for rows in out if rows] == [["[30, 31]"] * 2, ["[80, 81]"] * 2]
    assert [row["age"] for row in stream.flush()] == ["[50, 90]"] * 3


def test_diversity_takes_the_nearest_new_value_of_another_person() -> None:
    stream = KnnStream(schema(), k=2, delta=4, l=2, seed=1)
    rows = [(30, "flu", "A"), (31, "flu", "B"), (32, "gout", "A"), (60, "gout", "C"), (50, "SARS", "D")]
    same = {"city": "Rome", "sex": "f"}
    out = [row for age, ill, name in rows for row in stream.push({"age": age, "ill": ill, "name": name, **same})]
    assert sorted(row["ill"] for row in out) == ["SARS", "flu", "flu"] and {row["age"] for row in out} == {"[30, 50]"}


def test_a_guarantee_that_shrinks_when_classes_merge() -> None:
    chance = np.random.default_rng(3)
    models = [ck.KAnonymity(3), ck.LDiversity("ill", 2, "entropy")]
    stream = KnnStream(schema(), delta=40, models=models, seed=1)
    watched = Watched(stream, distinct=2)
    for _ in range(300):
        ill = "flu" if chance.random() < 0.6 else "gout"
        age, name = int(chance.integers(0, 100)), f"P{chance.integers(0, 50)}"
        watched.push({"age": age, "city": "Rome", "sex": "f", "ill": ill, "name": name})
    watched.flush()
    assert stream.counters.rows_out > 200


def test_memory_is_bounded_by_the_delay() -> None:
    stream = KnnStream(schema(), k=5, delta=100, seed=1)
    for i in range(2000):
        stream.push({"age": i * 7 % 100, "city": "Rome", "sex": "f", "ill": "flu", "name": str(i % 90)})
        assert len(stream.pending) <= 101
    assert len(stream.pending._here) == 128 and stream.counters.suppressed == 0


def test_a_checkpoint_resumes_as_if_nothing_had_happened(tmp_path: Path) -> None:
    rows = [{"age": i * 7 % 100, "city": "Rome", "sex": "f", "ill": "flu", "name": str(i % 90)} for i in range(300)]
    one = KnnStream(schema(), 4, "5m", seed=1, clock="tick")
    one.tick(0)
    for i, row in enumerate(rows[:150]):
        one.tick(4 * i)
        one.push(row)
    one.save(tmp_path / "stream")
    other = KnnStream.load(tmp_path / "stream")
    for i, row in enumerate(rows[150:], 150):
        assert one.tick(4 * i) == other.tick(4 * i)
        assert one.push(row) == other.push(row)
    assert one.flush() == other.flush() and one.counters == other.counters


def test_wrong_parameters_are_named() -> None:
    with pytest.raises(ck.BadInput, match=r"t_closeness compares with a reference.*SabreWindow"):
        KnnStream(schema(), k=2, models=[ck.TCloseness("ill", 0.2)])
    with pytest.raises(ck.BadInput, match="delta=0 is too small"):
        KnnStream(schema(), k=2, delta=0)
    with pytest.warns(UserWarning, match="every row will be suppressed"):
        KnnStream(schema(), k=4, delta=2)

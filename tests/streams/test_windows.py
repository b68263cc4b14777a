"""Windows over streams: every class is close to its window, no row is late, each is published once; judged independently."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.streams.burel_window import BurelWindow
from closeknit.streams.sabre_window import SabreWindow
from closeknit.streams.windowed import Windowed
from conftest import examples
from windows_checked import (
    METHODS,
    NAMES,
    NUMBERS,
    TREE,
    Run,
    as_columns,
    equal,
    gain_is_kept,
    hierarchical,
    ordered,
    schema_of,
    shown,
    streams,
    table_rows,
)

T = st.sampled_from([0, Fraction(1, 10), Fraction(1, 4), Fraction(2, 5)])


@settings(max_examples=examples(40))
@given(streams(NUMBERS), T, st.sampled_from([1, 2, 4]), st.sampled_from(sorted(METHODS)))
def test_classes_are_near_their_window_on_a_line(made: Any, t: Fraction, k: int, method: str) -> None:
    rows, omega, advance = made
    run = Run.of(METHODS[method](schema_of(ck.numeric()), [ck.TCloseness("secret", t)], omega, advance, seed=1, k=k), rows)
    run.check(lambda q, p: ordered(q, p) <= t, k)
    if k == 1:
        assert run.expired() == set()  # only the end of a stream can be out of reach


@settings(max_examples=examples(40))
@given(streams(NAMES), T, st.sampled_from([1, 3]), st.sampled_from([*METHODS, "equal"]))
def test_classes_are_near_their_window_in_a_tree(made: Any, t: Fraction, k: int, method: str) -> None:
    rows, omega, advance = made
    distance = "equal" if method == "equal" else None
    models = [ck.TCloseness("secret", t, distance=distance)]
    run = Run.of(METHODS.get(method, SabreWindow)(schema_of(TREE), models, omega, advance, seed=1, k=k), rows)
    run.check(lambda q, p: (equal if distance else hierarchical)(q, p) <= t, k)
    assert k > 1 or run.expired() == set()


@settings(max_examples=examples(30))
@given(streams([*NUMBERS, None, 1000]), T)
def test_an_ordered_distance_has_no_place_for_missing_secrets(made: Any, t: Fraction) -> None:
    rows, omega, advance = made
    run = Run.of(SabreWindow(schema_of(ck.numeric(0, 100)), [ck.TCloseness("secret", t)], omega, advance, seed=1), rows)
    run.check(lambda q, p: ordered(q, p) <= t, placed=True)
    assert run.expired() == {i for i in range(max(0, len(rows) - omega)) if shown(rows[i]["secret"]) is None}


@settings(max_examples=examples(30))
@given(
    streams(NAMES, person=True),
    T,
    st.sampled_from([2, 4]),
    st.sampled_from(sorted(METHODS)),
    st.sampled_from(["together", "count-once"]),
)
def test_k_counts_persons(made: Any, t: Fraction, k: int, method: str, rows_of_one: str) -> None:
    rows, omega, advance = made
    schema = schema_of(TREE, person=True, rows=rows_of_one)
    run = Run.of(METHODS[method](schema, [ck.TCloseness("secret", t), ck.KAnonymity(k)], omega, advance, seed=1), rows)
    run.check(lambda q, p: hierarchical(q, p) <= t, k, person=True)


@settings(max_examples=examples(40))
@given(streams(NAMES), st.sampled_from([0.5, 1, 3]), st.sampled_from([1, 3]), st.booleans())
def test_no_secret_is_much_likelier_than_in_the_window(made: Any, beta: float, k: int, cuts: bool) -> None:
    rows, omega, advance = made
    models = [ck.BetaLikeness("secret", beta)]
    stream: Callable[..., Windowed] = METHODS["mondrian"] if cuts else BurelWindow
    run = Run.of(stream(schema_of(TREE), models, omega, advance, seed=1, k=k), rows)
    run.check(lambda q, p: gain_is_kept(q, p, beta), k)
    assert k > 1 or run.expired() == set()


@settings(max_examples=examples(25))
@given(streams(NAMES, person=True), st.sampled_from([0, Fraction(1, 4)]), st.sampled_from([None, 0.4]), st.data())
def test_many_rows_at_once_are_the_same_as_one_by_one_and_as_before_a_stop(
    tmp_path_factory: pytest.TempPathFactory, made: Any, t: Fraction, long_run: float | None, data: st.DataObject
) -> None:
    rows, omega, advance = made
    schema, models = schema_of(TREE, person=True), [ck.TCloseness("secret", t)]

    def stream() -> SabreWindow:
        return SabreWindow(schema, models, omega, advance, seed=7, k=2, long_run=long_run)

    one = stream()
    single = [out for row in rows for out in one.push(row)] + one.flush()
    at = data.draw(st.integers(0, len(rows)))
    many, path = stream(), tmp_path_factory.mktemp("stream") / "at"
    out = table_rows(many.push_many(as_columns(rows[:at], schema)))
    many.save(path)
    many = SabreWindow.load(path)
    out += table_rows(many.push_many(as_columns(rows[at:], schema))) + many.flush()
    assert out == single
    same = ("rows_in", "rows_out", "suppressed", "batches", "unknown")
    assert [getattr(one.counters, name) for name in same] == [getattr(many.counters, name) for name in same]


@pytest.mark.soak
@pytest.mark.parametrize("method", ["sabre", "mondrian"])
def test_long_streams_in_large_windows(method: str) -> None:
    rng = random.Random(2)
    jobs, sexes = ["clerk", "lawyer", "smith", "cook", "baker", "?"], ["f", "m", None]
    rows = [
        {
            "age": rng.randrange(100),
            "job": rng.choice(jobs),
            "sex": rng.choice(sexes),
            "secret": int(rng.expovariate(0.2)),
            "id": i,
        }
        for i in range(120_000)
    ]
    stream = METHODS[method](schema_of(ck.numeric()), [ck.TCloseness("secret", "0.05")], seed=1, k=10)
    run = Run.of(stream, rows, at_once=5000)
    run.check(lambda q, p: ordered(q, p) <= Fraction(1, 20), 10)
    assert stream.counters.suppressed == 0

"""KnitStream keeps the guarantees of Castle by the same checker, loses less than it, and never works long for one row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.kernels.geometry.declared_axes import NUMBER, Axes, Reals, box_costs, boxes_of, range_costs
from closeknit.kernels.streaming.looking_cuts import measure_sides, propose_cuts
from closeknit.kernels.streaming.peeled_boxes import NEVER, peel_box
from closeknit.kernels.streaming.polishing import polish_classes
from closeknit.streams import knit_stream
from closeknit.streams.knit_stream import KnitStream, Piece
from closeknit.streams.stream_request import StreamRequest
from conftest import examples
from streams_checked import Watched, bursts_and_silence, raw_rows, same_in_blocks, schema

quiet = pytest.mark.filterwarnings("ignore:with delta")
slow = settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
DIVERSE = st.sampled_from([None, 2, 3])
DELAYS = st.sampled_from([1, 4, 9, 20, 33, 40])  # from 32 on a cut takes several steps


@quiet
@slow
@given(raw_rows(90), st.integers(1, 6), DELAYS, st.booleans(), DIVERSE)
def test_every_guarantee_at_every_instant(rows: list[Any], k: int, delta: int, persons: bool, l: Any) -> None:
    stream = KnitStream(schema(persons), k, delta, l, seed=3)
    watched = Watched(stream, persons=persons, distinct=l or 1)
    for row in rows:
        watched.push(row)
    watched.flush()
    assert stream.counters.delay_most <= delta


@quiet
@slow
@given(raw_rows(), st.lists(st.sampled_from([0, 0, 0, 0.1, 0.5, 2, 31]), min_size=60, max_size=60), st.data())
def test_seconds_with_bursts_and_silence(rows: list[Any], gaps: list[float], data: st.DataObject) -> None:
    now = [1000.0]
    stream = KnitStream(schema(), 2, "10s", seed=3, clock=lambda: now[0])
    bursts_and_silence(Watched(stream), rows, gaps, now, data)


@quiet
@slow
@given(raw_rows(90), st.integers(1, 4), DELAYS, st.booleans(), DIVERSE, st.lists(st.integers(0, 99)))
def test_blocks_do_not_matter(rows: list[Any], k: int, delta: int, persons: bool, l: Any, cuts: list[int]) -> None:
    same_in_blocks(lambda: KnitStream(schema(persons), k, delta, l, seed=5), rows, cuts)


def many(count: int) -> list[dict[str, Any]]:
    return [{"age": i * 7 % 100, "city": "Rome", "sex": "fm"[i % 2], "ill": "flu", "name": str(i % 90)} for i in range(count)]


def test_blocks_do_not_matter_in_seconds() -> None:
    def make() -> KnitStream:
        times = iter(np.cumsum(np.arange(10_000) % 4 / 4).tolist())
        return KnitStream(schema(), 3, "40s", seed=5, clock=lambda: next(times))

    same_in_blocks(make, many(400), [10, 11, 200])


def test_every_piece_meets_the_guarantees_and_no_row_is_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knit_stream, "SAMPLED", 40)  # so that cuts are chosen by samples too
    stream, seen = KnitStream(schema(), k=4, delta=640, l=None, seed=1), 0
    for row in many(2500):
        stream.push(row)
        seen += len(stream.pieces) > 1
        waiting = np.concatenate([np.empty(0, np.int64), *(piece.positions for piece in stream.pieces)])
        assert len(np.unique(waiting)) == len(waiting) == (stream.left if stream.pieces else 0)
        assert set(waiting.tolist()) <= set(stream.pending.positions().tolist())
        for piece in stream.pieces:
            assert len(np.unique(stream.pending.persons(piece.positions))) >= 4
    assert seen > 20 and stream.counters.suppressed == 0


def test_a_cut_is_published_step_by_step() -> None:
    """In the last 128th of the delay, evenly: no row waits for the work of all others."""
    stream, out = KnitStream(schema(False), k=5, delta=12_800, seed=1), []
    for row in many(13_000):
        out.append(len(stream.push(row)))
    assert sum(out[:12_701]) == 0 and sum(out[12_701:12_801]) == 12_701
    assert max(out) <= 5 * 12_701 // 100 and sum(count > 0 for count in out) > 80


def test_parts_of_a_piece_keep_their_orders() -> None:
    chance = np.random.default_rng(1)
    rows = chance.integers(0, 5, (50, 3)).astype(float)  # with ties
    piece = Piece(np.arange(100, 150), False, rows, np.argsort(rows.T, axis=1, kind="stable"))
    part = piece.take(rows[:, 1] > 2)
    assert part.rows is not None and part.orders is not None
    assert part.orders.tolist() == np.argsort(part.rows.T, axis=1, kind="stable").tolist()
    assert part.rows.tolist() == rows[part.positions - 100].tolist()


def any_rows(seed: int, size: int) -> tuple[np.random.Generator, Axes, Reals]:
    """Rows of a number, a tree and a column without order, some of them missing."""
    chance, axes = np.random.default_rng(seed), KnitStream(schema(), 2, 9).coder.axes
    rows = chance.integers(0, [100, len(axes.leaf_node) // 2, 2], (size, 3)).astype(float)
    absent = chance.random((size, 3)) < 0.05
    rows[absent] = np.broadcast_to(axes.missing, rows.shape)[absent]
    return chance, axes, rows


@slow
@given(st.integers(0, 2**32), st.integers(2, 60), st.integers(1, 9))
def test_a_peeled_box_is_what_its_bounds_say(seed: int, size: int, least: int) -> None:
    """Its rows are all rows between its bounds, each side has enough of them, and its value is that of the two boxes."""
    chance, axes, rows = any_rows(seed, size)
    worth, inside, bounds = chance.random((2, size + 1)), np.zeros(size, dtype=bool), np.zeros((2, 3))
    value = peel_box(axes, rows, np.argsort(rows.T, axis=1, kind="stable"), float(least), worth, inside, bounds)
    if value == NEVER:
        assert not inside.any()
        return
    assert inside.tolist() == ((rows >= bounds[0]) & (rows <= bounds[1])).all(axis=1).tolist()
    counts = np.bincount(~inside, minlength=2)
    assert counts.min() >= least
    costs = range_costs(axes, *boxes_of(rows, (~inside).astype(np.int64), 2)) * axes.weight
    kept = worth[(axes.kind != NUMBER).astype(int)][:, counts].T  # by side and column
    assert value == pytest.approx(float(counts @ (costs * kept).sum(axis=1)))


@slow
@given(st.integers(0, 2**32), st.integers(2, 60), st.integers(1, 9), st.booleans())
def test_sides_are_measured_as_their_boxes(seed: int, size: int, least: int, backwards: bool) -> None:
    """For every cut that leaves enough rows on both sides, also where a side has only some of all rows."""
    chance, axes, rows = any_rows(seed, size)
    some = np.flatnonzero(chance.random(size) < 0.8)
    orders = some[np.argsort(rows[some].T, axis=1, kind="stable")]
    n, place, losses = len(some), np.zeros(size, np.int64), np.full((2, size + 1), np.nan)
    if n < max(2 * least, 2):
        return
    cut = chance.permutation(orders[0]) if seed % 2 else orders[0]
    place[cut] = np.arange(n)
    measure_sides(axes, rows.T.copy(), orders, place, np.bool_(backwards), np.int64(least), losses)
    for i in range(least, n - least + 1):
        side = rows[cut[n - i :] if backwards else cut[:i]]
        costs = range_costs(axes, side.min(axis=0)[None], side.max(axis=0)[None])[0] * axes.weight
        numbers = axes.kind == NUMBER
        assert losses[:, i] == pytest.approx([costs[numbers].sum(), costs[~numbers].sum()])


def test_a_cut_of_two_columns_is_found_where_no_column_alone_divides_the_rows_well() -> None:
    """20 rows are near in both columns, ten others only in one, and ten only in the other: fewer than k = 15 on a side."""
    axes = KnitStream(ck.Schema(quasi={"a": ck.numeric(0, 99), "b": ck.numeric(0, 99)}), 15, 40).coder.axes
    near, far = np.arange(20.0) / 10, 5 * np.arange(20.0)
    even = np.arange(20) % 2 == 0
    rows = np.concatenate([np.c_[near, near], np.c_[np.where(even, near, far), np.where(even, far, near)]])
    orders = np.argsort(rows.T, axis=1, kind="stable")
    order, sides, bounds = propose_cuts(axes, rows, orders, np.empty(0, np.int64), 15, 1.0, 3)
    best = order[0]
    assert np.isfinite(bounds[best]).any(axis=0).all()
    assert sides[best][:20].all() and sides[best].sum() < 25
    one = propose_cuts(axes, rows, orders, np.arange(40) // 4, 15, 1.0, 3)  # ten persons: neither side can have 15
    assert len(one[0]) == 0


@pytest.mark.parametrize(("k", "tries", "sampled"), [(49, 6, 1024), (50, 3, 2048)])
def test_small_classes_follow_more_cuts_and_large_ones_take_larger_samples(k: int, tries: int, sampled: int) -> None:
    stream = KnitStream(schema(), k, 100, seed=1)
    assert (stream.tries, stream.sampled) == (tries, sampled)
    assert KnitStream(schema(), k, 100, tries=0, seed=1).tries == 0


@pytest.mark.parametrize("persons", [False, True])
def test_large_classes_keep_every_guarantee(persons: bool) -> None:
    """From k = 50 on other numbers apply: samples of more rows, larger boxes, one cut followed."""
    chance = np.random.default_rng(3)
    stream = KnitStream(schema(persons), 50, 3000, 2, seed=1)
    watched = Watched(stream, persons=persons, distinct=2)
    for i in range(3600):
        cells = {"age": int(chance.beta(2, 4) * 100), "city": "Rome", "sex": "fm"[i % 2]}
        watched.push({**cells, "ill": ["flu", "gout"][int(chance.random() < 0.4)], "name": str(i % 3000)})
    watched.flush()
    assert stream.counters.delay_most <= 3000 and stream.counters.suppressed == 0


@slow
@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from([0, 8, 40]))
def test_polishing_keeps_k_persons_and_never_loses_more(seed: int, k: int, persons: int) -> None:
    chance, axes = np.random.default_rng(seed), KnitStream(schema(), 2, 9).coder.axes
    rows = chance.integers(0, [100, len(axes.leaf_node) // 2, 2], (60, 3)).astype(float)
    person_of = chance.integers(0, persons, 60) if persons else np.empty(0, np.int64)
    class_of = np.sort(chance.integers(0, 3, 60))
    before = class_of.copy()

    def measure(classes: Any) -> float:
        return float(np.bincount(classes, minlength=3) @ box_costs(axes, *boxes_of(rows, classes, 3)))

    def count(classes: Any) -> list[int]:
        return [len(np.unique(person_of[classes == c])) if persons else int((classes == c).sum()) for c in range(3)]

    few = min(k, *count(before))
    changes = polish_classes(axes, rows, person_of, class_of, 3, few, 4)
    assert min(count(class_of)) >= few
    assert measure(class_of) < measure(before) if changes else class_of.tolist() == before.tolist()


def test_a_class_of_one_row_keeps_it() -> None:
    """With k = 1 it has no box without its row; a kernel that reads beyond the trees finds a node that does not exist."""
    axes, chance = KnitStream(schema(), 1, 9).coder.axes, np.random.default_rng(1)
    longer = np.append(axes.leaf_node, np.full(1000, 1 << 40))
    axes = axes._replace(leaf_node=longer[: len(axes.leaf_node)])
    rows = chance.integers(0, [100, len(axes.leaf_node) // 2, 2], (40, 3)).astype(float)
    class_of = np.r_[np.arange(38), 37, 37]
    polish_classes(axes, rows, np.empty(0, np.int64), class_of, 38, 1, 3)
    assert class_of[:37].tolist() == list(range(37))


def test_classes_that_break_a_guarantee_are_not_polished() -> None:
    """Swapping the two rows in the middle would lose less, but leave one disease in a class."""
    cells = [(1, "flu"), (60, "gout"), (50, "flu"), (99, "gout")]
    stream = KnitStream(schema(False), 2, 9, l=2, seed=1)
    for age, ill in cells:
        stream.push({"age": age, "ill": ill, "city": "Rome", "sex": "f", "name": ill})
    classes = [np.array([0, 1]), np.array([2, 3])]
    assert stream._polish(classes) is classes
    assert [each.tolist() for each in KnitStream._polish(_without_models(stream), classes)] == [[0, 2], [1, 3]]


def _without_models(stream: KnitStream) -> KnitStream:
    stream.judge.models = ()
    return stream


def test_rows_of_equal_value_are_divided_in_no_order_that_arrival_reveals() -> None:
    """12 equal rows are two classes of 6; which row is in which depends on the secret of the stream."""
    classes = set()
    for seed in range(4):
        stream = KnitStream(schema(False), 6, 40, seed=seed)
        for i in range(12):
            stream.push({"age": i // 11, "ill": "flu", "city": "Rome", "sex": "f", "name": "Ann"})
        parts = stream._divide(Piece(np.arange(12)))
        assert [len(part.positions) for part in parts] == [6, 6]
        classes.add(min(tuple(part.positions.tolist()) for part in parts))
    assert len(classes) > 1


def test_it_loses_less_than_castle_and_than_mondrian_in_windows() -> None:
    chance = np.random.default_rng(1)
    numbers = {f"n{j}": chance.beta(2, 2 + j, 6000).round(3).tolist() for j in range(6)}
    columns = Columns.of({**numbers, "ill": ["flu"] * 6000})
    kinds = ck.Schema(quasi=dict.fromkeys(numbers, ck.numeric(0, 1)), sensitive={"ill": ck.flat()})
    streams = [
        KnitStream(kinds, k=20, delta=1000, seed=1),
        ck.Castle(kinds, k=20, delta=1000, seed=1),
        ck.Windowed(ck.Mondrian(), kinds, [ck.KAnonymity(20)], omega=1000, advance=1000, seed=1),
    ]
    for stream in streams:
        stream.push_many(columns)
    knit, castle, mondrian = (stream.counters.loss for stream in streams)
    assert knit < 0.79 * castle and knit < 0.90 * mondrian, (knit, castle, mondrian)


def test_diversity_limits_the_cuts() -> None:
    rows = [
        {"age": i % 50, "city": "Rome", "sex": "f", "ill": "flu" if i % 50 < 25 else "gout", "name": str(i)} for i in range(500)
    ]
    stream = KnitStream(schema(), k=3, delta=320, l=2, seed=1)
    watched = Watched(stream, distinct=2)
    for row in rows:
        watched.push(row)
    watched.flush()
    assert stream.counters.suppressed == 0


@quiet
def test_rows_that_cannot_form_a_class_are_published_with_the_nearest_or_suppressed() -> None:
    same = {"city": "Rome", "sex": "f"}
    rows = [(30, "flu", "A"), (31, "flu", "B"), (32, "gout", "A"), (60, "gout", "C"), (50, "SARS", "D"), (51, "flu", "E")]
    stream = KnitStream(schema(), k=6, delta=4, seed=1)  # five persons wait at most
    for age, ill, name in rows:
        assert stream.push({"age": age, "ill": ill, "name": name, **same}) == []
    assert stream.flush() == [] and stream.counters.suppressed == 6


def test_memory_is_bounded_by_the_delay() -> None:
    stream = KnitStream(schema(), k=5, delta=100, seed=1)
    for row in many(2000):
        stream.push(row)
        assert len(stream.pending) <= 101
    assert len(stream.pending._here) == 128 and stream.counters.suppressed == 0


def test_a_checkpoint_in_the_middle_of_a_cut_resumes_as_if_nothing_had_happened(tmp_path: Path) -> None:
    rows, stops = many(900), 0
    one = KnitStream(schema(), 4, 320, seed=1)
    for row in rows:
        if len(one.pieces) > 1 and stops < 5:
            stops += 1
            one.save(tmp_path / "stream")
            other = KnitStream.load(tmp_path / "stream")
            assert [piece.positions.tolist() for piece in other.pieces] == [piece.positions.tolist() for piece in one.pieces]
            assert one.push(row) == other.push(row)
            one = other
        else:
            one.push(row)
    assert stops == 5
    whole = KnitStream(schema(), 4, 320, seed=1)
    for row in rows:
        whole.push(row)
    assert whole.flush() == one.flush() and whole.counters == one.counters


def test_a_guarantee_with_a_reference_names_the_streams_that_have_one() -> None:
    with pytest.raises(ck.BadInput, match=r"t_closeness compares with a reference.*SabreWindow, BurelWindow and Windowed"):
        KnitStream(schema(), k=2, models=[ck.TCloseness("ill", 0.2)])


def test_parameters_without_a_name_are_its_own() -> None:
    requested = StreamRequest.of({"k": 3, "delta": "5s", "time": "seen"})
    assert isinstance(requested.build(schema(), [], 1), KnitStream) and requested.time == "seen"
    with pytest.raises(ck.BadInput, match="stream 'knit_stream' has no parameter 'eta'"):
        StreamRequest.of({"k": 4, "eta": 4})

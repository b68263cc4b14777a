"""Windows over streams: the examples of the source, its errors, the end of a stream, kinds of secrets, and what is refused."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.core.method import Method, ignore_progress
from closeknit.core.table import Outcome, Partition, Table
from closeknit.methods.rollup import select_classes
from closeknit.search.known_parts import judge_known_parts
from closeknit.streams.arrivals import Coder
from closeknit.streams.sabre_window import SabreWindow
from closeknit.streams.thinning import thin_rows
from closeknit.streams.window_tables import WindowTables
from closeknit.streams.windowed import Windowed
from conftest import examples
from windows_checked import METHODS, NAMES, TREE, Row, Run, hierarchical, ordered, schema_of

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "streams.json").read_text())
T = st.sampled_from([0, Fraction(1, 10), Fraction(1, 4), Fraction(2, 5)])


@dataclass(frozen=True)
class Scripted(Method):
    """Classes as written down, by the oldest row that waits."""

    name = "scripted"
    keeps_persons = True
    scale = "plan"
    script: Mapping[int, list[list[int]]]

    def run(self, table: Table, models: Any, seed: int, progress: Any) -> Outcome:
        classes = self.script[int(table.rows.min())]
        return Outcome(Partition.of([next(c for c, rows in enumerate(classes) if row in rows) for row in table.rows.tolist()]))


LINE = ck.Schema(quasi={"q": ck.numeric(0, 1)}, sensitive={"s": ck.numeric()})


def test_the_cases_of_example_6_1() -> None:
    golden = GOLDEN["sabre_w_example_6_1"]
    left: dict[int, list[int]] = defaultdict(list)
    for row, _, number in golden["events"]:
        left[number].append(row)
    script = {0: [left[1], [2, 3, 5, 6]], 2: [left[2], left[3], left[4]], 10: [left[5], left[6], [13, 14]]}
    models = [ck.TCloseness("s", golden["t"])]
    stream = Windowed(Scripted(script), LINE, models, omega=golden["omega"], advance=golden["I"], seed=1)
    cases, events = [], []
    for i, (s, q) in enumerate(golden["stream_S_q"]):
        before = list(stream.cases)
        waits = set(stream.pending.positions().tolist()) | {i}
        stream.push({"q": q, "s": s})
        cases += [f"case{c + 1}" for c in range(3) if stream.cases[c] > before[c]]
        events += [(row, i + 1) for row in waits - set(stream.pending.positions().tolist())]
    assert cases == golden["cases_repaired"]
    assert sorted(events) == sorted((row, at) for row, at, _ in golden["events"])


@pytest.mark.parametrize("name", ["sabre_w_example_6_1", "sabre_w_ground_distance"])
@pytest.mark.parametrize("method", sorted(METHODS))
def test_the_streams_of_the_source(name: str, method: str) -> None:
    golden = GOLDEN[name]
    schema, t = schema_of(ck.numeric()), Fraction(golden["t"])
    rows = [{"age": 100 * q, "job": "cook", "sex": "f", "secret": s, "id": i} for i, (s, q) in enumerate(golden["stream_S_q"])]
    run = Run.of(METHODS[method](schema, [ck.TCloseness("secret", t)], golden["omega"], golden["I"], seed=1, k=1), rows)
    run.check(lambda q, p: ordered(q, p) <= t)
    assert run.expired() == set()
    if method == "sabre" and name == "sabre_w_ground_distance":
        assert run.stream.counters.suppressed == 0


def test_t_zero_lets_rows_out() -> None:
    schema = schema_of(ck.numeric())
    rows = [{"age": i, "job": "cook", "sex": "f", "secret": i % 2, "id": i} for i in range(20)]
    run = Run.of(SabreWindow(schema, [ck.TCloseness("secret", 0)], omega=4, advance=2, seed=1), rows)
    run.check(lambda q, p: ordered(q, p) == 0)
    assert run.stream.counters.suppressed == 0 and run.stream.cases[1] > 0


def test_the_ground_distance_is_the_windows() -> None:
    """What waits has three values on a line of seven: as near as `t` in its own ranks is too far in the window's."""
    window, waiting = [1, 1, 2, 2, 3, 4, 5, 7, 7], [1, 1, 2, 2, 7, 7]
    schema = ck.Schema(quasi={"q": ck.numeric(0, 10)}, sensitive={"s": ck.numeric()})
    whole = schema.encode(Columns.of({"q": list(range(9)), "s": window}))
    rows = np.flatnonzero(np.isin(whole.sensitive[:, 0], np.unique(whole.sensitive[:, 0])[[0, 1, 5]]))
    domain = whole.sensitive_domains[0]
    assert [int(domain.texts[c]) for c in sorted(whole.sensitive[rows, 0])] == waiting
    part = whole.take(rows)
    table = replace(part, references={"s": whole.count_values("s").reference})
    model = ck.TCloseness("s", "0.28")
    assert model.exact_level(table.one_class(), 0) == Fraction(1, 9)
    for method in (ck.Sabre(), ck.Sabre(slack=False), ck.Mondrian(), ck.Burel()):
        models = [model] if method.needs_bound != "growth" else [model, ck.BetaLikeness("s", 1)]
        partition = method.run(table, models, 1, ignore_progress).partition
        for c in range(partition.count):
            members = Counter(int(domain.texts[v]) for v in table.sensitive[partition.class_of == c, 0])
            assert ordered(members, Counter(window)) <= Fraction(28, 100)


def test_references_go_with_a_table_and_judge_its_classes() -> None:
    schema = ck.Schema(quasi={"q": ck.prefix()}, sensitive={"s": ck.flat(), "r": ck.flat()})
    cells = {"q": ["11", "12", "13", "21"], "s": ["a", "a", "b", "c"], "r": ["x", "y", "x", "y"]}
    whole = schema.encode(Columns.of(cells))
    given = {"s": np.array([5, 3, 2, 0])}
    table = replace(whole, references=given).join_secrets([("s", "r")]).take(np.array([0, 1, 2]))
    classes = table.count_classes(Partition.of([0, 0, 1]))
    assert classes.histograms["s"].reference.tolist() == [5, 3, 2, 0]
    assert classes.merge(np.array([0, 0])).histograms["s"].reference.tolist() == [5, 3, 2, 0]
    assert classes.histograms["r"].reference.tolist() == [2, 1, 0]
    assert table.count_values("s").reference.tolist() == [2, 1, 0, 0]
    assert ck.TCloseness("s", 1).exact_level(classes, 0) == Fraction(1, 2)
    assert select_classes(classes, np.array([True, False]), table).histograms["s"].reference.tolist() == [5, 3, 2, 0]
    paired, models = judge_known_parts(table, [ck.TCloseness("s", 1)], {"s": np.zeros(3, np.int32)})
    assert models[0].levels(paired.count_classes(Partition.of([0, 0, 1]))).tolist() == [0.5, pytest.approx(0.7)]


SECRETS: dict[str, tuple[Any, list[Any]]] = {
    "days": (ck.date(lo="2020-01-01", hi="2020-12-31"), ["2020-01-05", "2020-02-07", "2020-02-09", None, "2031-01-01"]),
    "months": (ck.date(levels=["month", "year"]), [date(2020, 1, 3), date(2020, 1, 4), date(2020, 3, 3)]),
    "bins": (ck.numeric(0, 100, bins=5), [1, 30, 31, 99]),
    "codes": (ck.prefix(), ["470", "471", "48", "5", None]),
    "truths": (ck.flat(), [True, False]),
}


@pytest.mark.parametrize("secret", sorted(SECRETS))
@pytest.mark.parametrize("method", [ck.Mondrian(), ck.Fragmentation(), ck.Microaggregation(), ck.FcmDraw(), ck.PcaDraw()])
def test_every_kind_of_secret_and_every_method_serve_a_window(tmp_path: Path, secret: str, method: Any) -> None:
    kind, values = SECRETS[secret]
    quasi = {"age": ck.numeric(0, 10), "bin": ck.numeric(0, 100, bins=4), "day": ck.date(lo="2020-01-01", hi="2020-03-31")}
    schema = ck.Schema(quasi=quasi, sensitive={"x": kind, "y": ck.flat()})
    models = [ck.TCloseness("x", 0.4), ck.TCloseness(("x", "y"), 0.8), ck.LDiversity("y", 2), ck.KAnonymity(2)]
    stream, rng, homeless = Windowed(method, schema, models, 20, 10, seed=1), random.Random(3), 0
    for i in range(65):
        value = rng.choice(values)
        homeless += secret == "days" and value in (None, "2031-01-01")
        days = ["2020-01-05", "2020-02-07", None, "2021-01-01"]
        stream.push(
            {"age": rng.randrange(11), "bin": rng.randrange(101), "day": rng.choice(days), "x": value, "y": "abc"[i % 3]}
        )
    assert stream.counters.suppressed == homeless
    stream.save(tmp_path / "at")
    again = Windowed.load(tmp_path / "at")
    assert again.flush() == stream.flush() and again.counters == stream.counters
    assert stream.counters.rows_out >= 45 - homeless


def test_classes_that_are_written_alike_are_one_class() -> None:
    """A cell outside its domain makes its whole class write a star, and so does a missing cell among others."""
    schema = schema_of(TREE)
    ages = [130, 3, 200, 40, None, 3, 17, 17]
    rows = {"age": ages, "job": ["cook"] * 8, "sex": ["f"] * 8, "secret": ["flu"] * 8, "id": list(range(8))}
    coder = Coder(schema, b"secret")
    window, tables = coder.encode(Columns.of(rows), 0), WindowTables(schema, coder, (), ())
    waiting = tables.waiting(tables.secrets(window), window, np.arange(8), 0)
    class_of = np.arange(8)[waiting.table.rows] // 2
    written = waiting.merge_alike(Partition.of(class_of))
    groups = {frozenset(waiting.table.rows[written.class_of == c].tolist()) for c in range(written.count)}
    assert groups == {frozenset(range(6)), frozenset({6, 7})}


@pytest.mark.parametrize(("person_rows", "split"), [("together", False), ("count-once", True)])
def test_rows_of_a_person_stay_together_in_a_window(person_rows: Any, split: bool) -> None:
    ages = random.Random(3)
    schema = ck.Schema(
        quasi={"age": ck.numeric(0, 100)},
        sensitive={"ill": ck.flat()},
        plain=["tag"],
        allow_unique=["tag"],
        person="who",
        person_rows=person_rows,
    )
    stream = Windowed(ck.Mondrian(), schema, [ck.TCloseness("ill", 0.6)], omega=80, advance=80, k=3, seed=2**100)
    rows = [{"who": i // 2, "age": ages.randrange(100), "ill": "flu" if i % 3 else "gout", "tag": i} for i in range(80)]
    left = [one for row in rows for one in stream.push(row)] + stream.flush()
    classes = defaultdict(set)
    for row in left:
        classes[row["tag"] // 2].add((row["window"], row["age"]))
    assert len(left) == 80 and len(set.union(*classes.values())) > 5
    assert (max(map(len, classes.values())) > 1) == split


def test_a_window_without_k_persons_is_suppressed_and_counted() -> None:
    schema = schema_of(TREE, person=True)
    rows = [{"age": 3, "job": "cook", "sex": "f", "secret": "flu", "id": i, "who": "Ann"} for i in range(20)]
    run = Run.of(SabreWindow(schema, [ck.TCloseness("secret", 1)], omega=4, advance=2, k=2, seed=1), rows)
    assert run.left == [] and run.stream.counters.suppressed == 20


def test_what_cannot_be_partitioned_is_published_with_the_classes_of_an_earlier_window() -> None:
    """The second half of the stream has one person only; rows of the first half that wait leave in time all the same."""
    schema = schema_of(TREE, person=True)
    ages = [10, 10, 90, 90] * 2 + [50] * 8
    rows = [
        {"age": age, "job": "cook", "sex": "f", "secret": "flu", "id": i, "who": f"p{i}" if i < 8 else "Ann"}
        for i, age in enumerate(ages)
    ]
    run = Run.of(Windowed(ck.Mondrian(), schema, [ck.KAnonymity(2)], omega=8, advance=2, seed=1), rows)
    run.check(lambda q, p: True, k=2, person=True)
    assert set(range(8)) <= {out["id"] for _, out in run.left}


def test_equal_cells_of_two_windows_are_distinguished_by_their_number() -> None:
    schema = schema_of(ck.numeric())
    rows = [{"age": 17, "job": "cook", "sex": "f", "secret": s, "id": i} for i, s in enumerate([1, 2, 1, 2, 8, 9, 8, 9])]
    run = Run.of(SabreWindow(schema, [ck.TCloseness("secret", 0)], omega=4, advance=4, seed=1), rows)
    run.check(lambda q, p: ordered(q, p) == 0)
    assert Counter(out["window"] for _, out in run.left) == {0: 4, 1: 4}


def test_a_homogeneous_window_is_close_to_itself_and_far_from_the_long_run() -> None:
    schema = schema_of(TREE)

    def run(long_run: float | None) -> set[int]:
        secrets = ["flu", "burn", "gout", "asthma"] * 20 + ["flu"] * 16 + ["flu", "burn", "gout", "asthma"] * 10
        rows = [{"age": i % 90, "job": "cook", "sex": "f", "secret": s, "id": i} for i, s in enumerate(secrets)]
        models = [ck.TCloseness("secret", 0.2)]
        done = Run.of(SabreWindow(schema, models, omega=8, advance=4, seed=1, k=2, long_run=long_run), rows)
        done.check(lambda q, p: hierarchical(q, p) <= Fraction(1, 5), 2)
        return {out["id"] for _, out in done.left}

    assert set(range(84, 92)) <= run(None)
    assert set(range(84, 92)).isdisjoint(run(0.4))
    assert set(range(72)) | set(range(108, 136)) <= run(0.4)


def test_the_last_rows_are_thinned_until_they_are_near_their_window() -> None:
    """Of four rows that wait for the end, three are near the last window."""
    made = [(90, 9), (70, 1), (80, 9), (50, 1), (50, 1), (40, 2), (70, 2), (90, 9), (40, 9), (0, 9)]
    rows = [{"age": age, "job": "cook", "sex": "f", "secret": s, "id": i} for i, (age, s) in enumerate(made)]
    models = [ck.TCloseness("secret", 0.2)]
    run = Run.of(Windowed(ck.Mondrian(), schema_of(ck.numeric()), models, omega=6, advance=3, seed=1), rows)
    run.check(lambda q, p: ordered(q, p) <= Fraction(1, 5))
    assert [run.stream.counters.suppressed, sum(arrived == -1 for arrived, _ in run.left)] == [1, 3]


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.lists(st.integers(0, 4), max_size=12), T)
def test_thinning_takes_what_helps_most(waits: list[int], gone: list[int], t: Fraction) -> None:
    schema = ck.Schema(quasi={"q": ck.flat()}, sensitive={"s": ck.numeric(0, 4)})
    whole = schema.encode(Columns.of({"q": ["w"] * len(waits) + ["g"] * len(gone), "s": waits + gone}))
    part = whole.take(np.flatnonzero(whole.rows < len(waits)))
    kept = thin_rows(replace(part, references={"s": whole.count_values("s").reference}), [ck.TCloseness("s", t)])
    window, left = Counter(waits + gone), Counter(waits)
    while left and ordered(left, window) > t:
        left = min((left - Counter([v]) for v in sorted(left)), key=lambda rest: ordered(rest, window) if rest else 0)
    found = Counter(waits[i] for i in part.rows[kept].tolist())
    assert found.total() == left.total()
    assert not found or ordered(found, window) <= t


def test_the_seed_repeats_and_the_order_shows_nothing_of_it() -> None:
    rng = random.Random(5)
    rows = [
        {"age": rng.randrange(90), "job": rng.choice(["cook", "clerk"]), "sex": "f", "secret": rng.choice(NAMES[:4]), "id": i}
        for i in range(300)
    ]

    def outs(seed: int) -> list[Row]:
        return Run.of(SabreWindow(schema_of(TREE), [ck.TCloseness("secret", 0.3)], 100, 50, seed=seed, k=3), rows).left

    assert outs(1) == outs(1)
    first = [row for arrived, row in outs(1) if arrived == 150]
    cells = [(row["age"], row["job"], row["sex"]) for row in first]
    starts = [float(cell[0].strip("[]").split(",")[0]) for i, cell in enumerate(cells) if cell != cells[i - 1]]
    assert len(starts) > 3 and starts == sorted(starts)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"omega": 7, "advance": 2}, "not a multiple"),
        ({"omega": 4, "advance": 0}, "advance"),
        ({"omega": 0, "advance": 1}, "omega"),
        ({"models": []}, "no guarantee"),
        ({"models": [ck.TCloseness("age", 0.2)]}, "not sensitive"),
        ({"models": [ck.BetaLikeness("secret", 1)]}, "needs a guarantee that bounds the distance"),
        ({"models": [ck.TCloseness("secret", 0.2, distance="ordered")]}, "without an order"),
        ({"long_run": 2}, "long_run"),
        ({"k": 0}, "k"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_first_row(params: Row, said: str) -> None:
    requested: Row = {"models": [ck.TCloseness("secret", 0.2)], "omega": 8, "advance": 4, **params}
    with pytest.raises(ck.BadInput, match=said):
        SabreWindow(schema_of(TREE), **requested)


@pytest.mark.parametrize("method", [ck.Slicing(), ck.Anatomy(), ck.Mondrian, "mondriaan"])
def test_only_methods_that_make_classes_serve_a_window(method: Any) -> None:
    with pytest.raises(ck.BadInput):
        Windowed(method, schema_of(TREE), [ck.KAnonymity(2)], 8, 4)


def test_memory_is_that_of_a_window() -> None:
    stream = SabreWindow(schema_of(TREE), [ck.TCloseness("secret", 0.3)], omega=64, advance=16, seed=1, k=4, long_run=0.5)
    for i in range(1000):
        stream.push({"age": i % 97, "job": "cook", "sex": "f", "secret": NAMES[i % 4], "id": i})
        assert len(stream.recent) <= 80 and len(stream.pending) <= 80 and sum(map(len, stream.held)) <= 64

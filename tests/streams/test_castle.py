"""CASTLE: the golden examples, every counterexample to the source, and all guarantees on random streams."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.columns import Columns
from closeknit.kernels.geometry.declared_axes import box_cost, joint_cost
from closeknit.kernels.streaming.castle import choose, covers_row
from closeknit.kernels.streaming.splitting import _sort_nearest
from closeknit.streams.arrivals import Coder
from closeknit.streams.castle import Castle
from closeknit.streams.clusters import Clusters
from closeknit.streams.stored_boxes import StoredBox
from conftest import examples
from streams_checked import Watched, bursts_and_silence, matching, raw_rows, same_in_blocks, schema

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "streams.json").read_text())
EXAMPLES, COUNTER = GOLDEN["castle_examples"], GOLDEN["castle_counterexamples"]
EDUCATION = {"Any": {"School": ["Primary", "Secondary"], "University": ["Bachelor", "Master", "Ph.D"]}}
quiet = pytest.mark.filterwarnings("ignore:with delta")


def students() -> ck.Schema:
    tree = ck.Hierarchy.from_nested(EDUCATION)
    return ck.Schema(quasi={"Age": ck.numeric(18, 120), "Edu": tree}, person="pid")


def clusters_of(*groups: list[tuple[str, int, str]]) -> tuple[Coder, Clusters, Any]:
    """Clusters of given rows, one after the other; and the coding of a row."""
    coder, first = Coder(students(), b"secret"), 0
    clusters = Clusters(coder.axes, 2, eta=9, by_person=True)

    def coded(rows: list[tuple[str, int, str]]) -> Any:
        names = ("pid", "Age", "Edu")
        return coder.encode(Columns.of(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), first)

    for group in groups:
        alone = Clusters(coder.axes, 2, eta=1, by_person=True)
        alone.add(coded(group), first, (0, len(group)), tau=1.0)
        c = len(clusters)
        for mine, theirs in zip(clusters.open[:5], alone.open[:5], strict=True):
            mine[c] = theirs[0]
        clusters.open.totals[0] += 1
    return coder, clusters, coded


def edges(coder: Coder, clusters: Clusters, c: int) -> tuple[str, str]:
    lo, hi = clusters.box(c)
    age, education = (coder.labels(j, lo[j : j + 1], hi[j : j + 1])[0] for j in range(2))
    return age, education


THREE = [("1", 25, "Bachelor"), ("2", 26, "Master"), ("3", 30, "Ph.D")]


def test_examples_5_1_and_5_2() -> None:
    coder, clusters, _ = clusters_of(THREE, [*THREE, ("1", 25, "Bachelor")])
    assert clusters.open.persons[:2].tolist() == [EXAMPLES["5.1"]["size"], EXAMPLES["5.1"]["size_after_repeat"]]
    assert (edges(coder, clusters, 0) == edges(coder, clusters, 1)) is EXAMPLES["5.1"]["gen_unchanged"]
    low, high = EXAMPLES["5.2"]["Age"]
    assert edges(coder, clusters, 0) == (f"[{low}, {high}]", EXAMPLES["5.2"]["Edu"])


def test_example_5_3_chooses_the_smaller_enlargement() -> None:
    first, second = [("1", 18, "Primary"), ("2", 22, "Secondary")], [("3", 26, "Bachelor"), ("4", 28, "Master")]
    coder, clusters, coded = clusters_of(first, second)
    x = coded([("5", 24, "Bachelor")]).quasi[0]
    for c, name in enumerate(("C1", "C2")):
        lo, hi = clusters.box(c)
        more = joint_cost(coder.axes, lo, hi, x, x) - box_cost(coder.axes, lo, hi)
        assert more == pytest.approx(float(Fraction(EXAMPLES["5.3"][f"enlargement_{name}"])))
    assert choose(coder.axes, clusters.open, x, 1.0, np.empty(9)) == 1


def test_examples_5_4_to_5_7_what_may_be_reused() -> None:
    """A stored box covers what its generalization covers; which of several is chosen is up to chance alone."""
    second, third = [("3", 26, "Bachelor"), ("4", 28, "Master")], [("5", 24, "Bachelor"), ("6", 27, "Master")]
    coder, clusters, coded = clusters_of(second, third)
    boxes = [clusters.box(0), clusters.box(1)]
    x = coded([("7", 26, "Ph.D")]).quasi[0]  # no leaf of the box, but one under its node
    assert covers_row(coder.axes, *boxes[0], x) is EXAMPLES["5.4"]
    costs = [box_cost(coder.axes, *box) for box in boxes]
    assert costs == pytest.approx([float(Fraction(EXAMPLES["5.5"][f"loss_{name}"])) for name in ("C2", "C3")])
    fits = {
        age: [covers_row(coder.axes, *box, coded([("7", age, "Master")]).quasi[0]) for box in boxes] for age in range(20, 32)
    }
    third_alone = [age for age, (in_second, in_third) in fits.items() if in_third and not in_second]
    assert third_alone == EXAMPLES["5.5"]["ages_left_if_min_loss_reuse"]
    seen = {age: Fraction(1, sum(fit)) for age, fit in fits.items() if fit[1]}
    posterior = {str(age): str(share / sum(seen.values())) for age, share in seen.items()}
    assert posterior == EXAMPLES["5.6_random_reuse"]["posterior"]
    owners = {"P1": 24, "P2": 25, "P3": 26, "P4": 27}
    assert [who for who, age in owners.items() if age in third_alone] == EXAMPLES["5.7_owners_left"]


def test_reuse_is_chosen_by_chance_and_the_secret() -> None:
    plain, chosen = ck.Schema(quasi={"age": ck.numeric(0, 100)}, person="name"), set()
    rows = [(20, "A"), (30, "B"), (25, "C"), (40, "D"), (27, "E")]
    for seed in range(20):
        stream = Castle(plain, k=2, delta=2, eta=2, reuse=True, seed=seed)
        stream.omega.age = 100
        for lo, hi in ((20.0, 30.0), (25.0, 40.0)):
            people = np.array([1, 2])
            stream.omega.store(StoredBox(np.array([lo]), np.array([hi]), 0, people, np.zeros((2, 0), np.int64)), 0)
        left = [row["age"] for age, name in rows[-1:] for row in stream.push({"age": age, "name": name})]
        left += [row["age"] for row in stream.flush()]
        chosen |= set(left)
    assert chosen == {"[20, 30]", "[25, 40]"}
    assert stream.remarks and stream.counters.reused == 1


STREAMS = [name for name, case in COUNTER.items() if "params" in case]


@quiet
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("seed", range(5))
def test_counterexamples_to_the_source(name: str, seed: int) -> None:
    case, people = COUNTER[name], {"person": "pid"}
    ages = ck.Schema(quasi={"Age": ck.numeric(0, 100)}, sensitive={"S": ck.flat()}, **people)
    stream, outputs = Castle(ages, **case["params"], seed=seed), []
    positions: list[list[int]] = []
    leave = stream._emit

    def leaving(classes: Any) -> Any:
        left = leave(classes)
        positions.extend(one.positions.tolist() for one in left)
        return left

    stream._emit = leaving  # type: ignore[method-assign]
    for pid, age, secret in case["stream"]:
        outputs += stream.push({"pid": pid, "Age": age, "S": secret})
    outputs += stream.flush()
    once = case["repaired"]["once"]
    assert stream.counters.suppressed == once["suppressed"]
    assert len(outputs) + once["suppressed"] == len(case["stream"])
    flat = [position for batch in positions for position in batch]
    assert len(set(flat)) == len(flat)
    for batch in positions:
        assert len({case["stream"][p][0] for p in batch}) >= case["params"]["k"]
        carriers = {
            secret: {case["stream"][p][0] for p in batch if case["stream"][p][2] == secret}
            for secret in {case["stream"][p][2] for p in batch}
        }
        assert matching(carriers) >= case["params"].get("l", 1)


def test_counterexample_reordering_releases_whole_batches() -> None:
    case = COUNTER["reordering"]
    stream = Castle(ck.Schema(quasi={"age": ck.numeric(0, 100)}, person="pid"), k=case["k"], delta=3, order="input", seed=1)
    batches = [batch for pid, age in case["stream"] if (batch := stream.push({"pid": pid, "age": age}))] + [stream.flush()]
    assert [[row["age"] for row in batch] for batch in batches] == [["[30, 31]"] * 2, ["[80, 81]"] * 2]


def test_counterexamples_of_diversity() -> None:
    case = COUNTER["one_person_supplies_l"]
    stream = Castle(schema(), k=3, delta=4, l=3, seed=1)
    for name, ill in case["pairs"]:
        assert stream.push({"age": 40, "city": "Rome", "sex": "f", "ill": ill, "name": name}) == []
    assert stream.flush() == [] and stream.counters.suppressed == len(case["pairs"])
    carriers = {ill: {name for name, other in case["pairs"] if other == ill} for _, ill in case["pairs"]}
    assert matching(carriers) == case["person_diversity"] < case["distinct_l"]


def test_counterexample_intersection_keeps_a_person_together() -> None:
    """The person's rows wait together, so they leave in one class, and no second class narrows the secret down."""
    stream = Castle(schema(), k=2, delta=3, l=2, seed=1)
    out = []
    for name, age, ill in COUNTER["intersection"]["stream"]:
        out.append(stream.push({"age": age, "city": "Rome", "sex": "f", "ill": ill, "name": name}))
    out.append(stream.flush())
    classes = [{row["ill"] for row in rows} for rows in out if rows]
    assert all("hiv" not in ills or len(ills) >= 2 for ills in classes)
    assert sum("hiv" in ills for ills in classes) == 1


def test_counterexample_merge_gap_is_not_there_without_reuse() -> None:
    case = COUNTER["theorem_5_2_merge_gap"]
    (a, b), (lo, hi) = case["omega"], case["published_merge"]
    assert str(1 - Fraction(a - lo, hi - lo)) == case["excluded_share"] and b == hi
    stream = Castle(schema(), k=2, delta=3, seed=1)
    assert stream.reuse is False and stream.remarks == ()


def test_what_is_held_is_not_reused_before_it_is_published() -> None:
    """The second part of a split waits for an older row, and that row may not leave alone with the part's generalization."""
    seen = set()
    for seed in range(12):
        stream = Castle(schema(), k=3, delta=6, eta=2, mu=1, reuse=True, order="input", seed=seed)
        watched = Watched(stream, alone=True)
        cells = [(10, "f", "Rome")] * 3 + [(70, "m", "Oslo"), (30, "m", "Rome"), (80, "f", "Rome"), (40, "f", "Oslo")]
        for (age, sex, city), name in zip([*cells, *[(5, "f", "Rome")] * 3], "ABCDEFGHHH", strict=True):
            watched.push({"age": age, "city": city, "sex": sex, "ill": "flu", "name": name})
        seen.add((stream.counters.batches, stream.counters.suppressed, watched.gone.get(3)))
        watched.flush()
    assert (2, 1, "suppressed") in seen


MODES = st.tuples(st.sampled_from([False, True, "held"]), st.sampled_from(["batch", "input"]))
DIVERSE = st.sampled_from([None, 2, 3])
slow = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@quiet
@slow
@given(raw_rows(), st.integers(1, 6), st.integers(1, 25), st.integers(1, 8), MODES, st.booleans(), DIVERSE)
def test_every_guarantee_at_every_instant(
    rows: list[Any], k: int, delta: int, eta: int, mode: Any, persons: bool, l: int | None
) -> None:
    reuse, order = mode
    stream = Castle(schema(persons), k, delta, l, eta, mu=5, reuse=reuse, order=order, seed=3)
    watched = Watched(stream, alone=reuse is True, persons=persons, distinct=l or 1)
    for row in rows:
        watched.push(row)
    watched.flush()
    assert stream.counters.delay_most <= delta
    assert len(stream.clusters) == 0 and stream._held == []


@quiet
@slow
@given(raw_rows(), st.lists(st.sampled_from([0, 0, 0, 0.5, 2, 31]), min_size=60, max_size=60), st.data())
def test_seconds_with_bursts_and_silence(rows: list[Any], gaps: list[float], data: st.DataObject) -> None:
    reuse, order = data.draw(MODES)
    now = [1000.0]
    stream = Castle(schema(), 2, "10s", eta=4, reuse=reuse, order=order, seed=3, clock=lambda: now[0])
    watched = Watched(stream, alone=reuse is True)
    bursts_and_silence(watched, rows, gaps, now, data)


@quiet
@slow
@given(raw_rows(), st.integers(1, 4), st.integers(1, 25), MODES, st.booleans(), DIVERSE, st.lists(st.integers(0, 99)))
def test_blocks_do_not_matter(
    rows: list[Any], k: int, delta: int, mode: Any, persons: bool, l: int | None, cuts: list[int]
) -> None:
    def make() -> Castle:
        return Castle(schema(persons), k, delta, l, eta=4, mu=3, reuse=mode[0], order=mode[1], seed=5)

    same_in_blocks(make, rows, cuts)


@slow
@given(raw_rows(), st.lists(st.integers(0, 99)))
def test_blocks_do_not_matter_in_seconds(rows: list[Any], cuts: list[int]) -> None:
    def make() -> Castle:
        times = iter(np.cumsum(np.arange(10_000) % 4).tolist())
        return Castle(schema(), 2, "9s", eta=4, seed=5, clock=lambda: next(times))

    same_in_blocks(make, rows, cuts)


def lively(n: int, people: int = 400) -> list[Any]:
    chance = np.random.default_rng(7)
    ages, who = chance.integers(0, 101, n), chance.integers(0, people, n)
    city, ill = chance.choice(["Rome", "Bari", "Oslo", "Turku"], n), chance.choice(["flu", "gout", "SARS"], n)
    return [
        {"age": int(a), "city": str(c), "sex": "f", "ill": str(i), "name": f"P{w}"}
        for a, c, i, w in zip(ages, city, ill, who, strict=True)
    ]


@pytest.mark.parametrize("persons", [True, False])
@pytest.mark.parametrize("l", [None, 2])
def test_memory_is_bounded_by_the_delay(persons: bool, l: Any) -> None:
    stream, most = Castle(schema(persons), k=5, delta=100, l=l, eta=10, seed=1), 0
    for row in lively(1200):
        stream.push(row)
        most = max(most, len(stream.pending))
    assert most == 100 and len(stream.pending._here) == 128 and len(stream.clusters.open.links) == 128
    assert stream.counters.suppressed == 0 and stream.counters.batches > 50 and len(stream.clusters) <= 10
    inside = [stream.pending.persons(stream.clusters.members(c)).tolist() for c in range(len(stream.clusters))]
    persons_inside = {who for people in inside for who in people}
    assert stream.clusters.person_count == len(persons_inside)
    counted = sum(len(set(people)) for people in inside) + len(persons_inside)
    assert (stream.clusters.open.who_id >= 0).sum() == (counted if persons else 0)


def test_a_longer_stream_of_larger_blocks() -> None:
    same_in_blocks(lambda: Castle(schema(), 5, 700, 2, eta=10, reuse="held", seed=1), lively(5000), [17, 4500])


def test_split_makes_the_loss_fall() -> None:
    """Two groups of rows in one cluster leave as two classes."""
    plain = ck.Schema(quasi={"age": ck.numeric(0, 100)}, person="name")
    stream = Castle(plain, k=2, delta=7, eta=1, seed=1)
    out = [row["age"] for i, age in enumerate((10, 90, 11, 91, 12, 92, 13, 93)) for row in stream.push({"age": age, "name": i})]
    assert len(out) == 8 and {age.split(", ")[0][1] for age in out} == {"1", "9"}
    assert max(float(age[1:-1].split(", ")[1]) - float(age[1:-1].split(", ")[0]) for age in out) <= 3


def test_more_k_than_rows_suppresses_all_and_warns() -> None:
    with pytest.warns(UserWarning, match="at most 3 rows wait, fewer than k=9"):
        stream = Castle(schema(), k=9, delta=2, seed=1)
    for row in lively(20):
        assert stream.push(row) == []
    assert stream.flush() == [] and stream.counters.suppressed == 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Castle(schema(), k=3, delta=2, seed=1)


def test_other_models_are_judged_for_each_batch() -> None:
    models = [ck.KAnonymity(3), ck.LDiversity("ill", 2, "frequency")]
    stream = Castle(schema(), delta=60, models=models, eta=5, seed=1)
    watched = Watched(stream, distinct=2)
    for row in lively(400):
        watched.push(row)
    watched.flush()
    assert stream.counters.rows_out > 300


def test_a_checkpoint_resumes_as_if_nothing_had_happened(tmp_path: Path) -> None:
    rows = lively(600)
    for parameters in ({"reuse": True}, {"reuse": "held", "order": "input"}, {"l": 2, "order": "input"}):
        one = Castle(schema(), 4, 80, eta=6, seed=1, **parameters)  # type: ignore[arg-type]
        for row in rows[:333]:
            one.push(row)
        one.save(tmp_path / "stream")
        other = Castle.load(tmp_path / "stream")
        assert [one.push(row) for row in rows[333:]] + [one.flush()] == [other.push(row) for row in rows[333:]] + [
            other.flush()
        ]
        assert one.counters == other.counters


WRONG = [
    ({"k": 0}, "k=0 is too small"),
    ({}, "the stream has no k"),
    ({"k": 2, "delta": 0}, "delta=0 is too small"),
    ({"k": 2, "delta": "soon"}, "delta='soon' is not a delay"),
    ({"k": 2, "eta": 0}, "eta=0 is too small"),
    ({"k": 2, "mu": 0}, "mu=0 is too small"),
    ({"k": 2, "l": 0}, "l=0 is too small"),
    ({"k": 2, "reuse": "often"}, "reuse='often' is unknown"),
    ({"k": 2, "order": "random"}, "order='random' is unknown"),
    ({"k": 2, "clock": 5}, "clock=5 is not a clock"),
    ({"k": 2, "models": [ck.TCloseness("ill", 0.2)]}, "t_closeness compares with a reference.*SabreWindow"),
    ({"k": 2, "models": [ck.BetaLikeness("ill", 1)]}, "beta_likeness compares with a reference.*BurelWindow"),
    ({"k": 2, "models": [ck.DeltaDisclosure("ill", 1)]}, "delta_disclosure compares with a reference"),
    ({"k": 2, "models": [ck.LDiversity("wage", 2)]}, "column 'wage': is not a sensitive column"),
    ({"k": 2, "models": [ck.DiverseSlicing("ill", 2)]}, "has no meaning for generalized rows"),
]


@pytest.mark.parametrize(("parameters", "what"), WRONG)
def test_wrong_parameters_are_named(parameters: dict[str, Any], what: str) -> None:
    with pytest.raises(ck.BadInput, match=what):
        Castle(schema(), **parameters)


def test_l_needs_a_single_secret() -> None:
    both = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat(), "wage": ck.flat()})
    with pytest.raises(ck.BadInput, match="l=2 needs a single sensitive column, and there are 2"):
        Castle(both, k=2, l=2)
    assert Castle(both, k=2, models=[ck.LDiversity("wage", 2)]).k == 2


@given(st.lists(st.integers(0, 6), min_size=2, max_size=60), st.data())
def test_the_nearest_rows_are_the_beginning_of_the_order_of_all(numbers: list[int], data: st.DataObject) -> None:
    far, here = np.array(numbers, dtype=float), np.arange(len(numbers)) * 2
    part_of = np.zeros(2 * len(numbers), np.int64)
    free = sorted(data.draw(st.sets(st.sampled_from(range(len(numbers))), min_size=1)))
    part_of[here[free]] = -1
    count = data.draw(st.integers(1, len(free)))
    nearest = _sort_nearest(far, here, part_of, count).tolist()
    whole = [2 * i for i in sorted(free, key=lambda i: numbers[i])]
    assert count <= len(nearest) and nearest == whole[: len(nearest)]


def test_an_audit_recomputes_the_rolling_certificate() -> None:
    """From the rows of all batches: batches with the same cells are one class, and a claim that is better is found."""
    schema = ck.Schema(quasi={"age": ck.numeric(0, 9)}, sensitive={"ill": ck.flat()})
    stream = ck.Castle(schema, k=3, delta=20, l=2, seed=1)
    rows = Columns.of({"age": [i % 10 for i in range(300)], "ill": ["flu" if i % 3 else "gout" for i in range(300)]})
    published = stream.push_many(rows)
    stated = ck.Certificate.from_json(stream.certificate.to_json())
    found = ck.audit(published, certificate=stated)
    assert found.ok and stated.rolling and any("a stream so far" in note for note in found.notes), found
    assert not ck.audit(published.take(np.arange(1, published.rows)), certificate=stated).ok
    better = stated.guarantees[1].model_copy(update={"measured": 9.0})
    lie = stated.model_copy(update={"guarantees": (stated.guarantees[0], better)})
    assert any("states better" in finding for finding in ck.audit(published, certificate=lie).findings)

"""A declared reference: every published class is close to it, computed here once more, whatever arrives; an audit agrees."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.kernels.streaming.class_verdicts import ALLOWED, OPEN, REFUSED
from closeknit.streams.declared_guard import DeclaredGuard
from closeknit.streams.window_tables import secret_codes
from conftest import examples

REFERENCE = {"flu": "2/5", "gout": 0.3, "HIV": "1/5", "other": 0.1}
SHARES = {value: Fraction(str(share)) for value, share in REFERENCE.items()}
SCHEMA = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
slow = settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
STREAMS = st.sampled_from([ck.KnitStream, ck.KnnStream])


def measure(ills: list[str]) -> tuple[Fraction, Fraction]:
    """Total variation, and the largest gain of a value, of a class compared with the declared shares."""
    q = {value: Fraction(rows, len(ills)) for value, rows in Counter(ills).items()}
    assert set(q) <= set(SHARES), "a value that is not declared"
    return sum(abs(SHARES[v] - q.get(v, 0)) for v in SHARES) / 2, max(q[v] / SHARES[v] - 1 for v in q)


def publish(stream: Any, rows: list[tuple[int, Any]]) -> list[list[str]]:
    """The sensitive values of every batch."""
    batches = list(stream.batches_of(Columns.of({"age": [age for age, _ in rows], "ill": [ill for _, ill in rows]})))
    return [batch["ill"].cells() for batch in (*batches, *stream.batches_at_end())]


@slow
@given(
    STREAMS,
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([*REFERENCE, *REFERENCE, "HIV", "Flu", "new", None])), max_size=150),
    st.sampled_from([0.1, 0.3, "1/4"]),
    st.integers(10, 70),
)  # fmt: skip
def test_every_batch_is_close_whatever_arrives(make: Any, rows: list[tuple[int, Any]], t: Any, delta: int) -> None:
    stream = make(SCHEMA, k=3, delta=delta, models=[ck.TCloseness("ill", t, reference=REFERENCE)], seed=1)
    batches = publish(stream, rows)
    levels = [measure(ills)[0] for ills in batches]
    assert all(len(ills) >= 3 for ills in batches) and all(level <= Fraction(str(t)) for level in levels)
    (closeness,) = stream.certificate.guarantees[1:]
    assert closeness.met and closeness.status == "recomputable"
    assert closeness.measured is None if not levels else abs(closeness.measured - max(levels)) < 1e-12
    assert stream.counters.rows_out + stream.counters.suppressed == len(rows) and stream.counters.broken == 0


@slow
@given(STREAMS, st.lists(st.tuples(st.integers(0, 9), st.sampled_from([*REFERENCE, "HIV"])), max_size=120))
def test_likeness_and_disclosure(make: Any, rows: list[tuple[int, Any]]) -> None:
    models = [ck.BetaLikeness("ill", 1, "basic", reference=REFERENCE), ck.DeltaDisclosure("ill", 2, reference=REFERENCE)]
    for ills in publish(make(SCHEMA, k=3, delta=40, models=models, seed=1), rows):
        assert set(ills) == set(REFERENCE) and measure(ills)[1] <= 1
        assert all(np.exp(-2) < ills.count(v) / len(ills) / float(SHARES[v]) < np.exp(2) for v in SHARES)


def draw(count: int, seed: int = 1) -> list[tuple[int, Any]]:
    chance = np.random.default_rng(seed)
    ills = chance.choice(list(REFERENCE), count, p=[float(share) for share in SHARES.values()])
    return list(zip(chance.integers(0, 100, count).tolist(), ills.tolist(), strict=True))


@pytest.mark.parametrize("make", [ck.KnitStream, ck.KnnStream])
def test_a_value_that_is_not_declared_is_published_as_other_or_stops_the_stream(make: Any, tmp_path: Any) -> None:
    """No row is left out for its sensitive value: the classes are those of rows that arrive with "other"."""
    rows = [(age, "plague" if i % 10 == 3 and ill == "flu" else ill) for i, (age, ill) in enumerate(draw(400))]
    rows[7] = (rows[7][0], None)
    known = [(age, ill if ill in REFERENCE else "other") for age, ill in rows]
    models = [ck.TCloseness("ill", 0.3, reference=REFERENCE)]
    one, other = (make(SCHEMA, k=4, delta=100, models=models, seed=1) for _ in range(2))
    assert publish(one, rows) == publish(other, known) and one.counters.suppressed == other.counters.suppressed
    assert one.counters.as_other == sum(ill not in REFERENCE for _, ill in rows) > 5 and other.counters.as_other == 0
    assert any("have the value 'other'" in note for note in one.certificate.notes)
    closed = make(SCHEMA, k=2, delta=50, models=[ck.TCloseness("ill", 0.3, reference={"flu": 1, "gout": 1})], seed=1)
    frame = Columns.of({"age": [30, 31, 32], "ill": ["flu", "gout", "plague"]})
    for bad in (lambda: closed.push_many(frame), lambda: closed.push({"age": 30, "ill": None})):
        with pytest.raises(ck.BadInput, match=r"does not have the value of a row.*has 'other'"):
            bad()
    assert closed.counters.rows_in == closed.position == 0, "nothing was accepted"
    assert closed.push({"age": 30, "ill": "flu"}) == []


def test_rows_with_other_values_and_floods_of_one_value_do_not_stop_the_others() -> None:
    rows = draw(900)
    rows[100:100] = [(50, "plague"), (51, None)]
    rows[500:500] = [(50, "HIV")] * 150  # no class may have them: the others of their buffer still find theirs
    stream = ck.KnitStream(SCHEMA, k=4, delta=200, models=[ck.TCloseness("ill", 0.2, reference=REFERENCE)], seed=1)
    batches = publish(stream, rows)
    assert all(measure(ills)[0] <= Fraction(1, 5) for ills in batches)
    assert 110 < stream.counters.suppressed < 200
    assert stream.counters.delay_most <= 200


def test_an_audit_recomputes_it_from_certificate_and_cells_alone() -> None:
    rows = draw(400)
    stream = ck.KnitStream(SCHEMA, k=4, delta=100, models=[ck.TCloseness("ill", 0.2, reference=REFERENCE)], seed=1)
    release = ck.replay(stream, Columns.of({"age": [age for age, _ in rows], "ill": [ill for _, ill in rows]}))
    stated = ck.Certificate.model_validate_json(release.certificate.model_dump_json())
    found = ck.audit(release.columns, certificate=stated)
    assert [(each.status, each.measured) for each in found.guarantees] == [
        ("recomputed", guarantee.measured) for guarantee in stated.guarantees
    ]
    classes = defaultdict(list)
    for age, ill in zip(release.columns["age"].cells(), release.columns["ill"].cells(), strict=True):
        classes[age].append(ill)
    assert abs(stated.guarantees[1].measured - max(measure(ills)[0] for ills in classes.values())) < 1e-12
    (form,) = stated.guarantees[1].model.values()
    other = {**form, "reference": [["flu", 1], ["gout", 1], ["HIV", 8]]}
    lie = stated.guarantees[1].model_copy(update={"model": {"t_closeness": other}})
    changed = stated.model_copy(update={"guarantees": [stated.guarantees[0], lie]})
    assert ck.audit(release.columns, certificate=changed).guarantees[1].status == "not met"


@pytest.mark.parametrize("kind", [ck.numeric(), ck.Hierarchy.from_nested({"low": ["10", "20"], "high": ["30"]})])
def test_ground_distances_are_those_of_the_declared_values(kind: Any) -> None:
    """20 is as far from 10 as a third value allows, also in classes without it; a table may declare one too."""
    model = ck.TCloseness("wage", 0.2, reference={"10": 1, "20": 2, "30": 1})
    domain, codes = kind.bind(np.array(["10", "30"], dtype=object) if kind != ck.numeric() else np.array([10, 30]))
    one = ck.core.classes.Classes.of(np.zeros(2, dtype=np.int32), 1, {"wage": (codes, domain)})
    expected = Fraction(1, 4) if kind == ck.numeric() else Fraction(3, 8)  # half of 20 moves by 1 of 2 ranks; by trees 1/2, 1
    assert model.exact_level(one, 0) == expected and model.levels(one).tolist() == [float(expected)]


@pytest.mark.parametrize("other", ["plague", None])
def test_a_class_with_a_value_that_is_not_declared_never_meets_it(other: str | None) -> None:
    cells: list[object] = ["flu", "flu", "flu", "flu", "gout", "gout", "HIV", other]
    classes = SCHEMA.encode(Columns.of({"age": [1] * 8, "ill": cells})).one_class()
    for model in (
        ck.TCloseness("ill", 0.9, reference=REFERENCE),
        ck.BetaLikeness("ill", 50, "basic", reference=REFERENCE),
        ck.DeltaDisclosure("ill", 50, reference=REFERENCE),
    ):
        assert model.holds(classes).tolist() == [False] and model.levels(classes)[0] in (1, np.inf)


def test_a_table_may_have_one_as_well() -> None:
    table, schema = ck.datasets.hospital(300), ck.datasets.hospital_schema()
    counts = Counter(table["disease"].cells())
    models = [ck.KAnonymity(3), ck.TCloseness("disease", 0.4, reference=dict(counts))]
    for method in (ck.Knit(proposals=5_000), ck.Mondrian()):
        release = ck.anonymize(table, schema, models, method, seed=2**100)
        assert release.certificate.ok and ck.audit(release.columns, certificate=release.certificate).ok


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ck.TCloseness("ill", 0.2, reference={"flu": 1, "FLU": 1}), "look alike"),
        (lambda: ck.BetaLikeness("ill", 1, reference={"flu": -1}), "the share -1 for flu"),
        (lambda: ck.Castle(SCHEMA, k=2, models=[ck.TCloseness("ill", 0.2, reference={"flu": 1})]), "use KnitStream"),
        (lambda: ck.KnitStream(SCHEMA, k=2, models=[ck.TCloseness("ill", 0.2)]), "declare it"),
        (lambda: ck.KnitStream(SCHEMA, 2, models=[ck.TCloseness("ill", 0.2, "ordered", reference={"flu": 1})]), "an ordered"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(make: Any, says: str) -> None:
    with pytest.raises(ck.BadInput, match=says):
        make()


ILLS = {"flu": 0.4, "gout": 0.3, "acne": 0.2, "lupus": 0.1}
TREE = ck.Hierarchy.from_nested({"skin": ["acne", "lupus"], "other": ["flu", "gout"]})
NUMBERS = {1: 0.4, 2: 0.3, 5: 0.2, 9: 0.1}


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        (ck.flat(), ck.TCloseness("ill", 0.2, reference=ILLS)),  # ten rows are often exactly at the limit
        (TREE, ck.TCloseness("ill", "1/6", reference=ILLS)),
        (ck.numeric(), ck.TCloseness("ill", 0.1, reference=NUMBERS)),
        (ck.flat(), ck.BetaLikeness("ill", 0.5, kind="basic", reference=ILLS)),
        (ck.flat(), ck.BetaLikeness("ill", 1, reference=ILLS)),
        (TREE, ck.BetaLikeness("ill", 1, kind="semantic", below=0, reference=ILLS)),
        (ck.flat(), ck.DeltaDisclosure("ill", 0.7, reference=ILLS)),
    ],
    ids=str,
)
def test_the_guard_decides_as_the_model_does(kind: Any, model: Any) -> None:
    """Every class of 10 rows, and some of other sizes: an opposite verdict is a fault, an open one is asked of the model."""
    values = list(NUMBERS if kind.name == "numeric" else ILLS)
    shown = {10 + i: value for i, value in enumerate([*values, "plague" if kind.name == "flat" else None])}
    guard = DeclaredGuard(model, ck.Schema(sensitive={"ill": kind}))
    guard.learn(shown)
    counts = [c for c in product(range(11), repeat=4) if sum(c) in (1, 10)] + [(8, 6, 4, 2), (41, 30, 20, 9), (90, 60, 40, 10)]
    digests = np.concatenate([np.repeat(np.arange(10, 14), c) for c in counts])
    class_of = np.repeat(np.arange(len(counts)), [sum(c) for c in counts])
    verdicts = guard.judge(digests, class_of, len(counts))
    cells = np.array([shown[digest] for digest in digests.tolist()], dtype=object)
    coded = secret_codes(kind, digests, cells)
    holds = model.holds(Classes.of(class_of.astype(np.int32), len(counts), {"ill": coded}))
    assert holds[verdicts == ALLOWED].all() and not holds[verdicts == REFUSED].any()
    if model.name != "beta_likeness" or model.kind != "semantic":  # limits say only a part of it: the model judges it all
        assert (verdicts != OPEN).mean() > 0.95 and holds.any() and not holds.all()
    else:
        assert (verdicts == OPEN).all()
    strange = guard.judge(np.array([10, 14]), np.zeros(2, np.int64), 1)
    assert strange.tolist() == [OPEN]  # a value that is not declared


def test_a_release_does_not_depend_on_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    rng = np.random.default_rng(5)
    ill = rng.choice(list(ILLS), 600, p=list(ILLS.values())).tolist()
    rows = Columns.of({"age": rng.integers(0, 100, 600).tolist(), "ill": ill})

    def run() -> list[Any]:
        models = [ck.TCloseness("ill", 0.2, reference=ILLS), ck.BetaLikeness("ill", 1, reference=ILLS)]
        stream = ck.KnitStream(schema, k=10, delta=200, models=models, seed=3)
        cells = [list(batch.items()) for batch in (*stream.batches_of(rows), *stream.batches_at_end())]
        published = [[(name, column.cells()) for name, column in batch] for batch in cells]
        return [published, stream.certificate.guarantees]

    guarded = run()
    monkeypatch.setattr(DeclaredGuard, "judge", lambda self, digests, class_of, count: np.full(count, OPEN))
    assert run() == guarded and len(guarded[0]) > 20

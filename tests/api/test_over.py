"""Guarantees over some of the quasi-identifiers: judged on written cells, settled by merging, certified and audited."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import closeknit as ck
from closeknit.checks.methods import audit_agrees, every_row_once, guarantee_met, run_once
from closeknit.checks.tables import random_tables
from closeknit.core.columns import Columns
from conftest import SOAK, SOAK_SEED

SEED = 2**80
ROUNDS = 200 if SOAK else 4
METHODS = (ck.Mondrian(), ck.Incognito(), ck.Microaggregation(), ck.Knit(proposals=0), ck.StackAndDeal())


def over_models(case, rng):
    """The guarantees of a case, some of them over some columns, where its table as one class meets them."""
    names, whole = list(case.schema.quasi), case.schema.encode(case.columns).one_class()
    sets = [names[: int(rng.integers(1, len(names) + 1))], *(["pairs"] if len(names) > 1 else [])]
    sets += ["triples"] if len(names) > 2 else []
    found = []
    for model in case.models:
        if model.holds(whole).all():
            over = sets[int(rng.integers(len(sets)))]
            found += [replace(model, over=over)] if rng.random() < 0.7 else [model]
    return tuple(found) or (ck.KAnonymity(2, over=names[:1]),)


@pytest.mark.grows
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_random_tables_meet_what_is_requested_over_some_columns(method):
    """The oracle groups the written cells by itself; an audit recomputes the certificate."""
    rng = np.random.default_rng(SOAK_SEED if SOAK else 5)
    for case in random_tables(ROUNDS, seed=SOAK_SEED if SOAK else 11):
        tried = replace(case, models=over_models(case, rng))
        for check in (guarantee_met, audit_agrees, every_row_once):
            check(method, tried)
        run_once.cache_clear()


def test_pairs_allow_classes_that_are_small():
    """Whole levels make groups over pairs much larger than classes, and less has to be generalized."""
    table, schema = ck.datasets.hospital(600), ck.datasets.hospital_schema()
    full, pairs = (
        ck.anonymize(table, schema, [model], ck.Incognito(), seed=SEED)
        for model in (ck.KAnonymity(10), ck.KAnonymity(10, over="pairs"))
    )
    assert pairs.loss < full.loss and pairs.certificate.classes.smallest < 10
    for names in combinations(schema.quasi, 2):
        cells = zip(*(pairs.columns[name].cells() for name in names), strict=True)
        assert min(Counter(cells).values()) >= 10
    worst = pairs.certificate.guarantees[0]
    assert len(worst.worst.cells) == 2 and worst.worst.rows == worst.measured >= 10


def test_rows_may_be_suppressed_instead():
    """Groups over the columns count published rows only: the single row breaks both guarantees."""
    rows = Columns.of({"age": [30] * 6 + [40] * 6 + [90], "sex": ["f", "m"] * 6 + ["f"]})
    schema = ck.Schema(quasi={"age": ck.flat(), "sex": ck.flat()})
    models = [ck.KAnonymity(2), ck.KAnonymity(4, over=["age"])]
    release = ck.anonymize(rows, schema, models, ck.Incognito(), suppress=0.1, seed=SEED)
    assert release.certificate.suppressed == 1 and release.loss < 0.1
    assert set(release.columns["age"].cells()) == {"30", "40"} and release.certificate.guarantees[1].measured == 6


def test_merging_two_classes_can_break_a_group():
    """Why it is settled on written cells: classes that all meet it, and after a merge one does not."""
    schema = ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat()})
    model = ck.KAnonymity(2, over=["age"])

    def found(ages, sexes):
        return bool(model.find_faults(ck.generalized().read(Columns.of({"age": ages, "sex": sexes}), schema)).any())

    assert not found(["30", "30", "40", "40"], ["f", "m", "f", "m"])
    assert found(["[30, 40]", "30", "[30, 40]", "40"], ["f", "m", "f", "m"])  # the two women merged


@pytest.mark.parametrize(
    ("over", "says"),
    [
        (["wage"], "column 'wage': is named in over"),
        ("age", "no list of columns"),
        ([], "no list of columns"),
        (["age", "age"], "names a column twice"),
        ("triples", "needs 3 quasi-identifiers"),
    ],
)
def test_wrong_columns_are_refused(over, says):
    rows = Columns.of({"age": [1, 2, 3, 4], "sex": ["f", "m", "f", "m"]})
    schema = ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat()})
    with pytest.raises(ck.BadInput, match=says):
        ck.anonymize(rows, schema, [ck.KAnonymity(2, over=over)])


def test_other_forms_and_streams_refuse_it():
    table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    model = ck.LDiversity("disease", 2, over=["age", "sex"])
    with pytest.raises(ck.BadInput, match="over some quasi-identifiers has no meaning in the form 'bucketized'"):
        ck.anonymize(table, schema, [model], form="bucketized")
    stream = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    with pytest.raises(ck.BadInput, match="a stream publishes class by class"):
        ck.Castle(stream, k=2, delta=5, models=[ck.KAnonymity(3, over=["age"])])
    with pytest.raises(ck.BadInput, match="a stream publishes class by class"):
        ck.Windowed(ck.Mondrian(), stream, models=[ck.KAnonymity(3, over=["age"])], omega=10, advance=5)


def test_spark_refuses_it_before_it_starts():
    pytest.importorskip("pyspark")
    table, schema = ck.datasets.hospital(20), ck.datasets.hospital_schema()
    with pytest.raises(ck.BadInput, match="Spark judges them in parts"):
        ck.anonymize(table, schema, [ck.KAnonymity(3, over="pairs")], engine="spark")


def test_a_certificate_states_the_columns():
    table, schema = ck.datasets.hospital(80), ck.datasets.hospital_schema()
    model = ck.TCloseness("disease", 0.4, over=["age", "sex"])
    release = ck.anonymize(table, schema, [ck.KAnonymity(2), model], ck.Mondrian())
    text = release.certificate.to_json()
    certificate = ck.Certificate.from_json(text)
    stated = certificate.guarantees[1]
    assert stated.model["t_closeness"]["over"] == ["age", "sex"] and stated.text.endswith("over age and sex")
    assert ck.audit(release.columns, certificate=certificate).ok
    other = stated.model_copy(update={"model": {"t_closeness": {"column": "disease", "t": 0.4, "over": ["age", "zip"]}}})
    forged = certificate.model_copy(update={"guarantees": (certificate.guarantees[0], other)})
    assert ck.audit(release.columns, certificate=forged).findings

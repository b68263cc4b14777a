"""Every method on a part of a table, as a shard is one, which needs no session; and rows suppressed on Spark by counted
cells.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closeknit as ck
from closeknit.checks.parameter_sets import METHODS
from closeknit.core.columns import Column, Columns
from closeknit.core.method import ignore_progress
from closeknit.core.table import Partition, Table
from closeknit.io.files import write_parquet
from closeknit.methods import REGISTRY
from closeknit.search.repair import find_broken_classes, repair_partition

K = ck.KAnonymity(5)
CLOSE = [K, ck.TCloseness("disease", 0.45), ck.TCloseness("stay", 0.4)]
LIKE = [K, ck.BetaLikeness("disease", 4)]
EXAMPLES = [
    pytest.param(REGISTRY[name](**params), id=f"{name}-{i}", marks=pytest.mark.soak if i else ())
    for name, examples in METHODS.items()
    for i, params in enumerate(examples)
    if REGISTRY[name].usual_form == "generalized" and REGISTRY[name].scale not in ("count", "local")
]


@pytest.mark.parametrize("method", EXAMPLES)
def test_a_part_is_judged_against_the_whole(method: Any) -> None:
    """The part has other secrets than the whole, some of them none: what is close to its own spread may be far from that."""
    models = LIKE if method.needs_bound == "growth" else CLOSE
    whole = ck.datasets.hospital_schema().encode(ck.datasets.hospital(400))
    references = {name: histogram.reference for name, histogram in whole.one_class().histograms.items()}
    codes = whole.secret("disease")[0]
    part = replace(whole.take(np.flatnonzero((codes % 3 > 0) | (np.arange(400) % 2 == 0))), references=references)
    assert (part.count_values("disease").reference != references["disease"]).any()
    assert not find_broken_classes(part, found := one(part), models).any(), "the part as one class has to hold"
    outcome = method.run(part, models, 7, ignore_progress)
    kept = repair_partition(part, outcome.partition, models)
    assert (kept.class_of >= 0).all() and not outcome.settled
    assert not find_broken_classes(part, kept, models).any()
    assert kept.count > 3 * found.count, "merged to hardly more than one class"


def one(table: Table) -> Partition:
    return Partition(np.zeros(len(table), dtype=np.int32), 1)


def test_suppressed_rows_are_as_if_they_had_never_been_there(spark: Any, tmp_path: Path) -> None:
    """The same rows are suppressed as on one machine; a longer code than all others is dropped, and masks get shorter."""
    table, kinds = ck.datasets.hospital(500), ck.datasets.hospital_schema()
    codes = np.where(np.arange(500) == 77, len(table["zip"].values), table["zip"].codes).astype(np.int32)
    longer = Column(np.append(table["zip"].values, "9876543210").astype(object), codes)
    columns = Columns({"zip": longer, "job": table["job"], "disease": table["disease"]}, 500)
    write_parquet(columns, tmp_path / "table.parquet")
    schema = ck.Schema(quasi={"zip": ck.prefix(), "job": kinds.quasi["job"]}, sensitive={"disease": kinds.sensitive["disease"]})
    models, requested = [K, ck.TCloseness("disease", 0.45)], {"suppress": 0.1, "seed": 2**100 + 7}
    here = ck.anonymize(tmp_path / "table.parquet", schema, models, ck.Incognito(), **requested)
    there = ck.anonymize(tmp_path / "table.parquet", schema, models, ck.Incognito(), **requested, engine="spark")
    assert here.certificate.suppressed > 0 and max(map(len, here.columns["zip"].cells())) == 5
    assert there.certificate == here.certificate
    with pytest.raises(ck.BadInput, match="incognito has its own form"):
        ck.anonymize(
            tmp_path / "table.parquet",
            schema,
            [K],
            ck.Incognito(),
            form=ck.generalized(cells="stars"),
            seed=2**100,
            engine="spark",
        )


def test_decimals_end_at_the_step_that_is_proposed_here(spark: Any) -> None:
    rng = np.random.default_rng(4)
    table = {"x": rng.random(60).round(3).tolist(), "age": rng.integers(20, 60, 60).tolist(), "ill": ["flu", "gout"] * 30}
    schema = ck.Schema(quasi={"x": ck.numeric(), "age": ck.numeric()}, sensitive={"ill": ck.flat()})
    frame = spark.createDataFrame(list(zip(*table.values(), strict=True)), list(table))
    requested: dict[str, Any] = {"schema": schema, "models": [ck.KAnonymity(4)], "seed": 2**100 + 7}
    for method, more in ((ck.Mondrian(), {"form": ck.generalized(snap=True)}), (ck.Incognito(), {"suppress": 0.2})):
        there = ck.anonymize(frame, method=method, **requested, **more)
        here = ck.anonymize(Columns.of(table), method=method, **requested, **more)
        assert there.certificate == here.certificate
        assert any("column 'x'" in note and "a step proposed from the data" in note for note in there.certificate.notes)


def test_a_guarantee_that_is_requested_twice_is_noted_once(spark: Any) -> None:
    table = {"age": [21, 34, 47, 58] * 5, "ill": ["flu", "gout"] * 10}
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})
    frame = spark.createDataFrame(list(zip(*table.values(), strict=True)), list(table))
    models, method = [ck.KAnonymity(4), *[ck.TCloseness("ill", 0.9)] * 2], ck.Mondrian()
    here, there = (
        ck.anonymize(data, schema, models, method, seed=2**100, allow_vacuous=True) for data in (Columns.of(table), frame)
    )
    assert there.certificate == here.certificate
    assert sum("is vacuous" in note for note in there.certificate.notes) == 1

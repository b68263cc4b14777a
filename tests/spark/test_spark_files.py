"""What Spark reads and writes: cells that file formats change, folders of odd names, and audits of what stands there."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import closeknit as ck
from closeknit.spark import maps, row_writing

SEED = 2**100 + 7


K = [ck.KAnonymity(3)]


def test_a_saved_csv_has_the_cells_of_the_certificate(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spaces at both ends, numbers that Java writes in its own way, quotes; several files in a folder of an odd name."""
    monkeypatch.setattr(row_writing, "FILE", 25)
    ills, costs = [" flu", "flu", "gout ", "a\\b", '"q"', "#x", "two\rlines"], [1.0, 1e16, 1e-7, None, 123456789.125]
    cells = {
        "age": [None if i % 4 == 0 else i % 5 for i in range(60)],
        "ill": [ills[i % 7] for i in range(60)],
        "cost": [costs[i % 5] for i in range(60)],
        "day": [date(1, 1, 1 + i % 3) for i in range(60)],
    }
    schema = ck.Schema(quasi={"age": ck.numeric(0, 9)}, sensitive={"ill": ck.flat(), "cost": ck.numeric()}, plain=["day"])
    pq.write_table(pa.table(cells), tmp_path / "people.parquet")
    release = ck.anonymize(tmp_path / "people.parquet", schema, K, ck.Mondrian(), seed=SEED, engine="spark")
    (folder := tmp_path / "a b%20").mkdir()
    release.save(folder / "csv", format="csv")
    assert ck.audit(folder / "csv" / "release.csv", certificate=folder / "csv" / "certificate.json").ok
    release.save(folder / "out")
    assert ck.audit(folder / "out" / "release.parquet", certificate=folder / "out" / "certificate.json", engine="spark").ok


def test_no_row_of_a_single_column_is_lost_in_a_csv(spark: Any, tmp_path: Path) -> None:
    table = spark.createDataFrame(pa.table({"age": [None] * 5 + [3] * 5}))
    release = ck.anonymize(table, ck.Schema(quasi={"age": ck.numeric(0, 9)}), K, ck.Mondrian(), seed=SEED)
    release.to_csv(tmp_path / "release.csv")
    for engine in (None, "spark"):
        assert ck.audit(f"{tmp_path}/release.csv/", certificate=release.certificate, engine=engine).ok


def test_rows_that_stood_at_a_path_before_are_not_released(spark: Any, tmp_path: Path) -> None:
    """What Spark still keeps of a refused table is not taken for the table that replaced it."""
    schema, file = ck.Schema(quasi={"age": ck.numeric(0, 9)}), tmp_path / "people.parquet"
    pq.write_table(pa.table({"age": [1, 2]}), file)
    with pytest.raises(ck.Unsatisfiable):
        ck.anonymize(file, schema, K, ck.Mondrian(), seed=SEED, engine="spark")
    pq.write_table(pa.table({"age": [7] * 8}), file)
    release = ck.anonymize(file, schema, K, ck.Mondrian(), seed=SEED, engine="spark")
    assert [row["age"] for row in release.frame.collect()] == ["7"] * 8


def test_a_class_is_whole_however_its_missing_cells_are_written(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "FEW", 1)
    table = pa.table({"age": ["[1, 5]"] * 9 + ["?"] * 3 + ["NA"] * 3 + [None] * 3, "ill": ["flu", "gout"] * 9})
    schema = ck.Schema(quasi={"age": ck.numeric(0, 9)}, sensitive={"ill": ck.flat()}, missing=["?", "NA"])
    models: list[Any] = [ck.KAnonymity(9), ck.LDiversity("ill", 2)]
    here, there = (ck.audit(data, schema, models) for data in (table, spark.createDataFrame(table)))
    assert here.ok and there.ok and here.classes == there.classes


def test_the_worst_class_of_all_secrets_does_not_come_from_an_order(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classes are equally far from all rows, and what an audit compares with a certificate is of the larger one."""
    monkeypatch.setattr(maps, "FEW", 1)
    ages, ills = ["[10, 20]"] * 3 + ["[5, 9]"] * 2 + ["[3, 4]"] * 5, [*"vvv", *"uu", *"uwwww"]
    table = pa.table({"age": ages, "ill": ills, "pay": ["1"] * 10})
    schema = ck.Schema(quasi={"age": ck.numeric(0, 99)}, sensitive={"ill": ck.flat(), "pay": ck.numeric()})
    turned = table.take(list(range(10))[::-1])
    for data in (table, turned, spark.createDataFrame(table)):
        joint = ck.audit(data, schema, [ck.KAnonymity(2)]).joint
        assert joint is not None and (joint.exact, joint.counted) == ("7/10", 3)

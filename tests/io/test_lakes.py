"""Delta and Iceberg tables and folders with hive partitions: versions, releases as one commit, damaged tables."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyiceberg.catalog import load_catalog
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.datasets import hospital, hospital_recipe, hospital_schema
from closeknit.io.canonical import content_hash
from closeknit.io.delta import HASH_KEY, DeltaTable
from closeknit.io.files import read
from closeknit.io.iceberg import IcebergTable
from closeknit.io.parquet import table_from_columns
from closeknit.io.source import Source

RUNNER = CliRunner()
PEOPLE = pa.table(
    {
        "age": pa.array([30, 41, None], pa.int16()),
        "ill": ["flu", None, "gout"],
        "day": [date(2024, 1, 31)] * 3,
        "paid": [True, False, None],
    }
)
CELLS = {"age": [30, 41, None], "ill": ["flu", None, "gout"], "day": [date(2024, 1, 31)] * 3, "paid": [True, False, None]}


@pytest.fixture(scope="module")
def release() -> ck.Release:
    return ck.anonymize(hospital(300), hospital_schema(), [ck.KAnonymity(5)], ck.Mondrian(), seed=2**70)


def cells_of(table: Mapping[str, Any]) -> dict[str, list[object]]:
    return {name: table[name].cells() for name in table}


def catalogue(folder: Path) -> str:
    return f"iceberg+sqlite://{folder / 'lake.db'}"


def open_catalogue(folder: Path) -> Any:
    return load_catalog("closeknit", type="sql", uri=f"sqlite:///{folder / 'lake.db'}", warehouse=f"file://{folder / 'lake'}")


def test_versions_of_a_delta_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "people"
    deltalake.write_deltalake(place, PEOPLE, partition_by=["paid"])
    deltalake.write_deltalake(place, PEOPLE.slice(0, 1), mode="append")
    assert read(place).rows == 4 and read(f"delta://{place}").rows == 4
    first = cells_of(read(DeltaTable(str(place), version=0)))
    assert sorted(map(str, zip(*first.values(), strict=True))) == sorted(map(str, zip(*CELLS.values(), strict=True)))
    assert list(DeltaTable(str(place)).read(["ill"])) == ["ill"]
    with pytest.raises(BadInput, match=r"Delta table cannot be used.*check the version"):
        read(DeltaTable(str(place), version=9))
    monkeypatch.chdir(tmp_path)
    found = RUNNER.invoke(app, ["inspect", "people", "--version", "0", "-o", "recipe.yaml"])
    assert found.exit_code == 0, found.output
    assert yaml.safe_load(Path("recipe.yaml").read_text("utf-8"))["data"] == {"path": "people", "version": 0}


def test_snapshots_of_an_iceberg_table(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    lake = open_catalogue(tmp_path)
    lake.create_namespace("hospital")
    table = lake.create_table("hospital.people", schema=PEOPLE.set_column(0, "age", PEOPLE["age"].cast(pa.int32())).schema)
    table.append(PEOPLE.set_column(0, "age", PEOPLE["age"].cast(pa.int32())))
    snapshot = table.current_snapshot().snapshot_id
    table.append(table.scan().to_arrow().slice(0, 1))
    source = IcebergTable(catalogue(tmp_path), "hospital.people")
    assert read(source).rows == 4 and source.read(["ill", "age"])["age"].cells().count(41) == 1
    assert cells_of(read(IcebergTable(catalogue(tmp_path), "hospital.people", version=snapshot))) == CELLS
    with pytest.raises(BadInput, match="there is no snapshot 7; choose"):
        read(IcebergTable(catalogue(tmp_path), "hospital.people", version=7))
    with pytest.raises(BadInput, match="there is no such table; check its namespace"):
        read(IcebergTable(catalogue(tmp_path), "hospital.peolpe"))
    with pytest.raises(BadInput, match="no table is named"):
        read(catalogue(tmp_path))
    with pytest.raises(BadInput, match="there is no such table"):
        read(IcebergTable(catalogue(tmp_path), "elsewhere.people"))
    recipe = {**hospital_recipe("-"), "data": {"url": catalogue(tmp_path), "table": "hospital.people"}}
    assert Recipe.of(recipe).source == source


def places(folder: Path) -> list[Source]:
    return [DeltaTable(f"delta://{folder}/release"), IcebergTable(catalogue(folder), "hospital.release")]


@pytest.mark.parametrize("kind", [0, 1], ids=["delta", "iceberg"])
def test_a_release_is_one_commit_with_its_certificate(kind: int, release: ck.Release, tmp_path: Path) -> None:
    place = places(tmp_path)[kind]
    release.write_to(place)
    assert ck.audit(place).ok and content_hash(read(place)) == release.certificate.content_sha256
    with pytest.raises(BadInput, match="there is a table already"):
        release.write_to(place)
    release.write_to(place, replace=True)
    assert ck.audit(place).ok
    assert json.loads(place.read_certificate())["content_sha256"] == release.certificate.content_sha256
    if kind == 0:
        history = deltalake.DeltaTable(tmp_path / "release").history()
        assert len(history) == 2 and all(len(commit[HASH_KEY]) == 64 for commit in history)
        assert ck.audit(tmp_path / "release").ok
    else:
        table = open_catalogue(tmp_path).load_table("hospital.release")
        assert len(table.metadata.metadata_log) == 1  # the table before it was replaced: one commit each
        assert len(table.current_snapshot().summary.additional_properties[HASH_KEY]) == 64


def test_a_release_replaces_releases_only(release: ck.Release, tmp_path: Path) -> None:
    delta, iceberg = places(tmp_path)
    for place in (delta, iceberg):
        for replace in (False, True, True):
            release.write_to(place, replace=replace)
    lake, raw = tmp_path / "release", table_from_columns(release.columns).slice(0, 1)
    deltalake.DeltaTable(lake).optimize.compact()
    deltalake.DeltaTable(lake).vacuum(dry_run=False)
    release.write_to(delta, replace=True)
    deltalake.write_deltalake(lake, raw, mode="append")
    open_catalogue(tmp_path).load_table("hospital.release").append(raw)
    for place in (delta, iceberg):
        with pytest.raises(BadInput, match="was not written by closeknit; choose another place: earlier versions stay"):
            release.write_to(place, replace=True)
    commit = lake / "_delta_log" / f"{deltalake.DeltaTable(lake).version():020}.json"
    lines = commit.read_text("utf-8").splitlines()
    commit.write_text("\n".join(line for line in lines if "commitInfo" not in line), encoding="utf-8")
    with pytest.raises(BadInput, match="was not written by closeknit"):  # a commit that does not say who made it
        release.write_to(delta, replace=True)


def test_a_changed_table_is_found(release: ck.Release, tmp_path: Path) -> None:
    release.write_to(f"delta://{tmp_path}/release")
    deltalake.DeltaTable(tmp_path / "release").optimize.compact()  # other files, the same rows
    assert ck.audit(tmp_path / "release").ok
    deltalake.write_deltalake(tmp_path / "release", table_from_columns(release.columns).slice(0, 1), mode="append")
    assert not ck.audit(tmp_path / "release").ok
    assert ck.audit(DeltaTable(str(tmp_path / "release"), version=0)).ok
    iceberg = IcebergTable(catalogue(tmp_path), "hospital.release")
    release.write_to(iceberg)
    open_catalogue(tmp_path).load_table("hospital.release").append(table_from_columns(release.columns).slice(0, 1))
    assert not ck.audit(iceberg).ok


def test_rows_keep_their_order_beyond_one_batch(tmp_path: Path) -> None:
    numbers = np.arange(150_000)
    table = Columns({"a": Column(numbers, numbers)}, len(numbers))
    for place in places(tmp_path):
        place.write(table, "{}", {}, False)
        assert content_hash(read(place)) == content_hash(table)


def test_a_bad_lake_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no Delta table"):
        read(f"delta://{tmp_path}/nothing")
    (tmp_path / "cut" / "_delta_log").mkdir(parents=True)
    (tmp_path / "cut" / "_delta_log" / "00000000000000000000.json").write_text('{"protocol"', encoding="utf-8")
    with pytest.raises(BadInput, match="Delta table cannot be used"):
        read(tmp_path / "cut")
    deltalake.write_deltalake(tmp_path / "none", PEOPLE.slice(0, 0))
    with pytest.raises(BadInput, match="no rows"):
        read(tmp_path / "none")
    deltalake.write_deltalake(tmp_path / "lists", pa.table({"a": [[1], [2]]}))
    with pytest.raises(BadInput, match=r"column 'a': cells of type .*list.* are not supported"):
        read(tmp_path / "lists")
    deltalake.write_deltalake(tmp_path / "lost", PEOPLE)
    next((tmp_path / "lost").glob("*.parquet")).unlink()
    found = RUNNER.invoke(app, ["inspect", str(tmp_path / "lost"), "-o", str(tmp_path / "recipe.yaml")])
    assert found.exit_code == 2 and not (tmp_path / "recipe.yaml").exists()
    for place in ("nowhere/lake.db", "lake.db"):
        with pytest.raises(BadInput, match="there is no such catalogue"):
            read(IcebergTable(f"iceberg+sqlite://{tmp_path}/{place}", "a.b"))
    assert not (tmp_path / "lake.db").exists()
    (tmp_path / "text.db").write_text("this is no database", encoding="utf-8")
    with pytest.raises(BadInput, match="Iceberg table cannot be used"):
        read(IcebergTable(f"iceberg+sqlite://{tmp_path}/text.db", "a.b"))
    with pytest.raises(BadInput, match="Iceberg table cannot be used"):
        read(IcebergTable("iceberg://not_configured", "a.b"))
    with pytest.raises(BadInput, match="version='new' is not a whole number"):
        DeltaTable("people", version="new")


def test_an_address_with_a_password_is_refused_without_repeating_it() -> None:
    for place in ("delta+s3://key:hunter2@bucket/people", "s3://key:hunter2@bucket/people.csv"):
        with pytest.raises(BadInput, match="set them in the environment") as found:
            read(place)
        assert "hunter2" not in str(found.value)


def test_options_of_an_address_are_refused_without_repeating_them() -> None:
    for place in ("delta+s3://bucket/t?aws_secret_access_key=hunter2", "iceberg://lake?token=hunter2"):
        with pytest.raises(BadInput, match="the address has options after") as found:
            ck.suggest(place)
        assert "hunter2" not in str(found.value)
        shown = RUNNER.invoke(app, ["inspect", place])
        assert shown.exit_code == 2 and "hunter2" not in shown.output
    assert DeltaTable("delta+abfss://data@clinic.dfs.core.windows.net/t").location.startswith("abfss://data@clinic")
    with pytest.raises(BadInput, match="has credentials"):
        DeltaTable("delta+abfss://data:hunter2@clinic.dfs.core.windows.net/t")


def test_hive_partitions_become_columns(tmp_path: Path) -> None:
    for year, zip in ((2023, "0071"), (2024, "0072")):
        folder = tmp_path / "people" / f"year={year}" / f"zip={zip}"
        folder.mkdir(parents=True)
        pq.write_table(PEOPLE, folder / "part-0.parquet")
    table = read(tmp_path / "people")
    assert list(table) == [*CELLS, "year", "zip"] and table.rows == 6
    assert sorted(set(table["zip"].cells())) == ["0071", "0072"] and sorted(set(table["year"].cells())) == ["2023", "2024"]
    found = RUNNER.invoke(app, ["inspect", str(tmp_path / "people")])
    assert found.exit_code == 0, found.output
    (folder / "part-1.parquet").write_bytes(b"PAR1")
    with pytest.raises(BadInput, match="not complete Parquet"):
        read(tmp_path / "people")
    shutil.rmtree(folder.parent)


def test_hive_partitions_whose_files_have_the_key_or_other_columns(tmp_path: Path) -> None:
    place = tmp_path / "people"
    for zip in ("0071", "0072"):
        (place / f"zip={zip}").mkdir(parents=True)
        rows = PEOPLE.append_column("zip", pa.array([zip] * PEOPLE.num_rows, pa.large_string()))  # as polars writes it
        pq.write_table(rows, place / f"zip={zip}" / "0.parquet")
    assert sorted(read(place)["zip"].cells()) == ["0071"] * 3 + ["0072"] * 3 and list(read(place)) == [*CELLS, "zip"]
    for other in (rows.rename_columns([*list(CELLS)[:-1], "new", "zip"]), rows.append_column("new", rows["zip"]), PEOPLE):
        pq.write_table(other, place / "zip=0072" / "0.parquet")
        with pytest.raises(BadInput, match=r"zip=0072/0\.parquet: its columns are not those of the part files before it"):
            read(place)


@pytest.mark.parametrize(("module", "place"), [("deltalake", "delta:///x"), ("pyiceberg.catalog", "iceberg://x")])
def test_a_missing_library_names_its_extra(module: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BadInput, match=r"pip install 'closeknit\[lake\]'"):
        read(place)

"""An audit says what is wrong: one changed cell, row or number of a certificate, untrusted files, guarantees in persons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import closeknit as ck
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.io.files import sha256_of

MODELS = [ck.KAnonymity(4), ck.TCloseness("disease", 0.4), ck.LDiversity("disease", 1.5, "entropy")]


@pytest.fixture(scope="module")
def release() -> ck.Release:
    table = ck.datasets.hospital(160)
    return ck.anonymize(table, ck.datasets.hospital_schema(), MODELS, seed=2**90)


@pytest.fixture()
def saved(release: ck.Release, tmp_path: Path) -> Path:
    release.save(tmp_path / "out", report=False)
    return tmp_path / "out"


def audited(folder: Path) -> Any:
    (file,) = folder.glob("release.*")
    return ck.audit(file, certificate=folder / "certificate.json")


def test_the_certificate_next_to_a_file_is_found(saved: Path, tmp_path: Path) -> None:
    for place in (saved, str(saved), saved / "release.csv"):
        found = ck.audit(place)
        assert found.ok and found.status == "met" and len(found.guarantees) == len(MODELS)
    (tmp_path / "alone.csv").write_bytes((saved / "release.csv").read_bytes())
    with pytest.raises(ck.BadInput, match=r"alone\.csv: there is no certificate\.json next to it; name it with"):
        ck.audit(tmp_path / "alone.csv")
    assert ck.audit(tmp_path / "alone.csv", certificate=saved / "certificate.json").ok
    assert ck.attack(saved).findings == ck.attack(saved / "release.csv").findings


def cells_of(release: ck.Release) -> dict[str, list[Any]]:
    return {name: column.cells() for name, column in release.columns.items()}


def again(release: ck.Release, cells: dict[str, list[Any]]) -> Any:
    return ck.audit(Columns.of(cells), certificate=release.certificate)


def test_untouched_is_ok(saved: Path, release: ck.Release) -> None:
    found = audited(saved)
    assert found.ok and found.findings == ()
    assert [guarantee.status for guarantee in found.guarantees] == ["recomputed"] * 3
    assert found.guarantees[0].measured == release.certificate.guarantees[0].measured
    assert json.loads(found.to_json())["rows"] == 160


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_frames_are_audited_like_files(release: ck.Release, library: str) -> None:
    arrow = pa.table({name: column.cells() for name, column in release.columns.items()})
    frame = {"pandas": arrow.to_pandas, "polars": lambda: pl.from_arrow(arrow), "arrow": lambda: arrow}[library]()
    assert ck.audit(frame, certificate=release.certificate).ok
    if library == "pandas":
        frame.index = np.random.default_rng(0).permutation(len(frame))
        assert ck.audit(frame, certificate=release.certificate).ok


def test_parquet_is_audited(release: ck.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out", "parquet", report=False)
    assert audited(tmp_path / "out").ok


def test_changed_secret_is_found(release: ck.Release) -> None:
    cells = cells_of(release)
    other = next(value for value in cells["disease"] if value != cells["disease"][0])
    cells["disease"][0] = other
    found = again(release, cells)
    assert not found.ok and any("content hash" in finding for finding in found.findings)


def test_changed_quasi_cell_is_found(release: ck.Release) -> None:
    cells = cells_of(release)
    cells["age"][0] = "*"
    found = again(release, cells)
    text = " ".join(found.findings)
    assert not found.ok and "content hash" in text
    assert "k-anonymity" in text, "the row stands alone now, so k is another one"
    assert "loss, variant A of age" in text
    assert found.guarantees[0].status == "not met"


def test_made_up_node_is_named() -> None:
    tree = ck.Hierarchy.from_nested({"north": ["a", "b"], "south": ["c"]}, from_data=True)
    schema = ck.Schema(quasi={"town": tree}, sensitive={"ill": ck.flat()})
    table = Columns.of({"town": ["a", "b", "c", "c"], "ill": ["x", "y", "x", "y"]})
    release = ck.anonymize(table, schema, [ck.KAnonymity(2)], seed=2**90)
    cells = cells_of(release)
    cells["town"][2] = "west"
    with pytest.raises(ck.BadInput, match=r"column 'town', row 3: .*'west'"):
        again(release, cells)


def test_made_up_mask_is_found(release: ck.Release) -> None:
    cells = cells_of(release)
    cells["zip"][5] = "9****"
    found = again(release, cells)
    assert not found.ok and any("content hash" in finding for finding in found.findings)


def test_a_certificate_with_leaf_counts_is_still_audited() -> None:
    """Earlier versions certified how many values were below each written node of an undeclared domain."""
    folder = Path(__file__).parents[1] / "golden" / "leaf_counts"
    certificate = ck.Certificate.from_json((folder / "certificate.json").read_text("utf-8"))
    assert set(certificate.columns["quasi"]["zip"]) == {"nodes"}
    found = ck.audit(folder / "release.csv", certificate=certificate)
    assert found.ok and found.loss.a == pytest.approx(certificate.loss.a)


def test_the_loss_is_the_same_with_the_certificate_and_with_the_schema_alone(release: ck.Release) -> None:
    schema = ck.Schema(**{key: getattr(ck.datasets.hospital_schema(), key) for key in ("quasi", "sensitive")})
    assert ck.audit(release.frame, schema, MODELS).loss == release.certificate.loss


def test_cell_that_is_no_number_is_named(release: ck.Release) -> None:
    cells = cells_of(release)
    cells["age"][7] = "20-30"
    with pytest.raises(ck.BadInput, match="column 'age', row 8: '20-30' is neither a number nor a range"):
        again(release, cells)


@pytest.mark.parametrize("change", ["removed", "duplicated", "swapped"])
def test_changed_rows_are_found(release: ck.Release, change: str) -> None:
    rows = list(range(release.columns.rows))
    rows = {"removed": rows[1:], "duplicated": [0, *rows], "swapped": [1, 0, *rows[2:]]}[change]
    cells = {name: [column[row] for row in rows] for name, column in cells_of(release).items()}
    if change == "swapped":
        different = next(row for row in rows if any(column[row] != column[0] for column in cells_of(release).values()))
        rows = [different if row == 0 else 0 if row == different else row for row in range(len(rows))]
        cells = {name: [column[row] for row in rows] for name, column in cells_of(release).items()}
    found = again(release, cells)
    assert not found.ok
    assert any("content hash" in finding for finding in found.findings)
    if change != "swapped":
        assert any("rows, its certificate states 160" in finding for finding in found.findings)
    else:
        assert all(guarantee.status == "recomputed" for guarantee in found.guarantees)


def changed(saved: Path, change: Any) -> Any:
    """The audit after a change of the certificate."""
    file = saved / "certificate.json"
    certificate = json.loads(file.read_text("utf-8"))
    change(certificate)
    file.write_text(json.dumps(certificate), "utf-8")
    return audited(saved)


def put(*path: Any) -> Any:
    *where, value = path

    def change(certificate: Any) -> None:
        for key in where[:-1]:
            certificate = certificate[key]
        assert certificate[where[-1]] != value
        certificate[where[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("content_sha256", "0" * 64), "content hash"),
        (put("content_sha256", ""), "content hash"),
        (put("files", 0, "sha256", "0" * 64), "SHA-256"),
        (put("files", 0, "rows", 7), "7 of its file"),
        (put("rows", 159), "160 rows, its certificate states 159"),
        (put("guarantees", 0, "measured", 9.0), "k-anonymity"),
        (put("guarantees", 0, "exact", "9"), "k-anonymity"),
        (put("guarantees", 0, "requested", ">= 9"), "k-anonymity"),
        (put("guarantees", 0, "met", False), "k-anonymity"),
        (put("guarantees", 0, "worst", "rows", 40), "worst class of 40 rows"),
        (put("guarantees", 0, "worst", "cells", "age", "*"), "worst class"),
        (put("guarantees", 1, "measured", 0.001), "t-closeness"),
        (put("guarantees", 1, "exact", "1/1000"), "t-closeness"),
        (put("guarantees", 1, "text", "t-closeness of disease, t = 0.01"), "t = 0.01"),
        (put("guarantees", 2, "measured", 4.25), "entropy l-diversity"),
        (put("loss", "a", 0.01), "loss, variant A:"),
        (put("loss", "b", 0.01), "loss, variant B:"),
        (put("loss", "columns", "age", [0.001, 0.001]), "variant A of age"),
        (put("suppressed", 40), "loss"),
        (put("classes", "count", 3), "classes, count"),
        (put("classes", "smallest", 50), "classes, smallest"),
        (put("classes", "average_ratio", 50.0), "classes, average_ratio"),
    ],
)
def test_changed_certificate_is_found(saved: Path, change: Any, said: str) -> None:
    found = changed(saved, change)
    assert not found.ok
    assert any(said in finding for finding in found.findings), found.findings
    assert said in str(found) and str(found).endswith("NOT OK")


def test_stricter_guarantee_in_the_certificate_is_broken(saved: Path) -> None:
    found = changed(saved, put("guarantees", 0, "model", {"k_anonymity": {"k": 120}}))
    assert not found.ok and found.guarantees[0].status == "not met"


def test_other_bytes_with_the_same_cells_are_found(saved: Path) -> None:
    file = saved / "release.csv"
    before = sha256_of(file)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert sha256_of(file) != before
    found = audited(saved)
    assert not found.ok
    assert ["SHA-256" in finding or "not canonical CSV" in finding for finding in found.findings] == [True] * 2, (
        "the cells are not"
    )


def test_missing_and_unknown_columns_are_named(release: ck.Release) -> None:
    cells = cells_of(release)
    with pytest.raises(ck.BadInput, match="column 'age': is not in the release"):
        again(release, {name: column for name, column in cells.items() if name != "age"})
    with pytest.raises(ck.BadInput, match="column 'row': has no role"):
        again(release, {**cells, "row": list(range(160))})


@pytest.mark.parametrize("text", ["{}", "not json", '{"rows": 1}'])
def test_certificate_that_is_none_is_named(saved: Path, text: str) -> None:
    (saved / "certificate.json").write_text(text, "utf-8")
    with pytest.raises(ck.BadInput, match=r"certificate\.json"):
        audited(saved)


def test_a_newer_format_is_named_as_newer(saved: Path) -> None:
    newer = r"has format 3, written by closeknit [\d.]+; this version reads formats 1 to 2; install a newer one"
    with pytest.raises(ck.BadInput, match=newer):
        changed(saved, put("format", 3))
    with pytest.raises(ck.BadInput, match="format 0"):
        changed(saved, put("format", 0))


def test_certificate_does_not_choose_which_files_are_read(saved: Path) -> None:
    record = json.loads((saved / "certificate.json").read_text(encoding="utf-8"))
    record["columns"]["quasi"]["job"] = {"csv": "/etc/passwd"}
    (saved / "certificate.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ck.BadInput, match=r"column 'job'.*a file of its own.*written out"):
        ck.audit(saved / "release.csv", certificate=saved / "certificate.json")


def test_nothing_to_audit_against(release: ck.Release) -> None:
    with pytest.raises(ck.BadInput, match="nothing to audit against"):
        ck.audit(release.columns)


# A table made by hand ---------------------------------------------------------------------------------------------------

SCHEMA = ck.Schema(
    quasi={
        "age": ck.numeric(),
        "zip": ck.prefix(),
        "job": ck.Hierarchy.from_nested({"office": ["clerk", "lawyer"], "field": ["farmer", "sailor"]}),
    },
    sensitive={"salary": ck.numeric(), "disease": ck.flat()},
)
BY_HAND = {
    "age": ["[20, 30]", "[20, 30]", "[20, 30]", "*", "*", "*", "(30, 40]", "(30, 40]", "(30, 40]"],
    "zip": ["47*", "47*", "47*", "*", "*", "*", "476**", "476**", "476**"],
    "job": ["office", "office", "office", "*", "*", "*", "sailor", "sailor", "sailor"],
    "salary": [3, 4, 5, 6, 11, 8, 7, 9, 10],
    "disease": ["ulcer", "gastritis", "cancer", "gastritis", "flu", "bronchitis", "bronchitis", "pneumonia", "cancer"],
}


def test_known_numbers_of_a_table_made_by_hand() -> None:
    """The salaries 3 to 11 of nine people in classes {3,4,5}, {6,8,11}, {7,9,10}: 0.375, 0.167 and 0.236 by hand."""
    models = [
        ck.KAnonymity(3),
        ck.TCloseness("salary", "0.375"),
        ck.LDiversity("disease", 3),
        ck.TCloseness("disease", "4/9", "equal"),
        ck.BetaLikeness("disease", 2, "basic"),
    ]
    found = ck.audit(Columns.of(BY_HAND), SCHEMA, models)
    assert found.ok, str(found)
    assert [guarantee.exact for guarantee in found.guarantees] == ["3", "3/8", "3", "4/9", "2"]
    assert found.classes.count == 3 and found.classes.discernibility == 27
    tighter = [ck.KAnonymity(4), ck.TCloseness("salary", "0.3749999"), ck.TCloseness("disease", 0.44, "equal")]
    broken = ck.audit(Columns.of(BY_HAND), SCHEMA, tighter)
    assert not broken.ok and {guarantee.status for guarantee in broken.guarantees} == {"not met"}


def test_foreign_file_with_all_sorts_of_cells(tmp_path: Path) -> None:
    """Ranges of any bracket, `*` rows, nodes of several levels, masks of several lengths, an empty cell."""
    frame = pd.DataFrame(BY_HAND)
    frame.loc[3:5, "age"] = None
    frame = frame.sample(frac=1, random_state=4)
    frame.to_csv(tmp_path / "other.csv", index=False)
    found = ck.audit(tmp_path / "other.csv", SCHEMA, [ck.KAnonymity(3), ck.TCloseness("salary", 0.375)])
    assert found.ok and found.classes.count == 3
    frame.to_parquet(tmp_path / "other.parquet", index=False)
    assert ck.audit(tmp_path / "other.parquet", SCHEMA, [ck.KAnonymity(3)]).ok


def test_missing_cells_are_one_value(tmp_path: Path) -> None:
    """Rows whose quasi cell is missing are a class like any other: none of them is dropped."""
    cells = {"age": ["30", "30", None, "?", None], "disease": list("abcde")}
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()}, missing=["?"])
    found = ck.audit(Columns.of(cells), schema, [ck.KAnonymity(2)])
    assert found.ok and (found.classes.count, found.classes.largest) == (2, 3)
    cells["age"] = ["30", "30", None, "31", "31"]
    assert not ck.audit(Columns.of(cells), schema, [ck.KAnonymity(2)]).ok


def test_star_rows_are_judged_as_a_class() -> None:
    """Suppressed rows are neither left out nor counted towards another class."""
    cells = {"age": ["30"] * 4 + ["*"], "disease": list("aabba")}
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()})
    found = ck.audit(Columns.of(cells), schema, [ck.KAnonymity(2), ck.LDiversity("disease", 2)])
    assert [guarantee.status for guarantee in found.guarantees] == ["not met", "not met"]


def test_suppressed_secrets_count_nowhere() -> None:
    """A secret written as `*` discloses nothing: it is in no histogram and not in the reference."""
    cells = {"age": ["30"] * 4 + ["*"] * 2, "disease": ["a", "a", "b", "b", "*", "*"]}
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()})
    found = ck.audit(Columns.of(cells), schema, [ck.KAnonymity(2), ck.TCloseness("disease", 0), ck.LDiversity("disease", 2)])
    assert found.ok, str(found)


def test_identifier_in_a_release_is_a_finding() -> None:
    cells = {"name": list("abcd"), "age": ["30"] * 4}
    schema = ck.Schema(identifier=["name"], quasi={"age": ck.numeric()})
    found = ck.audit(Columns.of(cells), schema, [ck.KAnonymity(2)])
    assert not found.ok and any("'name' identifies people" in finding for finding in found.findings)


def test_dropped_column_in_a_release_is_a_finding() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, drop=["note"])
    found = ck.audit(Columns.of({"note": list("aabb"), "age": ["30"] * 4}), schema, [ck.KAnonymity(2)])
    assert not found.ok and any("'note' is dropped by the schema" in finding for finding in found.findings)


def test_root_class_is_checked() -> None:
    """A release of one single class is judged like any other."""
    cells = {"age": ["*"] * 3, "disease": ["a", "a", "a"]}
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()})
    found = ck.audit(Columns.of(cells), schema, [ck.KAnonymity(4), ck.LDiversity("disease", 2)])
    assert [guarantee.status for guarantee in found.guarantees] == ["not met", "not met"]


def test_distance_is_always_named() -> None:
    cells = {"age": ["*"] * 4, "grade": ["1", "2", "1", "2"]}
    for kind, distance in ((ck.numeric(), "ordered"), (ck.flat(), "equal"), (ck.prefix(), "equal")):
        schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"grade": kind})
        found = ck.audit(Columns.of(cells), schema, [ck.TCloseness("grade", 0.5)])
        assert f"{distance} distance" in found.guarantees[0].text


def test_guarantee_in_persons_is_not_checkable() -> None:
    cells = {"age": ["30"] * 4, "disease": list("abab")}
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()}, person="patient")
    found = ck.audit(Columns.of(cells), schema, [ck.KAnonymity(2), ck.TCloseness("disease", 0.4)])
    assert not found.ok and found.status == "met as far as it can be checked"
    assert [guarantee.status for guarantee in found.guarantees] == ["not checkable", "recomputed"]
    assert "not checkable" in str(found) and "not met" not in str(found)
    assert "not checkable and not attested: k-anonymity, k = 2" in str(found), "there is no certificate"
    found = ck.audit(Columns.of(cells), schema, [ck.KAnonymity(5), ck.TCloseness("disease", 0.5)])
    assert found.status == "not met", "4 rows are no 5 persons"
    seen = ck.audit(Columns.of({**cells, "patient": list("wxyz")}), schema, [ck.KAnonymity(4)])
    assert seen.guarantees[0].status == "recomputed" and not seen.ok, "it holds, but persons must not be in a release"


def test_audit_of_a_certificate_whose_joint_record_names_no_column():
    table = Columns.of({"age": [1, 2, 3, 4], "a": list("xxyy"), "b": list("uvuv")})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"a": ck.flat(), "b": ck.flat()})
    release = ck.anonymize(table, schema, [ck.KAnonymity(2)], seed=2**100)
    reported = json.loads(release.certificate.to_json())
    reported["joint"]["columns"] = []
    with pytest.raises(ck.BadInput):
        ck.audit(release.columns, certificate=Certificate.from_json(json.dumps(reported)))

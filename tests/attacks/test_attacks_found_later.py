"""What attacks on suppressed rows, levels, comparisons and forced saves found; each case once let something through."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api import save_comparison
from closeknit.api.publishing import publish_table
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.core.combined_secrets import least_distance
from closeknit.core.schema import Schema
from closeknit.core.table import Partition

SEED = 2**100 + 1
RECIPE = """data: wages.csv
schema:
  quasi: {age: numeric, sex: flat}
  sensitive: {wage: numeric}
models:
  - k_anonymity: {k: 2}
"""
WAGES = "age,sex,wage\n31,f,10\n33,f,40\n34,m,20\n38,m,30\n52,f,20\n55,f,30\n57,m,10\n59,m,40\n"


def wages(folder):
    (folder / "wages.csv").write_text(WAGES)
    (folder / "wages.yaml").write_text(RECIPE)
    return folder / "wages.yaml"


# 1. --force deletes the original table --------------------------------------------------------------------------------


def test_force_never_deletes_what_is_no_comparison(tmp_path):
    recipe = wages(tmp_path)
    table, schema = ck.datasets.hospital(50), ck.datasets.hospital_schema()
    save_comparison(ck.compare(table, schema, [ck.KAnonymity(2)], ["mondrian"], seed=SEED), tmp_path / "c")
    for name in ("wages.csv", "wages.yaml"):
        (tmp_path / "c" / name).write_text((tmp_path / name).read_text())
    CliRunner().invoke(
        app, ["compare", str(tmp_path / "c" / "wages.yaml"), "--methods", "mondrian", "-o", str(tmp_path / "c"), "--force"]
    )
    assert (tmp_path / "c" / "wages.csv").exists() and recipe.exists()


def test_force_never_deletes_what_is_no_release(tmp_path):
    wages(tmp_path)
    release = ck.anonymize(tmp_path / "wages.csv", _schema(), [ck.KAnonymity(2)], seed=SEED)
    release.save(tmp_path / "out")
    (tmp_path / "out" / "wages.csv").write_text(WAGES)
    with pytest.raises(ck.BadInput):
        release.save(tmp_path / "out", force=True)
    assert (tmp_path / "out" / "wages.csv").exists()


def test_force_looks_into_the_private_folder_too(tmp_path):
    wages(tmp_path)
    release = ck.anonymize(tmp_path / "wages.csv", _schema(), [ck.KAnonymity(2)], seed=SEED)
    (tmp_path / "out.private").mkdir()
    (tmp_path / "out.private" / "original.csv").write_text(WAGES)
    with pytest.raises(ck.BadInput):
        release.save(tmp_path / "out", force=True)
    assert (tmp_path / "out.private" / "original.csv").exists()


def _schema():
    return ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat()}, sensitive={"wage": ck.numeric()})


# 2. a suppressed secret shows in the type of the published ones -----------------------------------------------------------


def test_type_discloses_nothing_of_a_suppressed_secret(tmp_path):
    types = []
    for odd in ("3", "3.5"):
        rows = [f"{20 + i % 3},{i % 2 + 1}" for i in range(12)] + [f"9999,{odd}"]
        (tmp_path / "t.csv").write_text("\n".join(["age,wage", *rows]) + "\n")
        schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"wage": ck.numeric()})
        release = ck.anonymize(tmp_path / "t.csv", schema, [ck.KAnonymity(4)], ck.Mondrian(), suppress=0.1, seed=SEED)
        assert release.certificate.suppressed == 1
        types.append(release.frame.schema.field("wage").type)
    assert types[0] == types[1]


# 3. a suppressed code shows in the masks (and levels) of the others -------------------------------------------------------


def test_masks_disclose_nothing_of_a_suppressed_code():
    reported = []
    for code in ("987", "9876543"):
        table = pa.table({"zip": ["123", "124", "125", "126"] * 3 + [code], "ill": ["a", "b"] * 6 + ["a"]})
        schema = ck.Schema(quasi={"zip": ck.prefix()}, sensitive={"ill": ck.flat()})
        release = ck.anonymize(table, schema, [ck.KAnonymity(4)], ck.Incognito(), suppress=0.1, seed=SEED)
        reported.append((release.certificate.suppressed, release.certificate.form, sorted(set(release.columns["zip"].cells()))))
    assert reported[0] == reported[1]


def test_level_of_a_column_that_is_all_stars_discloses_nothing_of_its_codes():
    forms = []
    for codes in (["123", "456"], ["123", "4567890"]):
        table = pa.table({"zip": [*codes * 2, "78", "99"], "ill": list("abcabc")})
        schema = ck.Schema(quasi={"zip": ck.prefix()}, sensitive={"ill": ck.flat()})
        release = ck.anonymize(table, schema, [ck.KAnonymity(6)], ck.Incognito(), seed=SEED)
        assert set(release.columns["zip"].cells()) == {"*"}
        forms.append(release.certificate)
    assert forms[0] == forms[1]


# 4. notes ---------------------------------------------------------------------------------------------------------------


def test_levels_of_one_column_do_not_silence_the_note_on_another():
    table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    release = ck.anonymize(table, schema, [ck.KAnonymity(4)], ck.Mondrian(), form=ck.generalized(levels={"sex": 0}), seed=SEED)
    assert any(cell.startswith("[") for cell in release.columns["age"].cells())
    assert any("'age': both ends" in note for note in release.certificate.notes)


# 5. tracebacks ----------------------------------------------------------------------------------------------------------


def test_audit_of_a_certificate_whose_joint_record_names_no_column():
    table = Columns.of({"age": [1, 2, 3, 4], "a": list("xxyy"), "b": list("uvuv")})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"a": ck.flat(), "b": ck.flat()})
    release = ck.anonymize(table, schema, [ck.KAnonymity(2)], seed=SEED)
    reported = json.loads(release.certificate.to_json())
    reported["joint"]["columns"] = []
    with pytest.raises(ck.BadInput):
        ck.audit(release.columns, certificate=Certificate.from_json(json.dumps(reported)))


@pytest.mark.parametrize("junk", ["2024-13-45", "!!int x"])
def test_methods_that_yaml_cannot_make_are_refused_in_a_sentence(tmp_path, junk):
    found = CliRunner().invoke(app, ["compare", str(wages(tmp_path)), "--methods", junk])
    assert found.exit_code == 2, found.exception


@pytest.mark.parametrize("methods", [ck.Sabre, 5])
def test_compare_of_something_that_is_no_list(methods):
    table, schema = ck.datasets.hospital(50), ck.datasets.hospital_schema()
    with pytest.raises(ck.BadInput):
        ck.compare(table, schema, [ck.KAnonymity(2), ck.TCloseness("stay", 0.5)], methods, seed=SEED)


def test_compare_of_one_mapping_keeps_its_parameters():
    table, schema = ck.datasets.hospital(50), ck.datasets.hospital_schema()
    models = [ck.KAnonymity(2), ck.TCloseness("stay", 0.5)]
    try:
        rows = ck.compare(table, schema, models, {"sabre": {"fill": "knn"}}, seed=SEED).methods
    except ck.BadInput:
        return
    assert [row.name for row in rows] == ["sabre(fill=knn)"]


@pytest.mark.parametrize("changed", [{"method": "sabber"}, {"method": ck.Sabre}, {"form": "tight"}, {"form": ck.generalized}])
def test_anonymize_names_what_is_no_method_or_form(changed):
    table, schema = ck.datasets.hospital(50), ck.datasets.hospital_schema()
    with pytest.raises(ck.BadInput):
        ck.anonymize(table, schema, [ck.KAnonymity(2), ck.TCloseness("stay", 0.5)], seed=SEED, **changed)


def test_levels_from_numpy_can_be_saved(tmp_path):
    table, schema = ck.datasets.hospital(50), ck.datasets.hospital_schema()
    form = ck.generalized(levels={"zip": np.int64(2)})
    ck.anonymize(table, schema, [ck.KAnonymity(2)], ck.Mondrian(), form=form, seed=SEED).save(tmp_path / "out")


# 6. recipes and forms ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["suppress"])
def test_yes_is_no_share_of_rows(key):
    forms = {"data": "a.csv", "schema": {"quasi": {"age": "numeric"}}, "models": [{"k_anonymity": {"k": 5}}], key: True}
    with pytest.raises(ck.BadInput):
        Recipe.of(forms)


@pytest.mark.parametrize("snap", ["no", 3, None])
def test_snap_is_true_or_false(snap):
    with pytest.raises(ck.BadInput):
        ck.generalized(snap=snap)


@pytest.mark.parametrize(
    "model",
    [
        ck.LDiversity(["disease", "stay"], 2),
        ck.BetaLikeness(["disease", "stay"], 2),
        ck.DeltaDisclosure(["disease", "stay"], 2),
    ],
)
def test_a_list_of_secrets_is_refused_where_only_one_is_meant(model):
    with pytest.raises(ck.BadInput):
        ck.anonymize(ck.datasets.hospital(50), ck.datasets.hospital_schema(), [model], ck.Mondrian(), seed=SEED)


def test_least_of_the_joint_line_is_for_the_rows_that_it_names():
    table = Columns.of({"z": list("abcd") + ["a"] * 4 + ["b"] * 4, "s": list("xyxyxxxxyyxy"), "u": list("uvvuuvuvuvuv")})
    schema = ck.Schema(quasi={"z": ck.flat()}, sensitive={"s": ck.flat(), "u": ck.flat()})
    coded, class_of = schema.encode(table), np.array([0, 0, 0, 0, 1, 1, 1, 1, -1, -1, -1, -1])
    form = ck.generalized(suppressed="hidden")
    columns, reported = publish_table(coded, Partition.of(class_of[coded.rows]), [ck.KAnonymity(4)], form)
    reading = form.read(columns, Schema.from_forms(reported.columns), None, [("s", "u")])
    reference = reading.classes.histograms["s", "u"].reference
    assert reported.joint.least == float(least_distance(reference, reported.joint.counted))


def test_what_the_user_says_of_levels_is_not_dropped_in_silence():
    table, schema = ck.datasets.hospital(150), ck.datasets.hospital_schema()
    form = ck.generalized(levels={"sex": 1})
    try:
        release = ck.anonymize(table, schema, [ck.KAnonymity(4)], ck.Incognito(), form=form, seed=SEED)
    except ck.BadInput:
        return  # refused: that is an answer
    assert set(release.columns["sex"].cells()) == {"*"}


# 7. persons counted once: two classes that hold may make one that does not ----------------------------------------------


def test_a_partition_that_keeps_frequency_diversity_of_persons_counted_once_is_found():
    table = Columns.of({"age": [20, 20, 60, 60], "ill": ["x", "y", "y", "x"], "who": ["1", "2", "1", "2"]})
    kinds = {"quasi": {"age": ck.numeric()}, "sensitive": {"ill": ck.flat()}}
    schema = ck.Schema(**kinds, person="who", person_rows="count-once")
    assert ck.anonymize(table, schema, [ck.LDiversity("ill", 2, "frequency")], ck.Incognito(), seed=SEED).certificate.ok


# 8. the remedy of finding 3 must not change what Incognito chose --------------------------------------------------------


def test_a_suppressed_longer_code_does_not_lift_the_level_of_the_others():
    reported = []
    for code in ("98765", "12345"):  # the second one raises the tree under 12
        codes = [f"1{a}{b}" for a in (1, 2) for b in range(8)]
        table = pa.table({"zip": [*codes * 2, code], "sex": ["f", "m"] * 16 + ["x"], "ill": list("aabb") * 8 + ["a"]})
        schema = ck.Schema(quasi={"zip": ck.prefix(), "sex": ck.flat()}, sensitive={"ill": ck.flat()})
        release = ck.anonymize(table, schema, [ck.KAnonymity(5)], ck.Incognito(), suppress=0.05, seed=SEED)
        assert release.certificate.suppressed == 1
        reported.append(release.certificate)
    assert reported[0] == reported[1]

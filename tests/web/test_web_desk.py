"""The logic behind the pages: every record says what the library itself says, and no draft can break what it describes."""

from __future__ import annotations

import gzip
import json
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import closeknit as ck
from closeknit.api.recipe import models_from
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.schema import Schema
from closeknit.io.files import write_parquet
from closeknit.models import REGISTRY
from closeknit.web.desk import choices, draft, guarantees, protection, roles, table_preview
from closeknit.web.desk.chart import frontier_svg
from closeknit.web.desk.table_preview import csv_format, open_table
from conftest import examples, write_ndjson

HOSPITAL = ck.datasets.hospital(300)
DRAFT: dict[str, Any] = ck.datasets.hospital_recipe("table.csv")


# The draft.


def test_a_draft_comes_back_from_its_text() -> None:
    again = draft.read_draft(draft.draft_text(DRAFT))
    assert again == DRAFT
    assert draft.recipe_of(again).schema == ck.datasets.hospital_schema()


def test_digits_with_leading_zeros_are_no_numbers_in_a_preview() -> None:
    (zips,) = table_preview.preview_table(Columns.of({"zip": ["01303", "12680"]})).columns
    assert (zips.type, zips.low, zips.high) == ("text", None, None)


@pytest.mark.parametrize(
    "text", ["a: &a [1, 2]\nb: [*a, *a]", "schema: {}\nschema: {}", "- 1", "a: [", "7", "a: !!python/object:os.system {}"]
)
def test_what_is_no_plain_recipe_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        draft.read_draft(text)


def test_the_page_detects_how_a_file_is_written_as_every_other_door_does(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes("Größe;Lohn\n1,80;53.281\n1,75;1.250,50\n".encode("cp1252"))
    table, form = open_table(tmp_path / "table.csv", "people.csv")
    assert form == {"delimiter": ";", "encoding": "cp1252", "decimal": ",", "thousands": "."}
    assert table["Lohn"].cells() == ["53281", "1250.50"]
    (tmp_path / "table.csv").write_text("age;pay\n30;53.281\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"^people.csv, column 'pay', row 1: '53.281' is 53.281 with a decimal point"):
        open_table(tmp_path / "table.csv", "people.csv")
    assert open_table(tmp_path / "table.csv", "people.csv", csv=csv_format({"decimal": ","}))[0]["pay"].cells() == ["53281"]


@pytest.mark.parametrize("form", ["csv", {"csv": "/etc/passwd"}, {"delimiter": ":", "csv": "../x"}])
@pytest.mark.parametrize("role", ["quasi", "sensitive"])
def test_a_confined_draft_reads_no_other_file(form: object, role: str) -> None:
    with pytest.raises(BadInput, match="'job'"):
        draft.confine_paths({"schema": {role: {"job": form}}}, "table.csv")
    with pytest.raises(BadInput, match="'job'"):
        roles.with_kind(DRAFT, "job", form)
    reported = draft.confine_paths({"data": {"path": "/etc/passwd", "encoding": "latin-1"}, "schema": {}}, "table.csv")
    assert reported["data"] == {"path": "table.csv", "encoding": "latin-1"}
    assert draft.confine_paths({"data": ["/etc/passwd"]}, "table.csv")["data"] == "table.csv"


# The table.


def test_every_door_gives_the_same_look(tmp_path: Path) -> None:
    cells = Columns.of({"age": [41, 30, None], "job": ["cook", "?", "cook"]})
    write_parquet(cells, tmp_path / "t.parquet")
    write_ndjson(cells, tmp_path / "t.ndjson")
    (tmp_path / "t.csv").write_text("age,job\n41,cook\n30,?\n,cook\n", encoding="utf-8")
    (tmp_path / "t.txt").write_text("age|job\n41|cook\n30|?\n|cook\n", encoding="utf-8")
    looks = [
        table_preview.preview_table(table_preview.open_table(tmp_path / f"t.{kind}", "t")[0])
        for kind in ("parquet", "ndjson", "csv", "txt")
    ]
    assert all(look == looks[0] for look in looks)
    age, job = looks[0].columns
    assert (age.type, age.missing, age.distinct, age.low, age.high) == ("whole numbers", 1, 2, "30", "41")
    assert (job.missing, job.markers, job.frequent) == (1, ("?",), (table_preview.Frequent("cook", 2),))
    assert looks[0].first == (("41", "cook"), ("30", "?"), (None, "cook"))


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("t.csv", b"a,b\n1,2\n3,4\n5,6\n", "3 rows"),
        ("t.csv", b"a,b,c\n1,2,3\n", "3 columns"),
        ("t.csv", b"", "empty"),
        ("t.csv", b"a,b\n1\n", "row 1"),
        ("t.csv", b"\xff\xfe\x00", "encoding"),
        ("t.parquet", b"PAR1 no", "my table"),
        ("t.csv.gz", gzip.compress(b"a,b\n" + b"1,1\n" * 5000, mtime=0), "decompresses to more"),
        ("t.csv.gz", b"\x1f\x8bdamaged", "gzip"),
        ("t.exe", b"a", "suffix"),
    ],
)
def test_a_bad_table_is_one_sentence_about_its_name(tmp_path: Path, file: str, content: bytes, says: str) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(BadInput) as caught:
        table_preview.read_table(tmp_path / file, "my table", table_preview.Limits(rows=2, columns=2, unpacked=10_000))
    assert says in str(caught.value) and str(tmp_path) not in str(caught.value) and "\n" not in str(caught.value)


def test_long_cells_and_many_values_stay_short() -> None:
    seen = table_preview.preview_table(Columns.of({"text": ["x" * 500 + str(i) for i in range(30)]}))
    assert len(seen.first) == 10 and len(seen.columns[0].frequent) == 5 and seen.columns[0].distinct == 30
    assert (
        max(len(row[0] or "") for row in seen.first)
        <= table_preview.LONGEST
        >= max(len(f.value) for f in seen.columns[0].frequent)
    )


def test_looking_at_a_file_gives_a_draft_that_runs(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    table_preview.write_example(path, rows=200)
    cells, form = table_preview.open_table(path, "hospital.csv")
    guess = ck.suggest(path)
    recipe = draft.recipe_of(draft.start_draft(guess, path.name, form), tmp_path)
    assert (recipe.schema, recipe.data) == (guess.schema, path)
    reported = json.loads(json.dumps(roles.list_suggestions(cells, guess)))
    rows = roles.role_rows(cells, draft.start_draft(guess, path.name), reported)
    assert [row.role for row in rows] == [row.suggested for row in rows] and all(row.reason for row in rows)
    assert all(row.fault is None for row in rows) and json.dumps(asdict(table_preview.preview_table(cells)))


# Roles.


@settings(max_examples=examples(30))
@given(st.lists(st.tuples(st.sampled_from(["disease", "age", "name", "stay"]), st.sampled_from(roles.CHOICES)), max_size=8))
@example([("disease", "plain")])
@example([("age", "person"), ("name", "person"), ("age", "quasi")])
def test_any_clicks_leave_a_draft_that_says_one_thing_of_each_column(clicks: list[tuple[str, str]]) -> None:
    before = draft.draft_text(DRAFT)
    changed: dict[str, Any] = roles.with_importance(DRAFT, "age", 2)
    for name, role in clicks:
        changed = roles.with_role(changed, name, role)
        assert roles.role_of(changed, name) == role
    recipe = draft.recipe_of(changed)
    assert sorted(set(recipe.schema.list_needed(list(HOSPITAL)) + recipe.schema.removed)) == sorted(HOSPITAL)
    assert all(model.column is None or model.column in recipe.schema.sensitive for model in recipe.models)
    assert draft.draft_text(DRAFT) == before
    assert draft.read_draft(draft.draft_text(changed)) == changed


@settings(max_examples=examples(30))
@given(st.lists(st.tuples(st.sampled_from(["disease", "stay"]), st.sampled_from(roles.CHOICES)), max_size=8))
def test_no_change_of_roles_loses_a_guarantee(clicks: list[tuple[str, str]]) -> None:
    pair = {"t_closeness": {"column": ["disease", "stay"], "t": 0.5}}
    before: dict[str, Any] = {**roles.with_role(DRAFT, "stay", "sensitive"), "models": [*DRAFT["models"], pair]}
    changed = before
    for name, role in clicks:
        changed = roles.with_role(changed, name, role)
        known = [*changed["models"], *changed.get("set_aside", [])]
        assert sorted(map(str, known)) == sorted(map(str, before["models"])), "requested or set aside"
        assert len(protection.set_aside(changed)) == len(known) - len(changed["models"])
    for name in ("disease", "stay"):
        changed = roles.with_role(changed, name, "sensitive")
    assert "set_aside" not in changed and sorted(map(str, changed["models"])) == sorted(map(str, before["models"]))
    assert protection.list_unprotected(changed) == [
        name for name in roles.sensitive_of(changed) if name not in ("disease", "stay")
    ]


def test_reading_a_table_again_keeps_roles_and_guarantees() -> None:
    old = roles.with_role(DRAFT, "sex", "plain")
    begun = draft.start_draft(ck.suggest(HOSPITAL), "table.csv", {"delimiter": ";"})
    changed = protection.carry_over(old, begun, [*HOSPITAL])
    assert changed == {**old, "data": begun["data"]}
    fewer = protection.carry_over(old, begun, [name for name in HOSPITAL if name != "disease"])
    assert [why for _, why in protection.set_aside(fewer)] == ["there is no column disease"]
    again = protection.carry_over(fewer, begun, [*HOSPITAL])
    assert roles.role_of(again, "disease") == "sensitive" and DRAFT["models"][1] in again["models"]


def test_an_attribute_without_a_guarantee_is_confirmed_once_and_only_then_gone_on_with() -> None:
    bare = {**DRAFT, "models": DRAFT["models"][:1]}
    assert "disease" in protection.list_unconfirmed(bare)
    sure = protection.with_confirmed(bare)
    assert protection.list_unconfirmed(sure) == [] and draft.recipe_of(sure).models == draft.recipe_of(bare).models
    taken = guarantees.without_guarantee(guarantees.with_guarantee(sure, DRAFT["models"][1]), 1)
    assert protection.list_unconfirmed(taken) == ["disease"], "a guarantee that was requested and taken back asks again"


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"k_anonymity": {"k": 301}}, "the table reaches at most 300; request less"),
        ({"l_diversity": {"column": "sex", "l": 3}}, "column 'sex': is not sensitive"),
        ({"l_diversity": {"column": "disease", "l": 200}}, "cannot be met: the table reaches at most"),
    ],
)
def test_what_no_release_can_meet_is_refused_when_it_is_entered(form: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        protection.check_reachable(HOSPITAL, DRAFT, form)
    protection.check_reachable(HOSPITAL, DRAFT, {"k_anonymity": {"k": 300}})


def test_a_guarantee_that_excludes_nothing_is_refused_when_it_is_added_unless_the_recipe_allows_it() -> None:
    form = {"t_closeness": {"column": "disease", "t": 1}}
    with pytest.raises(BadInput, match=r"is vacuous: every value .* request less than"):
        protection.check_reachable(HOSPITAL, DRAFT, form)
    protection.check_reachable(HOSPITAL, {**DRAFT, "allow_vacuous": True}, form)


def test_sensitive_column_without_values_is_a_fault() -> None:
    reported = {"schema": {"sensitive": {"note": "flat"}, "missing": ["?"]}}
    assert "is sensitive and has no values" in roles.column_faults(Columns.of({"note": ["?", None]}), reported)["note"]


def test_faults_are_those_of_the_library() -> None:
    cells = Columns.of({"age": ["41", "old", "30"], "ward": ["A", "B", "B"], "pid": ["1", None, "2"], "zip": ["1", "2", "2"]})
    form = {"schema": {"quasi": {"age": "numeric", "gone": "flat"}, "plain": ["ward"], "person": "pid", "identifier": ["zip"]}}
    found = roles.column_faults(cells, form)
    assert set(found) == {"age", "ward", "pid", "gone"}
    with pytest.raises(BadInput) as caught:
        Schema(quasi={"age": "numeric"}).encode(cells)
    assert found["age"] == str(caught.value)
    repaired = roles.with_missing(roles.with_unique(form, "ward", True), ["old"])
    assert set(roles.column_faults(cells, repaired)) == {"pid", "gone"}


def test_an_identifier_that_repeats_is_a_fault_until_it_is_declared() -> None:
    cells = Columns.of({"name": ["Ann", "Bob", "Ann"], "age": [30, 41, 52], "visit": [1, 2, 3]})
    draft: dict[str, Any] = {"schema": {"identifier": ["name", "visit"], "quasi": {"age": "numeric"}}}
    found = roles.column_faults(cells, draft)
    assert list(found) == ["name"] and "1 of 3 rows repeat an identifier" in found["name"]
    declared = roles.with_kind({"schema": {**draft["schema"], "rows_are_persons": True}}, "age", "flat")
    assert roles.column_faults(cells, declared) == {} and declared["schema"]["rows_are_persons"] is True
    person = roles.with_role(declared, "visit", "person")
    assert roles.column_faults(cells, person) == {} and "rows_are_persons" not in person["schema"]


def test_a_request_without_meaning_is_reported_before_it_runs() -> None:
    assert roles.draft_faults(DRAFT) == []
    sliced = {**DRAFT, "method": "slicing"}
    assert "k_anonymity has no meaning in the form 'sliced'" in roles.draft_faults(sliced)[0]
    assert len(roles.draft_faults({"schema": {}, "models": []})) == 2
    assert "wage" in roles.draft_faults({**DRAFT, "models": [{"t_closeness": {"column": "wage", "t": 0.1}}]})[0]


# Guarantees.


def test_every_guarantee_is_described_as_it_is() -> None:
    for name, model in REGISTRY.items():
        listed = {field.name: field for field in guarantees.fields_of(name)}
        known = {field.name for field in fields(model) if field.init}  # type: ignore[arg-type]
        assert set(listed) == (known - {"population"} if model.needs_file else known)  # it always counts the uploaded people
        column = {"column": "disease"} if "column" in listed else {}
        base = {**column, **{f.name: f.default for f in listed.values() if f.needed and f.name != "column"}}
        base |= {"population": 90} if model.needs_file else {}
        for field in listed.values():
            required = {} if field.only is None else {field.only[0]: field.only[1][0]}
            for end, taken, out in ((field.least, 0, -1), (field.above, 1, 0), (field.most, 0, 1)):
                if end is not None:
                    models_from([{name: {**base, **required, field.name: end + taken}}])
                    with pytest.raises(BadInput):
                        models_from([{name: {**base, **required, field.name: end + out}}])
            for value in field.choices:
                needs = {f.name: f.least or 1 for f in listed.values() if f.only == (field.name, (value,)) and f.type != "yes"}
                assert guarantees.guarantee_form(name, {**base, field.name: value, **needs})[name][field.name] == value


def test_todays_levels_are_those_of_an_audit_of_the_raw_table() -> None:
    schema = Schema(
        quasi={"age": ck.numeric(0, 100), "sex": ck.flat()},
        sensitive={name: ck.datasets.hospital_schema().sensitive[name] for name in ("disease", "stay")},
    )
    cells = Columns({name: HOSPITAL[name] for name in schema.published}, HOSPITAL.rows)
    found = guarantees.assess_table(cells, schema)
    times = Counter(zip(cells["age"].cells(), cells["sex"].cells(), strict=True))
    alone = sum(1 for count in times.values() if count == 1)
    assert (found.combinations, found.smallest, found.alone) == (len(times), min(times.values()), alone)
    checked = 0
    for offered in found.offered:
        model = guarantees.build_default(offered.model, offered.column)
        if "generalized" in offered.forms and not offered.refused.get(""):
            (reported,) = ck.audit(cells, schema, [model]).guarantees
            assert offered.today.level == reported.measured
            checked += 1
    assert checked == 5 + 4 * 2 + 1  # the last is about the method
    record = json.loads(json.dumps(asdict(found)))
    assert all(offered["example"] and offered["sentence"] for offered in record["offered"])


def test_a_guarantee_that_means_nothing_for_a_column_says_why() -> None:
    schema = Schema(quasi={"age": "numeric"}, sensitive={"sex": "flat", "stay": "numeric"})
    found = guarantees.assess_table(Columns({name: HOSPITAL[name] for name in schema.published}, HOSPITAL.rows), schema)
    refused = {(offered.model, offered.column): set(offered.refused) for offered in found.offered}
    assert refused["t_closeness", "sex"] == {"distance=ordered"} and "distance=hierarchical" in refused["t_closeness", "stay"]
    assert refused["posterior_bound", "sex"] == {""}


def test_examples_count_persons_where_there_are_any() -> None:
    cells = Columns.of({"pid": [1, 1, 2, 3], "age": [30, 30, 41, 41], "flu": ["y", "n", "y", "n"]})
    found = guarantees.assess_table(cells, Schema(quasi={"age": "numeric"}, sensitive={"flu": "flat"}, person="pid"))
    assert found.persons and (found.smallest, found.alone) == (1, 1)
    twice = Columns.of({"pid": [1, 1, 2, 3], "age": [30, 31, 41, 41]})
    assert guarantees.assess_table(twice, Schema(quasi={"age": "numeric"}, person="pid")).alone == 1, (
        "persons, not combinations"
    )
    assert found.offered[0].example == "Today the rarest value of age is shared by 1 person; 1 of 3 people is unique."


def test_guarantees_of_a_draft_are_added_changed_and_taken_back() -> None:
    more = guarantees.with_guarantee(DRAFT, guarantees.guarantee_form("l_diversity", {"column": "disease", "l": "3", "c": "2"}))
    assert more["models"][-1] == {"l_diversity": {"column": "disease", "l": 3}}  # c belongs to another kind
    assert guarantees.without_guarantee(more, 2) == DRAFT and guarantees.with_guarantee(more, more["models"][0]) == more
    for wrong in (lambda: guarantees.without_guarantee(DRAFT, 2), lambda: guarantees.guarantee_form("t_closeness", {"t": "2"})):
        with pytest.raises(BadInput):
            wrong()


# Choices and the picture.


@pytest.fixture(scope="module")
def points() -> choices.Choices:
    return choices.compare_methods(DRAFT, columns=HOSPITAL, rows=None, names=["mondrian", "sabre", "burel"])


def test_the_comparison_measures_what_snapping_costs() -> None:
    tight, snapped = (
        choices.compare_methods(
            {**DRAFT, "seed": 2**70, "form": {"generalized": {"snap": snap}}}, columns=HOSPITAL, rows=150, names=["mondrian"]
        )
        for snap in (False, True)
    )
    assert tight.snapping == snapped.snapping == (tight.points[0].loss, snapped.points[0].loss)
    kinds = DRAFT["schema"]["quasi"]
    schema = {**DRAFT["schema"], "quasi": {"sex": kinds["sex"]}, "drop": [name for name in kinds if name != "sex"]}
    assert choices.compare_methods({**DRAFT, "schema": schema}, columns=HOSPITAL, rows=150, names=["mondrian"]).snapping is None


def test_a_chosen_point_is_what_the_draft_then_makes(points: choices.Choices) -> None:
    again = choices.Choices.read(json.loads(json.dumps(asdict(points))))
    assert again == points and points.best is not None
    recipe = draft.recipe_of(choices.choose_point(DRAFT, json.loads(json.dumps(asdict(points)))["points"][points.best]))
    release = ck.anonymize(HOSPITAL, recipe.schema, recipe.models, recipe.method, seed=2**70)
    assert recipe.method.name == points.points[points.best].name and release.certificate.ok
    refused = points.points[-1]
    assert refused.name == "burel" and refused.loss is None and refused.reason and not refused.ok


def test_methods_that_cannot_serve_say_what_they_miss() -> None:
    offers = {offer.name: offer for offer in choices.methods(DRAFT)}
    assert offers["sabre"].refused is None and offers["burel"].refused == "it needs a guarantee that bounds the growth"
    assert offers["slicing"].refused == "it is not written as generalized" and all(offer.about for offer in offers.values())


def test_a_point_of_a_curve_brings_its_guarantee() -> None:
    found = choices.vary_guarantee(DRAFT, columns=HOSPITAL, rows=200, names=["mondrian"], vary={"t": [0.3, 0.6]})
    assert (found.rows, found.of, found.level) == (200, 300, "t of disease")
    reported = choices.choose_point(DRAFT, found.points[1])
    assert reported["models"] == [{"k_anonymity": {"k": 6}}, {"t_closeness": {"column": "disease", "t": 0.6}}]


def test_a_sample_takes_whole_persons_and_the_same_rows_again() -> None:
    persons = np.random.default_rng(3).integers(0, 60, 300)
    cells = Columns.of({"pid": persons.tolist(), "n": list(range(300))})
    few = choices.sample(cells, Schema(quasi={"n": "numeric"}, person="pid"), rows=50)
    taken = Counter(few["pid"].cells())
    assert 50 <= few.rows < 70 and all(taken[who] == int((persons == who).sum()) for who in taken)
    assert few["n"].cells() == choices.sample(cells, Schema(quasi={"n": "numeric"}, person="pid"), rows=50)["n"].cells()


def test_the_picture_is_links_and_nothing_that_runs(points: choices.Choices) -> None:
    evil = choices.Choices.read({**asdict(points), "level": "<script>alert(1)</script>\"'&"})
    svg = frontier_svg(evil, lambda point: f'?a=1&point={point.number}"><script>', chosen=0)
    assert "<script" not in svg and "style=" not in svg and "http" not in svg and " on" not in svg.replace(" on the grey", "")
    root = ET.fromstring(svg)
    links = [node for node in root.iter() if node.tag == "a"]
    shown = [point for point in points.points if point.loss is not None]
    assert [link.get("href") for link in links] == [f'?a=1&point={point.number}"><script>' for point in shown]
    assert all(link.find("title").text == link.get("aria-label") for link in links)  # type: ignore[union-attr]
    assert [link.get("aria-current") for link in links].count("true") == 1
    box = [float(end) for end in str(root.get("viewBox")).split()]
    places = [tuple(map(float, str(link.get("transform"))[10:-1].split())) for link in links]
    assert all(0 < x < box[2] and 0 < y < box[3] for x, y in places)
    by_loss = [place[0] for place, _ in sorted(zip(places, shown, strict=True), key=lambda pair: pair[1].loss or 0)]
    assert by_loss == sorted(by_loss)
    none = choices.Choices.read({**asdict(points), "points": asdict(points)["points"][-1:]})
    assert "there is no release to show" in frontier_svg(none, lambda point: "?")

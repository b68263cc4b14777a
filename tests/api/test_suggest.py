"""`suggest`: right about kinds, careful about roles, and its recipe is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from closeknit.api.recipe import Recipe
from closeknit.api.suggestion import Guess, Suggestion, suggest
from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kind_forms import kind_from
from closeknit.core.kinds import Numeric, Prefix
from closeknit.datasets import hospital
from closeknit.io.files import read, write_csv


def guess(name: str, cells: list[object]) -> Guess:
    return suggest(Columns.of({name: cells})).reasons[name]


def kind_names(suggestion: Suggestion) -> dict[str, str]:
    return {name: one.kind for name, one in suggestion.reasons.items() if one.kind}


def roles(suggestion: Suggestion) -> dict[str, str]:
    return {name: one.role for name, one in suggestion.reasons.items()}


HOSPITAL_KINDS = {
    "age": "numeric",
    "sex": "flat",
    "zip": "prefix",
    "job": "flat",
    "admission": "date",
    "disease": "flat",
    "stay": "numeric",
    "charge": "numeric",
}


@pytest.mark.parametrize("rows", [30, 500, 10_000])
def test_hospital_from_memory_and_from_csv(rows: int, tmp_path: Path) -> None:
    table = hospital(rows)
    write_csv(table, tmp_path / "patients.csv")
    for columns in (table, read(tmp_path / "patients.csv")):
        suggestion = suggest(columns)
        assert kind_names(suggestion) == HOSPITAL_KINDS
        secret = [name for name, role in roles(suggestion).items() if role == "sensitive"]
        assert secret == ["disease", "stay", "charge"]
        assert suggestion.schema.identifier == ("name",)
        assert suggestion.schema.quasi["zip"] == Prefix(5)
        suggestion.schema.encode(columns)


def test_adult(data_folder: Path) -> None:
    columns = read(data_folder / "adult" / "adult.csv.gz")
    suggestion = suggest(columns)
    numbers = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
    assert kind_names(suggestion) == {name: "numeric" if name in numbers else "flat" for name in columns}
    assert suggestion.schema.missing == ("?",)
    assert "plain" not in roles(suggestion).values()
    assert {"occupation", "salary-class", "capital-gain", "fnlwgt"} <= set(suggestion.unsure)
    suggestion.schema.encode(columns)


def test_coded_columns_are_marked(data_folder: Path) -> None:
    suggestion = suggest(read(data_folder / "census" / "sal500k.csv.gz"))
    assert {"sex", "race", "marital-status", "work-class", "country"} <= set(suggestion.unsure)
    assert kind_names(suggestion) == {
        "age": "numeric",
        "sex": "flat",
        "education": "numeric",
        "marital-status": "flat",
        "race": "flat",
        "work-class": "flat",
        "country": "flat",
        "salary-class": "numeric",
    }


@pytest.mark.parametrize(
    ("name", "cells", "kind", "sure"),
    [
        ("age", [30, 41, 30, 25], "numeric", True),
        ("height", ["1.80", "1.75", "1.62"], "numeric", True),
        ("sex", ["1", "2"] * 20, "flat", False),
        ("country", [str(i) for i in range(60)] * 3, "flat", False),
        ("children", [True, False, True], "flat", True),
        ("zip", ["02138", "02139", "90210"], "prefix", True),
        ("PLZ", [4109, 80331, 10115], "prefix", False),
        ("postcode", ["SW1A 1AA", "M1 1AE"], "prefix", True),
        ("county", ["001", "013", "101"] * 3, "prefix", False),
        ("birth_date", ["1980-02-29", "1999-12-31"], "date", True),
        ("birth_month", ["1980-02", "1999-12"], "date", True),
        ("birthday", ["29.02.1980", "31.12.1999"], "date", True),
        ("birthday", ["29/02/1980", "01/12/1999"], "date", True),
        ("birthday", ["02/29/1980 10:30", "12/01/1999 11:15"], "date", True),
        ("birthday", ["02/03/1980", "12/01/1999"], "date", False),
        ("birthday", ["29.02.80", "31.12.99"], "flat", False),
        ("birthday", ["19800229", "19991231"] * 20, "flat", False),
        ("birthday", ["1980-02-29"] * 99 + ["1981-02-29"], "date", False),
        ("born", ["1980-02-29T10:00", "1999-12-31T11:30"], "date", True),
        ("born", ["1980-02-29 10:00:01.5", "1999-12-31 11:30:00Z"], "date", True),
        ("city", ["Oslo", "Bergen", "Oslo"], "flat", True),
        ("age", [str(20 + i % 60) for i in range(100)] + ["thirty"], "numeric", False),
        ("age", ["[20, 30]", "[31, 40]"], "flat", False),
        ("diagnosis", ["J45.0", "E11", "I10", "C50.1"], "prefix", True),
        ("salary", ["1.200,50 €", "990,00 €"], "flat", False),
        ("city", [None, None], "flat", False),
    ],
)
def test_kinds(name: str, cells: list[object], kind: str, sure: bool) -> None:
    found = guess(name, cells)
    assert (found.kind, found.sure) == (kind, sure), found.reason


@pytest.mark.parametrize(
    ("name", "cells", "role", "sure"),
    [
        ("name", ["Ann", "Bob", "Cid"], "identifier", True),
        ("name", ["Ann", "Bob", "Ann"], "identifier", False),
        ("name", ["Ann", None, None], "identifier", True),
        ("LastName", ["Lee", "Ito", "Lee"], "identifier", False),
        ("email", ["a@b.org", "c@d.org"], "identifier", True),
        ("patient_id", [1, 2, 3], "identifier", True),
        ("patient_id", [1, 1, 2, 2, 3, 3], "person", True),
        ("SSN", ["123", "123", "456"], "person", True),
        ("department_id", [1, 2] * 50, "quasi", False),
        ("id", list(range(100)), "identifier", True),
        ("row", list(range(1, 101)), "identifier", False),
        ("remark", [f"came in the night of day {i}" for i in range(50)], "identifier", False),
        ("weight", [50 + i / 7 for i in range(50)], "quasi", True),
        ("disease", ["flu", "gout"], "sensitive", True),
        ("disease_name", ["flu", "gout"], "sensitive", True),
        ("annual income", [10, 20], "sensitive", True),
        ("salary-class", ["<=50K", ">50K"], "sensitive", False),
        ("capital-loss", [0, 0, 1902], "quasi", False),
        ("ward_name", ["A", "B"] * 20, "quasi", False),
        ("age", [30, 31], "quasi", True),
        ("marital-status", ["single", "married"], "quasi", True),
        ("patient_age", [30, 31, 31, 32], "quasi", True),
        ("customer income", [10, 20], "sensitive", False),
        ("street", ["High St", "Mill Ln"] * 20, "identifier", False),
        ("xyz", ["a", "b"] * 20, "quasi", False),
    ],
)
def test_roles(name: str, cells: list[object], role: str, sure: bool) -> None:
    found = guess(name, cells)
    assert (found.role, found.sure) == (role, sure), found.reason


@pytest.mark.parametrize(
    ("role", "names"),
    [
        (
            "identifier",
            "Name Vorname NACHNAME Familienname Adresse Strasse Straße Nom Prénom prenom apellidos nombre dirección",
        ),
        (
            "quasi",
            "Alter GESCHLECHT PLZ Ort Wohnort Beruf Familienstand Staatsangehörigkeit Staatsangehoerigkeit Geburtsdatum "
            "Staatsangeho\u0308rigkeit sexe code_postal codePostal profession date_de_naissance Pays edad sexo código_postal "
            "profesión fecha_nacimiento",
        ),
        ("sensitive", "Diagnose Krankheit Hauptdiagnose Gehalt Einkommen diagnostic salaire diagnóstico diagnostico SALARIO"),
        ("person", "Patientennummer Patienten-Nr Versichertennummer Telefon E-Mail"),
    ],
)
def test_roles_by_names_in_german_french_and_spanish(role: str, names: str) -> None:
    found = {name: guess(name, ["a", "b", "b"]) for name in names.split()}
    assert {name: one.reason for name, one in found.items() if one.role != role or "no clear evidence" in one.reason} == {}
    if role in ("quasi", "sensitive"):
        assert [name for name, one in found.items() if not one.sure] == []


@pytest.mark.parametrize("name", ["Sorte", "Alternative", "Ortho", "Nominal", "Gehaltvoll", "nombre"])
def test_words_of_other_languages_match_whole_words_and_a_count_is_no_name(name: str) -> None:
    assert "no clear evidence" in guess(name, [1, 2, 3, 4]).reason


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("Alter", [1, 2, 3] * 20, "numeric"),
        ("Familienstand", [10 * i for i in range(1, 13)] * 2, "flat"),
        ("Postleitzahl", ["04109", "80331"], "prefix"),
        ("Hauptdiagnose", ["J45.0", "E11", "I10", "C50.1"], "prefix"),
    ],
)
def test_kinds_by_names_in_german(name: str, cells: list[object], kind: str) -> None:
    assert guess(name, cells).kind == kind


def test_bad_value_is_pointed_at() -> None:
    cells: list[object] = [str(20 + i % 60) for i in range(200)]
    cells[149] = "thirty"
    assert "row 150" in guess("age", cells).reason and "'thirty'" in guess("age", cells).reason


def test_missing_markers_are_found_as_they_are_written() -> None:
    table = Columns.of(
        {
            "age": ["30", "unknown", "41", "None", "52"],
            "city": ["Oslo", "?", "Unknown", "None", "n/a"],
            "country": ["NA", "NO", "SE", "DK", "FI"],
        }
    )
    suggestion = suggest(table)
    assert set(suggestion.schema.missing) == {"unknown", "None", "?", "Unknown", "n/a", "NA"}
    assert set(suggestion.doubtful_markers) == {"Unknown", "NA"}
    assert suggestion.reasons["age"].kind == "numeric"
    assert set(suggest(Columns.of({"city": ["Oslo", "None"]})).schema.missing) == set()


@pytest.mark.parametrize(
    ("cells", "codes"),
    [
        ([30, 41, -9, 52], ["-9"]),
        (["30", "41", "-99", "-88", "52"], ["-99", "-88"]),
        (["1.80", "1.75", "-999.00", "?"], ["?", "-999.00"]),
        ([1.5, -3.25, 999.0, 20.5], ["999"]),
        ([1962, 1999, 9999], ["9999"]),
        ([0, 1, 99, 1], ["99"]),
        ([-3, -9, 4], []),
        (["997", "998", "999", "12"], []),
        ([*range(1, 99), 99], []),
        ([41310, 27828, 0, 99999], []),
        ([9, 99, 30, 41], []),
        (["-9", "a", "b"], []),
        ([-9, -9], []),
        ([-60, 5, 99], []),
        ([-1, 0, 5], []),
    ],
)
def test_numbers_that_stand_for_no_value_are_proposed_as_missing(cells: list[object], codes: list[str]) -> None:
    suggestion = suggest(Columns.of({"age": cells}))
    assert list(suggestion.schema.missing) == codes
    numbers = [code for code in codes if code != "?"]
    assert list(suggestion.doubtful_markers) == numbers and not (numbers and suggestion.reasons["age"].sure)
    for code in numbers:
        assert f"; {code} looks like a missing-value code and is taken as one" in suggestion.reasons["age"].reason
        assert f"'{code}'" in suggestion.to_recipe("t.csv").split("may be a value of its own")[0].split("missing: [")[1]


def test_a_number_that_is_a_value_of_another_column_is_not_missing_everywhere() -> None:
    cells: dict[str, list[object]] = {
        "age": [30, 41, 999, 52],
        "charge": [998, 999, 1200, 1750],
        "empty": [-9] * 4,
        "sex": [1, 2, -9, 1],
    }
    suggestion = suggest(Columns.of(cells))
    assert list(suggestion.schema.missing) == ["-9"] and not suggestion.reasons["age"].sure
    assert "999 looks like a missing-value code, but other columns have it as a value" in suggestion.reasons["age"].reason
    keys = suggest(Columns.of({"patient_id": [998, 999, 1200, 1750], "age": cells["age"]}))
    assert keys.schema.missing == ("999",) and keys.reasons["patient_id"].role == "identifier"


def test_step_for_decimals_and_long_tails_of_quasi_identifiers_only() -> None:
    rng = np.random.default_rng(3)
    tail = np.rint(np.exp(rng.normal(8, 1.5, 500))).astype(int).tolist()
    short, decimals = rng.integers(0, 90, 500).tolist(), (rng.integers(0, 9000, 500) / 100).tolist()
    suggestion = suggest(Columns.of({"tail": tail, "short": short, "decimals": decimals, "salary": tail}))
    steps = {name: kind.step for name, kind in suggestion.schema.quasi.items() if isinstance(kind, Numeric)}
    assert steps == {"tail": 500, "short": None, "decimals": 2}
    assert suggestion.schema.sensitive["salary"] == Numeric()


def test_rare_values_of_many_share_a_node_made_from_data(tmp_path: Path) -> None:
    common = [f"town {i % 20:02}" for i in range(1800)]
    table = Columns.of({"city": [*common, *(f"hamlet {i:03}" for i in range(150))], "disease": ["flu", "gout"] * 975})
    suggestion = suggest(table)
    kind = suggestion.schema.quasi["city"]
    assert isinstance(kind, Hierarchy) and kind.from_data and not suggestion.reasons["city"].sure
    assert kind.cover([kind.tree.leaf_labels.index("hamlet 000")], [kind.tree.leaf_labels.index("hamlet 149")]) == ["(rare)"]
    assert round_trip(suggestion, tmp_path).schema == suggestion.schema


def round_trip(suggestion: Suggestion, folder: Path, path: str = "t.csv") -> Recipe:
    file = folder / "recipe.yaml"
    file.write_text(suggestion.to_recipe(path), encoding="utf-8")
    return Recipe.read(file)


def test_recipe_of_the_hospital(tmp_path: Path) -> None:
    suggestion = suggest(hospital(500))
    recipe = round_trip(suggestion, tmp_path)
    assert recipe.schema == suggestion.schema
    assert recipe.data == tmp_path / "t.csv"
    assert [type(model).__name__ for model in recipe.models] == ["KAnonymity", *["TCloseness"] * 3]
    text = suggestion.to_recipe("t.csv")
    lines = {line.split(":")[0].strip(): line for line in text.splitlines()}
    for name in suggestion.reasons:
        if name != "name":
            assert ("# not sure" in lines[name]) == (name in suggestion.unsure)
            assert "#" in lines[name]


def test_recipe_offers_coarsening_before_the_method() -> None:
    text = suggest(hospital(200)).to_recipe("t.csv")
    offered = next(line for line in text.splitlines() if "coarsen" in line).split("exact numbers: ")[1]
    ((name, form),) = yaml.safe_load(offered).items()
    assert name == "age" and kind_from(form) == Numeric(step=5, coarsen=True)


def test_recipe_asks_for_a_secret_if_none_is_seen(tmp_path: Path) -> None:
    suggestion = suggest(Columns.of({"age": [30, 41, 52]}))
    text = suggestion.to_recipe("t.csv")
    assert "sensitive: {}  # not sure" in text
    assert [model.name for model in round_trip(suggestion, tmp_path).models] == ["k_anonymity"]


def test_recipe_says_how_the_file_is_written(tmp_path: Path) -> None:
    suggestion = suggest(Columns.of({"age": [30, 41, 52]}))
    (tmp_path / "r.yaml").write_text(suggestion.to_recipe("a b.txt", {"delimiter": ";", "decimal": ","}), encoding="utf-8")
    recipe = Recipe.read(tmp_path / "r.yaml")
    assert recipe.csv is not None and (recipe.csv.delimiter, recipe.csv.decimal) == (";", ",")
    assert recipe.data == tmp_path / "a b.txt"


def test_ordered_secret_with_missing_values_gets_another_distance(tmp_path: Path) -> None:
    recipe = round_trip(suggest(Columns.of({"age": [30, 41, 52], "salary": [1, None, 3]})), tmp_path)
    assert [getattr(model, "distance", None) for model in recipe.models] == [None, "equal"]


def test_an_identifier_that_repeats_says_what_to_declare() -> None:
    found = suggest(Columns.of({"name": ["Ann", "Bob", "Ann"], "age": [30, 41, 30]}))
    assert found.reasons["name"].reason.endswith(
        "1 of 3 rows repeat a value: make it the person if these are rows of one person, or add rows_are_persons: true"
    )
    assert "not sure: names of people; 1 of 3 rows repeat" in found.to_recipe("t.csv")


def test_names_may_repeat_where_another_column_is_the_person() -> None:
    found = suggest(Columns.of({"patient_id": [1, 1, 2, 2], "name": ["Ann", "Ann", "Bob", "Bob"]}))
    assert (found.schema.person, found.reasons["name"].sure) == ("patient_id", True)


def test_two_persons_are_one_too_many() -> None:
    found = roles(suggest(Columns.of({"patient_id": [1, 1, 2, 2], "ssn": [7, 7, 8, 8]})))
    assert found == {"patient_id": "person", "ssn": "identifier"}


def test_empty_table_is_refused() -> None:
    with pytest.raises(BadInput, match="no rows"):
        suggest(Columns.of({"age": []}))


examples = st.sampled_from(["?", "02138", "2024-01-31", "[1, 2]"])
cells = st.one_of(st.none(), st.text(max_size=8), st.integers(-5, 200).map(str), examples)


@given(st.dictionaries(st.text(min_size=1, max_size=10), st.lists(cells, min_size=4, max_size=4), min_size=1, max_size=4))
def test_any_table_gives_a_readable_recipe_without_plain_columns(table: dict[str, list[object]]) -> None:
    suggestion = suggest(Columns.of(table))
    forms = yaml.safe_load(suggestion.to_recipe("t.csv"))
    assert Recipe.of(forms).schema == suggestion.schema
    assert set(roles(suggestion)) == set(table) and "plain" not in roles(suggestion).values()
    suggestion.schema.list_needed(list(table))

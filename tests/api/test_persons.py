"""Persons with several rows: they stay together or are counted once, guarantees about them are attested, no person is named."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api import run
from closeknit.api.recipe import Recipe
from closeknit.checks.naive_cells import group_rows
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.io.files import write_csv, write_parquet
from conftest import examples, write_ndjson

SEED = 2**99


def visits(rng: np.random.Generator, persons: int, most: int) -> dict[str, list[Any]]:
    """Every person has one to `most` rows, with an age of his own and a disease for each visit."""
    rows = [person for person in range(persons) for _ in range(int(rng.integers(1, most + 1)))]
    age = rng.integers(20, 80, persons)
    return {
        "patient": [f"Patient-{person:04}" for person in rows],
        "age": [int(age[person]) for person in rows],
        "sex": rng.choice(["f", "m"], len(rows)).tolist(),
        "disease": rng.choice(["flu", "gout", "colic", "acne"], len(rows)).tolist(),
    }


def schema(person_rows: str = "together") -> ck.Schema:
    return ck.Schema(
        quasi={"age": ck.numeric(), "sex": ck.flat()},
        sensitive={"disease": ck.flat()},
        person="patient",
        person_rows=person_rows,
    )


def persons_by_class(release: ck.Release, cells: dict[str, list[Any]]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for person, number in zip(cells["patient"], release.partition.tolist(), strict=True):
        found.setdefault(number, set()).add(person)
    return found


@pytest.mark.parametrize("seed", range(examples(4)))
@pytest.mark.parametrize("person_rows", ["together", "count-once"])
def test_k_counts_persons(seed: int, person_rows: str) -> None:
    cells = visits(np.random.default_rng(seed), 40, 5)
    release = ck.anonymize(Columns.of(cells), schema(person_rows), [ck.KAnonymity(4)], seed=SEED)
    classes = persons_by_class(release, cells)
    assert min(len(persons) for persons in classes.values()) >= 4
    assert release.columns.rows == len(cells["age"])
    times = Counter(person for persons in classes.values() for person in persons)
    if person_rows == "together":
        assert max(times.values()) == 1


def test_count_once_may_part_a_person() -> None:
    """Otherwise the two settings would be one: a person with many rows stands in several classes."""
    cells = {"patient": ["p"] * 20 + [f"q{i}" for i in range(20)], "age": list(range(40)), "disease": ["flu", "gout"] * 20}
    roles: dict[str, Any] = {"quasi": {"age": ck.numeric()}, "sensitive": {"disease": ck.flat()}, "person": "patient"}
    for person_rows, split_up in (("together", False), ("count-once", True)):
        columns = Columns.of(cells)
        release = ck.anonymize(columns, ck.Schema(**roles, person_rows=person_rows), [ck.KAnonymity(3)], seed=SEED)
        assert (len(set(release.partition[:20].tolist())) > 1) is split_up


@pytest.mark.parametrize("person_rows", ["together", "count-once"])
def test_one_person_with_many_diseases_is_not_diverse(person_rows: str) -> None:
    cells = {
        "patient": ["p"] * 4 + ["q", "r", "s", "t"],
        "age": [30, 30, 30, 30, 60, 61, 62, 63],
        "sex": ["f"] * 8,
        "disease": ["flu", "gout", "colic", "acne", "flu", "flu", "gout", "colic"],
    }
    models = [ck.KAnonymity(2), ck.LDiversity("disease", 3)]
    release = ck.anonymize(Columns.of(cells), schema(person_rows), models, seed=SEED)
    for persons in persons_by_class(release, cells).values():
        assert len(persons) >= 3


def test_more_persons_than_there_are_is_refused() -> None:
    cells = visits(np.random.default_rng(2), 6, 9)
    assert len(cells["age"]) > 20
    with pytest.raises(ck.Unsatisfiable, match="k-anonymity, k = 7"):
        ck.anonymize(Columns.of(cells), schema(), [ck.KAnonymity(7)], seed=SEED)
    assert ck.anonymize(Columns.of(cells), schema(), [ck.KAnonymity(6)], seed=SEED).certificate.ok


def test_guarantees_in_persons_are_attested(tmp_path: Path) -> None:
    cells = visits(np.random.default_rng(3), 30, 4)
    models = [ck.KAnonymity(3), ck.LDiversity("disease", 2), ck.TCloseness("disease", 0.5)]
    release = ck.anonymize(Columns.of(cells), schema(), models, seed=SEED)
    k, diversity, closeness = release.certificate.guarantees
    for attested in (k, diversity):
        assert attested.status == "attested" and attested.met
        assert (attested.measured, attested.exact, attested.worst) == (None, None, None)
        assert "attested" in attested.line()
    assert closeness.status == "recomputable" and closeness.worst is not None
    assert release.certificate.ok
    assert any("count persons" in note for note in release.certificate.notes)
    release.save(tmp_path / "out")
    found = ck.audit(tmp_path / "out" / "release.csv", certificate=tmp_path / "out" / "certificate.json")
    assert not found.ok and found.findings == () and found.status == "met as far as it can be checked"
    assert [guarantee.status for guarantee in found.guarantees] == ["not checkable", "not checkable", "recomputed"]
    assert [guarantee.attested for guarantee in found.guarantees] == [True, True, False]
    assert str(found).splitlines()[-1].startswith("met as far as it can be checked (attested, as measured by the data owner")
    claimed = json.loads((tmp_path / "out" / "certificate.json").read_text(encoding="utf-8"))
    claimed["guarantees"][1]["met"] = False
    found = ck.audit(tmp_path / "out", certificate=ck.Certificate.from_json(json.dumps(claimed)))
    assert found.status == "not met" and "its certificate states that it is not met" in found.findings[0]


def test_attested_guarantee_cannot_be_passed_off_as_recomputable() -> None:
    cells = visits(np.random.default_rng(4), 30, 4)
    release = ck.anonymize(Columns.of(cells), schema(), [ck.KAnonymity(3)], seed=SEED)
    forged = json.loads(release.certificate.to_json())
    forged["guarantees"][0]["status"] = "recomputable"
    found = ck.audit(release.columns, certificate=ck.Certificate.from_json(json.dumps(forged)))
    assert not found.ok and found.findings


def test_person_is_never_published(tmp_path: Path) -> None:
    cells = visits(np.random.default_rng(5), 30, 4)
    release = ck.anonymize(Columns.of(cells), schema(), [ck.KAnonymity(3)], seed=SEED)
    release.save(tmp_path / "out")
    assert "patient" not in release.columns
    for file in (tmp_path / "out").iterdir():
        content = file.read_text("utf-8")
        assert "Patient-" not in content and "patient" not in content


def test_row_without_a_person_is_refused() -> None:
    cells = visits(np.random.default_rng(6), 10, 3)
    cells["patient"][4] = None
    with pytest.raises(ck.BadInput, match="column 'patient'"):
        ck.anonymize(Columns.of(cells), schema(), [ck.KAnonymity(2)], seed=SEED)


def test_without_persons_every_row_is_one_and_that_is_said() -> None:
    cells = {"age": [20, 30, 40, 50], "disease": list("abab")}
    plain = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"disease": ck.flat()})
    release = ck.anonymize(Columns.of(cells), plain, [ck.KAnonymity(2)], seed=SEED)
    assert any("every row was counted as a person of its own" in note for note in release.certificate.notes)


def test_classes_an_adversary_sees_hold_k_persons() -> None:
    """Judged from the written cells, with who is behind each row found by writing alone (ages are single here)."""
    rng = np.random.default_rng(7)
    cells = {
        "patient": [f"P{i // 3}" for i in range(60)],
        "age": [20 + i // 3 for i in range(60)],
        "disease": rng.choice(["flu", "gout"], 60).tolist(),
    }
    roles: dict[str, Any] = {"quasi": {"age": ck.numeric()}, "sensitive": {"disease": ck.flat()}, "person": "patient"}
    release = ck.anonymize(Columns.of(cells), ck.Schema(**roles), [ck.KAnonymity(5)], seed=SEED)
    for rows in group_rows(release.columns, ["age"]).values():
        assert len(rows) >= 15


# Identifiers that repeat ------------------------------------------------------------------------------------------------


def identified(**roles: Any) -> ck.Schema:
    usual = {"quasi": {"age": ck.numeric(), "sex": ck.flat()}, "sensitive": {"disease": ck.flat()}}
    return ck.Schema(**{**usual, **roles})


def test_counting_rows_of_visits_makes_classes_of_few_persons() -> None:
    """What the refusal is about: k = 5 is met in rows, and most classes hold fewer than five persons."""
    cells = visits(np.random.default_rng(3), 200, 9)
    dropped = ck.anonymize(Columns.of(cells), identified(drop=["patient"]), [ck.KAnonymity(5)], ck.Mondrian(), seed=SEED)
    sizes = [len(persons) for persons in persons_by_class(dropped, cells).values()]
    assert sum(size < 5 for size in sizes) > len(sizes) / 2
    with pytest.raises(ck.BadInput) as refused:
        ck.anonymize(Columns.of(cells), identified(identifier=["patient"]), [ck.KAnonymity(5)], ck.Mondrian(), seed=SEED)
    rows, repeats = len(cells["age"]), len(cells["age"]) - 200
    assert str(refused.value).startswith(f"column 'patient': {repeats:,} of {rows:,} rows repeat an identifier (row ")
    assert "person: patient" in str(refused.value) and "rows_are_persons: true" in str(refused.value)
    release = ck.anonymize(Columns.of(cells), schema(), [ck.KAnonymity(5)], ck.Mondrian(), seed=SEED)
    assert min(len(persons) for persons in persons_by_class(release, cells).values()) >= 5


PAIRS = {"name": ["Ann", "Bob", "Cid", "Ann"], "age": [30, 31, 32, 33], "sex": [*"ffmm"], "disease": ["flu", "gout"] * 2}


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "ndjson"])
def test_an_identifier_that_repeats_is_refused_from_wherever_it_comes(tmp_path: Path, kind: str) -> None:
    table: Any = pa.table(PAIRS)
    if kind != "frame":
        {"csv": write_csv, "parquet": write_parquet, "ndjson": write_ndjson}[kind](Columns.of(PAIRS), tmp_path / f"t.{kind}")
        table = tmp_path / f"t.{kind}"
    with pytest.raises(ck.BadInput, match=r"column 'name': 1 of 4 rows repeat an identifier \(row 4 that of row 1\)"):
        ck.anonymize(table, identified(identifier=["name"]), [ck.KAnonymity(2)])


@pytest.mark.parametrize(
    "ask",
    [
        lambda table, schema: ck.compare(table, schema, [ck.KAnonymity(2)], ["mondrian"]),
        lambda table, schema: ck.frontier(table, schema, [ck.KAnonymity(2)], ["mondrian"], vary={"k": [2]}),
        lambda table, schema: ck.choose_k(table, schema, ks=[2], method="mondrian"),
        lambda table, schema: ck.replay(ck.Castle(schema, k=2, delta=3), table),
    ],
)
def test_an_identifier_that_repeats_is_refused_whatever_is_asked(ask: Any) -> None:
    quasi = {"age": ck.numeric(0, 100), "sex": ck.flat()}
    with pytest.raises(ck.BadInput, match="rows repeat an identifier"):
        ask(Columns.of(PAIRS), identified(identifier=["name"], quasi=quasi))
    ask(Columns.of(PAIRS), identified(identifier=["name"], quasi=quasi, rows_are_persons=True))


def test_rows_declared_as_persons_are_noted_and_the_recipe_repeats_them(tmp_path: Path) -> None:
    declared = identified(identifier=["name"], rows_are_persons=True)
    write_csv(Columns.of(PAIRS), tmp_path / "t.csv")
    release = ck.anonymize(tmp_path / "t.csv", declared, [ck.KAnonymity(2)], seed=SEED)
    said = "every row was counted as a person of its own, as the data owner declares (rows_are_persons)"
    assert said in release.certificate.notes
    release.save(tmp_path / "out")
    again = run(Recipe.read(tmp_path / "out.private" / "recipe.yaml"))
    assert again.certificate.content_sha256 == release.certificate.content_sha256
    assert ck.audit(tmp_path / "out" / "release.csv", certificate=tmp_path / "out" / "certificate.json").ok


def test_other_identifiers_may_repeat_where_a_person_is_declared() -> None:
    cells = Columns.of({**PAIRS, "patient": [1, 2, 3, 4]})
    release = ck.anonymize(cells, identified(identifier=["name"], person="patient"), [ck.KAnonymity(2)])
    assert "k and diversity count persons; who they are is not published" in release.certificate.notes


@pytest.mark.parametrize("nothing", [None, "", "  ", "?"])
def test_missing_identifiers_do_not_repeat_each_other(nothing: str | None) -> None:
    cells = {**PAIRS, "name": ["Ann", nothing, nothing, nothing]}
    assert ck.anonymize(pa.table(cells), identified(identifier=["name"], missing=["?"]), [ck.KAnonymity(2)]).certificate.ok


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (
            {"person": "name", "rows_are_persons": True},
            "column 'name': is the person column, and rows_are_persons is declared too",
        ),
        ({"rows_are_persons": "yes"}, "schema, key 'rows_are_persons': input should be a valid boolean"),
    ],
)
def test_what_contradicts_itself_is_refused(roles: dict[str, Any], message: str) -> None:
    with pytest.raises(ck.BadInput, match=message):
        identified(**roles)


def test_an_identifier_of_another_type_says_how_it_need_not_be_read() -> None:
    table = pa.table({**PAIRS, "name": [[1], [2], [3], [4]]})
    with pytest.raises(ck.BadInput, match=r"column 'name': .* or list it under drop, which is not read"):
        ck.anonymize(table, identified(identifier=["name"]), [ck.KAnonymity(2)])
    assert ck.anonymize(table, identified(identifier=["name"], rows_are_persons=True), [ck.KAnonymity(2)]).certificate.ok


def test_a_stream_notes_that_identifiers_were_not_checked() -> None:
    unchecked = "every row was counted as a person of its own; whether an identifier repeats was not checked"
    schema = identified(identifier=["name"], quasi={"age": ck.numeric(0, 100), "sex": ck.flat()})
    assert unchecked in ck.Castle(schema, k=2, delta=3).certificate.notes
    whole = Columns.of({**PAIRS, "name": [*"abcd"]})
    assert unchecked not in ck.replay(ck.Castle(schema, k=2, delta=3), whole).certificate.notes


def test_identifiers_leave_no_trace(tmp_path: Path) -> None:
    cells = {**PAIRS, "name": ["Zaphod", "Yolanda", "Xerxes", "Wilhelmina"]}
    release = ck.anonymize(Columns.of(cells), identified(identifier=["name"]), [ck.KAnonymity(2)], seed=SEED)
    release.save(tmp_path / "out")
    written = "".join(file.read_text() for folder in ("out", "out.private") for file in (tmp_path / folder).iterdir())
    assert not any(name in written for name in cells["name"])


def test_exact_duplicates_are_counted_for_the_owner_only(tmp_path: Path) -> None:
    cells = {"name": [*"abcdef"], "age": [30, 30, 30, 40, 41, 42], "sex": [*"ffffmm"], "disease": ["flu"] * 5 + ["gout"]}
    write_csv(Columns.of(cells), tmp_path / "t.csv")
    recipe = {"data": "t.csv", "schema": identified(identifier=["name"]).forms(), "models": [{"k_anonymity": {"k": 2}}]}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    made = CliRunner().invoke(app, ["anonymize", str(tmp_path / "recipe.yaml"), "-o", str(tmp_path / "out")])
    assert made.exit_code == 0, made.output
    assert "2 input rows repeat another row exactly" in made.stderr and "repeat another" not in made.stdout
    private, public = (tmp_path / folder for folder in ("out.private", "out"))
    assert json.loads((private / "report.json").read_text())["duplicates"] == 2
    assert "2 input rows repeat another row" in (private / "report.html").read_text()
    said = "".join(file.read_text() for file in public.iterdir())
    assert "duplicate" not in said and "repeat another" not in said


def test_rows_of_two_persons_are_no_duplicates() -> None:
    cells = {"patient": ["a", "a", "b", "c"], "age": [30] * 4, "sex": ["f"] * 4, "disease": ["flu"] * 3 + ["gout"]}
    assert ck.anonymize(Columns.of(cells), schema(), [ck.KAnonymity(2)], seed=SEED).duplicates == 1

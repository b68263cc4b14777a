"""A guarantee must exclude something: one under which every value may stand alone in a class is refused, noted or named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.publishing import publish_table
from closeknit.cli.commands import app
from closeknit.core.certificate import Certificate
from closeknit.core.columns import Columns
from closeknit.core.errors import Vacuous
from closeknit.core.table import Partition
from closeknit.core.vacuity import find_stand_alone, vacuous_note

SEED = 2**90
K, T = 6, 0.1
DEEP: dict[str, Any] = {"ill": ["ICD10-B20", "ICD10-B21"]}
for level in range(9):
    DEEP = {f"level {level}": DEEP}

# Codes of people of 30, codes of people of 31, the kind of the column, and what the refusal says about the cause.
REPRODUCTIONS = {
    "codes with a constant prefix": (
        ["ICD10-B20"] * 6,
        ["ICD10-B21"] * 6,
        ck.prefix(9),
        "meet at 'ICD10-B2*', of height 1 in a hierarchy of height 9",
    ),
    "one long code among short ones": (
        ["B20"] * 300 + ["C" + 40 * "x"],
        ["B21"] * 300,
        ck.prefix(),
        "which 'Cxxxxxxxxxxxxxxxxxxx...' makes so high",
    ),
    "levels with a single child in a declared tree": (
        ["ICD10-B20"] * 6,
        ["ICD10-B21"] * 6,
        ck.Hierarchy.from_nested(DEEP),
        "meet at 'ill', of height 1 in a hierarchy of",
    ),
}


def case(young: list[str], old: list[str], kind: Any) -> tuple[Columns, ck.Schema]:
    """Age reveals the code of everyone."""
    cells = {"age": [30] * len(young) + [31] * len(old), "icd": young + old}
    return Columns.of(cells), ck.Schema(quasi={"age": ck.numeric()}, sensitive={"icd": kind})


def equal_halves(kind: Any = None) -> tuple[Columns, ck.Schema]:
    return case(["flu"] * 6, ["gout"] * 6, kind or ck.flat())


def models(t: Any = T, **more: Any) -> list[Any]:
    return [ck.KAnonymity(K), ck.TCloseness("icd", t, **more)]


@pytest.fixture(scope="module")
def allowed() -> ck.Release:
    """A release whose closeness is vacuous, which its certificate notes."""
    return ck.anonymize(*case(["B20"] * 6, ["B21"] * 6, ck.prefix(3)), models(0.2), seed=SEED, allow_vacuous=True)


# Requests --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_a_closeness_under_which_every_code_may_stand_alone_is_refused_with_its_cause(name: str) -> None:
    *cells, cause = REPRODUCTIONS[name]
    data, schema = case(*cells)
    with pytest.raises(Vacuous) as refusal:
        ck.anonymize(data, schema, models(), seed=SEED)
    assert isinstance(refusal.value, ck.Unsatisfiable) and refusal.value.status == 1
    assert cause in str(refusal.value) and "request distance 'equal', or set allow_vacuous" in str(refusal.value)
    equal = ck.anonymize(data, schema, models(distance="equal"), seed=SEED).certificate  # the remedy
    assert equal.ok and equal.guarantees[1].alone == 0 and equal.classes.count == 1


def test_without_the_long_code_the_same_limit_excludes_something() -> None:
    release = ck.anonymize(*case(["B20"] * 300, ["B21"] * 300, ck.prefix()), models(), seed=SEED)
    assert release.certificate.classes.count == 1 and not release.certificate.guarantees[1].vacuous


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ck.TCloseness("icd", 0.5), "the limit <= 0.5 is looser than what such classes reach; request less than 0.5"),
        (ck.BetaLikeness("icd", 1, "basic"), "request less than 1"),
        (ck.LDiversity("icd", 1), "request more than 1"),
        (ck.LDiversity("icd", 1, "entropy"), "request more than 1"),
        (ck.LDiversity("icd", 1, "frequency"), "request more than 1"),
        (ck.LDiversity("icd", 1, "recursive", 1.5), "looser"),
    ],
)
def test_a_limit_that_no_single_value_exceeds_is_refused_with_one_that_excludes_something(model: Any, words: str) -> None:
    with pytest.raises(Vacuous, match="every value with at least 6 rows may stand alone") as refusal:
        ck.anonymize(*equal_halves(), [ck.KAnonymity(K), model], seed=SEED)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "model",
    [
        ck.TCloseness("icd", 0.499),
        ck.BetaLikeness("icd", 0.999, "basic"),
        ck.BetaLikeness("icd", 50),
        ck.DeltaDisclosure("icd", 9),
        ck.LDiversity("icd", 2),
        ck.LDiversity("icd", 1, "recursive", 1),
    ],
)
def test_a_limit_that_some_single_value_exceeds_is_served(model: Any) -> None:
    data, schema = equal_halves()
    release = ck.anonymize(data, schema, [ck.KAnonymity(K), model], seed=SEED)
    assert release.certificate.guarantees[1].alone == 0 and not any("vacuous" in note for note in release.certificate.notes)


@pytest.mark.filterwarnings("ignore")
def test_a_column_of_one_value_is_refused_as_what_it_is() -> None:
    with pytest.raises(Vacuous, match="the column has one value only; leave the guarantee out"):
        ck.anonymize(*case(["flu"] * 6, ["flu"] * 6, ck.flat()), models(), seed=SEED)


def test_only_values_with_enough_rows_for_a_class_decide() -> None:
    data, schema = case(["a"] * 6 + ["x"], ["b"] * 6, ck.flat())
    with pytest.raises(Vacuous):  # x alone exceeds the limit, and no class can hold it alone
        ck.anonymize(data, schema, models(0.6), seed=SEED)
    few = [ck.KAnonymity(1), ck.TCloseness("icd", 0.6)]
    guarantee = ck.anonymize(data, schema, few, seed=SEED).certificate.guarantees[1]
    assert guarantee.alone == 12 / 13 and "(92.3 % of rows have a value that may stand alone)" in guarantee.line()


def test_a_guarantee_that_becomes_vacuous_in_what_is_written_is_refused() -> None:
    data, schema = equal_halves()
    table, half = schema.encode(data), Partition(np.array([0] * 6 + [-1] * 6, dtype=np.int32), 1)
    with pytest.raises(Vacuous, match="one value only"):
        publish_table(table, half, models(0.3), ck.generalized())


def test_a_users_own_model_is_judged_by_its_own_holds() -> None:
    class Anything(ck.LDiversity):
        def holds(self, classes: Any) -> Any:
            return np.ones(len(classes), dtype=bool)

    data, schema = equal_halves()
    found = find_stand_alone(Anything("icd", 5), schema.encode(data).one_class(), 1)
    assert found is not None and found.vacuous and found.share == 1.0


def test_a_beta_that_the_cap_makes_idle_is_noted() -> None:
    data, schema = equal_halves()
    notes = {
        beta: ck.anonymize(data, schema, [ck.BetaLikeness("icd", beta)], seed=SEED).certificate.notes for beta in (0.69, 0.7)
    }
    idle = {beta: [note for note in said if "max(-ln p)" in note] for beta, said in notes.items()}
    assert not idle[0.69] and len(idle[0.7]) == 1  # ln 2 = 0.693


# What is allowed -------------------------------------------------------------------------------------------------------------


def test_what_is_allowed_is_noted_and_its_share_is_stated(allowed: ck.Release) -> None:
    certificate = allowed.certificate
    guarantee = certificate.guarantees[1]
    assert certificate.ok and guarantee.met and guarantee.vacuous and guarantee.alone == 1.0
    assert vacuous_note(guarantee.text) in certificate.notes and "may stand alone" in guarantee.line()
    assert certificate.guarantees[0].alone is None  # sizes say nothing about values
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_a_recipe_repeats_what_it_allows_and_without_the_key_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,icd\n" + "30,flu\n" * 6 + "31,gout\n" * 6, encoding="utf-8")
    text = "{data: people.csv, schema: {quasi: {age: numeric}, sensitive: {icd: flat}}, seed: 5, "
    text += "models: [{k_anonymity: {k: 6}}, {t_closeness: {column: icd, t: 0.5}}]"
    (tmp_path / "no.yaml").write_text(text + "}", encoding="utf-8")
    (tmp_path / "yes.yaml").write_text(text + ", allow_vacuous: true}", encoding="utf-8")
    run = CliRunner().invoke
    refused = run(app, ["anonymize", str(tmp_path / "no.yaml"), "-o", str(tmp_path / "out")])
    assert refused.exit_code == 1 and "is vacuous" in refused.output and not (tmp_path / "out").exists()
    assert run(app, ["anonymize", str(tmp_path / "yes.yaml"), "-o", str(tmp_path / "out")]).exit_code == 0
    assert "allow_vacuous: true" in (tmp_path / "out.private" / "recipe.yaml").read_text(encoding="utf-8")
    assert run(app, ["audit", str(tmp_path / "out")]).exit_code == 0  # the certificate notes it
    foreign = run(app, ["audit", str(tmp_path / "out" / "release.csv"), "--recipe", str(tmp_path / "no.yaml")])
    assert foreign.exit_code == 3 and foreign.output.rstrip().splitlines()[-1].startswith("vacuous: ")


# Audits ----------------------------------------------------------------------------------------------------------------------


def test_an_audit_calls_a_foreign_guarantee_vacuous_and_not_broken(allowed: ck.Release) -> None:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"icd": ck.prefix(3)})
    found = ck.audit(allowed.frame, schema, models(0.2))
    assert found.status == "vacuous" and not found.ok and not found.findings
    assert [guarantee.status for guarantee in found.guarantees] == ["recomputed", "vacuous"]


def test_an_audit_is_content_with_a_vacuous_guarantee_that_the_certificate_notes(allowed: ck.Release) -> None:
    found = ck.audit(allowed.frame, certificate=allowed.certificate)
    assert found.ok and found.guarantees[1].status == "vacuous" and found.guarantees[1].noted


def test_a_certificate_that_hides_what_may_stand_alone_is_found_out(allowed: ck.Release) -> None:
    certificate, note = allowed.certificate, vacuous_note(allowed.certificate.guarantees[1].text)
    silent = certificate.model_copy(update={"notes": tuple(said for said in certificate.notes if said != note)})
    assert f"the certificate does not note: {note}" in ck.audit(allowed.frame, certificate=silent).findings
    size, closeness = certificate.guarantees
    for change in ({"alone": 0.5}, {"vacuous": False}):
        changed = certificate.model_copy(update={"guarantees": (size, closeness.model_copy(update=change))})
        assert any("may stand alone" in finding for finding in ck.audit(allowed.frame, certificate=changed).findings)
    old = silent.model_copy(update={"guarantees": (size, closeness.model_copy(update={"alone": None, "vacuous": False}))})
    found = ck.audit(allowed.frame, certificate=old)
    assert found.status == "vacuous" and not found.findings  # made before shares were stated


# Many settings, streams, Spark -----------------------------------------------------------------------------------------------


def test_a_frontier_marks_vacuous_rows_and_keeps_them_off_the_front() -> None:
    data, schema = case(["flu"] * 6 + ["gout"] * 3, ["gout"] * 6 + ["flu"] * 3, ck.flat())
    found = ck.frontier(data, schema, [ck.KAnonymity(2), ck.TCloseness("icd", 0.2)], ["mondrian"], vary={"t": [0.2, 0.5]})
    assert [(point.requested, point.ok, point.vacuous) for point in found.points] == [(0.2, True, False), (0.5, True, True)]
    assert not found.points[1].front and "mondrian at 0.5 is vacuous" in str(found)
    assert [record["vacuous"] for record in found.records()] == [False, True]


def test_a_comparison_gives_the_reason_in_every_row_unless_it_is_allowed() -> None:
    data, schema = equal_halves()
    refused = ck.compare(data, schema, models(0.5), ["mondrian", "sabre"], seed=SEED)
    assert not refused.ok and all("is vacuous" in str(row.reason) for row in refused.methods)
    assert ck.compare(data, schema, models(0.5), ["mondrian"], seed=SEED, allow_vacuous=True).ok


def test_a_stream_notes_a_diversity_of_one_and_continues() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"icd": ck.flat()})
    data, _ = equal_halves()
    for l, vacuous in ((1, True), (2, False)):
        release = ck.replay(ck.Castle(schema, k=2, delta=5, l=l, seed=SEED), data)
        assert release.certificate.rows > 0
        assert sum("is vacuous" in note for note in release.certificate.notes) == vacuous


def test_windows_count_those_in_which_a_guarantee_is_vacuous_and_go_on() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"icd": ck.flat()})
    mixed, same = ["flu", "gout", "acne", "rash"] * 2, ["flu"] * 8
    data = Columns.of({"age": list(range(24)), "icd": [*mixed, *same, *mixed]})
    stream = ck.Windowed(ck.Mondrian(), schema, [ck.TCloseness("icd", 0.4)], omega=8, advance=8, k=2, seed=SEED)
    release = ck.replay(stream, data)
    assert release.certificate.rows == 24
    assert [note.partition(" is ")[2] for note in release.certificate.notes if "vacuous" in note] == [
        "vacuous in 1 windows: in them it excludes nothing"
    ]


def test_spark_refuses_the_same(spark: Any) -> None:
    data, schema = equal_halves()
    cells = zip(*(data[name].cells() for name in ("age", "icd")), strict=True)
    frame = spark.createDataFrame(list(cells), ["age", "icd"])
    with pytest.raises(Vacuous, match="request less than"):
        ck.anonymize(frame, schema, models(0.5), ck.Mondrian(), seed=SEED)

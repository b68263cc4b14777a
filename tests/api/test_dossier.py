"""Dossiers: every question of every framework, numbers with their origin, boxes for people, and nothing private in public."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import closeknit as ck
from closeknit.api.dossiers import FRAMEWORKS, save_dossier, write_template
from closeknit.api.dossiers.numbers import NEEDS, NUMBERS
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.io.files import write_csv
from closeknit.report.dossier_page import dossier_page
from closeknit.report.dossier_record import Dossier


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dossier")
    table = ck.datasets.hospital(80)
    write_csv(table, folder / "t.csv")
    models = [ck.KAnonymity(11), ck.LDiversity("disease", 2)]
    release = ck.anonymize(folder / "t.csv", ck.datasets.hospital_schema(), models, "mondrian", seed=2**90)
    release.save(folder / "out", report=False)
    ck.new_keys(folder / "key")
    ck.sign(folder / "out", folder / "key", signer="Data Office")
    return folder


@pytest.fixture(scope="module")
def public(place: Path) -> dict[str, Dossier]:
    return {name: ck.dossier(place / "out", name) for name in ("ema", "iso27559")}


@pytest.fixture(scope="module")
def private(place: Path) -> Dossier:
    return ck.dossier(place / "out", "ema", recipe=place / "out.private" / "recipe.yaml", population=100_000)


def answers_of(dossier: Dossier, section: str) -> dict[str, str]:
    (question,) = [one for one in dossier.questions if one.section == section]
    return {answer.label: answer.value for answer in question.answers}


def test_frameworks_ask_for_numbers_that_exist() -> None:
    assert set(FRAMEWORKS) == {"wp216", "ico", "ema", "hipaa", "nist", "iso27559"}
    asked = {name for framework in FRAMEWORKS.values() for question in framework.questions for name in question.numbers}
    assert asked - {"attempt"} == set(NUMBERS) and set(NEEDS) <= set(NUMBERS)
    for framework in FRAMEWORKS.values():
        assert all(address.startswith("https://") for _, address in framework.sources)
        assert all(question.numbers or question.boxes for question in framework.questions)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_question_is_answered_or_has_a_box(place: Path, name: str, public: dict[str, Dossier]) -> None:
    found = public.get(name) or ck.dossier(place / "out", name)
    assert found.edition == "public" and found.audit == "met"
    for question in found.questions:
        assert question.answers or question.boxes or question.missing, question.section
        assert all(answer.basis != "private" for answer in question.answers)
    page = dossier_page(found)
    assert all(question.text in page and question.section in page for question in found.questions)
    assert page.count("To be answered by a person") == found.open_boxes == found.boxes > 0


def test_numbers_are_those_of_the_release(place: Path, public: dict[str, Dossier]) -> None:
    risk, certificate = ck.risk(place / "out").record, ck.audit(place / "out")
    threshold = answers_of(public["ema"], "Threshold")
    assert threshold["Requested threshold"] == "k = 11: a risk of at most 1/11 = 0.09091; policies round 1/11 to 0.09"
    assert threshold["Prosecutor: highest risk"] == f"{risk.attacker('prosecutor').highest:.4g}"
    assert threshold["Prosecutor: average risk"] == f"{risk.attacker('prosecutor').average:.4g}"
    assert answers_of(public["ema"], "Utility")["Information loss"] == f"{certificate.loss.a:.4f}"
    roles = answers_of(public["ema"], "Identifiers")
    assert roles["Sensitive column disease"] == "published as it is, protected by a guarantee"
    assert roles["Sensitive column stay"] == "published as it is, unprotected"
    assert len(public["ema"].findings) == len(ck.attack(place / "out").findings) and public["ema"].untried


def test_public_and_private_editions(place: Path, public: dict[str, Dossier], private: Dossier) -> None:
    before = answers_of(private, "Threshold")
    assert before["Prosecutor, before: highest risk"] == "1" and "Prosecutor, before: highest risk" not in answers_of(
        public["ema"], "Threshold"
    )
    assert private.edition == "private" and answers_of(private, "Population")["Reference population"] == "100,000 people"
    assert answers_of(private, "Population")["Expected population uniques"] == "0 people"
    assert any(found.attack == "candidate_rows" for found in private.findings)
    assert any("minimality" in reason and "--runs" in reason for reason in private.untried)
    assert any("COUNT queries" in answer.label for answer in private.utility)
    assert "name" in answers_of(private, "Identifiers")["Direct identifiers and other removed columns"]
    text = public["ema"].to_json() + dossier_page(public["ema"])
    assert "Direct identifiers" not in text and "recipe.yaml" not in text and str(place) not in text
    assert "the risk before (needs the private recipe)" in text
    assert "the removed columns (needs the private recipe)" in text and "do not share" in dossier_page(private)
    assert dossier_page(private).count("COUNT queries on disease") == 1  # the framework asks for utility itself


def test_singling_out_is_answered_next_to_its_baseline_or_missing_with_the_reason(place: Path, tmp_path: Path) -> None:
    public, private = (
        ck.dossier(place / "out", "wp216", recipe=recipe).questions[0]
        for recipe in (None, place / "out.private" / "recipe.yaml")
    )
    (single,) = [answer for answer in private.answers if answer.label.startswith("Singling out")]
    assert single.basis == "private" and "fit exactly one row" in single.detail and "by chance" in single.detail
    assert not private.missing and "descriptions that fit one row (needs the private recipe)" in public.missing
    schema, models = ck.datasets.hospital_schema(), [ck.LDiversity("disease", 2)]
    ck.anonymize(place / "t.csv", schema, models, form="bucketized").save(tmp_path / "out", report=False)
    buckets = ck.dossier(tmp_path / "out", "wp216", recipe=tmp_path / "out.private" / "recipe.yaml").questions[0]
    assert "descriptions that fit one row (does not apply to this release)" in buckets.missing


def test_population_uniques_of_a_release_with_uniques(tmp_path: Path) -> None:
    table, schema = Columns.of({"age": [20, 20, 20, 30, 40, 50, 50]}), ck.Schema(quasi={"age": ck.numeric()})
    ck.anonymize(table, schema, [ck.AverageRisk("0.8")], "mondrian").save(tmp_path / "out", report=False)
    found, risk = ck.dossier(tmp_path / "out", "hipaa", population=70), ck.risk(tmp_path / "out", population=70)
    answers = answers_of(found, "(b)(1)(i) Risk")
    assert risk.record.uniques and answers["Reference population"] == "70 people"
    assert answers["Expected population uniques, Zayatz"].startswith(f"{risk.population_uniques['zayatz']:,.1f} people")


def test_statements_are_marked_with_the_person(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "answers.yaml"
    file.write_text(
        yaml.safe_dump({"by": "Ann", "answers": {"adversaries": "<b>none</b>", "attempt": {"text": 0.5, "by": "Bob"}}})
        + "date: 2026-01-31\n",
        encoding="utf-8",
    )
    found = ck.dossier(place / "out", "ema", answers=file)
    page = dossier_page(found)
    assert "Stated by Ann on 2026-01-31; not computed by closeknit." in page and "&lt;b&gt;none&lt;/b&gt;" in page
    risk = ck.risk(place / "out").prosecutor.highest
    assert answers_of(found, "Threshold")["Attempt × highest risk"] == f"0.5 × {risk:.4g} = {risk / 2:.4g}"
    assert "as stated by Bob" in page and found.open_boxes == found.boxes - 2
    assert Dossier.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("by: Ann\nanswers: {adversary: x}", "'adversary' is no box of ema; did you mean 'adversaries'?"),
        ("answers: {adversaries: x}", "no one states the answer 'adversaries'"),
        ("by: Ann\nanswers: {attempt: 2}", "attempt=2 is out of range"),
        ("by: Ann\nanswers: {attempt: often}", "attempt"),
        ("from: Ann", "unknown key 'from'"),
        ("date: soon", "date='soon' is not a day"),
        ("- x", "is not a file of answers"),
        ("answers: [x]", "is not a file of answers"),
        ("by: [", "is not valid YAML"),
    ],
)
def test_wrong_answers_are_refused(place: Path, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "answers.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ck.BadInput, match=re.escape(says)):
        ck.dossier(place / "out", "ema", answers=tmp_path / "answers.yaml")


def test_templates_are_files_of_answers(place: Path, tmp_path: Path) -> None:
    for framework in FRAMEWORKS.values():
        text = write_template(framework)
        keys = {key for question in framework.questions for key, _ in question.boxes}
        assert set(yaml.safe_load(text)["answers"]) == keys
    (tmp_path / "empty.yaml").write_text(text, encoding="utf-8")
    assert ck.dossier(place / "out", "iso27559", answers=tmp_path / "empty.yaml").open_boxes > 0


def test_a_page_is_whole_and_a_pdf_has_its_text(tmp_path: Path, public: dict[str, Dossier]) -> None:
    short = public["iso27559"].model_copy(update={"findings": (), "questions": public["iso27559"].questions[:2]})
    files = save_dossier(short, tmp_path / "d", pdf=True)
    assert files == ["dossier.html", "dossier.json", "dossier.pdf"]
    page = (tmp_path / "d" / "dossier.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=\"(?!https://)|@import|url\(|<script", page)
    assert (tmp_path / "d" / "dossier.pdf").read_bytes().startswith(b"%PDF-")
    with pytest.raises(ck.BadInput, match="exists already"):
        save_dossier(public["iso27559"], tmp_path / "d")
    (tmp_path / "d" / "mine.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ck.BadInput, match=r"mine\.txt"):
        save_dossier(public["iso27559"], tmp_path / "d", force=True)


def test_the_last_printed_page_has_more_than_the_footer(public: dict[str, Dossier]) -> None:
    weasyprint = pytest.importorskip("weasyprint")
    head, rest = dossier_page(public["ema"]).split("<main>")
    end = rest[rest.rindex("<section") :]
    for height in range(600, 1000, 10):  # pixels above the last section; a page of A4 has some 994
        page = f'{head.split("<header>")[0]}<main><div style="height: {height}px">x</div>{end}'
        texts = [_texts_of(sheet._page_box) for sheet in weasyprint.HTML(string=page).render().pages]
        assert "Created by" in texts[-1] and "How to verify it" in texts[-1], height


def _texts_of(box: Any) -> str:
    return getattr(box, "text", None) or " ".join(map(_texts_of, getattr(box, "children", ())))


def test_the_folder_of_a_private_edition_is_private(tmp_path: Path, private: Dossier) -> None:
    save_dossier(private, tmp_path / "d")
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o700


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("dossier", place / "out", "--for", "nist", "-o", "d", "--key", place / "key.pub")
    assert done.exit_code == 0 and "d/  dossier.html, dossier.json: public: may be shared" in done.stdout, done.output
    record = json.loads(Path("d/dossier.json").read_text(encoding="utf-8"))
    assert record["signatures"][0].startswith("signed by 'Data Office' with the key")
    assert "answers:" in run("dossier", "--for", "nist", "--template").stdout
    for words, says in (
        ((place / "out", "--for", "gdpr", "-o", "x"), "framework 'gdpr' is unknown"),
        ((place / "out", "--for", "wp261", "-o", "x"), "did you mean 'wp216'?"),
        ((place, "--for", "ema", "-o", "x"), "there is no certificate.json in this folder"),
        (("nowhere", "--for", "ema", "-o", "x"), "there is no such folder"),
        ((place / "out", "--for", "ema", "-o", "d"), "it exists already"),
        ((place / "out", "--for", "ema", "-o", "x", "--answers", "nowhere.yaml"), "cannot be read"),
        ((place / "out", "--for", "ema", "-o", "x", "--key", place / "key"), "this is a private key"),
        ((place / "out", "--for", "ema", "-o", "x", "--sampling-fraction", "2"), "sampling_fraction"),
        ((place / "out", "--for", "ema"), "with -o"),
    ):
        bad = run("dossier", *words)
        assert bad.exit_code == 2 and says in bad.stderr, (words, bad.output)
    assert not Path("x").exists()


def test_a_changed_release_is_not_hidden(place: Path, tmp_path: Path) -> None:
    """The audit is on the first page; a release that is another one than the certificate's has no dossier at all."""
    for file in (place / "out").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    certificate = json.loads((tmp_path / "certificate.json").read_text(encoding="utf-8"))
    certificate["notes"] = []
    (tmp_path / "certificate.json").write_text(json.dumps(certificate, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    found = ck.dossier(tmp_path, "nist", key=place / "key.pub")
    assert found.audit.startswith("not met; ") and "changed since it was signed" in found.audit
    release = tmp_path / "release.csv"
    release.write_text(release.read_text(encoding="utf-8").replace("male", "Male", 1), encoding="utf-8")
    with pytest.raises(ck.BadInput, match="its content differs"):
        ck.dossier(tmp_path, "nist")


def test_a_dossier_with_the_list_of_people_recomputes_what_counts_them(tmp_path):
    """Without the list the audit of the dossier states that it could not check the guarantee; with it, that it is met."""
    people = ck.datasets.hospital(400)
    write_csv(people, tmp_path / "people.csv")
    schema = ck.datasets.hospital_schema()
    table = people.take(np.arange(0, 400, 4))
    release = ck.anonymize(table, schema, [ck.KMap(3, population=tmp_path / "people.csv")], ck.Mondrian(), seed=2**80)
    release.save(tmp_path / "out", report=False)
    alone, known = (ck.dossier(tmp_path / "out", "wp216", population=given) for given in (None, tmp_path / "people.csv"))
    assert alone.audit == "met as far as it can be checked" and known.audit == "met"
    bases = {answer.label: answer.basis for question in known.questions for answer in question.answers}
    assert bases["Prosecutor: highest risk"] == "recomputable"
    assert bases["Journalist: highest risk"] == bases["Marketer: average risk"] == "attested"
    assert "people.csv" not in dossier_page(known)


def test_a_page_names_techniques_and_shows_columns_as_code(tmp_path):
    """Each quasi-identifier has what was done with it, and no backtick is left on the page."""
    table = ck.datasets.hospital(60)
    form = ck.generalized(levels={"job": "*"})
    release = ck.anonymize(table, ck.datasets.hospital_schema(), [ck.KAnonymity(2)], ck.Mondrian(), form=form, seed=2**80)
    release.save(tmp_path / "out", report=False)
    found = ck.dossier(tmp_path / "out", "ema")
    answers = {answer.label: answer.value for question in found.questions for answer in question.answers}
    assert answers["Quasi-identifier job"] == "suppressed: every cell is *" and answers["Quasi-identifier zip"] == "generalized"
    assert "`" not in dossier_page(found) and "<code>" in dossier_page(found)

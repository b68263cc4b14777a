"""The two reports of a release: what they say, and what they never say."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import closeknit
import closeknit as ck
from closeknit.api.reporting import load_release
from closeknit.core.columns import Columns
from closeknit.core.frontier import Frontier, Measure, Point
from closeknit.core.method import list_guarantees
from closeknit.core.model import Model
from closeknit.models import REGISTRY as MODELS
from closeknit.release import samples
from closeknit.release.guarantee_meanings import meaning
from closeknit.report.page import private_page, public_page
from closeknit.report.report_records import PrivateReport, PublicReport
from report_pages import SEED, Page, hospital, requests_nothing

AGE = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()})


@pytest.fixture(scope="module")
def release() -> ck.Release:
    return hospital()


def test_numbers_are_those_of_the_certificate(release: ck.Release) -> None:
    certificate, said = release.certificate, Page(release.report()).said
    for guarantee in certificate.guarantees:
        assert guarantee.text in said and guarantee.requested in said and f"{guarantee.measured:.4g}" in said
        assert guarantee.worst is not None
        assert all(f"{name} {cell}" in said for name, cell in guarantee.worst.cells.items())
    for name, (a, b) in certificate.loss.columns.items():
        assert f"{name} {a:.4f} {b:.4f}" in said
    assert f"{certificate.rows:,}" in said and f"{certificate.loss.a:.4f}" in said and certificate.content_sha256 in said
    assert all(note in said for note in certificate.notes)
    record = release.public_record()
    assert sum(bar.classes for bar in record.measures.sizes.bars) == certificate.classes.count
    assert all(sum(spread.overall) == certificate.rows for spread in record.secrets)


def test_spreads_are_those_of_the_written_rows(release: ck.Release) -> None:
    schema = ck.datasets.hospital_schema()
    cells = {name: ["" if c is None else str(c) for c in release.columns[name].cells()] for name in release.columns}
    spread = release.public_record().secrets[0]
    assert spread.column == "disease" and spread.worst
    named = spread.values[:-1] if spread.gathered else spread.values
    for value, count in zip(named, spread.overall, strict=False):
        assert cells["disease"].count(value) == count
    for shown in spread.worst:
        assert set(shown.cells) == set(schema.quasi)
        rows = [i for i in range(release.columns.rows) if all(cells[name][i] == cell for name, cell in shown.cells.items())]
        assert len(rows) == shown.rows == sum(shown.counts)
        inside = [cells["disease"][i] for i in rows]
        assert [inside.count(value) for value in named] == list(shown.counts[: len(named)])


FORMS: dict[str, Any] = {
    "bucketized": "bucketized",
    "multiset": "multiset",
    "sliced": {"sliced": {"columns": [["age", "sex"], ["zip", "job", "admission"], ["disease"], ["stay"], ["charge"]]}},
}
RECIPIENT = """
import sys
from pathlib import Path
from closeknit.api.reporting import load_release
for folder in sorted(Path('.').iterdir()):
    release = load_release(folder)
    Path(folder, 'again.html').write_text(release.report(), encoding='utf-8')
    Path(folder, 'again.json').write_text(release.public_record().to_json(), encoding='utf-8')
"""


def test_a_recipient_renders_the_same_page(tmp_path: Path) -> None:
    """In a process that has the public folders and nothing else, from CSV and Parquet, in every form."""
    models = [ck.LDiversity("disease", 2)]
    made = {"csv": hospital(), "parquet": hospital(models=[ck.KAnonymity(3)])}
    made |= {name: hospital(120, models=models, method=ck.Mondrian(), form=form) for name, form in FORMS.items()}
    made["perturbed"] = perturbed()
    made["persons"] = persons()
    made["numbers"] = odd_numbers()
    home, public = tmp_path / "home", tmp_path / "public"
    home.mkdir(), public.mkdir()
    for name, each in made.items():
        each.save(home / name, "parquet" if name in ("parquet", "sliced", "numbers") else "csv")
        shutil.copytree(home / name, public / name, ignore=shutil.ignore_patterns("report.*"))
    shutil.move(home, tmp_path / "gone")
    bare = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(Path(closeknit.__file__).resolve().parents[1])}
    done = subprocess.run([sys.executable, "-c", RECIPIENT], cwd=public, env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in made:
        for kind in ("html", "json"):
            then, now = tmp_path / "gone" / name / f"report.{kind}", public / name / f"again.{kind}"
            assert then.read_bytes() == now.read_bytes(), (name, kind)


def perturbed() -> ck.Release:
    tree = ck.Hierarchy.from_nested({"any": ["flu", "gout", "acne"]})
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": tree})
    table = Columns.of({"age": [20 + i % 30 for i in range(90)], "ill": [("flu", "gout", "acne")[i % 3] for i in range(90)]})
    models = [ck.KAnonymity(3), ck.PosteriorBound("ill", 6)]
    return ck.anonymize(table, schema, models, ck.Mondrian(), form={"perturbed": {"retain": 0.5}}, seed=SEED)


def persons() -> ck.Release:
    schema = ck.Schema(quasi={"age": ck.numeric()}, sensitive={"ill": ck.flat()}, person="who")
    cells = {"who": [f"Person-{i // 2}" for i in range(60)], "age": [20 + i // 6 for i in range(60)]}
    table = Columns.of({**cells, "ill": [("flu", "gout", "acne", "cold")[i % 4] for i in range(60)]})  # type: ignore[dict-item]
    return ck.anonymize(table, schema, [ck.KAnonymity(3), ck.LDiversity("ill", 2)], seed=SEED)


def odd_numbers() -> ck.Release:
    """Floats, large ones, negative ones and missing cells: their text must not depend on where they are read from."""
    schema = ck.Schema(quasi={"x": ck.numeric()}, sensitive={"y": ck.numeric(), "z": ck.flat()})
    x = [0.1 * i if i % 7 else None for i in range(60)]
    y = [(-1.0) ** i * 1e17 * i + 0.0 for i in range(60)]
    table = Columns.of({"x": x, "y": y, "z": ["true" if i % 3 else None for i in range(60)]})  # type: ignore[dict-item]
    return ck.anonymize(table, schema, [ck.KAnonymity(5)], seed=SEED)


@pytest.mark.parametrize("make", [perturbed, persons, odd_numbers])
def test_odd_releases_have_both_pages(make: Any) -> None:
    made = make()
    for page in (made.report(), made.report(private=True)):
        requests_nothing(page)
        assert all(guarantee.text in Page(page).said for guarantee in made.certificate.guarantees)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_has_both_pages(form: Any) -> None:
    made = hospital(120, models=[ck.LDiversity("disease", 2)], method=ck.Mondrian(), form=form)
    said = Page(made.report()).said
    assert "buckets" in said and "rows of a bucket" in said
    requests_nothing(made.report(private=True))


def test_attested_guarantees_disclose_only_that_they_hold() -> None:
    made = persons()
    record, home = made.public_record(), made.private_record()
    assert [reported.guarantee.status for reported in record.guarantees] == ["attested", "attested"]
    assert [reported.guarantee.measured for reported in record.guarantees] == [None, None]
    assert "not disclosed" in Page(made.report()).said and "at least 3 people" in record.guarantees[0].means
    assert [level.requested for level in home.levels] == [">= 3", ">= 2"]
    assert home.levels[0].measured == home.levels[0].persons >= 3 and home.levels[0].rows == 2 * home.levels[0].persons
    assert "persons in the worst class" not in made.report() and "persons in the worst class" in made.report(private=True)


def test_nothing_of_the_table_is_on_the_public_page(tmp_path: Path) -> None:
    table, schema = ck.datasets.hospital(200), ck.datasets.hospital_schema()
    file = tmp_path / "patients-of-dr-quill.csv"
    from closeknit.io.files import write_csv

    write_csv(table, file)
    made = ck.anonymize(file, schema, [ck.KAnonymity(4)], ck.StackAndDeal(), seed=SEED)
    made.save(tmp_path / "out")
    public = "".join((tmp_path / "out" / name).read_text("utf-8") for name in ("report.html", "report.json"))
    private = (tmp_path / "out.private" / "report.html").read_text("utf-8")
    for word in (str(SEED), "quill", "stack_and_deal", "recipe", str(tmp_path)):
        assert word not in public
    assert str(SEED) in private and "quill" in private and "stack_and_deal" in private
    written = {str(cell) for name in made.columns for cell in made.columns[name].cells()}
    raw = {str(cell) for name in ("admission", "zip", "name") for cell in table[name].cells()} - written
    assert len(raw) > 100 and [cell for cell in raw if cell in public] == []
    assert any(cell in private for cell in raw)
    assert not any(str(cell) in private for cell in table["name"].cells()), "identifiers stay out of both"


def test_records_read_back_and_draw_the_same_page(release: ck.Release) -> None:
    public, home = release.public_record(), release.private_record()
    assert public_page(PublicReport.from_json(public.to_json())) == release.report() == release.report()
    assert private_page(PrivateReport.from_json(home.to_json())) == release.report(private=True)
    assert set(json.loads(public.to_json())) >= {"guarantees", "loss", "secrets", "findings", "measures", "notes"}


def test_before_and_after_are_the_same_people(release: ck.Release) -> None:
    sample = release.private_record().sample
    assert sample is not None and 1 < len(sample.raw) == len(sample.written) <= 6
    secrets = [
        sorted([row[names.index(name)] for name in ("disease", "stay", "charge")] for row in rows)
        for rows, names in ((sample.raw, sample.raw_columns), (sample.written, sample.written_columns))
    ]
    assert secrets[0] == secrets[1] and "name" not in sample.raw_columns
    ages, written = sample.raw_columns.index("age"), sample.written_columns.index("age")
    low, high = (int(end) for end in sample.written[0][written].strip("[]").split(", "))
    assert all(low <= int(row[ages]) <= high for row in sample.raw)


def test_a_release_without_its_original_says_so(release: ck.Release) -> None:
    copy = pickle.loads(pickle.dumps(release))
    assert copy.report() == release.report()
    home = copy.private_record()
    assert home.sample is None and home.queries == () and home.input_rows is None and home.recipe == {}
    assert "The original table is not available" in Page(copy.report(private=True)).said
    assert SEED.to_bytes(16, "big") not in pickle.dumps(release) and str(SEED).encode() not in pickle.dumps(release)


def test_no_secret_and_nothing_generalized() -> None:
    bare = ck.anonymize(
        Columns.of({"age": [1, 1, 2, 2]}), ck.Schema(quasi={"age": ck.numeric()}), [ck.KAnonymity(2)], seed=SEED
    )
    record = bare.public_record()
    assert record.secrets == () and record.loss.a == 0
    requests_nothing(bare.report())
    requests_nothing(bare.report(private=True))


def test_a_replayed_stream_has_both_pages() -> None:
    schema = ck.Schema(quasi={"age": ck.numeric(0, 100)}, sensitive={"ill": ck.flat()})
    table = Columns.of({"age": [30 + i % 20 for i in range(40)], "ill": ["flu" if i % 2 else "gout" for i in range(40)]})
    made = ck.replay(ck.Castle(schema, k=4, delta=10, seed=SEED), table, order="shuffled")
    home = made.private_record()
    assert home.sample is not None and home.input_rows == 40 and "closeknit stream" in home.command
    requests_nothing(made.report())


def test_frontier_is_shown_on_the_private_page_alone(release: ck.Release) -> None:
    t = Measure(name="t of disease", parameter="t", text="t-closeness of disease", higher_is_safer=False)
    points = tuple(
        Point(
            method={name: {}},
            parameter="t of disease",
            requested=requested,
            ok=True,
            measured=(requested,),
            level=requested,
            seconds=1,
            loss=release.certificate.loss.model_copy(update={"a": 0.5 - requested}),
            classes=release.certificate.classes,
        )
        for name in ("sabre", "<b>mondrian</b>")
        for requested in (0.1, 0.2)
    )
    found = Frontier(closeknit="0.1.0", rows=200, seed=7, guarantees=("t",), measures=(t,), points=points)
    page = release.report(private=True, frontier=found)
    requests_nothing(page)
    assert "Loss of other settings" in page and "<b>mondrian" not in page and "0.3000" in Page(page).said
    assert "was not computed" in release.report(private=True) and "was not computed" not in page


def test_every_guarantee_has_its_own_words(release: ck.Release) -> None:
    assert all(model.explain is not Model.explain for model in MODELS.values())
    schema = ck.datasets.hospital_schema()
    requested = [
        ck.LDiversity("disease", 3, kind=kind, c=2 if kind == "recursive" else None)
        for kind in ("distinct", "entropy", "recursive", "frequency")
    ]
    requested += [ck.BetaLikeness("disease", 2, kind="semantic", below=1), ck.BetaLikeness("stay", 2, kind="range", eps=1)]  # type: ignore[list-item]
    requested += [ck.BetaLikeness("disease", 2), ck.BetaLikeness("disease", 2, kind="basic"), ck.DeltaDisclosure("disease", 1)]  # type: ignore[list-item]
    requested += [
        ck.TCloseness(("disease", "stay"), 0.5),
        ck.KAnonymity(3),
        ck.DiverseSlicing("disease", 3),
        ck.PosteriorBound("disease", 3),
    ]  # type: ignore[list-item]
    from closeknit.core.certificate import Guarantee, model_form

    assert len(list_guarantees(ck.Mondrian(), schema, requested)) == len(requested)
    words = set()
    for model in requested:
        guarantee = Guarantee(
            model=model_form(model), text="t", column=model.column, requested=model.requested, met=True, status="recomputable"
        )
        words.add(meaning(guarantee))
    assert len(words) == len(requested) and all(len(said) > 40 and said.endswith(".") for said in words)
    foreign = Guarantee(model={"mine": {}}, text="my own guarantee", column=None, requested="", met=True, status="recomputable")
    assert meaning(foreign) == "my own guarantee"


def test_the_seed_shows_in_no_byte_of_the_public_page() -> None:
    one, two = (hospital(method=ck.StackAndDeal(), seed=seed) for seed in (SEED, SEED + 1))
    assert one.certificate == two.certificate and one.report() == two.report()


def test_what_was_changed_is_refused(release: ck.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out", report=False)
    file = tmp_path / "out" / "release.csv"
    assert load_release(tmp_path / "out").report() == load_release(file).report() == release.report()
    lines = file.read_text("utf-8").splitlines()
    file.write_text("\n".join([lines[0], lines[2], lines[1], *lines[3:]]) + "\n", encoding="utf-8")
    with pytest.raises(ck.BadInput, match="its content differs from what its certificate states"):
        load_release(tmp_path / "out")
    file.unlink()
    with pytest.raises(ck.BadInput, match=r"has a certificate\.json and no release"):
        load_release(tmp_path / "out")
    (tmp_path / "out" / "certificate.json").unlink()
    with pytest.raises(ck.BadInput, match=r"certificate\.json"):
        load_release(tmp_path / "out")
    with pytest.raises(ck.BadInput, match="no such file or folder"):
        load_release(tmp_path / "nowhere")


def test_what_cannot_be_compared_is_said(release: ck.Release, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(*_: object, **__: object) -> None:
        raise ck.BadInput("cannot be compared <here>", column="disease", right="nothing would be")

    monkeypatch.setattr("closeknit.release.private.with_original", refused)
    home = release.private_record()
    assert home.findings == () and home.sample is not None
    assert any("Attacks that need the original could not be computed" in sentence for sentence in home.missing)
    release.save(tmp_path / "out")
    assert "cannot be compared &lt;here&gt;" in (tmp_path / "out.private" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    "text", ["class\nabc\n\n\n\n", "foo\n0\n0\n0\n0\n", "class\n-7\n0\n0\n0\n", "class\n99999999999\n0\n0\n0\n"]
)
def test_a_file_of_classes_that_cannot_be_read_is_named(text: str, tmp_path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("age,ill\n30,flu\n31,gout\n70,flu\n71,gout\n")
    ck.anonymize(file, AGE, [ck.KAnonymity(2)], ck.Mondrian(), seed=SEED).save(tmp_path / "out", report=False)
    recipe = tmp_path / "out.private" / "recipe.yaml"
    assert load_release(tmp_path / "out", recipe).partition.tolist() == [0, 0, 1, 1]
    recipe.with_name("classes.csv").write_text(text)
    with pytest.raises(ck.BadInput, match=r"classes\.csv"):
        load_release(tmp_path / "out", recipe)


def test_a_class_before_and_after_is_looked_for_once_in_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no class is found (secrets were changed), the release was read again for each class that was tried."""
    table = Columns.of({"age": list(range(60)), "ill": [f"v{i}" for i in range(60)]})
    release = ck.anonymize(table, AGE, [ck.KAnonymity(1)], ck.Mondrian(), seed=SEED)
    other = Columns.of({"age": table["age"].cells(), "ill": ["other"] * 60})
    requested: list[int] = []
    of = samples._Texts.of
    monkeypatch.setattr(samples._Texts, "of", lambda self, rows: requested.append(1) or of(self, rows))
    assert samples.find_class(other, AGE, release, release.partition) is None
    assert len(requested) <= 60 + 2 * samples.TRIED
    found = samples.find_class(table, AGE, release, release.partition)
    assert found is not None
    assert found.rows == 1

"""An audit finds every way in which a release could be written differently: order, bytes, files, notes, JSON."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import closeknit as ck
from closeknit.cli.commands import app
from closeknit.core.columns import Columns
from closeknit.io.files import read_written
from closeknit.release import LocalRelease
from conftest import examples

MODELS = [ck.KAnonymity(4), ck.TCloseness("disease", 0.4)]
FORMS: dict[str, Any] = {"generalized": None, "bucketized": ck.bucketized()}
ROLES: dict[str, Any] = {
    "quasi": {"age": ck.numeric(0, 90), "sex": ck.flat()},
    "sensitive": {"disease": ck.flat(), "wage": ck.numeric()},
}
TWO = ck.Schema(**ROLES, plain=["ward"])


def people(rows: int = 60) -> Columns:
    draw = random.Random(5)
    return Columns.of(
        {
            "age": [draw.randrange(20, 80) for _ in range(rows)],
            "sex": [draw.choice("fm") for _ in range(rows)],
            "disease": [draw.choice(["flu", "gout", "a, b"]) for _ in range(rows)],
            "wage": [draw.choice([1.5, 2, 10, 9]) for _ in range(rows)],
            "ward": [draw.choice(["9", "10", "north"]) for _ in range(rows)],
        }
    )


@pytest.fixture(scope="module", params=list(FORMS))
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    form = FORMS[request.param]
    schema = TWO if form is None else ck.Schema(**ROLES, drop=["ward"])
    folder = tmp_path_factory.mktemp(request.param) / "out"
    ck.anonymize(people(), schema, MODELS if form is None else MODELS[1:], form=form, seed=2**90).save(folder)
    return folder


@pytest.fixture()
def out(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "out"))


def record(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "certificate.json").read_text("utf-8")))


def certify_again(out: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
    """Forge a certificate for a changed release: all hashes fit again."""
    reported = record(out)
    change(reported)
    for file in reported["files"]:
        file["sha256"] = hashlib.sha256((out / file["name"]).read_bytes()).hexdigest()
    from closeknit.io.canonical import content_hash

    reported["content_sha256"] = content_hash(read_written(out / "release.csv"))
    (out / "certificate.json").write_text(json.dumps(reported, indent=2, ensure_ascii=False) + "\n", "utf-8")
    for report in ("report.html", "report.json"):
        (out / report).unlink(missing_ok=True)


def lines_of(out: Path) -> list[str]:
    return (out / "release.csv").read_text("utf-8").splitlines(keepends=True)


def write_lines(out: Path, lines: list[str]) -> None:
    (out / "release.csv").write_text("".join(lines), "utf-8", newline="")


def findings(out: Path) -> str:
    found = ck.audit(out)
    assert found.status == ("not met" if found.findings else "met")
    return "\n".join(found.findings)


def test_a_release_as_it_was_saved_has_no_fault(out: Path) -> None:
    assert findings(out) == ""
    certify_again(out)
    assert findings(out) == ""


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_rows_in_another_order_are_found_though_all_hashes_fit(tmp_path: Path, format: str) -> None:
    release = ck.anonymize(people(), TWO, MODELS, seed=2**90)
    swapped = release.columns.take(random.Random(1).sample(range(60), 60))  # type: ignore[arg-type]
    other = LocalRelease(swapped, release.certificate)
    other.save(tmp_path / "out", format)
    said = ck.audit(tmp_path / "out").findings
    assert len(said) == 1 and "out of place: a release is sorted by its written cells" in said[0]
    frame = ck.audit(other.frame, certificate=other.certificate)
    assert frame.findings == said, "a frame that was sorted otherwise says so, too"


@pytest.mark.parametrize("kept", ["bucketized"], indirect=True)
def test_buckets_in_another_order_are_found_though_all_hashes_fit(out: Path) -> None:
    header, *rows = lines_of(out)
    numbers = sorted({int(row.split(",")[0]) for row in rows})
    turned = {str(number): str(numbers[-1] + 1 - number) for number in numbers}
    changed = [",".join([turned[row.split(",", 1)[0]], row.split(",", 1)[1]]) for row in rows]
    write_lines(out, [header, *sorted(changed, key=lambda row: int(row.split(",")[0]))])
    for part in ("quasi.csv", "sensitive.csv"):
        (out / part).unlink()
    certify_again(out, lambda reported: reported.update(files=reported["files"][:1]))
    assert "must count from 1 in the order of the buckets' contents" in findings(out)


def test_columns_in_another_order_are_found(out: Path) -> None:
    columns = read_written(out / "release.csv")
    *first, last = columns
    certificate = ck.Certificate.from_json((out / "certificate.json").read_text("utf-8"))
    turned = Columns({name: columns[name] for name in (last, *first)}, columns.rows)
    assert any("the columns are in the order" in said for said in ck.audit(turned, certificate=certificate).findings)


@pytest.mark.parametrize(
    "rewritten",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data[:-1],
        lambda data: data + b"\n",
        lambda data: data.replace(b",f,", b',"f",', 1),
        lambda data: data.replace(b",f\n", b',"f"\n', 1),
    ],
)
def test_bytes_that_are_not_canonical_are_found_though_all_hashes_fit(out: Path, rewritten: Any) -> None:
    before = (out / "release.csv").read_bytes()
    (out / "release.csv").write_bytes(rewritten(before))
    if (out / "release.csv").read_bytes() != before:
        certify_again(out)
        assert "release.csv is not canonical CSV at line" in findings(out)


def test_a_number_in_another_spelling_is_found(out: Path) -> None:
    cells = {name: [*column.cells()] for name, column in read_written(out / "release.csv").items()}
    cells["wage"][cells["wage"].index("2")] = "2.0"
    certificate = ck.Certificate.from_json((out / "certificate.json").read_text("utf-8"))
    said = ck.audit(Columns.of(cells), certificate=certificate).findings
    assert "column 'wage': '2.0' is not the shortest spelling of its number" in said


@pytest.mark.parametrize("name", ["notes.txt", ".DS_Store", "certificate.json.bak", "more/cells.csv", "other.csv"])
def test_a_foreign_file_in_the_folder_is_found(out: Path, name: str) -> None:
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text("x", "utf-8")
    assert f"{name.split('/')[0]} is not part of the release" in findings(out)
    certify_again(out, lambda reported: reported["files"].append({**reported["files"][0], "name": name}))
    assert "is not part of the release" in findings(out), "a certificate does not choose what belongs to a release"


def test_signatures_readme_and_reports_belong_to_a_release(out: Path) -> None:
    ck.new_keys(out.parent / "key")
    ck.sign(out, out.parent / "key", output=out / "release.csv.sig")
    for name in ("README.md", "README"):
        (out / name).write_text("x", "utf-8")
    assert findings(out) == ""
    for name in ("report.html", "report.json"):
        (out / name).unlink()
    assert findings(out) == ""


def test_files_in_another_folder_are_not_counted(out: Path, tmp_path: Path) -> None:
    (tmp_path / "received.csv").write_bytes((out / "release.csv").read_bytes())
    assert ck.audit(tmp_path / "received.csv", certificate=out / "certificate.json").ok


def test_a_named_file_that_is_not_there_is_found(out: Path) -> None:
    for part in {file["name"] for file in record(out)["files"]} - {"release.csv"}:
        (out / part).unlink()
        assert f"{part} is named in the certificate and is not in the folder" in findings(out)


def test_each_deleted_note_is_found(out: Path) -> None:
    notes = record(out)["notes"]
    assert len(notes) >= 3
    for note in notes:
        (out / "certificate.json").write_text(
            json.dumps({**record(out), "notes": [kept for kept in notes if kept != note]}, indent=2, ensure_ascii=False) + "\n"
        )
        assert "the certificate does not note" in findings(out), note


def test_the_joint_distance_must_be_there_with_several_sensitive_attributes(out: Path) -> None:
    certify_again(out, lambda reported: reported.update(joint=None))
    assert "the certificate does not have the joint distance of disease and wage" in findings(out)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"rows": ', '"rows": 3, "rows": ', "the key 'rows' occurs twice in one object"),
        ('"mean": ', '"mean": NaN, "mean": ', "has the number NaN, which JSON does not have"),
        ('"smallest": ', '"smallest": -Infinity, "x": ', "has the number -Infinity, which JSON does not have"),
        ('"rows": ', '"rows": ' + "9" * 5000, "has a number with too many digits"),
        ("\n}\n", "\n}\n{}", "is not valid JSON at line .*: extra data"),
        ("{", "[" * 100_000, "is nested too deeply"),
    ],
)
def test_ambiguous_json_is_refused(out: Path, old: str, new: str, said: str) -> None:
    for name in ("certificate.json", "report.json"):
        text = (out / name).read_text("utf-8")
        (out / name).write_text(new.join(text.rpartition(old)[::2]) if old == "\n}\n" else text.replace(old, new, 1), "utf-8")
        if name == "report.json":
            assert f"{name} cannot be read: " in findings(out)
            continue
        with pytest.raises(ck.BadInput, match=rf"certificate\.json: {said}"):
            ck.audit(out)
        (out / name).write_text(text, "utf-8")


@pytest.mark.parametrize("name", ["certificate.json", "report.json"])
def test_json_in_another_spelling_is_found(out: Path, name: str) -> None:
    text = (out / name).read_text("utf-8")
    turned = json.dumps(dict(reversed(json.loads(text).items())), indent=2, ensure_ascii=False) + "\n"
    for other in (text + "\n", text.replace('": ', '":', 1), text.replace("\n", "\r\n"), turned):
        (out / name).write_text(other, "utf-8", newline="")
        assert f"{name} is not written as closeknit writes it" in findings(out)


def test_a_report_that_contradicts_the_certificate_is_found(out: Path) -> None:
    reported = json.loads((out / "report.json").read_text("utf-8"))
    reported["loss"]["a"], reported["guarantees"][0]["guarantee"]["measured"] = 0.75, 60.0
    (out / "report.json").write_text(json.dumps(reported, indent=2, ensure_ascii=False) + "\n", "utf-8")
    assert "report.json, loss: differs from" in findings(out)
    assert "report.json, guarantees: differs from" in findings(out)


def test_a_release_of_another_tool_needs_no_canonical_form(tmp_path: Path) -> None:
    file = tmp_path / "theirs.csv"
    file.write_text('sex,age,disease\r\n"m",30,flu\r\nf,30,flu\r\nm,30,gout\r\nf,30,gout\r\n', "utf-8", newline="")
    (tmp_path / "notes.txt").write_text("x", "utf-8")
    schema = ck.Schema(quasi={"age": ck.numeric(), "sex": ck.flat()}, sensitive={"disease": ck.flat()})
    found = ck.audit(file, schema, [ck.KAnonymity(2)])
    assert found.ok and found.status == "met" and found.findings == ()
    said = [note for note in found.notes if note.startswith("the form is not canonical: ")]
    assert len(said) == 3 and "columns are in the order sex, age" in said[0] and "row 2 is out of place" in said[1]
    (tmp_path / "recipe.yaml").write_text(
        "schema: {quasi: {age: numeric, sex: flat}, sensitive: {disease: flat}}\nmodels: [{k_anonymity: {k: 2}}]\n", "utf-8"
    )
    ran = CliRunner().invoke(app, ["audit", str(file), "--recipe", str(tmp_path / "recipe.yaml")])
    assert ran.exit_code == 0 and "note           the form is not canonical: theirs.csv is not canonical CSV" in ran.output


def test_a_claimed_form_that_is_not_there_ends_with_status_1(out: Path) -> None:
    (out / "notes.txt").write_text("x", "utf-8")
    ran = CliRunner().invoke(app, ["audit", str(out)])
    assert ran.exit_code == 1 and "wrong          notes.txt is not part of the release" in ran.output


# Whatever is changed ----------------------------------------------------------------------------------------------------


def tamper_byte(out: Path, draw: random.Random) -> None:
    names = [file["name"] for file in record(out)["files"]]
    file = out / draw.choice(names)
    data = bytearray(file.read_bytes())
    place = draw.randrange(len(data))
    kind = draw.choice(["changed", "removed", "added"])
    if kind == "changed":
        data[place] ^= 1 << draw.randrange(8)
    elif kind == "removed":
        del data[place]
    else:
        data.insert(place, draw.randrange(256))
    file.write_bytes(data)


def tamper_rows(out: Path, draw: random.Random) -> None:
    header, *rows = lines_of(out)
    i, j = draw.sample(range(len(rows)), 2)
    while rows[i] == rows[j]:
        i, j = draw.sample(range(len(rows)), 2)
    if draw.random() < 0.5:
        rows[i], rows[j] = rows[j], rows[i]
    else:
        rows.insert(j, rows[i])
    write_lines(out, [header, *rows])
    certify_again(out)


def tamper_quotes(out: Path, draw: random.Random) -> None:
    lines = lines_of(out)
    plain = [i for i, line in enumerate(lines) if '"' not in line]
    i = draw.choice(plain)
    cells = lines[i].rstrip("\n").split(",")
    j = draw.randrange(len(cells))
    cells[j] = f'"{cells[j]}"'
    lines[i] = ",".join(cells) + "\n"
    write_lines(out, lines)
    certify_again(out)


def tamper_json(out: Path, draw: random.Random) -> None:
    file = out / draw.choice(["certificate.json", "certificate.json", "report.json"])
    reported = json.loads(file.read_text("utf-8"))
    if draw.random() < 0.3:
        key = draw.choice([key for key in reported if key not in ("closeknit", "format")])
        reported[f"{key}x"] = reported.pop(key)
    else:
        keys = ["rows", "suppressed", "form", "notes", "classes", "loss", "joint", "content_sha256"]
        key = draw.choice(keys)
        old = reported[key]
        reported[key] = old + 1 if isinstance(old, int) else old[:-1] if isinstance(old, str | list) else None
        if key in ("classes", "loss"):
            inner = draw.choice(list(old))
            reported[key] = {**old, inner: 7 if not isinstance(old[inner], dict) else {}}
    file.write_text(json.dumps(reported, indent=2, ensure_ascii=False) + "\n", "utf-8")


def test_any_tampering_is_noticed(out: Path, kept: Path) -> None:
    for seed in range(examples(12)):
        draw = random.Random(seed)
        tamper = draw.choice([tamper_byte, tamper_rows, tamper_quotes, tamper_json])
        before = {file.name: file.read_bytes() for file in kept.iterdir()}
        tamper(out, draw)
        try:
            noticed = ck.audit(out).status == "not met"
        except ck.BadInput:
            noticed = True
        assert noticed, f"seed {seed}: {tamper.__name__}"
        for name, data in before.items():
            (out / name).write_bytes(data)

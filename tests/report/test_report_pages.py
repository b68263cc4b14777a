"""The pages of a release: hostile cells, what a browser shows of them, and the command that renders them again."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import closeknit as ck
from closeknit.attacks.on_release import ON_RELEASE
from closeknit.core.columns import Columns
from closeknit.io.files import write_csv
from closeknit.report import drawing
from closeknit.report.page import mark_code
from closeknit.report.report_records import PrivateReport, PublicReport
from report_pages import SEED, Page, hospital, requests_nothing

HOSTILE = '"><script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)>'
CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def release() -> ck.Release:
    return hospital()


@pytest.mark.parametrize(
    "cell", [HOSTILE, "{{ 7 * 7 }}", "a\u202eb\x0b\x1c", "&lt;b&gt;", "x" * 5000, "']; alert(1); ['", "<!--"]
)
def test_hostile_cells_are_shown_as_text(cell: str) -> None:
    schema = ck.Schema(quasi={cell: ck.flat(), "age": ck.numeric()}, sensitive={"ill" + cell: ck.flat()})
    table = Columns.of(
        {
            cell: [cell + str(i % 2) for i in range(40)],
            "age": [i % 9 for i in range(40)],
            "ill" + cell: [cell if i % 3 else "flu" for i in range(40)],
        }
    )
    made = ck.anonymize(table, schema, [ck.KAnonymity(4), ck.LDiversity("ill" + cell, 2)], ck.Mondrian(), seed=SEED)
    for page in (made.report(), made.report(private=True)):
        requests_nothing(page)
        assert "alert(1)</script" not in page
        said = Page(page).said
        assert " ".join(cell[:20].split()) in said
    assert PublicReport.from_json(made.public_record().to_json()) == made.public_record()


def command(*words: object) -> Any:
    from typer.testing import CliRunner

    from closeknit.cli.commands import app

    return CliRunner().invoke(app, ["report", *map(str, words)])


def test_the_command_renders_both_pages_again(tmp_path: Path) -> None:
    from closeknit.io.files import write_csv

    write_csv(ck.datasets.hospital(120), tmp_path / "t.csv")
    models = [ck.KAnonymity(4), ck.LDiversity("disease", 2)]
    ck.anonymize(tmp_path / "t.csv", ck.datasets.hospital_schema(), models, seed=SEED).save(tmp_path / "out")
    out, home = tmp_path / "out", tmp_path / "out.private"
    then = {file: file.read_bytes() for folder in (out, home) for file in folder.glob("report.*")}
    assert len(then) == 4
    for words in ([out], [out / "release.csv"], [out, "--private", home / "recipe.yaml"]):
        same = command(*words)
        assert same.exit_code == 0 and same.stdout.count("unchanged") == 2, same.output
    for file in then:
        file.unlink()
    assert command(out).exit_code == command(out, "--private", home / "recipe.yaml").exit_code == 0
    assert {file: file.read_bytes() for file in then} == then
    assert {file.stat().st_mode & 0o777 for file in home.glob("report.*")} == {0o600}

    (out / "report.html").write_text("other", encoding="utf-8")
    assert command(out).exit_code == 2 and (out / "report.html").read_text("utf-8") == "other"
    assert command(out, "--force").exit_code == 0 and (out / "report.html").read_bytes() == then[out / "report.html"]
    record = command(out, "--json")
    assert PublicReport.from_json(record.stdout).to_json().encode() == then[out / "report.json"]
    (tmp_path / "elsewhere").mkdir()
    assert command(out, "-o", tmp_path / "elsewhere").exit_code == 0
    assert (tmp_path / "elsewhere" / "report.html").read_bytes() == then[out / "report.html"]


def test_attacks_that_run_the_method_again_are_in_the_private_report(tmp_path: Path) -> None:
    """The page that `save` makes has no time for them."""
    write_csv(ck.datasets.hospital(60), tmp_path / "t.csv")
    models = [ck.KAnonymity(4)]
    ck.anonymize(tmp_path / "t.csv", ck.datasets.hospital_schema(), models, ck.Mondrian(), seed=SEED).save(tmp_path / "out")
    out, recipe, attacks = tmp_path / "out", tmp_path / "out.private" / "recipe.yaml", tmp_path / "attacks.json"
    found = ck.attack(out / "release.csv", recipe=recipe, runs=24)
    attacks.write_text(found.to_json(), encoding="utf-8")
    assert command(out, "--private", recipe, "--attacks", attacks, "--force").exit_code == 0
    saved = PrivateReport.from_json((tmp_path / "out.private" / "report.json").read_text("utf-8"))
    assert "minimality" in {each.attack for each in saved.findings}
    assert all(each in found.findings for each in saved.findings) and not {each.attack for each in saved.findings} & set(
        ON_RELEASE
    )
    page = (tmp_path / "out.private" / "report.html").read_text("utf-8")
    assert all(str(mark_code(each.sentence)) in page for each in saved.findings) and "closeknit attack" not in page
    assert "<code>disease</code>" in page and "`" not in Page(page).said


def test_the_command_says_what_is_wrong(release: ck.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out", report=False)
    out, recipe = tmp_path / "out", tmp_path / "out.private" / "recipe.yaml"
    cases: list[tuple[list[object], str]] = [
        ([tmp_path / "no"], "no such file or folder"),
        ([out, "-o", tmp_path / "no"], "no such folder"),
        ([out, "--frontier", recipe], "--private"),
        ([out, "--attacks", recipe], "--private"),
        ([out, "--private", recipe], "names no data"),  # it was made of a frame
        ([tmp_path], "there is no certificate.json in this folder"),
    ]
    for words, said in cases:
        found = command(*words)
        assert found.exit_code == 2 and said in found.stderr and "Traceback" not in found.output, (words, found.output)
    assert not (out / "report.html").exists()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    hospital(400).save(folder / "out")
    return {"public": folder / "out" / "report.html", "private": folder / "out.private" / "report.html"}


@pytest.mark.parametrize("which", ["public", "private"])
def test_pages_request_nothing(pages: dict[str, Path], which: str) -> None:
    page = pages[which].read_text("utf-8")
    requests_nothing(page)
    read = Page(page)
    drawn = [attributes for tag, attributes in read.tags if tag == "svg"]
    assert 4 <= len(drawn) <= 20 and all(chart["role"] == "img" and chart["aria-label"] for chart in drawn)
    assert "http:" not in page and "https:" not in page


def opened(page: Path, folder: Path) -> tuple[list[str], list[str], str]:
    """What a browser says on its console and asks for while it shows a page, and the page as it then stands."""
    log = folder / "net.json"
    base = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'home'}",
        "--no-first-run",
    ]
    watched = ["--enable-logging=stderr", "--v=0", f"--log-net-log={log}", "--window-size=390,2000", "--dump-dom"]
    done = subprocess.run([*base, *watched, f"file://{page}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    # a browser also asks for things of its own: only these were asked for by the page
    requested = re.findall(r'"network_isolation_key":"file://.*?"url":"([^"]*)"', log.read_text("utf-8"))
    return said, requested, done.stdout


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed to open the pages in")
def test_a_browser_opens_both_pages(pages: dict[str, Path], tmp_path: Path) -> None:
    """No complaint on the console and no request; a page that does both is noticed."""
    for page in pages.values():
        said, requested, shown = opened(page, tmp_path)
        assert said == [] and requested == []
        assert "</footer>" in shown and "<script" not in shown
    bad = tmp_path / "bad.html"
    bad.write_text('<img src="http://nobody.invalid/x.png"><script>console.error("no")</script>', encoding="utf-8")
    said, requested, _ = opened(bad, tmp_path)
    assert len(said) == 1 and requested[:1] == ["http://nobody.invalid/x.png"]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed to open the pages in")
@pytest.mark.soak
def test_a_browser_opens_the_pages_of_adult(data_folder: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(data_folder / "adult" / "adult.csv.gz", infer_schema=False)
    kinds = {
        name: ck.Hierarchy.read_csv(data_folder / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv")
        for name in ("workclass", "marital-status", "race", "sex", "native-country", "salary-class", "occupation")
    }
    schema = ck.Schema(sensitive={"occupation": kinds.pop("occupation")}, quasi={"age": ck.numeric(), **kinds})
    complete = frame.filter(~pl.any_horizontal(pl.all() == "?")).select(["age", *kinds, "occupation"])
    made = ck.anonymize(complete, schema, [ck.KAnonymity(6), ck.TCloseness("occupation", 0.2)], ck.Sabre(), seed=SEED)
    made.save(tmp_path / "out")
    for page in (tmp_path / "out" / "report.html", tmp_path / "out.private" / "report.html"):
        requests_nothing(page.read_text("utf-8"))
        said, requested, shown = opened(page, tmp_path)
        assert said == [] and requested == [] and "45,222" in shown


def test_chart_is_the_same_from_a_second_process_and_if_that_one_is_killed() -> None:
    spec = '{"data": {"values": [{"a": "\\u00e9"}]}, "mark": "bar", "encoding": {"y": {"field": "a", "type": "nominal"}}}'
    here = drawing.draw(spec)
    with drawing.draw_ahead():
        (second,) = drawing._second
        assert drawing.draw(spec) == here and second.poll() is None
        second.kill()
        assert drawing.draw(spec) == here
        assert drawing._second == []
    with drawing.draw_ahead():
        (second,) = drawing._second
    assert second.poll() is not None

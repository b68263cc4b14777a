"""The pages in a real browser: from a table to a release that passes an audit, by mouse, by keyboard and without scripts."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from closeknit.cli.commands import app

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")
PATIENCE = 120_000  # milliseconds: only a page that never comes reaches it


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of `closeknit ui`, with its code."""
    words = [sys.executable, "-m", "closeknit", "ui", "--no-browser"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    yield server.stdout.readline().strip()
    server.terminate()
    server.communicate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as play:
        alone = ["--no-sandbox"] if os.geteuid() == 0 else []  # chromium's own rule for root
        browser = play.chromium.launch(executable_path=CHROMIUM, args=alone)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def login(browser: Any, address: str) -> Any:
    """What the browser keeps after the one-time code: the cookie."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    assert "code" not in page.url
    return context.storage_state()


@pytest.fixture
def visitor(browser: Any, login: Any, address: str, request: Any) -> Iterator[Any]:
    """A page; at the end nothing may have been complained of, and nothing asked of another host."""
    context = browser.new_context(storage_state=login, java_script_enabled=getattr(request, "param", True))
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    said: list[str] = []
    requested: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda each: requested.append(each.url))
    page.goto("{0.scheme}://{0.netloc}/".format(urlsplit(address)))
    yield page
    context.close()
    assert said == []
    assert {urlsplit(url).hostname for url in requested} == {"127.0.0.1"}


def role(page: Any, column: str, chosen: str) -> None:
    box = page.get_by_role("combobox", name=column, exact=False)
    box.wait_for()
    page.wait_for_load_state("load")  # before that, scripts do not notice a change
    box.focus()
    box.select_option(chosen)
    page.locator(f"tr.role-{chosen}", has=page.locator(f"th:text('{column}')")).wait_for()


def dropped(page: Any, file: Path) -> None:
    """Drop a file on the form, as from a folder next to the browser."""
    cells = base64.b64encode(file.read_bytes()).decode()
    held = page.evaluate_handle(
        """([name, text]) => {
            const held = new DataTransfer();
            held.items.add(new File([Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0))], name));
            return held;
        }""",
        [file.name, cells],
    )
    page.dispatch_event("#upload", "drop", {"dataTransfer": held})


def onward(page: Any, what: str) -> None:
    """Click what leads to a page that has the same things on it: only then the next one is clicked."""
    with page.expect_navigation():
        page.click(what)


def guarantee(page: Any, key: str, **values: str) -> None:
    """Type limits into the card of a guarantee and send it."""
    for name, value in values.items():
        page.fill(f"#{key}-{name}", value)
    onward(page, f"#{key} button >> nth=0")


def compare(page: Any, *names: str) -> None:
    page.click("summary:has-text('Options of the comparison')")
    for box in page.locator("input[name=name]").all():
        box.set_checked(box.get_attribute("value") in names)
    page.fill("#sample", "400")
    page.click("text=Compare on a sample")
    page.wait_for_selector("svg.frontier")


def audited(page: Any, folder: Path) -> None:
    """Both downloads, which have no file in common; the release passes its audit."""
    found = {}
    for name in ("release", "private"):
        with page.expect_download() as started:
            page.click(f"#download-{name}")
        started.value.save_as(folder / f"{name}.zip")
        with zipfile.ZipFile(folder / f"{name}.zip") as pack:
            pack.extractall(folder / name)
            found[name] = set(pack.namelist())
    assert found["release"] == {"release.csv", "certificate.json", "report.html", "report.json"}
    assert "recipe.yaml" in found["private"] and "release.csv" not in found["private"]
    outcome = CliRunner().invoke(app, ["audit", str(folder / "release" / "release.csv")])
    assert outcome.exit_code == 0, outcome.output


def no_guarantee_is_lost(page: Any) -> None:
    """When a role is changed and changed back."""
    role(page, "disease", "plain")
    page.wait_for_selector("p.warn:has-text('t-closeness of disease')")  # set aside, and not silently
    role(page, "disease", "sensitive")
    assert page.locator("p.warn").count() == 0 and "t = 0.2" in page.inner_text("tr:has(#role-6)"), "it is requested again"
    assert page.locator("#role-6").evaluate("each => each === document.activeElement"), "the changed field keeps the focus"


def several_at_once(page: Any) -> None:
    """Filter, tick and set a role with the keyboard alone."""
    page.fill("#filter", "STA")
    page.locator("#all").focus()
    page.keyboard.press("Space")  # all that are shown, and no other
    page.keyboard.press("Tab")
    page.keyboard.type("drop")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("tr.role-drop")
    assert page.locator("tr.role-drop").count() == 1 and page.locator("#bulk-set").evaluate(
        "each => each === document.activeElement"
    )
    assert page.inner_text("#shown").startswith("1 of 9"), "the filter stays"
    page.fill("#filter", "")


def legible(page: Any) -> None:
    """No label of the picture is cut, and its colours are those of the page."""
    for text in page.locator("svg.frontier text").all():
        inside = text.evaluate("each => [each.getBoundingClientRect(), each.ownerSVGElement.getBoundingClientRect()]")
        assert inside[1]["left"] <= inside[0]["left"] and inside[0]["right"] <= inside[1]["right"], text.inner_html()
    colour = "each => getComputedStyle(each).fill"
    light = page.locator("svg.frontier text").first.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    assert page.locator("svg.frontier text").first.evaluate(colour) != light, "the picture follows dark mode"
    page.emulate_media(color_scheme="light")


def test_the_whole_way_on_the_built_in_table(visitor: Any, tmp_path: Path) -> None:
    page = visitor
    page.click("text=Use the built-in")
    page.click("text=Yes, continue to the roles")
    no_guarantee_is_lost(page)
    several_at_once(page)

    page.click("a[aria-label='Hierarchy of age: numeric']")
    page.click("a:text-is('intervals')")
    page.fill("#build-width", "25")
    page.wait_for_selector("#tried td:has-text('[25, 50)')")  # the preview follows what is typed
    onward(page, "text=Use it")
    page.check("input[aria-label='tick [0, 50)']")
    page.fill("#label", "young")
    onward(page, "text=Rename")
    page.wait_for_selector(".levels td:has-text('young')")
    onward(page, "text=Undo the last change")
    assert page.locator(".levels td:has-text('young')").count() == 0

    onward(page, "text=Back to all columns")
    onward(page, "text=Continue to the guarantees")
    page.wait_for_selector("text=are unique today")
    assert "shared by 1 row" in page.inner_text("#requested-0"), "an example from this table"
    guarantee(page, "requested-0", k="8")
    guarantee(page, "requested-1", t="0.3")
    assert page.inner_text("#requested-1-head").startswith("t-closeness of disease, t = 0.3")
    assert page.locator("a:text-is('Continue to the methods')").count() == 0, "charge is sensitive and has no guarantee"
    page.check("input[name=sure]")
    onward(page, "text=Confirm and continue to the methods")
    compare(page, "mondrian", "incognito")
    point = page.locator("svg.frontier a[aria-label^=incognito]")
    point.focus()
    page.keyboard.press("Enter")  # pointed at without a mouse
    page.wait_for_selector("#chosen:has-text('full-domain recoding')")  # the method says what it does
    legible(page)
    page.wait_for_selector("#chosen h3:has-text('incognito')")
    page.go_back()
    page.wait_for_selector("#chosen h3:has-text('mondrian')")
    page.click("text=Anonymize with mondrian")
    page.wait_for_selector("text=is met, but risks remain")
    assert "No guarantee protects charge" in page.inner_text("section[aria-labelledby=risks-head]")
    boxes = [page.locator(place).bounding_box()["y"] for place in ("#risks-head", "#download-release")]
    assert boxes[0] < boxes[1], "risks are said above the download"
    page.wait_for_function("[...document.querySelectorAll('figure img')].every(each => each.complete)")
    assert page.locator("figure img").evaluate_all("all => all.every(each => each.naturalWidth > 0)")
    audited(page, tmp_path)
    page.click("text=closeknit >> nth=0")
    page.click("a:has-text('hospital.csv') >> nth=0")  # left, and found again
    page.wait_for_selector("#verdict")


def test_the_whole_way_on_adult(visitor: Any, tmp_path: Path, data_folder: Path) -> None:
    page = visitor
    dropped(page, data_folder / "adult" / "adult.csv.gz")
    page.click("button:text-is('Upload')")
    page.click("text=Yes, continue to the roles")
    for column in ("fnlwgt", "capital-gain", "capital-loss"):
        role(page, column, "drop")
    page.click("a[aria-label='Hierarchy of hours-per-week: numeric']")
    page.click("a:text-is('quantiles')")
    page.wait_for_selector("caption:text-is('Preview')")
    page.fill("#build-bins", "4")
    onward(page, "text=Use it")
    onward(page, "text=Back to all columns")
    onward(page, "text=Continue to the guarantees")
    page.wait_for_selector("text=are unique today")
    guarantee(page, "requested-0", k="10")
    guarantee(page, "requested-1", t="0.25")
    onward(page, "text=Continue to the methods")
    compare(page, "mondrian")
    page.click("text=Anonymize with mondrian")
    page.wait_for_selector("#verdict")
    audited(page, tmp_path)


@pytest.mark.parametrize("visitor", [False], indirect=True)
def test_the_main_way_needs_no_script(visitor: Any, tmp_path: Path) -> None:
    page = visitor
    rows = "".join(f"{20 + i % 40},{'fm'[i % 2]},{('flu', 'gout', 'burn')[i % 3]}\n" for i in range(120))
    (tmp_path / "people.csv").write_text("age,sex,disease\n" + rows, encoding="utf-8")
    page.set_input_files("#table", tmp_path / "people.csv")
    page.click("button:text-is('Upload')")
    page.click("text=Yes, continue to the roles")
    page.get_by_role("combobox", name="sex").select_option("plain")
    onward(page, "tr:has(#role-1) button")
    assert page.locator("#role-1").input_value() == "plain"
    onward(page, "text=Continue to the guarantees")
    onward(page, "text=Continue to the methods")  # when the count is over
    page.click("text=Choose a method without comparing")
    page.check("input[value=mondrian][type=radio]")
    page.click("button:has-text('Anonymize')")
    page.wait_for_selector("#verdict")
    audited(page, tmp_path)


@pytest.mark.soak
def test_a_stream_by_keyboard_alone(visitor: Any, tmp_path: Path) -> None:
    recipe = "schema: {quasi: {age: {numeric: {lo: 0, hi: 120}}}}\nmodels: []\nstream: {k: 2, delta: 4}\n"
    (tmp_path / "r.yaml").write_text(recipe, encoding="utf-8")
    visitor.get_by_role("link", name="Publish a stream").press("Enter")
    visitor.set_input_files("#recipe", tmp_path / "r.yaml")
    visitor.locator("#name").press_sequentially("ward 3")
    visitor.locator("#name").press("Enter")
    visitor.get_by_role("heading", name="ward 3").wait_for()
    visitor.get_by_role("heading", name="Running, no alarms").wait_for()  # the page follows the stream by itself
    visitor.evaluate(
        """() => fetch(`/api${location.pathname}/rows?first=0`,
            {method: "POST", headers: {"content-type": "text/csv"}, body: "age\\n30\\n31\\n32\\n33\\n34\\n35\\n"})"""
    )
    visitor.locator("#certificate").focus()
    visitor.wait_for_selector("td.met")
    assert visitor.evaluate("document.activeElement.id") == "certificate"  # the focus stays where it is
    visitor.locator("summary:has-text('Close')").press("Enter")
    visitor.get_by_role("button", name="Yes, publish the waiting rows").press("Enter")
    visitor.get_by_role("heading", name="Ended").wait_for()
    assert visitor.locator("dt:has-text('Waiting') + dd").inner_text().startswith("0")

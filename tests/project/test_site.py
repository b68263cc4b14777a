"""The documentation as a site: built strictly, complete, from one host, with every page in the navigation."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

import closeknit
from closeknit import attacks, checks, datasets, metrics

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FROM_ROOT = {"contributing.md", "changelog.md"}
ELSEWHERE = re.compile(r"<(?:script|link|img|iframe)[^>]*[\"'](?:https?:)?//[^>]*>|url\([\"']?(?:https?:)?//|@import", re.I)
LINK = re.compile(r"\]\(([^)#\s]+)|^\[[^\]]+\]: ([^#\s]+)", re.M)
DIRECTIVE = re.compile(r"^::: ([\w.]+)$", re.M)


def site_settings() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def nav_pages(entries: Any) -> Iterator[str]:
    """The files that the navigation names, group by group."""
    for entry in entries:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else nav_pages(value)


def links(page: Path) -> list[str]:
    return [inline or listed for inline, listed in LINK.findall(page.read_text(encoding="utf-8"))]


def test_navigation_has_every_page_once() -> None:
    listed = sorted(nav_pages(site_settings()["nav"]))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    notebooks = {path.relative_to(DOCS).with_suffix(".md").as_posix() for path in DOCS.rglob("*.ipynb")}
    assert listed == sorted(pages | notebooks | FROM_ROOT)


def test_navigation_is_grouped() -> None:
    groups = [next(iter(entry.items())) for entry in site_settings()["nav"]]
    assert 8 <= len(groups) <= 12
    assert [name for name, pages in groups if not 2 <= len(pages) <= 14] == []


def test_every_page_is_reachable_by_links() -> None:
    """For those who read the files and not the site."""
    seen, todo = set(), [ROOT / "README.md", DOCS / "index.md"]
    while todo:
        page = todo.pop()
        if page not in seen and page.suffix in (".md", ".ipynb") and page.is_file():
            seen.add(page)
            todo += [(page.parent / link).resolve() for link in links(page)]
    assert {path for path in DOCS.rglob("*") if path.suffix in (".md", ".ipynb")} - seen == set()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; a warning of the builder is an error."""
    for module in ("material", "mkdocstrings", "griffe"):
        pytest.importorskip(module, reason=f"{module}, which the site is built with, is not installed")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_site_loads_nothing_from_another_host(site: Path) -> None:
    html, css = (list(site.rglob(f"*.{suffix}")) for suffix in ("html", "css"))
    assert len(html) >= len(list(DOCS.rglob("*.md"))) and css
    for file in [*html, *css]:
        assert ELSEWHERE.findall(file.read_text(encoding="utf-8")) == [], file.name


def test_every_page_links_to_the_glossary(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if page.name not in ("404.html", "glossary.html")]
    article = re.compile(r"<article.*?</article>", re.S)  # the navigation links to it anyway
    assert [page.name for page in pages if 'glossary.html"' not in article.findall(page.read_text(encoding="utf-8"))[0]] == []


def test_notebooks_are_pages(site: Path) -> None:
    for notebook in DOCS.rglob("*.ipynb"):
        page = (site / notebook.relative_to(DOCS)).with_suffix(".html").read_text(encoding="utf-8")
        assert f'href="{notebook.name}"' in page and page.count('class="highlight"') >= 6, notebook.name


def test_the_theorem_links_to_its_test(site: Path) -> None:
    """The link of the repository works on the site too, which has a copy of the file."""
    test = "tests/methods/test_soft_stop.py"
    assert f"](../{test})" in (DOCS / "security.md").read_text(encoding="utf-8")
    assert f'href="{test}"' in (site / "security.html").read_text(encoding="utf-8")
    assert (site / test).read_bytes() == (ROOT / test).read_bytes()


def public_names() -> Iterator[tuple[str, Any]]:
    """Every public class and function, with the name that a user types."""
    for module in (closeknit, metrics, attacks, datasets, checks):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value


def test_reference_has_every_public_name() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    listed = DIRECTIVE.findall(text)
    assert len(listed) == len(set(listed))
    missing = {name for name, value in public_names() if {name, f"{value.__module__}.{value.__qualname__}"}.isdisjoint(listed)}
    assert missing == set()


@pytest.mark.parametrize("name", ["packages", "architecture"])
def test_map_shows_the_packages_of_today(name: str) -> None:
    """`make map` draws it; imports and lines may drift a little, the packages may not."""
    drawn = re.findall(r'id="package-(\w+)"', (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8"))
    source = Path(closeknit.__file__).parent
    packages = [path.parent.name for path in source.glob("*/__init__.py")]
    assert sorted(drawn) == sorted(["accessors", *packages])  # a module that is a layer of its own
    assert f"pictures/{name}.svg" in (DOCS / "architecture.md").read_text(encoding="utf-8")


def test_walk_follows_a_call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    import_module("walk").main("audit")
    hops = capsys.readouterr().out.splitlines()
    assert hops[0].startswith("api/auditing.py") and hops[-1].startswith(f"{len(hops) - 1} hops")


def test_map_can_be_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    package_map = import_module("package_map")
    package_map.main(tmp_path)
    for name in ("packages", "architecture"):
        assert ElementTree.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")
    counts = package_map.count_imports()
    assert counts["methods", "core"] > 10 and counts["core", "methods"] == 0
    assert set(package_map.CONTENTS) == {name for row in package_map.layers() for name in row}

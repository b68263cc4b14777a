"""README and docs: links, examples in YAML and on the command line, and that nothing registered goes unmentioned.

Python examples are doctests of the pages themselves. Blocks of a page run in their order in one folder: a YAML block that
begins with `# name.yaml` is saved there, and a `console` block is typed into a shell. A shown line must occur in the output,
with its numbers; `...` stands for what is not shown; `$ echo $?` shows the status of the command before it. So that numbers
repeat, every seed that a command draws is the same one. A better search changes them: `CLOSEKNIT_RENEW=1 pytest
tests/project/test_docs.py` writes those of today into the pages. The tutorial is typed literally, each command in a shell; the
commands of other pages run in the test's process if they can.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main
import yaml
from typer.testing import CliRunner

import closeknit
from closeknit.api.recipe import Recipe
from closeknit.cli.commands import app
from closeknit.core.hierarchy import Hierarchy
from closeknit.core.kind_forms import BUILDERS, KINDS
from closeknit.core.schema import ROLES, Schema
from closeknit.forms import REGISTRY as FORMS
from closeknit.methods import REGISTRY as METHODS
from closeknit.models import REGISTRY as MODELS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SOURCE = re.compile(r"^Sources?: (.+?\.)(?: [A-Z]|\n\n|\n[-A-Z]|$)", re.M | re.S)
LITERAL = "tutorial.md"
NUMBER = re.compile(r"\d[\d,.]*(?<![,.])")
DRAWN = 2**127 + 5  # the seed of every example; a long one, as drawn ones are
RENEWS = os.environ.get("CLOSEKNIT_RENEW") == "1"


class Block(NamedTuple):
    """One fenced block."""

    language: str
    text: str


def blocks(page: Path, *languages: str) -> list[Block]:
    found = [Block(*match) for match in FENCE.findall(page.read_text(encoding="utf-8"))]
    return [block for block in found if block.language in languages]


def named(page: Path) -> str:
    return page.name


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def test_there_are_pages() -> None:
    assert len(PAGES) > 10 and len(pages_with("console")) >= 3 and len(pages_with("yaml")) >= 4


# Links -------------------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """What headings are called by in links."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ +(.+)$", text, re.M)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_resolve(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if link.startswith("https://"):
            continue
        target, _, anchor = link.partition("#")
        other = page.parent / target if target else page
        assert other.is_file(), link
        assert not anchor or anchor in anchors(other), link


# YAML --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages_with("yaml"), ids=named)
def test_recipes_are_read(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "csv"):
        (tmp_path / "job.csv").write_text(block.text, encoding="utf-8")
    for block in blocks(page, "yaml"):
        forms = yaml.safe_load(block.text)
        assert "schema" in forms, block.text
        if "preset" in forms:
            assert Recipe.of(forms, tmp_path).preset
        elif "models" in forms:
            recipe = Recipe.of(forms, tmp_path)
            assert len(recipe.models) == len(forms["models"])
        else:
            assert set(forms) == {"schema"}
            assert Schema.from_forms(forms["schema"], tmp_path).quasi


# Command line ------------------------------------------------------------------------------------------------------------


class Typed(NamedTuple):
    """A command and the lines that are shown below it."""

    command: str
    shown: list[str]


def session(text: str) -> Iterator[Typed]:
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, *shown = part.splitlines()
        yield Typed(command, [line for line in shown if line.strip()])


def spaced(line: str) -> str:
    """The line with one space where there are several: widths of columns follow from the cells."""
    return " ".join(line.split())


def masked(line: str) -> str:
    """The line without its numbers and its spacing."""
    return spaced(NUMBER.sub("#", line))


def found(shown: str, lines: list[str]) -> str | None:
    """The line as it is shown, up to spacing, or else (to renew it) apart from its numbers; `...` stands for anything."""
    for form in (spaced, masked) if RENEWS else (spaced,):
        pattern = re.compile(".*".join(re.escape(form(part)) for part in shown.split("...")))
        for line in lines:
            if pattern.fullmatch(form(line)):
                return line
    return None


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An empty folder, and a `closeknit` that is the one under test, with one seed for all that draw one."""
    monkeypatch.setattr(secrets, "randbits", lambda bits: DRAWN)
    program = f"import secrets; secrets.randbits = lambda bits: {DRAWN}; from closeknit.cli.commands import main; main()"
    command = tmp_path / "bin" / "closeknit"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{program}" "$@"\n', encoding="utf-8")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    folder = tmp_path / "folder"
    folder.mkdir()
    source = str(Path(closeknit.__file__).parents[1])
    environment = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    return {"cwd": folder, "env": environment}


def type_in(shell: dict[str, Any], typed: Typed, status: int, literal: bool = False) -> int:
    """Run one command, compare what it shows, and return its status; `status` is that of the command before."""
    if typed.command == "echo $?":
        assert typed.shown == [str(status)]
        return 0
    assert status == 0, f"a command before '{typed.command}' failed with {status}, and the page does not say so"
    here = None if literal else run_here(shell["cwd"], typed.command)
    status, output = here or run_in_a_shell(shell, typed.command)
    lines = [line for line in output.splitlines() if line.strip()]
    for i, line in enumerate(typed.shown):
        said = found(line, lines)
        assert said is not None, f"'{typed.command}' does not say '{line}' but:\n{output}"
        typed.shown[i] = line if "..." in line or spaced(line) == spaced(said) else said.rstrip()
    if "..." not in typed.shown:
        assert len(lines) == len(typed.shown), f"'{typed.command}' says more:\n{output}"
    return status


def run_in_a_shell(shell: dict[str, Any], command: str) -> tuple[int, str]:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ran = subprocess.run(["/bin/sh", "-c", command], text=True, encoding="utf-8", **pipes, **shell)
    return ran.returncode, ran.stdout


def run_here(folder: Path, command: str) -> tuple[int, str] | None:
    """A plain `closeknit ...`, without a process of its own: starting one takes longer than most commands."""
    words = shlex.split(command)
    if words[0] != "closeknit" or set(command) & set("|;&<>$*"):  # also `> file`: a command may ask where its output goes
        return None
    with chdir(folder):
        ran = CliRunner().invoke(app, words[1:], prog_name="closeknit", catch_exceptions=False)
    return ran.exit_code, ran.output


@pytest.mark.parametrize("page", pages_with("console"), ids=named)
def test_commands_do_what_is_shown(page: Path, shell: dict[str, Any]) -> None:
    status, text, place = 0, page.read_text(encoding="utf-8"), 0
    for block in blocks(page, "console", "yaml"):
        if block.language == "yaml":
            if name := re.match(r"# ([\w.]+\.yaml)\n", block.text):
                (shell["cwd"] / name[1]).write_text(block.text, encoding="utf-8")
            continue
        for typed in session(block.text):
            before = list(typed.shown)
            status = type_in(shell, typed, status, page.name == LITERAL)
            for old, new in zip(before, typed.shown, strict=True):
                place = text.index(f"\n{old}\n", place) + 1
                text = text[:place] + new + text[place + len(old) :]
    if RENEWS:
        page.write_text(text, encoding="utf-8")
    assert status == 0, f"the last command failed with {status}, and the page does not say so"


def test_a_changed_line_is_found(shell: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    version = f"closeknit {closeknit.__version__}"
    assert type_in(shell, Typed("closeknit --version", [version]), 0) == 0
    monkeypatch.setattr(sys.modules[__name__], "RENEWS", False)
    for line in ("another line", f"{version}1"):
        with pytest.raises(AssertionError, match="does not say"):
            type_in(shell, Typed("closeknit --version", [line]), 0)
    with pytest.raises(AssertionError, match="says more"):
        type_in(shell, Typed("closeknit --version", []), 0)


# Nothing goes unmentioned ------------------------------------------------------------------------------------------------


def everything() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*MODELS, *METHODS, *FORMS, *KINDS, *BUILDERS, *ROLES])
def test_registered_names_are_explained(name: str) -> None:
    assert re.search(rf"`[^`\n]*\b{name}\b|\b{name}:", everything()), name


@pytest.mark.parametrize("name", sorted(set(closeknit.__all__) - {"CloseknitError"}))
def test_public_names_are_mentioned(name: str) -> None:
    assert re.search(rf"\b{name}\b", everything()), name


@pytest.mark.parametrize("registry", [MODELS, METHODS], ids=["models", "methods"])
def test_readme_names_what_is_there(registry: dict[str, Any]) -> None:
    readme = PAGES[0].read_text(encoding="utf-8")
    assert [thing.__name__ for thing in registry.values() if f"`{thing.__name__}`" not in readme] == []


def test_table_of_guarantees_is_the_registry() -> None:
    rows = re.findall(r"^\| \[`(\w+)\((.*?)\)`\]\(#[\w-]+\) \| `(\w+)` \|.*\| (.+?) \|$", page("guarantees.md"), re.M)
    assert [(name, recipe) for name, _, recipe, _ in rows] == [(model.__name__, name) for name, model in MODELS.items()]
    for (_, params, _, merged), model in zip(rows, MODELS.values(), strict=True):
        fields = list(model.__dataclass_fields__)  # type: ignore[attr-defined]
        assert params.split(", ") == fields
        assert (merged == "keeps it") == model.monotone


@pytest.mark.parametrize("name", ["intervals", "quantiles", "prefix", "dates", "from_nested", "balanced", "rare", "read_csv"])
def test_builders_are_shown(name: str) -> None:
    assert callable(getattr(Hierarchy, name)) and f"Hierarchy.{name}(" in page("schema.md")


def test_commands_and_options_are_listed() -> None:
    text = page("command_line.md")
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f"\n## {name}" in text, name
        part = text.split(f"\n## {name}")[1].split("\n## ")[0]
        options = [option for param in command.params for option in param.opts if option.startswith("--")]
        missing = [option for option in options if option not in part and option not in ("--help", "--output")]
        assert missing == [], name


def test_bibliography_has_every_source() -> None:
    """A docstring says `Source: the thesis on ..., sec. 3`; the bibliography explains that name."""
    cited = set()
    for file in (ROOT / "src").rglob("*.py"):
        for sentence in SOURCE.findall(file.read_text(encoding="utf-8")):
            flat = " ".join(sentence.split())
            cited |= {name.strip() for name in re.findall(r"\b(the [^,;]+?),(?: sec\.| ch\.| as in)", flat)}
    assert len(cited) >= 4
    assert [name for name in sorted(cited) if f"*{name}*" not in page("bibliography.md")] == []

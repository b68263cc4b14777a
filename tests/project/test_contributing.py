"""CONTRIBUTING.md names the files that a new model, method, form or stream needs: all of them, and no others.

Its examples are doctests (`testpaths` in pyproject.toml).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from closeknit.forms import REGISTRY as FORMS
from closeknit.methods import REGISTRY as METHODS
from closeknit.models import REGISTRY as MODELS
from closeknit.streams import REGISTRY as STREAMS

ROOT = Path(__file__).resolve().parents[2]
KINDS = {"model": MODELS, "method": METHODS, "form": FORMS, "stream": STREAMS}
# Needed for some of a kind only: a source that is new, a test of one thing, a page of its own, a form unlike the others.
FOR_SOME = ("docs/bibliography.md", "mkdocs.yml", "tests/", "src/closeknit/models/*.py", "src/closeknit/checks/views.py")


def listed_files(kind: str) -> list[str]:
    """The first column of the table in a section."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split(f"\n## Add a {kind}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.M)


def mentions(path: Path, name: str, thing: Any) -> bool:
    return bool(re.search(rf"\b(?:{name}|{thing.__name__})\b", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("kind", KINDS)
def test_listed_files_have_what_is_registered(kind: str) -> None:
    files = listed_files(kind)
    assert len(files) >= 9
    for file in files:
        for name, thing in KINDS[kind].items():
            path = ROOT / file.replace("NAME", name)
            if file.startswith(FOR_SOME):
                assert "NAME" in file or any(ROOT.glob(file)), file
            else:
                assert path.is_file() and mentions(path, name, thing), f"{file} does not have {name}"


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_name_everything_are_listed(kind: str) -> None:
    source = ROOT / "src"
    for path in source.rglob("*.py"):
        if all(mentions(path, name, thing) for name, thing in KINDS[kind].items()):
            assert path.relative_to(ROOT).as_posix() in listed_files(kind)

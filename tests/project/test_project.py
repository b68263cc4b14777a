"""The project's own order: public names, a light import, short files, clean text, pinned dependencies."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import closeknit

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FILE, LONGEST_FUNCTION = 410, 60
# The same thing at two levels: a method and its kernels, a function and its command, an attack and what it counts with.
SHARED_NAMES = {
    *("anatomy", "audit", "castle", "covering", "cubes", "diverse_cuts", "fakes", "fragments", "frontier", "left_over"),
    *("microaggregation", "peeling", "presets", "queries", "risk", "sources", "splitting", "spreading", "stream", "streams"),
    "stream_watch",
}
# Written in pieces, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
FOREIGN = re.compile(
    r"(?<![\w.~}])/(" + "|".join(["work", "root", "home", "Users", "tmp", "opt", "mnt"]) + r")/\w"
    r"|pythonhosted\.|\bindex-url\b|file://" + "/"
)


@cache
def project_files() -> tuple[Path, ...]:
    """What a commit of everything would hold."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git clone")
    return tuple(path for line in listed.splitlines() if (path := ROOT / line).is_file())


def faults(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    return found


@pytest.mark.parametrize("name", closeknit.__all__)
def test_public_name_resolves(name: str) -> None:
    value = getattr(closeknit, name)
    assert name in dir(closeknit)
    assert inspect.ismodule(value) == (name in closeknit._PACKAGES), "a file of a room hides the public name"


def test_type_checkers_see_every_public_name() -> None:
    """They read the imports of the first `if`; Python looks names up in `_MODULE_OF`."""
    (block,) = (node for node in ast.parse(Path(closeknit.__file__).read_text("utf-8")).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in imports for alias in node.names}
    assert seen == {**closeknit._MODULE_OF, **dict.fromkeys(closeknit._PACKAGES, "closeknit")}


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = closeknit.no_such_name


def test_import_is_light() -> None:
    heavy = "numba numpy polars pyarrow pandas pydantic scipy typer rich jinja2 fastapi starlette uvicorn"
    program = f"import sys, closeknit; print(*[m for m in '{heavy}'.split() if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _docstring_lines(node: ast.AST) -> int:
    """A docstring may be as long as its parameters need."""
    documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
        node
    )
    return _lines(node.body[0]) if documented else 0  # type: ignore[attr-defined]


def test_files_and_functions_are_short() -> None:
    """Docstrings do not count: every parameter is to be described."""
    long = []
    for path in project_files():
        if path.suffix != ".py":
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        if (lines := len(text.splitlines()) - sum(map(_docstring_lines, ast.walk(tree)))) > LONGEST_FILE:
            long.append(f"{path.relative_to(ROOT)}: {lines} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = _lines(node) - _docstring_lines(node)
                if lines > LONGEST_FUNCTION:
                    long.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {lines} lines")
    assert long == []


def test_modules_share_a_name_only_where_they_are_the_same_thing() -> None:
    stems = Counter(path.stem for path in project_files() if path.suffix == ".py" and (ROOT / "src") in path.parents)
    assert {stem for stem, count in stems.items() if count > 1 and not stem.startswith("__")} == SHARED_NAMES


def test_nothing_unfinished() -> None:
    assert faults(UNFINISHED) == []


def test_no_path_of_a_machine() -> None:
    assert faults(FOREIGN) == []


def test_patterns_find_what_they_should() -> None:
    assert FOREIGN.search("open('/ho" + "me/ann/x.csv')") and not FOREIGN.search("docs/home/index.md")
    assert UNFINISHED.search("# TO" + "DO: later") and not UNFINISHED.search("mask 12XXX")


def plain_name(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    requested = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        requested += extra
    files = [ROOT / "constraints.txt", ROOT / "integrations" / "dbt" / "constraints.txt"]  # dbt pins other versions
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[\w.]+", pin)] == []
    assert {plain_name(line) for line in requested} - {plain_name(pin) for pin in pins} == {"closeknit"}  # its own extras

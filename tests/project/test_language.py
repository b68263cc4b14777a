"""One vocabulary: words that LANGUAGE.md replaces, functions named by participles, long lines, undescribed or many parameters.

What the tree still had when the rules came is counted per file in `golden/language_debt.json`: a count may only fall.
`CLOSEKNIT_RENEW=1 pytest tests/project/test_language.py` records the counts of today.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import closeknit
from closeknit import attacks, checks, datasets, metrics

ROOT = Path(__file__).resolve().parents[2]
DEBT = ROOT / "tests" / "golden" / "language_debt.json"
LONGEST_LINE = 119
MOST_PARAMETERS = 7

# Whole words; a name such as `distinguish` has two. The right column of docs/glossary.md has what to say instead.
BANNED = (
    "told|tells?|telling|besides?|anew|mended|parted|somebody|everybody|nobody|strangers?|withheld|promises?|promised|dearest"
    "|at home|st(?:ands?|ood) with|who stands?|may leave|gives? away|goes on|asked was|quasi columns?"
)
WORDS = re.compile(rf"(?<![^\W_])(?:{BANNED})(?![^\W_])".replace(" ", r"[_\s]+"), re.I)
JAVASCRIPT = re.compile(r"\bPromise\b")  # the name of a class there

PARTICIPLE = re.compile(
    r"\w+ed|told|made|found|brought|held|kept|built|written|drawn|given|taken|known|seen|shown|chosen|said|done|gone|left|lost"
    "|sent|spent|stood|thought|understood|won|torn|spoken|broken|begun|bound|dealt|felt|fed|hidden|laid|led|met|paid|sought"
    "|spun|struck|swept|taught|thrown|woven|worn"
)
NOT_PARTICIPLES = {"seed", "feed", "need", "speed", "embed", "exceed", "proceed", "shed", "bound"}  # to bound is a verb too
# Public, and named as in recipes: `form=ck.sliced(...)` is a form, `Hierarchy.balanced(...)` a hierarchy.
ADJECTIVES = {"generalized", "bucketized", "sliced", "permuted", "perturbed", "balanced"}

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


def tree_files(*patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(path for path in ROOT.glob(pattern) if path.is_file())


def read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_names(path: Path) -> str:
    """The file's name and those of its functions: the rest of a test may quote what it forbids."""
    functions = [node.name for node in ast.walk(ast.parse(read_text(path))) if isinstance(node, ast.FunctionDef)]
    return "\n".join([path.stem, *functions])


test_names.__test__ = False  # type: ignore[attr-defined]


def banned_words() -> Iterator[tuple[Path, list[str]]]:
    texts = (
        "src/**/*.py",
        "src/**/*.html",
        "src/**/*.js",
        "src/**/*.css",
        "benchmarks/**/*.py",
        "docs/**/*.md",
        "docs/**/*.ipynb",
        "*.md",
    )
    for path in tree_files(*texts):
        text = read_text(path)
        yield path, WORDS.findall(JAVASCRIPT.sub("", text) if path.suffix in (".js", ".html") else text)
    for path in tree_files("tests/**/*.py"):
        yield path, WORDS.findall(test_names(path))


def is_participle(name: str) -> bool:
    """Of one to three words, the first a participle; a longer name is a sentence, as those of checks are."""
    words = name.strip("_").split("_")
    return len(words) <= 3 and bool(PARTICIPLE.fullmatch(words[0])) and words[0] not in NOT_PARTICIPLES


def participles() -> Iterator[tuple[Path, list[str]]]:
    """Functions are verbs; properties and what answers yes or no may be adjectives."""
    for path in tree_files("src/**/*.py", "tools/*.py"):
        nodes = [node for node in ast.walk(ast.parse(read_text(path))) if isinstance(node, ast.FunctionDef)]
        bad = [node.name for node in nodes if is_participle(node.name) and node.name not in ADJECTIVES]
        plain = {node.name for node in nodes if not any("property" in ast.unparse(mark) for mark in node.decorator_list)}
        answers = {node.name for node in nodes if node.returns is not None and ast.unparse(node.returns) == "bool"}
        yield path, [name for name in bad if name in plain - answers]


def long_lines() -> Iterator[tuple[Path, list[str]]]:
    """Rows of tables and what a program prints cannot be wrapped."""
    for path in tree_files("docs/**/*.md", "*.md"):
        lines = FENCE.sub("", read_text(path)).splitlines()
        yield path, [line[:60] for line in lines if len(line) > LONGEST_LINE and not line.startswith("|")]


def public_callables() -> Iterator[tuple[str, Any]]:
    for module in (closeknit, metrics, attacks, datasets, checks):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                yield from public_methods(value)


def public_methods(value: type) -> Iterator[tuple[str, Any]]:
    """Each where it was first defined: what overrides it is described there."""
    first = {name: base for base in value.__mro__ if base.__module__.startswith("closeknit") for name in vars(base)}
    for name, base in first.items():
        function = getattr(vars(base)[name], "__func__", vars(base)[name])
        if inspect.isfunction(function) and not name.startswith("_"):
            yield f"{base.__module__}.{base.__qualname__}.{name}", function


def described(docstring: str) -> set[str]:
    """The parameters that an `Args:` section (of a dataclass also `Attributes:`) describes."""
    names: set[str] = set()
    for section in re.findall(r"^(?:Args|Attributes):\n((?:[ \t]+.*\n?|\n)+)", docstring, re.M):
        for line in re.findall(r"^ {4}(\S[^:]*):", section, re.M):
            names |= set(re.findall(r"\w+", re.sub(r"\(.*?\)", "", line)))
    return names


def undescribed_parameters() -> Iterator[tuple[str, list[str]]]:
    for name, value in dict(public_callables()).items():
        if inspect.isclass(value) and issubclass(value, BaseException):
            continue
        try:
            parameters = set(inspect.signature(value).parameters) - {"self", "cls", "args", "kwargs"}
        except ValueError:  # a class of C has none to read
            continue
        yield name, sorted(parameters - described(inspect.getdoc(value) or ""))


def many_parameters() -> Iterator[tuple[Path, list[str]]]:
    """Public functions and commands have one for each option, kernels one for each array; others take a value object."""
    for path in tree_files("src/**/*.py", "tools/*.py"):
        nodes = [node for node in ast.walk(ast.parse(read_text(path))) if isinstance(node, ast.FunctionDef)]
        yield path, [node.name for node in nodes if count_parameters(node.args) > MOST_PARAMETERS]


def count_parameters(given: ast.arguments) -> int:
    return sum(arg.arg not in ("self", "cls") for arg in [*given.posonlyargs, *given.args, *given.kwonlyargs])


RULES: dict[str, Callable[[], Iterator[tuple[Any, list[str]]]]] = {
    rule.__name__: rule for rule in (banned_words, participles, long_lines, undescribed_parameters, many_parameters)
}


@pytest.mark.parametrize("rule", RULES)
def test_counts_only_fall(rule: str) -> None:
    found = {path.relative_to(ROOT).as_posix() if isinstance(path, Path) else path: bad for path, bad in RULES[rule]() if bad}
    recorded = json.loads(read_text(DEBT)) if DEBT.is_file() else {}
    if os.environ.get("CLOSEKNIT_RENEW") == "1":
        recorded[rule] = {where: len(bad) for where, bad in sorted(found.items())}
        DEBT.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    allowed = recorded[rule]
    grown = {where: f"{len(bad)} > {allowed.get(where, 0)}: {bad}" for where, bad in found.items()}
    assert {where: text for where, text in grown.items() if len(found[where]) > allowed.get(where, 0)} == {}


def test_rules_find_what_they_should() -> None:
    assert WORDS.findall("Told apart; is told_twice; stays at\nhome; a storyteller tolds") == ["Told", "told", "at\nhome"]
    (function,) = ast.parse("def f(self, a, b, /, c, *rest, d, **more): ...").body
    assert isinstance(function, ast.FunctionDef) and count_parameters(function.args) == 4
    assert is_participle("_published") and is_participle("brought_form") and not is_participle("seed_of")
    assert described("Do.\n\nArgs:\n    a: one\n        more: text\n    b, c (int): two\n\nReturns:\n    d: three\n") == {
        "a",
        "b",
        "c",
    }

"""Draws two pictures for docs/architecture.md: packages with sizes and imports; layers and data flow.

`make map` runs it. Layers come from the import-linter contract in pyproject.toml, imports from grimp, sizes from the files.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "closeknit"
PICTURES = ROOT / "docs" / "pictures"
INK, PAPER, QUIET, ACCENT = "#1f2d3a", "#ffffff", "#6b7a88", "#00796b"
CELL, NAME, LINE = 40, 92, 26

CONTENTS = {
    "accessors": "frame.closeknit",
    "cli": "command line",
    "web": "page and REST service",
    "checks": "conformance suite",
    "api": "anonymize, audit, attack, compare, frontier",
    "release": "Release; public and private folders",
    "report": "records in, HTML out",
    "spark": "tables and streams on Spark",
    "streams": "push, tick, flush; checkpoints",
    "metrics": "utility of a release",
    "attacks": "disclosure risk of a release",
    "risks": "re-identification risk",
    "methods": "one algorithm per file",
    "search": "cut, exchange, merge, polish",
    "plans": "bucket and quota plans",
    "fills": "pick rows for a plan",
    "models": "privacy models",
    "forms": "write and read back",
    "datasets": "generated tables",
    "io": "files and frames",
    "core": "nouns, certificate, loss, geometry",
    "kernels": "compiled loops",
}
FLOW = [
    ("file, frame, Spark", "io reads"),
    ("Columns", "Schema.encode drops direct identifiers"),
    ("Table", "a method assigns rows to classes"),
    ("Partition", "a form writes the cells"),
    ("written cells", "the form reads them back"),
    ("Classes", "the models judge what an adversary sees"),
    ("Certificate, or Unsatisfiable", "io writes"),
    ("Release: public and private files", ""),
]
AUDIT = 4  # an audit begins with the written cells


def layers() -> list[list[str]]:
    """The packages from top to bottom; those of one layer do not import each other."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rows = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[name.strip(" ()") for name in row.split("|")] for row in rows if row != "__main__"]


def count_imports() -> Counter[tuple[str, str]]:
    """How many imports of modules go from one package to another."""
    graph, counts = grimp.build_graph("closeknit", cache_dir=None), Counter[tuple[str, str]]()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            ends = [name.split(".")[1] if "." in name else "" for name in (module, imported)]
            counts[ends[0], ends[1]] += ends[0] != ends[1]
    return counts


def count_lines(package: str) -> int:
    """Lines of code, without docstrings, comments and blank lines."""
    lines = 0
    for path in [*SOURCE.glob(f"{package}.py"), *(SOURCE / package).rglob("*.py")]:
        tree, text = ast.parse(path.read_text(encoding="utf-8")), path.read_text(encoding="utf-8").splitlines()
        docs = [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
        skipped = {number for node in docs for number in range(node.lineno, (node.end_lineno or 0) + 1)}
        lines += sum(
            bool(line.strip()) and not line.strip().startswith("#") and number not in skipped
            for number, line in enumerate(text, 1)
        )
    return lines


def text(
    x: float, y: float, words: str, size: int = 12, colour: str = INK, anchor: str = "start", weight: str = "normal"
) -> str:
    style = f'font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, stroke: str = "none", opacity: float = 1) -> str:
    size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"'
    return f'<rect {size} fill="{fill}" stroke="{stroke}" fill-opacity="{opacity:.2f}"/>'


def picture(width: float, height: float, title: str, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" role="img">'
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    tip += f'<path d="M0 0L8 4L0 8z" fill="{QUIET}"/></marker>'
    return "\n".join([head, f"<title>{title}</title>", tip, box(0, 0, width, height, PAPER), *parts, "</svg>", ""])


def draw_matrix(counts: Counter[tuple[str, str]], sizes: dict[str, int]) -> str:
    """Packages on the diagonal from top to bottom; a number below it would be an import upwards, and there is none."""
    names = [name for row in layers() for name in row]
    left, top, most = NAME + 8, 56, max(sizes.values())
    bars = left + CELL * len(names) + 16
    parts = [
        text(12, 24, "A row imports a column: number of imports between modules", 15, weight="bold"),
        text(bars, top - 10, "lines of code", 12, QUIET),
    ]
    for i, name in enumerate(names):
        y = top + i * CELL
        bar = 150 * sizes[name] / most
        parts += [
            f'<g id="package-{name}">',
            text(left - 8, y + LINE, name, 13, anchor="end", weight="bold"),
            box(left + i * CELL + 1, y + 1, CELL - 2, CELL - 2, INK),
            box(bars, y + 10, bar, CELL - 20, ACCENT),
            text(bars + bar + 6, y + LINE, f"{sizes[name]:,}"),
            "</g>",
            text(left + (i + 0.5) * CELL, y + LINE, name, 9 if len(name) < 9 else 8, PAPER, "middle"),
        ]
        for j, other in enumerate(names):
            if count := counts[name, other]:
                shade = min(0.12 + count / 110, 0.9)
                parts.append(box(left + j * CELL + 1, y + 1, CELL - 2, CELL - 2, ACCENT, opacity=shade))
                parts.append(text(left + (j + 0.5) * CELL, y + LINE, str(count), 12, PAPER if shade > 0.55 else INK, "middle"))
    return picture(bars + 220, top + CELL * len(names) + 16, "Imports between the packages of closeknit", parts)


def draw_architecture(sizes: dict[str, int]) -> str:
    """The layers on the left, what `anonymize` makes of a table on the right."""
    parts = [text(16, 28, "Packages: imports point downwards only", 15, weight="bold")]
    y, wide = 44, 600
    for row in layers():
        width = (wide - 8 * (len(row) - 1)) / len(row)
        for i, name in enumerate(row):
            x = 16 + i * (width + 8)
            parts += [
                f'<g id="package-{name}">' + box(x, y, width, 40, "#e0f2f1", ACCENT),
                text(x + 10, y + 17, name, 13, weight="bold"),
                text(x + width - 10, y + 17, f"{sizes[name]:,}", 10, QUIET, "end"),
                text(x + 10, y + 33, CONTENTS.get(name, ""), 11) + "</g>",
            ]
        y += 48
    x, y, step = 680, 44, 82
    parts.append(text(x, 28, "Data flow of anonymize", 15, weight="bold"))
    for noun, act in FLOW:
        parts.append(box(x, y, 290, 36, "#fff8e1", "#c49000") + text(x + 145, y + 23, noun, 13, anchor="middle", weight="bold"))
        if act:
            parts.append(
                f'<path d="M{x + 40} {y + 36}V{y + step - 2}" stroke="{QUIET}" stroke-width="2" marker-end="url(#tip)"/>'
            )
            parts.append(text(x + 54, y + 63, act, 12))
        y += step
    start, end = 44 + AUDIT * step, 44 + (AUDIT + 2) * step + 36
    parts.append(f'<path d="M{x + 302} {start}h12V{end}h-12" fill="none" stroke="{QUIET}" stroke-width="2"/>')
    parts += [text(x + 324, (start + end) / 2 + i * 16, words, 12) for i, words in enumerate(["audit:", "this part", "alone"])]
    return picture(x + 400, max(y - 30, 64 + 48 * len(layers())), "Packages and data flow of closeknit", parts)


def main(folder: Path = PICTURES) -> None:
    """Write both pictures."""
    sizes = {name: count_lines(name) for row in layers() for name in row}
    (folder / "packages.svg").write_text(draw_matrix(count_imports(), sizes), encoding="utf-8")
    (folder / "architecture.svg").write_text(draw_architecture(sizes), encoding="utf-8")


if __name__ == "__main__":
    main()

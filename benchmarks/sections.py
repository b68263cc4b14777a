"""Sections of a benchmark's page: tables and remarks, printed and put in the place of the section's last version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HEAD = """# Measured

Every section was written by the command that it names; only the last two were typed by hand. Times are
medians with the least and the largest in brackets. `make bench` repeats all measurements.
"""


@dataclass
class Section:
    """What one benchmark has to say."""

    title: str
    parts: list[str] = field(default_factory=list)

    def say(self, sentence: str | None) -> None:
        """A paragraph; None says nothing."""
        if sentence:
            self.parts.append(sentence)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table; all columns but the first stand at the right."""
        cells = [[str(cell) for cell in row] for row in (head, *rows)]
        width = [max(len(row[j]) for row in cells) for j in range(len(head))]
        lines = ["| " + " | ".join(_set(cell, j, width[j]) for j, cell in enumerate(row)) + " |" for row in cells]
        rule = "| " + " | ".join("-" * (w - (j > 0)) + (":" if j else "") for j, w in enumerate(width)) + " |"
        self.parts.append("\n".join([lines[0], rule, *lines[1:]]))

    def text(self) -> str:
        """The section as Markdown."""
        return "\n\n".join([f"## {self.title}", *self.parts])


def _set(cell: str, column: int, width: int) -> str:
    return cell.rjust(width) if column else cell.ljust(width)


def sections_of(page: Path) -> dict[str, str]:
    """What stands on the page, by name."""
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    return dict(re.findall(r"<!-- (\w+) -->\n(.*?)\n<!-- end -->", old, flags=re.DOTALL))


def replace(page: Path, name: str, text: str, order: Sequence[str], head: str = HEAD) -> None:
    """Put the section in the place of its last version; sections stand in the given order, below the head."""
    found = sections_of(page)
    found[name] = text
    known = [*order, *(other for other in found if other not in order)]
    body = [f"<!-- {one} -->\n{found[one]}\n<!-- end -->" for one in known if one in found]
    page.write_text("\n\n".join([head.rstrip(), *body]) + "\n", encoding="utf-8")

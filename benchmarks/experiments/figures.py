"""What an experiment gives back: a picture, what the source says of it, and whether that holds here."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pictures
import sections
from pictures import Panel

PICTURES = Path("pictures", "experiments")  # next to the page
WIDTH = 119  # of a line
Value = TypeVar("Value")


@dataclass(frozen=True)
class Trial:
    """How an experiment is to be run: in full on the public tables, or `quick` on small generated ones."""

    quick: bool
    place: Path  # a folder for the tables, thrown away afterwards

    def rows(self, small: int) -> int | None:
        """For `tables.sal(place, rows)` and its like: None is the public table, a number a generated one of that size."""
        return small if self.quick else None

    def some(self, values: Sequence[Value], quick: Sequence[Value]) -> Sequence[Value]:
        """A grid: all of it, or the few of a quick run."""
        return quick if self.quick else values


@dataclass(frozen=True)
class Claim:
    """One sentence of the source; whether it holds here, or in which share of the settings; and the numbers that say so.

    >>> [Claim("it falls", holds, "").word for holds in (True, 0.9, 0)]
    ['Confirmed', 'Confirmed in part', 'Not confirmed']
    """

    source: str
    holds: float
    here: str

    @property
    def word(self) -> str:
        """Whether the sentence holds here."""
        return "Confirmed" if self.holds >= 1 else "Confirmed in part" if self.holds > 0 else "Not confirmed"


@dataclass(frozen=True)
class Figure:
    """One figure or table of a source, run again.

    `panels` draw what was measured, `Panel.reported` what the source prints in numbers; `drawn` draws it another way.
    `remark` says what the claims do not: why something differs, where we do better.
    """

    title: str
    settings: str
    claims: Sequence[Claim]
    panels: Sequence[Panel] = ()
    drawn: Callable[[Path], None] | None = None
    tables: Sequence[tuple[Sequence[str], Sequence[Sequence[object]]]] = ()
    remark: str = ""
    details: Sequence[str] = ()  # paragraphs and tables that are ready as they stand
    columns: int = 2

    @property
    def verdict(self) -> str:
        """In one word or two, from the claims alone.

        >>> Figure("", "", [Claim("a", True, ""), Claim("b", False, "")]).verdict
        'Reproduced in part'
        """
        held = [claim.holds for claim in self.claims]
        if not held:
            return "Nothing to compare with"
        return "Reproduced" if min(held) >= 1 else "Reproduced in part" if max(held) > 0 else "Not reproduced"

    def draw(self, path: Path) -> bool:
        """The picture as a file; False if there is none to draw."""
        if self.drawn is not None:
            self.drawn(path)
        elif self.panels:
            pictures.draw(path, self.title, self.panels, self.columns)
        else:
            return False
        return True

    def text(self, picture: Path | None) -> str:
        """As Markdown, below the heading of its source."""
        part = sections.Section(self.title)
        part.say(f"![{self.title.partition(':')[0]}]({picture.as_posix()})" if picture else None)
        part.say(f"**{self.verdict}.**")
        part.say("\n".join(wrap(f"- The source: {one.source}. {one.word}: {one.here}.", "  ") for one in self.claims))
        part.say(wrap(self.remark))
        for head, rows in self.tables:
            part.table(head, rows)
        part.parts.extend(map(wrap, self.details))
        part.say(wrap(f"*{self.settings}*"))
        return f"#{part.text()}"


def wrap(text: str, indent: str = "") -> str:
    """The paragraph in lines that are short enough for the page; no line begins with what Markdown reads as a list.

    >>> print(wrap("Rows " + 23 * "many " + "+ 1"))
    Rows many many many many many many many many many many many many many many many many many many many many many many
    many + 1
    """
    if text.startswith("|"):
        return text
    glued = re.sub(r" (?=(?:[-+*#>=|]|\d+[.)])+(?: |$))", "\0", text)  # such a word stays with the one before it
    lines = textwrap.wrap(glued, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


Experiment = Callable[[Trial], Figure]


@dataclass(frozen=True)
class Source:
    """The experiments of one source, by the figure or table they run again (a name for files and the command line)."""

    title: str
    about: str
    experiments: Mapping[str, Experiment] = field(default_factory=dict)

"""What an experiment gives back: a picture, what the source says of it, and whether that holds here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pictures
import sections
from pictures import Panel

PICTURES = Path("pictures", "experiments")  # next to the page
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

    >>> Claim("it falls", True, "").word, Claim("it falls", 0.9, "").word, Claim("it falls", 0, "").word
    ('so', 'so in part', 'not so')
    """

    source: str
    holds: float
    here: str

    @property
    def word(self) -> str:
        """So, or not."""
        return "so" if self.holds >= 1 else "so in part" if self.holds > 0 else "not so"


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
        part.say(f"![{self.title}]({picture.as_posix()})" if picture else None)
        said = [f"The source: {one.source}. Here {one.word}: {one.here}." for one in self.claims]
        part.say(" ".join([f"**{self.verdict}.**", *said, *([self.remark] if self.remark else [])]))
        for head, rows in self.tables:
            part.table(head, rows)
        part.parts.extend(self.details)
        part.say(f"*{self.settings}*")
        return f"#{part.text()}"


Experiment = Callable[[Trial], Figure]


@dataclass(frozen=True)
class Source:
    """The experiments of one source, by the figure or table they run again (a name for files and the command line)."""

    title: str
    about: str
    experiments: Mapping[str, Experiment] = field(default_factory=dict)

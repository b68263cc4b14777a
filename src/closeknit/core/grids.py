"""Results as small tables: aligned text for a terminal, and the summary of an object for a REPL and a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from closeknit.core.errors import keep_printable

NOTHING = "-"
SHOWN_ROWS = 12
MOST_NOTES = 3
MOST_SIGNS = 90  # characters of a cell or a note


def render_number(value: float | None, form: str = ".4g") -> str:
    """A number as a cell of a grid.

    >>> render_number(0.25), render_number(None)
    ('0.25', '-')
    """
    return NOTHING if value is None else format(value, form)


def render_measured(value: float | None) -> str:
    """A measured level; without one it has no limit.

    >>> render_measured(0.25), render_measured(None)
    ('0.25', 'no limit')
    """
    return "no limit" if value is None else f"{value:.4g}"


def align_grid(grid: Sequence[Sequence[str]]) -> list[str]:
    """One line per row, every cell as wide as the widest of its column.

    >>> align_grid([["k", "loss"], ["10", "0.5"]])
    ['k   loss', '10  0.5']
    """
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in grid]


def print_grid(legend: Sequence[str], grid: Sequence[Sequence[str]], remarks: Sequence[str]) -> str:
    """A legend, an aligned table and remarks, separated by empty lines.

    >>> print_grid(["legend"], [["k"], ["6"]], [])
    'legend\\n\\nk\\n6'
    """
    return "\n".join([*legend, "", *align_grid(grid), *([""] if remarks else []), *remarks])


@dataclass(frozen=True)
class Summary:
    """The summary of an object: a title, a table whose first row is its heading, and notes. Long ones are cut.

    Args:
        title: the first line.
        grid: rows of cells; the first row is the heading.
        notes: sentences below the table.
        rows: rows of the whole table, if `grid` has only the first ones.

    >>> print(Summary("2 methods", [["method", "loss"], ["knit", "0.25"]], notes=["loss: General Loss Metric"]).text())
    2 methods
    method  loss
    knit    0.25
    loss: General Loss Metric
    """

    title: str
    grid: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()
    rows: int | None = None

    def text(self) -> str:
        """Lines for a terminal."""
        return "\n".join([_short(self.title), *(align_grid(self._cells()) if self.grid else ()), *self._remarks()])

    def html(self) -> str:
        """A table for a notebook, without colours: it takes those of the page.

        >>> Summary("a < b", [["k"], ["6"]]).html()
        '<div><p><b>a &lt; b</b></p><table><tr><th>k</th></tr><tr><td>6</td></tr></table></div>'
        """
        heading, *rows = self._cells() or [[]]
        lines = [_line("th", heading), *(_line("td", row) for row in rows)]
        table = f"<table>{''.join(lines)}</table>" if self.grid else ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._remarks())
        return f"<div><p><b>{escape(_short(self.title))}</b></p>{table}{notes}</div>"

    def _cells(self) -> list[list[str]]:
        return [[_short(cell) for cell in row] for row in self.grid[: SHOWN_ROWS + 1]]

    def _remarks(self) -> list[str]:
        rows = len(self.grid) - 1 if self.rows is None else self.rows
        more = [f"... and {rows - SHOWN_ROWS:,} more"] if rows > SHOWN_ROWS else []
        left = [f"... and {len(self.notes) - MOST_NOTES:,} more notes"] if len(self.notes) > MOST_NOTES else []
        return [*more, *map(_short, self.notes[:MOST_NOTES]), *left]


class Summarized:
    """Base class of objects that Python and notebooks show by their summary."""

    def summary(self) -> Summary:
        """What is shown: short, and without a seed or a row of the table."""
        return Summary(type(self).__name__)

    def __repr__(self) -> str:
        return self.summary().text()

    def __str__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def _line(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _short(text: str) -> str:
    cut = text if len(text) <= MOST_SIGNS else text[: MOST_SIGNS - 3] + "..."
    return keep_printable(cut)

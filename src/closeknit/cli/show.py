"""Tables on the terminal: the same rows before and after, the loss of each column, methods compared."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table as Grid

from closeknit.core.columns import Columns
from closeknit.core.comparison import Comparison
from closeknit.core.frontier import Frontier
from closeknit.core.schema import Schema
from closeknit.release import Release
from closeknit.release.samples import SAMPLE, ClassSample, Rows, find_class

NARROWEST = 110  # a pipe has no width; the sample must still be readable
PRIVATE = "Computed from the original table: private, do not share."


class Page(Console):
    """A console that leaves a closed pipe to `handle_errors`."""

    def on_broken_pipe(self) -> None:
        """Replaces rich's exit with status 1, which means here that a guarantee is not met."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output, wide enough for the sample if it is not a terminal."""
    out = Page(highlight=False)
    return out if out.is_terminal else Page(highlight=False, width=NARROWEST)


def show_sample(out: Console, table: Columns, schema: Schema, release: Release) -> None:
    """Print some rows of one class, raw and published."""
    few = np.arange(min(SAMPLE, table.rows, release.columns.rows))
    found = find_class(table, schema, release, release.partition) or ClassSample(few, few, len(few))
    raw, written = found.raw, found.written
    out.print(_grid("Before: some patients", table, raw, list(table)))
    out.print(_grid("After: the same patients, in another order", release.columns, written, list(release.columns)))


def show_loss(out: Console, release: Release) -> None:
    """Print the General Loss Metric per column, as numbers and bars."""
    grid = Grid(title="Loss per column (0: unchanged, 1: all information lost)", title_justify="left", box=None)
    for name, justify in (("column", "left"), ("loss", "right"), ("", "left")):
        grid.add_column(name, justify=justify)  # type: ignore[arg-type]
    sign = "█" if out.encoding.startswith("utf") else "#"
    for name, (loss, _) in release.certificate.loss.columns.items():
        grid.add_row(name, f"{loss:.3f}", sign * round(30 * loss))
    out.print(grid)


def show_comparison(out: Console, comparison: Comparison) -> None:
    """Print a row for each method, what the columns mean, and why a method gave no release."""
    title = f"{comparison.rows:,} rows, least loss first"
    out.print(_numbers(title, comparison.grid(), [row.ok for row in comparison.methods]))
    lines = ["", *comparison.legend(), *comparison.refusals(), PRIVATE]
    out.print("\n".join(lines), markup=False, soft_wrap=True)


def show_frontier(out: Console, frontier: Frontier) -> None:
    """Print a row for each method and value, what the marks mean, and why a setting gave no release."""
    varied, *legend = frontier.legend()
    out.print(_numbers(f"{frontier.rows:,} rows, {varied}", frontier.grid(), [point.ok for point in frontier.points]))
    lines = ["", *legend, *frontier.remarks(), PRIVATE]
    out.print("\n".join(lines), markup=False, soft_wrap=True)


def _numbers(title: str, cells: list[list[str]], done: list[bool]) -> Grid:
    """A heading and rows of numbers; rows without a release are dim."""
    heading, *rows = cells
    grid = Grid(title=title.replace("[", r"\["), title_justify="left", box=None)
    for i, name in enumerate(heading):
        grid.add_column(name.replace("[", r"\["), justify="right" if i else "left", no_wrap=i > 0, overflow="fold")
    for ok, row in zip(done, rows, strict=True):
        grid.add_row(*(cell.replace("[", r"\[") for cell in row), style=None if ok else "dim")
    return grid


def _texts(columns: Columns, name: str) -> list[str]:
    return ["" if cell is None else str(cell) for cell in columns[name].cells()]


def _grid(title: str, columns: Columns, rows: Rows, names: list[str]) -> Grid:
    grid = Grid(title=title, title_justify="left")
    for name in names:
        grid.add_column(name, overflow="fold")
    few = columns.take(rows)
    for cells in zip(*(_texts(few, name) for name in names), strict=True):
        grid.add_row(*(cell.replace("[", r"\[") for cell in cells))
    return grid

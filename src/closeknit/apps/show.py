"""What is shown as a table: the same people before and after, what each column lost, how methods compare."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Grid

from closeknit.core.columns import Columns
from closeknit.core.comparison import Comparison
from closeknit.core.schema import Schema
from closeknit.release import Release

SAMPLE = 6
NARROWEST = 110  # a pipe has no width; the sample must still be readable
Rows = NDArray[np.int64]


class Page(Console):
    """A console that leaves a closed pipe to the one place that ends commands."""

    def on_broken_pipe(self) -> None:
        """Called where rich would end the process with status 1, which here means a broken promise."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output, wide enough for the sample where it is no terminal."""
    out = Page(highlight=False)
    return out if out.is_terminal else Page(highlight=False, width=NARROWEST)


def show_sample(out: Console, table: Columns, schema: Schema, release: Release) -> None:
    """Some rows of one class, raw and published."""
    raw, written = one_class(table, schema, release)
    out.print(_grid("Before: some patients", table, raw, list(table)))
    out.print(_grid("After: the same patients, in another order", release.columns, written, schema.published))


def show_loss(out: Console, release: Release) -> None:
    """General Loss Metric per column, as numbers and bars."""
    grid = Grid(title="Loss per column (0: as it was, 1: gone)", title_justify="left", box=None)
    for name, justify in (("column", "left"), ("loss", "right"), ("", "left")):
        grid.add_column(name, justify=justify)  # type: ignore[arg-type]
    sign = "█" if out.encoding.startswith("utf") else "#"
    for name, (loss, _) in release.certificate.loss.columns.items():
        grid.add_row(name, f"{loss:.3f}", sign * round(30 * loss))
    out.print(grid)


def show_comparison(out: Console, comparison: Comparison) -> None:
    """A row for each method, what the columns mean, and why a method made no release."""
    heading, *rows = comparison.grid()
    grid = Grid(title=f"{comparison.rows:,} rows, least loss first", title_justify="left", box=None)
    for i, name in enumerate(heading):
        grid.add_column(name, justify="right" if i else "left", no_wrap=i > 0, overflow="fold")
    for row, cells in zip(comparison.methods, rows, strict=True):
        grid.add_row(*(cell.replace("[", r"\[") for cell in cells), style=None if row.ok else "dim")
    out.print(grid)
    lines = ["", *comparison.legend(), *comparison.refusals(), "Made from the original table: this comparison stays at home."]
    out.print("\n".join(lines), markup=False, soft_wrap=True)


def one_class(table: Columns, schema: Schema, release: Release) -> tuple[Rows, Rows]:
    """Rows of one class in the table, and where the same people stand in the release.

    A release does not say who is who; here the table and the classes are at hand, so the secrets of a whole class tell it.
    """
    released = _groups(release.columns, list(schema.quasi))
    secrets_of = {name: (_texts(table, name), _texts(release.columns, name)) for name in schema.sensitive}
    sizes = Counter(release.partition[release.partition >= 0].tolist())
    for label, _ in sorted(sizes.items(), key=lambda item: (item[1], item[0])):
        members = np.flatnonzero(release.partition == label)
        group = _same_secrets(members, released, list(secrets_of.values()))
        if group is not None:
            return _matched(members, group, list(secrets_of.values()))
    first = np.arange(min(SAMPLE, table.rows, release.columns.rows))
    return first, first


def _groups(columns: Columns, quasi: list[str]) -> list[Rows]:
    """Rows of equal written cells."""
    codes = np.stack([columns[name].codes for name in quasi], axis=1)
    _, group = np.unique(codes, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    return np.split(order, np.cumsum(np.bincount(group.ravel()))[:-1])


Secrets = list[tuple[list[str], list[str]]]  # per sensitive column: its cells in the table and in the release


def _same_secrets(members: Rows, groups: list[Rows], secrets: Secrets) -> Rows | None:
    wanted = sorted(_secret(secrets, 0, row) for row in members)
    for group in groups:
        if len(group) == len(members) and sorted(_secret(secrets, 1, row) for row in group) == wanted:
            return group
    return None


def _matched(members: Rows, group: Rows, secrets: Secrets) -> tuple[Rows, Rows]:
    """A few members spread over the class, and their published rows in the order of the release."""
    by_secret = members[sorted(range(len(members)), key=lambda i: _secret(secrets, 0, int(members[i])))]
    published = group[sorted(range(len(group)), key=lambda i: _secret(secrets, 1, int(group[i])))]
    chosen = np.unique(np.linspace(0, len(members) - 1, SAMPLE).round().astype(int))
    return np.sort(by_secret[chosen]), np.sort(published[chosen])


def _secret(secrets: Secrets, side: int, row: int) -> tuple[str, ...]:
    return tuple(cells[side][row] for cells in secrets)


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

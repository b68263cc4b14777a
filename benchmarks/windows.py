"""SABRE in windows on SAL (the thesis on SABRE and BUREL, ch. 6, figures 6.4 to 6.7): loss and time beside two rivals."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import closeknit as ck
import pictures
import tables
from arrivals import Outlet
from closeknit.core.columns import Columns
from closeknit.core.method import Method
from closeknit.doors.files import read
from incognito import HEIGHT, with_trees
from mondrian import BOOK
from pictures import Panel
from sections import Section

K, T, OMEGA, ADVANCE, SEED = 6, 0.35, 20_000, 5_000, 2**100 + 3
STREAM = 100_000
ADVANCES, OMEGAS = (2_500, 5_000, 10_000, 20_000), (10_000, 20_000, 30_000, 40_000)
TS, QUASI = (0.15, 0.25, 0.35, 0.45, 0.55), (3, 4, 5, 6, 7)
SABRE, KNN, ALL_STEPS = "SABRE_W", "SABRE_W, knn", "SABRE_W, with slack and polish"
MONDRIAN, TEXTBOOK, INCOGNITO = "tMondrian", "tMondrian, textbook", "tIncognito"
METHODS: dict[str, Method] = {
    SABRE: ck.Sabre(polish=False, slack=False),  # as `SabreWindow` has it
    KNN: ck.Sabre("knn", polish=False, slack=False),
    ALL_STEPS: ck.Sabre(),
    MONDRIAN: ck.Mondrian(),
    TEXTBOOK: BOOK,
    INCOGNITO: ck.Incognito(),
}
FEWER = (SABRE, MONDRIAN, INCOGNITO)
Lines = dict[str, dict[float, Outlet]]


@dataclass(frozen=True)
class Rows:
    """Rows of SAL as they come, for methods with and without trees of numbers; `scale` shrinks windows in a trial."""

    columns: Columns
    schema: ck.Schema
    trees: ck.Schema
    scale: float

    def window(self, usual: int) -> int:
        """In whole steps of the shortest advance, so that every omega is a multiple of every advance."""
        return usual // ADVANCES[0] * max(2, round(ADVANCES[0] * self.scale))


def run(section: Section, rows: int | None) -> None:
    """All figures, as tables and as pictures."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        source = tables.sal(place, rows)
        kept = pictures.FOLDER if rows is None else place
        columns = read(source.path)
        columns = columns.take(np.arange(min(STREAM, columns.rows)))
        sal = Rows(columns, source.schema, with_trees(source).schema, min(1.0, columns.rows / STREAM))
    section.say(
        f"{source.remark} Its first {columns.rows:,} rows come as they stand. Unless varied: {len(source.schema.quasi)} quasi "
        f"columns, k = {K}, t = {T}, omega = {sal.window(OMEGA):,}, advance = {sal.window(ADVANCE):,}. Any static method may "
        f"serve a window; SABRE_W is `SabreWindow`. tIncognito has balanced trees of height {HEIGHT} for age and "
        "education. Every class was judged against its window before it left. Loss A; seconds from the first row to the end, "
        "without reading the file."
    )
    for name in METHODS:
        _left(
            name, Rows(columns.take(np.arange(min(2_000, columns.rows))), sal.schema, sal.trees, 0.01), T
        )  # loads what is compiled
    every = list(sal.schema.quasi)
    figures: dict[str, tuple[str, Sequence[float], Callable[[str, float], Outlet], Sequence[str]]] = {
        "advance": ("6.4", ADVANCES, lambda name, x: _left(name, sal, advance=int(x)), FEWER),
        "omega": ("6.5", OMEGAS, lambda name, x: _left(name, sal, omega=int(x)), FEWER),
        "t": ("6.6", TS, lambda name, x: _left(name, sal, t=x), list(METHODS)),
        "quasi": ("6.7", QUASI, lambda name, x: _left(name, sal, quasi=every[: int(x)]), FEWER),
    }
    panels = []
    for asked, (figure, places, made, names) in figures.items():
        lines = {name: {x: made(name, x) for x in places} for name in names}
        _table(section, f"Over {asked} (figure {figure}).", asked, lines)
        section.say(_verdict(lines) if asked == "t" else None)
        panels.append(Panel(asked, "loss A", _values(lines, "loss")))
        panels.append(Panel(asked, "seconds (logarithmic)", _values(lines, "seconds"), log=True))
    title = "SAL in windows (figures 6.4 to 6.7)"
    pictures.draw(kept / "windows.png", title, panels)
    section.say(f"![{title}](pictures/windows.png)" if rows is None else "No picture is kept of a trial.")


def _left(name: str, rows: Rows, t: float = T, omega: int = OMEGA, advance: int = ADVANCE,
          quasi: Sequence[str] | None = None) -> Outlet:  # fmt: skip
    """One run."""
    whole = rows.trees if name == INCOGNITO else rows.schema
    kinds = {column: whole.quasi[column] for column in quasi or whole.quasi}
    schema = ck.Schema(quasi=kinds, sensitive=whole.sensitive)
    (secret,) = schema.sensitive
    size = {"omega": rows.window(omega), "advance": rows.window(advance), "seed": SEED}
    stream = ck.Windowed(METHODS[name], schema, [ck.TCloseness(secret, t), ck.KAnonymity(K)], **size)
    return Outlet.of(stream, Columns({column: rows.columns[column] for column in schema.used}, rows.columns.rows))


def _table(section: Section, said: str, asked: str, lines: Lines) -> None:
    section.say(said)
    places = sorted({x for line in lines.values() for x in line})
    shown = [[name, *(_cell(line[x]) for x in places)] for name, line in lines.items()]
    section.table(["loss A / suppressed / seconds", *(f"{asked} = {x:,g}" for x in places)], shown)


def _verdict(lines: Lines) -> str:
    """The thesis's finding beside ours."""
    found = []
    for one, other in ((SABRE, TEXTBOOK), (KNN, TEXTBOOK), (SABRE, MONDRIAN), (ALL_STEPS, MONDRIAN), (SABRE, INCOGNITO)):
        shares = [lines[one][x].loss / lines[other][x].loss for x in lines[one]]
        found.append(f"{one} beside {other} {min(shares):.2f}..{max(shares):.2f}")
    said = "The thesis finds that SABRE_W loses least, by a wide margin. Here, loss of one over that of the other"
    return f"{said}: {'; '.join(found)}."


def _cell(left: Outlet) -> str:
    return f"{left.loss:.4f} / {left.suppressed:,} / {left.seconds:.1f}"


def _values(lines: Mapping[str, Mapping[float, Outlet]], what: str) -> dict[str, dict[float, float]]:
    return {name: {x: getattr(left, what) for x, left in line.items()} for name, line in lines.items()}

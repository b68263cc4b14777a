"""SABRE in windows on SAL (the thesis on SABRE and BUREL, ch. 6, figures 6.4 to 6.7): loss and time of three methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

import closeknit as ck
import tables
from closeknit.core.columns import Columns
from closeknit.core.method import Method
from closeknit.io.files import read
from experiments.arrivals import Outlet
from experiments.figures import Claim, Experiment, Figure, Trial
from experiments.thesis_claims import Drawn, ahead, moves
from incognito import HEIGHT, with_trees
from mondrian import BOOK
from pictures import Panel

K, T, OMEGA, ADVANCE, SEED = 6, 0.35, 20_000, 5_000, 2**100 + 3
SMALL, FIRST, STREAM = 600, 2_000, 100_000  # windows shrink where fewer rows than the last come
ADVANCES, OMEGAS = (2_500, 5_000, 10_000, 20_000), (10_000, 20_000, 30_000, 40_000)
TS, QUASI = (0.15, 0.25, 0.35, 0.45, 0.55), (3, 4, 5, 6, 7)
SABRE, KNN, ALL_STEPS = "SABRE_W", "SABRE_W, knn", "SABRE_W, with slack and polish"
MONDRIAN, TEXTBOOK, INCOGNITO = "tMondrian", "tMondrian, textbook", "tIncognito"
METHODS: dict[str, Method] = {
    SABRE: ck.Sabre(polish=False, slack=False),  # as `SabreWindow` has it
    KNN: ck.Sabre("knn", polish=False, slack=False),
    MONDRIAN: ck.Mondrian(),
    TEXTBOOK: BOOK,
    INCOGNITO: ck.Incognito(),
    ALL_STEPS: ck.Sabre(),
}
FEWER = tuple(name for name in METHODS if name != ALL_STEPS)
Lines = dict[str, dict[float, Outlet]]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of SAL as they come, for methods with and without trees of numbers; `scale` shrinks windows in a quick run."""

    columns: Columns
    schema: ck.Schema
    trees: ck.Schema
    scale: float
    remark: str = ""

    def window(self, usual: int) -> int:
        """In whole steps of the shortest advance, so that every omega is a multiple of every advance."""
        return usual // ADVANCES[0] * max(2, round(ADVANCES[0] * self.scale))

    def first(self, rows: int) -> Rows:
        """Few of them, in windows as small."""
        taken = self.columns.take(np.arange(min(rows, self.columns.rows)))
        return Rows(taken, self.schema, self.trees, self.scale * taken.rows / self.columns.rows)


@cache
def sal(trial: Trial) -> Rows:
    """All rows, as the source has them come; what is compiled is loaded first, or the first method would pay for it."""
    source = tables.sal(trial.place, trial.rows(SMALL))
    columns = read(source.path)
    rows = Rows(columns, source.schema, with_trees(source).schema, min(1.0, columns.rows / STREAM), source.remark)
    for name in () if trial.quick else METHODS:
        left(name, rows.first(FIRST))
    return rows


def left(name: str, rows: Rows, t: float = T, omega: int = OMEGA, advance: int = ADVANCE, quasi: int | None = None) -> Outlet:
    """What one method lets out; every class was judged against its window."""
    whole = rows.trees if name == INCOGNITO else rows.schema
    schema = ck.Schema(quasi={c: whole.quasi[c] for c in list(whole.quasi)[:quasi]}, sensitive=whole.sensitive)
    (secret,) = schema.sensitive
    size = {"omega": rows.window(omega), "advance": rows.window(advance), "seed": SEED}
    stream = ck.Windowed(METHODS[name], schema, [ck.TCloseness(secret, t), ck.KAnonymity(K)], **size)
    return Outlet.of(stream, Columns({column: rows.columns[column] for column in schema.used}, rows.columns.rows))


def over_advance(trial: Trial) -> Figure:
    """Figure 6.4."""
    rows, places = sal(trial), trial.some(ADVANCES, ADVANCES[1::2])
    lines = _over(places, lambda name, x: left(name, rows, advance=int(x)))
    claims = [*_rivals(lines), _falls(lines, "the time falls as the advance grows")]
    return _figure("6.4", "the advance", rows, claims, "advance", lines)


def over_omega(trial: Trial) -> Figure:
    """Figure 6.5."""
    rows, places = sal(trial), trial.some(OMEGAS, OMEGAS[1::2])
    lines = _over(places, lambda name, x: left(name, rows, omega=int(x)))
    losses, seconds = _values(lines, "loss"), _values(lines, "seconds")
    claims = [
        *_rivals(lines),
        moves(losses, (SABRE, TEXTBOOK, MONDRIAN), "the loss falls as omega grows", grows=False),
        moves(seconds, (SABRE, MONDRIAN), "the time grows with omega", grows=True, slack=0.1),
    ]
    return _figure("6.5", "omega", rows, claims, "omega", lines)


def over_t(trial: Trial) -> Figure:
    """Figure 6.6."""
    rows, places = sal(trial), trial.some(TS, TS[2::2])
    lines = _over(places, lambda name, x: left(name, rows, t=x))
    lines[ALL_STEPS] = {t: left(ALL_STEPS, rows, t=t) for t in places[::2]}  # they take long
    falls = moves(_values(lines, "loss"), (SABRE, TEXTBOOK, MONDRIAN, INCOGNITO), "the loss falls as t grows", grows=False)
    return _figure("6.6", "t", rows, [*_rivals(lines), falls], "t", lines)


def over_quasi(trial: Trial) -> Figure:
    """Figure 6.7."""
    rows, places = sal(trial), trial.some(QUASI, QUASI[::4])
    lines = _over(places, lambda name, x: left(name, rows, quasi=int(x)))
    losses, seconds = _values(lines, "loss"), _values(lines, "seconds")
    claims = [
        *_rivals(lines),
        moves(losses, (SABRE, TEXTBOOK, MONDRIAN, INCOGNITO), "the loss grows with the number of columns", grows=True),
        _steepest(seconds),
    ]
    return _figure("6.7", "the number of quasi-identifiers", rows, claims, "quasi-identifiers", lines)


# What the figures share ----------------------------------------------------------------------------------------------------


def _over(places: Sequence[float], make: Callable[[str, float], Outlet]) -> Lines:
    return {name: {x: make(name, x) for x in places} for name in FEWER}


def _figure(number: str, over: str, rows: Rows, claims: Sequence[Claim], x: str, lines: Lines) -> Figure:
    panels = [
        Panel(x, "loss A", _values(lines, "loss")),
        Panel(x, "seconds (logarithmic)", _values(lines, "seconds"), log=True),
    ]
    suppressed = sum(outlet.suppressed for line in lines.values() for outlet in line.values())
    settings = (
        f"{rows.remark} All {rows.columns.rows:,} rows arrive in the order of the file. Unless varied: "
        f"{len(rows.schema.quasi)} quasi-identifiers, k = {K}, t = {T}, omega = {rows.window(OMEGA):,}, advance = "
        f"{rows.window(ADVANCE):,}. SABRE_W is "
        "`SabreWindow`, along a curve as in the source; knn fills with nearest neighbours. Any static method may "
        "serve a window: tMondrian is the default, textbook as for figure 3.7, tIncognito has balanced trees of height "
        f"{HEIGHT} for age and education. Loss A; {suppressed:,} rows suppressed in all; seconds from the first row to the "
        "end, without reading the file."
    )
    return Figure(f"SABRE in windows, over {over} (figure {number})", settings, claims, panels)


def _rivals(lines: Lines) -> list[Claim]:
    """The source's ranking of three, with the textbook's Mondrian and with ours."""
    losses, seconds = _values(lines, "loss"), _values(lines, "seconds")
    slow = "tIncognito takes a hundred times as long as SABRE_W and tMondrian"
    return [
        ahead(losses, [(SABRE, TEXTBOOK), (SABRE, INCOGNITO)], "SABRE_W loses least (loss of one over that of the other)"),
        ahead(losses, [(SABRE, MONDRIAN), (KNN, MONDRIAN)], "the same, compared with our Mondrian too"),
        ahead(losses, [(TEXTBOOK, INCOGNITO), (MONDRIAN, INCOGNITO)], "tMondrian comes second, tIncognito last"),
        ahead(seconds, [(SABRE, TEXTBOOK), (SABRE, MONDRIAN)], "SABRE_W is the fastest"),
        ahead(seconds, [(SABRE, INCOGNITO), (MONDRIAN, INCOGNITO)], slow, factor=0.03),
    ]


def _falls(lines: Lines, claim: str) -> Claim:
    return moves(_values(lines, "seconds"), (SABRE, MONDRIAN, INCOGNITO), claim, grows=False, slack=0.1)


def _steepest(seconds: Drawn) -> Claim:
    times = {name: line[max(line)] / line[min(line)] for name, line in seconds.items()}
    said = "from the fewest columns to the most " + "; ".join(f"{name} {x:.1f} times" for name, x in times.items())
    return Claim(
        "the time grows with the columns, that of tIncognito most", max(times, key=times.__getitem__) == INCOGNITO, said
    )


def _values(lines: Mapping[str, Mapping[float, Outlet]], what: str) -> dict[str, dict[float, float]]:
    return {name: {x: getattr(outlet, what) for x, outlet in line.items()} for name, line in lines.items()}


EXPERIMENTS: dict[str, Experiment] = {"6.4": over_advance, "6.5": over_omega, "6.6": over_t, "6.7": over_quasi}

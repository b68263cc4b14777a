"""SAL as the thesis's chapters 3 and 4 use it: samples, quasi-identifiers, rival methods, and every release made but once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import polars as pl

import burel
import closeknit as ck
import sabre
import tables
from closeknit.core.columns import Column, Columns
from closeknit.core.kinds import Numeric
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.core.reading import Reading
from closeknit.forms.release_reading import reading_of
from experiments.figures import Trial
from incognito import HEIGHT, with_trees
from mondrian import BOOK
from trials import Made, part, timed

SAMPLE, SMALL, SIZES = 100_000, 1_000, (100_000, 200_000, 300_000, 400_000, 500_000)
K, T, BETA = 6, 0.35, 4
KS, TS, QUASI, BETAS = (6, 12, 18, 24), (0.15, 0.25, 0.35, 0.45, 0.55), (3, 4, 5, 6, 7), (1, 2, 3, 4, 5)
FIVE = burel.QUASI["five"]

KNN, KNN_CUTS, SABRE, SABRE_KNN = "SABRE-KNN, as printed", "SABRE-KNN, as printed + cuts", "SABRE", "SABRE, knn"
T_BOOK, T_MONDRIAN, INCOGNITO = "tMondrian, textbook", "tMondrian", "tIncognito"
BUREL, CUTS, DEFAULT = "BUREL, as printed", "BUREL, as printed + cuts", "BUREL"
L_BOOK, L_MONDRIAN, D_BOOK, D_MONDRIAN = "LMondrian, textbook", "LMondrian", "DMondrian, textbook", "DMondrian"
METHODS: dict[str, Method] = {
    KNN: sabre.Bare("knn", "printed"),
    KNN_CUTS: ck.Sabre("knn", polish=False, bound="printed", slack=False),
    SABRE: ck.Sabre(),
    SABRE_KNN: ck.Sabre("knn"),
    T_BOOK: BOOK,
    T_MONDRIAN: ck.Mondrian(),
    INCOGNITO: ck.Incognito(),
    BUREL: burel.Bare(),
    CUTS: ck.Burel(polish=False, slack=False),
    DEFAULT: ck.Burel(),
    L_BOOK: BOOK,
    L_MONDRIAN: ck.Mondrian(),
    D_BOOK: BOOK,
    D_MONDRIAN: ck.Mondrian(),
}
CLOSE = (KNN, KNN_CUTS, SABRE, SABRE_KNN, T_BOOK, T_MONDRIAN, INCOGNITO)
LIKE = (BUREL, CUTS, DEFAULT, L_BOOK, L_MONDRIAN, D_BOOK, D_MONDRIAN)
ABOUT_CLOSE = (
    "Names: as printed, one plan with the bounds of the source, filled by nearest neighbours, and nothing else; cuts, classes "
    "are cut further where the actual rows meet every guarantee; textbook, relaxed, median, the widest column first; no more, "
    f"the default (SABRE with the hilbert fill). tIncognito has balanced trees of height {HEIGHT} for age and education, which "
    "no tool ships."
)
ABOUT_LIKE = (
    "Names: as printed, one plan, the hilbert fill, and nothing else; cuts, textbook and no addition as for figure 3.7. "
    "LMondrian: Mondrian under beta-likeness. DMondrian: under delta-disclosure with the largest delta that implies it, "
    "ln(1 + min(beta, -ln p)), p being the share of the most frequent salary."
)
Lines = dict[str, dict[float, Made]]
Curves = dict[str, dict[float, float]]


@dataclass(frozen=True, eq=False)
class Sal:
    """SAL, or in a quick run a small generated stand-in, as files with some of its rows and quasi-identifiers."""

    whole: tables.Source
    place: Path

    def part(self, rows: int | None = None, quasi: Sequence[str] | None = None) -> tables.Source:
        """Rows drawn at random, as far as there are so many (None: all); the named quasi-identifiers."""
        return _part(self, None if rows is None or rows >= self.whole.rows else rows, tuple(quasi or self.whole.schema.quasi))

    @property
    def names(self) -> tuple[str, ...]:
        """The quasi-identifiers in their order."""
        return tuple(self.whole.schema.quasi)

    @property
    def secret(self) -> str:
        return self.whole.secret

    @property
    def sizes(self) -> list[int]:
        """Numbers of rows that are varied."""
        return [size for size in SIZES if size <= self.whole.rows] or [self.whole.rows // 2, self.whole.rows]


@cache
def sal(trial: Trial) -> Sal:
    """Unpacked once a run; in a full one every method is used on few rows first, or its first run would pay for compiling."""
    table = Sal(tables.sal(trial.place, trial.rows(SMALL)), trial.place)
    if not trial.quick:
        few = table.part(2_000, table.names[:5])
        for name in CLOSE:
            made(name, few, closely(table.secret, K, T))
        for name in LIKE:
            made(name, few, likely(name, few, BETA))
    return table


@cache
def _part(table: Sal, rows: int | None, quasi: tuple[str, ...]) -> tables.Source:
    names = "-".join([str(rows or "all"), *(str(table.names.index(name)) for name in quasi)])
    return part(table.whole, table.place / f"sal-{names}.csv", rows, quasi)


def closely(secret: str, k: int, t: float) -> tuple[Model, ...]:
    """What chapter 3 guarantees."""
    return ck.KAnonymity(k), ck.TCloseness(secret, t)


def likely(name: str, source: tables.Source, beta: float, eps: int | None = None) -> tuple[Model, ...]:
    """What chapter 4 guarantees; where delta-disclosure is asked too, it vetoes all that beta-likeness would."""
    kind = "enhanced" if eps is None else "range"
    like = ck.BetaLikeness(source.secret, beta, kind=kind, eps=eps)
    return (ck.DeltaDisclosure(source.secret, implying(source, beta)), like) if name in (D_BOOK, D_MONDRIAN) else (like,)


def implying(source: tables.Source, beta: float) -> float:
    """The largest delta whose disclosure limit implies enhanced beta-likeness."""
    secrets = pl.read_csv(source.path, columns=[source.secret])[source.secret]
    share = secrets.value_counts()["count"].max() / len(secrets)
    return math.log(1 + min(beta, -math.log(share)))


@dataclass(frozen=True)
class Request:
    """A method, a table and what is guaranteed; a file stands for its table."""

    name: str
    path: Path
    models: tuple[Model, ...]
    source: tables.Source = field(compare=False)


def released(name: str, source: tables.Source, models: tuple[Model, ...]) -> tuple[ck.Release, float]:
    """One release and its seconds."""
    return _released(Request(name, source.path, models, source))


@lru_cache(maxsize=120)
def _released(requested: Request) -> tuple[ck.Release, float]:
    """Incognito needs trees."""
    return timed(
        METHODS[requested.name],
        with_trees(requested.source) if requested.name == INCOGNITO else requested.source,
        requested.models,
    )


def made(name: str, source: tables.Source, models: tuple[Model, ...]) -> Made:
    """What it loses, reaches (of the last guarantee) and takes."""
    return Made.of(*released(name, source, models))


def level(release: ck.Release, model: Model) -> float:
    """What a release reaches of a guarantee that was not asked for."""
    return float(model.levels(reading_of(release).classes).max())


def read_as(source: tables.Source, name: str, release: ck.Release) -> Reading:
    """As an analyst reads it; nodes of the trees that Incognito has for numbers are ranges of numbers to him."""
    if name != INCOGNITO:
        return reading_of(release)
    cells = dict(release.columns.items())
    for column, kind in source.schema.quasi.items():
        if isinstance(kind, Numeric):
            written = [re.sub(r"^(.+)\.\.(.+)$", r"[\1, \2]", str(cell)) for cell in cells[column].values]
            cells[column] = Column(np.array(written, dtype=object), cells[column].codes)
    return ck.generalized().read(Columns(cells, release.columns.rows), source.schema)


# Lines and sentences -------------------------------------------------------------------------------------------------------


def over(names: Iterable[str], places: Iterable[float], make: Callable[[str, float], Made]) -> Lines:
    """Every method at every place of an axis."""
    places = list(places)
    return {name: {x: make(name, x) for x in places} for name in names}


def curves(lines: Mapping[str, Mapping[float, Made]], what: str = "loss") -> Curves:
    """One measure of every run."""
    return {name: {x: getattr(made, what) for x, made in line.items()} for name, line in lines.items()}

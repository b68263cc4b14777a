"""The comparisons of the thesis on SABRE and BUREL on SAL, with its settings: ch. 3 (t-closeness) and ch. 4 (beta-likeness).

Figures 3.7 to 3.11 and 4.5 to 4.7; SABRE with the knn fill only over t, and three values of k: more would take long.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

import burel
import closeknit as ck
import pictures
import sabre
import tables
from closeknit.core.method import Method
from closeknit.core.model import Model
from incognito import HEIGHT, with_trees
from mondrian import BOOK
from pictures import Panel
from sections import Section
from trials import Grid, Made, part

SAMPLE, SIZES = 100_000, (100_000, 200_000, 300_000, 400_000, 500_000)
K, T, KS, TS, QUASI = 6, 0.35, (6, 12, 24), (0.15, 0.25, 0.35, 0.45, 0.55), (3, 4, 5, 6, 7)
BETA, BETAS, FIVE = 4, (1, 2, 3, 4, 5), burel.QUASI["five"]

KNN, KNN_CUTS, SABRE, SABRE_KNN = "SABRE-KNN, as printed", "SABRE-KNN, as printed + cuts", "SABRE", "SABRE, knn"
T_BOOK, T_MONDRIAN, INCOGNITO = "tMondrian, textbook", "tMondrian", "tIncognito"
CLOSE: dict[str, Method] = {
    KNN: sabre.Bare("knn", "printed"),
    KNN_CUTS: ck.Sabre("knn", polish=False, bound="printed", slack=False),
    SABRE: ck.Sabre(),
    SABRE_KNN: ck.Sabre("knn"),
    T_BOOK: BOOK,
    T_MONDRIAN: ck.Mondrian(),
    INCOGNITO: ck.Incognito(),
}
BUREL, CUTS, DEFAULT = "BUREL, as printed", "BUREL, as printed + cuts", "BUREL"
L_BOOK, L_MONDRIAN, D_BOOK, D_MONDRIAN = "LMondrian, textbook", "LMondrian", "DMondrian, textbook", "DMondrian"
LIKE: dict[str, Method] = {
    BUREL: burel.Bare(),
    CUTS: ck.Burel(polish=False, slack=False),
    DEFAULT: ck.Burel(),
    L_BOOK: BOOK,
    L_MONDRIAN: ck.Mondrian(),
    D_BOOK: BOOK,
    D_MONDRIAN: ck.Mondrian(),
}
ABOUT_3 = (
    f"**Chapter 3, t-closeness.** Unless varied: {{rows:,}} rows drawn at random, all seven quasi columns, k = {K}, t = {T}. "
    "As printed: one plan with the thesis's bounds, filled by nearest neighbours, and nothing else. Cuts: classes are cut "
    "further where the actual rows keep every promise. Textbook: relaxed, median, the widest column first. No addition: the "
    f"default (SABRE with the hilbert fill). tIncognito has balanced trees of height {HEIGHT} for age and education, as in the "
    "section on Incognito; a node of a tree loses its leaves over all leaves, a range of numbers its length over that of all, "
    "which is a little less."
)
ABOUT_4 = (
    f"**Chapter 4, enhanced beta-likeness.** Unless varied: {{rows:,}} rows, quasi {', '.join(FIVE[:3])}, beta = {BETA}, no k. "
    "As printed: one plan, the hilbert fill, and nothing else. LMondrian: Mondrian under beta-likeness. DMondrian: under "
    "delta-disclosure with the largest delta that implies it, ln(1 + min(beta, -ln p)), p being the share of the most frequent "
    "salary."
)
WHY_4 = (
    "BUREL's plan has to hold whatever rows a class gets, so a class takes its share of every bucket, from wherever it is; "
    "Mondrian asks only whether the rows that are there keep the promise."
)
ABOUT_HALF = 0.6
Make = Callable[[str, tables.Source, float], Made]


def run(section: Section, rows: int | None) -> None:
    """Both chapters, as tables and as pictures."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        whole = tables.sal(place, rows)
        section.say(f"{whole.remark} Losses, t and beta are measured on the written cells; every certificate holds.")
        kept = pictures.FOLDER if rows is None else place
        _chapter_3(section, whole, place, kept)
        _chapter_4(section, whole, place, kept)


# Chapter 3 ---------------------------------------------------------------------------------------------------------------


def _chapter_3(section: Section, whole: tables.Source, place: Path, kept: Path) -> None:
    one = part(whole, place / "sample.csv", SAMPLE)
    names = list(whole.schema.quasi)
    section.say(ABOUT_3.format(rows=one.rows))
    for name in CLOSE:
        close(name, part(whole, place / "warm.csv", 2_000), K, T)
    fewer = [name for name in CLOSE if name != SABRE_KNN]
    over_t = _grid("t", CLOSE, dict.fromkeys(TS, one), lambda name, source, t: close(name, source, K, t))
    usual = {name: line[T] for name, line in over_t.lines.items()}
    by_quasi = {n: part(whole, place / f"quasi{n}.csv", SAMPLE, names[:n]) for n in QUASI[:-1]}
    over_quasi = _grid("quasi", fewer, by_quasi, lambda name, source, _: close(name, source, K, T), {QUASI[-1]: usual})
    over_rows = _grid("rows", fewer, _sizes(whole, place), lambda name, source, _: close(name, source, K, T), {one.rows: usual})
    over_k = _grid(
        "k", fewer[1:], dict.fromkeys(KS[1:], one), lambda name, source, k: close(name, source, int(k), T), {K: usual}
    )
    _table(section, "Over t (figures 3.7, 3.10).", over_t, "t")
    _table(section, f"Over the number of quasi columns: the first of {', '.join(names)} (figures 3.8, 3.10).", over_quasi, "t")
    _table(section, "Over the number of rows (figure 3.9).", over_rows, "t")
    _table(section, "Over k (figure 3.11); of SABRE as printed only the one with cuts.", over_k, "t")
    panels = [
        Panel(grid.asked, "loss A (logarithmic)", _losses(grid), log=True) for grid in (over_t, over_quasi, over_rows, over_k)
    ]
    _picture(section, kept / "thesis-t-loss.png", "SAL under t-closeness: loss", panels)
    panels = [Panel(grid.asked, "t reached", _reached(grid)) for grid in (over_t, over_quasi)]
    _picture(section, kept / "thesis-t-reached.png", "SAL under t-closeness: what is reached", panels)
    pairs = [(KNN, T_BOOK), (KNN_CUTS, T_BOOK), (SABRE_KNN, T_MONDRIAN), (SABRE, T_MONDRIAN)]
    section.say(_verdict("SABRE-KNN loses less than tMondrian at every t", over_t, pairs, below=1.0))
    section.say(
        f"Of the t that was asked for, SABRE-KNN as printed uses up {over_t.used(KNN):.0%}, "
        f"with cuts {over_t.used(KNN_CUTS):.0%}, the textbook's tMondrian {over_t.used(T_BOOK):.0%}."
    )


def close(name: str, source: tables.Source, k: int, t: float) -> Made:
    """One run under k-anonymity and t-closeness; Incognito needs trees."""
    taken = with_trees(source) if name == INCOGNITO else source
    return Made.by(CLOSE[name], taken, [ck.KAnonymity(k), ck.TCloseness(source.secret, t)])


# Chapter 4 ---------------------------------------------------------------------------------------------------------------


def _chapter_4(section: Section, whole: tables.Source, place: Path, kept: Path) -> None:
    three = part(whole, place / "three.csv", quasi=FIVE[:3])
    section.say(ABOUT_4.format(rows=three.rows))
    for name in LIKE:
        like(name, part(whole, place / "warm.csv", 2_000, FIVE), BETA)
    over_beta = _grid("beta", LIKE, dict.fromkeys(BETAS, three), like)
    usual = {name: line[BETA] for name, line in over_beta.lines.items()}
    by_quasi = {n: part(whole, place / f"likes{n}.csv", quasi=FIVE[:n]) for n in (1, 2, 4, 5)}
    over_quasi = _grid("quasi", LIKE, by_quasi, lambda name, source, _: like(name, source, BETA), {3: usual})
    by_rows = _sizes(whole, place, FIVE[:3])
    over_rows = _grid("rows", LIKE, by_rows, lambda name, source, _: like(name, source, BETA), {three.rows: usual})
    _table(section, "Over beta (figure 4.5).", over_beta, "beta")
    _table(section, f"Over the number of quasi columns: the first of {', '.join(FIVE)} (figure 4.6).", over_quasi, "beta")
    _table(section, "Over the number of rows (figure 4.7).", over_rows, "beta")
    panels = [Panel(grid.asked, "loss A (logarithmic)", _losses(grid), log=True) for grid in (over_beta, over_quasi, over_rows)]
    _picture(section, kept / "thesis-beta-loss.png", "SAL under beta-likeness: loss", panels)
    pairs = [(BUREL, L_BOOK), (DEFAULT, L_MONDRIAN), (BUREL, D_BOOK), (DEFAULT, D_MONDRIAN)]
    section.say(_verdict("BUREL loses about half of what LMondrian loses", over_beta, pairs, below=ABOUT_HALF))
    section.say(WHY_4)


def like(name: str, source: tables.Source, beta: float) -> Made:
    """One run under beta-likeness; where delta-disclosure is asked too, it vetoes all that beta-likeness would."""
    models: list[Model] = [ck.BetaLikeness(source.secret, beta)]
    if name in (D_BOOK, D_MONDRIAN):
        models.insert(0, ck.DeltaDisclosure(source.secret, implying(source, beta)))
    return Made.by(LIKE[name], source, models)


def implying(source: tables.Source, beta: float) -> float:
    """The largest delta whose disclosure limit implies enhanced beta-likeness."""
    secrets = pl.read_csv(source.path, columns=[source.secret])[source.secret]
    share = secrets.value_counts()["count"].max() / len(secrets)
    return math.log(1 + min(beta, -math.log(share)))


# Tables, pictures, verdicts ------------------------------------------------------------------------------------------------


def _grid(
    asked: str, names: Sequence[str] | Mapping[str, Method], sources: Mapping[float, tables.Source], make: Make,
    known: Mapping[float, Mapping[str, Made]] | None = None,
) -> Grid:  # fmt: skip
    """Every name at every x; `known` are runs that another grid has made."""
    grid = Grid(asked)
    for name in names:
        made = {x: line[name] for x, line in (known or {}).items()}
        made |= {x: make(name, source, x) for x, source in sources.items() if x not in made}
        for x in sorted(made):
            grid.add(name, x, made[x])
    return grid


def _sizes(whole: tables.Source, place: Path, quasi: Sequence[str] | None = None) -> dict[float, tables.Source]:
    """Samples of several sizes, as far as there are rows."""
    return {size: part(whole, place / f"rows{size}.csv", size, quasi) for size in SIZES if size <= whole.rows}


def _table(section: Section, said: str, grid: Grid, threshold: str) -> None:
    section.say(said)
    places = sorted({x for line in grid.lines.values() for x in line})
    lines = [
        [name, *(f"{line[x].loss:.4f} / {line[x].reached:.3f} / {line[x].seconds:.1f} s" for x in places)]
        for name, line in grid.lines.items()
    ]
    section.table([f"loss A / {threshold} reached / time", *(f"{grid.asked} = {x:,g}" for x in places)], lines)


def _losses(grid: Grid) -> dict[str, dict[float, float]]:
    return {name: {x: made.loss for x, made in line.items()} for name, line in grid.lines.items()}


def _reached(grid: Grid) -> dict[str, dict[float, float]]:
    return {name: {x: made.reached for x, made in line.items()} for name, line in grid.lines.items()}


def _picture(section: Section, path: Path, title: str, panels: Sequence[Panel]) -> None:
    pictures.draw(path, title, panels, columns=3 if len(panels) == 3 else 2)
    kept = path.parent == pictures.FOLDER
    section.say(f"![{title}](pictures/{path.name})" if kept else "No picture is kept of a trial.")


def _verdict(claim: str, grid: Grid, pairs: Sequence[tuple[str, str]], below: float) -> str:
    """The thesis's finding beside ours; it holds for a pair if the share of the loss is below this everywhere."""
    found = []
    for one, other in pairs:
        shares = grid.shares(one, other)
        lower, holds = sum(share < 1 for share in shares), "holds" if max(shares) < below else "does not hold"
        found.append(
            f"{one} beside {other}: {holds}, {statistics.geometric_mean(shares):.2f} times the loss "
            f"({min(shares):.2f}..{max(shares):.2f}), lower at {lower} of {len(shares)}"
        )
    return f"The thesis finds that {claim}. Here: {'; '.join(found)}."

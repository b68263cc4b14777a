"""Chapter 4 of the thesis on SABRE and BUREL: BUREL on SAL compared with two Mondrians (figures 4.5 to 4.7 and 4.9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import tables
from experiments.figures import Claim, Experiment, Figure, Trial
from experiments.thesis_claims import Drawn, ahead, moves
from experiments.thesis_sal import (
    ABOUT_LIKE,
    BETA,
    BETAS,
    BUREL,
    CUTS,
    D_BOOK,
    D_MONDRIAN,
    DEFAULT,
    FIVE,
    L_BOOK,
    L_MONDRIAN,
    LIKE,
    Curves,
    Lines,
    Sal,
    curves,
    likely,
    made,
    over,
    sal,
)
from pictures import Panel

ABOUT_HALF, MARGINAL = 0.6, 0.1
EPSILONS, EPSILON = (2, 4, 6, 8, 10), 6
RANGED = (CUTS, DEFAULT, L_MONDRIAN, D_MONDRIAN)  # as printed, BUREL knows no ranges
NAMES = "Names as for figure 4.5."
WHY = (
    "BUREL's plan has to hold whatever rows a class gets, so a class takes its share of every bucket, from wherever it is; "
    "Mondrian asks only whether the rows that are there meet the guarantee."
)


def over_beta(trial: Trial) -> Figure:
    """Figure 4.5."""
    table = sal(trial)
    three = table.part(quasi=FIVE[:3])
    lines = over(LIKE, trial.some(BETAS, BETAS[::4]), lambda name, beta: made(name, three, likely(name, three, beta)))
    losses, seconds = curves(lines), curves(lines, "seconds")
    claims = [
        *_rivals(losses),
        ahead(losses, [(L_BOOK, D_BOOK), (L_MONDRIAN, D_MONDRIAN)], "LMondrian loses less than DMondrian"),
        moves(losses, (BUREL, DEFAULT, L_BOOK, L_MONDRIAN), "the loss falls as beta grows", grows=False),
        ahead(seconds, [(BUREL, L_BOOK), (DEFAULT, L_MONDRIAN)], "BUREL takes about half of the time", ABOUT_HALF),
    ]
    return Figure(
        "BUREL over beta (figure 4.5)", f"{_settings(table)} {ABOUT_LIKE}", claims, _panels("beta", lines), remark=WHY
    )


def over_quasi(trial: Trial) -> Figure:
    """Figure 4.6."""
    table = sal(trial)
    lines = _varied(trial.some((1, 2, 3, 4, 5), (1, 5)), lambda n: table.part(quasi=FIVE[:n]))
    losses = curves(lines)
    grows = "the loss grows with the number of columns"
    claims = [*_rivals(losses), moves(losses, (BUREL, DEFAULT, L_BOOK, L_MONDRIAN), grows, grows=True)]
    settings = f"{_settings(table)} The first of {', '.join(FIVE)}. {NAMES}"
    return Figure(
        "BUREL over the number of quasi-identifiers (figure 4.6)", settings, claims, _panels("quasi-identifiers", lines)
    )


def over_rows(trial: Trial) -> Figure:
    """Figure 4.7."""
    table = sal(trial)
    lines = _varied(table.sizes, lambda rows: table.part(rows, FIVE[:3]))
    losses = curves(lines)
    turns = {name: _turns(list(losses[name].values())) for name in (BUREL, DEFAULT, L_BOOK, L_MONDRIAN)}
    claims = [
        *_rivals(losses),
        Claim(
            "the number of rows has no clear effect on the loss",
            all(turns.values()) or len(table.sizes) < 3,
            "; ".join(f"{name} {'goes up and down' if up else 'goes one way'}" for name, up in turns.items()),
        ),
        moves(curves(lines, "seconds"), (BUREL, DEFAULT), "the time grows with the rows", grows=True, slack=0.3),
    ]
    return Figure("BUREL over the number of rows (figure 4.7)", f"{_settings(table)} {NAMES}", claims, _panels("rows", lines))


def ranges(trial: Trial) -> Figure:
    """Figure 4.9."""
    table = sal(trial)
    three = table.part(quasi=FIVE[:3])

    def losses(places: Sequence[float], requested: Callable[[float], tuple[float, int | None]]) -> Curves:
        return curves(over(RANGED, places, lambda name, x: made(name, three, likely(name, three, *requested(x)))))

    epsilons, betas = trial.some(EPSILONS, EPSILONS[::4]), trial.some(BETAS, BETAS[::4])
    by_eps, by_beta = losses(epsilons, lambda e: (BETA, int(e))), losses(betas, lambda b: (b, EPSILON))
    without_eps, without_beta = losses(epsilons, lambda e: (BETA, None)), losses(betas, lambda b: (b, None))
    claims = [
        _premium(by_eps, without_eps, by_beta, without_beta),
        moves(by_eps, (DEFAULT, L_MONDRIAN), "the loss grows slightly with eps", grows=True),
        ahead(by_eps, [(DEFAULT, L_MONDRIAN), (DEFAULT, D_MONDRIAN)], "BUREL loses less than its rivals"),
        moves(by_beta, (DEFAULT, L_MONDRIAN), "the loss falls as beta grows", grows=False),
    ]
    panels = [
        Panel("eps", "loss A", {**by_eps, **_without(without_eps)}, title=f"beta = {BETA}"),
        Panel("beta", "loss A", {**by_beta, **_without(without_beta)}, title=f"eps = {EPSILON}"),
    ]
    settings = (
        f"{_settings(table)} Runs of neighbouring salaries up to eps apart are judged too, single salaries included; lines "
        f"without ranges are those of figure 4.5. DMondrian requires the ranges in addition to its delta. {NAMES}"
    )
    return Figure("Likeness of ranges of salaries (figure 4.9)", settings, claims, panels)


# What the figures share ----------------------------------------------------------------------------------------------------


def _varied(places: Sequence[int], part: Callable[[int], tables.Source]) -> Lines:
    parts = {x: part(x) for x in places}
    return over(LIKE, places, lambda name, x: made(name, parts[int(x)], likely(name, parts[int(x)], BETA)))


def _settings(table: Sal) -> str:
    return (
        f"{table.whole.remark} Unless varied: all rows, quasi-identifiers {', '.join(FIVE[:3])}, enhanced beta-likeness, beta "
        f"= {BETA}, "
        "no k. Loss A is measured on the written cells; seconds from the CSV file to the certified release in memory."
    )


def _panels(x: str, lines: Lines) -> list[Panel]:
    seconds = Panel(x, "seconds (logarithmic)", curves(lines, "seconds"), log=True)
    return [Panel(x, "loss A (logarithmic)", curves(lines), log=True), seconds]


def _rivals(losses: Drawn) -> list[Claim]:
    """Compare with each of the two, then decide whether it is half."""
    pairs_l, pairs_d = [(BUREL, L_BOOK), (DEFAULT, L_MONDRIAN)], [(BUREL, D_BOOK), (DEFAULT, D_MONDRIAN)]
    return [
        ahead(losses, pairs_l, "BUREL loses less than LMondrian (loss of one over that of the other)"),
        ahead(losses, pairs_d, "BUREL loses less than DMondrian"),
        ahead(losses, [*pairs_l, *pairs_d], "it is almost half of what they lose", ABOUT_HALF),
    ]


def _turns(values: Sequence[float]) -> bool:
    """Whether it rises somewhere and falls somewhere."""
    steps = [b - a for a, b in pairwise(values)]
    return any(step > 0 for step in steps) and any(step < 0 for step in steps)


def _premium(*pairs: Curves) -> Claim:
    """What judging ranges costs each method, on average over both panels."""
    more = {}
    for name in RANGED:
        ranged, alone = (sum(sum(lines[name].values()) for lines in pairs[i::2]) for i in (0, 1))
        more[name] = ranged / alone - 1
    share = sum(extra < MARGINAL for extra in more.values()) / len(more)
    said = "; ".join(f"{name} {extra:+.1%}" for name, extra in more.items())
    return Claim("ranges cost only marginally more than single values", share, said)


def _without(lines: Curves) -> Curves:
    return {f"{name}, without ranges": line for name, line in lines.items()}


EXPERIMENTS: dict[str, Experiment] = {"4.5": over_beta, "4.6": over_quasi, "4.7": over_rows, "4.9": ranges}

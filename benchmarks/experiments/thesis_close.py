"""Chapter 3 of the thesis on SABRE and BUREL: SABRE, tMondrian and tIncognito on SAL (figures 3.7 to 3.11, 3.14)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

import closeknit as ck
import tables
from experiments.figures import Claim, Experiment, Figure, Trial
from experiments.thesis_claims import Drawn, ahead, moves
from experiments.thesis_sal import (
    ABOUT_CLOSE,
    CLOSE,
    INCOGNITO,
    KNN,
    KNN_CUTS,
    KS,
    QUASI,
    SABRE,
    SABRE_KNN,
    SAMPLE,
    T_BOOK,
    T_MONDRIAN,
    TS,
    K,
    Lines,
    Sal,
    T,
    closely,
    curves,
    made,
    over,
    sal,
)
from pictures import Panel

FEWER = tuple(name for name in CLOSE if name != SABRE_KNN)  # it takes longest
FANOUTS = (2, 3, 4, 5, 7, 10, 25, 50)
NAMES = "Names as for figure 3.7."
DEFAULTS = "the same, with the defaults"
BETTER = "SABRE loses less than tMondrian and tIncognito (loss of one over that of the other)"
PRINTED, OURS = ((KNN, T_BOOK), (KNN_CUTS, T_BOOK)), ((SABRE, T_MONDRIAN), (SABRE, INCOGNITO))
WHY = (
    "As printed SABRE makes a plan that holds whatever rows a class gets; Mondrian asks whether the rows that are there meet "
    "the guarantee. How the two compare depends on which Mondrian it is, and the source does not say which one it ran."
)


def over_t(trial: Trial) -> Figure:
    """Figure 3.7."""
    table = sal(trial)
    lines = _over_t(table, trial.some(TS, TS[2::2]))
    losses = curves(lines)
    claims = [
        *_rivals(losses, more=((SABRE_KNN, T_MONDRIAN),)),
        ahead(losses, [(SABRE_KNN, SABRE)], "filled with nearest neighbours it loses slightly less than along a curve"),
        moves(losses, (KNN, SABRE, T_BOOK, T_MONDRIAN), "the loss falls as t grows", grows=False),
        _no_slower(curves(lines, "seconds")),
    ]
    settings = f"{_settings(table)} {ABOUT_CLOSE}"
    return Figure("SABRE over t (figure 3.7)", settings, claims, _panels("t", lines), remark=WHY)


def over_quasi(trial: Trial) -> Figure:
    """Figure 3.8."""
    table = sal(trial)
    lines = _over_quasi(table, trial.some(QUASI, QUASI[::4]))
    losses = curves(lines)
    claims = [*_rivals(losses), _widens(losses, KNN, T_BOOK), _widens(losses, SABRE, INCOGNITO)]
    settings = f"{_settings(table)} The first of {', '.join(table.names)}. {NAMES}"
    return Figure(
        "SABRE over the number of quasi-identifiers (figure 3.8)", settings, claims, _panels("quasi-identifiers", lines)
    )


def over_rows(trial: Trial) -> Figure:
    """Figure 3.9."""
    table = sal(trial)
    lines = over(FEWER, table.sizes, lambda name, n: made(name, table.part(int(n)), closely(table.secret, K, T)))
    losses, seconds = curves(lines), curves(lines, "seconds")
    ratio = {name: max(losses[name].values()) / min(losses[name].values()) for name in FEWER}
    others = max(value for name, value in ratio.items() if name != INCOGNITO)
    said = "; ".join(f"{name} {value:.2f}" for name, value in ratio.items())
    claims = [
        *_rivals(losses),
        Claim(
            "the number of rows has not much effect on the loss, but for tIncognito",
            others < 1.25 <= ratio[INCOGNITO],
            f"from the least loss to the largest {said} times",
        ),
        moves(seconds, (SABRE, T_MONDRIAN), "the time grows with the rows", grows=True, slack=0.3),
    ]
    settings = f"{_settings(table)} {NAMES}"
    return Figure("SABRE over the number of rows (figure 3.9)", settings, claims, _panels("rows", lines))


def real_closeness(trial: Trial) -> Figure:
    """Figure 3.10."""
    table = sal(trial)
    by_t = curves(_over_t(table, trial.some(TS, TS[2::2])), "measured")
    by_quasi = curves(_over_quasi(table, trial.some(QUASI, QUASI[::4])), "measured")
    requested = [(t, x) for line in by_t.values() for t, x in line.items()]
    requested += [(T, x) for line in by_quasi.values() for x in line.values()]
    claims = [
        Claim("the measured t is below the requested t for all of them", all(x < t for t, x in requested), _used(requested)),
        ahead(by_t, [(KNN, T_BOOK), (INCOGNITO, T_BOOK)], "SABRE and tIncognito have a smaller measured t than tMondrian"),
        ahead(by_t, [(SABRE, T_MONDRIAN)], DEFAULTS),
    ]
    panels = [Panel("t", "measured t", by_t), Panel("quasi-identifiers", "measured t", by_quasi)]
    remark = "The default cuts on while every guarantee is met, so its t is close to the requested t and its loss is smaller."
    return Figure("The measured t (figure 3.10)", f"{_settings(table)} {NAMES}", claims, panels, remark=remark)


def over_k(trial: Trial) -> Figure:
    """Figure 3.11."""
    table = sal(trial)
    names, one = [name for name in FEWER if name != KNN], table.part(SAMPLE)
    lines = over(names, trial.some(KS, KS[::3]), lambda name, k: made(name, one, closely(table.secret, int(k), T)))
    losses = curves(lines)
    claims = [
        moves(losses, (KNN_CUTS, SABRE, T_BOOK, T_MONDRIAN), "the loss grows with k", grows=True),
        ahead(losses, [(KNN_CUTS, T_BOOK), *OURS], BETTER),
    ]
    settings = f"{_settings(table)} {NAMES} The plan as printed without cuts is left out: it knows k = {K} alone."
    return Figure("SABRE over k (figure 3.11)", settings, claims, _panels("k", lines))


def over_fanout(trial: Trial) -> Figure:
    """Figure 3.14."""
    table = sal(trial)
    one, names = table.part(SAMPLE), (KNN_CUTS, SABRE, T_MONDRIAN)
    trees = {fanout: _with_tree(one, fanout) for fanout in trial.some(FANOUTS, FANOUTS[::4])}
    lines = over(names, trees, lambda name, fanout: made(name, trees[int(fanout)], closely(table.secret, K, T)))
    losses = curves(lines)
    claims = [_small_is_better(losses, (KNN_CUTS, SABRE))]
    settings = (
        f"{_settings(table)} Salary by a balanced tree over its {len(_leaves(one))} values, distances along the tree; the "
        f"fanouts are ours, the source prints none. {NAMES}"
    )
    return Figure("SABRE over the fanout of a tree of salaries (figure 3.14)", settings, claims, _panels("fanout", lines, True))


# What the figures share ----------------------------------------------------------------------------------------------------


def _over_t(table: Sal, places: Sequence[float]) -> Lines:
    one = table.part(SAMPLE)
    return over(CLOSE, places, lambda name, t: made(name, one, closely(table.secret, K, t)))


def _over_quasi(table: Sal, places: Sequence[int]) -> Lines:
    parts = {n: table.part(SAMPLE, table.names[:n]) for n in places}
    return over(FEWER, places, lambda name, n: made(name, parts[int(n)], closely(table.secret, K, T)))


def _settings(table: Sal) -> str:
    one = table.part(SAMPLE)
    return (
        f"{one.remark} Unless varied: {one.rows:,} rows, {len(table.names)} quasi-identifiers, k = {K}, t = {T}. Loss A and t "
        "are "
        "measured on the written cells; seconds from the CSV file to the certified release in memory."
    )


def _panels(x: str, lines: Lines, log_x: bool = False) -> list[Panel]:
    seconds = Panel(x, "seconds (logarithmic)", curves(lines, "seconds"), log=True, log_x=log_x)
    return [Panel(x, "loss A (logarithmic)", curves(lines), log=True, log_x=log_x), seconds]


def _rivals(losses: Drawn, more: Sequence[tuple[str, str]] = ()) -> list[Claim]:
    """Compare the printed variant with its rival, and the defaults with each other."""
    return [ahead(losses, PRINTED, BETTER), ahead(losses, [*more, *OURS], DEFAULTS)]


def _no_slower(seconds: Drawn) -> Claim:
    most = {name: max(seconds[name].values()) for name in (SABRE, T_MONDRIAN, INCOGNITO, SABRE_KNN)}
    slow = min(most[INCOGNITO], most[SABRE_KNN]) / max(most[SABRE], most[T_MONDRIAN])
    said = ", ".join(f"{name} at most {value:.1f} s" for name, value in most.items())
    return Claim("SABRE with a curve and tMondrian are two orders of magnitude faster than the others", slow > 30, said)


def _widens(losses: Drawn, one: str, other: str) -> Claim:
    places = sorted(losses[one])
    gaps = [losses[other][x] - losses[one][x] for x in places]
    said = ", ".join(f"{gap:.3f}" for gap in gaps)
    return Claim(f"the gap between SABRE and {other} widens with every column", gaps == sorted(gaps) and gaps[0] > 0, said)


def _used(requested: Sequence[tuple[float, float]]) -> str:
    used = [x / t for t, x in requested]
    return f"it is between {min(used):.0%} and {max(used):.1%} of the requested t"


def _small_is_better(losses: Drawn, names: Sequence[str]) -> Claim:
    holds, said = [], []
    for name in names:
        places = sorted(losses[name])
        half = (len(places) + 1) // 2
        low, high = (statistics.mean(losses[name][x] for x in part) for part in (places[:half], places[half:]))
        holds.append(low < high)
        said.append(f"{name} loses {low:.4f} on average over fanouts up to {places[half - 1]:g}, {high:.4f} over larger ones")
    return Claim("a smaller fanout tends to lose less, though not evenly", statistics.mean(holds), "; ".join(said))


def _leaves(source: tables.Source) -> range:
    low, high = source.schema.sensitive[source.secret].bounds
    return range(int(low), int(high) + 1)


def _with_tree(source: tables.Source, fanout: int) -> tables.Source:
    """The same rows in a file of their own, the sensitive attribute by a tree."""
    tree = ck.Hierarchy.balanced(_leaves(source), fanout)
    path = source.path.with_name(f"fanout{fanout}-{source.path.name}")
    path.write_bytes(source.path.read_bytes())
    return replace(source, path=path, schema=ck.Schema(quasi=source.schema.quasi, sensitive={source.secret: tree}))


EXPERIMENTS: dict[str, Experiment] = {
    "3.7": over_t,
    "3.8": over_quasi,
    "3.9": over_rows,
    "3.10": real_closeness,
    "3.11": over_k,
    "3.14": over_fanout,
}

"""The paper on multiple sensitive attributes, sec. 5: tables 6 to 8, figures 3 to 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

import numpy as np

import printed_sizes
import tables
from closeknit.search.repair import find_broken_classes
from experiments.figures import Claim, Experiment, Figure, Trial
from pictures import Panel
from printed_sizes import KS, TS, cells
from sections import Section
from several import METHODS, Drawn, Made, build_models, encoded, two_secrets, warm
from trials import SEED

ONE, TWO, CONTRAST = "algorithm 1, k groups, merged", "algorithm 2, k groups, merged", "Microaggregation (contrast)"
OURS = {ONE: "FcmDraw", TWO: "PcaDraw"}
ONE_HOT = "PcaDraw, one-hot, not scaled"
PRINTED_IN = dict(zip((ONE, TWO, CONTRAST), printed_sizes.TABLES, strict=True))
SMALL_ROWS, SMALL_KS, SMALL_TS = 400, (2, 10), (0.2, 0.5)
ABOUT = (
    "Rong Wang, Yan Zhu, Tung-Shou Chen, Chin-Chen Chang, 2018: [algorithms 1 and 2](draws.md) on Adult. Sensitive attributes: "
    "occupation "
    "(14 values, tree) and education-num (16, ordered), each with the same t. Algorithms 1 and 2 are as the paper has them, k "
    "groups, but no row is lost and unions are judged again. FcmDraw and PcaDraw also try other numbers of groups, exchange "
    "rows and cut classes. Contrast: [Microaggregation](microaggregation.md), k first."
)
Points = dict[float, float]


def _grid(trial: Trial) -> tuple[Sequence[int], Sequence[float]]:
    return trial.some(KS, SMALL_KS), trial.some(TS, SMALL_TS)


@cache
def _source(trial: Trial) -> tables.Source:
    source = two_secrets(trial.place, trial.rows(SMALL_ROWS))
    if not trial.quick:
        warm(source, trial.place)
    return source


@cache
def _made(trial: Trial, name: str, k: int, t: float) -> Made:
    """Each run once, whichever figures need it."""
    return Made.by(METHODS[name], _source(trial), build_models(k, t))


def tables_6_to_8(trial: Trial) -> Figure:
    """Sizes of classes of the printed algorithms."""
    ks, ts = _grid(trial)
    here = {(name, k, t): _made(trial, name, k, t) for name in PRINTED_IN for k in ks for t in ts}
    return Figure(
        "Tables 6 to 8: sizes of classes",
        f"{_source(trial).remark} In the table: least/largest/mean, here and, in brackets, as printed.",
        _sizes_said(here, ks, ts),
        [
            Panel(
                "t",
                "mean rows of a class",
                {f"k = {k}": {t: here[name, k, t].mean for t in ts} for k in ks},
                reported={} if trial.quick else _printed(name),
                log=True,
                title=name,
            )
            for name in PRINTED_IN
        ],
        tables=[_compare(name, here, ks, ts, trial.quick) for name in PRINTED_IN],
        remark="" if trial.quick else _larger(here),
        columns=3,
    )


def _printed(name: str) -> dict[str, Points]:
    return {f"k = {k}, printed": {c.t: c.mean for c in cells() if (c.table, c.k) == (PRINTED_IN[name], k)} for k in KS}


def _sizes_said(here: Mapping[tuple[str, int, float], Made], ks: Sequence[int], ts: Sequence[float]) -> list[Claim]:
    small = [(k, t) for k in ks if k <= 10 for t in ts]
    larger = {name: sum(here[name, k, t].mean > here[CONTRAST, k, t].mean for k, t in small) for name in OURS}
    large = [(name, k, t) for name in OURS for k in ks if k >= 15 for t in ts]
    same = sum(here[at].largest <= at[1] + 1 for at in large)
    grows = [here[name, a, t].mean <= here[name, b, t].mean for name in PRINTED_IN for a, b in pairwise(ks) for t in ts]
    said = [
        Claim("sizes grow with k", sum(grows) / len(grows), f"means do in {sum(grows)} of {len(grows)} steps from k to k"),
        Claim(
            "for k = 2, 5, 10 classes of algorithms 1 and 2 are larger than those of the contrast",
            sum(larger.values()) / (len(larger) * len(small)),
            "by means at " + " and ".join(f"{count} of {len(small)} (k, t) for {n}" for n, count in larger.items()),
        ),
    ]
    if large:
        said.append(
            Claim(
                "for k = 15, 20 sizes of algorithms 1 and 2 are k",
                same / len(large),
                f"all classes have k or k + 1 rows at {same} of {len(large)} settings",
            )
        )
    return said


def _compare(
    name: str, here: Mapping[tuple[str, int, float], Made], ks: Sequence[int], ts: Sequence[float], quick: bool
) -> tuple[list[str], list[list[str]]]:
    printed = {(c.k, c.t): f"{c.least}/{c.largest}/{c.mean}" for c in cells() if c.table == PRINTED_IN[name]}
    lines = [[f"k = {k}", *(here[name, k, t].sizes + ("" if quick else f" ({printed[k, t]})") for t in ts)] for k in ks]
    return [name, *(f"t = {t:g}" for t in ts)], lines


def _larger(here: Mapping[tuple[str, int, float], Made]) -> str:
    """How our means compare with the printed ones."""
    ratios = {name: [here[name, c.k, c.t].mean / c.mean for c in cells() if c.table == PRINTED_IN[name]] for name in PRINTED_IN}
    said = "; ".join(f"{name} {min(r):.1f} to {max(r):.1f} times" for name, r in ratios.items())
    return f"Mean sizes compared with the printed ones: {said}. Many of the printed sizes are impossible: see the next figure."


def arithmetic(trial: Trial) -> Figure:
    """What no release can have."""
    source, section = _source(trial), Section("")
    table = encoded(source)
    printed_sizes.report(section, table, not trial.quick)
    _before_merging(section, trial)
    found, left = printed_sizes.least_distances(table), printed_sizes.left_over()
    short = printed_sizes.too_few(found, 0)
    names = ("occupation, tree", "occupation, equal", "education-num, ordered")
    return Figure(
        "Tables 6 to 8: what no release can have",
        f"{source.remark} The least distance that any class of so many rows can have, whichever rows it takes.",
        [
            Claim("75 cells of class sizes, each of a release of all rows", not left, f"{len(left)} cells leave rows over"),
            Claim(
                "and each meets t for both sensitive attributes",
                not short,
                f"in {len(short)} cells no class of the least size can, with the tree of occupations that is used here",
            ),
        ],
        [
            Panel(
                "rows of a class",
                "least distance of any class",
                {n: {s: d[j] for s, d in found.items() if s % 2 == 0} for j, n in enumerate(names)},
            )
        ],
        details=section.parts,
    )


def _before_merging(section: Section, trial: Trial) -> None:
    """How many of the classes that were drawn violate t, at every k and t."""
    table = encoded(_source(trial))
    section.say(
        "Before merging: the share of the classes drawn from k groups that violate t, and their largest size. A cell of tables "
        "6 or 7 with all classes of k rows needs 0 % here."
    )
    for grouping, said in (("fcm", "algorithm 1"), ("pca", "algorithm 2")):
        lines = []
        for k in _grid(trial)[0]:
            drawn = Drawn(grouping).classes(table, k, SEED)
            shares = [find_broken_classes(table, drawn, build_models(k, t)).mean() for t in TS]
            lines.append([f"k = {k}", *(f"{share:.1%}" for share in shares), int(np.bincount(drawn.class_of).max())])
        section.table([f"{said}: violate t, not merged", *(f"t = {t}" for t in TS), "largest"], lines)


def figures_3_to_5(trial: Trial) -> Figure:
    """Loss over t, one line for each k."""
    ks, ts = _grid(trial)
    names = [ONE, TWO, CONTRAST, *OURS.values()]
    loss = {name: {k: {t: _made(trial, name, k, t).il_t for t in ts} for k in ks} for name in names}
    mean = {name: {k: float(np.mean(list(line.values()))) for k, line in lines.items()} for name, lines in loss.items()}
    apart = max(abs(mean[TWO][k] / mean[ONE][k] - 1) for k in ks if k <= 10)
    best = [k for k in ks if k >= 15 and mean[ONE][k] <= min(mean[TWO][k], mean[CONTRAST][k])]
    ratio = float(np.mean([mean[TWO][k] / mean[CONTRAST][k] for k in ks]))
    gain = {name: float(np.mean([mean[ours][k] / mean[name][k] for k in ks])) for name, ours in OURS.items()}
    said = [
        Claim("algorithms 1 and 2 lose about the same at k = 2, 5, 10", apart < 0.1, f"they differ by up to {apart:.0%}"),
        Claim("algorithm 2 loses slightly more than the contrast", 1 < ratio < 1.25, f"{ratio:.2f} times its loss on average"),
    ]
    if not trial.quick:
        said.insert(
            1,
            Claim(
                "at k = 15 and 20 algorithm 1 loses least",
                len(best) / 2,
                f"at k = {', '.join(map(str, best))}" if best else "at neither",
            ),
        )
    return Figure(
        "Figures 3 to 5: loss",
        f"{_source(trial).remark} Loss: the paper's, summed over the seven quasi-identifiers, mean over rows.",
        said,
        [Panel("t", "loss (0..7)", {f"k = {k}": line for k, line in loss[name].items()}, title=name) for name in names],
        remark="Our versions lose " + " and ".join(f"{gain[n]:.2f} times ({OURS[n]}) that of {n}" for n in OURS) + ".",
        columns=3,
    )


def figure_6(trial: Trial) -> Figure:
    """Time at k = 2."""
    ts = trial.some(TS, SMALL_TS)
    names = [ONE, TWO, CONTRAST, *OURS.values(), ONE_HOT]
    lines = {name: {t: _made(trial, name, 2, t).seconds for t in ts} for name in names}
    quickest = [t for t in ts if lines[TWO][t] <= min(lines[ONE][t], lines[CONTRAST][t])]
    falls = [name for name in (ONE, TWO) if lines[name][ts[-1]] < lines[name][ts[0]]]
    return Figure(
        "Figure 6: time at k = 2",
        f"{_source(trial).remark} Seconds from the CSV file to the certified release, one run each; the one-hot version of "
        "PcaDraw has the paper's columns.",
        [
            Claim("algorithm 2 takes least", len(quickest) / len(ts), f"at {len(quickest)} of {len(ts)} t"),
            Claim("the time of algorithms 1 and 2 falls as t grows", len(falls) / 2, f"for {len(falls)} of 2"),
        ],
        [Panel("t", "seconds (logarithmic)", lines, log=True)],
    )


EXPERIMENTS: dict[str, Experiment] = {
    "tables-6-8": tables_6_to_8,
    "arithmetic": arithmetic,
    "3-5": figures_3_to_5,
    "6": figure_6,
}

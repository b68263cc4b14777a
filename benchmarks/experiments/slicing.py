"""The paper on slicing, sec. 5: who is in the table, and what its sections 1 and 6 say of the worth of a release."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cache

import numpy as np
import polars as pl

import tables
import workload
from closeknit.attacks import Membership, membership
from closeknit.attacks.membership import Against
from closeknit.metrics import learning_accuracy, queries, workload_error
from experiments.buckets import (
    BUCKETIZED,
    FIVE,
    GROUPINGS,
    MANY,
    OCC_7,
    OCC_15,
    SCATTERED,
    SECRET,
    SEED,
    SIZES,
    TWO,
    USUAL,
    Slice,
    Sliced,
    chance,
    coded,
    most_with_many,
    shown,
    with_outsiders,
)
from experiments.figures import Claim, Experiment, Figure, Trial
from pictures import Panel

PRINTED = (87_936, 5_325, 31_452)  # fakes, those with more than 20 buckets, original rows with more than 20
SMALL_ROWS, SMALL_SIZES = 300, (10, 20)
OCC_7_TWO, OCC_7_FIVE, BUCKETS, OCC_15_FIVE = "OCC-7, c = 2", "OCC-7, c = 5", "OCC-7, bucketization", "OCC-15, c = 5"
SETTINGS: dict[str, Slice] = {OCC_7_TWO: TWO, OCC_7_FIVE: FIVE, BUCKETS: BUCKETIZED, OCC_15_FIVE: OCC_15}
ABOUT = (
    "Shivani Rohilla, Megha Sharma, A. Kulothungan, Manish Bhardwaj, 2015: [slicing](slicing.md) of Adult. It prints four "
    f"numbers; its figures are missing, so its findings are quoted. OCC-7: {', '.join(OCC_7)}; {SECRET} is the sensitive "
    "attribute. The "
    "source names neither its seven attributes nor the columns at c = 2. "
    f"c = 5: {shown(FIVE)}, as printed. c = 2: {shown(TWO)}, the printed column against the rest. "
    "OCC-15 at c = 5: as printed. Buckets are random, of p rows, the last one smaller; the source names "
    "p = 100, the other sizes are ours."
)
WITH, WITHOUT = "with the sensitive attribute", "without the sensitive attribute"
UNDERSTOOD = (
    "So the printed numbers are best understood as counts of tuples of quasi-identifiers, which is also what an attacker knows "
    "who asks whether a person is in the table."
)
Attacks = dict[str, dict[int, Membership]]


@cache
def _table(trial: Trial) -> tuple[pl.DataFrame, str]:
    source = tables.adult_all(trial.place, trial.rows(SMALL_ROWS))
    return pl.read_csv(source.path, infer_schema=False), source.remark


@cache
def _attacks(trial: Trial) -> Attacks:
    """Random buckets, each setting and size."""
    frame, found = _table(trial)[0], {}
    for name, columns in SETTINGS.items():
        table = Sliced.of(frame, columns)
        found[name] = {p: table.attacked(chance(table.values, p)) for p in trial.some(SIZES, SMALL_SIZES)}
    return found


def _auc(against: Against | None) -> float:
    """Return the AUC, or nothing where there is no one to separate."""
    return 0.5 if against is None or against.auc is None else against.auc


def fakes(trial: Trial) -> Figure:
    """How many fakes random buckets admit."""
    found, sizes = _attacks(trial), list(trial.some(SIZES, SMALL_SIZES))
    sliced = [name for name in SETTINGS if name != BUCKETS]
    count = {name: {float(p): float(found[name][p].fakes.count) for p in sizes} for name in sliced}
    more = [(name, p) for name in sliced for p in sizes if count[name][p] > found[name][p].originals]
    rises = [name for name in sliced if all(a < b for a, b in itertools.pairwise(count[name].values()))]
    wider = [p for p in sizes if count[OCC_7_FIVE][p] > 10 * count[OCC_7_TWO][p]]
    quasi = {p: found[BUCKETS][p].quasi for p in sizes}
    none = all(one is not None and one.count == 0 for one in quasi.values())
    return Figure(
        "Section 5.1: fakes in random buckets",
        f"{_table(trial)[1]} Fakes are different tuples that a bucket admits and no row has; where they are too many to be "
        "counted, estimated. Originals are different tuples too.",
        [
            Claim(
                "in almost all settings there are more fakes than originals",
                min(1.0, len(more) / (0.9 * len(sliced) * len(sizes))),
                f"in {len(more)} of {len(sliced) * len(sizes)}",
            ),
            Claim(
                "their number grows with the size of buckets",
                len(rises) / len(sliced),
                f"in {len(rises)} of {len(sliced)} tables",
            ),
            Claim(
                "and becomes exponentially larger with more columns",
                len(wider) / len(sizes),
                f"OCC-7 with five columns has {min(count[OCC_7_FIVE][p] / max(count[OCC_7_TWO][p], 1) for p in sizes):,.0f} "
                "times as many and more as with two",
            ),
            Claim(
                "bucketization hides no one: a combination of quasi-identifiers that is not there is not in the table",
                none,
                "it admits no other combination" if none else "it admits others",
            ),
        ],
        [
            Panel(
                "rows in a bucket (logarithmic)",
                "fakes (logarithmic)",
                count,
                log=True,
                log_x=True,
                reported={} if trial.quick else {"OCC-7, c = 2, printed": {float(USUAL): float(PRINTED[0])}},
            )
        ],
    )


def matching(trial: Trial) -> Figure:
    """Into how many buckets originals and fakes fit."""
    found, sizes = _attacks(trial), list(trial.some(SIZES, SMALL_SIZES))
    shares = {
        name: {
            "originals, > 20 buckets": {float(p): found[name][p].matches.many / found[name][p].originals for p in sizes},
            "fakes, > 20 buckets": {float(p): found[name][p].fakes.matches.many / found[name][p].fakes.count for p in sizes},
        }
        for name in SETTINGS
        if name != BUCKETS
    }
    auc = {name: {float(p): _auc(found[name][p].fakes) for p in sizes} for name in shares}
    more = [(name, p) for name in auc for p in sizes if auc[name][p] > 0.5]
    better = [name for name, line in auc.items() if line[sizes[-1]] < line[sizes[0]]]
    five = [p for p in sizes if auc[OCC_7_FIVE][p] < auc[OCC_7_TWO][p]]
    return Figure(
        "Section 5.1: matching buckets of originals and fakes",
        f"{_table(trial)[1]} A bucket matches a tuple if it has its value in every column. AUC: the probability that an "
        "original has more matching buckets than a fake; 0.5 is no information.",
        [
            Claim(
                "originals have more matching buckets than fakes",
                len(more) / (len(auc) * len(sizes)),
                f"the AUC is above 0.5 in {len(more)} of {len(auc) * len(sizes)} settings",
            ),
            Claim(
                "larger buckets protect better",
                len(better) / len(auc),
                f"from p = {sizes[0]:,} to {sizes[-1]:,} the AUC falls in {len(better)} of {len(auc)} tables",
            ),
            Claim(
                "more columns protect better",
                len(five) / len(sizes),
                f"the AUC with five columns is below that with two at {len(five)} of {len(sizes)} p",
            ),
        ],
        [
            *(
                Panel("rows in a bucket (logarithmic)", "share of tuples", lines, title=name, log_x=True)
                for name, lines in shares.items()
            ),
            Panel("rows in a bucket (logarithmic)", "AUC", auc, log_x=True),
        ],
    )


def printed(trial: Trial) -> Figure:
    """The three printed numbers, for every division of the attributes in two."""
    frame = _table(trial)[0]
    ways = {WITH: OCC_7, WITHOUT: OCC_7[:-1]}
    ways = {WITHOUT: OCC_7[2:-1]} if trial.quick else ways
    found = {what: {columns: _figures(frame, columns) for columns in _divisions(names)} for what, names in ways.items()}
    near = {what: min(divided, key=lambda columns, d=divided: _apart(d[columns])) for what, divided in found.items()}
    within = {what: sum(_apart(figures) <= np.log(1.25) for figures in divided.values()) for what, divided in found.items()}
    quasi, whole = (frame.select(names).unique().height for names in (OCC_7[:-1], OCC_7))
    lines = [["printed", *(f"{figure:,}" for figure in PRINTED)]]
    for what, divided in found.items():
        spans = [f"{min(column):,}..{max(column):,}" for column in zip(*divided.values(), strict=True)]
        lines.append([f"{what}, all {len(divided)} divisions", *spans])
        lines.append([f"{what}, nearest: {shown(near[what])}", *(f"{figure:,}" for figure in divided[near[what]])])
    return Figure(
        "Section 5.1: the printed numbers",
        f"{_table(trial)[1]} Every division of the attributes in two, p = {USUAL}.",
        [
            Claim(
                "87,936 fakes, of which 5,325 fit into more than 20 buckets, as do 31,452 originals",
                any(within.values()),
                "divisions within a quarter of all three: " + ", ".join(f"{n or 'none'} {what}" for what, n in within.items()),
            ),
            Claim(
                "every combination of quasi-identifiers occurs once",
                quasi == frame.height,
                f"the six have {quasi:,} combinations in {frame.height:,} rows, with the sensitive attribute {whole:,}",
            ),
        ],
        tables=[([f"OCC-7, c = 2, p = {USUAL}", "fakes", "fakes, > 20", "original rows, > 20"], lines)],
        remark=UNDERSTOOD if within.get(WITHOUT, 0) > within.get(WITH, 0) else "",
    )


def _divisions(names: tuple[str, ...]) -> list[Slice]:
    """In two; the first name stands in the first group, so that each division is met once."""
    first, *others = names
    chosen = [group for count in range(len(others)) for group in itertools.combinations(others, count)]
    return [((first, *group), tuple(name for name in others if name not in group)) for group in chosen]


def _figures(frame: pl.DataFrame, columns: Slice) -> tuple[int, int, int]:
    table = Sliced(coded(frame, columns), np.empty((0, 0), np.int32))
    bucket_of = chance(table.values, USUAL)
    found = membership(bucket_of, table.values, table.values, seed=SEED).fakes
    return int(found.count), int(found.matches.many), table.rows_with_many(bucket_of)


def _apart(figures: tuple[int, ...]) -> float:
    """How far the worst of three figures is from the printed one, as a logarithm."""
    return max(abs(float(np.log(max(figure, 1) / one))) for figure, one in zip(figures, PRINTED, strict=True))


def groupings(trial: Trial) -> Figure:
    """What the source leaves to future work: buckets that hide better than random ones."""
    frame, sizes = _table(trial)[0], trial.some(SIZES, SMALL_SIZES)
    panels, most, least, beyond = [], 0, 0, 0
    for name, columns in (("c = 2", TWO), ("c = 5", FIVE)):
        table = Sliced.of(frame, columns)
        many = {
            how: {float(p): float(table.attacked(group(table.values, p)).fakes.matches.many) for p in sizes}
            for how, group in GROUPINGS.items()
        }
        auc = {
            how: {float(p): _auc(with_outsiders(table, group, p).outsiders) for p in sizes} for how, group in GROUPINGS.items()
        }
        most += sum(many["spread"][p] == max(many[how][p] for how in SCATTERED) for p in many["spread"])
        least += sum(auc["spread"][p] == min(auc[how][p] for how in SCATTERED) for p in auc["spread"])
        beyond += sum(many["spread"][p] > many["random"][p] for p in many["spread"])
        panels += [
            Panel(
                "rows in a bucket (logarithmic)",
                f"fakes in > {MANY} buckets, {name}",
                many,
                log=True,
                log_x=True,
                reported={"the most there can be": dict.fromkeys(map(float, sizes), float(most_with_many(table.values)))},
            ),
            Panel("rows in a bucket (logarithmic)", f"AUC against people outside, {name}", auc, log_x=True),
        ]
    count = 2 * len(sizes)
    return Figure(
        "Section 6: groupings that hide better",
        f"{_table(trial)[1]} People outside: one half of the rows, drawn at random, is published; the others are those tuples "
        "of the second half that no published row has. Dashed: no tuple fits into more buckets than its rarest value has rows.",
        [
            Claim(
                "more effective groupings than random ones can be designed (left to future work)",
                beyond / count,
                f"spread has more fakes in more than {MANY} buckets than random buckets in {beyond} of {count} settings; "
                f"among the groupings that put like rows into different buckets ({', '.join(SCATTERED)}) it has most in "
                f"{most}, and the least AUC against people outside in {least}",
            )
        ],
        panels,
        remark=f"Of people outside, at p = {sizes[0]:,} and c = 5, the AUC is "
        + ", ".join(f"{line[float(sizes[0])]:.3f} ({how})" for how, line in auc.items())
        + ".",
    )


def worth(trial: Trial) -> Figure:
    """COUNT queries and a classifier on releases that guarantee the same."""
    split = workload.split_of(tables.adult_all(trial.place, trial.rows(SMALL_ROWS)), trial.rows(SMALL_ROWS))
    count = workload.TRIED if trial.quick else workload.QUERIES
    requested = queries(split.train, split.schema, SECRET, count=count)
    most = split.train.rows / int(split.train[SECRET].counts.max())
    errors: dict[str, dict[float, float]] = {}
    learned: dict[str, dict[str, dict[float, float]]] = {target: {} for target in workload.TARGETS}
    for l in [l for l in workload.LS if l <= most][: 2 if trial.quick else None]:
        for name, release in workload.made(split, l).items():
            errors.setdefault(name, {})[l] = workload_error(release, split.train, requested).median or 0.0
            for target, lines in learned.items():
                scores = learning_accuracy(release, split.train, split.test, split.schema, target)
                lines.setdefault(name, {})[l] = scores.release.accuracy
                lines.setdefault("the table itself", {})[l] = scores.original.accuracy
    return Figure(
        "Sections 1 and 6: utility of slices compared with generalization and bucketization",
        f"{_table(trial)[1]} {', '.join(workload.QUASI)}, and {SECRET} as the sensitive attribute, which fills at most 1/l of "
        "a class "
        f"or bucket. Median error of {count:,} COUNT queries over three quasi-identifiers and the sensitive attribute; share "
        "of "
        f"{split.test.rows:,} other rows that a random forest guesses right. The source gives no settings and no numbers.",
        _worth_said(errors, learned),
        [
            Panel("l", "median error of queries", errors),
            *(Panel("l", f"guessed {target}", lines) for target, lines in learned.items()),
        ],
    )


def _worth_said(
    errors: Mapping[str, dict[float, float]], learned: Mapping[str, Mapping[str, dict[float, float]]]
) -> list[Claim]:
    def mean(name: str) -> float:
        return float(np.mean(list(errors[name].values())))

    best = min((name for name in errors if name.startswith("Slicing")), key=mean)
    guessed = {
        target: {name: float(np.mean(list(line.values()))) for name, line in lines.items()} for target, lines in learned.items()
    }
    sliced = {target: max(v for n, v in means.items() if n.startswith("Slicing")) for target, means in guessed.items()}
    above = [target for target, means in guessed.items() if sliced[target] > means["Mondrian, generalized"]]
    matched = [target for target, means in guessed.items() if sliced[target] >= means["Mondrian, bucketized"]]
    table = [target for target, means in guessed.items() if sliced[target] >= means["the table itself"]]
    return [
        Claim(
            "slicing preserves more utility than generalization",
            ((mean(best) < mean("Mondrian, generalized")) + len(above) / len(guessed)) / 2,
            f"query error {mean(best):.1%} ({best}) compared with {mean('Mondrian, generalized'):.1%}; guesses better for "
            f"{', '.join(above) or 'neither target'}",
        ),
        Claim(
            "where the sensitive attribute is involved it is better than bucketization",
            ((mean(best) < mean("Mondrian, bucketized")) + len(matched) / len(guessed)) / 2,
            f"query error {mean(best):.1%} compared with {mean('Mondrian, bucketized'):.1%}; guesses as well for "
            f"{', '.join(matched) or 'neither target'}",
        ),
        Claim(
            "in some classifications it is better than the original data",
            bool(table),
            f"for {', '.join(table) or 'neither target'}",
        ),
    ]


EXPERIMENTS: dict[str, Experiment] = {
    "fakes": fakes,
    "matching": matching,
    "printed": printed,
    "groupings": groupings,
    "worth": worth,
}

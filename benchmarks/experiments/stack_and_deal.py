"""The Stack & Deal paper, sec. 5: how many values a class has, and how far it is from the table, over k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import tables
from closeknit.io.files import read
from experiments.dealing import (
    BY_FREQUENCY,
    BY_VALUE,
    ORDERS,
    Drawn,
    at,
    count_first,
    dealt,
    free_sizes,
    least_distinct,
    over_k,
    panel,
    within,
)
from experiments.figures import Claim, Experiment, Figure, Trial
from experiments.small_tables import HABERMAN, TRANSFUSION, Secret, frequencies, small
from pictures import Panel

DRAWS = 100
MOST = "the most that so many classes can have"
RAND_1, RAND_2 = "Rand1", "Rand2"


def figure_1(trial: Trial) -> Figure:
    """The made-up frequencies: all six values in every class from k = 9 on."""
    secret, ks = frequencies(), range(2, 13)
    found = _diversity(secret, ks)
    first = min((k for k in ks if found[BY_VALUE][k] == 6), default=None)
    return Figure(
        "Figure 1: fewest values of a class over k, made-up frequencies",
        f"{secret.remark} Dealing as printed; floor(n / k) classes.",
        [Claim("every class has all six values from k = 9 on", first == 9, f"from k = {first} on")],
        [Panel("k", "fewest different values of a class", found)],
        remark=_best(found),
    )


def figure_2(trial: Trial) -> Figure:
    """Adult, two sensitive attributes that the source may have had."""
    ks = trial.some(range(2, 22), (2, 5, 9, 14))
    secrets = {name: _adult(name, trial) for name in ("occupation", "education")}
    found = {name: _diversity(secret, ks) for name, secret in secrets.items()}
    printed = {name: lines.get(BY_FREQUENCY, lines[BY_VALUE]) for name, lines in found.items()}
    falls = [name for name, line in printed.items() if np.any(np.diff(list(line.values())) < 0)]
    most = {name: int(max(line.values())) for name, line in printed.items()}
    sizes = {name: int(np.unique(secret.table.secret(name)[0]).size) for name, secret in secrets.items()}
    return Figure(
        "Figure 2: fewest values of a class over k, Adult",
        f"{secrets['occupation'].remark} The source does not name the sensitive attribute: occupation, and education. Dealing "
        "as printed.",
        [
            Claim(
                "the number of values grows with k as for the made-up frequencies",
                1 - len(falls) / len(found),
                "it never falls" if not falls else f"it falls somewhere for {', '.join(falls)}",
            )
        ],
        [Panel("k", f"fewest different values of a class, {name}", lines) for name, lines in found.items()],
        remark="Not every class has all values: "
        + ", ".join(f"{most[n]} of {sizes[n]} ({n})" for n in found)
        + " at the largest k; the rarest have fewer rows than there are classes. "
        + _best(*found.values()),
    )


def _diversity(secret: Secret, ks: Sequence[int]) -> dict[str, dict[float, float]]:
    """Fewest values of a class; and a bound: a value fills at most as many classes as it has rows."""
    codes, _ = secret.table.secret(secret.name)
    counts, found = np.bincount(codes), {name: {} for name in ORDERS} | {MOST: {}}
    for k in ks:
        for name, order in ORDERS.items():
            found[name][float(k)] = float(least_distinct(secret, dealt(secret, k, order)))
        classes = len(codes) // k
        found[MOST][float(k)] = float(min(k, np.minimum(counts, classes).sum() // classes))
    if found[BY_VALUE] == found[BY_FREQUENCY]:
        del found[BY_FREQUENCY]
    return found


def _best(*found: Mapping[str, Mapping[float, float]]) -> str:
    """Where dealing has as many values as any partition with as many classes can have."""
    said = []
    for name in ORDERS:
        same = [lines.get(name, lines[BY_VALUE])[k] == most for lines in found for k, most in lines[MOST].items()]
        said.append(f"{name} at {sum(same)} of {len(same)} points")
    return f"As many as any partition into so many classes can have: {', '.join(dict.fromkeys(said))}."


def _adult(name: str, trial: Trial) -> Secret:
    source = tables.adult_all(trial.place, trial.rows(2_000))
    columns = read(source.path, None, ["age", name])
    kinds = {**source.schema.quasi, **source.schema.sensitive}
    schema = type(source.schema)(quasi={"age": kinds["age"]}, sensitive={name: kinds[name]})
    return Secret(schema.encode(columns), name, source.remark)


def figure_3(trial: Trial) -> Figure:
    """The made-up frequencies among random classes."""
    secret, ks = frequencies(), trial.some(range(2, 21), (2, 5, 12))
    draws = 10 if trial.quick else DRAWS
    line = over_k(secret, ks)
    drawn = {
        "random": Drawn.of(secret, free_sizes, ks, draws, 10),
        "number of classes first": Drawn.of(secret, count_first, ks, draws, 11),
    }
    below = {name: [k for k, count in one.below(line).items() if count] for name, one in drawn.items()}
    other = sorted({k for found in below.values() for k in found if k != 2})
    falls = float(np.corrcoef(list(line), list(line.values()))[0, 1])
    larger = [size for one in drawn.values() for size in one.sizes_below(line)]
    return Figure(
        "Figure 3: worst distance over k, made-up frequencies",
        f"{secret.remark} {draws} random partitions for each k: classes of at least k, every partition equally likely; and "
        "with the number of classes drawn first, so that sizes differ a lot. The source does not say how it drew.",
        [
            Claim("the distance falls as k grows", falls < 0, f"correlation {falls:.2f}"),
            Claim(
                "dealing has the least distance, but for k = 2, where classes of very different sizes come nearer",
                1 - len(other) / len(ks),
                f"uniformly drawn ones are nearer at {at(below['random'])}, those with the number of classes drawn first at "
                f"{at(below['number of classes first'])}"
                + (f"; the nearer ones have classes of {np.median(larger):.1f} times k rows (median)" if larger else ""),
            ),
        ],
        [
            panel("", {BY_VALUE: line, **drawn["random"].lines()}),
            panel("", {BY_VALUE: line, **drawn["number of classes first"].lines()}),
        ],
    )


def figure_4(trial: Trial) -> Figure:
    """Blood transfusion."""
    title = "Figure 4: counts that differ by two and by three, blood transfusion"
    return _within(title, "transfusion", TRANSFUSION, trial, " (Monetary is always 250 times Frequency)")


def figure_5(trial: Trial) -> Figure:
    """Haberman's survival."""
    return _within("Figure 5: counts that differ by two and by three, Haberman's survival", "haberman", HABERMAN, trial)


def _within(title: str, name: str, columns: Mapping[str, str], trial: Trial, left_out: str = "") -> Figure:
    """One panel for each column that may have been the sensitive attribute."""
    ks, draws = trial.some(range(2, 21), (3, 8)), 3 if trial.quick else DRAWS
    panels, apart, ordered, points, nearer = [], 0, 0, 0, 0
    remark = ""
    for short, column in columns.items():
        secret = small(name, column, trial)
        line = over_k(secret, ks)
        rands = {RAND_1: Drawn.of(secret, within(2), ks, draws, 12), RAND_2: Drawn.of(secret, within(3), ks, draws, 13)}
        medians = {rand: one.lines(rand)[f"{rand}, median"] for rand, one in rands.items()}
        least = {f"{rand}, least": one.lines(rand)[f"{rand}, least"] for rand, one in rands.items()}
        panels.append(panel(short, {BY_VALUE: line, **{f"{rand}, median": m for rand, m in medians.items()}, **least}))
        points += len(line)
        apart += sum(line[k] < medians[RAND_1][k] for k in line)
        ordered += sum(medians[RAND_1][k] < medians[RAND_2][k] for k in line)
        nearer += sum(sum(one.below(line).values()) for one in rands.values())
        remark = secret.remark
    return Figure(
        title,
        f"{remark} The source does not name the sensitive attribute: one panel for each column that may have been "
        f"it{left_out}. Ordered "
        f"distance over the values that occur. {draws} partitions for each k, by a random walk: counts of a value in two "
        "classes differ by two (Rand1) or three (Rand2) at most, and for some value by so much; classes of at least k rows.",
        [
            Claim(
                "the less the counts differ, the nearer the classes: dealing before Rand1",
                apart / points,
                f"below the median of Rand1 at {apart} of {points} points; {nearer:,} of {2 * draws * points:,} random ones "
                "are nearer than dealing",
            ),
            Claim("and Rand1 before Rand2", ordered / points, f"by medians at {ordered} of {points} points"),
        ],
        panels,
    )


EXPERIMENTS: dict[str, Experiment] = {"1": figure_1, "2": figure_2, "3": figure_3, "4": figure_4, "5": figure_5}

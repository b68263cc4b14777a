"""The dissertation on methods to achieve t-closeness, ch. 3: an example, one sensitive attribute among random partitions."""

from __future__ import annotations

import numpy as np

import partitions
from experiments import choice_of_k, two_secrets
from experiments.dealing import BY_FREQUENCY, BY_VALUE, ORDERS, Drawn, Groups, at, dealt, distances, over_k, panel
from experiments.figures import Claim, Experiment, Figure, Trial
from experiments.small_tables import SALARIES, Secret, cholesterol, frequencies, of_counts
from pictures import Panel

KS, DRAWS, K_OF_TABLES = range(5, 21), 100, 50
GROUPS: dict[str, Groups] = {
    "A, neither property": partitions.neither,
    "B, equal sizes": partitions.sizes_only,
    "C, both": partitions.both,
    "D, even values": partitions.values_only,
    "D, number of classes first": partitions.values_only_count_first,
}
A, B, C, D, D_FIRST = GROUPS
# Table 3.3: rows of each salary in each class, salaries by frequency; table 3.4: distances.
PRINTED_COUNTS = (
    (9, 8, 7, 6, 5, 4, 3, 4, 3, 1),
    (9, 7, 8, 6, 5, 4, 3, 3, 3, 2),
    (8, 8, 8, 6, 5, 4, 3, 3, 3, 2),
    (8, 8, 7, 7, 4, 4, 4, 3, 3, 2),
    (8, 8, 7, 6, 5, 4, 4, 3, 3, 2),
)
PRINTED_DISTANCES = (0.009778, 0.005778, 0.005338, 0.006664, 0.007995)


def tables_3(trial: Trial) -> Figure:
    """250 salaries in five classes of 50."""
    secret = of_counts(SALARIES, "")
    found = {name: _classes(secret, order) for name, order in ORDERS.items()}
    by_frequency = np.argsort(-np.array(list(SALARIES.values())), kind="stable")
    counts, t = found[BY_FREQUENCY]
    same = sorted(map(tuple, counts[:, by_frequency].tolist())) == sorted(PRINTED_COUNTS)
    nearest = max(found[BY_VALUE][1])
    values = list(SALARIES)
    rows = [[f"class {i + 1}", *row] for i, row in enumerate(counts[:, by_frequency].tolist())]
    return Figure(
        "Tables 3.2 to 3.4: an example of 250 salaries",
        f"250 rows, ten salaries with the frequencies of table 3.2, k = {K_OF_TABLES}: five classes. Distances are ordered, "
        "over the ten salaries in the order of their values. Classes are listed in the order of their salaries' counts.",
        [
            Claim("dealing by frequency gives the classes of table 3.3", same, "the same counts" if same else "other counts"),
            Claim(
                f"these classes are {max(PRINTED_DISTANCES)}-close",
                bool(max(t) <= max(PRINTED_DISTANCES) + 5e-7),
                f"they are {max(t):.6f}-close; the source measures along the ranks of frequencies, where 85K lies between 75K "
                "and 55K",
            ),
        ],
        [
            Panel(
                "class",
                "ordered distance",
                {name: dict(enumerate(map(float, d), 1)) for name, (_, d) in found.items()},
                reported={"printed (table 3.4), along ranks of frequency": dict(enumerate(PRINTED_DISTANCES, 1))},
            )
        ],
        tables=[(["dealt by frequency: rows with", *(f"{values[i]}K" for i in by_frequency)], rows)],
        remark=f"Dealt in the order of salaries, the default here, classes are {nearest:.6f}-close: "
        f"{nearest / max(t):.0%} of the distance of dealing by frequency.",
    )


def _classes(secret: Secret, order: str) -> tuple[np.ndarray, np.ndarray]:
    """Counts and distances, in the order of the printed classes: most of the most frequent value first."""
    partition = dealt(secret, K_OF_TABLES, order)
    codes, _ = secret.table.secret(secret.name)
    counts = np.zeros((partition.count, len(SALARIES)), dtype=np.int64)
    np.add.at(counts, (partition.class_of, codes), 1)
    by_frequency = np.argsort(-counts.sum(axis=0), kind="stable")
    order_of = np.lexsort([-counts[:, j] for j in by_frequency[::-1]])
    return counts[order_of], distances(secret, partition)[order_of]


def figure_3_1(trial: Trial) -> Figure:
    """The made-up frequencies."""
    return _groups("Figure 3.1: one sensitive attribute among random partitions, made-up frequencies", frequencies(), trial)


def figure_3_2(trial: Trial) -> Figure:
    """Heart disease."""
    secret = cholesterol(trial)
    return _groups("Figure 3.2: one sensitive attribute among random partitions, heart disease", secret, trial)


def _groups(title: str, secret: Secret, trial: Trial) -> Figure:
    """One panel for each group."""
    ks, draws = trial.some(KS, (5, 12)), DRAWS if not trial.quick else 10
    lines = {name: over_k(secret, ks, order) for name, order in ORDERS.items()}
    if lines[BY_VALUE] == lines[BY_FREQUENCY]:
        del lines[BY_FREQUENCY]
    drawn = {name: Drawn.of(secret, group, ks, draws, number) for number, (name, group) in enumerate(GROUPS.items())}
    ours = lines[BY_VALUE]
    return Figure(
        title,
        f"{secret.remark} k from {min(ks)} to {max(ks)}; {draws} random partitions for each k and group, A and B uniform, C "
        "and D by a random walk; number of classes first: of D, with few large classes as likely as many small ones. "
        "Distances are ordered, in the order of values; dealing as printed, one row after the other.",
        _said(drawn, ours, draws),
        [panel(f"Group {name}", {**lines, **one.lines()}) for name, one in drawn.items()],
        remark=_as_printed(lines, drawn),
    )


def _said(drawn: dict[str, Drawn], ours: dict[float, float], draws: int) -> list[Claim]:
    below = {name: one.below(ours) for name, one in drawn.items()}
    beaten = {name: [k for k, count in counts.items() if count] for name, counts in below.items()}
    far = min(float(np.min(one.measured[k])) / ours[k] for one in (drawn[A], drawn[B]) for k in ours)
    larger = [size for group in (D, D_FIRST) for size in drawn[group].sizes_below(ours)]
    either = sorted({*beaten[D], *beaten[D_FIRST]})
    return [
        Claim(
            "every random partition of groups A and B is far less close, at every k",
            1 - len({*beaten[A], *beaten[B]}) / len(ours),
            f"the nearest one has {far:.1f} times the distance of dealing"
            + (f"; one is nearer at {at(sorted({*beaten[A], *beaten[B]}))} only" if far < 1 else ""),
        ),
        Claim(
            "none of group C is closer than dealing",
            1 - len(beaten[C]) / len(ours),
            f"{sum(below[C].values())} of {draws * len(ours):,} are, at {at(beaten[C])}"
            + (f", by up to {drawn[C].gained(ours):.0%}" if beaten[C] else ""),
        ),
        Claim(
            "at every k some of group D are closer, and their classes are much larger",
            len(either) / len(ours) if larger and np.median(larger) > 1.5 else 0,
            f"at {at(beaten[D])} among partitions drawn by the walk, at {len(beaten[D_FIRST])} of {len(ours)} k among those "
            "whose number of classes was drawn first"
            + (f"; their classes have {np.median(larger):.1f} times k rows (median)" if larger else ""),
        ),
    ]


def _as_printed(lines: dict[str, dict[float, float]], drawn: dict[str, Drawn]) -> str:
    if BY_FREQUENCY not in lines:
        return ""
    ours, printed = lines[BY_VALUE], lines[BY_FREQUENCY]
    better = [k for k in ours if ours[k] < printed[k]]
    worse = [k for k in ours if ours[k] > printed[k]]
    nearer = drawn[C].below(printed)
    return (
        f"Dealing in the order of values is closer than dealing by frequency, as printed, at {len(better)} of {len(ours)} k, "
        f"and less close at {len(worse)}. Of group C, {sum(nearer.values()):,} are closer than the printed one."
    )


EXPERIMENTS: dict[str, Experiment] = {
    "tables-3": tables_3,
    "3.1": figure_3_1,
    "3.2": figure_3_2,
    "5.1": two_secrets.figure_5_1,
    "6.1": choice_of_k.figure_6_1,
}

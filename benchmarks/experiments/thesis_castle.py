"""CASTLE's experiments (the thesis on SABRE and BUREL, ch. 5): what a stream loses (figures 5.5 to 5.8, 5.12, 5.13)."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import closeknit as ck
from experiments.figures import Claim, Experiment, Figure, Trial
from experiments.thesis_adult import (
    CASTLE,
    COMPLETE,
    DELTAS,
    ETA,
    KNN,
    KS,
    MU,
    QUASI,
    REUSE,
    TEN,
    TRAINING,
    WAYS,
    K,
    Lines,
    Table,
    adult,
    loss,
    panel,
)
from experiments.thesis_claims import Drawn, ahead, moves

ETAS, MUS = (10, 25, 50, 100, 200), (10, 50, 100, 150, 200)
ALPHAS, LENGTHS = (0.5, 1, 1.5, 2), (5, 10, 15)
LS = {"age": (10, 20, 30, 40, 50), "occupation": (4, 6, 8, 10, 12)}
VALUES, COLUMNS = 1_000, 4  # of generated rows; ours


def eta_and_mu(trial: Trial) -> Figure:
    """Figure 5.5."""
    panels, claims = [], []
    for name, table in adult(trial).items():
        lines: Lines = {
            f"mu = {mu}": {eta: loss(CASTLE, table, TEN, eta=eta, mu=mu) for eta in trial.some(ETAS, ETAS[::4])}
            for mu in trial.some(MUS, MUS[2:3])
        }
        claims.append(_best(name, lines))
        lines[KNN] = dict.fromkeys(lines[f"mu = {MU}"], loss(KNN, table, TEN))
        panels.append(panel("eta", lines, name))
    settings = adult(trial)[COMPLETE].settings(f"The ten columns of its table 5.4: {', '.join(TEN)}. {WAYS}")
    return Figure("CASTLE over eta and mu (figure 5.5)", settings, claims, panels)


def quasi_and_k(trial: Trial) -> Figure:
    """Figure 5.6."""
    panels, ways = [], (CASTLE, REUSE, KNN)
    over_quasi: Lines = {}
    over_k: Lines = {}
    for name, table in adult(trial).items():
        by_quasi = {way: {n: loss(way, table, TEN[: int(n)]) for n in trial.some(QUASI, QUASI[::4])} for way in ways}
        by_k = {way: {k: loss(way, table, TEN, k=k) for k in trial.some(KS, KS[::3])} for way in ways}
        panels += [panel("quasi-identifiers", by_quasi, name), panel("k", by_k, name)]
        over_quasi |= {f"{way}, {name}": line for way, line in by_quasi.items()}
        over_k |= {f"{way}, {name}": line for way, line in by_k.items()}
    names = [name for name in over_k if not name.startswith(KNN)]
    claims = [
        moves(over_quasi, names, "the loss grows with the number of columns", grows=True),
        moves(over_k, names, "it grows with k", grows=True),
    ]
    settings = adult(trial)[COMPLETE].settings(f"Columns in the order of figure 5.5. {WAYS}")
    return Figure(
        "CASTLE over quasi-identifiers and k (figure 5.6)", settings, claims, panels, remark=_compare_with_knn(panels[0].lines)
    )


def power_law(trial: Trial) -> Figure:
    """Figure 5.7."""
    scale = adult(trial)[COMPLETE].scale
    rows, panels = round(45_222 * scale), []
    kinds = {**ck.datasets.power_law_schema(COLUMNS, VALUES).quasi, "s": ck.flat()}
    names = [name for name in kinds if name != "s"]
    alphas = trial.some(ALPHAS, ALPHAS[::3])
    made = {alpha: Table(ck.datasets.power_law(rows, COLUMNS, VALUES, alpha), kinds, scale) for alpha in alphas}
    every: Lines = {}
    ks, places = trial.some(KS, KS[1:2]), trial.some(DELTAS, DELTAS[::3])
    for k in ks:
        lines: Lines = {
            f"alpha = {alpha}": {delta: loss(CASTLE, made[alpha], names, "s", k=k, delta=delta) for delta in places}
            for alpha in alphas
        }
        panels.append(panel("delta", lines, f"k = {k}"))
        every |= {f"{name}, k = {k}": line for name, line in lines.items()}
    pairs = [(f"alpha = {b}, k = {k}", f"alpha = {a}, k = {k}") for k in ks for a, b in pairwise(alphas)]
    claims = [ahead(every, pairs, "the more clustered values are, the less is lost (loss of one over that of the other)")]
    settings = (
        f"{rows:,} generated rows, {COLUMNS} columns with p(v) = c / v^alpha, v = 1..{VALUES:,}: rows, columns, values and "
        f"alphas are ours. eta = {ETA}, mu = {MU}."
    )
    return Figure("CASTLE on power laws (figure 5.7)", settings, claims, panels)


def baskets(trial: Trial) -> Figure:
    """Figure 5.8."""
    training = adult(trial)[TRAINING]
    by_quasi: Lines = {}
    by_k: Lines = {}
    for length in trial.some(LENGTHS, LENGTHS[:1]):
        joined = ck.datasets.with_baskets(training.columns, length)
        table = Table(joined, {**training.kinds, "item": ck.flat()}, training.scale)
        ask = partial(loss, CASTLE, table, secret="item", person="pid")
        by_quasi[f"mean length {length}"] = {n: ask(TEN[: int(n)]) for n in trial.some(QUASI, QUASI[::4])}
        by_k[f"mean length {length}"] = {k: ask(TEN[:4], k=int(k)) for k in trial.some(KS, KS[::3])}
    claims = [
        moves(by_quasi, list(by_quasi), "the loss grows with the number of columns", grows=True),
        moves(by_k, list(by_k), "it grows with k", grows=True),
    ]
    settings = training.settings(
        "Every row has a generated basket and comes once for each item of it, one after the other; k counts persons, delta "
        "rows. Columns in the order of figure 5.5; over k the first four."
    )
    panels = [panel("quasi-identifiers", by_quasi, f"k = {training.size(K)}"), panel("k", by_k, "four quasi-identifiers")]
    return Figure("CASTLE with several rows of a person (figure 5.8)", settings, claims, panels)


def diversity_of_age(trial: Trial) -> Figure:
    """Figure 5.12."""
    return _diversity(trial, "5.12", "age")


def diversity_of_occupation(trial: Trial) -> Figure:
    """Figure 5.13."""
    return _diversity(trial, "5.13", "occupation")


# What the figures share ----------------------------------------------------------------------------------------------------


def _diversity(trial: Trial, figure: str, secret: str) -> Figure:
    table = adult(trial)[TRAINING]
    quasi = [name for name in TEN if name != secret][:5]
    places = trial.some(LS[secret], (2, 3))
    lines: Lines = {way: {l: loss(way, table, quasi, secret, l=l) for l in places} for way in (CASTLE, KNN)}
    claims = [moves(lines, (CASTLE, KNN), "the loss grows with l", grows=True)]
    settings = table.settings(
        f"l values of {secret} that l different persons carry; quasi-identifiers {', '.join(quasi)}. {WAYS}"
    )
    remark = "A class of k rows has several values anyway: l matters only once it requires more of them."
    return Figure(f"CASTLE with diversity of {secret} (figure {figure})", settings, claims, [panel("l", lines)], remark=remark)


def _best(name: str, lines: Drawn) -> Claim:
    """Where the least loss lies."""
    least, eta, mu = min((y, x, line) for line, points in lines.items() for x, y in points.items())
    usual = lines[f"mu = {MU}"].get(ETA, least)
    said = f"least with eta = {eta:g} and {mu}, {least:.4f}; with eta = {ETA} and mu = {MU} {usual / least - 1:.1%} more"
    return Claim(f"eta = {ETA} and mu = {MU} lose least ({name})", eta == ETA and usual <= 1.005 * least, said)


def _compare_with_knn(lines: Drawn) -> str:
    found = {x: lines[KNN][x] / y for x, y in lines[CASTLE].items()}
    listed = ", ".join(f"{share:.2f} with {x:g} columns" for x, share in found.items())
    return f"The loss of KNN relative to that of CASTLE on {COMPLETE}: {listed}."


EXPERIMENTS: dict[str, Experiment] = {
    "5.5": eta_and_mu,
    "5.6": quasi_and_k,
    "5.7": power_law,
    "5.8": baskets,
    "5.12": diversity_of_age,
    "5.13": diversity_of_occupation,
}

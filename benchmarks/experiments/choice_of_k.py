"""The automatic choice of k: privacy loss falls with k, information loss grows, and alpha weighs them.

The dissertation on methods to achieve t-closeness, ch. 6, figure 6.1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.stats import spearmanr

import closeknit as ck
from closeknit.core.choice import Choice
from experiments.dealing import over_k
from experiments.figures import Claim, Figure, Trial
from experiments.small_tables import Secret, cholesterol, frequencies
from pictures import Panel
from trials import SEED

KS, ALPHAS = range(2, 21), (0.0, 0.25, 0.5, 0.75, 1.0)
MADE_UP, HEART = "made-up frequencies", "heart disease, chol"
PRINTED, SCALED = "as printed", "both scaled to 0..1"


def figure_6_1(trial: Trial) -> Figure:
    """Dealing over k, and which k each alpha takes."""
    secrets = {MADE_UP: frequencies(), HEART: cholesterol(trial)}
    ks = trial.some(KS, (2, 5, 9, 14))
    lines = {name: over_k(secret, ks) for name, secret in secrets.items()}
    alphas = trial.some(ALPHAS, (0.0, 0.5, 1.0))
    found = {name: {alpha: _choice(secrets[HEART], alpha, name == SCALED) for alpha in alphas} for name in (PRINTED, SCALED)}
    chosen = {name: {alpha: float(choice.k) for alpha, choice in line.items()} for name, line in found.items()}
    candidates = found[PRINTED][0.0].candidates
    weighed = {"t": {c.k: float(c.t or 0) for c in candidates}, "loss A": {c.k: float(c.loss or 0) for c in candidates}}
    return Figure(
        "Figure 6.1: privacy loss over k, and the choice of k",
        f"{secrets[HEART].remark} Dealing in the order of values, on the left as printed, for the choice with regard to "
        "quasi-identifiers; the source does not say of which table its figure is. Choice: k = 2 to the number of values, by "
        "the least alpha * t + (1 - alpha) * loss A, measured on written cells; the source draws none of it.",
        [
            Claim(
                "privacy loss tends to decrease as k increases",
                all(_falls(line) < -0.5 for line in lines.values()),
                "rank correlation with k " + ", ".join(f"{_falls(line):.2f} ({name})" for name, line in lines.items()),
            )
        ],
        [
            Panel("k", "worst ordered distance (privacy loss)", lines),
            Panel("k", "heart disease: t and loss A", weighed),
            Panel("alpha", "chosen k, heart disease", chosen),
        ],
        remark=_said(chosen, weighed),
    )


def _choice(secret: Secret, alpha: float, scaled: bool) -> Choice:
    return ck.choose_k(secret.path, secret.table.schema, column=secret.name, alpha=alpha, scaled=scaled, seed=SEED, jobs=1)


def _falls(line: Mapping[float, float]) -> float:
    """Rank correlation with k."""
    return float(spearmanr(list(line), list(line.values())).statistic)


def _said(chosen: Mapping[str, Mapping[float, float]], weighed: Mapping[str, Mapping[float, float]]) -> str:
    t, loss = (np.ptp(list(line.values())) for line in weighed.values())
    taken = {name: ", ".join(f"{k:g}" for k in dict.fromkeys(line.values())) for name, line in chosen.items()}
    return (
        f"Over the candidates t changes by {t:.2f} and the loss by {loss:.2f}. With alpha from 0 to 1, the cost as printed "
        f"chooses k = {taken[PRINTED]}; with both scaled to 0..1 k = {taken[SCALED]}."
    )

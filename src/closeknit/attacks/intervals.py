"""Confidence intervals that hold for any number of draws: of a share, and of the mean of bounded numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

STEPS = 2_000  # candidates of a mean between its bounds
BETS = np.linspace(0.025, 0.975, 20)  # shares of the largest stake that cannot lose everything


def share_interval(hits: int, draws: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson for a share: exact for independent draws.

    Args:
        hits: How many draws had the property.
        draws: How many there were.
        confidence: Probability with which the interval contains the share, at least.

    >>> [round(end, 3) for end in share_interval(0, 30)], [round(end, 3) for end in share_interval(15, 30)]
    ([0.0, 0.116], [0.313, 0.687])
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = float(betaincinv(hits, draws - hits + 1, tail)) if hits else 0.0
    return low, float(betaincinv(hits + 1, draws - hits, 1 - tail)) if hits < draws else 1.0


def mean_interval(values: Sequence[float], least: float, most: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval for the mean of independent numbers between two bounds, by betting (Waudby-Smith and Ramdas).

    A mean m is excluded if someone who bets against it, on average over fixed stakes, would have multiplied their money
    by 1 / (1 - confidence): under m that happens with at most this probability, for any distribution and number of draws.

    Args:
        values: The numbers.
        least: No number is smaller.
        most: No number is larger.
        confidence: Probability with which the interval contains the mean, at least.

    >>> [round(end, 2) for end in mean_interval([0.0] * 30, 0, 1)], mean_interval([], 0, 1)
    ([0.0, 0.16], (0, 1))
    """
    if not len(values):
        return least, most
    x = (np.asarray(values, dtype=np.float64) - least) / (most - least)
    means = np.linspace(0, 1, STEPS + 1)[1:-1]
    money = []
    for stakes in (np.outer(BETS, 1 / means), np.outer(BETS, -1 / (1 - means))):
        money.append(np.log1p(stakes[:, :, None] * (x - means[:, None])).sum(axis=2))
    logs = np.concatenate(money)
    top = logs.max(axis=0)
    kept = means[top + np.log(np.exp(logs - top).mean(axis=0)) < -log(1 - confidence)]
    low = kept.min() if kept[0] > means[0] else 0.0
    high = kept.max() if kept[-1] < means[-1] else 1.0
    return float(least + low * (most - least)), float(least + high * (most - least))

"""How many people are unique in the population, estimated from the class sizes of a sample.

A sample unique is dangerous if the person is unique in the population too. Three estimators of their expected number read
nothing but c_i (the number of classes of size i) and N (the size of the population):

- *Zayatz*: a sample unique comes from a population class of size i with the probability that exactly one of i is drawn. Always
  available.
- *Pitman* (Hoshino): class sizes follow Pitman's sampling formula with parameters theta and alpha, fitted by maximum
  likelihood; the result is the exact expectation of its population uniques.
- *Slide negative binomial* (Chen and Keller-McNulty): population class sizes less one follow a negative binomial distribution,
  fitted to c_1, c_2 and a modified Shlosser estimate of the number of classes.

Dankar's rule chooses: Pitman if at most a tenth is sampled, otherwise the smaller of Zayatz and slide negative binomial; Zayatz
where the choice has no fit. The three can differ widely, and so can each of them between samples: see `SPREAD`.

Different from ARX: Pitman's expectation is exact instead of its asymptote, and its solver needs no starting value and no time
limit; N is not narrowed to 32 bits; the second equation of the slide negative binomial divides by (1-d)^(alpha+2), and the sum
of Shlosser has its bracket. An estimator without a fit is None with a reason, never 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, log, log1p

import numpy as np
from numpy.typing import ArrayLike

from closeknit.core.errors import BadInput
from closeknit.core.exact import Floats, Ints, Number
from closeknit.core.params import number

TENTH = Fraction(1, 10)
GRID = 60  # values of alpha among which the root of the profile score is bracketed
TOLERANCE = 1e-8  # largest residual of the slide negative binomial
STEPS = 100  # of least squares; where there is a solution, a dozen are enough
SPREAD = (
    "In 20 samples each of a census table in which 46 % of the people are unique, samples of 20 % gave 53 to 56 % (Zayatz), 46 "
    "to 50 % (Pitman) and 46 to 50 % (slide negative binomial), samples of 5 % gave 72 to 78 %, 38 to 56 % and 69 to 76 %: "
    "read these numbers as orders of magnitude."
)


@dataclass(frozen=True, eq=False)
class SizeCounts:
    """How many classes of each size there are.

    Args:
        sizes: The sizes that occur, ascending.
        counts: The number of classes of each of them.

    >>> found = SizeCounts.of([1, 3, 1])
    >>> found.sizes.tolist(), found.counts.tolist(), found.rows, found.classes, found.of_size(1)
    ([1, 3], [2, 1], 5, 3, 2)
    """

    sizes: Ints
    counts: Ints

    @classmethod
    def of(cls, class_sizes: ArrayLike) -> SizeCounts:
        """Count the sizes of classes; a size of 0 is left out."""
        given = np.asarray(class_sizes, dtype=np.int64)
        sizes, counts = np.unique(given[given > 0], return_counts=True)
        return cls(sizes, counts.astype(np.int64))

    @property
    def rows(self) -> int:
        """Rows of all classes, n."""
        return int(self.sizes @ self.counts)

    @property
    def classes(self) -> int:
        """Number of classes, C."""
        return int(self.counts.sum())

    def of_size(self, size: int) -> int:
        """Number of classes of this size."""
        return int(self.counts[self.sizes == size].sum())


class NoFit(Exception):
    """An estimator has no value for these sizes; the message is the reason."""


@dataclass(frozen=True)
class PopulationUniques:
    """Expected number of people who are unique in the population.

    Args:
        population: Size of the population, N.
        sample_uniques: Classes of one row in the sample.
        expected: Expected number by estimator; None where it has no fit.
        reasons: Why an estimator has no fit.
        rule: The estimator that Dankar's rule chooses.
    """

    population: Fraction
    sample_uniques: int
    expected: dict[str, float | None]
    reasons: dict[str, str] = field(default_factory=dict)
    rule: str = "zayatz"

    @property
    def chosen(self) -> float:
        """Expected number by the estimator that the rule chooses."""
        value = self.expected[self.rule]
        assert value is not None, "the rule falls back to an estimator that always has a value"
        return value

    @property
    def share(self) -> float:
        """The chosen number as a share of the population."""
        return self.chosen / float(self.population) if self.population else 0.0


def estimate_population_uniques(counts: SizeCounts, population: Number) -> PopulationUniques:
    """Estimate the population uniques with every estimator and choose one by Dankar's rule.

    Args:
        counts: Class sizes of the sample.
        population: Number of people in the population, at least the rows of the sample.

    >>> found = estimate_population_uniques(SizeCounts.of([1, 1, 2]), 8)
    >>> found.expected["zayatz"] == 28 / 11, found.expected["pitman"], found.reasons["pitman"], found.rule
    (True, None, 'the likelihood is largest at an alpha below 0', 'zayatz')
    """
    total = check_population(population, counts.rows)
    uniques = counts.of_size(1)
    if uniques == 0 or total == counts.rows:  # nothing to estimate: the sample has no unique, or is the population
        return PopulationUniques(total, uniques, {name: float(uniques) for name in ESTIMATORS})
    expected: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for name, estimate in ESTIMATORS.items():
        try:
            expected[name] = estimate(counts, total)
        except NoFit as reason:
            expected[name], reasons[name] = None, str(reason)
    return PopulationUniques(total, uniques, expected, reasons, _choose(expected, Fraction(counts.rows) / total))


def check_population(population: Number, rows: int) -> Fraction:
    """The size of the population as the number that was written; one smaller than the sample is refused.

    >>> check_population(7, rows=8)
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: a population of 7 is smaller than the 8 rows drawn from it; give the number of people ...
    """
    total = number("population", population, least=0)
    if total < rows:
        what = f"a population of {population} is smaller than the {rows:,} rows drawn from it"
        raise BadInput(what, right="give the number of people from whom the table was drawn")
    return total


def _choose(expected: dict[str, float | None], fraction: Fraction) -> str:
    if fraction <= TENTH:
        return "zayatz" if expected["pitman"] is None else "pitman"
    zayatz, snb = expected["zayatz"], expected["snb"]
    return "snb" if snb is not None and zayatz is not None and snb < zayatz else "zayatz"


def estimate_zayatz(counts: SizeCounts, population: Number) -> float:
    """c_1^2 / sum c_i h_i, where h_i is the probability that exactly one of i people is drawn.

    The running product keeps all digits, which a difference of log-gammas does not.

    Args:
        counts: Class sizes of the sample, with at least one of size 1.
        population: Number of people in the population, N.

    >>> round(estimate_zayatz(SizeCounts.of([1, 2, 2]), 10), 6), round(estimate_zayatz(SizeCounts.of([1, 4]), 10), 6)
    (0.62069, 1.354839)
    """
    n, total = counts.rows, float(Fraction(population))
    # the product falls below the smallest float after so many factors, each of which is at most 1 - n/N
    last = 800 / -log1p(-n / total) if n < total else 1.0
    most = int(min(float(counts.sizes[-1]), last + 2))
    m = np.arange(max(most - 1, 0))
    factors = np.maximum((total - n - m) / (total - 1 - m), 0.0) if most > 1 else np.empty(0)
    product = np.concatenate([[1.0], np.cumprod(factors)])
    drawn_once = counts.sizes * (n / total) * np.where(counts.sizes <= most, product[np.minimum(counts.sizes, most) - 1], 0.0)
    return float(counts.of_size(1) ** 2 / (counts.counts @ drawn_once))


@dataclass(frozen=True, eq=False)
class PitmanFit:
    """Maximum-likelihood parameters of Pitman's sampling formula.

    Args:
        theta: The first parameter, above -alpha.
        alpha: The second parameter, from 0 to below 1.
    """

    theta: float
    alpha: float

    def expect_uniques(self, population: float) -> float:
        """Exact expectation of the number of uniques among so many people."""
        from scipy.special import poch

        theta, rest = self.theta, 1 - self.alpha
        start = theta + self.alpha
        return float(population * poch(start, rest) / poch(start + population - 1, rest))


def fit_pitman(counts: SizeCounts) -> PitmanFit:
    """Fit Pitman's sampling formula: theta for each alpha by Brent's method, then alpha where the profile score is 0.

    Args:
        counts: Class sizes of the sample.

    >>> fit = fit_pitman(SizeCounts.of([1] * 60 + [2] * 12 + [3] * 4 + [4] * 3 + [6] * 2 + [9, 20]))
    >>> round(fit.expect_uniques(1490), 6)
    257.647982
    """
    from scipy.optimize import brentq

    if counts.classes == counts.rows:
        raise NoFit("every class is a single row, so the likelihood has no maximum")
    if counts.classes == 1:
        raise NoFit("there is only one class")
    score = _ProfileScore(counts)
    grid = np.linspace(0.0, 1 - 1e-6, GRID)
    before = score(0.0)
    if before < 0:
        raise NoFit("the likelihood is largest at an alpha below 0")
    for lo, hi in zip(grid[:-1].tolist(), grid[1:].tolist(), strict=True):
        after = score(hi)
        if before >= 0 > after:
            alpha = float(brentq(score, lo, hi, xtol=1e-14, rtol=1e-14))
            return PitmanFit(score.theta(alpha), alpha)
        before = after
    raise NoFit("the likelihood grows until alpha is 1")


def estimate_pitman(counts: SizeCounts, population: Number) -> float:
    """Expected population uniques under the fitted sampling formula; raises `NoFit` with the reason.

    Args:
        counts: Class sizes of the sample.
        population: Number of people in the population, N.
    """
    return fit_pitman(counts).expect_uniques(float(Fraction(population)))


class _ProfileScore:
    """Derivative of the log-likelihood by alpha, at the theta that is best for this alpha."""

    def __init__(self, counts: SizeCounts) -> None:
        self.counts, self.n, self.C = counts, counts.rows, counts.classes
        self.several = counts.sizes > 1

    def __call__(self, alpha: float) -> float:
        from scipy.special import digamma

        theta = self.theta(alpha)
        sizes, counts = self.counts.sizes[self.several], self.counts.counts[self.several]
        inside = counts @ (digamma(sizes - alpha) - digamma(1 - alpha))  # sum over j < i of 1 / (j - alpha)
        if alpha == 0:
            return float(self.C * (self.C - 1) / (2 * theta) - inside)
        return float((self.C - 1 - theta * _sum_of_reciprocals(theta, alpha, self.C)) / alpha - inside)

    def theta(self, alpha: float) -> float:
        """The best theta: the derivative by theta falls from plus infinity at -alpha to below 0."""
        from scipy.optimize import brentq

        def slope(at: float) -> float:
            theta = exp(at) - alpha
            return _sum_of_reciprocals(theta, alpha, self.C) - _sum_of_reciprocals(theta, 1.0, self.n)

        lo, hi = log(1e-9), log(float(self.n))
        while slope(lo) < 0:
            lo -= 10
            if lo < -600:
                raise NoFit("the likelihood grows until theta is -alpha")
        while slope(hi) > 0:
            hi += 5
            if hi > 600:
                raise NoFit("the likelihood grows with theta without end")
        return exp(float(brentq(slope, lo, hi, xtol=1e-13, rtol=1e-14))) - alpha


def _sum_of_reciprocals(theta: float, alpha: float, end: int) -> float:
    """Sum of 1 / (theta + i alpha) for i from 1 to end - 1."""
    if alpha == 0:
        return (end - 1) / theta
    return _digamma_growth(theta / alpha + 1, end - 1) / alpha


def _digamma_growth(x: float, by: float) -> float:
    """digamma(x + by) - digamma(x), without cancellation for a large x."""
    from scipy.special import digamma

    if x < 50:
        return float(digamma(x + by) - digamma(x))
    y = x + by
    first = by / (x * y)  # 1/x - 1/y
    second = first * (1 / x + 1 / y)  # 1/x^2 - 1/y^2
    fourth = second * (1 / x**2 + 1 / y**2)
    return log1p(by / x) + first / 2 + second / 12 - fourth / 120 + (1 / x**6 - 1 / y**6) / 252


def estimate_slide_negative_binomial(counts: SizeCounts, population: Number) -> float:
    """Expected population uniques if population class sizes less one are negative binomial; raises `NoFit` with the reason.

    Two equations for c_1 and c_2 are solved in logarithms by least squares, from all points of a grid.

    Args:
        counts: Class sizes of the sample.
        population: Number of people in the population, N.

    >>> sizes = [1] * 60 + [2] * 12 + [3] * 4 + [4] * 3 + [6] * 2 + [9, 20]
    >>> round(estimate_slide_negative_binomial(SizeCounts.of(sizes), 1490), 3)
    237.751
    """
    total = float(Fraction(population))
    pi, c1, c2 = counts.rows / total, counts.of_size(1), counts.of_size(2)
    if c2 == 0:
        raise NoFit("there is no class of two rows")
    classes = _count_population_classes(counts, pi)
    starts = np.stack(np.meshgrid(np.linspace(-6, 4, 8), np.linspace(-12, 6, 9), indexing="ij")).reshape(2, -1)
    found, misfit = _least_squares(lambda unknowns: _misfit(unknowns, pi, classes, c1, c2), starts)
    log_alpha, log_odds = found[:, np.argmin(misfit)]
    uniques = float(classes * np.exp(-np.exp(log_alpha) * np.logaddexp(0, -log_odds)))
    if misfit.min() >= TOLERANCE:
        raise NoFit("no parameters reproduce the number of classes of one and of two rows")
    if uniques > total:
        raise NoFit("the fitted number is larger than the population")
    return uniques


def _least_squares(misfit: Callable[[Floats], Floats], starts: Floats) -> tuple[Floats, Floats]:
    """Solve two equations from many starts at once (Levenberg and Marquardt): the unknowns, and the largest residual."""
    x, damping, small = starts, np.full(starts.shape[1], 1e-2), 1e-7
    with np.errstate(all="ignore"):  # a step beyond the range of floats is not taken
        residual = misfit(x)
        for _ in range(STEPS):
            slope = np.stack([(misfit(x + small * unit[:, None]) - residual) / small for unit in np.eye(2)], axis=1)
            gradient = np.einsum("ekn,en->kn", slope, residual)
            a, b, c = np.einsum("ekn,eln->kln", slope, slope)[[0, 0, 1], [0, 1, 1]]
            a, c = a * (1 + damping) + 1e-300, c * (1 + damping) + 1e-300
            step = np.stack([b * gradient[1] - c * gradient[0], b * gradient[0] - a * gradient[1]]) / (a * c - b * b)
            tried = misfit(x + step)
            better = np.square(tried).sum(axis=0) < np.square(residual).sum(axis=0)  # False where it is not finite
            x, residual = np.where(better, x + step, x), np.where(better, tried, residual)
            damping = np.where(better, damping / 10, damping * 5)
            if np.nanmin(np.abs(residual).max(axis=0)) < TOLERANCE**2:
                break
        return x, np.nan_to_num(np.abs(residual).max(axis=0), nan=np.inf)


def _count_population_classes(counts: SizeCounts, pi: float) -> float:
    """Number of classes in the population, by the modified estimator of Shlosser."""
    i, c = counts.sizes.astype(np.float64), counts.counts
    missed = np.exp(i * log1p(-pi))  # (1 - pi)^i
    a = c @ (i * pi**2 * np.exp((i - 1) * log1p(-(pi**2))))
    b = c @ (np.exp(i * log1p(-(pi**2))) * -np.expm1(-i * log1p(pi)))
    d = c @ missed
    e = c @ (i * pi * np.exp((i - 1) * log1p(-pi)))
    return float(counts.classes + counts.of_size(1) * (a / b) * (d / e) ** 2)


def _misfit(unknowns: Floats, pi: float, classes: float, c1: int, c2: int) -> Floats:
    """Both equations in logarithms; the unknowns are ln alpha and the log-odds of beta."""
    log_alpha, log_odds = unknowns
    alpha = np.exp(log_alpha)
    log_beta, log_rest = -np.logaddexp(0, -log_odds), -np.logaddexp(0, log_odds)  # ln beta, ln (1 - beta)
    d = (1 - pi) * np.exp(log_rest)
    log_kept = np.log1p(-d)
    first = log(classes * pi / c1) + alpha * (log_beta - log_kept) + np.log1p(alpha * d / (1 - d))
    second = log(classes * pi**2 / (2 * c2)) + log_alpha + alpha * log_beta + log_rest
    second += np.log(2 - (1 - alpha) * d) - (alpha + 2) * log_kept
    return np.stack([first, second])


ESTIMATORS: dict[str, Callable[[SizeCounts, Fraction], float]] = {
    "zayatz": estimate_zayatz,
    "pitman": estimate_pitman,
    "snb": estimate_slide_negative_binomial,
}

"""The measures of a release as lines of a table: one for each measure, with a cell for each sensitive attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from closeknit.core.grids import render_measured
from closeknit.metrics.distances import ClassDistances, Spread
from closeknit.metrics.measures import Measures
from closeknit.metrics.privacy_levels import Level, SecretLevels

NOTHING = "–"


@dataclass(frozen=True)
class Line:
    """One measure: its name, its value for each sensitive attribute, and its meaning."""

    name: str
    cells: tuple[str, ...]
    means: str


LEVELS: dict[str, tuple[Callable[[SecretLevels], Level | None], str]] = {
    "t, ordered distance": (lambda of: of.t.get("ordered"), "earth mover's distance, neighbouring values are near"),
    "t, hierarchical distance": (lambda of: of.t.get("hierarchical"), "earth mover's distance, values of one branch are near"),
    "t, equal distance": (lambda of: of.t.get("equal"), "half the sum of |q − p|: the total variation"),
    "beta, basic": (lambda of: of.beta_basic, "largest (q − p) / p: the relative gain in the probability of a value"),
    "beta, enhanced": (lambda of: of.beta_enhanced, "the same, with a bound that keeps every value from certainty"),
    "delta": (lambda of: of.delta, "largest |ln(q / p)|; no limit where a class lacks a value"),
    "l, distinct": (lambda of: of.l_distinct, "different values in the worst class"),
    "l, entropy": (lambda of: of.l_entropy, "equally frequent values that would be as mixed as the worst class"),
    "l, frequency": (lambda of: of.l_frequency, "rows of the worst class over those of its most frequent value"),
}
DISTANCES: dict[str, tuple[Callable[[ClassDistances], Spread | None], str]] = {
    "gain, worst and mean": (lambda of: of.gain, "bits learned from the class: the sum of q log(q / p)"),
    "KL, worst and mean": (lambda of: of.kl, "the sum of p log(p / q); no limit where a class lacks a value"),
    "JS, worst and mean": (lambda of: of.js, "Jensen-Shannon divergence, at most 1"),
    "total variation, worst and mean": (lambda of: of.variation, "share of the class that would have to change"),
}


def list_measures(measures: Measures) -> list[Line]:
    """Return every measure that has a meaning for at least one sensitive attribute.

    >>> import closeknit as ck
    >>> table, schema = ck.datasets.hospital(60), ck.datasets.hospital_schema()
    >>> release = ck.anonymize(table, schema, [ck.KAnonymity(3)], ck.StackAndDeal())
    >>> from closeknit.metrics.measures import measures
    >>> next(line.cells for line in list_measures(measures(release)) if line.name == "l, distinct")[0]
    '3'
    """
    return [line for line in _lines(measures) if any(cell != NOTHING for cell in line.cells)]


def _lines(measures: Measures) -> Iterator[Line]:
    secrets = measures.levels.secrets
    for name, (level_of, means) in LEVELS.items():
        yield Line(name, tuple(_level(level_of(found)) for found in secrets.values()), means)
    gamma = tuple(NOTHING if found.gamma is None else render_measured(found.gamma) for found in secrets.values())
    yield Line("gamma", gamma, "a written value changes odds by at most this factor")
    for name, (spread_of, means) in DISTANCES.items():
        found = [measures.distances.get(secret) for secret in secrets]
        yield Line(name, tuple(NOTHING if each is None else _spread(spread_of(each)) for each in found), means)
    values = [measures.diversity.get(secret) for secret in secrets]
    means = "different values in a class, minimum and mean"
    yield Line("values, minimum and mean", tuple(_pair(v.least, v.mean) if v and v.mean else NOTHING for v in values), means)
    outside = [measures.outside_majority.get(secret) for secret in secrets]
    means = "rows that do not have the most frequent value of their class"
    yield Line("outside the majority", tuple(NOTHING if x is None else f"{100 * x:.1f} %" for x in outside), means)


def _level(level: Level | None) -> str:
    return NOTHING if level is None else render_measured(level.measured)


def _spread(spread: Spread | None) -> str:
    return NOTHING if spread is None else _pair(spread.worst, spread.mean)


def _pair(one: float | None, other: float | None) -> str:
    return f"{render_measured(one)}; {render_measured(other)}"

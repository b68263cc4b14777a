"""`match_level`: varies a method's parameter until its release has a given level or loss, so that two methods can be compared
at the same level or loss.

Source: the thesis on SABRE and BUREL, sec. 4.4.1 (face to face: the same t, or the same loss).

The parameter is bisected. The measured level is not monotone in the requested one (a heuristic may do better with less room),
so bisection may miss a nearer setting: every setting tried is remembered, and the nearest one on the right side is returned.
The number of runs is bounded. A setting that is refused counts as too strict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from closeknit.core.params import choice, whole

T = TypeVar("T")
RUNS = 14
TOLERANCE = 0.01  # of the target
DIGITS = 4  # significant digits of the parameter


@dataclass(frozen=True)
class MatchResult(Generic[T]):
    """The setting found: its value, its result, the level of that, whether it is near enough, and the number of runs."""

    value: float
    result: T
    level: float
    met: bool
    runs: int


def match_level(
    run: Callable[[float], T],
    level: Callable[[T], float | None],
    target: float,
    strict: float,
    loose: float,
    *,
    side: str = "below",
    rises: bool = True,
    runs: int = RUNS,
    tolerance: float = TOLERANCE,
    whole_numbers: bool = False,
) -> MatchResult[T] | None:
    """Return the setting that comes nearest to a target without passing it; None if no setting tried is on the right side.

    Args:
        run: Computes a release with a value of the parameter.
        level: Returns the level of a release; None if it was refused.
        target: The level to reach.
        strict: The strictest value, above 0.
        loose: The loosest value, above 0.
        side: "below" if the level must be at most the target, "above" if at least.
        rises: Whether levels grow from strict to loose, as a measured t does and a loss does not.
        runs: Largest number of runs.
        tolerance: Share of the target within which the search stops.
        whole_numbers: Whether the parameter is a whole number.
    >>> found = match_level(lambda t: t, lambda t: t * 0.8, 0.2, strict=0.01, loose=1.0)
    >>> found.met, 0.198 <= found.level <= 0.2, found.runs <= 14
    (True, True, True)
    >>> found = match_level(lambda t: t, lambda t: 1 - t, 0.25, strict=0.01, loose=1.0, rises=False)
    >>> found.met, 0.24 < found.level <= 0.25
    (True, True)
    >>> match_level(lambda k: k, lambda k: 0.5, 0.2, strict=0.01, loose=1.0) is None
    True
    """
    choice("side", side, ("below", "above"))
    whole("runs", runs, least=1)
    search = _Search(run, level, target, side == "below", tolerance)
    looser_is_nearer = rises == (side == "below")  # of settings on the right side
    near_end, far_end = (loose, strict) if looser_is_nearer else (strict, loose)
    if search.right(_round_setting(near_end, whole_numbers)):  # no setting can be nearer
        return search.best
    while not search.met and len(search.seen) < runs - 1:
        middle = _round_setting(math.sqrt(strict * loose), whole_numbers)
        if middle in search.seen:
            break
        right = search.right(middle)
        if right is None or right == looser_is_nearer:
            strict = middle
        else:
            loose = middle
    if search.best is None and len(search.seen) < runs and (last := _round_setting(far_end, whole_numbers)) not in search.seen:
        search.right(last)
    return search.best


class _Search(Generic[T]):
    """Every setting tried, and the nearest on the right side."""

    def __init__(
        self, run: Callable[[float], T], level: Callable[[T], float | None], target: float, below: bool, tolerance: float
    ) -> None:
        self.run, self.level, self.target, self.below = run, level, target, below
        self.near = tolerance * abs(target)
        self.seen: set[float] = set()
        self._best: MatchResult[T] | None = None

    def right(self, value: float) -> bool | None:
        """Whether a setting is on the right side; None if it is refused."""
        self.seen.add(value)
        result = self.run(value)
        level = self.level(result)
        if level is None:
            return None
        right = level <= self.target if self.below else level >= self.target
        away = abs(level - self.target)
        if right and (self._best is None or away < abs(self._best.level - self.target)):
            self._best = MatchResult(value, result, level, away <= self.near, 0)
        return right

    @property
    def met(self) -> bool:
        """Whether one is near enough."""
        return self._best is not None and self._best.met

    @property
    def best(self) -> MatchResult[T] | None:
        """The nearest setting, with the number of runs."""
        return self._best and replace(self._best, runs=len(self.seen))


def _round_setting(value: float, whole_numbers: bool) -> float:
    """Round to a few digits, so that the setting is easy to read and to repeat."""
    return round(value) if whole_numbers else float(f"{value:.{DIGITS}g}")

"""`match_level`: turn a method's parameter until its release has a given level or loss, so that two methods are compared
where they are equal in one respect.

Source: the thesis on SABRE and BUREL, sec. 4.4.1 (face to face: the same t, or the same loss).

The parameter is bisected. What a release comes to is not monotone in what was asked (a heuristic may do better with less room),
so the bisection may miss a nearer setting: every setting it tries is remembered, and the nearest one on the right side is the
answer. The number of runs is bounded. A setting that is refused counts as too strict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from closeknit.core.params import choice, whole

T = TypeVar("T")
RUNS = 14
TOLERANCE = 0.01  # of the target
DIGITS = 4  # of a parameter that was found


@dataclass(frozen=True)
class MatchResult(Generic[T]):
    """The setting found: its value, what was made of it, what that comes to, whether that is near enough, and runs needed."""

    value: float
    made: T
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
    """The setting between `strict` and `loose` (both above 0) that comes nearest to `target` without passing it.

    `run(value)` makes a release, `level` says what it comes to (None where it was refused). `side`: "below" where at most the
    target is right, "above" where at least it. `rises`: whether levels grow from strict to loose, as a reached t does and a
    loss does not. None where no setting tried is on the right side.

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
    looser_is_nearer = rises == (side == "below")  # on the right side: does loosening come nearer to the target?
    near_end, far_end = (loose, strict) if looser_is_nearer else (strict, loose)
    if search.right(_round_setting(near_end, whole_numbers)):  # nothing can be nearer
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
        """Whether a setting is on the right side; None where it is refused."""
        self.seen.add(value)
        made = self.run(value)
        level = self.level(made)
        if level is None:
            return None
        right = level <= self.target if self.below else level >= self.target
        away = abs(level - self.target)
        if right and (self._best is None or away < abs(self._best.level - self.target)):
            self._best = MatchResult(value, made, level, away <= self.near, 0)
        return right

    @property
    def met(self) -> bool:
        """Whether one is near enough."""
        return self._best is not None and self._best.met

    @property
    def best(self) -> MatchResult[T] | None:
        """With the runs it took to know."""
        found = self._best
        return found and MatchResult(found.value, found.made, found.level, found.met, len(self.seen))


def _round_setting(value: float, whole_numbers: bool) -> float:
    """Few digits, so that people can read and repeat it."""
    return round(value) if whole_numbers else float(f"{value:.{DIGITS}g}")

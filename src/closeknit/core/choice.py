"""`Choice`: the k to publish a table with, and all candidates. Private: it is measured on the original table."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from closeknit.core.certificate import Count, Document, Record
from closeknit.core.grids import Summary, print_grid, render_number


class Candidate(Record):
    """One k and what its release measures."""

    k: Count
    t: float | None = None  # T_k, the largest distance of a class
    loss: float | None = None  # I_k
    score: float | None = None  # C, where it decides
    reason: str | None = None  # why there is no release


class Choice(Document):
    """All candidates and the chosen one.

    Args:
        rows: rows of the table.
        seed: seed of the runs.
        column: the sensitive attribute.
        rule: how k is chosen, in words.
        k: the chosen k; all rows if there is no candidate.
        candidates: what each k gives.

    >>> found = (Candidate(k=2, t=0.5, loss=0.1, score=0.5), Candidate(k=3, t=0.2, loss=0.3, score=0.5))
    >>> print(Choice(closeknit="0.1.0", rows=9, seed=7, column="wage", rule="the least C", k=3, candidates=found))
    the least C: k = 3
    <BLANKLINE>
    k  t of wage  loss    C
    2  0.5        0.1000  0.5000
    3  0.2        0.3000  0.5000  <- chosen
    """

    what: ClassVar[str] = "the choice of k"
    where: ClassVar[str] = "use what the to_json of a choice gave"

    rows: Count
    seed: int
    column: str
    rule: str
    k: Count
    candidates: tuple[Candidate, ...]

    @property
    def chosen(self) -> Candidate | None:
        """The chosen candidate; None if there is none."""
        return next((candidate for candidate in self.candidates if candidate.k == self.k), None)

    def records(self) -> list[dict[str, object]]:
        """One flat record per candidate."""
        return [{**dict(candidate), "chosen": candidate.k == self.k} for candidate in self.candidates]

    def summary(self) -> Summary:
        """One row per candidate."""
        return Summary(f"{self.rule}: k = {self.k:,} of {self.rows:,} rows", self._grid())

    def __str__(self) -> str:
        if not self.candidates:
            return f"{self.rule}: one class of all {self.rows:,} rows"
        reasons = [f"k = {one.k} has no release: {one.reason}" for one in self.candidates if one.reason]
        return print_grid([f"{self.rule}: k = {self.k}"], self._grid(), reasons)

    def _grid(self) -> list[list[str]]:
        grid = [["k", f"t of {self.column}", "loss", "C", ""]]
        for one in self.candidates:
            numbers = render_number(one.t), render_number(one.loss, ".4f"), render_number(one.score, ".4f")
            grid.append([str(one.k), *numbers, "<- chosen" if one.k == self.k else ""])
        return grid


def scores(ts: Sequence[Fraction], losses: Sequence[Fraction], alpha: Fraction, scaled: bool = True) -> list[Fraction]:
    """C = alpha T_k + (1 - alpha) I_k of each candidate, by default with both scaled to [0, 1] over the candidates.

    >>> half, third = Fraction(1, 2), Fraction(1, 3)
    >>> [str(c) for c in scores([Fraction(3), Fraction(1), Fraction(2)], [third, third, third], half)]
    ['1/2', '0', '1/4']
    """
    series = [_scale(ts), _scale(losses)] if scaled else [list(ts), list(losses)]
    return [alpha * t + (1 - alpha) * loss for t, loss in zip(*series, strict=True)]


def _scale(values: Sequence[Fraction]) -> list[Fraction]:
    """Scaled to [0, 1] over its range; a constant series is 0."""
    least, most = min(values), max(values)
    return [(value - least) / (most - least) if most > least else Fraction(0) for value in values]

"""`Transition`: the law of a perturbed attribute as a full matrix (PRAM): for each true value the chance of every written one.

Odds change at most by the largest ratio of two chances of the same written value, gamma = max P(v|u) / P(v|u'). A chance of 0
would exclude a true value, so every entry is positive. The matrix is declared before the table is read: one that is fitted to
the data, as invariant PRAM fits it, would disclose frequencies by itself.

Source: post randomisation (Gouweleeuw, Kooiman, Willenborg, de Wolf 1998); the paper on amplification, sec. 3, for the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.params import number
from closeknit.core.perturbation import Estimates, Law, Words, draw_outcomes, nearest_possible
from closeknit.kernels.arrays import Int32

MOST_PARTS = 2**40  # of the common denominator of all chances


@dataclass(frozen=True)
class Transition:
    """A declared transition matrix.

    Args:
        rows: for each true value the chance of every written value; each row sums to 1.

    >>> law = Transition.of({"flu": {"flu": 0.8, "gout": 0.2}, "gout": {"flu": "1/10", "gout": "9/10"}}, ("flu", "gout"), "ill")
    >>> law.gamma, law.values
    (Fraction(8, 1), 2)
    """

    rows: tuple[tuple[Fraction, ...], ...]

    @classmethod
    def of(cls, matrix: object, values: Sequence[str], column: str) -> Transition:
        """From mappings by value; every declared value must have its row, and every row all of them.

        Args:
            matrix: for each true value, the chance of every written value.
            values: the declared values of the column; the missing one is the empty text.
            column: the column, for messages.
        """
        rows = _mapping(matrix, values, column, "the matrix")
        read = [_mapping(rows[value], values, column, f"the row of '{value}'") for value in values]
        chances = [[number(f"chance of '{v}'", row[v], least=0, most=1) for v in values] for row in read]
        for value, row in zip(values, chances, strict=True):
            if sum(row) != 1:
                raise BadInput(f"the row of '{value}' sums to {sum(row)}", column=column, right="its chances must sum to 1")
            if min(row) == 0:
                never = values[row.index(Fraction(0))]
                what = f"'{value}' is never written as '{never}': who reads '{never}' could exclude '{value}'"
                raise BadInput(what, column=column, right="give every entry of the matrix a positive chance")
        law = cls(tuple(map(tuple, chances)))
        if law.parts > MOST_PARTS:
            raise BadInput("the chances are too fine to be drawn exactly", column=column, right="write them with fewer digits")
        return law

    @property
    def values(self) -> int:
        """Number of values."""
        return len(self.rows)

    @property
    def parts(self) -> int:
        """The common denominator of all chances."""
        return math.lcm(*(chance.denominator for row in self.rows for chance in row))

    @property
    def gamma(self) -> Fraction:
        """The largest ratio of the probabilities with which two true values are written as the same value."""
        ratios: list[Fraction] = [max(column) / min(column) for column in zip(*self.rows, strict=True)]
        return max(ratios)

    @property
    def key(self) -> str:
        """What distinguishes the law from others, as an input of its draws."""
        return " ".join(str(chance) for row in self.rows for chance in row)

    @property
    def uses_values(self) -> bool:
        """Whether a written value depends on the true one."""
        return self.gamma > 1

    def draw_codes(self, codes: Int32, words: Words) -> Int32:
        """Perturb codes, exactly."""
        parts, after = self.parts, codes.copy()
        ends = np.cumsum([[int(chance * parts) for chance in row] for row in self.rows], axis=1).astype(np.uint64)
        outcome = draw_outcomes(parts, len(codes), words)
        for value in range(self.values):
            rows = codes == value
            after[rows] = np.searchsorted(ends[value], outcome[rows], side="right")
        return after

    def estimate(self, observed: object) -> Estimates | None:
        """Estimate the true counts from the written ones; None where different true counts give the same written ones.

        Args:
            observed: the written count of every value, including 0.

        >>> law = Transition.of({"a": {"a": 0.8, "b": 0.2}, "b": {"a": 0.2, "b": 0.8}}, "ab", "x")
        >>> law.estimate([62, 38]).counts.round(6).tolist()
        [70.0, 30.0]
        """
        seen, chances = np.asarray(observed, dtype=np.float64), np.array(self.rows, dtype=np.float64)
        if np.linalg.cond(chances) > 1e12:
            return None
        inverse = np.linalg.inv(chances.T)
        counts = inverse @ seen
        possible = nearest_possible(counts, float(seen.sum()))
        spread = sum(
            (n * (np.diag(row) - np.outer(row, row)) for n, row in zip(possible, chances, strict=True)), np.zeros_like(chances)
        )
        return Estimates(counts, np.sqrt(np.maximum(np.diag(inverse @ spread @ inverse.T), 0)), possible)


def _mapping(given: object, values: Sequence[str], column: str, what: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise BadInput(f"{what} is {given!r}", column=column, right="write the chance of every value: {flu: 0.8, gout: 0.2}")
    read = {str(key): value for key, value in given.items()}
    for key in read:
        if key not in values:
            raise BadInput(
                f"{what} names '{key}', which is not a declared value", column=column, right=suggest_name(key, values)
            )
    for value in values:
        if value not in read:
            raise BadInput(f"{what} lacks '{value}'", column=column, right="it must name every declared value")
    return read


AnyLaw = Law | Transition

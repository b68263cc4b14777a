"""`Limits`: a guarantee as shares of a class, the form in which plans, compiled guards and lower bounds use it.

A model that has such a form returns it from `Model.limits`. A class that keeps every part meets the guarantee. Numbers that are
no rationals are rounded to the safe side, so a class may meet the guarantee and still miss them by a hair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import log

ROUNDED = 1 << 30  # denominator of a limit that is no rational, or too long a one


@dataclass(frozen=True)
class Distance:
    """The earth mover's distance of a class to the reference is at most `most`.

    Args:
        ground: The ground distance: "ordered", "hierarchical" or "equal".
        most: The limit.
    """

    ground: str
    most: Fraction


@dataclass(frozen=True)
class Growth:
    """A value of share p in the reference has at most the share p * (1 + most) in a class.

    Args:
        most: The largest relative growth.
        bounded: Whether the share is also at most p * (1 - ln p).
    """

    most: Fraction
    bounded: bool = False

    def cap(self, p: Fraction) -> Fraction:
        """The largest share in a class of a value with share `p` in the reference.

        >>> Growth(Fraction(2)).cap(Fraction(1, 4)), float(Growth(Fraction(9), bounded=True).cap(Fraction(1, 4))) < 0.6
        (Fraction(3, 4), True)
        """
        most = p * (1 + self.most)
        return min(most, round_safely(float(p) * (1 - log(p)), -1)) if self.bounded and 0 < p < 1 else most


@dataclass(frozen=True, eq=False)
class Limits:
    """What a guarantee asks of the shares of a class; parts that are left out ask nothing.

    Args:
        caps: The largest share of a leaf code in a class; a code without an entry has none.
        floors: The least share of a leaf code in a class; a code without an entry has none.
        distance: A limit on the earth mover's distance to the reference.
        growth: A limit on how much more frequent than in the reference a value may be.
        values: How many different values a class has at least.
        entropy: A class has at least the entropy of so many equally frequent values.
        missing_counts: Whether a missing value is one of the `values`.
        sufficient: Whether a class that keeps all parts meets the guarantee. If not, plans use the parts, guards do not.

    >>> Limits(caps={0: Fraction(1, 4)}).caps[0]
    Fraction(1, 4)
    """

    caps: Mapping[int, Fraction] = field(default_factory=dict)
    floors: Mapping[int, Fraction] = field(default_factory=dict)
    distance: Distance | None = None
    growth: Growth | None = None
    values: int = 0
    entropy: Fraction | None = None
    missing_counts: bool = True
    sufficient: bool = True


def round_safely(limit: float, side: int) -> Fraction:
    """A limit moved to its safe side (-1: down, 1: up) by more than a float can be off.

    >>> round_safely(0.5, -1) < Fraction(1, 2) < round_safely(0.5, 1)
    True
    """
    return Fraction(limit * (1 + side * 1e-12)) + Fraction(side, ROUNDED)

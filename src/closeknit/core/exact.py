"""Numbers mean what the user wrote: thresholds as rationals, and comparisons that a rounding error cannot decide.

A float decides only if it is farther than `NEAR` from the limit; otherwise integers decide, or decimals of 60 digits if a
logarithm occurs (the logarithm of a rational other than 1 is irrational, so the digits always decide).
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from closeknit.core.errors import BadInput

NEAR = 1e-9
MOST_DIGITS = 400
_EXPONENT = re.compile(r"[eE][+-]?(\d+)")
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Number = int | float | str | Decimal | Fraction


def fraction(name: str, value: Number) -> Fraction:
    """The rational a person means by `value`: `0.1` is one tenth, not the nearest binary float.

    >>> fraction("t", 0.1), fraction("t", "1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(value, bool):
        raise BadInput(f"{name}={value!r} is not a number")
    try:
        exponent = _EXPONENT.search(str(value))
        if exponent and int(exponent[1]) > MOST_DIGITS:  # a rational stores all of its digits
            raise BadInput(f"{name}={value!r} has too large an exponent")
        exact = Fraction(str(value))
        float(exact)
        return exact
    except OverflowError:
        raise BadInput(f"{name}={value!r} is too large") from None
    except (ValueError, ZeroDivisionError):
        raise BadInput(f"{name}={value!r} is not a finite number") from None


def near(levels: Floats, limit: float) -> Bools:
    """Where a float is too close to the limit to decide."""
    return np.abs(levels - limit) <= NEAR * max(1.0, abs(limit))


def at_most(numerators: Ints, denominators: Ints, limit: Fraction) -> Bools:
    """`numerator / denominator <= limit`, exactly, for every pair (denominators are positive).

    >>> at_most(np.array([1, 1]), np.array([3, 2]), Fraction(1, 3)).tolist()
    [True, False]
    """
    levels = numerators.astype(np.float64) / denominators
    holds = levels <= float(limit)
    close = np.flatnonzero(near(levels, float(limit)))
    above, below = numerators[close], denominators[close]
    size = max(int(np.abs(above).max(initial=1)), int(below.max(initial=1)))
    if size * max(abs(limit.numerator), limit.denominator) < 1 << 62:
        holds[close] = above * limit.denominator <= limit.numerator * below
    else:
        holds[close] = above.astype(object) * limit.denominator <= limit.numerator * below.astype(object)
    return holds


def below(numerators: Ints, denominators: Ints, limit: Fraction) -> Bools:
    """`numerator / denominator < limit`, exactly: the strict version of `at_most`.

    >>> below(np.array([1, 1]), np.array([3, 4]), Fraction(1, 3)).tolist()
    [False, True]
    """
    return ~at_most(-numerators, denominators, -limit)


def log(value: Fraction) -> Decimal:
    """Natural logarithm with 60 digits.

    >>> log(Fraction(1))
    Decimal('0')
    """
    with localcontext() as context:
        context.prec = 60
        return (Decimal(value.numerator) / Decimal(value.denominator)).ln()


def decimal(value: Fraction) -> Decimal:
    """The rational as a decimal of 60 digits, to compare with `log`."""
    with localcontext() as context:
        context.prec = 60
        return Decimal(value.numerator) / Decimal(value.denominator)


def plain_number(value: float) -> str:
    """A number as text that reads back to itself, without a needless `.0`.

    >>> plain_number(3.0), plain_number(0.1), plain_number(np.int64(7))
    ('3', '0.1', '7')
    """
    number = float(value)
    if isinstance(value, int | np.integer) or (number.is_integer() and abs(number) < 1e16):
        return str(int(value))
    return repr(number)


def sum_products(values: Floats, weights: Ints) -> float:
    """Return the sum of products, rounded once: that of `@` depends on where the arrays lie in memory.

    A recipient who computes a public report again gets the same last digit.

    >>> sum_products(np.array([0.1, 0.2, 0.3]), np.array([10, 10, 10]))
    6.0
    """
    return math.fsum((values * weights).tolist())

"""Exact a-priori bounds on the ordered earth mover's distance between a dealt class and the table.

Only for stacks in value order. With n = q*e + r every class has s = q or q + 1 rows, and after F stack positions a
class of s rows holds c of them: its cumulative distribution differs from the table's by |c/s - F/n| there. The
distance is the mean of these differences over the m - 1 cuts between the m values of the domain (values that do not
occur count: two cuts then have the same F).

`rounds_bound` takes the worst cut for all of them and needs no frequencies. A certificate takes at every cut the
worst count c that the dealing admits, for each of the two sizes. Both hold for any partition with these counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray


def rounds_bound(n: int, e: int) -> Fraction:
    """Largest |c/s - F/n| over all prefixes when each class takes one row of each e stack positions.

    With s = q the extremes are an early row in the last full round, with s = q + 1 a late one; always < 2/(q + 1).

    >>> rounds_bound(6, 2), rounds_bound(7, 3), rounds_bound(5, 1)
    (Fraction(1, 6), Fraction(3, 7), Fraction(0, 1))
    """
    if n == 0:
        return Fraction(0)
    q, r = divmod(n, e)
    if r == 0:
        return Fraction(e - 1, n)
    return max(
        Fraction(e + r - 1, n),
        Fraction(2 * q * e - q - 1 - (q - 1) * r, (q + 1) * n),
        Fraction(1, q + 1) - Fraction(1, n),
        Fraction(e - 1, n),
    )


def rounds_certificate(freqs: Sequence[int] | NDArray[np.integer], e: int) -> Fraction:
    """Largest ordered distance of a class that takes one row of each round; frequencies in value order.

    >>> rounds_certificate([2, 2, 2], 2), rounds_certificate([1, 2, 1], 2)
    (Fraction(0, 1), Fraction(1, 4))
    """
    return super_round_certificate(freqs, e, 1)


def super_round_certificate(freqs: Sequence[int] | NDArray[np.integer], e: int, g: int) -> Fraction:
    """The same where each class takes g rows of each g*e stack positions, and what is missing from the last, shorter block.

    >>> super_round_certificate([2, 2], 2, 1), super_round_certificate([2, 2], 2, 2)
    (Fraction(0, 1), Fraction(1, 2))
    """
    counts = np.asarray(freqs, dtype=np.int64)
    n, m = int(counts.sum()), len(counts)
    if n == 0 or m < 2:
        return Fraction(0)
    prefix = np.cumsum(counts)[:-1]
    return max(_worst(prefix, n, e, g, s) for s in {n // e, -(-n // e)}) / (m - 1)


def _worst(prefix: NDArray[np.int64], n: int, e: int, g: int, s: int) -> Fraction:
    """Sum over the cuts of the largest |c/s - F/n| for a class of s rows."""
    block = g * e
    before = prefix // block
    inside = prefix - before * block
    short = before == n // block  # cuts in the last, shorter super-round
    rows = np.where(short, n % block, block)
    seats = np.where(short, s - n // block * g, g)
    least = before * g + np.maximum(0, seats - (rows - inside))
    most = before * g + np.minimum(seats, inside)
    gaps = np.maximum(np.abs(least * n - prefix * s), np.abs(most * n - prefix * s))
    total = (int((gaps >> 32).sum()) << 32) + int((gaps & 0xFFFFFFFF).sum())  # a sum that cannot overflow
    return Fraction(total, s * n)

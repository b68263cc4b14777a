"""`Coins`: exact, keyed draws. A method whose guarantee is about probabilities must not round them.

A float would make e^-x zero for x above 745, and the ratio of two probabilities infinite. Here a coin is a real number between
0 and 1, of which as many bits are read as the comparison with e^-x needs; e^-x is computed to as many digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from hashlib import sha256, shake_256
from math import exp

FIRST = 53  # bits of the first look, in floats
SURE = 1e-9  # relative distance at which a float decides
BLOCK = 64  # bits of each further look


class Coins:
    """Draws that depend on a key and a label each: equal labels give equal draws, different labels independent ones.

    Args:
        key: the secret, with everything that the draws may depend on.

    >>> coins = Coins(b"secret")
    >>> sum(coins.stops(Fraction(1), f"{i}") for i in range(1000)) / 1000  # e^-1 = 0.368
    0.385
    >>> coins.stops(Fraction(0), "a"), coins.stops(Fraction(10**6), "a")
    (True, False)
    """

    def __init__(self, key: bytes) -> None:
        self._key = shake_256(b"closeknit coins " + key)

    def stops(self, x: Fraction, label: str) -> bool:
        """True with probability e^-x, exactly.

        Args:
            x: at least 0.
            label: names the draw.
        """
        if x == 0:
            return True
        draw = self._key.copy()
        draw.update(label.encode())
        return below_exp(x, draw.digest(8), draw)

    def geometric(self, x: Fraction, label: str) -> int:
        """A whole number of either sign with probability proportional to e^(-x |number|), exactly.

        Source: Canonne, Kamath and Steinke (2020), algorithm 2.

        Args:
            x: above 0.
            label: names the draw.
        """
        for attempt in range(1 << 62):
            named = f"{label}/{attempt}"
            part = self.below(x.denominator, named)
            if not self.stops(Fraction(part, x.denominator), f"{named}/part"):
                continue
            wholes = 0
            while self.stops(Fraction(1), f"{named}/{wholes}"):
                wholes += 1
            size, negative = (part + x.denominator * wholes) // x.numerator, self.below(2, f"{named}/sign")
            if size or not negative:  # zero would count twice
                return -size if negative else size
        raise AssertionError("unreachable")

    def below(self, limit: int, label: str) -> int:
        """A whole number from 0 to `limit` - 1, each equally likely.

        Args:
            limit: above 0.
            label: names the draw.
        """
        bits = limit.bit_length()
        for attempt in range(1 << 62):
            draw = self._key.copy()
            draw.update(f"{label}/below/{attempt}".encode())
            drawn = int.from_bytes(draw.digest(bits // 8 + 1), "big") & ((1 << bits) - 1)
            if drawn < limit:
                return drawn
        raise AssertionError("unreachable")


def below_exp(x: Fraction, first: bytes, draw: object) -> bool:
    """Whether the real number in [0, 1) whose bits `draw` gives is below e^-x.

    Args:
        x: above 0.
        first: the first eight bytes of the draw.
        draw: a SHAKE-256 object that gives all of them.
    """
    u, near = int.from_bytes(first, "big") >> (64 - FIRST), exp(-float(x))
    if (u + 1) / 2**FIRST < near * (1 - SURE):
        return True
    if u / 2**FIRST > near * (1 + SURE):
        return False
    for bits, low, high in _bounds(x):
        u = int.from_bytes(draw.digest(bits // 8), "big")  # type: ignore[attr-defined]
        if u + 1 <= low:
            return True
        if u >= high:
            return False
    raise AssertionError("unreachable")


def _bounds(x: Fraction) -> Iterator[tuple[int, int, int]]:
    """Bits, and whole numbers at most and at least 2^bits e^-x, for more and more bits."""
    bits = 2 * BLOCK
    while True:
        digits = bits // 3 + len(str(x.numerator // x.denominator)) + 10  # more than bits * log10(2), and those of x
        context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=-(10**9), Emax=10**9)
        rounded = context.divide(Decimal(x.numerator), Decimal(x.denominator))
        scaled = context.multiply(context.exp(-rounded), Decimal(2**bits))
        # the quotient is off by at most x * 10^(1 - digits), the power and the product each by a relative 10^(1 - digits)
        off = int(scaled * (rounded + 3) * Decimal(10) ** (1 - digits)) + 2
        yield bits, max(int(scaled) - off, 0), int(scaled) + 1 + off
        bits *= 2


def derive_seed(seed: int, number: int) -> int:
    """The seed of one of several runs; those of different runs are independent.

    >>> derive_seed(7, 1) == derive_seed(7, 1), derive_seed(7, 1) == derive_seed(7, 2)
    (True, False)
    """
    return int.from_bytes(sha256(f"{seed} {number}".encode()).digest()[:16], "big")

"""Shapes of values that identify people, with their check digits: what a value is, whatever its column is called.

Numbers that pass a check digit by chance (cards, IMEI), phone numbers and hosts count only where nearly all values do. The
letters are the categories of the HIPAA Safe Harbor rule (`metrics/safe_harbor.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

DIRECT = frozenset("DEFGJKLMNOQR")  # by value alone these identify a person, whatever the column is called
NEARLY_ALL = 0.9  # of the distinct values, where a single one may match by chance

_DATE = re.compile(
    r"\d{4}[-/.]\d\d?([-/.]\d\d?)?([T ]\d.*)?|\d\d?[-/.]\d\d?[-/.](\d{4}|\d\d)([T ]\d.*)?|\d{4}-?Q[1-4]"
    r"|(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])"
)
_SSN = re.compile(r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}")


def pass_luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others, as on payment cards and in IMEIs.

    Args:
        digits: the number.

    >>> pass_luhn("4111111111111111"), pass_luhn("4111111111111112")
    (True, False)
    """
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


def pass_iban(text: str) -> bool:
    """Whether a bank account number has its right check digits (ISO 13616, modulo 97).

    Args:
        text: the number, without blanks.

    >>> pass_iban("GB82WEST12345698765432"), pass_iban("GB82WEST12345698765433")
    (True, False)
    """
    moved = text[4:] + text[:4]
    return int("".join(str(int(sign, 36)) for sign in moved)) % 97 == 1


def pass_vin(text: str) -> bool:
    """Whether a vehicle identification number has its right check digit, the ninth character.

    Args:
        text: seventeen characters without I, O and Q.

    >>> pass_vin("1M8GDM9AXKP042788"), pass_vin("1M8GDM9A1KP042788")
    (True, False)
    """
    values = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", [*range(1, 9), *range(1, 6), 7, 9, *range(2, 10)], strict=True))
    weights = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
    total = sum(weight * (int(sign) if sign.isdigit() else values[sign]) for weight, sign in zip(weights, text, strict=True))
    return text[8] == "0123456789X"[total % 11]


@dataclass(frozen=True)
class Pattern:
    """Values of a category, by their shape.

    Args:
        category: the letter of the category.
        what: what they look like.
        shape: a regular expression for the whole value.
        checks: a further test, of a check digit.
        least: the share of distinct values from which on it is a finding; 0: a single one.
    """

    category: str
    what: str
    shape: re.Pattern[str]
    checks: Callable[[str], bool] | None = None
    least: float = 0.0

    def matches(self, text: str) -> bool:
        """Whether a value looks like this.

        Args:
            text: the value.
        """
        return self.shape.fullmatch(text) is not None and (self.checks is None or self.checks(text))


PATTERNS = (
    Pattern("G", "social security numbers", _SSN),
    Pattern("F", "e-mail addresses", re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}")),
    Pattern("D", "telephone numbers", re.compile(r"\+\d{1,3}[ .-]?(\(?\d{1,4}\)?[ .-]?){2,5}\d{1,4}")),
    Pattern("D", "telephone numbers", re.compile(r"(1[ .-])?(\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}")),
    Pattern("N", "web addresses", re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+|www\.\S+")),
    Pattern("N", "host names", re.compile(r"([A-Za-z0-9-]+\.)+[A-Za-z]{2,}"), least=NEARLY_ALL),
    Pattern("O", "IP addresses", re.compile(r"((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)(/\d\d?)?")),
    Pattern("O", "IP addresses", re.compile(r"([0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|(?=.*::)[0-9A-Fa-f:]{2,39}")),
    Pattern("J", "bank accounts (IBAN)", re.compile(r"[A-Z]{2}\d\d[A-Z0-9]{11,30}"), pass_iban),
    Pattern("J", "payment cards", re.compile(r"\d{13,14}|\d{16,19}"), pass_luhn, NEARLY_ALL),
    Pattern("L", "vehicle numbers", re.compile(r"[A-HJ-NPR-Z0-9]{17}"), pass_vin),
    Pattern("M", "IMEI", re.compile(r"\d{15}"), pass_luhn, NEARLY_ALL),
    Pattern("M", "MAC addresses", re.compile(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")),
    Pattern("Q", "pictures", re.compile(r"\S+\.(jpe?g|png|tiff?|dcm)", re.I)),
    Pattern("R", "UUIDs", re.compile(r"\{?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}?")),
    Pattern("R", "digests", re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9A-F]{32}|[0-9A-F]{64}")),
    Pattern("B", "ZIP codes", re.compile(r"\d{5}(-\d{4})?"), least=NEARLY_ALL),
    Pattern("B", "ZIP codes", re.compile(r"\d{5}-\d{4}")),
    Pattern("B", "coordinates", re.compile(r"\(?-?\d{1,3}\.\d{3,}[,; ]\s*-?\d{1,3}\.\d{3,}\)?")),
    Pattern("C", "dates finer than a year", _DATE),
)


def match_values(texts: Sequence[str], typed: bool = False) -> Iterator[tuple[Pattern, list[str]]]:
    """The patterns that values match often enough, with these values.

    Args:
        texts: distinct values.
        typed: whether they are numbers; five digits are then no ZIP code.
    """
    for pattern in PATTERNS:
        if typed and pattern.category not in "JM":
            continue
        matching = [text for text in texts if pattern.matches(text)]
        if matching and len(matching) >= pattern.least * len(texts):
            yield pattern, matching

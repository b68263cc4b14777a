"""What in a table the HIPAA Safe Harbor rule asks to remove: detectors of its eighteen categories, by name and by value.

Source: 45 CFR 164.514(b)(2)(i), categories (A) to (R). A finding is a question to a person, never a verdict: that nothing is
found does not make a table Safe Harbor, because (ii) of the rule (no actual knowledge) and identifiers of relatives and
employers need a human, and free text needs a reader.

Names match as whole words after splitting on case, `_`, `-` and blanks; there is no edit distance, and no number is taken for
an age because it is small. A column that its name puts into a category is reported only while it has a cell that the rule does
not permit: a year, `90+`, `021**` and `*` are permitted.

Different from the rule's wording: five digits without a name that says ZIP are reported only where they are text, and numbers
that pass a check digit by chance (cards, IMEI), phone numbers and hosts only where nearly all values do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from closeknit.core.columns import Column, Columns
from closeknit.core.domain import RANGE_TEXT
from closeknit.core.kinds import texts_of
from closeknit.core.record import Record

CATEGORIES = {
    "A": "names",
    "B": "geography below state",
    "C": "dates finer than a year, ages above 89",
    "D": "telephone numbers",
    "E": "fax numbers",
    "F": "e-mail addresses",
    "G": "social security numbers",
    "H": "medical record numbers",
    "I": "health plan beneficiary numbers",
    "J": "account numbers",
    "K": "certificate and licence numbers",
    "H-K": "record, plan, account or licence numbers",
    "L": "vehicle identifiers",
    "M": "device identifiers",
    "N": "web addresses",
    "O": "IP addresses",
    "P": "biometric identifiers",
    "Q": "photographs",
    "R": "other unique codes",
    "text": "free text: needs a reader",
}
DIRECT = frozenset("DEFGJKLMNOQR")  # by value alone these identify a person, whatever the column is called
OLDEST = 89  # years
NEARLY_ALL = 0.9  # of the distinct values, where a single one may match by chance
ENOUGH = 20  # rows; with fewer, unique values mean nothing
SHOWN = 3  # examples
LONG_TEXT, MANY_WORDS = 40, 5  # of free text, on average


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NAMES = {
    "A": _words("name names surname forename firstname lastname fullname givenname familyname maiden nickname mother employer"),
    "B": _words(
        "address addr street city town village county precinct parish zip zipcode postal postcode postalcode plz geo geocode "
        "lat lon lng latitude longitude"
    ),
    "C": _words(
        "birth birthday birthdate dob born yob admission admitted discharge discharged death died deceased date datetime age "
        "ages"
    ),
    "D": _words("phone telephone tel mobile cellphone"),
    "E": _words("fax telefax"),
    "F": _words("mail email"),
    "G": _words("ssn socialsecurity"),
    "H": _words("mrn chart medicalrecord"),
    "I": _words("member beneficiary policy subscriber insured"),
    "J": _words("account iban acct"),
    "K": _words("licence license npi certificate passport"),
    "L": _words("vin plate vehicle"),
    "M": _words("serial imei udi mac device"),
    "N": _words("url web website uri host hostname"),
    "O": _words("ip ipaddress"),
    "P": _words("finger fingerprint voice voiceprint iris retina face biometric"),
    "Q": _words("photo photograph image picture"),
    "R": _words("id key uuid guid hash token identifier pseudonym"),
}
PARTS_OF_NAMES = _words("first last given family middle")  # of people, next to the word "name" or alone
BIRTH = _words("birth birthday birthdate dob born yob")
AGE = _words("age ages")
POSTAL = _words("zip zipcode postal postcode postalcode plz")

_HIDDEN = re.compile(r"\**")
_ZIP3 = re.compile(r"(\d{3})\**|\d{1,2}\*+")
_YEAR = re.compile(r"\d{4}")
_YEARS = re.compile(r"\[\d{4}, \d{4}\]|\d{3}0s|\d{4}-\d{4}")
_AGE = re.compile(r"\d{1,3}(\.\d+)?")
_OPEN = re.compile(r"(\d{1,3})\+")
_OPEN_YEAR = re.compile(r"<=(\d{4})")  # born up to a year
_DATE = re.compile(
    r"\d{4}[-/.]\d\d?([-/.]\d\d?)?([T ]\d.*)?|\d\d?[-/.]\d\d?[-/.](\d{4}|\d\d)([T ]\d.*)?|\d{4}-?Q[1-4]"
    r"|(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])"
)
_SSN = re.compile(r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}")
_CODE = re.compile(r"(?=.*\d)[A-Za-z0-9][A-Za-z0-9_/-]{4,}")


def split_name(name: str) -> tuple[str, ...]:
    """The words of a column's name in lower case.

    Args:
        name: the name.

    >>> split_name("HomeZip_code")
    ('home', 'zip', 'code')
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(re.findall(r"[^\W_]+", spaced.lower()))


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


class IdentifierFinding(Record):
    """A column that the rule may ask to remove or to coarsen.

    Args:
        column: its name.
        category: the letter of the rule's category, or "text".
        by: whether its name or its values say so.
        what: what was found.
        share: the share of its distinct values.
        examples: some of them: private.
    """

    column: str
    category: str
    by: str
    what: str
    share: float
    examples: tuple[str, ...] = ()

    def line(self) -> str:
        """One line without values, which may be shown."""
        letter = f"({self.category}) " if self.category != "text" else ""
        return f"column '{self.column}': {letter}{self.what}, by {self.by}, {self.share:.0%} of its distinct values"


@dataclass(frozen=True)
class HarborColumn:
    """A column as the detectors see it.

    Args:
        name: its name.
        column: its cells.
        reference: the day on which ages are counted, for years of birth.
        small: three-digit areas of 20,000 people or fewer; None where they are not known.
    """

    name: str
    column: Column
    reference: date | None = None
    small: Collection[str] | None = None

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its name, and all together."""
        words = split_name(self.name)
        return frozenset([*words, "".join(words), *(word.removesuffix("s") for word in words)])

    @cached_property
    def texts(self) -> list[str]:
        """Distinct values that occur and are not hidden."""
        texts = texts_of(self.column.values[self.column.counts > 0])
        return [text for text in texts if not _HIDDEN.fullmatch(text.strip())]

    def has(self, words: Collection[str]) -> bool:
        """Whether one of these words is in its name.

        Args:
            words: the words.
        """
        return bool(self.words & frozenset(words))

    def find(self, category: str, by: str, texts: Sequence[str], what: str | None = None) -> Iterator[IdentifierFinding]:
        """A finding, if there are such values.

        Args:
            category: the letter of the category.
            by: "name" or "value".
            texts: the distinct values.
            what: what was found; by default the name of the category.
        """
        if texts:
            share = len(texts) / len(self.texts)
            what, examples = what or CATEGORIES[category], tuple(texts[:SHOWN])
            yield IdentifierFinding(column=self.name, category=category, by=by, what=what, share=share, examples=examples)


def find_identifiers(
    columns: Columns, reference: date | None = None, small: Collection[str] | None = None
) -> list[IdentifierFinding]:
    """Every column that Safe Harbor may ask to remove or to coarsen.

    Args:
        columns: the table.
        reference: the day on which ages are counted; without it every year of birth is a finding.
        small: three-digit ZIP areas of 20,000 people or fewer, which the rule writes as 000; None: not checked.

    >>> table = Columns.of({"zip": ["02139", "03601"], "age": [40, 91], "sex": ["f", "m"]})
    >>> for finding in find_identifiers(table):
    ...     print(finding.line())
    column 'zip': (B) ZIP codes, by value, 100% of its distinct values
    column 'age': (C) ages above 89, by value, 50% of its distinct values
    """
    return [
        finding for name, column in columns.items() for finding in find_in_column(HarborColumn(name, column, reference, small))
    ]


def find_in_column(seen: HarborColumn) -> list[IdentifierFinding]:
    """What the detectors find in one column, each category once.

    Args:
        seen: the column.
    """
    found: dict[str, IdentifierFinding] = {}
    for look in (_dates_and_ages, _values, _names, _codes, _free_text):
        for finding in look(seen):
            if not (look is _codes and found):
                found.setdefault(finding.category, finding)
    return list(found.values())


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


def _values(seen: HarborColumn) -> Iterator[IdentifierFinding]:
    typed = seen.column.values.dtype.kind in "iufb"
    for pattern, texts in match_values(seen.texts, typed):
        yield from seen.find(pattern.category, "value", texts, pattern.what)


def _dates_and_ages(seen: HarborColumn) -> Iterator[IdentifierFinding]:
    if seen.has(AGE):
        yield from seen.find("C", "value", [text for text in seen.texts if _is_old(text)], "ages above 89")
    elif seen.has(BIRTH):
        years = [text for text in seen.texts if _YEAR.fullmatch(text) and implies_old(int(text), seen.reference)]
        why = (
            "years of birth of people of 90 or older"
            if seen.reference
            else "years of birth, not checked without a reference date"
        )
        yield from seen.find("C", "value", years, why)


def implies_old(year: int, reference: date | None) -> bool:
    """Whether a person born in a year may be 90 or older on a day; unknown counts as yes.

    Args:
        year: of birth.
        reference: the day.

    >>> implies_old(1930, date(2024, 1, 1)), implies_old(1935, date(2024, 12, 31))
    (True, False)
    """
    return reference is None or reference.year - year > OLDEST


def _is_old(text: str) -> bool:
    """Whether a cell discloses an age above 89: a number, or a range that is not open and ends above it."""
    if RANGE_TEXT.fullmatch(text):
        return float(text.strip("[]").split(",")[1]) > OLDEST
    opened = _OPEN.fullmatch(text)
    return int(opened[1]) > OLDEST + 1 if opened else _AGE.fullmatch(text) is not None and float(text) > OLDEST


def _names(seen: HarborColumn) -> Iterator[IdentifierFinding]:
    for category, words in NAMES.items():
        if seen.has(words) or (category == "A" and seen.words <= PARTS_OF_NAMES):
            yield from seen.find(category, "name", [text for text in seen.texts if not _permits(seen, category, text)])


def _permits(seen: HarborColumn, category: str, text: str) -> bool:
    """Whether the rule permits a cell of a column that its name puts into a category."""
    if category == "B":
        area = _ZIP3.fullmatch(text) if seen.has(POSTAL) else None
        return area is not None and (seen.small is None or area[1] not in seen.small)
    if category == "C":
        if seen.has(AGE):
            known = _AGE.fullmatch(text) or _OPEN.fullmatch(text) or RANGE_TEXT.fullmatch(text)
            return known is not None and not _is_old(text)
        year = _YEAR.fullmatch(text) is not None and not (seen.has(BIRTH) and implies_old(int(text), seen.reference))
        born = _OPEN_YEAR.fullmatch(text)
        if born and seen.has(BIRTH):  # one category for 90 and older, not one of still older people
            return seen.reference is not None and not implies_old(int(born[1]) + 1, seen.reference)
        return year or _YEARS.fullmatch(text) is not None
    return False


def _codes(seen: HarborColumn) -> Iterator[IdentifierFinding]:
    """Columns with a different value in nearly every row: keys, whatever they are called."""
    rows = int(seen.column.counts.sum())
    if rows < ENOUGH or len(seen.texts) < NEARLY_ALL * rows:
        return
    codes = [text for text in seen.texts if _CODE.fullmatch(text)]
    if len(codes) >= NEARLY_ALL * len(seen.texts):
        yield from seen.find("H-K", "value", codes, "codes that nearly every row has for itself")
    elif len(seen.texts) == rows:
        yield from seen.find("R", "value", seen.texts, "a different value in every row")


def _free_text(seen: HarborColumn) -> Iterator[IdentifierFinding]:
    if not seen.texts or seen.column.values.dtype.kind != "O":
        return
    length = sum(map(len, seen.texts)) / len(seen.texts)
    spaces = sum(text.count(" ") for text in seen.texts) / len(seen.texts)
    if length >= LONG_TEXT and spaces >= MANY_WORDS - 1:
        yield from seen.find("text", "value", seen.texts)

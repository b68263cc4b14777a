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
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from closeknit.core.columns import Column, Columns
from closeknit.core.domain import RANGE_TEXT
from closeknit.core.folding import strip_accents
from closeknit.core.kinds import texts_of
from closeknit.core.record import Record
from closeknit.metrics.identifier_patterns import NEARLY_ALL, match_values

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
OLDEST = 89  # years
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
_CODE = re.compile(r"(?=.*\d)[A-Za-z0-9][A-Za-z0-9_/-]{4,}")


def split_name(name: str) -> tuple[str, ...]:
    """The words of a column's name in lower case, without accents.

    Args:
        name: the name.

    >>> split_name("HomeZip_code")
    ('home', 'zip', 'code')
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", strip_accents(name))
    return tuple(re.findall(r"[^\W_]+", spaced.casefold()))


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

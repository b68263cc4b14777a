"""Numbers of a CSV file in plain notation: decimal sign and thousands separator are decided once for the whole file.

A column is numeric if nearly all its cells with a digit can be read as numbers with some pair of signs. Each such column
determines the pairs of decimal sign and thousands separator that read all of it; texts, dates (20.01.1959), versions (1.2.3)
and addresses (10.0.0.1) fit no pair and do not change. 53.281 is a number with either sign, so a file that does not decide
between them is refused. A comma that does not fit remains text, which no numeric column accepts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.io.csv_format import CsvFormat

Pair = tuple[str, str]  # decimal sign, thousands separator
_SIGNS = {".": r"\.", ",": ",", " ": "[ \u00a0\u202f]", "'": "['\u2019]"}
_OTHER = {".": ",", ",": "."}
PAIRS: list[Pair] = [(decimal, sign) for decimal in ".," for sign in ("", _OTHER[decimal], " ", "'")]
_SEPARATORS = frozenset(".,' \u00a0\u202f\u2019")
_JUNK = 0.1  # share of the cells of a numeric column that may be no numbers: the column's kind refuses them
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})"
_ADDRESS = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_DIGIT = re.compile("[0-9]")
_PLAIN_POINT = re.compile(r"\s*[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")


@cache
def _source(pair: Pair) -> str:
    decimal, thousands = _SIGNS[pair[0]], _SIGNS.get(pair[1])
    whole = f"(?:[1-9][0-9]{{0,2}}(?:{thousands}[0-9]{{3}})+|[0-9]+)" if thousands else "[0-9]+"
    return rf"\s*[+-]?(?:{whole}(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:[eE][+-]?[0-9]+)?\s*"


@cache
def _pattern(*pairs: Pair) -> re.Pattern[str]:
    return re.compile("|".join(map(_source, pairs)))


def plain_number_text(text: str, decimal: str, thousands: str) -> str:
    """A number in plain digits with a decimal point; other text does not change.

    >>> plain_number_text("1.234,50", ",", "."), plain_number_text("1 234 km", ",", " ")
    ('1234.50', '1 234 km')
    """
    if not _pattern((decimal, thousands)).fullmatch(text):
        return text
    grouped = re.sub(_SIGNS[thousands], "", text.strip()) if thousands else text
    return grouped.replace(decimal, ".")


def stray_point(text: str, thousands: str) -> str | None:
    """Both readings of a number whose point cannot be a thousands separator, among decimal commas; None for other text.

    >>> stray_point("1.5", "."), stray_point("53.281", ".")
    ("'1.5' is 1.5 with a decimal point and 15 with a point between thousands", None)
    """
    stray = _PLAIN_POINT.fullmatch(text) and not _pattern((",", thousands)).fullmatch(text)
    return _readings(text) if stray else None


@dataclass(frozen=True)
class _Numbers:
    """A numeric column: its cells that are more than digits, and the pairs that read all of them."""

    name: str
    column: Column
    cells: list[str]
    pairs: frozenset[Pair]

    def first(self, pattern: re.Pattern[str]) -> tuple[str, int]:
        """The first of these cells in the file that has this form, and its row."""
        texts = self.column.values.tolist()
        fits = np.array([*(pattern.fullmatch(text) is not None and not text.isdigit() for text in texts), False])
        row = int(np.argmax(fits[self.column.codes]))
        return texts[self.column.codes[row]], row + 1


def settle_numbers(columns: Columns, format: CsvFormat, file: object = None) -> tuple[Columns, CsvFormat]:
    """The table with its numbers in plain digits, and the format with decimal sign and thousands separator decided.

    >>> table = Columns.of({"price": ["53.281", "1.234.567"], "share": ["0,5", "0,25"], "born": ["20.01.1959", "21.01.1959"]})
    >>> plain, format = settle_numbers(table, CsvFormat(delimiter=";"))
    >>> plain["price"].cells(), plain["share"].cells(), plain["born"].cells()[0], format.decimal, format.thousands
    (['53281', '1234567'], ['0.5', '0.25'], '20.01.1959', ',', '.')
    """
    if (format.decimal, format.thousands) == (".", ""):
        return columns, format
    signs = {name: _SEPARATORS.intersection("".join(column.values.tolist())) for name, column in columns.items()}
    if format.delimiter == "," and format.decimal != "," and not any("," in some for some in signs.values()):
        signs = {name: some - {"."} for name, some in signs.items()}  # without a comma in any cell a point is the decimal sign
    found = [seen for name, column in columns.items() if signs[name] and (seen := _numbers_in(name, column))]
    decimal, sure = _decimal(found, format, file)
    thousands = format.thousands if format.thousands is not None else _thousands(found, decimal, sure)
    pair = (decimal, thousands)
    changed = {}
    for seen in found:
        if pair in seen.pairs and pair != (".", ""):
            texts = [plain_number_text(text, *pair) for text in seen.column.values.tolist()]
            changed[seen.name] = seen.column.with_texts(texts)
        elif decimal == "," and format.thousands != "" and any(_PLAIN_POINT.fullmatch(text) for text in seen.cells):
            value, row = seen.first(_PLAIN_POINT)
            what = f"{_readings(value)}, and this file has decimal commas"
            right = "write all numbers in one format, or set thousands: '' if such points are no thousands separators"
            raise BadInput(what, file=file, column=seen.name, row=row, right=right)
    settled = Columns({name: changed.get(name, column) for name, column in columns.items()}, columns.rows)
    return settled, replace(format, decimal=decimal, thousands=thousands)


def _numbers_in(name: str, column: Column) -> _Numbers | None:
    """The pairs that read a column; None if it is not numeric, or has digits only."""
    texts: list[str] = column.values.tolist()
    few = [text for text in texts[:100] if _DIGIT.search(text)]
    if 2 * sum(_pattern(*PAIRS).fullmatch(text) is not None for text in few) < len(few):  # skips columns of texts early
        return None
    odd = [text for text in texts if not text.isdigit() and _DIGIT.search(text)]
    cells = [text for text in odd if _pattern(*PAIRS).fullmatch(text)]
    digits = len(odd) + sum(map(str.isdigit, texts))
    words = len(texts) - digits
    if not cells or len(odd) - len(cells) > _JUNK * digits or words > digits or all(map(_ADDRESS.fullmatch, cells)):
        return None
    occur, reads = "".join(cells), dict[Pair, bool]()
    for decimal, sign in PAIRS:  # a separator that does not occur changes nothing
        here = sign == "" or re.search(_SIGNS[sign], occur)
        reads[decimal, sign] = all(map(_pattern((decimal, sign)).fullmatch, cells)) if here else reads[decimal, ""]
    return _Numbers(name, column, cells, frozenset(pair for pair, all_of_them in reads.items() if all_of_them))


def _decimal(found: Sequence[_Numbers], format: CsvFormat, file: object) -> tuple[str, bool]:
    """The decimal sign, and whether it is decided by evidence rather than by default."""
    if format.decimal is not None:
        return format.decimal, True
    only: dict[str, list[_Numbers]] = {".": [], ",": []}
    for seen in found:
        signs = {pair[0] for pair in _filter_pairs(seen, format)}
        # between commas '1,5' may be a list: only '1.234,50' shows that a comma is the decimal sign
        listed = format.delimiter == "," and signs == {","} and not any("." in text and "," in text for text in seen.cells)
        if len(signs) == 1 and not listed:
            only[signs.pop()].append(seen)
    if only["."] and only[","]:
        (point, comma), any_number = (only["."][0], only[","][0]), _pattern(*PAIRS)
        (value, row), (other, other_row) = point.first(any_number), comma.first(any_number)
        what = f"'{value}' has a decimal point, but '{other}' in column '{comma.name}', row {other_row:,} has a decimal comma"
        right = "write all numbers in one format, or name both signs: decimal: ',' and thousands: '' keep cells with a point"
        raise BadInput(what, file=file, column=point.name, row=row, right=right)
    if not only["."] and not only[","] and format.delimiter != ",":
        for seen in found:
            if {(".", ""), (",", ".")} <= _filter_pairs(seen, format):
                value, row = seen.first(_PLAIN_POINT)
                what = f"{_readings(value)}, and nothing in the file decides"
                raise BadInput(what, file=file, column=seen.name, row=row, right="name the decimal sign: '.' or ','")
    return ("," if only[","] else "."), bool(only["."] or only[","])


def _filter_pairs(seen: _Numbers, format: CsvFormat) -> set[Pair]:
    return {pair for pair in seen.pairs if format.thousands in (None, pair[1])}


def _thousands(found: Sequence[_Numbers], decimal: str, sure: bool) -> str:
    """The thousands separator of some column; spaces and apostrophes need evidence."""
    for sign in (_OTHER[decimal], " ", "'"):
        grouped = re.compile(_SIGNS[sign])
        for seen in found:
            if (decimal, sign) in seen.pairs and (decimal, "") not in seen.pairs:
                if sign == _OTHER[decimal] and sure:
                    return sign
                if any(grouped.search(text) and (decimal in text or len(grouped.findall(text)) > 1) for text in seen.cells):
                    return sign
    return ""


def _readings(text: str) -> str:
    number = text.strip()
    return f"'{number}' is {number} with a decimal point and {number.replace('.', '')} with a point between thousands"

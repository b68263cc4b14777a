"""`CsvFormat`: how a CSV file is written, and its detection from the beginning of a file."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from closeknit.core.errors import BadInput
from closeknit.io.csv_faults import records

SAMPLE = 1 << 18  # bytes that decide delimiter and quote
_RECORDS = 1000
_DELIMITERS = "\t|;,"  # the first of those that fit equally well: commas occur in texts and numbers, tabs do not
_THOUSANDS = ("", ".", ",", " ", "'")
_SINGLE_QUOTED = re.compile(r"\s*'[^'\r\n]*'[,;\t|\r\n]")


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written. None is detected from the file.

    Args:
        delimiter: the character between cells.
        quote: the character around cells; "" for none.
        encoding: encoding of the file.
        decimal: the decimal sign, "." or ",".
        thousands: the sign between groups of three digits: a point, a comma, a space (also a no-break one) or an apostrophe;
            "" for none.

    >>> CsvFormat(delimiter=";", decimal=",").form()
    {'delimiter': ';', 'decimal': ','}
    """

    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None

    def __post_init__(self) -> None:
        for name, sign in (("delimiter", self.delimiter), ("quote", self.quote)):
            none = sign is None or (sign == "" and name == "quote")
            if not none and (len(str(sign)) != 1 or not str(sign).isascii() or str(sign) in "\r\n\0"):
                raise BadInput(f"{sign!r} cannot be the {name} of a CSV file", right="give one ASCII character")
        if self.delimiter is not None and self.delimiter == self.quote:
            raise BadInput(f"{self.quote!r} cannot be both delimiter and quote", right="give two different characters")
        if self.decimal not in (None, ".", ","):
            raise BadInput(f"{self.decimal!r} cannot be the decimal sign", right="give '.' or ','")
        if self.thousands not in (None, *_THOUSANDS):
            right = "give '.', ',', a space, an apostrophe, or '' for none"
            raise BadInput(f"{self.thousands!r} cannot be the thousands separator", right=right)
        if self.thousands and self.thousands == self.decimal:
            what = f"{self.decimal!r} cannot be both decimal sign and thousands separator"
            raise BadInput(what, right="give two different signs")
        try:
            "".encode(self.encoding or "utf-8")
        except (LookupError, ValueError, TypeError):
            raise BadInput(f"there is no encoding {self.encoding!r}", right="try 'utf-8', 'latin-1' or 'cp1252'") from None

    def form(self, given: CsvFormat | None = None) -> dict[str, Any]:
        """The keys of a recipe: what differs from a plain CSV file, and what was `given` rather than detected.

        Everything else is detected again: next month's file may be the first with a thousands separator.
        """
        known, plain, chosen = asdict(self), asdict(PLAIN), asdict(given or CsvFormat())
        return {name: sign for name, sign in known.items() if sign not in (None, plain[name]) or chosen[name] is not None}

    def fill_defaults(self, usual: CsvFormat) -> CsvFormat:
        """The same format, completed from another one.

        >>> CsvFormat(delimiter=";").fill_defaults(PLAIN).decimal
        '.'
        """
        return replace(usual, **{name: sign for name, sign in asdict(self).items() if sign is not None})


PLAIN = CsvFormat(",", '"', "utf-8", ".", "")  # as closeknit writes it


def detect_encoding(data: bytes) -> str:
    r"""By byte order mark, else UTF-8 if all bytes are valid, else cp1252 (or latin-1, which reads every byte).

    A file with characters of UTF-8 and a few broken bytes is damaged UTF-8, not a file in cp1252.

    >>> detect_encoding("Köln".encode()), detect_encoding("Köln".encode("latin-1")), detect_encoding(b"\xff\xfea\0")
    ('utf-8', 'cp1252', 'utf-16')
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    try:
        data.decode()
        return "utf-8"
    except UnicodeDecodeError as error:
        readable = data[max(error.start - SAMPLE, 0) : error.start + SAMPLE].decode(errors="replace")
    if sum(not sign.isascii() for sign in readable) > 2 * readable.count("\ufffd"):
        return "utf-8"
    try:
        data.decode("cp1252")
        return "cp1252"
    except UnicodeDecodeError:
        return "latin-1"


def detect_signs(data: bytes, format: CsvFormat) -> CsvFormat:
    r"""Complete the format with delimiter and quote from the first rows of a file in UTF-8.

    The delimiter is the sign that splits the header and every row into the same number of cells, the largest such number.

    >>> detect_signs(b"name;cost, net\nAnn;1,5\nBob;2,5\n", CsvFormat()).delimiter
    ';'
    """
    if format.delimiter is not None and format.quote is not None:
        return format
    text = data[:SAMPLE].decode(errors="ignore")
    if len(data) > SAMPLE:
        text = text[: text.rfind("\n") + 1] or text
    quote = format.quote
    if quote is None:
        quote = "'" if '"' not in text and _SINGLE_QUOTED.match(text) else '"'
    delimiter = format.delimiter
    if delimiter is None:
        found = {sign: _consistency(text, sign, quote) for sign in _DELIMITERS if sign != quote}
        best = max(found, key=found.__getitem__)
        delimiter = best if found[best][1] else ","
    return replace(format, delimiter=delimiter, quote=quote if quote != delimiter else "")


def _consistency(text: str, delimiter: str, quote: str) -> tuple[float, int]:
    """Share of the rows that have as many cells as the header, and that number; 0 if the header is one cell."""
    widths = []
    try:
        for cells in records(io.StringIO(text, newline=""), delimiter, quote or None, strict=False):
            widths += [len(cells)] if cells else []
            if len(widths) > _RECORDS:
                break
    except csv.Error:  # a cell longer than Python's reader takes
        pass
    if not widths or widths[0] < 2:
        return 0.0, 0
    return sum(width == widths[0] for width in widths) / len(widths), widths[0]

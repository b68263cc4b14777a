"""Bytes as rows: lines with their numbers and offsets, and readers for NDJSON and CSV. A bad line affects no other line."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from closeknit.core.errors import BadInput
from closeknit.io.csv_faults import records
from closeknit.io.csv_format import PLAIN, CsvFormat, detect_signs
from closeknit.io.csv_numbers import plain_number_text, stray_point
from closeknit.io.faults import NUL
from closeknit.io.names import check_names
from closeknit.io.ndjson import BOM, BadLine, row_of

LONGEST = 1 << 20  # bytes of a line, and of a CSV record of several lines
MOST_LINES = 1000  # of a CSV record: an open quote must not swallow the remaining stream
SHOWN = 200  # characters of a bad line that are kept


class Line(NamedTuple):
    """A line without its line break; None if it is too long."""

    number: int
    text: bytes | None
    start: int  # offsets in the input
    end: int


class ArrivedRow(NamedTuple):
    """A row and its place in the input."""

    row: dict[str, Any]
    line: int
    end: int


class RejectedLine(NamedTuple):
    """A line that is not a row of this stream, and why."""

    line: int
    why: str
    text: str
    counter: str = ""  # the name of its counter, if it has one of its own


class Lines:
    r"""Splits arriving bytes into lines; an unfinished line waits, up to the greatest length of a line.

    Args:
        offset: the offset in the input of the first byte.
        number: the number of lines before it.

    >>> lines = Lines()
    >>> [line.text for line in lines.cut(b"a\nb")], [line[:2] for line in lines.cut(b"c\n")]
    ([b'a'], [(2, b'bc')])
    """

    def __init__(self, offset: int = 0, number: int = 0) -> None:
        self.offset, self.number = offset, number  # after the last whole line, and the number of lines
        self._rest, self._dropped = b"", 0

    def cut(self, data: bytes, last: bool = False) -> list[Line]:
        """The lines that are complete now; with `last` also one without a line break."""
        *pieces, self._rest = (self._rest + data).split(b"\n")
        lines = [self._line(piece, 1) for piece in pieces]
        if last and (self._rest or self._dropped):
            lines.append(self._line(self._rest, 0))
            self._rest = b""
        elif len(self._rest) > LONGEST:
            self._dropped, self._rest = self._dropped + len(self._rest), b""
        return lines

    def _line(self, piece: bytes, end: int) -> Line:
        start, long = self.offset, self._dropped + len(piece) > LONGEST
        self.offset, self.number = start + self._dropped + len(piece) + end, self.number + 1
        self._dropped = 0
        if start == 0:
            piece = piece.removeprefix(BOM)
        return Line(self.number, None if long else piece, start, self.offset)


class Rows(Protocol):
    """Turns lines into rows."""

    known: dict[str, Any]  # header and delimiter, for a reader that begins in the middle
    held: list[Line]  # lines that are not a complete row yet

    def read(self, lines: list[Line], last: bool = False) -> Iterator[ArrivedRow | RejectedLine]:
        """Rows and rejected lines in order; `last`: no line follows."""


class NdjsonRows:
    r"""A row per line, as a JSON object.

    >>> [type(found).__name__ for found in NdjsonRows().read(Lines().cut(b'{"age": 41}\n{"age": }\n\n'))]
    ['ArrivedRow', 'RejectedLine']
    """

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}
        self.held: list[Line] = []

    def read(self, lines: list[Line], last: bool = False) -> Iterator[ArrivedRow | RejectedLine]:
        """Skip empty lines."""
        for line in lines:
            if line.text is not None and not line.text.strip():
                continue
            try:
                if line.text is None:
                    raise BadLine(f"it is longer than {LONGEST:,} bytes")
                yield ArrivedRow(row_of(line.text), line.number, line.end)
            except BadLine as bad:
                yield reject_line(line, str(bad))


class CsvRows:
    r"""A header, then records; a quoted cell may span several lines. Of a bad record only the first line is rejected.

    Args:
        format: delimiter, quote, encoding and number signs.
        known: the header and delimiter, if reading begins in the middle.
        check: refuses a wrong header.

    >>> rows = CsvRows(CsvFormat())
    >>> [found[0] for found in rows.read(Lines().cut(b'age,sex\n41,"f\n30,m\n31,f,f\n32,"m\nn"\n'), last=True)]
    [2, {'age': '30', 'sex': 'm'}, 4, {'age': '32', 'sex': 'm\nn'}]
    """

    def __init__(
        self, format: CsvFormat, known: dict[str, Any] | None = None, check: Callable[[Sequence[str]], None] | None = None
    ) -> None:
        usual = replace(PLAIN, delimiter=None, thousands="." if format.decimal == "," else "")
        points, format = format.thousands != "", format.fill_defaults(usual)  # rows arrive one by one: nothing is detected
        self._encoding, self._pair = format.encoding or "utf-8", (format.decimal or ".", format.thousands or "")
        if self._encoding.lower().startswith(("utf-16", "utf16", "utf-32", "utf32")):
            right = "give UTF-8, or an encoding with one byte per character"
            raise BadInput(f"a stream in {self._encoding} cannot be split into lines", right=right)
        self.known, self._format, self._check = dict(known or {}), format, check or (lambda names: None)
        self._refuse_points = points and self._pair[0] == ","
        self._quote = format.quote.encode() if format.quote else None
        self.held: list[Line] = []

    def read(self, lines: list[Line], last: bool = False) -> Iterator[ArrivedRow | RejectedLine]:
        """An incomplete record waits for more lines."""
        todo = deque(lines)
        while todo or (last and self.held):
            if todo:
                self.held.append(todo.popleft())
                if (todo or not last) and self._is_unfinished():
                    continue
            held, self.held = self.held, []
            try:
                if (row := self._row(held)) is not None:
                    yield ArrivedRow(row, held[0].number, held[-1].end)
            except BadLine as bad:
                yield reject_line(held[0], str(bad))
                todo.extendleft(reversed(held[1:]))

    def _is_unfinished(self) -> bool:
        texts = [line.text for line in self.held]
        if self._quote is None or texts[-1] is None or len(texts) > MOST_LINES:
            return False
        known = [text for text in texts if text is not None]
        return sum(text.count(self._quote) for text in known) % 2 == 1 and sum(map(len, known)) <= LONGEST

    def _row(self, held: list[Line]) -> dict[str, Any] | None:
        texts = [line.text for line in held]
        if any(text is None for text in texts):
            raise BadLine(f"it is longer than {LONGEST:,} bytes" if len(held) == 1 else "a quoted cell is never closed")
        try:
            text = b"\n".join(text for text in texts if text is not None).decode(self._encoding).removesuffix("\r")
        except UnicodeError:
            raise BadLine(f"it cannot be read as {self._encoding}") from None
        if not self.known:
            self._read_header(text)
            return None
        header = self.known["header"]
        if not text and len(header) > 1:
            return None
        cells = self._cells(text, self.known["delimiter"])
        if len(cells) != len(header):
            raise BadLine(f"it has {len(cells)} cells, the header has {len(header)}")
        if "\0" in text:
            raise BadLine(NUL)
        if self._pair != (".", ""):
            cells = [self._number(cell) for cell in cells]
        return {name: cell or None for name, cell in zip(header, cells, strict=True)}

    def _number(self, cell: str) -> str:
        """Numbers in plain digits; a line with an ambiguous point is rejected."""
        if self._refuse_points and (both := stray_point(cell, self._pair[1])):
            raise BadLine(f"{both}, and this stream has decimal commas")
        return plain_number_text(cell, *self._pair)

    def _cells(self, text: str, delimiter: str) -> list[str]:
        try:
            return next(records([text], delimiter, self._format.quote or None, strict=True), [""]) or [""]
        except csv.Error as error:
            after = "expected after" in str(error)
            why = "a quoted cell continues after its closing quote" if after else "a quoted cell is never closed"
            raise BadLine("a cell is too long" if "limit" in str(error) else why) from None

    def _read_header(self, text: str) -> None:
        delimiter = detect_signs(text.encode(), self._format).delimiter or ","
        try:
            names = self._cells(text, delimiter)
        except BadLine as bad:
            raise BadInput(f"the header cannot be read: {bad}", right="begin with the column names") from None
        check_names(names)
        self._check(names)
        self.known = {"header": names, "delimiter": delimiter}


def reject_line(line: Line, why: str) -> RejectedLine:
    """A rejected line, with its beginning."""
    return RejectedLine(line.number, why, (line.text or b"")[:SHOWN].decode("utf-8", "replace"))

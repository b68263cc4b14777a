"""The first fault of a CSV file that the fast reader refuses."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Fault(NamedTuple):
    """The row (from 1, without the header), what is wrong, and what to do."""

    row: int
    what: str
    right: str


def find_fault(body: bytes, delimiter: str, quote: str | None, width: int) -> Fault | None:
    r"""The first fault in the rows after the header; rows must have `width` cells.

    >>> find_fault(b"1,2\n3\n", ",", '"', 2)
    Fault(row=2, what='the row has 1 cell, the header has 2', right='give every row as many cells as the header')
    """
    row = 0
    with _allow_long_cells():
        try:
            for cells in records(io.StringIO(body.decode(), newline=""), delimiter, quote, strict=True):
                if not cells and width > 1:
                    continue
                row += 1
                if cells and len(cells) != width:
                    amount = f"{len(cells)} cell{'s' * (len(cells) > 1)}"
                    what = f"the row has {amount}, the header has {width}"
                    return Fault(row, what, "give every row as many cells as the header")
        except csv.Error as error:
            if "expected after" in str(error):
                what = "a quoted cell continues after its closing quote"
                return Fault(row + 1, what, "double a quote inside a quoted cell, or name the quote sign")
            return Fault(row + 1, "a quoted cell is never closed", "close the quote, or name the quote sign")
    return None


def row_of_byte(data: bytes, position: int, encoding: str, delimiter: str, quote: str | None) -> int:
    r"""The row of a byte; 0 is the header.

    >>> row_of_byte(b"name\nAda\nJos\xe9\n", 12, "utf-8", ",", '"')
    2
    """
    before = io.StringIO(data[:position].decode(encoding, "ignore") + "?", newline="")
    with _allow_long_cells():
        header, *rows = records(before, delimiter, quote, strict=False)
    return sum(1 for cells in rows if cells or len(header) == 1)


def records(lines: Iterable[str], delimiter: str, quote: str | None, strict: bool) -> Iterator[list[str]]:
    r"""The rows as Python's own reader parses them.

    >>> list(records(["a;'b;c'"], ";", "'", strict=True))
    [['a', 'b;c']]
    """
    if quote is None:
        return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=strict)
    return csv.reader(lines, delimiter=delimiter, quotechar=quote, strict=strict)


@contextmanager
def _allow_long_cells() -> Iterator[None]:
    usual = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(usual)

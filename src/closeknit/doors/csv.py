"""CSV in: every cell as text, an empty cell as no value; a file that is not a table is refused with its row."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from closeknit.core.columns import Codes, Column, Columns
from closeknit.core.errors import BadInput
from closeknit.doors.buffers import codes_from_arrow
from closeknit.doors.csv_faults import find_fault, records, row_of_byte
from closeknit.doors.faults import refused
from closeknit.doors.names import Wanted, check_names, choose
from closeknit.kernels.cells import MOST_COLUMNS, read_cells
from closeknit.kernels.threads import in_threads

_GUESSES = ",;\t|"
_BLOCK = 1 << 22
PARTS = 4  # of a file that are read side by side
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|$)")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written; `delimiter=None` guesses among comma, semicolon, tab and bar from the header line.

    >>> CsvFormat(delimiter=";", decimal=",").encoding
    'utf-8'
    """

    delimiter: str | None = ","
    quote: str | None = '"'
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        for name, sign in (("delimiter", self.delimiter), ("quote", self.quote)):
            if sign is not None and (len(sign) != 1 or not sign.isascii() or sign in "\r\n\0"):
                raise BadInput(f"{sign!r} cannot be the {name} of a CSV file", right="give one ASCII character")
        if self.delimiter is not None and self.delimiter == self.quote:
            raise BadInput(f"{self.quote!r} cannot be both delimiter and quote", right="give two different characters")
        if self.decimal not in (".", ","):
            raise BadInput(f"{self.decimal!r} cannot be the decimal sign", right="give '.' or ','")
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError, TypeError):
            right = "try 'utf-8', 'latin-1' or 'cp1252'"
            raise BadInput(f"there is no encoding {self.encoding!r}", right=right) from None


def read_csv(path: str | PathLike[str], format: CsvFormat | None = None, columns: Wanted = None) -> Columns:
    r"""The table in a CSV file (gzip or not), all cells as text; `columns` reads only these, in this order.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "wards.csv"
    ...     _ = file.write_text("ward;cost\nA;1,5\nB;\n", encoding="utf-8")
    ...     table = read_csv(file, CsvFormat(delimiter=";", decimal=","))
    >>> table["ward"].cells(), table["cost"].cells()
    (['A', 'B'], ['1.5', None])
    """
    file, format = Path(path), format or CsvFormat()
    data = _utf8(file_bytes(file), file, format)
    names, start, delimiter = _header(data, file, format)
    wanted = choose(names, columns, file)
    body = data[start:]
    if not (body if len(names) == 1 else body.strip(b"\r\n")):
        raise BadInput("the file has a header but no rows", file=file, right="give a table with at least one row")
    quote = format.quote if format.quote and format.quote.encode() in body else None
    if quote and not _quotes_are_regular(body, quote, delimiter):
        _raise_fault(body, file, delimiter, quote, len(names))
    read = None if quote or b"\r" in body or len(names) > MOST_COLUMNS else _plain(body, delimiter, names, wanted)
    if read is None:
        table = _parse(body, file, delimiter, quote, names, wanted)
        read = Columns({name: _column(table.column(name)) for name in wanted}, table.num_rows)
    if format.decimal == ",":
        read = Columns({name: _with_decimal_point(column) for name, column in read.items()}, read.rows)
    return read


def file_bytes(file: Path) -> bytes:
    """What a file holds, unpacked where it is gzip."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise refused(error, file) from None
    if data[:2] == b"\x1f\x8b" or file.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            what, right = "the gzip data is damaged or is not gzip", "compress the file again"
            raise BadInput(what, file=file, right=right) from None
    return data


def _utf8(data: bytes, file: Path, format: CsvFormat) -> bytes:
    """The same text in UTF-8 without byte order mark."""
    unicode = format.encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")
    encoding = "utf-8" if unicode else format.encoding
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        row = row_of_byte(data, error.start, encoding, format.delimiter or ",", format.quote)
        bad = data[error.start : error.start + 1].hex()
        what = f"byte 0x{bad}{'' if row else ' in the header'} cannot be read as {format.encoding}"
        utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        right = "name the encoding, e.g. " + ("utf-16" if utf16 else "latin-1 or cp1252")
        raise BadInput(what, file=file, row=row or None, right=right) from None
    except UnicodeError:  # codecs that are not for text files (punycode)
        raise BadInput(f"it cannot be read as {format.encoding}", file=file, right="name its encoding") from None
    if not unicode:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            what = f"read as {format.encoding} it has half characters (surrogates)"
            raise BadInput(what, file=file, right="name its encoding") from None
    return data.removeprefix(b"\xef\xbb\xbf")


def _header(data: bytes, file: Path, format: CsvFormat) -> tuple[list[str], int, str]:
    """Column names, where the first row begins, and the delimiter."""
    if not data.strip():
        raise BadInput("the file is empty", file=file, right="give a table with a header and at least one row")
    delimiter = format.delimiter or guess_delimiter(_line_at(data, 0).decode(), format.quote)
    used = 0

    def lines() -> Iterator[str]:
        nonlocal used
        while used < len(data):
            line = _line_at(data, used)
            used += len(line)
            yield line.decode()

    try:
        names = next(records(lines(), delimiter, format.quote, strict=True))
    except csv.Error:
        what, right = "a quote in the header is not closed", "close it, or name the quote sign"
        raise BadInput(what, file=file, right=right) from None
    if not names:
        raise BadInput("the first line is empty", file=file, right="begin the file with the column names")
    check_names(names, file)
    return names, used, delimiter


def _line_at(data: bytes, start: int) -> bytes:
    found = _LINE.match(data, start)
    return found.group() if found else b""


def guess_delimiter(line: str, quote: str | None) -> str:
    """The sign of comma, semicolon, tab and bar that stands most often in a header outside of quotes.

    >>> guess_delimiter('"a, b";c', '"')
    ';'
    """
    bare = re.sub(f"{re.escape(quote)}[^{re.escape(quote)}]*{re.escape(quote)}", "", line) if quote else line
    best = max(_GUESSES, key=bare.count)
    return best if best in bare else ","


def _quotes_are_regular(body: bytes, quote: str, delimiter: str) -> bool:
    """Whether every odd quote opens a cell and every even one closes it (or is half of a doubled quote)."""
    signs = np.frombuffer(body, dtype=np.uint8)
    at = np.flatnonzero(signs == ord(quote))
    if len(at) % 2:
        return False
    border = np.zeros(256, dtype=bool)
    border[[ord(delimiter), ord(quote), 10, 13]] = True
    opening, closing = at[::2], at[1::2]
    before = border[signs[opening - 1]] | (opening == 0)
    after = border[signs[np.minimum(closing + 1, len(signs) - 1)]] | (closing == len(signs) - 1)
    return bool(before.all() and after.all())


def _plain(body: bytes, delimiter: str, names: list[str], wanted: list[str]) -> Columns | None:
    """A file without quotes, read in parts side by side; None where a line has too few or too many cells."""
    place = np.array([wanted.index(name) if name in wanted else -1 for name in names])
    parts = max(1, min(PARTS, len(body) // _BLOCK))
    edges = [0, *(body.find(b"\n", len(body) * i // parts) + 1 or len(body) for i in range(1, parts)), len(body)]
    data = np.frombuffer(body, dtype=np.uint8)

    def part(ends: tuple[int, int]) -> tuple[int, Codes, NDArray[np.int64]]:
        return read_cells(data, *ends, ord(delimiter), place, body.count(b"\n", *ends) + 1)

    found = in_threads(part, list(pairwise(edges)))
    if not wanted or min(rows for rows, _, _ in found) < 0:
        return None
    known: list[dict[bytes, int]] = [{} for _ in wanted]
    codes: list[list[Codes]] = [[] for _ in wanted]
    for rows, mine, distinct in found:
        for j, seen in enumerate(known):
            begins, ends = distinct[distinct[:, 0] == j, 2:].T.tolist()  # two long lists are far cheaper than many short ones
            cells = [body[a:b] for a, b in zip(begins, ends, strict=True)]
            code_of = np.array([*(seen.setdefault(cell, len(seen)) for cell in cells), -1], dtype=np.int32)
            codes[j].append(code_of[mine[j, :rows]] if codes[j] else mine[j, :rows])
    values = [np.array([cell.decode() for cell in seen], dtype=object) for seen in known]
    columns = {name: Column(values[j], np.concatenate(codes[j])) for j, name in enumerate(wanted)}
    return Columns(columns, sum(rows for rows, _, _ in found))


def _parse(body: bytes, file: Path, delimiter: str, quote: str | None, names: list[str], wanted: list[str]) -> pa.Table:
    text = pa.dictionary(pa.int32(), pa.string())
    options = {
        "parse_options": arrow_csv.ParseOptions(
            delimiter=delimiter,
            quote_char=quote or False,
            newlines_in_values=quote is not None,
            ignore_empty_lines=len(names) > 1,
        ),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, text), include_columns=wanted, null_values=[""], strings_can_be_null=True
        ),
    }
    # A cell longer than a block needs a second try with the whole file as one block.
    for block in (_BLOCK, min(len(body) + 1, 2**31 - 1)):
        reading = arrow_csv.ReadOptions(column_names=names, block_size=block)
        try:
            return arrow_csv.read_csv(pa.BufferReader(body), read_options=reading, **options)
        except pa.ArrowInvalid:
            _raise_fault(body, file, delimiter, quote, len(names))
    raise BadInput("the file cannot be read as CSV", file=file, right="check delimiter, quote and encoding")


def _raise_fault(body: bytes, file: Path, delimiter: str, quote: str | None, width: int) -> None:
    fault = find_fault(body, delimiter, quote, width)
    if fault:
        raise BadInput(fault.what, file=file, row=fault.row, right=fault.right)


def _column(chunked: pa.ChunkedArray) -> Column:
    array = chunked.unify_dictionaries().combine_chunks()
    values = np.array(array.dictionary.to_pylist(), dtype=object)
    return Column(values, codes_from_arrow(array.indices))


def with_point(text: str) -> str:
    """A number with a decimal comma as one with a point; other text as it is.

    >>> with_point("1,5"), with_point("1,5 km")
    ('1.5', '1,5 km')
    """
    return text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text


def _with_decimal_point(column: Column) -> Column:
    seen: dict[str, int] = {}
    recode = []
    for value in column.values.tolist():
        recode.append(seen.setdefault(with_point(value), len(seen)))
    return Column(np.array(list(seen), dtype=object), np.array([*recode, -1], dtype=np.int32)[column.codes])

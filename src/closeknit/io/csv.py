"""Reading CSV: every cell as text, an empty cell as missing; a file that is not a table is refused with its row."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from closeknit.core.columns import Codes, Column, Columns, concat_columns
from closeknit.core.errors import BadInput
from closeknit.io.buffers import codes_from_arrow
from closeknit.io.csv_faults import find_fault, records, row_of_byte
from closeknit.io.csv_format import PLAIN, CsvFormat, detect_encoding, detect_signs
from closeknit.io.csv_numbers import settle_numbers
from closeknit.io.faults import name_os_errors, refuse_binary, refuse_nul
from closeknit.io.names import Wanted, check_names, choose_columns, refuse_other_names
from closeknit.kernels.text.cell_codes import MOST_COLUMNS, read_cells
from closeknit.kernels.threads import in_threads

_BLOCK = 1 << 22
PARTS = 4  # of a file that are read in parallel
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|$)")


def read_csv(path: str | PathLike[str], format: CsvFormat | None = None, columns: Wanted = None) -> Columns:
    r"""The table in a CSV file (gzip or not), all cells as text.

    Numbers have a decimal point and no thousands separators in the result.

    Args:
        path: the file.
        format: how the file is written; what it leaves open is detected.
        columns: the columns to read, in this order; all if left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "wards.csv"
    ...     _ = file.write_text("ward;cost\nA;1.234,5\nB;\n", encoding="utf-8")
    ...     table = read_csv(file)
    >>> table["ward"].cells(), table["cost"].cells()
    (['A', 'B'], ['1234.5', None])
    """
    return read_csv_files([Path(path)], format, columns)[0]


def read_csv_files(files: Sequence[Path], format: CsvFormat | None, columns: Wanted) -> tuple[Columns, CsvFormat]:
    """The concatenated table in CSV files of one format, and the format, which the first file decides."""
    format = format or CsvFormat()
    parts: list[Columns] = []
    for file in files:
        data = file_bytes(file)
        format = format if format.encoding else replace(format, encoding=detect_encoding(data))
        refuse_binary(data, file, format.encoding or "")
        data = _utf8(data, file, format)
        format = detect_signs(data, format)
        parts.append(_cells(data, file, format, columns))
        refuse_other_names(list(parts[-1]), list(parts[0]), file)
    return settle_numbers(concat_columns(parts), format, files[0])


def _cells(data: bytes, file: Path, format: CsvFormat, columns: Wanted) -> Columns:
    """All cells as they are written."""
    names, start = _header(data, file, format)
    wanted, delimiter = choose_columns(names, columns, file), format.delimiter or ","
    body = data[start:]
    if not (body if len(names) == 1 else body.strip(b"\r\n")):
        raise BadInput("the file has a header but no rows", file=file, right="give a table with at least one row")
    quote = format.quote if format.quote and format.quote.encode() in body else None
    if quote and not _quotes_are_regular(body, quote, delimiter):
        _raise_fault(body, file, delimiter, quote, len(names))
    read = None if quote or b"\r" in body or len(names) > MOST_COLUMNS else read_plain(body, delimiter, names, wanted)
    if read is None:
        table = _parse(body, file, delimiter, quote, names, wanted)
        read = Columns({name: _column(table.column(name)) for name in wanted}, table.num_rows)
    if b"\0" in data:
        refuse_nul(read, file, "remove it; if the file is UTF-16, name the encoding")
    return read


def file_bytes(file: Path) -> bytes:
    """The content of a file, uncompressed if it is gzip."""
    with name_os_errors(file):
        data = file.read_bytes()
    if data[:2] == b"\x1f\x8b" or file.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise BadInput("the gzip data is damaged or is not gzip", file=file, right="compress the file again") from None
    return data


def _utf8(data: bytes, file: Path, format: CsvFormat) -> bytes:
    """The same text in UTF-8 without byte order mark."""
    named = format.encoding or "utf-8"
    unicode = named.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")
    encoding = "utf-8" if unicode else named
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        row = row_of_byte(data, error.start, encoding, format.delimiter or ",", format.quote or None)
        bad = data[error.start : error.start + 1].hex()
        what = f"byte 0x{bad}{'' if row else ' in the header'} cannot be read as {named}"
        utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        right = "name the encoding, e.g. " + ("utf-16" if utf16 else "latin-1 or cp1252")
        raise BadInput(what, file=file, row=row or None, right=right) from None
    except UnicodeError:  # codecs that are not for text files (punycode)
        raise BadInput(f"it cannot be read as {named}", file=file, right="name its encoding") from None
    if not unicode:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            what = f"read as {named} it has half characters (surrogates)"
            raise BadInput(what, file=file, right="name its encoding") from None
    return data.removeprefix(b"\xef\xbb\xbf")


def _header(data: bytes, file: Path, format: CsvFormat) -> tuple[list[str], int]:
    """Column names, and the position of the first row."""
    if not data.strip():
        raise BadInput("the file is empty", file=file, right="give a table with a header and at least one row")
    used = 0

    def lines() -> Iterator[str]:
        nonlocal used
        while used < len(data):
            line = _line_at(data, used)
            used += len(line)
            yield line.decode()

    try:
        names = next(records(lines(), format.delimiter or ",", format.quote or None, strict=True))
    except csv.Error:
        raise BadInput("a quote in the header is not closed", file=file, right="close it, or name the quote sign") from None
    if not names:
        raise BadInput("the first line is empty", file=file, right="begin the file with the column names")
    check_names(names, file)
    return names, used


def _line_at(data: bytes, start: int) -> bytes:
    found = _LINE.match(data, start)
    return found.group() if found else b""


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


def read_plain(body: bytes, delimiter: str, names: list[str], wanted: list[str], block: int = _BLOCK) -> Columns | None:
    r"""Rows without quotes, read in parallel parts; None if a line has too few or too many cells.

    Args:
        body: the rows in UTF-8.
        delimiter: the character between cells.
        names: the columns of the file.
        wanted: the columns to read.
        block: least number of bytes of a part.

    >>> read_plain(b"1,x\n2,\n", ",", ["a", "b"], ["b"])["b"].cells()
    ['x', None]
    """
    place = np.array([wanted.index(name) if name in wanted else -1 for name in names])
    parts = max(1, min(PARTS, len(body) // block))
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
            begins, ends = distinct[distinct[:, 0] == j, 2:].T.tolist()  # two long lists are far faster than many short ones
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
        # Arrow's threads may hold the bytes of the file a moment longer than this call; a process that ends then aborts
        # (apache/arrow#34314). A single block needs no threads, and after several blocks no process ends so soon.
        reading = arrow_csv.ReadOptions(column_names=names, block_size=block, use_threads=len(body) > block)
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


__all__ = ["PLAIN", "CsvFormat", "file_bytes", "read_csv", "read_csv_files"]

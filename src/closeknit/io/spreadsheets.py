"""Spreadsheets (.xlsx, .xlsm, .xls, .ods): one table on a sheet, and a release with its certificate on a second sheet."""

from __future__ import annotations

import gc
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, islice
from pathlib import Path
from typing import IO, Any, ClassVar

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.params import whole
from closeknit.io.extras import load_extra
from closeknit.io.faults import explain_os_error
from closeknit.io.loose_cells import LooseColumn, cell_text
from closeknit.io.names import Wanted, check_names, choose_columns
from closeknit.io.source import Source

BATCH = 65_536  # rows that are Python objects at once
READ = 1 << 20  # bytes
CELL = 32  # bytes of a cell in the library
ROW = re.compile(rb"\br(?:ef)?=[\"'](?:[A-Z]+\d+:)?[A-Z]{0,3}(\d{1,7})[\"']")  # of a cell, or the last of an extent
COLUMN = re.compile(rb"\br(?:ef)?=[\"'](?:[A-Z]+\d+:)?([A-Z]{1,3})\d")
MOST_UNPACKED = 8 << 30  # declared bytes of a workbook: more than 20 million full cells
OLE = b"\xd0\xcf\x11\xe0"  # the first bytes of an .xls, and of an encrypted workbook
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
RELEASE_SHEET, CERTIFICATE_SHEET = "release", "certificate"


def list_sheets(data: object) -> list[str]:
    """The names of the sheets, for a choice; none for anything else than a workbook.

    Args:
        data: a source, or anything else.

    >>> list_sheets("people.csv")
    []
    """
    if not isinstance(data, Spreadsheet):
        return []
    with data._open() as book:
        return [str(name) for name in book.sheet_names]


@dataclass(frozen=True)
class Spreadsheet(Source):
    """One sheet of a workbook, with the names of the columns in its header row.

    Args:
        path: the workbook.
        sheet: name or number (from 1) of the sheet; by default the first one that is not hidden.
        header: number of the row with the names of the columns; by default the first row that is not empty.

    >>> Spreadsheet("people.xlsx", sheet=2).form()["sheet"]
    2
    """

    name: ClassVar[str] = "spreadsheet"
    suffixes: ClassVar[tuple[str, ...]] = (".xlsx", ".xlsm", ".xls", ".ods")
    batch: ClassVar[int] = BATCH

    path: str
    sheet: str | int | None = None
    header: int | None = None

    def __post_init__(self) -> None:
        if self.header is not None:
            whole("header", self.header, least=1)
        if isinstance(self.sheet, bool) or not isinstance(self.sheet, str | int | None):
            raise BadInput(f"sheet={self.sheet!r} is not a sheet", file=self.path, right="give its name or its number")

    def read(self, columns: Wanted = None) -> Columns:
        """The table of the sheet; cells with an error, such as #N/A, are missing.

        Args:
            columns: the columns to read, in this order; all if left out.
        """
        with self._open() as book, pause_collection():
            return self._read_sheet(book.get_sheet_by_name(self._find_sheet(book)), columns)

    def measure_size(self) -> tuple[int, int] | None:
        """Rows and bytes of the largest sheet of an .xlsx: the library keeps every cell up to the last one, empty or not."""
        return self._largest_grid(None)

    def _largest_grid(self, most: int | None) -> tuple[int, int] | None:
        grids = list(_grids(self.path, most)) if Path(self.path).suffix.lower() in (".xlsx", ".xlsm") else []
        return max(grids, key=lambda grid: grid[1], default=None)

    def find_faults(self) -> list[str]:
        """Sheets that are not part of a release."""
        with self._open() as book:
            others = [name for name in book.sheet_names if name not in (RELEASE_SHEET, CERTIFICATE_SHEET)]
        return [f"the sheet '{name}' is not part of the release: remove it" for name in others]

    def read_certificate(self) -> str:
        """The certificate on the second sheet."""
        with self._open() as book:
            if CERTIFICATE_SHEET not in book.sheet_names:
                return super().read_certificate()
            rows = book.get_sheet_by_name(CERTIFICATE_SHEET).to_python()
        return "".join(cell_text(row[0]) for row in rows)

    def write(self, columns: Columns, certificate: str, private: Mapping[str, Any], replace: bool) -> None:
        """Write a release with its certificate.

        Args:
            columns: the written cells.
            certificate: the certificate as JSON.
            private: not written: a workbook has no private place.
            replace: whether an existing file is replaced.
        """
        from closeknit.io.spreadsheet_writing import write_xlsx
        from closeknit.io.written_files import refuse_other_kind, write_checked

        refuse_other_kind(self.path, ".xlsx", replace)
        write_checked(columns, Path(self.path), lambda place: write_xlsx(columns, place, certificate))

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """The workbook, if it can be read and is not too large; faults found while it is open become sentences."""
        calamine = load_extra("python_calamine", "excel", "spreadsheets", self.path)
        refuse_inflated(self.path)
        rows, size = self._largest_grid(READ) or (0, 0)
        if size > MOST_UNPACKED:
            what = f"a sheet has a cell far away from the others, in row {rows:,} or above"
            raise BadInput(what, file=self.path, right="delete the empty rows and columns up to it")
        try:
            with open(self.path, "rb"):  # the library does not give the number of an error
                pass
            with calamine.CalamineWorkbook.from_path(self.path) as book:
                yield book
        except calamine.PasswordError:
            raise _explain_password(self.path) from None
        except calamine.CalamineError:
            raise _explain_damage(self.path) from None
        except OSError as error:
            raise explain_os_error(error, self.path) from None

    def _find_sheet(self, book: Any) -> str:
        names = list(book.sheet_names)
        if self.sheet is None:
            shown = [each.name for each in book.sheets_metadata if each.visible == type(each.visible).Visible]
            return str([*shown, *names][0])
        if self.sheet in names:
            return str(self.sheet)
        number = int(self.sheet) if str(self.sheet).isdecimal() else 0
        if not 1 <= number <= len(names):
            raise BadInput(f"there is no sheet '{self.sheet}'", file=self.path, right=suggest_name(str(self.sheet), names))
        return str(names[number - 1])

    def _read_sheet(self, sheet: Any, wanted: Wanted) -> Columns:
        where = f"{self.path}, sheet '{sheet.name}'"
        if sheet.start is None:
            raise BadInput("the sheet is empty", file=where, right="choose another one with sheet (--sheet)")
        first = self.header or sheet.start[0] + 1
        if self.header is not None and self.header > sheet.end[0] + 1:
            what = f"the header row {self.header:,} is below the last row, {sheet.end[0] + 1:,}"
            raise BadInput(what, file=where, right="give another header row")
        rows = islice(sheet.iter_rows(), first - 1, None)
        header, left = next(rows), sheet.start[1]
        names = [cell_text(cell) for cell in header]
        width = max((place for place, text in enumerate(names, start=1) if text.strip()), default=0)
        _refuse_merged(sheet, first, left, width, where)
        _refuse_gaps(names[:width], left, first, where)
        check_names(names[:width], where)
        chosen = choose_columns(names[:width], wanted, where)
        return _read_rows(rows, names[:width], chosen, (first + 1, left), where, self.batch)


def _read_rows(
    rows: Iterator[list[Any]], names: Sequence[str], chosen: Sequence[str], corner: tuple[int, int], where: str, size: int
) -> Columns:
    """The rows below the header, as columns; `corner`: row number and column index of the first cell."""
    columns = {name: LooseColumn(name, where) for name in chosen}
    places = [names.index(name) for name in chosen]
    row, gap, total = corner[0], 0, 0
    while batch := list(islice(rows, size)):
        cells = list(zip(*batch, strict=True))
        if gap or all("" in column for column in cells):  # there may be an empty row
            batch, gap = _without_empty_end(batch, row, gap, where)
            cells = list(zip(*batch, strict=True))
        row += size
        if not batch:
            continue
        _refuse_unnamed(cells[len(names) :], corner, total, len(names), where)
        total += len(batch)
        for name, place in zip(chosen, places, strict=True):
            columns[name].add(cells[place])
    if not total:
        raise BadInput("the table has no rows", file=where, right="give a table with at least one row below its header")
    return Columns({name: column.finish() for name, column in columns.items()}, total)


def _without_empty_end(batch: list[list[Any]], row: int, gap: int, where: str) -> tuple[list[list[Any]], int]:
    """The rows before an empty one, and its number; rows after it would be those of another table."""
    nothing = [""] * len(batch[0])
    filled = [place for place, each in enumerate(batch) if each != nothing]
    end = 0 if gap else next((place for place, each in enumerate(batch) if each == nothing), len(batch))
    gap = gap or (row + end if end < len(batch) else 0)
    if filled and filled[-1] >= end:
        right = "remove it, or move the second table to a sheet of its own"
        raise BadInput(f"row {gap:,} is empty, and rows follow", file=where, right=right)
    return batch[:end], gap


def _refuse_unnamed(cells: Sequence[Sequence[Any]], corner: tuple[int, int], before: int, width: int, where: str) -> None:
    """Refuse cells right of the last name."""
    for place, column in enumerate(cells):
        row = next((row for row, cell in enumerate(column) if cell != ""), None)
        if row is not None:
            at = address(corner[0] + before + row, corner[1] + width + place)
            what = f"the cell {at} has a value, and its column has no name"
            raise BadInput(what, file=where, right="name the column in the header, or remove the cell")


def _refuse_gaps(names: Sequence[str], left: int, row: int, where: str) -> None:
    """Refuse a header with an empty cell, or without any."""
    empty = next((place for place, text in enumerate(names) if not text.strip()), None if names else 0)
    if empty is not None:
        right = f"name every column in row {row:,}, or say which row has the names with header (--header-row)"
        raise BadInput(f"the cell {address(row, left + empty)} of the header is empty", file=where, right=right)


def _refuse_merged(sheet: Any, first: int, left: int, width: int, where: str) -> None:
    """Refuse merged cells in the table: only the first of them has a value, and the others would be missing."""
    for (top, start), (bottom, end) in sheet.merged_cell_ranges or ():
        if bottom + 1 >= first and start < left + width:
            cells = f"{address(top + 1, start)}:{address(bottom + 1, end)}"
            raise BadInput(f"the cells {cells} are merged", file=where, right="unmerge them and write the value into each cell")


def address(row: int, column: int) -> str:
    """The address of a cell, from the number of its row and the index of its column.

    >>> address(1, 0), address(12, 27)
    ('A1', 'AB12')
    """
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return f"{letters}{row}"


def _grids(path: str, most: int | None = None) -> Iterator[tuple[int, int]]:
    """Rows of each sheet, and the bytes of its cells up to the last row and the last column that it names.

    `most`: bytes of a sheet that are looked at; a sheet states its extent at its beginning, and a small one is seen whole.
    """
    with suppress(zipfile.BadZipFile, OSError, zlib.error, RuntimeError, NotImplementedError), zipfile.ZipFile(path) as pack:
        for entry in pack.infolist():
            if not entry.filename.startswith("xl/worksheets/"):
                continue
            rows, letters, rest, seen = {b"0"}, {b"A"}, b"", 0
            with pack.open(entry) as sheet:
                while (most is None or seen < most) and (block := sheet.read(READ)):
                    seen, block = seen + len(block), rest + block
                    rows |= set(ROW.findall(block))
                    letters |= set(COLUMN.findall(block))
                    rest = block[-20:]  # a reference may be cut
            width = max(reduce(lambda total, letter: total * 26 + letter - 64, word, 0) for word in letters)
            last = max(map(int, rows))
            yield last, last * width * CELL


@contextmanager
def pause_collection() -> Iterator[None]:
    """Stop the search for reference cycles: rows of cells have none, and it would visit each of them many times.

    >>> with pause_collection():
    ...     gc.isenabled()
    False
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def refuse_inflated(path: str | Path, most: int = MOST_UNPACKED) -> None:
    """Refuse a compressed workbook by the size that it declares, before it is read, and one that declares too little.

    Args:
        path: the workbook.
        most: the largest number of bytes that is read.
    """
    try:
        with open(path, "rb") as file:
            if Path(path).suffix.lower() == ".xls":
                return  # not compressed
            if file.read(len(OLE)) == OLE:  # the library would look for an archive behind it
                raise _explain_password(path) if ENCRYPTED in file.read() else _explain_damage(path)
            with zipfile.ZipFile(file) as pack:
                if sum(entry.file_size for entry in pack.infolist()) > most:
                    raise BadInput(f"it decompresses to more than {most:,} bytes", file=path, right="give a smaller table")
                if any(_declares_too_little(pack, entry, file) for entry in pack.infolist()):
                    right = "save it again with a spreadsheet program"
                    raise BadInput("it decompresses to more than it declares", file=path, right=right)
    except (zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, ValueError):  # the library would read some of these
        raise _explain_damage(path) from None
    except OSError as error:
        raise explain_os_error(error, path) from None


def _declares_too_little(pack: zipfile.ZipFile, entry: zipfile.ZipInfo, file: IO[bytes]) -> bool:
    """Whether a part is longer than it says; what is beyond its length stays compressed."""
    sizes = accumulate(len(block) for block in unpack_part(pack, entry, file))
    return any(size > entry.file_size for size in sizes)


def _explain_password(path: str | Path) -> BadInput:
    return BadInput("the workbook is encrypted with a password", file=path, right="save it without a password")


def _explain_damage(path: str | Path) -> BadInput:
    suffix = Path(path).suffix.lower()
    what, right = f"this is not a complete {suffix} workbook", f"save it again as {suffix}, or give a CSV file"
    return BadInput(what, file=path, right=right)


def unpack_part(pack: zipfile.ZipFile, entry: zipfile.ZipInfo, file: IO[bytes]) -> Iterator[bytes]:
    """Yield a part of an archive as it is, however long it says that it is.

    Args:
        pack: the archive.
        entry: the part.
        file: the file of the archive.

    >>> import io
    >>> file = io.BytesIO()
    >>> with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pack:
    ...     pack.writestr("a.txt", "age")
    >>> with zipfile.ZipFile(file) as pack:
    ...     b"".join(unpack_part(pack, pack.infolist()[0], file))
    b'age'
    """
    with pack.open(entry):  # its head is in order
        file.seek(entry.header_offset + 26)
        name, extra = struct.unpack("<HH", file.read(4))
        file.seek(name + extra, os.SEEK_CUR)
    packed, opened = entry.compress_size, zlib.decompressobj(-15)
    while packed > 0 and not opened.eof and (block := file.read(min(packed, READ))):
        packed -= len(block)
        if entry.compress_type != zipfile.ZIP_DEFLATED:
            yield block
            continue
        while block:
            yield opened.decompress(block, READ)
            block = opened.unconsumed_tail
    yield opened.flush()

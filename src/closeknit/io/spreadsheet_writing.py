"""Writing a release as .xlsx: the cells on the first sheet, the certificate on the second. No cell is a formula."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.io.canonical import cell_texts
from closeknit.io.extras import load_extra
from closeknit.io.loose_cells import fits_double
from closeknit.io.spreadsheets import BATCH, CERTIFICATE_SHEET, RELEASE_SHEET

MOST_ROWS, MOST_COLUMNS, LONGEST_CELL = 1_048_575, 16_384, 32_767  # rows below the header; characters of a cell
FIRST_DAY = np.datetime64("1900-03-01")  # spreadsheets count a day before it that never was
CREATED = datetime(2000, 1, 1)  # the same file for the same release
OTHER = "save it as csv or parquet"


def write_xlsx(columns: Columns, path: Path, certificate: str | None) -> None:
    """Write a workbook; text is never read as a formula, a number or an address.

    Args:
        columns: the cells.
        path: the new file.
        certificate: the certificate as JSON, for the second sheet; None for a part of a release.
    """
    xlsxwriter = load_extra("xlsxwriter", "excel", "spreadsheets", path)
    _refuse_large(columns, path)
    with xlsxwriter.Workbook(path, {"constant_memory": True, "tmpdir": path.parent}) as book:
        book.set_properties({"created": CREATED})
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        _write_table(book.add_worksheet(RELEASE_SHEET), columns, day)
        if certificate is not None:
            sheet = book.add_worksheet(CERTIFICATE_SHEET)
            for row, piece in enumerate(_split(certificate)):
                sheet.write_string(row, 0, piece)


def _refuse_large(columns: Columns, path: Path) -> None:
    if columns.rows > MOST_ROWS:
        raise BadInput(f"a sheet has at most {MOST_ROWS:,} rows, the release {columns.rows:,}", file=path, right=OTHER)
    if len(columns) > MOST_COLUMNS:
        raise BadInput(f"a sheet has at most {MOST_COLUMNS:,} columns", file=path, right=OTHER)
    for name, column in columns.items():
        texts = column.values.tolist() if column.values.dtype.kind == "O" else []
        if max(map(len, [name, *texts])) > LONGEST_CELL:
            raise BadInput(f"a cell has more than {LONGEST_CELL:,} characters", file=path, column=name, right=OTHER)


def _write_table(sheet: Any, columns: Columns, day: Any) -> None:
    for place, name in enumerate(columns):
        sheet.write_string(0, place, name)
    writers = [_choose_writer(sheet, column, day) for column in columns.values()]
    for first in range(0, columns.rows, BATCH):  # the rows of a sheet are written in order
        codes = [column.codes[first : first + BATCH].tolist() for column in columns.values()]
        for row, cells in enumerate(zip(*codes, strict=True), start=first + 1):
            for place, code in enumerate(cells):
                if code >= 0:
                    write, values, *style = writers[place]
                    write(row, place, values[code], *style)


def _choose_writer(sheet: Any, column: Column, day: Any) -> tuple[Any, ...]:
    """How the cells of a column are written: the method of the sheet, the values, and the format of a day."""
    column = column if len(column.values) else Column(np.array([], dtype=object), column.codes)
    kind, values = column.values.dtype.kind, column.values
    if kind == "b":
        return sheet.write_boolean, values.tolist()
    if kind == "M" and (values >= FIRST_DAY).all():
        return sheet.write_datetime, values.astype("datetime64[D]").tolist(), day
    if kind in "iu" and fits_double(values):
        return sheet.write_number, values.tolist()
    if kind == "f" and all(float(f"{value:.16G}") == value for value in values.tolist()):  # as the library writes them
        return sheet.write_number, values.tolist()
    return sheet.write_string, cell_texts(column)


def _split(text: str) -> Iterator[str]:
    """Pieces that fit into a cell."""
    for start in range(0, len(text), LONGEST_CELL):
        yield text[start : start + LONGEST_CELL]

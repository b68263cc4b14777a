"""NDJSON: one JSON object per line, the same names in every line, cells that are text, number, boolean or null."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from closeknit.core.columns import Columns
from closeknit.core.errors import BadInput
from closeknit.io.arrow import columns_from_arrow
from closeknit.io.csv import file_bytes
from closeknit.io.names import Wanted, check_names, choose_columns

BOM = b"\xef\xbb\xbf"
LARGEST = 2**53  # beyond it floats are not exact
_RIGHT = 'write one object per line, such as {"age": 41, "sex": "f"}'


class BadLine(ValueError):
    """Why a line cannot be a row."""


def row_of(line: bytes) -> dict[str, Any]:
    r"""The cells of one line; a line that is not a flat object with distinct names is refused.

    >>> row_of(b'{"age": 41.0, "smokes": true, "job": null}\n')
    {'age': 41, 'smokes': 'true', 'job': None}
    >>> row_of(b'{"age": [41]}')
    Traceback (most recent call last):
    closeknit.io.ndjson.BadLine: 'age' holds a list
    """
    try:
        row = _DECODER.decode(line.decode())
    except BadLine:
        raise
    except UnicodeDecodeError:
        raise BadLine("it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise BadLine(f"it is not JSON (character {error.colno}: {error.msg.lower()})") from None
    except (ValueError, RecursionError):  # a number with thousands of digits, or very deep nesting
        raise BadLine("it has too many digits or levels") from None
    if not isinstance(row, dict):
        raise BadLine("it is not a JSON object")
    return {name: _cell(name, value) for name, value in row.items()}


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise BadLine(f"'{next(name for name in names if names.count(name) > 1)}' occurs twice")
    return row


def _constant(text: str) -> None:
    raise BadLine(f"{text} is not a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _cell(name: str, value: Any) -> Any:
    """One spelling for equal values: a cell must not depend on the cells of other lines."""
    if isinstance(value, str):
        if "\0" in value:
            raise BadLine(f"'{name}' holds a NUL character")
        if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
            raise BadLine(f"'{name}' holds half a character")
        return value or None
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return value if abs(value) < LARGEST else str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadLine(f"'{name}' holds a number that is too large")
        return int(value) if value.is_integer() and abs(value) < LARGEST else value
    raise BadLine(f"'{name}' holds {'a list' if isinstance(value, list) else 'an object'}")


def lines_of(columns: Columns) -> Iterator[str]:
    r"""One line per row, without its line end; a missing value is null, dates are in ISO form.

    >>> list(lines_of(Columns.of({"age": ["[30, 39]", "41"], "cost": [3.0, None]})))
    ['{"age":"[30, 39]","cost":3}', '{"age":"41","cost":null}']
    """
    ends = [*("," for _ in range(len(columns) - 1)), "}"]
    parts = []
    for i, (name, column) in enumerate(columns.items()):
        before = ("{" if i == 0 else "") + json.dumps(name, ensure_ascii=False) + ":"
        texts = [before + _render_cell(value) + ends[i] for value in [*column.values.tolist(), None]]
        parts.append([texts[code] for code in column.codes.tolist()])
    return ("".join(cells) for cells in zip(*parts, strict=True))


def _render_cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST:
        return str(int(value))
    return json.dumps(str(value) if isinstance(value, date) else value, ensure_ascii=False)


def read_ndjson(path: str | PathLike[str], columns: Wanted = None) -> Columns:
    r"""The table in a file of JSON lines (gzip or not); every line must have the names of the first one.

    Args:
        path: the file.
        columns: the columns to read, in this order; all if left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "wards.ndjson"
    ...     _ = file.write_text('{"ward": "A", "cost": 1.5}\n{"ward": "B", "cost": null}\n', encoding="utf-8")
    ...     read_ndjson(file)["cost"].cells()
    [1.5, None]
    """
    file = Path(path)
    lines = file_bytes(file).removeprefix(BOM).split(b"\n")
    names: list[str] | None = None
    wanted: list[str] = []
    cells: dict[str, list[Any]] = {}
    row = 0
    for line in lines:
        if not line.strip():
            continue
        row += 1
        try:
            found = row_of(line)
        except BadLine as bad:
            raise BadInput(f"the line cannot be read: {bad}", file=file, row=row, right=_RIGHT) from None
        if names is None:
            names = list(found)
            check_names(names, file)
            wanted = choose_columns(names, columns, file)
            cells = {name: [] for name in wanted}
        if list(found) != names:
            _refuse_other_names(found, names, file, row)
        for name in wanted:
            cells[name].append(found[name])
    if names is None:
        raise BadInput("the file is empty", file=file, right="give a table with at least one row")
    return columns_from_arrow(_table(cells, file), file)


def _refuse_other_names(found: Mapping[str, Any], names: list[str], file: Path, row: int) -> None:
    for name in names:
        if name not in found:
            right = "give every line the names of the first one; write null for a missing value"
            raise BadInput("the line does not have it", file=file, column=name, row=row, right=right)
    for name in found:
        if name not in names:
            raise BadInput("the first line does not have it", file=file, column=name, row=row, right="give it in every line")


def _table(cells: Mapping[str, list[Any]], file: Path) -> pa.Table:
    arrays = {}
    for name, column in cells.items():
        try:
            arrays[name] = pa.array(column)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            kinds = [isinstance(cell, str) for cell in column if cell is not None]
            row = [i for i, cell in enumerate(column, start=1) if cell is not None][kinds.index(not kinds[0])]
            right = "give text or numbers, one kind in a column"
            raise BadInput("the cells mix kinds of values", file=file, column=name, row=row, right=right) from None
    return pa.table(arrays)

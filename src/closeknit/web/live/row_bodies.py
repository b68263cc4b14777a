"""The rows of a request, as NDJSON, JSON or CSV. A request with a row that cannot be read is refused as a whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from closeknit.core.errors import BadInput
from closeknit.core.schema import Schema
from closeknit.io.csv import CsvFormat
from closeknit.io.ndjson import BOM
from closeknit.streams.arrival_order import ArrivalOrder
from closeknit.streams.lines import ArrivedRow, CsvRows, Lines, NdjsonRows, RejectedLine, Rows

NDJSON, JSON, CSV = KINDS = ("application/x-ndjson", "application/json", "text/csv")
Row = dict[str, Any]


def read_rows(body: bytes, kind: str, schema: Schema, columns: Sequence[str] = ()) -> list[Row]:
    r"""Read the rows of a request and check that each has the columns of the stream.

    Args:
        body: the request.
        kind: its media type; NDJSON if it is another one, such as that of a form, which curl sends by default.
        schema: roles and kinds of the columns.
        columns: further columns that are read and not published: position and time.

    >>> from closeknit.core.kinds import numeric
    >>> schema = Schema(quasi={"age": numeric(0, 100)})
    >>> read_rows(b'{"age": 30}\n{"age": 31}\n', NDJSON, schema), read_rows(b'[{"age": 30}]', JSON, schema)
    ([{'age': 30}, {'age': 31}], [{'age': 30}])
    >>> read_rows(b'age\n30\n', CSV, schema)
    [{'age': '30'}]
    >>> read_rows(b'{"age": 30}\n{"ag": 31}\n', NDJSON, schema)
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: row 2: 'age' is not in the row; correct it and send the request again
    """
    order = ArrivalOrder(schema)
    order_columns = [name for name in columns if name not in schema.used]
    found = list(_rows_of_list(body) if kind == JSON else _rows_of_lines(body, kind, order, order_columns))
    bad = [each for each in found if isinstance(each, RejectedLine)]
    rows = [each for each in found if isinstance(each, ArrivedRow)]
    for each in rows:
        for name in order_columns:
            if name not in each.row:
                bad.append(RejectedLine(each.line, f"'{name}' is not in the row", ""))
    hidden = [each._replace(row={name: cell for name, cell in each.row.items() if name not in order_columns}) for each in rows]
    bad += order.check_rows(hidden)[1]
    if bad:
        first = min(bad)
        raise BadInput(f"row {first.line:,}: {first.why}", right="correct it and send the request again")
    return [each.row for each in rows]


def _rows_of_lines(body: bytes, kind: str, order: ArrivalOrder, columns: Sequence[str]) -> list[ArrivedRow | RejectedLine]:
    def check(names: Sequence[str]) -> None:
        order.check_header([name for name in names if name not in columns])

    reader: Rows = CsvRows(CsvFormat(delimiter=","), check=check) if kind == CSV else NdjsonRows()
    return list(reader.read(Lines().cut(body, last=True), last=True))


def _rows_of_list(body: bytes) -> list[ArrivedRow | RejectedLine]:
    """A JSON list, or one object; `row_of` then checks the cells of each as it does for a line."""
    try:
        found = json.loads(body.removeprefix(BOM), object_pairs_hook=_refuse_doubles)
    except (ValueError, RecursionError):
        raise BadInput("the request is not JSON", right='send a list of objects, such as [{"age": 41}]') from None
    listed = found if isinstance(found, list) else [found]
    lines = b"\n".join(json.dumps(each).encode() for each in listed)
    return list(NdjsonRows().read(Lines().cut(lines, last=True), last=True))


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise BadInput("a name occurs twice in a row", right="give every column once")
    return row

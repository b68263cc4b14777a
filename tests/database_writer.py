"""Writes numbered releases into a table; as a command, one after the other until the process is killed."""

from __future__ import annotations

import json
import sys

from closeknit.core.columns import Columns
from closeknit.io.database import Database

ROWS = 3000


def write(url: str, table: str, number: int, replace: bool = False, rows: int = ROWS) -> None:
    """A release whose cells, certificate and recipe have the same number."""
    columns = Columns.of({"number": [number] * rows, "text": [f"row {i} of {number}" for i in range(rows)]})
    private = {"recipe.yaml": str(number), "classes.csv": Columns.of({"class": [number] * rows})}
    certificate = json.dumps({"number": number, "content_sha256": ""})
    Database(url, table).write(columns, certificate, private, replace)


if __name__ == "__main__":
    print("ready", flush=True)
    for number in range(10**9):
        write(*sys.argv[1:], number, replace=number > 0)
        print(number, flush=True)

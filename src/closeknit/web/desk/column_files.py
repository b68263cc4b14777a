"""The coded columns of a table as files, so that a page about one column need not read the table again.

Codes are memory-mapped; of a column with very many distinct values only the name is kept.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput

MOST_VALUES = 200_000  # distinct values of a column that a page can show


def save_columns(columns: Columns, folder: Path) -> None:
    """Write the columns of a table into a folder of its own.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     save_columns(Columns.of({"age": [41, None, 30], "job": ["cook", "nurse", "cook"]}), Path(home, "columns"))
    ...     table = load_columns(Path(home, "columns"))
    ...     table.rows, table["age"].cells(), table["job"].cells()
    (3, [41, None, 30], ['cook', 'nurse', 'cook'])
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    for number, column in enumerate(columns.values()):
        if len(column.values) > MOST_VALUES:
            continue
        _save(folder / f"{number}.codes.npy", column.codes)
        if column.values.dtype.kind == "O":
            _write(folder / f"{number}.json", json.dumps(column.values.tolist()).encode())
        else:
            _save(folder / f"{number}.values.npy", column.values)
    _write(folder / "names.json", json.dumps({"names": list(columns), "rows": columns.rows}).encode())


def load_columns(folder: Path) -> Columns:
    """Return the columns of such a folder; each is read on first use."""
    record = json.loads((folder / "names.json").read_text(encoding="utf-8"))
    return Columns(_StoredColumns(folder, record["names"]), record["rows"])


class _StoredColumns(dict[str, Column]):
    """Columns by name, each read from its files on access."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        super().__init__(dict.fromkeys(names))  # type: ignore[arg-type]
        self._folder, self._number = folder, {name: number for number, name in enumerate(names)}

    def __getitem__(self, name: str) -> Column:
        number = self._number[name]
        codes = self._folder / f"{number}.codes.npy"
        if not codes.is_file():
            right = f"a column with more than {MOST_VALUES:,} distinct values can be used, but not shown here"
            raise BadInput("has too many values for a page", column=name, right=right)
        texts = self._folder / f"{number}.json"
        if texts.is_file():
            values: Any = np.array(json.loads(texts.read_text(encoding="utf-8")), dtype=object)
        else:
            values = np.load(self._folder / f"{number}.values.npy", allow_pickle=False)
        return Column(values, np.load(codes, mmap_mode="r", allow_pickle=False))


def _save(place: Path, array: Any) -> None:
    with _open_private(place) as file:
        np.save(file, array, allow_pickle=False)


def _write(place: Path, text: bytes) -> None:
    with _open_private(place) as file:
        file.write(text)


def _open_private(place: Path) -> Any:
    return os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")

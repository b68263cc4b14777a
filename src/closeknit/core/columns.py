"""`Columns`: a table as `io` reads and writes it: per column the distinct values and one code per row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.counting.histograms import count_codes

Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Column:
    """One column.

    Args:
        values: distinct values: text as objects, numbers, booleans or datetime64[D].
        codes: the place in `values` of each row's value; -1 = no value.

    >>> column = Column(np.array(["flu", "SARS"], dtype=object), np.array([0, 1, -1, 0], dtype=np.int32))
    >>> column.cells()
    ['flu', 'SARS', None, 'flu']
    """

    values: NDArray[np.generic]
    codes: Codes

    def __post_init__(self) -> None:
        if self.codes.dtype != np.int32:
            object.__setattr__(self, "codes", self.codes.astype(np.int32))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows per distinct value; rows without a value are not counted."""
        return count_codes(self.codes, len(self.values))

    @property
    def coded(self) -> tuple[Codes, int]:
        """Codes from 0, the missing value first, and how many there are: a key to sort and group rows by."""
        return self.codes + 1, len(self.values) + 1

    @classmethod
    def of(cls, cells: NDArray[Any]) -> Column:
        """From the value of every row, distinct values in ascending order.

        >>> Column.of(np.array([7, 3, 7])).codes.tolist()
        [1, 0, 1]
        """
        values, codes = np.unique(cells, return_inverse=True)
        return cls(values, codes.astype(np.int32))

    def drop_unused(self) -> Column:
        """The same cells without the distinct values that no row has: removed values must not be published.

        >>> Column(np.array([3, 7]), np.array([1])).drop_unused().values.tolist()
        [7]
        """
        used = self.counts > 0
        if used.all():
            return self
        renumber = np.append(np.cumsum(used) - 1, -1).astype(np.int32)
        return Column(self.values[used], renumber[self.codes])

    def take(self, rows: NDArray[np.integer]) -> Column:
        """The same column for other rows; all distinct values are kept, including those that no row has any more."""
        return Column(self.values, self.codes[rows])

    def with_texts(self, texts: Sequence[str]) -> Column:
        """The same cells with other texts for the distinct values; those that become equal are one value."""
        seen: dict[str, int] = {}
        place = [seen.setdefault(text, len(seen)) for text in texts]
        return Column(np.array(list(seen), dtype=object), np.array([*place, -1], dtype=np.int32)[self.codes])

    def cells(self) -> list[object]:
        """The plain Python value of every row (for small tables and tests)."""
        values = self.values.tolist()
        return [values[code] if code >= 0 else None for code in self.codes.tolist()]

    def first_row(self, value_code: int) -> int:
        """Number (from 1) of the first row that has this value, for error messages."""
        return int(np.argmax(self.codes == value_code)) + 1


@dataclass(frozen=True)
class Columns(Mapping[str, Column]):
    """Named columns of equal length, in order.

    Args:
        columns: the columns by name.
        rows: number of rows.

    >>> columns = Columns.of({"age": [30, 41, 30], "sex": ["f", None, "m"]})
    >>> columns.rows, list(columns), columns["age"].values.tolist()
    (3, ['age', 'sex'], [30, 41])
    """

    columns: dict[str, Column]
    rows: int

    @classmethod
    def of(cls, cells: Mapping[str, list[object]]) -> Columns:
        """From plain lists (for tests and small tables); distinct values keep the order of their first appearance."""
        columns = {}
        for name, column in cells.items():
            seen: dict[object, int] = {}
            codes = [-1 if cell is None else seen.setdefault(cell, len(seen)) for cell in column]
            text = any(isinstance(value, str) for value in seen) or not seen
            values = np.array(list(seen), dtype=object if text else None)
            columns[name] = Column(values, np.array(codes, dtype=np.int32))
        return cls(columns, len(next(iter(columns.values()))) if columns else 0)

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def select(self, names: Iterable[str]) -> Columns:
        """These columns only, in this order."""
        return Columns({name: self[name] for name in names}, self.rows)

    def list_rows(self) -> list[dict[str, Any]]:
        """The rows as mappings of plain Python values (for small tables)."""
        cells = {name: column.cells() for name, column in self.columns.items()}
        return [{name: column[i] for name, column in cells.items()} for i in range(self.rows)]

    def take(self, rows: NDArray[np.integer]) -> Columns:
        """The rows at these positions, in this order."""
        return Columns({name: column.take(rows) for name, column in self.columns.items()}, len(rows))


NO_CELLS = Column(np.empty(0, dtype=object), np.empty(0, dtype=np.int32))  # a column of a table without rows


def array_cells(cells: Sequence[Any]) -> NDArray[np.object_]:
    """Cells as an array of objects, whatever their types: numpy would convert numbers, and look into lists.

    >>> array_cells([1, None, "a"]).tolist()
    [1, None, 'a']
    """
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def concat_columns(parts: Sequence[Columns]) -> Columns:
    """Concatenate the rows of tables with the same columns.

    >>> [concat_columns([Columns.of({"a": [1, 2]}), Columns.of({"a": [2, None]})])["a"].cells()]
    [[1, 2, 2, None]]
    """
    if len(parts) == 1:
        return parts[0]
    cells = {}
    for name in parts[0]:
        seen: dict[Any, int] = {}
        codes = []
        for part in parts:
            column = part[name]
            code_of = np.array([*(seen.setdefault(value, len(seen)) for value in column.values.tolist()), -1], dtype=np.int32)
            codes.append(code_of[column.codes])
        kinds = {part[name].values.dtype for part in parts if len(part[name].values)}
        cells[name] = Column(np.array(list(seen), np.result_type(*kinds) if kinds else object), np.concatenate(codes))
    return Columns(cells, sum(part.rows for part in parts))

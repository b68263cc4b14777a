"""Engines whose transactions cover the creation of tables: all tables appear together, or none does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from closeknit.core.columns import Column, Columns
from closeknit.core.errors import BadInput
from closeknit.core.row_sorting import row_order
from closeknit.io.canonical import cell_texts
from closeknit.io.databases.connection import Connection
from closeknit.io.databases.table_name import TableName


class Transactional(Connection):
    """One transaction: create and fill the tables, read them back, compare, commit."""

    @abstractmethod
    def insert(self, table: TableName, columns: Columns) -> None:
        """Fill a new table."""

    def commit(self) -> None:
        """Commit the transaction."""
        self.fetch("COMMIT")

    def write(self, tables: Mapping[TableName, Columns], replaced: Sequence[TableName], place: str) -> None:
        """Write all tables or none, in place of others."""
        for table in replaced:
            self.fetch(f"DROP TABLE {self.render(table)}")
        for table, columns in tables.items():
            self.fetch(f"CREATE TABLE {self.render(table)} ({self.declare(columns)})")
            self.insert(table, columns)
            compare_written(self, table, columns, place)
        self.commit()


def compare_written(connection: Connection, table: TableName, columns: Columns, place: str) -> None:
    """Refuse a table whose cells are not those that were sent: a server may cut names and texts, or round numbers.

    Args:
        connection: where the table is.
        table: its name.
        columns: what was sent.
        place: where it is, in messages.
    """
    found = connection.read(table, None, place)
    if list(found) != list(columns) or found.rows != columns.rows or not same_rows(found, columns):
        what = f"{connection.name} returns other cells than were written to '{table}'; nothing is kept"
        raise BadInput(what, file=place, right="check the character set of the database, and the length of names and cells")


def same_rows(one: Columns, other: Columns) -> bool:
    """Whether two tables with the same columns have the same rows in any order, by the canonical texts of their cells.

    Args:
        one: a table.
        other: the other one.

    >>> same_rows(Columns.of({"a": [1, 2, None]}), Columns.of({"a": ["2", None, "1"]}))
    True
    """
    pairs = []
    for name in one:
        first, second = one[name].drop_unused(), other[name].drop_unused()
        place = _places(first, second)
        if place is None:
            return False
        pairs.append((first.codes + 1, np.append(place, -1)[second.codes] + 1, len(first.values) + 1))
    if all(np.array_equal(first, second) for first, second, _ in pairs):
        return True
    order = row_order([(first, size) for first, _, size in pairs], one.rows)
    others = row_order([(second, size) for _, second, size in pairs], one.rows)
    return all(np.array_equal(first[order], second[others]) for first, second, _ in pairs)


def _places(one: Column, other: Column) -> NDArray[np.int64] | None:
    """Where the distinct values of one column are in another column; None if one of them is not there."""
    if one.values.dtype.kind == other.values.dtype.kind == "i":
        order, others = np.argsort(one.values), np.argsort(other.values)
        if not np.array_equal(one.values[order], other.values[others]):
            return None
        place = np.empty(len(others), dtype=np.int64)
        place[others] = order
        return place
    known = dict(zip(_texts(one), range(len(one.values)), strict=True))
    found = list(map(known.get, _texts(other)))
    return None if None in found else np.array(found, dtype=np.int64)


def _texts(column: Column) -> list[str]:
    values = column.values.tolist()
    return values if set(map(type, values)) <= {str} else cell_texts(column)

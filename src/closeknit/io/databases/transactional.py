"""Engines whose transactions cover the creation of tables: all tables appear together, or none does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from closeknit.core.columns import Codes, Column, Columns
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

    @abstractmethod
    def commit(self) -> None:
        """Commit the transaction."""

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
    pairs = [_match_codes(one[name], other[name]) for name in one]
    if all(np.array_equal(first, second) for first, second, _ in pairs):
        return True
    order = row_order([(first, size) for first, _, size in pairs], one.rows)
    others = row_order([(second, size) for _, second, size in pairs], one.rows)
    return all(np.array_equal(first[order], second[others]) for first, second, _ in pairs)


def _match_codes(one: Column, other: Column) -> tuple[Codes, Codes, int]:
    seen: dict[str, int] = {"": 0}  # the missing cell
    sides = []
    for column in (one, other):
        place = [seen.setdefault(text, len(seen)) for text in cell_texts(column)]
        sides.append(np.array([*place, 0], dtype=np.int32)[column.codes])
    return sides[0], sides[1], len(seen)

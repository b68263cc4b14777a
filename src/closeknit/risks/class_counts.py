"""`ClassCounts`: the rows, or persons, that share their quasi-identifiers, in a raw table or in written cells.

In a raw table rows with equal cells form a class (numbers are equal if their values are, missing is a value of its own). In a
release the classes are those that its form reads from the written cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.columns import Column, Columns
from closeknit.core.covering import Covering
from closeknit.core.errors import BadInput, suggest_name
from closeknit.core.exact import Floats, Ints
from closeknit.core.kinds import Kind, Numeric, texts_of
from closeknit.core.population_uniques import SizeCounts
from closeknit.core.reading import Reading
from closeknit.core.row_sorting import groups, row_of_each
from closeknit.core.schema import Schema
from closeknit.kernels.arrays import Int32
from closeknit.kernels.geometry.overlaps import box_tree, overlapping_weight

EXACT_DIGITS = 15  # a float distinguishes all numbers of so many digits


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """People who share their quasi-identifiers.

    Args:
        class_of: Class of each row.
        people: People of each class: rows, or persons where these are known.
        among: People among whom an adversary chooses, by class; the people of the class unless missing cells match all others.
        cells: Coded cells of each quasi-identifier; -1 is a missing cell.
        columns: The cells, to name a class.
        persons: Person of each row, where rows have persons.
        suppressed: Rows that are not published.
        counted: What people are: "rows" or "persons".

    >>> from closeknit.core.kinds import flat, numeric
    >>> table = Columns.of({"age": ["30", "30.0", "41"], "sex": ["f", "f", None]})
    >>> found = ClassCounts.of_table(table, Schema(quasi={"age": numeric(), "sex": flat()}))
    >>> found.people.tolist(), found.describe(1)
    ([2, 1], 'age 41, sex missing')
    """

    class_of: Int32
    people: Ints
    among: Ints
    cells: Mapping[str, Column]
    columns: Columns
    persons: Ints | None = None
    suppressed: int = 0
    counted: str = "rows"

    @classmethod
    def of_table(cls, columns: Columns, schema: Schema) -> ClassCounts:
        """Count a raw table, in persons where the schema declares them."""
        for name in schema.quasi:
            if name not in columns:
                raise BadInput("is not in the table", column=name, right=suggest_name(name, columns))
        cells = {name: _equal_cells(columns[name], schema, kind) for name, kind in schema.quasi.items()}
        class_of, count = groups([cell.coded for cell in cells.values()], columns.rows)
        persons = None
        if schema.person is not None:
            if (columns[schema.person].codes < 0).any():
                raise BadInput("a row has no person", column=schema.person, right="give every row a person")
            persons = columns[schema.person].codes.astype(np.int64)
        people = Classes.of(class_of, count, {}, persons).persons
        return cls(class_of, people, people, cells, columns, persons, counted="rows" if persons is None else "persons")

    @classmethod
    def of_reading(cls, reading: Reading, suppressed: int = 0) -> ClassCounts:
        """Count the classes that a form has read from written cells."""
        cells, people = {name: reading.cells(name) for name in reading.schema.quasi}, reading.classes.persons
        return cls(reading.class_of, people, people, cells, reading.columns, None, suppressed)

    @classmethod
    def of_sizes(cls, people: Ints, suppressed: int = 0, counted: str = "rows") -> ClassCounts:
        """Classes of which only the sizes are known.

        >>> ClassCounts.of_sizes(np.array([2, 1])).class_of.tolist()
        [0, 0, 1]
        """
        class_of = np.repeat(np.arange(len(people)), people).astype(np.int32)
        return cls(class_of, people, people, {}, Columns({}, len(class_of)), None, suppressed, counted)

    @property
    def total(self) -> int:
        """People of all classes, n; a person of several classes counts in each."""
        return int(self.people.sum())

    @property
    def sizes(self) -> SizeCounts:
        """How many classes of each size there are."""
        return SizeCounts.of(self.people)

    @property
    def first_rows(self) -> Ints:
        """A row of each class."""
        return row_of_each(self.class_of, len(self.people))

    def describe(self, index: int) -> str:
        """The cells of one class in words."""
        row = np.array([int(np.argmax(self.class_of == index))])
        cells = {name: self.columns[name].take(row).cells()[0] for name in self.cells}
        return ", ".join(f"{name} {'missing' if cell is None else cell}" for name, cell in cells.items())

    def match_missing(self) -> ClassCounts:
        """The same rows, with a missing cell that matches every other: for comparison with tools that count so.

        >>> from closeknit.core.kinds import flat
        >>> found = ClassCounts.of_table(Columns.of({"sex": ["f", "m", None]}), Schema(quasi={"sex": flat()}))
        >>> sorted(found.match_missing().among.tolist())
        [2, 2, 3]
        """
        return replace(self, among=self.sum_matching(self.people.astype(np.float64)).round().astype(np.int64))

    def sum_matching(self, weights: Floats) -> Floats:
        """Sum a weight over all classes that match each class, where a missing cell matches every other."""
        rows = self.first_rows
        codes = np.column_stack([cell.codes[rows] for cell in self.cells.values()])
        last = np.array([len(cell.values) for cell in self.cells.values()], dtype=np.int32)
        lo, hi = np.where(codes < 0, 0, codes).astype(np.int32), np.where(codes < 0, last, codes).astype(np.int32)
        return overlapping_weight(box_tree(lo, hi, weights), lo, hi)

    def count_population(self, people: Columns, schema: Schema, names: list[str]) -> Ints:
        """Count the people of a population whom the cells of each class cover, in the columns that both have.

        A class that covers fewer people than it has is refused: the population is then not the one it was drawn from.

        Args:
            people: The population, one row for each person.
            schema: The schema of the raw columns.
            names: The quasi-identifiers of the population.
        """
        if people.rows < self.total:
            what = f"the population has {people.rows:,} people and the table {self.total:,}"
            raise BadInput(what, right="give the list of all people from whom the table was drawn")
        covering = Covering.of(self.columns, people, schema, names)
        covered = covering.people_in_boxes[covering.box_of[self.first_rows]]
        short = np.flatnonzero(covered < self.people)
        if len(short):
            index = int(short[0])
            what = f"the population does not cover the class {self.describe(index)}: it has {int(self.people[index]):,} people"
            right = "give the list of all people from whom the table was drawn"
            raise BadInput(f"{what}, and the population {int(covered[index]):,} who match", right=right)
        return covered


def _equal_cells(column: Column, schema: Schema, kind: Kind) -> Column:
    """The same cells with one code for equal ones: numbers by value, missing-value codes as missing."""
    missing = np.append(schema.flag_missing(column.values), True)  # the last entry is that of code -1
    known = Column(column.values, np.where(missing[column.codes], -1, column.codes).astype(np.int32))
    if column.values.dtype.kind != "O":
        return known
    numbers = _numbers_of(column.values[~missing[:-1]]) if isinstance(kind, Numeric) else None
    if numbers is None:
        return known.with_texts(texts_of(column.values))
    values, place = np.unique(numbers, return_inverse=True)
    code_of = np.full(len(missing), -1, dtype=np.int32)
    code_of[~missing] = place
    return Column(values, code_of[column.codes])


def _numbers_of(values: NDArray[np.generic]) -> Floats | None:
    """The numbers; None if one is none, or has more digits than a float."""
    if any(len(text) > EXACT_DIGITS for text in texts_of(values)):
        return None
    try:
        return values.astype(np.float64)
    except ValueError:
        return None

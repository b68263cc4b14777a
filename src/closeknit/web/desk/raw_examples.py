"""The level of the raw table for each guarantee, as a sentence with numbers and cells of this table."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closeknit.attacks.finding_texts import format_count
from closeknit.core.classes import Classes
from closeknit.core.model import Model
from closeknit.core.table import Table
from closeknit.web.desk.table_preview import short

MOST_CELLS = 5  # of a class that is named
LONGEST_CELL = 30


@dataclass(frozen=True)
class CurrentLevel:
    """The level of the raw table, None if it has no limit or no meaning, and its text."""

    level: float | None
    text: str


@dataclass(frozen=True, eq=False)
class Example:
    """The raw table, in which rows with equal quasi-identifiers are a class."""

    table: Table
    class_of: NDArray[np.int32]
    classes: Classes
    known: dict[Model, tuple[int, float]] = field(default_factory=dict, repr=False)  # computing all levels is slow

    @cached_property
    def word(self) -> str:
        """What is counted: rows or persons."""
        return "row" if self.table.persons is None else "person"

    def today(self, model: Model) -> CurrentLevel:
        """Return the level of the worst class."""
        together = model.level_together(self.classes)
        if "population" in model.needs:
            return CurrentLevel(None, "not measured")
        if "release" in model.needs and "histograms" not in model.needs and together is None:
            return CurrentLevel(None, "no limit")  # it is about replaced values, and the raw table replaces none
        level = self._worst(model)[1] if together is None else together
        return CurrentLevel(None, "no limit") if math.isinf(level) else CurrentLevel(level, f"{level:.4g}")

    def worst(self, model: Model) -> int:
        """Return the class that is nearest to violating a guarantee."""
        return self._worst(model)[0]

    def _worst(self, model: Model) -> tuple[int, float]:
        if model not in self.known:
            levels = model.levels(self.classes)
            index = model.find_worst(levels)
            self.known[model] = index, float(levels[index])
        return self.known[model]

    def sentence(self, model: Model, today: CurrentLevel) -> str:
        """Describe how far the table is from a guarantee; of a user's own model only the level."""
        if "population" in model.needs:
            return "It is judged on the written cells, with the people of the uploaded population."
        if model.level_together(self.classes) is not None:
            return f"Today it is {today.text}: {_size(self)[6:]}"
        if "release" in model.needs and "histograms" not in model.needs:
            return f"Today every row shows its true {model.column or 'sensitive values'}."
        if model.bounds == "size":
            return _size(self)
        if model.least_values:
            return _diversity(self, model, today)
        limits = None if model.column is None else model.limits(self.classes.histograms[model.column])
        if limits is not None and limits.distance is not None:
            return _closeness(self, model, today)
        if limits is not None and limits.growth is not None:
            return _likeness(self, model, today)
        if limits is not None and limits.floors:
            return _disclosure(self, model, today)
        return f"Today the level of the worst class is {today.text}."

    def cells(self, index: int) -> str:
        """Return the quasi-identifiers that the rows of a class share."""
        row = int(np.argmax(self.class_of == index))
        cells = []
        for place, name in enumerate(list(self.table.schema.quasi)[:MOST_CELLS]):
            domain, code = self.table.quasi_domains[place], int(self.table.quasi[row, place])
            cells.append(f"{name} {short(domain.texts[code], LONGEST_CELL) if code < domain.size else 'missing'}")
        more = len(self.table.schema.quasi) - MOST_CELLS
        return ", ".join(cells) + (f" and {format_count(more, 'more cell')}" if more > 0 else "")

    def secrets(self, column: Any, index: int) -> list[tuple[str, int]]:
        """Return the sensitive values of a class with their counts, most frequent first."""
        histogram = self.classes.histograms[column]
        part = histogram.entries(index)
        texts = [*histogram.domain.texts, "missing"]
        pairs = zip(histogram.values[part].tolist(), histogram.counts[part].tolist(), strict=True)
        return sorted(((short(texts[value], LONGEST_CELL), count) for value, count in pairs), key=lambda pair: -pair[1])

    def size(self, index: int) -> str:
        """Return the number of rows of a class, in words."""
        return format_count(int(self.classes.sizes[index]), "row")


def unique_persons(table: Table, class_of: NDArray[np.int32], classes: Classes) -> int:
    """Count persons (rows, if there is no person column) with a unique combination of quasi-identifiers.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> from closeknit.core.table import Partition
    >>> schema = ck.Schema(quasi={"age": ck.numeric()}, person="pid")
    >>> table = schema.encode(Columns.of({"age": [30, 31, 40, 40], "pid": [1, 1, 2, 3]}))
    >>> class_of = np.array([0, 1, 2, 2], dtype=np.int32)
    >>> unique_persons(table, class_of, table.count_classes(Partition(class_of, 3)))  # two combinations, of one person
    1
    """
    rows = classes.persons[class_of] == 1
    return int(rows.sum()) if table.persons is None else len(np.unique(table.persons[rows]))


def _size(example: Example) -> str:
    names = list(example.table.schema.quasi)
    more = len(names) - MOST_CELLS
    *most, last = [*names[:MOST_CELLS], format_count(more, "more column")] if more > 0 else names
    combination = f"{', '.join(most)} and {last}" if most else last
    what = "value" if len(names) == 1 else "combination"
    word, least = example.word, int(example.classes.persons.min())
    alone, persons = unique_persons(example.table, example.class_of, example.classes), example.table.persons
    people = len(example.table) if persons is None else len(np.unique(persons))
    many = "people" if word == "person" else "rows"
    unique = f"{alone:,} of {people:,} {many} {'is' if alone == 1 else 'are'} unique"
    return f"Today the rarest {what} of {combination} is shared by {format_count(least, word, many)}; {unique}."


def _diversity(example: Example, model: Model, today: CurrentLevel) -> str:
    index = example.worst(model)
    values = example.secrets(model.column, index)
    several = len(values) > 1
    which = f"{len(values)} values of {model.column}, most often ‘{values[0][0]}’" if several else f"‘{values[0][0]}’ only"
    return f"Today {example.size(index)} with {example.cells(index)} {_have(example, index)} {which}: {_is('l', today)}."


def _closeness(example: Example, model: Model, today: CurrentLevel) -> str:
    index = example.worst(model)
    values = example.secrets(model.column, index)
    total = sum(count for _, count in values)
    alone = "" if len(values) == 1 else "mostly " if 2 * values[0][1] > total else "among others "
    have = f"{_have(example, index)} {alone}the {model.column} ‘{values[0][0]}’"
    far = f"no class is farther from the whole table, {today.text}"
    return f"Today {example.size(index)} with {example.cells(index)} {have}: {far}."


def _likeness(example: Example, model: Model, today: CurrentLevel) -> str:
    """Describe the value whose probability grows most."""
    histogram = example.classes.histograms[model.column]  # type: ignore[index]
    expected = histogram.totals[histogram.owner] * histogram.reference[histogram.values]
    gains = histogram.counts * int(histogram.reference.sum()) / np.maximum(expected, 1)
    entry = int(np.argmax(gains))
    index, texts = int(histogram.owner[entry]), [*histogram.domain.texts, "missing"]
    value = short(texts[int(histogram.values[entry])], LONGEST_CELL)
    gain = float(gains[entry])
    times = f"{f'{gain:,.0f}' if gain >= 100 else f'{gain:.3g}'} times as likely as in the whole table"
    return f"Today knowing {example.cells(index)} makes the {model.column} ‘{value}’ {times}: {_is('beta', today)}."


def _disclosure(example: Example, model: Model, today: CurrentLevel) -> str:
    histogram = example.classes.histograms[model.column]  # type: ignore[index]
    index = int(np.argmin(np.diff(histogram.starts)))
    lacking = int(np.count_nonzero(histogram.reference)) - len(example.secrets(model.column, index))
    if lacking:
        which = f"{format_count(lacking, 'value')} of {model.column} can be ruled out"
        return f"Today {which} for a person with {example.cells(index)}: {_is('delta', today)}."
    index = example.worst(model)
    return f"Today the class with {example.cells(index)} changes the probability of a value most: {_is('delta', today)}."


def _is(name: str, today: CurrentLevel) -> str:
    return f"{name} has no limit" if today.level is None else f"{name} is {today.text}"


def _have(example: Example, index: int) -> str:
    return "has" if int(example.classes.sizes[index]) == 1 else "have"

"""The population from which a table is drawn: who reads it, how many people fit written cells, and what a certificate states.

People are counted by cover, as in `core.covering`: a range fits everyone with a value in it. A population is a path, a frame or
`Columns`. It is private: a certificate states the number of its people only, and a model that was read from a certificate has
that number instead of the people, so its guarantee cannot be checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from os import PathLike, fspath, stat
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.covering import Covering, raw_schema
from closeknit.core.errors import BadInput
from closeknit.core.model import Model, Verdict
from closeknit.core.params import whole
from closeknit.core.reading import Reading
from closeknit.core.schema import Schema
from closeknit.io.files import read
from closeknit.io.parquet import parquet_size

WHY = "it counts people of a population that is not published"
UNKNOWN = "the people of the population are not known, only their number"


@dataclass(frozen=True)
class People:
    """A population without a file; it is written as the number of its people.

    Args:
        columns: the people.
    """

    columns: Columns = field(repr=False)

    def __index__(self) -> int:
        return self.columns.rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, People) and self.columns is other.columns

    def __hash__(self) -> int:
        return id(self.columns)


class PopulationModel(Model):
    """Base class of guarantees with a field `population`; None where no people are counted."""

    population: Any
    level_of_none: ClassVar[float | None] = None  # what a release without classes reaches

    @property
    def by_class(self) -> bool:
        """Whether rows are counted, not people."""
        return self.population is None

    @property
    def forms(self) -> frozenset[str]:
        """People fit generalized cells."""
        return frozenset({"generalized", *(("perturbed",) if self.population is None else ())})

    @property
    def people_text(self) -> str:
        """What a text adds where people are counted."""
        return "" if self.population is None else f", in a population of {count_all(self.population):,} people"

    def judge_release(self, reading: Reading, originals: NDArray[np.int32] | None) -> Verdict:
        """Attested where the people are known: they are not published."""
        if not is_known(self.population):
            return Verdict(False, None, "not checkable", why=UNKNOWN)
        if len(reading.classes) == 0:
            return Verdict(True, self.level_of_none, "attested", why=WHY)
        covering = cover_people(reading, self.population)
        inside = count_people(reading, covering)
        refuse_uncovered(reading, inside)
        return self.judge_people(reading, covering, inside)

    def judge_people(self, reading: Reading, covering: Covering, inside: NDArray[np.int64]) -> Verdict:
        """The guarantee measured on a release with classes.

        Args:
            reading: the written cells.
            covering: the people whom they cover.
            inside: people whom the cells of each class fit.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `judge_people`")

    def refuse(self, classes: Classes) -> None:
        """A population that is smaller than the table."""
        if self.population is not None and (people := count_all(self.population)) < (here := int(classes.persons.sum())):
            what = f"the population does not cover the release: it has {people:,} people, and the table {here:,}"
            raise BadInput(what, right="give everyone from whom the table is drawn")

    @property
    def published(self) -> Model:
        """With the number of people instead of them."""
        return self if self.population is None else self._with(count_all(self.population))

    def relative_to(self, base: Path) -> Model:
        """With the path of the population in a folder."""
        return self if self.population is None else self._with(resolve_people(self.population, base))

    def with_population(self, population: Any) -> Model:
        """With the people of whom only the number is known; another number of people is refused."""
        if self.population is None or is_known(self.population):
            return self
        given = check_people(population)
        if (found := count_all(given)) != self.population:
            what = f"the population has {found:,} people, and the guarantee '{self.describe(None)}' was judged with another one"
            raise BadInput(what, right="give the list that the release was made with")
        return self._with(given)

    def _with(self, population: Any) -> Model:
        return cast(Model, replace(cast(Any, self), population=population))


def check_people(population: Any) -> str | int | People:
    """A population as a model keeps it: a path, the people, or only their number.

    >>> check_people("people.csv"), check_people(45_222)
    ('people.csv', 45222)
    """
    if isinstance(population, str | PathLike):
        return fspath(population)
    if isinstance(population, People):
        return population
    if isinstance(population, int) and not isinstance(population, bool):
        return whole("population", population, least=1)
    return People(_refuse_empty(read(population)))


def resolve_people(population: Any, base: Path) -> Any:
    """A path relative to a folder; anything else as it is.

    Args:
        population: as `check_people` returns it.
        base: the folder.

    >>> resolve_people(7, Path("."))
    7
    """
    return str(base.resolve() / population) if isinstance(population, str) and "://" not in population else population


def count_all(population: Any) -> int:
    """The number of people.

    Args:
        population: as `check_people` returns it.

    >>> count_all(45_222)
    45222
    """
    if isinstance(population, str) and population.endswith(".parquet") and Path(population).is_file():
        return parquet_size(population)[0]  # what the file states, without reading it
    return population if isinstance(population, int) else _read_people(population).rows


def is_known(population: Any) -> bool:
    """Whether the people are known, not just their number.

    >>> is_known(45_222)
    False
    """
    return not isinstance(population, int)


def cover_people(reading: Reading, population: Any) -> Covering:
    """The people whom the written cells of each class fit.

    Args:
        reading: the written cells.
        population: as `check_people` returns it; the people must be known.
    """
    if not is_known(population):
        raise BadInput(UNKNOWN, right="name the file of the population")
    raw = raw_schema(reading, reading.raw)
    return Covering.of(reading.columns, list_people(population, raw, reading.named_by), raw, reading.named_by)


def list_people(population: Any, schema: Schema, names: Sequence[str]) -> Columns:
    """The people of a population that has these columns and lists no one twice.

    Args:
        population: as `check_people` returns it; the people must be known.
        schema: of the raw table.
        names: quasi-identifiers.
    """
    people = _read_people(population)
    for name in names:
        if name not in people:
            raise BadInput("the population has no such column", column=name, right="give it every quasi-identifier")
    refuse_repeated_people(people, schema, population if isinstance(population, str) else "the population")
    return people


def refuse_repeated_people(people: Columns, schema: Schema, file: object) -> None:
    """Refuse a population that lists a person twice: who is listed twice would count as two people.

    Args:
        people: the population; persons are known where it has the person column or an identifier of the table.
        schema: of the raw table.
        file: the name of the population, for the message.
    """
    for name in (*schema.unique, *([schema.person] if schema.person else [])):
        if name in people and (people[name].counts > 1).any():
            raise BadInput("a person is listed twice", file=file, column=name, right="give one row for each person")


def count_people(reading: Reading, covering: Covering) -> NDArray[np.int64]:
    """The number of people whom the cells of each class fit.

    Args:
        reading: the written cells.
        covering: the people whom they cover.
    """
    inside = np.zeros(len(reading.classes), dtype=np.int64)
    inside[reading.class_of] = covering.people_in_boxes[covering.box_of]
    return inside


def refuse_uncovered(reading: Reading, inside: NDArray[np.int64]) -> None:
    """Refuse a population in which fewer people fit a class than the class has: it is not the whole population.

    Args:
        reading: the written cells.
        inside: people whom the cells of each class fit.
    """
    few = np.flatnonzero(inside < reading.classes.persons)
    if len(few):
        index = int(few[0])
        cells = ", ".join(f"{name} {cell or 'missing'}" for name, cell in reading.cells_of(index).items())
        what = f"the population does not cover the release: {int(inside[index]):,} of its people fit the class with {cells}"
        right = f"the class has {int(reading.classes.persons[index]):,}; give everyone from whom the table is drawn"
        raise BadInput(what, right=right)


def _read_people(population: Any) -> Columns:
    if isinstance(population, People):
        return population.columns
    try:
        changed = stat(population).st_mtime_ns
    except OSError:
        changed = 0  # an address, or a mistake that reading explains
    return _read_file(population, changed)


@lru_cache(maxsize=2)
def _read_file(path: str, changed: int) -> Columns:
    return _refuse_empty(read(path))


def _refuse_empty(people: Columns) -> Columns:
    if people.rows == 0:
        raise BadInput("there are no people in the population", right="give at least one row")
    return people

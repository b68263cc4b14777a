"""`Model`: a privacy guarantee as a frozen value. It declares what others need to know, so no one asks for its type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes, Histogram
from closeknit.core.combined_secrets import Secret, render_secret
from closeknit.core.domain import Domain
from closeknit.core.exact import fraction
from closeknit.core.share_limits import Limits
from closeknit.core.subsets import Over, render_over

if TYPE_CHECKING:
    from closeknit.core.reading import Reading

ABOUT_VALUES = frozenset({"generalized", "bucketized", "sliced", "multiset", "permuted"})  # forms that show sensitive values


@dataclass(frozen=True)
class Parameter:
    """The limit of a guarantee, so that `frontier`, the page and the checks can vary it.

    Args:
        name: The model's field that holds the limit.
        grid: Usual values, ascending; the first is also the page's proposal.
        least: The least value that means something.
        most: The largest value that means something; None: what the whole table reaches as one class.
        whole: Whether it is a whole number.
        rank: Of several guarantees `frontier` varies the one with the lowest rank.
    """

    name: str
    grid: tuple[float, ...] = ()
    least: float = 0
    most: float | None = None
    whole: bool = False
    rank: int = 50


@dataclass(frozen=True)
class Verdict:
    """Whether a whole release meets a guarantee, and who can check it."""

    held: bool
    level: float | None  # None where there is no bound
    status: Literal["recomputable", "attested", "not checkable"]
    exact: Fraction | None = None
    why: str | None = None  # where it cannot be checked
    parts: tuple[int, int] | None = None  # numerator and denominator of the level, where those of several parts add up


class Model:
    """Base class of all guarantees: a subclass is a frozen dataclass, and overrides what differs from the defaults.

    A subclass must have `name`, `column`, `parameter`, and `exact_level`, or `levels` and `holds`. `column` is a field, or
    `None` as a class attribute where the guarantee is about the rows alone. `levels` and `holds` return one entry per class
    and read nothing but `Classes`.
    """

    name: ClassVar[str]  # as a recipe writes it: "t_closeness"
    parameter: ClassVar[Parameter]
    # whether it compares a class with the distribution of all rows: a stream without windows has none
    compares: ClassVar[bool] = False
    # the part of `Limits` that a method can plan for: "distance", "growth", or "size" (at least `least_size` persons, no more)
    bounds: ClassVar[str] = ""
    of_method: ClassVar[bool] = False  # whether only a method can have it (`Method.guarantees`): nothing written shows it
    needs_file: ClassVar[bool] = False  # whether it needs a file of people: a page offers it once one is uploaded
    counts_classes: ClassVar[bool] = False  # whether every class takes the same from the budget
    joins: ClassVar[bool] = False  # whether `column` may be several columns that count as one
    if TYPE_CHECKING:  # a class attribute, a field or a property, as the model chooses

        @property
        def needs(self) -> frozenset[str]:
            """What it reads: "sizes", "histograms", "values" (which value is which, not just how often each occurs), "persons"
            (counted where there are any), "release" (judged by `judge_release`), "population" (a list of people)."""

        @property
        def over(self) -> Over:
            """The quasi-identifiers that it is about (`core.subsets`); None: all of them."""

        @property
        def reference(self) -> Any:
            """The distribution that it declares, values and shares; None where it compares with the rows, or not at all. A
            field of the model: without it, its `limits` are those of the distribution they are given."""

        @property
        def population(self) -> Any:
            """The people whom it counts; None where it counts none."""

        @property
        def budget(self) -> bool:
            """Whether it limits the sum of what all classes `spend`, not each class."""

        @property
        def weighs_buckets(self) -> bool:
            """Whether it judges all buckets that a person may be in, instead of each bucket alone."""

        @property
        def monotone(self) -> bool:
            """Whether two classes that meet it always merge into one that does."""

        @property
        def merges_persons(self) -> bool:
            """Whether that is true as well if a person has rows in both classes."""

        @property
        def forms(self) -> frozenset[str]:
            """The forms in which the guarantee means something."""

        @property
        def column(self) -> Secret | None:
            """The sensitive attribute, or several as one; None where it is about the rows alone."""

        @property
        def higher_is_safer(self) -> bool:
            """Whether the worst class is the one with the lowest level."""

        @property
        def least_size(self) -> int:
            """Persons that every class needs; 0 where sizes do not matter."""

        @property
        def least_values(self) -> int:
            """Different values that every class needs; 0 where this does not matter."""

        @property
        def ground(self) -> str | None:
            """The ground distance that it names; None follows the kind of the column."""

        @property
        def why_attested(self) -> str | None:
            """Why only the data owner can check it; None where others can."""

    else:
        needs, forms = frozenset({"histograms", "values"}), ABOUT_VALUES
        monotone = merges_persons = higher_is_safer = budget = weighs_buckets = False
        least_size = least_values = 0
        ground = why_attested = over = population = reference = None

    @property
    def origin(self) -> Model:
        """The guarantee as requested; a guarantee derived from another one returns that."""
        return self

    @property
    def published(self) -> Model:
        """The guarantee as a certificate states it, without what is private."""
        return self

    def relative_to(self, base: Path) -> Model:
        """The guarantee with its files, if it has any, in a folder.

        Args:
            base: the folder that paths are relative to.
        """
        return self

    def with_population(self, population: Any) -> Model:
        """The guarantee with the people of whom only the number is known; itself where it counts none.

        Args:
            population: a path, a frame or `Columns`.
        """
        return self

    @property
    def by_class(self) -> bool:
        """Whether methods can meet it class by class: a release meets it if `holds` is true of every class, and merging
        classes breaks nothing that they do not see. If not, methods do not see the guarantee, and classes are merged
        afterwards until the written cells meet it.
        """
        return self.over is None

    @property
    def stricter(self) -> Model | None:
        """A guarantee about single classes that implies this one; None where there is none, or it is one itself."""
        return None if self.over is None else replace(cast(Any, self), over=None)

    @property
    def over_text(self) -> str:
        """What a text adds where not all quasi-identifiers are meant."""
        return f", over {render_over(self.over)}" if self.over else ""

    @property
    def limit_field(self) -> str:
        """The field that `levels` are compared with."""
        return self.parameter.name

    @property
    def requested(self) -> str:
        """The limit as a certificate writes it: `>= 6`, `<= 0.2`."""
        return f"{'>=' if self.higher_is_safer else '<='} {getattr(self, self.limit_field)}"

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line, with everything that gives it its meaning (such as the ground distance).

        Args:
            domain: the domain of the column; None where it is not known yet.
        """
        of = f" of {render_secret(self.column)}" if self.column else ""
        return f"{self.name}{of}, {self.parameter.name} = {getattr(self, self.parameter.name)}{self.over_text}"

    def explain(self, class_word: str, persons: bool) -> str:
        """A sentence for laymen.

        Args:
            class_word: the word that the form uses for a class.
            persons: whether persons are counted, not rows.
        """
        return self.describe(None)

    def refuse(self, classes: Classes) -> None:
        """Raise `BadInput` where the guarantee means nothing for this column (an ordered distance on missing values).

        Args:
            classes: the classes with the column of the guarantee.
        """

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """What each class measures: by default its exact level.

        Args:
            classes: the classes to measure.
        """
        return np.array([float(self._exact(classes, i)) for i in range(len(classes))])

    def find_worst(self, levels: NDArray[np.float64]) -> int:
        """The place of the worst level: the lowest where higher is safer.

        Args:
            levels: at least one.
        """
        return int(np.argmin(levels) if self.higher_is_safer else np.argmax(levels))

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each class meets the guarantee, decided exactly: by default its exact level against the limit.

        Args:
            classes: the classes to judge.
        """
        limit, sign = fraction(self.limit_field, getattr(self, self.limit_field)), -1 if self.higher_is_safer else 1
        return np.array([sign * self._exact(classes, i) <= sign * limit for i in range(len(classes))], dtype=bool)

    def _exact(self, classes: Classes, index: int) -> Fraction:
        if (level := self.exact_level(classes, index)) is None:
            raise NotImplementedError(f"{type(self).__name__} needs `exact_level`, or `levels` and `holds`")
        return level

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """The level of one class as a rational, where it is one.

        Args:
            classes: the classes to measure.
            index: the position of the class.
        """
        return None

    def limits(self, reference: Histogram) -> Limits | None:
        """The guarantee as limits on shares; None where it has no such form, and `holds` alone decides.

        Args:
            reference: counts of the values of the column in the whole table.
        """
        return None

    def idle(self, singles: Histogram) -> list[str]:
        """Remarks on a limit that has no effect.

        Args:
            singles: a histogram with one class for each value that occurs.
        """
        return []

    def spend(self, classes: Classes) -> NDArray[np.int64]:
        """What each class takes from the budget of the whole release: the sum is at most the limit times the persons.

        Args:
            classes: all classes of the release.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `spend`")

    def holds_together(self, classes: Classes) -> bool:
        """Whether a release of these classes meets the guarantee.

        Args:
            classes: all classes of the release.
        """
        return bool(self.holds(classes).all())

    def holds_among(self, classes: Classes, people: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each class meets the guarantee if its cells fit so many people, for a model that needs "population".

        Args:
            classes: the classes to judge.
            people: people of the population whom the cells of each class fit.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `holds_among`")

    def holds_together_among(self, classes: Classes, people: NDArray[np.int64], absent: bool) -> bool:
        """Whether a release of these classes meets the guarantee, for a model that needs "population".

        Args:
            classes: all classes of the release.
            people: people of the population whom the cells of each class fit.
            absent: whether some person fits no class.
        """
        return bool(self.holds_among(classes, people).all())

    def level_together(self, classes: Classes) -> float | None:
        """The level of a release of these classes; None where the worst class decides, or cells are needed.

        Args:
            classes: all classes of the release.
        """
        return None

    def find_faults(self, reading: Reading) -> NDArray[np.bool_]:
        """The classes to merge with others because the release does not meet the guarantee; none where it does.

        Args:
            reading: what the form reads back from the written cells.
        """
        found = np.zeros(len(reading.classes), dtype=bool)
        for seen in reading.list_views(self.over, self.column):
            found[reading.class_of[(~self.holds(seen.classes))[seen.class_of]]] = True
        return found

    def remarks(self, models: Iterable[Model]) -> list[str]:
        """Remarks on a guarantee that has no effect next to the others.

        Args:
            models: all requested guarantees.
        """
        return []

    def judge_release(self, reading: Reading, originals: NDArray[np.int32] | None) -> Verdict:
        """The guarantee measured on what was written, for a model that needs "release".

        It is met where `holds` is true of all classes, so methods may ask that.

        Args:
            reading: what the form reads back from the written cells.
            originals: what may be known of each published row, in the codes of `reading.slices`; private.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `judge_release`")


class DerivedModel(Model):
    """Base class of a guarantee that judges another one, `model`, on other classes; it declares what that one does."""

    model: Model

    @property
    def monotone(self) -> bool:
        """As the guarantee."""
        return self.model.monotone

    @property
    def higher_is_safer(self) -> bool:
        """As the guarantee."""
        return self.model.higher_is_safer

    @property
    def origin(self) -> Model:
        """The guarantee as requested."""
        return self.model

    @property
    def requested(self) -> str:
        """The limit."""
        return self.model.requested


def joints(models: Iterable[Model | None]) -> tuple[tuple[str, ...], ...]:
    """The sensitive attributes that these guarantees, if any, count as one, in addition to each by itself."""
    return tuple(dict.fromkeys(model.column for model in models if model and isinstance(model.column, tuple)))


def merging_holds(model: Model, splits_persons: bool) -> bool:
    """Whether two classes that meet a guarantee merge into one that does, also where a person is in both and counts once.

    Two persons with different values make a diverse class; merged with one in which they have each other's, both have both.
    """
    return model.monotone and not (splits_persons and model.column is not None and "persons" in model.needs)


def least_rows(models: Iterable[Model]) -> int:
    """k: rows that some guarantee asks of every class; 0 where sizes do not matter."""
    return max((model.least_size for model in models), default=0)

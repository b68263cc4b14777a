"""`Model`: a guarantee about classes, as a frozen value. It declares what others need to know; nobody asks its type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Classes
from closeknit.core.combined_secrets import Secret
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.exact import Number
from closeknit.core.params import refuse_uncalled

if TYPE_CHECKING:
    from closeknit.core.reading import Reading


class Model(Protocol):
    """One guarantee. `levels` and `holds` give one entry per class and look at nothing but `Classes`."""

    name: ClassVar[str]  # as a recipe writes it: "t_closeness"
    # of: "sizes", "histograms", "persons" (counted in persons where there are any), "release" (judged as a `ReleaseModel`)
    needs: ClassVar[frozenset[str]]
    monotone: ClassVar[bool]  # merging two classes that hold gives one that holds
    family: ClassVar[str]  # "size", "diversity", "closeness", "likeness" or "disclosure": what a method may plan for
    forms: ClassVar[frozenset[str]]  # the forms in which the guarantee has a meaning

    @property
    def least_size(self) -> int:
        """Rows that the guarantee asks of every class; 0 where it does not speak of sizes."""

    @property
    def column(self) -> Secret | None:
        """The secret it speaks of: a column, or several as one (closeness only); None where it speaks of the rows alone."""

    @property
    def higher_is_safer(self) -> bool:
        """Whether the worst class is the one with the lowest level."""

    @property
    def requested(self) -> str:
        """The limit in the certificate's words: `>= 6`, `<= 0.2`."""

    def describe(self, domain: Domain | None) -> str:
        """The guarantee in one line, with everything that gives it its meaning (such as the ground distance used)."""

    def refuse(self, classes: Classes) -> None:
        """Raise `BadInput` where the guarantee has no meaning for this column (an ordered distance on missing values)."""

    def levels(self, classes: Classes) -> NDArray[np.float64]:
        """What each class reaches."""

    def holds(self, classes: Classes) -> NDArray[np.bool_]:
        """Whether each class keeps the guarantee, decided exactly."""

    def exact_level(self, classes: Classes, index: int) -> Fraction | None:
        """The level of one class as a rational, where it is one."""


@dataclass(frozen=True)
class Verdict:
    """What became of a guarantee about a whole release, and who can tell."""

    held: bool
    level: float | None  # None where there is no bound
    status: Literal["recomputable", "attested", "not checkable"]
    exact: Fraction | None = None
    why: str | None = None  # where it cannot be checked


class ReleaseModel(Model, Protocol):
    """A guarantee about the whole release: it is met where `holds` is true of all classes, so methods may ask that."""

    def judge_release(self, reading: Reading, originals: NDArray[np.int32] | None) -> Verdict:
        """The guarantee measured on what was written.

        `originals`, known at home alone: what may be known of each published row, in the codes of `reading.slices`.
        """


def list_models(models: object) -> list[Model]:
    """What was asked for, as a list; a guarantee that stands alone, or something else in its place, is refused.

    >>> list_models("k_anonymity")
    Traceback (most recent call last):
    closeknit.core.errors.BadInput: models='k_anonymity' is no list of guarantees; write [KAnonymity(6)], even for one
    """
    found: list[Any] = list(models) if isinstance(models, Iterable) and not isinstance(models, str | Mapping) else [None]
    for model in found:
        refuse_uncalled("model", model)
    if not all(hasattr(model, "holds") for model in found):
        raise BadInput(f"models={models!r} is no list of guarantees", right="write [KAnonymity(6)], even for one")
    return found


def joints(models: Iterable[Model]) -> tuple[tuple[str, ...], ...]:
    """The secrets that these guarantees count as one: what a table or a form has to count beside each alone."""
    return tuple(dict.fromkeys(model.column for model in models if isinstance(model.column, tuple)))


def merging_holds(model: Model, splits_persons: bool) -> bool:
    """Whether two classes that hold make one that holds, also where a person may stand in both and is counted once.

    Two persons with different values make a diverse class; joined to one in which they have each other's, both have both.
    """
    return model.monotone and not (splits_persons and model.column is not None and "persons" in model.needs)


def least_rows(models: Iterable[Model]) -> int:
    """k: rows that some guarantee asks of every class; 0 where none speaks of sizes."""
    return max((model.least_size for model in models), default=0)


class Closeness(Model, Protocol):
    """What the family "closeness" has beside: a limit on a distance to the reference."""

    @property
    def t(self) -> Number:
        """The limit."""

    @property
    def distance(self) -> str | None:
        """The ground distance; None follows the kind of the column."""


class Likeness(Model, Protocol):
    """What the family "likeness" has beside: a limit on the relative gain of every value."""

    @property
    def beta(self) -> Number:
        """The limit."""

    @property
    def kind(self) -> str:
        """Of which values and how the gain is counted."""

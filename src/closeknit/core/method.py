"""`Method`: assigns rows to equivalence classes. Like a model it declares what others need to know about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Histogram
from closeknit.core.combined_secrets import Secret
from closeknit.core.model import Model
from closeknit.core.requested_models import list_models
from closeknit.core.schema import Schema
from closeknit.core.table import Outcome, Partition, Table

Veto = Sequence[NDArray[np.int64]]  # parts, as rows of the table: at least one of them does not meet a guarantee
Progress = Callable[[str, float], None]


def ignore_progress(what: str, share: float) -> None:
    """Progress that is not shown."""


def share_progress(progress: Progress, parts: int, begin: float) -> list[Progress]:
    """Progress of several parts that run in threads: each reports in turn, and the mean of all shares is shown.

    `begin`: the share of a part that has not reported yet.

    >>> first, second = share_progress(lambda what, share: print(what, share), 2, begin=0.5)
    >>> first("cutting", 0.75), second("cutting", 1.0)
    cutting 0.625
    cutting 0.875
    (None, None)
    """
    lock, shares = Lock(), [begin] * parts

    def report(part: int, what: str, share: float) -> None:
        with lock:
            shares[part] = share
            progress(what, sum(shares) / parts)

    return [partial(report, part) for part in range(parts)]


class Exclusion(NamedTuple):
    """Sensitive values that members of a class cannot have, because a change of one member with another class was not made."""

    values: NDArray[np.bool_]  # [members, members] by row: true where the first cannot have the sensitive values of the second
    held: int  # other classes with which some change lowers the loss, and none is allowed
    left_over: int  # other classes with which an allowed one is left over: they exclude nothing


@dataclass(frozen=True)
class Vetoes:
    """Changes of classes that a method did not make because some part would not meet a guarantee.

    Args:
        of_class: Lists the changes of a class, given its number.
        others_known: Whether sensitive values outside the class were used: what other classes explain is left out then.
        excluded: Returns what single members of a class cannot have; None: `of_class` says everything.
        given: Whether the code ensures none of this, and it was checked on the table which changes were left over.
    """

    of_class: Callable[[int], Sequence[Veto]]
    others_known: bool = False
    excluded: Callable[[int], Exclusion] | None = None
    given: bool = False


class Method(ABC):
    """Base class of all algorithms: a subclass is a frozen dataclass with `name` and `run`, and overrides what differs.

    A table may be a part of a larger one: plans are made for its own rows (`Table.count_values`), classes are judged against
    the table's references.
    """

    name: ClassVar[str]
    serves_both: ClassVar[bool] = False  # whether a column may be quasi-identifier and sensitive at once
    keeps_persons: ClassVar[bool] = False  # whether it sees all rows of a person and keeps them together itself
    needs_bound: ClassVar[str] = ""  # what some guarantee must bound (`Model.bounds`) for it to plan; empty: nothing
    # on Spark: by "shard", by "count", by a "plan", which is by shards unless `by_rank`, or not at all: "local"
    scale: ClassVar[str] = "shard"
    # whether its own guarantees are about the first run on a table only: trials use a copy with shuffled sensitive rows
    runs_once: ClassVar[bool] = False
    spends: ClassVar[bool] = False  # whether it cuts classes until all of them together use up a budget (`Model.budget`)
    sees_all: ClassVar[bool] = False  # whether it judges guarantees over some columns, and those that count people, itself
    blind: ClassVar[bool] = False  # classes depend on quasi-identifiers and attributes of the guarantees alone; checked
    competes: ClassVar[bool] = True  # whether `compare` and `frontier` try it where no methods are named
    usual_form: ClassVar[str] = "generalized"  # the form of its outcome where none is requested
    if TYPE_CHECKING:  # a class attribute or a property, as the method chooses

        @property
        def by_rank(self) -> bool:
            """Whether a row's class follows from its rank in its bucket: Spark finds ranks by sorting all rows."""

        @property
        def clocked(self) -> bool:
            """Whether a clock decides what it returns, so that a second run may return something else."""

        @property
        def least_rows(self) -> int:
            """Rows that a table needs."""

        @property
        def attached(self) -> int:
            """Quasi-identifiers that it puts into the column group of the sensitive attributes."""

    else:
        by_rank = clocked = False
        least_rows, attached = 1, 0

    @abstractmethod
    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """The partition of a table under these guarantees, or `Unsatisfiable`.

        Args:
            table: the encoded table.
            models: the guarantees that every class must meet.
            seed: makes all random choices reproducible.
            progress: is called with the name of the step and the share of all work that is done.
        """

    def ranks(self, own: Callable[[Secret], Histogram], schema: Schema, models: Sequence[Model]) -> Any:
        """The plan as ranks (`plans.ranks.Ranks`), from histograms over all rows, for a method `by_rank`.

        Args:
            own: returns the histogram of a sensitive attribute over all rows.
            schema: roles and kinds of the columns.
            models: the guarantees that every class must meet.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `ranks`")

    def refuse(self, schema: Schema, models: Sequence[Model], suppress: float) -> None:  # noqa: B027 - most refuse nothing
        """Raise `BadInput` for a request that the method cannot serve on any table.

        Args:
            schema: roles and kinds of the columns.
            models: the guarantees that every class must meet.
            suppress: the share or number of rows that may be suppressed.
        """

    def find_vetoes(self, table: Table, partition: Partition, models: Sequence[Model]) -> Vetoes | None:
        """Changes of a class that the method would have made if every part had met every guarantee.

        An adversary who knows the method uses them (`attacks.refinement`), so list only what the code ensures for every table,
        or what is true of this one, marked as `given`. None: nothing, for example because a random draw ends its search.

        Args:
            table: the encoded table.
            partition: classes that the method returned for it, none of them changed since.
            models: the guarantees that the method saw.
        """
        return None

    def guarantees(self, schema: Schema) -> Sequence[Model]:
        """What it guarantees by its own parameters; judged and certified as if requested.

        Args:
            schema: roles and kinds of the columns.
        """
        return ()

    def least_guarantees(self, schema: Schema) -> Sequence[Model]:
        """What is certified where nothing is requested; none: then something must be requested.

        Args:
            schema: roles and kinds of the columns.
        """
        return ()


def deals_by_rank(method: Method, schema: Schema) -> bool:
    """Whether a method runs by ranks for this schema: rows of one person need parts all the same."""
    return method.by_rank and schema.person is None


def can_plan(method: Method | type[Method], models: Iterable[Model]) -> bool:
    """Whether some guarantee bounds what the method plans for."""
    return not method.needs_bound or any(model.bounds == method.needs_bound for model in models)


def list_guarantees(method: Method, schema: Schema, models: Sequence[Model]) -> list[Model]:
    """The requested guarantees, and those of the method itself."""
    requested = list_models(models) or list(method.least_guarantees(schema))
    return [*requested, *(model for model in method.guarantees(schema) if model not in requested)]

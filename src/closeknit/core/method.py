"""`Method`: decides who stands with whom. Like a model it declares what others need to know of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import ClassVar, Protocol

from closeknit.core.model import Model, list_models
from closeknit.core.schema import Schema
from closeknit.core.table import Outcome, Table

Progress = Callable[[str, float], None]


def ignore_progress(what: str, share: float) -> None:
    """Progress that nobody watches."""


def share_progress(progress: Progress, parts: int, begin: float) -> list[Progress]:
    """Progress for each of several parts that are done in threads: told by one at a time, the mean of all their shares.

    `begin`: the share of a part that has told nothing yet.

    >>> first, second = share_progress(lambda what, share: print(what, share), 2, begin=0.5)
    >>> first("cutting", 0.75), second("cutting", 1.0)
    cutting 0.625
    cutting 0.875
    (None, None)
    """
    lock, shares = Lock(), [begin] * parts

    def tell(part: int, what: str, share: float) -> None:
        with lock:
            shares[part] = share
            progress(what, sum(shares) / parts)

    return [partial(tell, part) for part in range(parts)]


class Method(Protocol):
    """One algorithm. It asks the models through `Classes` and returns an outcome that keeps them, or raises `Unsatisfiable`.

    It may declare besides what most do not need: `usual_form`, the form it is made for (else "generalized"), and
    `guarantees(schema)`, what it guarantees by its own parameters, so that it is judged and certified as if it had been asked
    for.

    A table may be a part of a larger one: plans are made for the rows that are there (`Table.own`), classes are judged against
    the table's references. A plan by which a row's class follows from its rank in its bucket says `by_rank`: it needs no parts.
    One that looks at a clock says `clocked`: run again it may give something else. One whose classes depend on nothing but the
    quasi-identifiers and the attributes that the guarantees mention says `blind`, and is checked for it.
    """

    name: ClassVar[str]
    serves_both: ClassVar[bool]  # whether a column may be quasi and sensitive at once
    keeps_persons: ClassVar[bool]  # whether it sees all rows of a person and keeps them together itself
    plans_for: ClassVar[str]  # the family of guarantee without which it cannot work: "size", "closeness", ...; "any" needs none
    scale: ClassVar[str]  # how it grows past one machine: "shard", "count", or "plan", which is by shards unless `by_rank`

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """The partition of a table under these guarantees."""


def deals_by_rank(method: Method, schema: Schema) -> bool:
    """Whether a row's class follows from its rank in its bucket, in canonical order: Spark finds ranks by sorting all rows.

    `method` declares it by `by_rank`; `schema` may have a person column, whose rows need parts all the same.
    """
    return getattr(method, "by_rank", False) and schema.person is None


def usual_form(method: Method | type[Method]) -> str:
    """The form that a method's outcome is written in where none is asked for."""
    return getattr(method, "usual_form", "generalized")


def list_guarantees(method: Method, schema: Schema, models: Sequence[Model]) -> list[Model]:
    """What is asked, and what the method guarantees besides."""
    brings: Callable[[Schema], Sequence[Model]] | None = getattr(method, "guarantees", None)
    requested = list_models(models)
    return [*requested, *(model for model in (brings(schema) if brings else ()) if model not in requested)]

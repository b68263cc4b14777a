"""`Method`: decides who stands with whom. Like a model it declares what others need to know of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from closeknit.core.model import Model
from closeknit.core.table import Outcome, Table

Progress = Callable[[str, float], None]


def silent(what: str, share: float) -> None:
    """Progress that nobody watches."""


class Method(Protocol):
    """One algorithm. It asks the models through `Classes` and returns an outcome that keeps them, or raises `Unsatisfiable`."""

    name: ClassVar[str]
    serves_both: ClassVar[bool]  # whether a column may be quasi and sensitive at once
    keeps_persons: ClassVar[bool]  # whether it sees all rows of a person and keeps them together itself
    plans_for: ClassVar[str]  # the family of promise without which it cannot work: "size", "closeness", ...; "any" needs none
    scale: ClassVar[str]  # how it grows past one machine: "plan", "shard" or "count"

    def run(self, table: Table, models: Sequence[Model], seed: int, progress: Progress) -> Outcome:
        """The partition of a table under these promises."""

"""`Origin`: what only the data owner has: the table as it was read, and the request behind a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from closeknit.core.classes import Classes
from closeknit.core.columns import Columns
from closeknit.core.method import Method
from closeknit.core.model import Model
from closeknit.core.row_sorting import groups
from closeknit.core.schema import Schema


@dataclass(frozen=True, eq=False)
class Origin:
    """The table and the request behind a release. It is never pickled, and nothing of it is written to the public folder.

    >>> import closeknit as ck
    >>> from closeknit.core.columns import Columns
    >>> origin = Origin(Columns.of({"age": [30]}), ck.Schema(quasi={"age": ck.numeric()}), (ck.KAnonymity(1),))
    >>> origin.columns.rows, origin.method
    (1, None)
    """

    columns: Columns
    schema: Schema
    models: tuple[Model, ...]
    method: Method | None = None  # none for a stream
    seed: int | None = None
    classes: Callable[[], Classes] | None = None  # counted in persons, where rows have any

    @cached_property
    def duplicates(self) -> int:
        """Rows that repeat another row in every column that is used, the person too: only the data owner may learn it."""
        used = [self.columns[name] for name in self.schema.used]
        return self.columns.rows - groups([column.coded for column in used], self.columns.rows)[1]

"""The compiled form of guarantees, as an integer program over the rows of a class reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from closeknit.core.combined_secrets import Secret
from closeknit.core.model import Model
from closeknit.core.table import Table
from closeknit.kernels.exchange.knit_guard import Guard
from closeknit.search.guards import guard_of


@dataclass(frozen=True, eq=False)
class Guards:
    """The compiled form of each guarantee of a table, next to its sensitive attribute."""

    compiled: list[tuple[Secret | None, Guard]]
    together: Guard
    open_ended: bool  # whether some guarantee has none: it may veto anything

    @classmethod
    def of(cls, table: Table, models: Sequence[Model]) -> Guards:
        """Compile guarantees one by one.

        >>> import closeknit as ck
        >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
        >>> found = Guards.of(table, [ck.KAnonymity(2), ck.LDiversity("disease", 2, kind="recursive", c=2)])
        >>> found.open_ended, len(found.compiled)
        (True, 1)
        """
        made = [(model.column, guard_of(table, [model])) for model in models]
        compiled = [(column, each.guard) for column, each in made if not each.unguarded]
        return cls(compiled, guard_of(table, models).guard, any(each.unguarded for _, each in made))

    @property
    def secrets(self) -> list[Secret]:
        """The sensitive attributes that guarantees are about."""
        return list(dict.fromkeys(column for column, guard in self.compiled if column is not None and len(guard.kind)))

"""Assignments that are tried before a program is solved: one that a method's vetoes allow shows that a bound is reached.

Most bounds of most classes are those of the class alone. To see this no program is needed: from the true assignment, members of
a block and others exchange sensitive values until the block has as many rows with the value as it can have, or as few; in every
second trial all other values are shuffled. If the vetoes allow the result, whose parts are judged by the compiled form of the
guarantees, the bound is reached. Sensitive attributes stay together, so the program allows such an assignment too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from closeknit.attacks.assignment_program import Program
from closeknit.core.combined_secrets import Secret
from closeknit.kernels.arrays import Int64
from closeknit.kernels.exchange.knit_guard import is_class_allowed

TRIES = 48


@dataclass(eq=False)
class Trials:
    """Trials for one class."""

    program: Program
    secret: Secret
    draws: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def reach(self, block: int, value: int, upper: bool, limit: int, seen: Int64) -> bool:
        """Try to give a block as many rows with a value as `limit`; what the vetoes allow widens `seen`, [2, blocks, values].

        Args:
            block: Number of the block.
            value: Number of the value.
            upper: Whether the block has fewer rows with the value now, or more.
            limit: Rows of the block with the value.
            seen: Least and most rows of each block and value that are known to be possible.
        """
        members, codes = self.program.members, self.program.table.secret(self.secret)[0]
        inside = np.isin(members, self.program.blocks[block].members)
        has = codes[members] == self.program.values[self.secret][value]
        wanted = limit - int((inside & has).sum())
        giving, taking = (~inside & has, inside & ~has) if upper else (inside & has, ~inside & ~has)
        for number in range(TRIES):
            source = np.arange(len(members))
            some, others = (self.draws.permutation(np.flatnonzero(each))[: abs(wanted)] for each in (giving, taking))
            source[some], source[others] = others, some
            if number % 2:  # all other values change places too
                rest = np.flatnonzero(~has[source])
                source[rest] = self.draws.permutation(source[rest])
            if self.is_consistent(source):
                given = codes.copy()
                given[members] = codes[members[source]]
                counts = np.stack([self.program.count_values(given[each.members], self.secret) for each in self.program.blocks])
                seen[0], seen[1] = np.minimum(seen[0], counts), np.maximum(seen[1], counts)
                return True
        return False

    def is_consistent(self, source: Int64) -> bool:
        """Whether some part of every veto does not meet a guarantee, and no member has what it cannot have.

        Args:
            source: From which member each one takes its sensitive values.
        """
        program = self.program
        if program.excluded.size and program.excluded[np.arange(len(source)), source].any():
            return False
        row_of = np.arange(len(program.table))
        row_of[program.members] = program.members[source]
        guard = program.guards.together
        return all(any(not is_class_allowed(guard, row_of[part]) for part in veto) for veto in program.vetoes)

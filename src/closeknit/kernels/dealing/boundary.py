"""The boundary rule of dealing in rounds: it keeps the counts of each value within one.

It applies to one class at a time: where value v begins in one round and ends in another, a class may have it in at most one
of the two (`cover` false) or must have it in at least one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Reals
from closeknit.kernels.compiling import kernel
from closeknit.kernels.geometry.boxes import Codes, Ints

HEAD, TAIL = 0, 1


class Rules(NamedTuple):
    """Per round j the value that begins (row HEAD) or ends (TAIL) in it, and the round of its other end."""

    value: Ints  # [2, rounds]
    partner: Ints  # [2, rounds] the other round; -1: no rule
    cover: NDArray[np.bool_]  # [2, rounds]

    @classmethod
    def none(cls, rounds: int) -> Rules:
        """Rules that allow everything."""
        return cls(np.full((2, rounds), -1), np.full((2, rounds), -1), np.full((2, rounds), False))

    @classmethod
    def of(cls, run: NDArray[np.integer], e: int) -> Rules:
        """Rules for a stack whose positions hold the values `run` = 0, .., 0, 1, .., 1, 2, .. dealt to e classes.

        >>> Rules.of(np.array([0, 1, 1, 2]), 2).partner.tolist()
        [[1, -1], [-1, 0]]
        """
        rules = cls.none(-(-len(run) // e))
        start = np.flatnonzero(np.diff(run, prepend=-1))
        end = np.append(start[1:], len(run))
        first, last = start // e, (end - 1) // e
        head, tail = (first + 1) * e - start, end - last * e
        bound = np.flatnonzero((first < last) & (head < e) & (tail < e))
        for line, here, there in ((HEAD, first, last), (TAIL, last, first)):
            rules.value[line, here[bound]], rules.partner[line, here[bound]] = bound, there[bound]
            rules.cover[line, here[bound]] = (head + tail > e)[bound]
        return rules


@kernel
def forbid(cost: Reals, rows: Codes, partner: Codes, value_of: Codes, value: int, cover: bool, forbidden: float) -> None:
    """Raise cost[i, x] of rows x that class i may not take; `partner[i]`: its row in the value's other round."""
    for i in range(len(rows)):
        has = partner[i] >= 0 and value_of[partner[i]] == value
        for x in range(len(rows)):
            same = rows[x] >= 0 and value_of[rows[x]] == value
            if (has and same and not cover) or (not has and not same and cover):
                cost[i, x] = forbidden

"""Polish: rows of the same bucket are exchanged between classes while the loss falls.

Whatever a plan guaranteed depends on how many rows of each bucket a class has, never on which: every exchange keeps it. The
work is counted in proposals, pairs of a row and a class; as many as `proposals` allows are made in whole passes over the
table. The outcome depends on the seed alone, not on the number of threads, and never loses more than what came in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.limits import MOST_PROPOSALS
from closeknit.core.params import whole
from closeknit.kernels.dealing.boundary import Rules
from closeknit.kernels.dealing.class_members import ClassMembers
from closeknit.kernels.dealing.sweeps import WIDTH, default_sweeps, run_sweeps
from closeknit.kernels.geometry.boxes import Scales


@dataclass(frozen=True)
class Polish:
    """Exchanges within a budget of proposals; `None`: `default_sweeps(n)` sweeps of n * 32 proposals each.

    >>> from kernel_inputs import flat_scales
    >>> quasi, bucket = np.array([[0], [9], [8], [1]], np.int32), np.array([0, 0, 1, 1], np.int32)
    >>> better = Polish().polish(quasi, flat_scales([10]), bucket, np.array([0, 1, 0, 1], np.int32), seed=0)
    >>> bool(better[0] == better[3]), bool(better[1] == better[2])
    (True, True)
    """

    proposals: int | None = None

    def __post_init__(self) -> None:
        if self.proposals is not None:
            whole("proposals", self.proposals, least=0, most=MOST_PROPOSALS)

    def passes(self, n: int) -> int:
        """Passes over a table of n rows that the budget allows.

        >>> Polish(proposals=1_000_000).passes(10_000)
        3
        """
        return default_sweeps(n) if self.proposals is None else self.proposals // max(1, n * WIDTH)

    def polish(
        self, quasi: NDArray[np.int32], scales: Scales, bucket_of_row: NDArray[np.int32], class_of: NDArray[np.int32], seed: int
    ) -> NDArray[np.int32]:
        """Class of each row after the exchanges; every class keeps its number of rows of each bucket."""
        e = int(class_of.max(initial=-1)) + 1
        if e < 2 or quasi.shape[1] == 0:
            return class_of
        start = np.concatenate(([0], np.cumsum(np.bincount(class_of))))
        member = np.lexsort((bucket_of_row, class_of)).astype(np.int32)
        held = ClassMembers(member, start, bucket_of_row[member], quasi, bucket_of_row)
        free = Rules.none(int(bucket_of_row.max()) + 1)
        return run_sweeps(held, free, scales, self.passes(len(class_of)), seed)[1]

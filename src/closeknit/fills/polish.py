"""Polish: rows of the same bucket are exchanged between classes while the loss falls.

Whatever a plan promised depends on how many rows of each bucket a class has, never on which: every exchange keeps it. The work
is counted in proposals, pairs of a row and a class; as many as `proposals` allows are made in whole passes over the table.
The outcome depends on the seed alone, not on the number of threads, and never loses more than what came in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.params import whole
from closeknit.kernels.boxes import Scales
from closeknit.kernels.polishing import WIDTH, exchanged


def default_passes(n: int) -> int:
    """Small tables are polished until little is left to gain, large ones four times.

    >>> default_passes(1_000), default_passes(50_000), default_passes(1_000_000)
    (32, 20, 4)
    """
    return min(32, max(4, 1_000_000 // max(n, 1)))


@dataclass(frozen=True)
class Polish:
    """Exchanges within a budget of proposals; `None`: `default_passes(n)` passes of n * 32 proposals each.

    >>> from closeknit.kernels.boxes import flat_scales
    >>> quasi, bucket = np.array([[0], [9], [8], [1]], np.int32), np.array([0, 0, 1, 1], np.int32)
    >>> better = Polish().polish(quasi, flat_scales([10]), bucket, np.array([0, 1, 0, 1], np.int32), seed=0)
    >>> bool(better[0] == better[3]), bool(better[1] == better[2])
    (True, True)
    """

    proposals: int | None = None

    def __post_init__(self) -> None:
        if self.proposals is not None:
            whole("proposals", self.proposals, least=0)

    def passes(self, n: int) -> int:
        """Passes over a table of n rows that the budget allows.

        >>> Polish(proposals=1_000_000).passes(10_000)
        3
        """
        return default_passes(n) if self.proposals is None else self.proposals // max(1, n * WIDTH)

    def polish(self, quasi: NDArray[np.int32], scales: Scales, bucket_of_row: NDArray[np.int32],
               class_of: NDArray[np.int32], seed: int) -> NDArray[np.int32]:  # fmt: skip
        """Class of each row after the exchanges; every class keeps its number of rows of each bucket."""
        return exchanged(quasi, scales, bucket_of_row, class_of, self.passes(len(class_of)), seed)

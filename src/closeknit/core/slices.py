"""`Slices`: a sliced release as an adversary sees it who wants to learn one sensitive attribute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.arrays import Int32


@dataclass(frozen=True, eq=False)
class Slices:
    """Buckets, and in each the known part of every column group; only inside one group do cells of a row belong together.

    Quasi-identifiers and plain cells may be known; the code of a column group without any is always 0.

    >>> slices = Slices(np.zeros(2, np.int32), np.zeros((2, 1), np.int32), 0, np.array([0, 1], np.int32))
    >>> slices.sizes.tolist()
    [2]
    """

    bucket_of: Int32  # [n] bucket of each written row, from 0
    known: Int32  # [n, c] code of the known part, per column group
    place: int  # the column group of the sensitive attribute
    secret: Int32  # [n] codes of the sensitive attribute, in the rows of `known[:, place]`; -1 where it is suppressed

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows per bucket."""
        return np.bincount(self.bucket_of)

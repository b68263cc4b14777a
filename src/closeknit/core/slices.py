"""`Slices`: a sliced release as somebody sees it who wants to learn one secret."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Slices:
    """Buckets, and in each the known part of every column group; only inside one group do cells of a row belong together.

    What may be known of a row are its quasi-identifiers and plain cells; of a column group without any the code is always 0.

    >>> slices = Slices(np.zeros(2, np.int32), np.zeros((2, 1), np.int32), 0, np.array([0, 1], np.int32))
    >>> slices.sizes.tolist()
    [2]
    """

    bucket_of: Int32  # [n] bucket of each written row, from 0
    known: Int32  # [n, c] code of the known part, per column group
    place: int  # the column group that holds the secret
    secret: Int32  # [n] codes of the secret, beside `known[:, place]`; -1 where it is suppressed

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows per bucket."""
        return np.bincount(self.bucket_of)

"""`Fill`: which rows of each bucket are together, once a plan has said how many of each.

Fills differ in their search and share the contract: class j gets exactly `allotments[j, i]` rows of bucket i, so whatever the
plan guaranteed holds with any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.kernels.geometry.boxes import Scales
from closeknit.kernels.geometry.sorted_buckets import SortedBuckets, curve, sort_buckets


class Fill(ABC):
    """A frozen value that picks rows."""

    name: ClassVar[str]

    def fill(
        self,
        quasi: NDArray[np.int32],
        scales: Scales,
        points: NDArray[np.float64],
        bucket_of_row: NDArray[np.int32],
        allotments: NDArray[np.int64],
        seed: int,
        keys: NDArray[np.uint64] | None = None,
    ) -> NDArray[np.int32]:
        """Class of each row. `keys` = `curve(points)`, for whoever fills several plans of one table."""
        shelf = sort_buckets(curve(points) if keys is None else keys, bucket_of_row, allotments.shape[1])
        return self.pick(shelf, allotments, quasi, scales, seed)

    @abstractmethod
    def pick(
        self, shelf: SortedBuckets, allotments: NDArray[np.int64], quasi: NDArray[np.int32], scales: Scales, seed: int
    ) -> NDArray[np.int32]:
        """Class of each row, from the buckets with their rows in Hilbert order."""

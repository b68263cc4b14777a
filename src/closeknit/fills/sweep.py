"""`sweep`: class j takes the next rows of every bucket in Hilbert order.

A row's class follows from its rank in its own bucket and the plan alone, so buckets may lie on different machines and no
machine sees the whole. Classes are at the same relative place of every bucket: no leftovers, but where a bucket's rows are
spread otherwise than the others' the places drift apart, which makes it the fill that loses most. Seeds in the order of the
curve would lead the `hilbert` fill to the very same classes. O(n log n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.fills.fill import Fill
from closeknit.kernels.geometry.boxes import Scales
from closeknit.kernels.geometry.sorted_buckets import SortedBuckets, by_rank


@dataclass(frozen=True)
class Sweep(Fill):
    """Equal ranks are together.

    >>> from kernel_inputs import flat_scales
    >>> quasi, points = np.array([[0], [4], [1], [3]], np.int32), np.array([[0.0], [1.0], [0.25], [0.75]])
    >>> one_of_each = np.array([[1, 1], [1, 1]])
    >>> Sweep().fill(quasi, flat_scales([5]), points, np.array([0, 0, 1, 1], np.int32), one_of_each, seed=0).tolist()
    [0, 1, 0, 1]
    """

    name: ClassVar[str] = "sweep"

    def pick(
        self, shelf: SortedBuckets, allotments: NDArray[np.int64], quasi: NDArray[np.int32], scales: Scales, seed: int
    ) -> NDArray[np.int32]:
        """Class of each row; nothing is drawn, so `seed` does not matter."""
        return by_rank(shelf, allotments)

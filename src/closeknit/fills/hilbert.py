"""`hilbert`: from every bucket the rows whose Hilbert keys are nearest to the key of a seed row (SABRE-AK).

Source: the thesis on SABRE and BUREL, sec. 3.4; the seed is drawn among the free rows of a bucket that the class takes from, so
that it is one of its rows. Rows that are taken are passed over by union-find. O(n log n + classes * buckets * log n).

`seeds`: "random" (default) has the least loss, and its last classes, which take what is left, about twice the mean; with
"farthest" (from the mean of all free rows) the last classes lose less than the mean, but all together more; "hilbert" is the
`sweep` fill.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from closeknit.core.params import choice
from closeknit.fills.fill import Fill
from closeknit.kernels.dealing.filling import nearest_keys
from closeknit.kernels.dealing.seeding import ORDERS, seeds_of
from closeknit.kernels.geometry.boxes import Scales
from closeknit.kernels.geometry.sorted_buckets import SortedBuckets


@dataclass(frozen=True)
class Hilbert(Fill):
    """Neighbours along the curve are together.

    >>> from kernel_inputs import flat_scales
    >>> quasi, points = np.array([[0], [4], [1], [3]], np.int32), np.array([[0.0], [1.0], [0.25], [0.75]])
    >>> one_of_each = np.array([[1, 1], [1, 1]])
    >>> found = Hilbert().fill(quasi, flat_scales([5]), points, np.array([0, 0, 1, 1], np.int32), one_of_each, seed=0)
    >>> bool(found[0] == found[2]), bool(found[1] == found[3])
    (True, True)
    """

    name: ClassVar[str] = "hilbert"

    seeds: str = "random"

    def __post_init__(self) -> None:
        choice("seeds", self.seeds, ORDERS)

    def pick(
        self, shelf: SortedBuckets, allotments: NDArray[np.int64], quasi: NDArray[np.int32], scales: Scales, seed: int
    ) -> NDArray[np.int32]:
        """Class of each row."""
        return nearest_keys(shelf, allotments, quasi, scales, seeds_of(self.seeds, shelf, len(allotments), seed))

"""`Fill`: which rows of each bucket are together, once a plan has said how many of each.

Fills differ in their search and share the contract: class j gets exactly `allotments[j, i]` rows of bucket i, so whatever the
plan guaranteed holds with any of them.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from closeknit.core.params import choice
from closeknit.fills.hilbert import Hilbert
from closeknit.fills.knn import Knn
from closeknit.fills.sweep import Sweep
from closeknit.kernels.geometry.boxes import Scales


class Fill(Protocol):
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


REGISTRY: dict[str, type[Fill]] = {fill.name: fill for fill in (Knn, Hilbert, Sweep)}


def fill_named(name: str) -> Fill:
    """The fill of this name with its defaults.

    >>> fill_named("sweep")
    Sweep()
    >>> fill_named("swoop")
    Traceback (most recent call last):
    ...
    closeknit.core.errors.BadInput: fill='swoop' is unknown; choose one of: knn, hilbert, sweep
    """
    choice("fill", name, REGISTRY)
    return REGISTRY[name]()

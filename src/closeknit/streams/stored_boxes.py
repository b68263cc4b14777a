"""Published generalizations that may be reused: CASTLE's Omega."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from closeknit.kernels.arrays import Reals
from closeknit.kernels.geometry.declared_axes import Axes
from closeknit.kernels.streaming.castle import covering
from closeknit.streams.arrivals import Ints


@dataclass(eq=False)
class StoredBox:
    """A published box and the rows published with it."""

    lo: Reals
    hi: Reals
    since: float  # when it was published: a position, or seconds
    persons: Ints
    secrets: Ints
    oldest: int = -1  # position of the oldest row of its class: while it is pending, the class is not published


class Omega:
    """The newest stored boxes.

    Args:
        axes: the geometry of the quasi-identifiers.
        most: the most boxes.
        age: the greatest age of a box, in positions or seconds.

    >>> from kernel_inputs import number_axes
    >>> omega = Omega(number_axes([100.0]), most=2, age=10)
    >>> for age in (20.0, 30.0, 40.0):
    ...     omega.store(StoredBox(np.array([age]), np.array([age + 15]), age, np.arange(2), np.zeros((2, 0), np.int64)), now=40)
    >>> [float(stored.lo[0]) for stored in omega.covering(np.array([42.0]), now=40)]
    [30.0, 40.0]
    >>> len(omega.covering(np.array([42.0]), now=45))
    1
    """

    def __init__(self, axes: Axes, most: int, age: float) -> None:
        self.axes, self.most, self.age = axes, most, age
        self.all: deque[StoredBox] = deque()

    def store(self, stored: StoredBox, now: float) -> None:
        """Add a box; the oldest ones are dropped if there are too many."""
        self.all.append(stored)
        self._forget(now)

    def covering(self, row: Reals, now: float) -> list[StoredBox]:
        """The boxes that cover a row, oldest first."""
        self._forget(now)
        if not self.all:
            return []
        lo, hi = np.stack([each.lo for each in self.all]), np.stack([each.hi for each in self.all])
        found = covering(self.axes, lo, hi, row)
        return [each for each, here in zip(self.all, found, strict=True) if here]

    def _forget(self, now: float) -> None:
        while self.all and (len(self.all) > self.most or self.all[0].since + self.age < now):
            self.all.popleft()

    def state(self) -> list[Any]:
        """What a checkpoint keeps."""
        return [(each.lo, each.hi, each.since, each.persons, each.secrets, each.oldest) for each in self.all]

    def restore(self, state: list[Any]) -> None:
        """Resume from what `state` returned."""
        self.all = deque(StoredBox(*each) for each in state)

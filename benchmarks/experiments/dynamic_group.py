"""dynamicGroup: condensation of a stream of numbers, the rival of CASTLE in the thesis on SABRE and BUREL (ch. 5).

Source: Aggarwal and Yu, A condensation approach to privacy preserving data mining (dynamic maintenance of groups), as the
thesis uses it. The first `history` rows are condensed at once: a row drawn at random and its k - 1 nearest make a group. Every
later row joins the group with the nearest mean; a group of 2k rows is cut in two along its longest principal axis, k rows each.
At the end, pseudo-rows are drawn from the mean and the covariance of every group, evenly along its principal axes.

Different from the source: a cut goes by the rows themselves, not by what their sums let one guess, so that it is known which
rows stand in a group: its box can be measured as that of a class of CASTLE. Nothing leaves before the end, and pseudo-rows are
no one's: it is a rival for information loss, not a stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]
HISTORY = 8_000


@dataclass
class DynamicGroup:
    """Groups of rows of numbers, each scaled to 0..1.

    >>> groups = DynamicGroup(k=2, history=4)
    >>> groups.take(np.array([[0.0], [0.1], [0.9], [1.0], [0.05], [0.07]]))
    >>> sorted(sorted(members) for members in groups.members)
    [[0, 4], [1, 5], [2, 3]]
    """

    k: int
    history: int = HISTORY
    seed: int = 7
    members: list[list[int]] = field(default_factory=list)

    def take(self, rows: Reals) -> None:
        """All rows come, one after the other."""
        self._rows = rows
        self._condense(np.arange(min(self.history, len(rows))))
        means = np.array([rows[group].mean(axis=0) for group in self.members])
        for i in range(min(self.history, len(rows)), len(rows)):
            nearest = int(((means - rows[i]) ** 2).sum(axis=1).argmin())
            group = self.members[nearest]
            group.append(i)
            if len(group) < 2 * self.k:
                means[nearest] += (rows[i] - means[nearest]) / len(group)
                continue
            one, other = self._cut(group)
            self.members[nearest] = one
            self.members.append(other)
            means[nearest] = rows[one].mean(axis=0)
            means = np.vstack([means, rows[other].mean(axis=0)])

    def _condense(self, left: Ints) -> None:
        """Groups of k near rows; those that are too few for one join the nearest group."""
        rng = np.random.default_rng(self.seed)
        while len(left) >= self.k:
            distance = ((self._rows[left] - self._rows[rng.choice(left)]) ** 2).sum(axis=1)
            near = np.argsort(distance, kind="stable")[: self.k]
            self.members.append(left[near].tolist())
            left = np.delete(left, near)
        if not self.members:
            self.members.append([])
        for i in left.tolist():
            means = np.array([self._rows[group].mean(axis=0) if group else self._rows[i] for group in self.members])
            self.members[int(((means - self._rows[i]) ** 2).sum(axis=1).argmin())].append(i)

    def _cut(self, group: list[int]) -> tuple[list[int], list[int]]:
        rows = self._rows[group]
        axis = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][0]
        order = np.argsort(rows @ axis, kind="stable")
        half = len(group) // 2
        return [group[i] for i in order[:half]], [group[i] for i in order[half:]]

    def class_of(self) -> Ints:
        """The group of every row."""
        groups = np.empty(len(self._rows), dtype=np.int64)
        for number, group in enumerate(self.members):
            groups[group] = number
        return groups

    def loss(self) -> float:
        """What the boxes of the groups lose: mean length of a side, all sides of the domain being 1."""
        spans = [len(group) * np.ptp(self._rows[group], axis=0).mean() for group in self.members]
        return float(sum(spans) / len(self._rows))

    def pseudo_rows(self) -> Reals:
        """One row in the place of each, drawn evenly along the principal axes of its group; none leaves the domain.

        >>> groups = DynamicGroup(k=50)
        >>> groups.take(np.random.default_rng(1).random((400, 2)))
        >>> float(abs(groups.pseudo_rows().mean() - 0.5)) < 0.05
        True
        """
        rng, made = np.random.default_rng(self.seed + 1), np.empty_like(self._rows)
        for group in self.members:
            rows = self._rows[group]
            values, axes = np.linalg.eigh(np.atleast_2d(np.cov(rows, rowvar=False, bias=True)))
            reach = np.sqrt(3 * np.clip(values, 0, None))  # evenly from -reach to reach has the variance of the axis
            made[group] = rows.mean(axis=0) + (rng.uniform(-1, 1, rows.shape) * reach) @ axes.T
        return np.clip(made, 0.0, 1.0)

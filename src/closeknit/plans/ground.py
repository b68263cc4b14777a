"""The present values of a sensitive attribute under a ground distance: on a line, or as the leaves of a tree.

All lengths are whole numbers; divided by `scale` they are distances between 0 and 1. "Equal" is the tree of one level. The
missing leaf hangs on the top of a tree, at distance 1 from all others; a line has no place for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from closeknit.core.classes import Histogram
from closeknit.core.domain import Domain
from closeknit.core.errors import BadInput
from closeknit.core.params import choice
from closeknit.core.tree import Tree
from closeknit.kernels.arrays import Int32, Int64
from closeknit.models.t_closeness import DISTANCES, choose_leaves


@dataclass(frozen=True, eq=False)
class Line:
    """Present codes, ascending, with their rank among the leaves that count, and their rows."""

    codes: Int32
    ranks: Int64
    counts: Int64
    scale: int

    @classmethod
    def of(cls, counts: Int64, domain: Domain) -> Line:
        """Leaves that no row has keep their place where the domain was declared (the rule of the model)."""
        if counts[-1] > 0:
            raise BadInput("an ordered distance has no place for missing values", right="request distance 'equal'")
        none = np.empty(0, dtype=np.int64)
        counted = choose_leaves(Histogram(np.zeros(1, np.int64), none.astype(np.int32), none, counts, domain))
        codes = np.flatnonzero(counts > 0).astype(np.int32)
        ranks = (np.cumsum(counted, dtype=np.int64) - 1)[codes]
        return cls(codes, ranks, counts[codes], max(int(counted.sum()) - 1, 1))


@dataclass(frozen=True, eq=False)
class Branches:
    """A tree seen by its present leaves: `rows[x]` are under node `x`."""

    tree: Tree
    codes: Int32
    rows: Int64

    @classmethod
    def of(cls, counts: Int64, tree: Tree) -> Branches:
        """The nodes counted."""
        below = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        return cls(tree, np.flatnonzero(counts > 0).astype(np.int32), below[tree.hi + 1] - below[tree.lo])

    @property
    def scale(self) -> int:
        """Height of the whole tree."""
        return int(self.tree.height[0])

    @cached_property
    def levels(self) -> list[NDArray[np.intp]]:
        """Present nodes below the top, by depth; a node is one level under its parent."""
        depth = np.zeros(len(self.rows), dtype=np.int64)
        above: NDArray[np.integer] = np.arange(len(self.rows))
        while (below_top := above != 0).any():
            depth += below_top
            above = self.tree.parent[above]
        return [np.flatnonzero((depth == level) & (self.rows > 0)) for level in range(1, int(depth.max()) + 1)]

    @cached_property
    def branching(self) -> NDArray[np.bool_]:
        """Nodes with two present children or more."""
        present = np.flatnonzero(self.rows[1:] > 0) + 1
        return np.bincount(self.tree.parent[present], minlength=len(self.rows)) > 1

    @cached_property
    def narrow(self) -> NDArray[np.intp]:
        """For each present node the lowest one over the same present leaves."""
        narrow = np.arange(len(self.rows))
        for level in reversed(self.levels):
            alone = level[~self.branching[self.tree.parent[level]]]
            narrow[self.tree.parent[alone]] = narrow[alone]
        return narrow

    def leaves(self, node: int) -> Int32:
        """Present codes under a node."""
        ends = np.searchsorted(self.codes, [self.tree.lo[node], self.tree.hi[node] + 1])
        return self.codes[ends[0] : ends[1]]


def ground_of(counts: Int64, domain: Domain, distance: str) -> Line | Branches:
    """The present values under "ordered", "hierarchical" or "equal" distance.

    >>> from closeknit.core.kinds import numeric
    >>> domain, _ = numeric().bind(np.array([30, 40, 50, 60]))
    >>> ground_of(np.array([2, 0, 1, 1, 0]), domain, "ordered").ranks.tolist()
    [0, 1, 2]
    """
    choice("distance", distance, DISTANCES)
    if distance == "ordered":
        return Line.of(counts, domain)
    if distance == "equal":
        return Branches.of(counts, flat_tree(domain.size))
    if domain.tree is None:
        raise BadInput("a hierarchical distance needs a hierarchy", right="request distance 'ordered' or 'equal'")
    return Branches.of(counts, domain.tree)


def flat_tree(size: int) -> Tree:
    """All leaves, the missing one last, right under the top.

    >>> flat_tree(2).leaf_node.tolist()
    [1, 2, 3]
    """
    leaf_node = np.arange(1, size + 2, dtype=np.int32)
    lo = np.concatenate([np.zeros(1, dtype=np.int32), leaf_node - 1])
    hi = lo.copy()
    hi[0] = size
    height = (np.arange(size + 2) == 0).astype(np.int32)
    leaves = np.ones(size + 2, dtype=np.int32)
    leaves[0], leaves[-1] = size, 0
    return Tree(("",) * (size + 2), np.zeros(size + 2, dtype=np.int32), lo, hi, height, leaves, leaf_node)

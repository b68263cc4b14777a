"""Leaves as points: Euclidean distance is then the distance that the sources give between two records.

Numbers lie on one axis of length 1, by value. A tree's distance, `height(lowest common ancestor) / height(root)`, is an
ultrametric, so one axis per node below the root makes it Euclidean without error: a leaf has the coordinate
`sqrt((height(parent)^2 - height(node)^2) / 2) / height(root)` on the axes of the nodes above it, and 0 on all others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from closeknit.core.domain import Domain
from closeknit.core.tree import Tree
from closeknit.kernels.arrays import Int32

MOST_AXES = 256  # of one tree; a larger tree has a single axis, its depth-first order

Points = NDArray[np.float64]


def leaf_points(domain: Domain) -> Points:
    """The point of every leaf, the missing one last.

    >>> from closeknit.core.hierarchy import Hierarchy
    >>> tree = Hierarchy.from_nested({"all": {"lung": ["flu", "SARS"], "stomach": ["ulcer"]}})
    >>> flu, sars, ulcer, missing = leaf_points(tree.bind(np.array(["flu"], dtype=object))[0])
    >>> [round(float(np.linalg.norm(flu - other)), 6) for other in (flu, sars, ulcer, missing)]
    [0.0, 0.5, 1.0, 1.0]
    """
    if domain.tree is not None and len(domain.tree.parent) <= MOST_AXES:
        return _tree_points(domain.tree)
    # missing lies off the axis, at its middle: between .87 and 1 away from every number
    positions = np.append(domain.positions(), 0.5)
    return np.stack([positions, np.where(np.arange(len(positions)) == domain.size, np.sqrt(0.75), 0.0)], axis=1)


def _tree_points(tree: Tree) -> Points:
    height = tree.height.astype(np.float64)
    axis = np.sqrt((height[tree.parent] ** 2 - height**2) / 2) / max(height[0], 1.0)
    leaves = np.arange(tree.size + 1)
    above = (tree.lo[None, :] <= leaves[:, None]) & (leaves[:, None] <= tree.hi[None, :])
    points: Points = np.where(above, axis, 0.0)
    return points[:, axis > 0]


def embed_codes(codes: Int32, domains: Sequence[Domain]) -> list[Points]:
    """The points of every column's codes, a block per column, without constant axes.

    >>> from closeknit.core.kinds import numeric
    >>> domain, ages = numeric().bind(np.array([30, 40, 50]))
    >>> embed_codes(ages[:, None], [domain])[0].tolist()
    [[0.0], [0.5], [1.0]]
    """
    blocks = []
    for column, domain in enumerate(domains):
        points = leaf_points(domain)
        occurring = points[np.unique(codes[:, column])]
        varies = np.ptp(occurring, axis=0) > 0 if len(occurring) else np.zeros(points.shape[1], dtype=bool)
        blocks.append(points[:, varies][codes[:, column]])
    return blocks

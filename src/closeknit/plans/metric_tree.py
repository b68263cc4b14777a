"""Ground distances as trees with weights: the form in which exchanges judge a class.

The earth mover's distance over a tree is the sum over its nodes of weight * |share of the class under the node - share of all
rows|. A hierarchy is such a tree with half the difference of heights as weights, equal distance one of a single level, and a
line one of a single branch, where all values up to a value are "under" it. Nodes without rows weigh nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closeknit.core.combined_secrets import Secret
from closeknit.core.domain import Domain
from closeknit.core.model import Model
from closeknit.core.share_limits import Distance
from closeknit.core.table import Table
from closeknit.kernels.arrays import Int64
from closeknit.kernels.exchange.closeness_exchange import Secrets, no_secrets
from closeknit.plans.ground import Branches, Line, ground_of

LONGEST = 4096  # values of a line; a longer one is cut into as many runs of values


@dataclass(frozen=True, eq=False)
class MetricTree:
    """Node of every leaf code (-1: no row has it), and for every node its parent, its weight and the rows under it."""

    node_of: Int64
    parent: Int64
    weight: NDArray[np.float64]
    rows: Int64
    line: bool

    @classmethod
    def of(cls, reference: Int64, domain: Domain, distance: str, longest: int = LONGEST) -> MetricTree:
        """The tree of one attribute; `reference` counts every leaf. A line of more than `longest` values is cut into runs."""
        ground = ground_of(reference, domain, distance)
        return _of_line(ground, len(reference), longest) if isinstance(ground, Line) else _of_branches(ground, len(reference))

    def distance(self, counts: Int64) -> float:
        """Earth mover's distance of a class with these counts of the leaf codes.

        >>> from closeknit.core.kinds import numeric
        >>> domain, _ = numeric().bind(np.array([30, 40, 50]))
        >>> round(MetricTree.of(np.array([2, 1, 7, 0]), domain, "ordered").distance(np.array([3, 0, 7, 0])), 6)
        0.05
        """
        has = counts > 0
        under = np.bincount(self.node_of[has], weights=counts[has], minlength=len(self.parent))
        for x in range(len(under) - 1, 0, -1):
            under[self.parent[x]] += under[x]
        return float(self.weight @ np.abs(under / under[0] - self.rows / self.rows[0]))


def _of_line(line: Line, leaves: int, longest: int) -> MetricTree:
    """The largest value at the top, and each value right under the next larger one."""
    m = len(line.codes)
    runs = min(m, longest)
    run = np.arange(m, dtype=np.int64) * runs // m
    last = np.append(np.flatnonzero(np.diff(run)), m - 1)  # of each run
    node_of = np.full(leaves, -1, dtype=np.int64)
    node_of[line.codes] = runs - 1 - run
    weight = np.diff(line.ranks[last], append=line.ranks[-1])[::-1] / line.scale
    rows = np.cumsum(line.counts)[last][::-1]
    return MetricTree(node_of, np.maximum(np.arange(runs) - 1, 0), weight, rows, True)


def _of_branches(branches: Branches, leaves: int) -> MetricTree:
    tree = branches.tree
    kept = branches.rows > 0
    number_of = np.cumsum(kept) - 1
    height = tree.height.astype(np.float64)
    weight = (height[tree.parent] - height) / (2 * max(height[0], 1.0))
    node_of = np.full(leaves, -1, dtype=np.int64)
    node_of[branches.codes] = number_of[tree.leaf_node[branches.codes]]
    return MetricTree(node_of, number_of[tree.parent[kept]], weight[kept], branches.rows[kept], False)


def distances_of(table: Table, models: Sequence[Model]) -> list[tuple[Secret, Distance]]:
    """The limits on a distance that these guarantees set, each with its sensitive attribute.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
    >>> [limit.ground for _, limit in distances_of(table, [ck.TCloseness("disease", 0.2), ck.TCloseness("stay", 0.2)])]
    ['hierarchical', 'ordered']
    """
    found = []
    for model in models:
        limits = model.limits(table.count_values(model.column)) if model.bounds == "distance" and model.column else None
        if limits is not None and limits.distance is not None and model.column is not None:
            found.append((model.column, limits.distance))
    return found


def secrets_of(table: Table, limits: Sequence[tuple[Secret, Distance]]) -> Secrets:
    """The trees of these limits side by side, and the node of each row in them.

    >>> import closeknit as ck
    >>> table = ck.datasets.hospital_schema().encode(ck.datasets.hospital(20))
    >>> limits = distances_of(table, [ck.TCloseness("disease", 0.2), ck.TCloseness("stay", 0.1)])
    >>> secrets = secrets_of(table, limits)
    >>> secrets.node.shape, secrets.line.tolist(), secrets.t.tolist()
    ((20, 2), [False, True], [0.2, 0.1])
    """
    if not limits or len(table) == 0:
        return no_secrets(len(table))
    whole, start, trees, nodes = table.one_class(), [0], [], []
    for column, limit in limits:
        codes, domain = table.secret(column)
        tree = MetricTree.of(whole.histograms[column].reference, domain, limit.ground)
        nodes.append((tree.node_of[codes] + start[-1]).astype(np.int32))
        trees.append(tree)
        start.append(start[-1] + len(tree.parent))
    return Secrets(
        np.stack(nodes, axis=1),
        np.array(start, dtype=np.int64),
        np.concatenate([tree.parent + begin for tree, begin in zip(trees, start[:-1], strict=True)]),
        np.concatenate([tree.weight for tree in trees]),
        np.concatenate([tree.rows / tree.rows[0] for tree in trees]),
        np.array([tree.line for tree in trees]),
        np.array([float(limit.most) for _, limit in limits]),
    )
